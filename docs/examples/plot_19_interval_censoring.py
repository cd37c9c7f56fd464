"""
What goes wrong if an interval is replaced by one of its points?
================================================================

Events are found at visits, on average two years apart. The times at which they are found, the
right ends of their intervals, give medians that are too late. Midpoints do so where times are
short. A forest of the intervals follows the truth. The true median is known, as the data are
simulated.

See also :doc:`/how_to/interval_censoring`.
"""

import matplotlib.pyplot as plt
import numpy as np

from cqrf import CensoredQuantileForest, censored, interval

rng = np.random.default_rng(0)
n = 2000
X = rng.uniform(0, 2, (n, 3))
time = np.exp(X[:, 0] + 0.4 * rng.normal(size=n))
visits = np.sort(rng.uniform(0, 12, (n, 5)), axis=1)
visits = np.column_stack([np.zeros(n), visits, np.full(n, np.inf)])
found = (visits < time[:, np.newaxis]).sum(axis=1)  # the first visit with the event
lower, upper = visits[np.arange(n), found - 1], visits[np.arange(n), found]
event = np.isfinite(upper)  # the others have no event up to their last visit

line = np.ones((100, 3))
line[:, 0] = np.linspace(0.05, 1.95, 100)
forest = CensoredQuantileForest(n_estimators=200, random_state=0, n_jobs=-1)
ways = {
    "intervals": interval(lower, upper),
    "midpoints": censored(np.where(event, (lower + upper) / 2, lower), event),
    "right ends": censored(np.where(event, upper, lower), event),
}
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(line[:, 0], np.exp(line[:, 0]), color="black", label="true median")
for (name, y), color in zip(ways.items(), ("#0072B2", "#E69F00", "#D55E00")):
    ax.plot(line[:, 0], forest.fit(X, y).predict(line), color=color, label=name)
ax.set(xlabel="x1", ylabel="median of T, years", ylim=(0, None))
ax.legend(frameon=False)
