"""
Whom does a treatment help?
===========================

Two arms of a simulated study in which the effect grows with one covariate and treatment is not
assigned by chance. The forest estimates the time gained along that covariate, with a 95 %
interval.

See also :doc:`/how_to/treatment_effects`.
"""

import numpy as np

from cqrf import censored
from cqrf.effects import CensoredTreatmentForest
from cqrf.plots import plot_effect

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (1500, 4))
treated = rng.random(1500) < 1 / (1 + np.exp(-X[:, 1]))
gain = np.where(treated, np.clip(X[:, 0], 0, None), 0.0)
time = np.exp(0.5 * X[:, 1] + gain) * rng.exponential(size=1500)
limit = rng.exponential(6, 1500)
y = censored(np.minimum(time, limit), time <= limit)

forest = CensoredTreatmentForest(n_estimators=500, random_state=0, n_jobs=-1)
forest.fit(X, y, treatment=treated)
ax = plot_effect(forest, 0, horizon=3)
ax.set(xlabel="x1", ylabel="time gained up to 3")
