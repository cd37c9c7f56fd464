"""Risk sets: which rows are under observation just before each time.

Rows are numbered by *rank*: their place in time order, events before censorings at a tied time.
The risk set at a row holds it and all rows behind it, less those that enter later. The weight of
the risk set is the denominator of every product-limit factor, in the nodes of a tree as in the
curves that are read from the forest's weights; both follow the conventions of this module.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cqrf._input.target import Target
from cqrf._runtime.compiling import called, inlined

# A survival probability within this distance of a level has reached it: sums of weights that
# should be equal differ in their last digits.
TOLERANCE = 1e-12


def first_at_risk(target: Target) -> NDArray[np.int32] | None:
    """First rank at which each row is at risk, for a target in time order.

    None if every row is at risk from the first time on.
    """
    if target.entry is None:
        return None
    first = np.searchsorted(target.time, target.entry, side="right").astype(np.int32)
    return first if first.any() else None


def weigh_risk_sets(
    target: Target, weight: NDArray[np.float64], times: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weight at risk just before each time: rows with Y >= t, except those with entry >= t.

    Rows and times may be in any order.
    """
    at_risk = _weight_from(target.time, weight, times)
    if target.entry is not None:
        at_risk -= _weight_from(target.entry, weight, times)
    return at_risk


def _weight_from(
    values: NDArray[np.float64], weight: NDArray[np.float64], times: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weight of the rows whose value is at least each of the times."""
    order = np.argsort(values, kind="stable")
    tail = np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)
    return tail[np.searchsorted(values[order], times, side="left")]


@called
def subtract_not_entered(rows, weights, first_at_risk, at_risk, absent):
    """Subtract from the weight at risk at each row that of rows which enter later.

    Parameters
    ----------
    rows : (n,) integers, ascending
        Ranks.
    weights : (n,) float64
        Weight of each of them.
    first_at_risk : integers by rank
        See :func:`first_at_risk`.
    at_risk : (n,) float64, overwritten
        Weight of a row and all behind it; afterwards the weight of its risk set, which is never
        less than its own.
    absent : (n,) float64 or longer
        Work array. No row enters behind itself, so that n places are enough.
    """
    n = rows.shape[0]
    for j in range(n):
        absent[j] = 0.0
    for j in range(n):
        absent[0] += weights[j]
        absent[first_position(rows, first_at_risk[rows[j]])] -= weights[j]
    waiting = 0.0
    for i in range(n):
        waiting += absent[i]
        at_risk[i] = max(at_risk[i] - waiting, weights[i])


@inlined
def first_position(rows, rank):
    """Position of the first of some ascending rows that is not below a rank; O(log n)."""
    low, high = 0, rows.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if rows[middle] < rank:
            low = middle + 1
        else:
            high = middle
    return low
