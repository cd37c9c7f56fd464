"""
How are values below a detection limit used?
============================================

A laboratory cannot measure less than 0.8, so that low values are left-censored. The forest uses
them as "at most 0.8". Quantiles below the limit are not identifiable: the lower lines start
where the data show them.

See also :doc:`/how_to/left_censoring`.
"""

import matplotlib.pyplot as plt
import numpy as np

from cqrf import CensoredQuantileForest, censored

rng = np.random.default_rng(0)
X = rng.uniform(0, 2, (2000, 3))
value = np.exp(X[:, 0] - 1 + 0.5 * rng.normal(size=2000))
y = censored(np.maximum(value, 0.8), value >= 0.8)
forest = CensoredQuantileForest(censoring="left", random_state=0, n_jobs=-1).fit(X, y)

line = np.ones((100, 3))
line[:, 0] = np.linspace(0.02, 1.98, 100)
predicted = forest.predict(line, [0.25, 0.5, 0.75], unidentified="nan")
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(X[:, 0], y["time"], ".", color="0.85", ms=3, zorder=0)
for quantile, level, color in zip(
    predicted.T, (0.25, 0.5, 0.75), ("#009E73", "#0072B2", "#D55E00")
):
    ax.plot(line[:, 0], quantile, color=color, label=f"{level} quantile")
ax.axhline(0.8, color="black", ls="--", lw=1, label="detection limit")
ax.set(xlabel="x1", ylabel="concentration", ylim=(0, 5))
ax.legend(frameon=False)
