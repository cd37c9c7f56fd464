"""Concordance: the share of comparable pairs that predictions put in the right order.

A pair is comparable if one row's event is known to come before the other's: that other row was
still at risk after it, or was censored at that very time. A tied prediction counts half.
Harrell's index counts all pairs alike, so it depends on the censoring; Uno's weighs a pair by
1 / G(T-)^2 at its first event T, and asks only for events before the horizon.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.sample_weight import read_sample_weight
from cqrf._input.target import Target, oriented, rank_target, read_target
from cqrf._runtime.arguments import read_choice, read_fraction
from cqrf._runtime.compiling import allocating_kernel
from cqrf.metrics.censoring import see


def concordance_index(
    y: Any,
    predicted: ArrayLike,
    *,
    y_train: Any = None,
    horizon: float | None = None,
    censoring: str = "right",
    train_weight: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Concordance of predicted times with censored ones, in O(n log n).

    NaN, with a warning, if every event that could begin a pair lies beyond the horizon.

    Parameters
    ----------
    y : target in any form that ``fit`` takes
        The rows that are judged.
    predicted : array-like of shape (n,)
        A larger one means a later event; infinite ones are the latest.
    y_train : target, optional
        Training rows, from which G is estimated: gives Uno's index. Without it, Harrell's.
    horizon : float, optional
        Events at this time or later do not begin a pair. Default: none for Harrell's index, and
        where G falls below the floor for Uno's.
    censoring : {"right", "left"}
        Side on which times are censored.
    train_weight, sample_weight : array-like, optional
        Weights of the rows of ``y_train``, and of ``y``; a pair counts the product of its rows'.

    Examples
    --------
    >>> from cqrf import censored
    >>> from cqrf.metrics import concordance_index
    >>> y = censored([1.0, 2.0, 3.0], [True, False, True])
    >>> concordance_index(y, [10.0, 30.0, 5.0])
    0.5
    """
    read_choice("censoring", censoring, ("right", "left"))
    target = y if isinstance(y, Target) else read_target(y)
    values = np.asarray(predicted, np.float64)
    n = len(target.time)
    if values.shape != (n,):
        raise ValueError(f"predicted has shape {values.shape}; expected one time a row: ({n},).")
    if np.isnan(values).any():
        raise ValueError("predicted times must not be NaN.")
    if y_train is None and train_weight is not None:
        raise ValueError("train_weight weighs the rows of y_train, which is missing: give both.")
    weight = np.ones(n) if sample_weight is None else read_sample_weight(sample_weight, n)
    first_weight = weight.copy()
    last = np.inf
    if horizon is not None:
        last = oriented(read_fraction("horizon", horizon, -np.inf, np.inf), censoring)
    time = oriented(target.time, censoring)
    if y_train is not None:
        seen = see(y_train, target, censoring=censoring, train_weight=train_weight)
        last = min(last, seen.horizon)
        first_weight /= seen.uncensored_before(time) ** 2
    beyond = time >= last
    first_weight[beyond] = 0.0
    ranked, order = rank_target(target, censoring)
    _, places = np.unique(oriented(values, censoring), return_inverse=True)
    concordant, comparable = count_pairs(
        ranked.time, ranked.event, places[order], weight[order], first_weight[order]
    )
    if comparable == 0 and (target.event & beyond).any():
        warnings.warn(
            f"no event that begins a pair comes before the horizon {oriented(last, censoring):g}: "
            "the concordance is NaN.",
            stacklevel=2,
        )
        return np.nan
    if comparable == 0:
        raise ValueError("no two rows of y are comparable: no event comes before another time.")
    return concordant / comparable


@allocating_kernel
def count_pairs(
    time: NDArray[np.float64],
    event: NDArray[np.bool_],
    places: NDArray[np.intp],
    weight: NDArray[np.float64],
    first_weight: NDArray[np.float64],
) -> tuple[float, float]:
    """Weight of the concordant pairs, ties half, and of the comparable ones.

    Rows come in time order, events before censorings at a tied time; ``places`` are the ranks
    of the predictions. A pair weighs the ``first_weight`` of the row whose event comes first
    times the ``weight`` of the other. Walks back from the last time, with a binary indexed
    tree of the weight at each place.
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
                concordant += first_weight[i] * (total - up_to + 0.5 * (up_to - below))
                comparable += first_weight[i] * total
        for i in range(first, last + 1):
            total += weight[i]
            at = places[i] + 1
            while at <= n:
                later[at] += weight[i]
                at += at & -at
        last = first - 1
    return concordant, comparable
