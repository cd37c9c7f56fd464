"""
Does a lower bound hold?
========================

Nine tenths of all times should lie above a lower bound. For the .1 quantile of a forest with
large leaves the share is above .9. The conformal bound corrects the level. Each point is one
training set, the black line their mean; half of the times are censored.

See also :doc:`/how_to/conformal_bounds`.
"""

import matplotlib.pyplot as plt
import numpy as np

from cqrf import CensoredQuantileForest, censored
from cqrf.conformal import ConformalForest


def draw(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 2, (n, 5))
    latent = np.exp(X[:, 0] + 0.3 * rng.normal(size=n))
    limit = 4 * np.exp(-1.5 * (X[:, 0] - 1)) * rng.exponential(size=n)
    return X, censored(np.minimum(latent, limit), latent <= limit), latent


coarse = CensoredQuantileForest(n_estimators=50, min_samples_leaf=100, random_state=0, n_jobs=-1)
shares = []
for seed in range(12):
    X, y, _ = draw(2000, seed)
    X_new, _, latent = draw(2000, 100 + seed)
    bounds = ConformalForest(coarse, coverage=0.9, random_state=seed).fit(X, y)
    plain = coarse.fit(X, y).predict(X_new, 0.1, unidentified="clip")
    shares.append([np.mean(latent >= plain), np.mean(latent >= bounds.predict_lower(X_new))])

figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
ax.axvline(0.9, color="0.5", ls="--")
for row, found in enumerate(np.transpose(shares)):
    ax.plot(found, np.full(12, row), "o", alpha=0.6, color=["#D55E00", "#0072B2"][row])
    ax.plot(found.mean(), row, "k|", ms=24)
ax.set(yticks=[0, 1], ylim=(-0.6, 1.6), xlabel="share of new times above the bound")
ax.set_yticklabels(["the .1 quantile", "conformal bound"])
