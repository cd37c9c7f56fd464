"""The scale on which a forest of interval-censored rows is split.

The maximum likelihood estimate of the whole table has mass in some innermost intervals. Consecutive
ones are joined to at most ``MOST_CELLS`` *cells* of about equal mass; one that has no right end is
a cell of its own. The *place* of a time is the number of its cell, plus the share of the cell's
mass before it. Rows enter the labels of a node (see
:mod:`cqrf._forest.criteria.interval_quantile`) by the places of their ends: what lies between two
ends counts by its mass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.weights import Weights
from cqrf._input.target import Target
from cqrf._survival.innermost import number_ends
from cqrf._survival.interval_curves import interval_steps

MOST_CELLS = 64


class IntervalScale(NamedTuple):
    """Cells of a table, and the places of its rows' ends."""

    survival: NDArray[np.float64]
    """(n_cells + 1,): S of the whole table before each cell, and after the last."""
    n_finite: int
    """Cells that end: all, or all but the last."""
    bounds: NDArray[np.float64]
    """(n, 2): places of both ends of each row."""


def scale_intervals(target: Target, weights: Weights) -> IntervalScale:
    """The scale of a target in time order, with one row of weights for the whole of it."""
    steps = interval_steps(weights, number_ends(target))
    survival = np.append(1.0, steps.values)
    has_infinite = bool(np.isfinite(steps.end[0]))
    edges = _cut_cells(survival)
    survival_before = survival[edges]
    n_finite = len(edges) - 1
    if has_infinite:
        survival_before = np.append(survival_before, 0.0)
    else:
        survival_before[-1] = 0.0
    assert target.lower is not None
    exact = target.event & (target.lower == target.time)
    # Steps up to an end: an exact time is itself one, an open left end comes behind its value.
    n_left = np.searchsorted(steps.right, target.lower, side="right")
    n_left[exact] = np.searchsorted(steps.right, target.time[exact], side="left")
    n_right = np.searchsorted(steps.right, target.time, side="right")
    ends = np.column_stack([survival[n_left], np.where(target.event, survival[n_right], 0.0)])
    return IntervalScale(survival_before, n_finite, _places(ends, survival_before))


def impute_times(target: Target, weights: Weights) -> NDArray[np.float64]:
    """A single time for each row: the mean in its interval by the curve of the whole table.

    For models that need one. A time that is exact or right-censored is as it was.
    """
    assert target.lower is not None
    steps = interval_steps(weights, number_ends(target))
    masses = -np.diff(steps.values, prepend=1.0)
    mass, moment = (np.append(0.0, np.cumsum(each)) for each in (masses, masses * steps.right))
    is_open = target.event & (target.lower < target.time)
    lower, upper = target.lower[is_open], target.time[is_open]
    first, behind = (np.searchsorted(steps.right, ends, side="right") for ends in (lower, upper))
    inside = mass[behind] - mass[first]
    mean = (moment[behind] - moment[first]) / np.maximum(inside, np.finfo(np.float64).tiny)
    time = target.time.copy()
    # A row of weight 0 may lie where the curve has no mass.
    time[is_open] = np.where(inside > 0, np.clip(mean, np.maximum(lower, -1e300), upper), upper)
    return time


def _cut_cells(survival: NDArray[np.float64]) -> NDArray[np.intp]:
    """Steps at which cells begin and the last ends, evenly spaced by mass."""
    levels = np.linspace(survival[0], survival[-1], MOST_CELLS + 1)
    return np.unique(np.searchsorted(-survival, -levels - 1e-12))


def _places(ends: NDArray[np.float64], survival: NDArray[np.float64]) -> NDArray[np.float64]:
    """Places of the times at which the whole table's S has these values."""
    return np.interp(1.0 - ends, 1.0 - survival, np.arange(len(survival), dtype=np.float64))
