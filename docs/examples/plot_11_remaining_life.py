"""
How long does someone live who has survived so far?
===================================================

Of the next five years, how many will a patient live? The expected number, for patients who have
already survived for some time. The early years are the dangerous ones for the sickest of the three.

See also :doc:`/how_to/remaining_life`.
"""

import matplotlib.pyplot as plt
import numpy as np

from cqrf import CensoredQuantileForest
from cqrf.datasets import load_pbc

pbc = load_pbc(as_frame=True)
forest = CensoredQuantileForest(random_state=0, n_jobs=-1).fit(pbc.X.iloc[7:], pbc.y[7:])
survived = np.arange(0, 2100, 100)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for row, color in ((6, "#0072B2"), (3, "#D55E00"), (0, "#009E73")):  # held out of the fit
    patient = pbc.X.iloc[[row] * len(survived)]
    remaining = forest.predict_mean(patient, horizon=1825, given=survived, beyond="restrict")
    ax.plot(survived / 365.25, remaining / 365.25, color=color, label=f"patient {row + 1}")
ax.set(xlabel="years survived", ylabel="expected years of the next five", ylim=(0, 5.2))
ax.legend(frameon=False)
