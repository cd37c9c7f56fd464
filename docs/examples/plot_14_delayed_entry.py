"""
What goes wrong if delayed entry is ignored?
============================================

Subjects join the study some time after their start; those whose event came before never join.
If the table is treated as if all had been followed from the start, early events seem rarer than
they are, and times look too long.

See also :doc:`/how_to/delayed_entry`.
"""

import matplotlib.pyplot as plt
import numpy as np

from cqrf import CensoredQuantileForest, censored

rng = np.random.default_rng(0)
X = rng.uniform(0, 2, (5000, 2))
time = np.exp(X[:, 0]) * rng.exponential(size=5000)
entry = rng.uniform(0, 2, 5000)
joined = time > entry
X, time, entry = X[joined], time[joined], entry[joined]
observed, event = np.minimum(time, 12), time <= 12

line = np.ones((80, 2))
line[:, 0] = np.linspace(0.1, 1.9, 80)
forest = CensoredQuantileForest(n_estimators=300, random_state=0, n_jobs=-1)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(line[:, 0], np.exp(line[:, 0]) * np.log(2), color="black", label="true median")
for name, y, color in (
    ("entry given", censored(observed, event, entry=entry), "#0072B2"),
    ("entry ignored", censored(observed, event), "#D55E00"),
):
    ax.plot(line[:, 0], forest.fit(X, y).predict(line), color=color, label=name)
ax.set(xlabel="x1", ylabel="median of T", ylim=(0, None))
ax.legend(frameon=False)
