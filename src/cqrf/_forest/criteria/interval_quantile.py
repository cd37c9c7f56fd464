"""Censored quantiles of interval-censored rows.

With S the node's curve and c its quantile at a level tau, the label of a row in (L, R] is
P(T > c | L < T <= R):

    (S(max(c, L)) - S(R)) / (S(L) - S(R)),    between 0 and 1,

divided by the standard deviation sqrt(tau (1 - tau)). It is 1 if c <= L, 0 if R <= c; with exact
and right-censored rows it is the label of :mod:`cqrf._forest.criteria.censored_quantile`. As
S(c) = 1 - tau, it can be computed without c.

S has to be estimated in every node, and the maximum likelihood estimate is too slow for that. The
time scale is therefore cut into ``n_cells`` cells once, of about equal mass for the whole table
(see :mod:`cqrf._survival.interval_scale`). Inside a cell T is distributed as in the whole table;
the masses of the cells are those of the node, after ``n_steps`` EM steps for the hazards that start
from the whole table's. A step costs O(rows + cells).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.criteria.at_risk import weigh_rows
from cqrf._input.risk_sets import TOLERANCE
from cqrf._runtime.compiling import called, inlined

EM_STEPS = 5
# Rows of ``work.curve``: S before each cell, expected events in it, rows that leave before it.
SURVIVAL, EVENTS, LEAVING = 0, 1, 2
SHARE = 0  # row of ``work.cuts``: S at the cut of each level
MEAN = 1  # the mean label


class IntervalQuantile(NamedTuple):
    """Parameters: the levels, ascending; and the cells of the time scale."""

    n_labels: int
    levels: NDArray[np.float64]
    survival: NDArray[np.float64]
    """(n_cells + 1,): S of the whole table before each cell, and after the last."""
    n_finite: int
    """Cells that end: all, or all but the last."""
    n_steps: int
    """EM steps from the whole table's curve to the node's."""

    @classmethod
    def from_levels(cls, levels: tuple[float, ...]) -> IntervalQuantile:
        """One label for each level; the cells are those of :meth:`with_cells`."""
        return cls(len(levels), np.array(levels), np.array([1.0, 0.0]), 1, EM_STEPS)

    def with_cells(self, survival: NDArray[np.float64], n_finite: int) -> IntervalQuantile:
        """The same, for a table with these cells."""
        return self._replace(survival=survival, n_finite=n_finite)

    def scaled_to(self, largest_time: float) -> IntervalQuantile:
        """Only the order of times matters."""
        return self


@called
def label_interval_quantile(criterion, rows, here, work):
    """Write P(T > c) at each level; no split if S reaches none of them."""
    mass = weigh_rows(rows.weight, here, work.labels, work.at_risk)
    return label_in_cells(criterion, rows.bounds, rows.event, here, mass, work, work.curve)


@called
def label_in_cells(criterion, bounds, event, here, mass, work, curve):
    """The same, given the (n, 2) ends of the rows, in cells, and the work array of the curve."""
    if bounds is None or curve is None:
        return False, mass
    n, levels = here.shape[0], criterion.levels
    labels, cuts, direction = work.labels, work.cuts, work.direction
    survival = curve[SURVIVAL]
    fit_curve(criterion, bounds, event, here, labels, curve)
    reached = 1.0 - survival[criterion.n_finite]
    if reached <= TOLERANCE:
        return False, mass
    shrink = 1.0
    if reached < levels[0]:  # as without intervals: a heavily censored node can be split
        shrink = reached
    direction[0] = 0.0
    for k in range(levels.shape[0]):
        level = levels[k] * shrink
        cuts[SHARE, k], cuts[MEAN, k], direction[k + 1] = 1.0 - level, 0.0, 0.0
        if level <= reached:
            direction[k + 1] = 1.0 / np.sqrt(level * (1.0 - level))
    for i in range(n):
        at_left = survival_at(survival, bounds[here[i], 0])
        at_right = survival_at(survival, bounds[here[i], 1])
        inside = at_left - at_right
        for k in range(levels.shape[0]):
            share = cuts[SHARE, k]
            label = 1.0
            if share < at_left:
                label = (share - at_right) / inside if share > at_right else 0.0
            label *= direction[k + 1]
            labels[i, k + 1] = label
            cuts[MEAN, k] += labels[i, 0] * label / mass
    for i in range(n):
        for k in range(levels.shape[0]):
            labels[i, k + 1] = labels[i, 0] * (labels[i, k + 1] - cuts[MEAN, k])
    return True, mass


@inlined
def survival_at(survival, place):
    """S at a place of the scale: the number of a cell, and the share of its mass before it."""
    cell = min(np.int64(place), survival.shape[0] - 2)
    return survival[cell] + (place - cell) * (survival[cell + 1] - survival[cell])


@called
def fit_curve(criterion, bounds, event, here, labels, curve):
    """Write the node's S before each cell, from the whole table's by EM steps for the hazards."""
    survival, events, leaving = curve[SURVIVAL], curve[EVENTS], curve[LEAVING]
    n_cells = survival.shape[0] - 1
    for j in range(n_cells + 1):
        survival[j] = criterion.survival[j]
    for _ in range(criterion.n_steps):
        for j in range(n_cells + 1):
            events[j], leaving[j] = 0.0, 0.0
        expect_events(bounds, event, here, labels, curve)
        at_risk = 0.0
        for j in range(n_cells - 1, -1, -1):
            at_risk += events[j] + leaving[j + 1]
            events[j] = events[j] / at_risk if at_risk > 0.0 else 0.0
        for j in range(n_cells - 1):
            survival[j + 1] = survival[j] * (1.0 - events[j])
        survival[n_cells] = 0.0


@inlined
def expect_events(bounds, event, here, labels, curve):
    """Add up the expected events in each cell, and the rows that are censored at its start."""
    survival, events, leaving = curve[SURVIVAL], curve[EVENTS], curve[LEAVING]
    slope = curve[3]  # weight over probability, of rows that cover a cell wholly: its steps
    n_cells = survival.shape[0] - 1
    for j in range(n_cells + 1):
        slope[j] = 0.0
    for i in range(here.shape[0]):
        left, right = bounds[here[i], 0], bounds[here[i], 1]
        first, last = min(np.int64(left), n_cells - 1), min(np.int64(right), n_cells - 1)
        before, after = survival_at(survival, left), survival_at(survival, right)
        if not before > after:
            continue
        rate = labels[i, 0] / (before - after)
        if not event[here[i]]:
            events[first] += rate * (before - survival[first + 1])
            leaving[first + 1] += rate * survival[first + 1]
        elif first == last:
            events[first] += labels[i, 0]
        else:
            events[first] += rate * (before - survival[first + 1])
            events[last] += rate * (survival[last] - after)
            slope[first + 1] += rate
            slope[last] -= rate
    running = 0.0
    for j in range(n_cells):
        running += slope[j]
        events[j] += running * (survival[j] - survival[j + 1])
