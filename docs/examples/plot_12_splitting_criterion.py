"""
Does censoring mislead the splits?
==================================

One feature drives the censoring and has no effect on the time. A forest that splits on observed
times (``"variance"``) uses it most of all. The default criterion compares Kaplan-Meier
distributions, and gives it little more than it gives to noise.

See also :doc:`/background/splitting`.
"""

import matplotlib.pyplot as plt
import numpy as np

from cqrf import CensoredQuantileForest, censored

rng = np.random.default_rng(0)
X = rng.uniform(0, 2, (2000, 5))
time = np.exp(X[:, 0] + 0.5 * rng.normal(size=2000))
limit = np.exp(2.5 - 1.5 * X[:, 1]) * rng.exponential(size=2000)
y = censored(np.minimum(time, limit), time <= limit)

names = ["x1: drives the time", "x2: drives the censoring", "x3", "x4", "x5"]
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for k, (criterion, color) in enumerate((("variance", "#D55E00"), ("censored_quantile", "#0072B2"))):
    forest = CensoredQuantileForest(criterion=criterion, working_model=None, random_state=0)
    importance = forest.fit(X, y).feature_importances_
    ax.barh(np.arange(5) + 0.2 - 0.4 * k, importance, height=0.38, color=color, label=criterion)
ax.set_yticks(range(5), names)
ax.invert_yaxis()
ax.set(xlabel="share of the gain of all splits")
ax.legend(frameon=False, title="criterion")
