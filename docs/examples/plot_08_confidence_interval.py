"""
How sure is an estimated median?
================================

With ``bag_size`` the trees come in little bags, which give confidence intervals of quantiles.
They hold the sampling error. At the edge of the data all neighbours lie on one side, and the
estimate has a bias that no interval of this kind contains.

See also :doc:`/how_to/confidence_intervals`.
"""

import matplotlib.pyplot as plt
import numpy as np

from cqrf import CensoredQuantileForest
from cqrf.datasets import make_aft

data = make_aft(1000, 3, random_state=0)
forest = CensoredQuantileForest(n_estimators=1000, bag_size=4, random_state=0, n_jobs=-1)
forest.fit(data.X, data.y)
line = np.ones((60, 3))
line[:, 0] = np.linspace(0.05, 1.95, 60)
lower, upper = forest.quantile_confidence_interval(line, 0.5).T

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.fill_between(line[:, 0], lower, upper, color="#0072B2", alpha=0.25, lw=0, label="95 % interval")
ax.plot(line[:, 0], forest.predict(line), color="#0072B2", label="estimated median")
ax.plot(line[:, 0], data.quantile(line, 0.5), color="black", lw=1, label="true median")
ax.set(xlabel="x1", ylabel="median of T")
ax.legend(frameon=False)
