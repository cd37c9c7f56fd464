"""
What goes wrong if censoring is ignored?
========================================

Two shortcuts are common: to drop censored rows, and to take censored times for event times.
Both give times that are too short. The true median is known here, because the data are
simulated.

See also :doc:`/background/assumptions`.
"""

import matplotlib.pyplot as plt
import numpy as np

from cqrf import CensoredQuantileForest, censored

rng = np.random.default_rng(0)
X = rng.uniform(0, 2, (2000, 3))
time = np.exp(X[:, 0] + 0.5 * rng.normal(size=2000))
limit = rng.exponential(5, 2000)
observed, event = np.minimum(time, limit), time <= limit

line = np.ones((100, 3))
line[:, 0] = np.linspace(0.05, 1.95, 100)
forest = CensoredQuantileForest(n_estimators=200, random_state=0, n_jobs=-1)
ways = {
    "censoring modelled": (X, censored(observed, event)),
    "censored rows dropped": (X[event], censored(observed[event], event[event])),
    "censored times as events": (X, censored(observed, np.ones(2000, bool))),
}
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(line[:, 0], np.exp(line[:, 0]), color="black", label="true median")
for (name, (features, y)), color in zip(ways.items(), ("#0072B2", "#D55E00", "#E69F00")):
    ax.plot(line[:, 0], forest.fit(features, y).predict(line), color=color, label=name)
ax.set(xlabel="x1", ylabel="median of T", title=f"{1 - event.mean():.0%} of the times are censored")
ax.legend(frameon=False)
