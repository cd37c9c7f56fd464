"""Metrics: how far predicted quantiles are from times that are only partly seen.

The quantile loss of q at level tau is u (tau - 1(u < 0)) with u = T - q: its mean is smallest
at the true quantile. Where T is censored, we use the loss of min(q, h) for min(T, h), which is
known for every row that had its event or was still at risk at the horizon h; such a row counts
1 / G(min(Y, h)-), one over the probability of not having been censored before. The horizon is
the last time at which that probability is at least FLOOR: no row counts for more than 1 / FLOOR
rows. Without censoring this is the plain quantile loss.

Harrell's concordance is the share of comparable pairs that the predictions put in the right
order. A pair is comparable if one row's event is known to come before the other's: that other
row was still at risk after it, or was censored at that very time. A tied prediction counts half.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf.curves import StepCurve, step_curves
from cqrf.kernel import kernel
from cqrf.target import (
    Target,
    first_at_risk,
    oriented,
    rank_target,
    read_sample_weight,
    read_target,
)
from cqrf.weights import Weights

FLOOR = 0.1


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


def marginal_weights(weight: NDArray[np.floating] | None, n: int) -> Weights:
    """One row of weights, the same for all or as given: its curves are Kaplan-Meier curves."""
    values = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    ranks = np.flatnonzero(values > 0)
    values = values[ranks] / values[ranks].sum()
    return Weights(np.array([0, len(ranks)]), ranks.astype(np.int32), values)


def uncensored_until(
    train: Target,
    *,
    censoring: str = "right",
    train_weight: NDArray[np.floating] | None = None,
) -> StepCurve:
    """Kaplan-Meier curve of the censoring times, on times oriented to the right."""
    ranked, order = rank_target(train, censoring)
    weight = None if train_weight is None else train_weight[order]
    return step_curves(
        marginal_weights(weight, len(order)),
        ranked.time,
        ranked.event,
        first_at_risk=first_at_risk(ranked),
        of_censoring=True,
    )[0]


def censored_quantile_loss(
    y_train: Any,
    y_test: Any,
    predicted: NDArray[np.float64],
    quantiles: ArrayLike,
    *,
    censoring: str = "right",
    train_weight: NDArray[np.floating] | None = None,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Mean quantile loss at each level up to the horizon, rows weighted by 1 / G.

    ``y_train`` and ``y_test`` are targets in any form that ``fit`` takes. ``predicted`` has
    shape (n, n_quantiles); infinite quantiles lie beyond the horizon. G is estimated from
    ``y_train``, whose rows have ``train_weight``; ``sample_weight`` belongs to the rows of
    ``y_test``. Weights are scaled to sum to 1.
    """
    train, test = (y if isinstance(y, Target) else read_target(y) for y in (y_train, y_test))
    levels = np.asarray(quantiles, np.float64)
    if censoring == "left":
        levels = 1.0 - levels
    curve = uncensored_until(train, censoring=censoring, train_weight=train_weight)
    too_rare = np.flatnonzero(curve.values < FLOOR)
    horizon = curve.times[too_rare[0]] if len(too_rare) else np.inf
    time = np.minimum(oriented(test.time, censoring), horizon)
    known = test.event | (time >= horizon)
    weight = known / np.maximum(curve(np.nextafter(time, -np.inf)), FLOOR)
    if sample_weight is not None:
        weight = weight * read_sample_weight(sample_weight, len(weight))
    if not weight.any():
        raise ValueError("no row of y has an event or reaches the horizon: nothing to compare.")
    q = np.minimum(oriented(predicted, censoring), horizon)
    if np.isnan(q).any() or np.isinf(q).any():
        raise ValueError("predicted quantiles must not be NaN, nor infinite before the horizon.")
    loss = quantile_loss(time[:, np.newaxis], q, levels)
    return (weight / weight.sum()) @ loss


def concordance_index(
    y: Any,
    predicted: ArrayLike,
    *,
    censoring: str = "right",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Harrell's concordance of predicted times with censored ones, in O(n log n).

    ``y`` is a target in any form that ``fit`` takes; a larger prediction means a later event,
    and infinite ones are the latest. A pair counts the product of its rows' weights.

    Examples
    --------
    >>> from cqrf import censored
    >>> from cqrf.metrics import concordance_index
    >>> y = censored([1.0, 2.0, 3.0], [True, False, True])
    >>> concordance_index(y, [10.0, 30.0, 5.0])
    0.5
    """
    target = y if isinstance(y, Target) else read_target(y)
    values = np.asarray(predicted, np.float64)
    n = len(target.time)
    if values.shape != (n,):
        raise ValueError(f"predicted has shape {values.shape}; expected one time a row: ({n},).")
    if np.isnan(values).any():
        raise ValueError("predicted times must not be NaN.")
    weight = np.ones(n) if sample_weight is None else read_sample_weight(sample_weight, n)
    ranked, order = rank_target(target, censoring)
    _, places = np.unique(oriented(values, censoring), return_inverse=True)
    concordant, comparable = count_pairs(ranked.time, ranked.event, places[order], weight[order])
    if comparable == 0:
        raise ValueError("no two rows of y are comparable: no event comes before another time.")
    return concordant / comparable


@kernel
def count_pairs(
    time: NDArray[np.float64],
    event: NDArray[np.bool_],
    places: NDArray[np.intp],
    weight: NDArray[np.float64],
) -> tuple[float, float]:
    """Weight of the concordant pairs, ties half, and of the comparable ones.

    Rows come in time order, events before censorings at a tied time; ``places`` are the ranks
    of the predictions. Walks back from the last time, with a binary indexed tree of the weight
    at each place.
    """
    n = len(time)
    later = np.zeros(n + 1)
    total, concordant, comparable = 0.0, 0.0, 0.0
    last = n - 1
    while last >= 0:
        first = last
        if event[last]:
            while first > 0 and event[first - 1] and time[first - 1] == time[last]:
                first -= 1
            for i in range(first, last + 1):
                up_to, below = 0.0, 0.0
                at = places[i] + 1
                while at > 0:
                    up_to += later[at]
                    at -= at & -at
                at = places[i]
                while at > 0:
                    below += later[at]
                    at -= at & -at
                concordant += weight[i] * (total - up_to + 0.5 * (up_to - below))
                comparable += weight[i] * total
        for i in range(first, last + 1):
            total += weight[i]
            at = places[i] + 1
            while at <= n:
                later[at] += weight[i]
                at += at & -at
        last = first - 1
    return concordant, comparable
