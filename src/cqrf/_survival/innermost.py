"""Innermost intervals: where the maximum likelihood estimate of interval-censored rows has mass.

A row says that T lies in (L, R]; an exact row, L == R, says T = L; a right-censored row, that T
lies in (L, inf]. The likelihood depends on the distribution only through the mass in *innermost*
intervals (Turnbull, 1976): those from the left end of some row to the right end of some row, with
no other end in between. Every row covers a range of consecutive innermost intervals.

All ends of a table are put in one order once, and numbered: these are *keys*. At a tied value come
first left ends of exact rows, which include the value; then right ends, which include it as well;
then other left ends, which do not. So (1, 2] and (2, 3] are disjoint, an exact row at 2 lies in
the first, and a row that is censored at 2 outlives it. One pass over the keys of some rows then
gives their innermost intervals, without sorting.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._input.target import Target
from cqrf._runtime.compiling import ONE, ZERO, inlined
from cqrf._runtime.intrinsics import trailing_zeros

# The bit of a key is in word ``key >> WORD``, there at ``key & WITHIN``.
WORD, WITHIN = np.uint64(6), np.uint64(63)
EXACT_LEFT, RIGHT, OPEN_LEFT = 0, 1, 2  # the order of ends at a tied value


class IntervalEnds(NamedTuple):
    """The ends of training rows, numbered in one order.

    Attributes
    ----------
    left, right : (n,) int32
        Keys of the ends of each row, by rank.
    value : (n_keys,) float64
        The time of each key; infinite for the right end of right-censored rows.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float64]


class InnermostWork(NamedTuple):
    """Work arrays of :func:`find_innermost`.

    Attributes
    ----------
    lefts, rights : uint64
        A bit for each key; zero between uses.
    place : (n_keys,) int32
    weight : (longest row,) float64, written
        Weights of the rows that have any, scaled to sum to 1.
    first, last : (longest row,) int32, written
        The innermost intervals that each of these rows covers.
    left, right : (longest row,) int32, written
        Keys of the ends of the innermost intervals.
    """

    lefts: NDArray[np.uint64]
    rights: NDArray[np.uint64]
    place: NDArray[np.int32]
    weight: NDArray[np.float64]
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]


def number_ends(target: Target) -> IntervalEnds:
    """Keys of the ends of all rows of a target, in its order."""
    left = target.time if target.lower is None else target.lower
    right = np.where(target.event, target.time, np.inf)
    kind = np.where(left == right, EXACT_LEFT, OPEN_LEFT)
    values = np.concatenate([left, right])
    kinds = np.concatenate([kind, np.full(len(right), RIGHT)])
    order = np.lexsort((kinds, values))
    values, kinds = values[order], kinds[order]
    is_new = np.append(True, (values[1:] != values[:-1]) | (kinds[1:] != kinds[:-1]))
    keys = np.empty(len(values), np.int32)
    keys[order] = np.cumsum(is_new) - 1
    return IntervalEnds(keys[: len(left)], keys[len(left) :], values[is_new])


def make_innermost_work(n_keys: int, longest: int) -> InnermostWork:
    """Work arrays for rows of at most so many weights."""
    n_words = (n_keys >> 6) + 1
    first, last, left, right = np.empty((4, longest), np.int32)
    return InnermostWork(
        lefts=np.zeros(n_words, np.uint64),
        rights=np.zeros(n_words, np.uint64),
        place=np.empty(n_keys, np.int32),
        weight=np.empty(longest),
        first=first,
        last=last,
        left=left,
        right=right,
    )


@inlined
def find_innermost(ranks, weights, ends, work):
    """Write the innermost intervals of some rows; return (rows with weight, intervals).

    ranks : (n,) int32; weights : (n,) float64, not negative
    ends : IntervalEnds; work : InnermostWork, written

    The cost is O(n + n_keys / 64).
    """
    lefts, rights, place = work.lefts, work.rights, work.place
    n_rows, n_intervals, total = 0, 0, 0.0
    for i in range(ranks.shape[0]):
        if weights[i] > 0.0:
            left, right = np.uint64(ends.left[ranks[i]]), np.uint64(ends.right[ranks[i]])
            lefts[left >> WORD] |= ONE << (left & WITHIN)
            rights[right >> WORD] |= ONE << (right & WITHIN)
            total += weights[i]
    open_left = np.int64(-1)  # the last left end, if no right end has come since
    for at in range(lefts.shape[0]):
        word = lefts[at] | rights[at]
        while word != ZERO:
            bit = trailing_zeros(word)
            word &= word - ONE
            key = (at << 6) + np.int64(bit)
            if (lefts[at] >> bit) & ONE == ONE:
                open_left = key
                place[key] = n_intervals
                continue
            if open_left >= 0:
                work.left[n_intervals], work.right[n_intervals] = open_left, key
                n_intervals += 1
                open_left = np.int64(-1)
            place[key] = n_intervals - 1
        lefts[at], rights[at] = ZERO, ZERO
    for i in range(ranks.shape[0]):
        if weights[i] > 0.0:
            work.weight[n_rows] = weights[i] / total
            work.first[n_rows] = place[ends.left[ranks[i]]]
            work.last[n_rows] = place[ends.right[ranks[i]]]
            n_rows += 1
    return n_rows, n_intervals
