"""
What does the working model add?
================================

A tree cuts a smooth effect into steps. By default half of the trees are grown on residuals of a
Cox model, which finds a linear effect at once. Here the log of the time is linear in x1.

See also :doc:`/background/working_model`.
"""

import matplotlib.pyplot as plt
import numpy as np

from cqrf import CensoredQuantileForest
from cqrf.datasets import make_aft

data = make_aft(1000, random_state=0)
line = np.ones((80, 20))
line[:, 0] = np.linspace(0.02, 1.98, 80)
figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for model, color in ((None, "#D55E00"), ("auto", "#0072B2")):
    forest = CensoredQuantileForest(working_model=model, random_state=0, n_jobs=-1)
    predicted = forest.fit(data.X, data.y).predict(line)
    ax.step(line[:, 0], predicted, where="mid", color=color, label=f"working_model={model!r}")
ax.plot(line[:, 0], data.quantile(line, 0.5), color="black", lw=1, label="true median")
ax.set(xlabel="x1", ylabel="median of T")
ax.legend(frameon=False)
