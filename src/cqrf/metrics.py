"""Metrics: how far predicted quantiles are from times that are only partly seen.

The quantile loss of q at level tau is u (tau - 1(u < 0)) with u = T - q: its mean is smallest
at the true quantile. Where T is censored, events are weighted by one over the probability of
having been seen, 1 / G(Y-), which makes the mean of the weighted loss that of all T.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf.curves import step_curves
from cqrf.target import Target, oriented, time_order
from cqrf.weights import Weights

# No event counts for more than 1 / FLOOR rows, however unlikely it was to be seen.
FLOOR = 0.05


def quantile_loss(
    time: ArrayLike, predicted: ArrayLike, quantiles: ArrayLike
) -> NDArray[np.float64]:
    """Quantile loss of each prediction, elementwise (broadcast over levels).

    Examples
    --------
    >>> from cqrf.metrics import quantile_loss
    >>> quantile_loss([3.0, 1.0], [2.0, 2.0], 0.9).round(2).tolist()
    [0.9, 0.1]
    """
    distance = np.asarray(time, np.float64) - np.asarray(predicted, np.float64)
    return distance * (np.asarray(quantiles, np.float64) - (distance < 0))


def marginal_weights(n: int) -> Weights:
    """One row of equal weights: the curves from it are plain Kaplan-Meier curves."""
    return Weights(np.array([0, n]), np.arange(n, dtype=np.int32), np.full(n, 1.0 / n))


def seen_probability(train: Target, test: Target, censoring: str = "right") -> NDArray[np.float64]:
    """G(Y-): probability that the times of ``test`` had not been censored before.

    G is the Kaplan-Meier curve of the censoring times of ``train``, not below FLOOR.
    """
    time = oriented(train.time, censoring)
    order = time_order(time, train.event)
    weights = marginal_weights(len(order))
    curve = step_curves(weights, time[order], train.event[order], of_censoring=True)
    just_before = np.nextafter(oriented(test.time, censoring), -np.inf)
    return np.maximum(curve(just_before)[0], FLOOR)


def censored_quantile_loss(
    train: Target,
    test: Target,
    predicted: NDArray[np.float64],
    quantiles: ArrayLike,
    censoring: str = "right",
) -> NDArray[np.float64]:
    """Mean quantile loss at each level, events weighted by 1 / G(Y-).

    The weights are scaled to sum to 1.
    """
    weight = test.event / seen_probability(train, test, censoring)
    if not weight.any():
        raise ValueError("y has no event: a quantile loss needs at least one.")
    loss = quantile_loss(test.time[:, np.newaxis], predicted, quantiles)
    return (weight / weight.sum()) @ loss
