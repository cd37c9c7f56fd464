"""
Does the spread change where the median does not?
=================================================

In this simulation one feature changes the spread of the time and leaves its median alone. A
model of the mean or of the hazard ratio sees nothing. The quantiles show it; thin lines are the
truth.

See also :doc:`/background/splitting`.
"""

import matplotlib.pyplot as plt
import numpy as np

from cqrf import CensoredQuantileForest
from cqrf.datasets import make_heteroscedastic

data = make_heteroscedastic(2000, 5, random_state=0)
forest = CensoredQuantileForest(random_state=0, n_jobs=-1).fit(data.X, data.y)
line = np.zeros((120, 5))
line[:, 0] = np.linspace(data.X[:, 0].min(), data.X[:, 0].max(), 120)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for level, color in ((0.9, "#D55E00"), (0.5, "#0072B2"), (0.1, "#009E73")):
    ax.plot(line[:, 0], forest.predict(line, level), color=color, label=f"{level} quantile")
    ax.plot(line[:, 0], data.quantile(line, level), color="black", lw=0.8)
ax.set(xlabel="x1", ylabel="T")
ax.legend(frameon=False)
