"""Labels: what each criterion writes on the rows of a node before it is split.

A label is a few numbers per row, centred: they sum to zero over the node. The gain of a split
is the squared length of the labels' sum on one side, whatever they stand for, so a criterion
is nothing but a way to write labels, and the splitter knows none of them.

`variance`
    Y minus its mean.
`logrank`
    The martingale residual, event minus cumulative hazard at Y; its sum over a child is
    exactly the numerator of the two-sample log-rank test of that child against the other.
`quantile`
    The rows between two quantiles of Y form a class. With one label for each class the gain
    would be the drop in the classes' Gini impurity; :func:`class_labels` has one label fewer
    and the same gain.
`censored_quantile`
    For each level, P(T > c) as far as the node knows, with c the Kaplan-Meier quantile of T in
    the node: 1 for a row with Y > c, 0 for an event with Y <= c, and S(c) / S(Y) for a row
    censored at Y <= c; over the standard deviation sqrt(level (1 - level)). Where rows enter
    late, less what was certain to be, given that the row was there: P(T > c | T > entry).

The rows of a node stand in time order, events before censorings at a tied time, so every label
is found in one pass. A row of ``labels`` is its weight, then weight times each label, then
zeros up to an even number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._input.risk_sets import TOLERANCE, first_position, subtract_not_entered
from cqrf._runtime.compiling import called, inlined

VARIANCE, LOGRANK, QUANTILE, CENSORED_QUANTILE = 0, 1, 2, 3


class Labelling(NamedTuple):
    """What :func:`label_node` needs to know of a criterion; what it does not need is None."""

    by_mean: bool | None
    by_hazard: bool | None
    by_curve: bool | None
    levels: NDArray[np.float64] | None
    of_class: NDArray[np.float64] | None
    class_direction: NDArray[np.float64] | None
    pairs: tuple[int, ...]
    """As long as there are pairs of numbers in a row of labels."""


def read_labelling(criterion: int, levels: Sequence[float]) -> Labelling:
    """The labels of a criterion that cuts at these levels, if it cuts at all."""
    by_mean, by_hazard, by_curve = (
        True if criterion == one else None for one in (VARIANCE, LOGRANK, CENSORED_QUANTILE)
    )
    if by_mean or by_hazard:
        return Labelling(by_mean, by_hazard, None, None, None, None, (0,))
    pairs = (0,) * (len(levels) // 2 + 1)
    of_class, direction = (None, None) if by_curve else class_labels(len(levels))
    return Labelling(None, None, by_curve, np.array(levels), of_class, direction, pairs)


def class_labels(n_levels: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Labels of each class, and the direction in which they give a class's number.

    With D_c the excess of class c on one side, the excess of the last class is minus the sum of
    the others, so that sum_c D_c^2 = D' (1 + J) D over the others, J all ones. The rows of a
    Cholesky factor of 1 + J, with zeros for the last class, have sums of just this length.
    """
    factor = np.linalg.cholesky(np.eye(n_levels) + 1.0)
    direction = np.linalg.solve(factor, np.arange(n_levels) - float(n_levels))
    return np.vstack([factor, np.zeros(n_levels)]), direction


@called
def label_node(
    time,
    event,
    weight,
    first_at_risk,
    rows,
    by_mean,
    by_hazard,
    by_curve,
    levels,
    of_class,
    class_direction,
    at_risk,
    value,
    ends,
    cuts,
    labels,
    direction,
):
    """Write the labels of a node; return (can be split, weight of rows).

    A branch on what is None, as is the weight if all rows weigh the same, is not compiled.
    ``direction`` receives by what each column of ``labels`` is multiplied to make one number of a
    row, which categories are ordered by. ``at_risk`` and ``value`` (a place for each row), ``ends``
    (for each class) and ``cuts`` (four for each level) are scratch.
    """
    n = rows.shape[0]
    if by_hazard is None and time[rows[0]] == time[rows[n - 1]]:
        return False, 0.0
    direction[0], direction[1] = 0.0, 1.0
    if by_mean is not None:
        return True, label_by_mean(time, weight, rows, labels)
    mass = count_at_risk(weight, rows, labels, at_risk)
    if of_class is not None:
        for k in range(levels.shape[0]):
            direction[k + 1] = class_direction[k]
        return label_by_class(time, rows, mass, levels, of_class, ends, cuts, labels), mass
    if first_at_risk is not None:
        for i in range(n):
            value[i] = labels[i, 0]
        subtract_not_entered(rows, value, first_at_risk, at_risk)
    if by_hazard is not None:
        return label_by_hazard(time, event, first_at_risk, rows, at_risk, labels), mass
    if by_curve is not None:
        reached = cut_curve(time, event, rows, at_risk, levels, labels, cuts, ends, value)
        for k in range(levels.shape[0]):
            direction[k + 1] = 0.0
            if k < reached:
                direction[k + 1] = 1.0 / np.sqrt(cuts[0, k] * (1.0 - cuts[0, k]))
        if first_at_risk is None:
            label_by_curve(mass, levels.shape[0], reached, cuts, ends, value, labels, direction)
        else:
            label_late_rows(
                event,
                first_at_risk,
                rows,
                mass,
                levels.shape[0],
                reached,
                cuts,
                ends,
                at_risk,
                value,
                labels,
                direction,
            )
        return reached > 0, mass
    return False, mass


@inlined
def count_at_risk(weight, rows, labels, at_risk):
    """Write each row's weight, and that of it and all rows behind it; return that of all."""
    n = rows.shape[0]
    if weight is None:
        for i in range(n):
            labels[i, 0], at_risk[i] = 1.0, n - i
        return np.float64(n)
    remaining = 0.0
    for i in range(n - 1, -1, -1):
        labels[i, 0] = weight[rows[i]]
        remaining += labels[i, 0]
        at_risk[i] = remaining
    return remaining


@called
def label_by_mean(time, weight, rows, labels):
    """Write the distance of each time from their mean; return the rows' weight."""
    mass, total = 0.0, 0.0
    for i in range(rows.shape[0]):
        labels[i, 0], labels[i, 1] = 1.0, time[rows[i]]
        if weight is not None:
            labels[i, 0] = weight[rows[i]]
        mass += labels[i, 0]
        total += labels[i, 0] * labels[i, 1]
    mean = total / mass
    for i in range(rows.shape[0]):
        labels[i, 1] = labels[i, 0] * (labels[i, 1] - mean)
    return mass


@called
def label_by_hazard(time, event, first_at_risk, rows, at_risk, labels):
    """Write event - cumulative hazard while at risk; False without events."""
    n = rows.shape[0]
    hazard, any_event, i = 0.0, False, 0
    while i < n:
        tied_end, died = i, 0.0
        while tied_end < n and time[rows[tied_end]] == time[rows[i]]:
            if event[rows[tied_end]]:
                died += labels[tied_end, 0]
            tied_end += 1
        if died > 0.0:
            any_event = True
            hazard += died / at_risk[i]
        for j in range(i, tied_end):
            labels[j, 1] = hazard
        i = tied_end
    if first_at_risk is not None:
        for i in range(n):
            at_risk[i] = labels[i, 1]
        for i in range(n):
            entered = first_position(rows, first_at_risk[rows[i]])
            if entered > 0:
                labels[i, 1] -= at_risk[entered - 1]
    for i in range(n):
        labels[i, 1] = labels[i, 0] * (event[rows[i]] - labels[i, 1])
    return any_event


@called
def label_by_class(time, rows, mass, levels, of_class, ends, cuts, labels):
    """Write the labels of the classes between quantiles of time; False if there is only one."""
    n, n_levels = rows.shape[0], of_class.shape[1]
    for k in range(n_levels):
        cuts[1, k] = 0.0
    below, i = 0.0, 0
    for c in range(n_levels + 1):
        before = below
        if c == n_levels:
            i, below = n, mass
        else:
            while below < levels[c] * mass * (1.0 - TOLERANCE) and i < n:
                below += labels[i, 0]
                i += 1
            while 0 < i < n and time[rows[i]] == time[rows[i - 1]]:
                below += labels[i, 0]
                i += 1
        ends[c] = i
        for k in range(n_levels):
            cuts[1, k] += of_class[c, k] * (below - before) / mass
    start = 0
    for c in range(n_levels + 1):
        for i in range(start, ends[c]):
            for k in range(n_levels):
                labels[i, k + 1] = labels[i, 0] * (of_class[c, k] - cuts[1, k])
        start = ends[c]
    return ends[0] < n


@inlined
def cut_curve(time, event, rows, at_risk, levels, labels, cuts, ends, value):
    """Cut the node's Kaplan-Meier curve at the levels; return how many of them it reaches.

    Writes where the classes between the cuts end, the levels used into ``cuts[0]``, S there
    into ``cuts[1]``, and 1 / S(Y) of censored rows, 0 of events, into ``value``. Where S does not
    reach the lowest level, the levels are shrunk to the range that it does reach, so that a node
    of a heavily censored table can still be split.
    """
    n, n_levels = rows.shape[0], levels.shape[0]
    k = 0
    for level in range(n_levels):
        cuts[0, level] = levels[level]
    for attempt in range(2):
        survival = 1.0
        for i in range(n):
            row = rows[i]
            if event[row]:
                survival *= 1.0 - labels[i, 0] / at_risk[i]
                value[i] = 0.0
            else:
                value[i] = 1.0 / survival
            if i + 1 < n and time[rows[i + 1]] == time[row]:
                continue
            while k < n_levels and survival <= 1.0 - cuts[0, k] + TOLERANCE:
                cuts[1, k] = survival
                ends[k] = i + 1
                k += 1
        if k > 0 or survival >= 1.0 or attempt == 1:
            break
        for level in range(n_levels):
            cuts[0, level] *= 1.0 - survival
    for rest in range(k, n_levels + 1):
        ends[rest] = n
    return k


@inlined
def label_by_curve(mass, n_levels, reached, cuts, ends, value, labels, scale):
    """Write P(T > c) of each row at each cut; a cut that is not reached takes no part."""
    beyond, censored_below, start = mass, 0.0, 0
    for k in range(n_levels):
        if k >= reached:
            cuts[1, k], cuts[2, k], cuts[3, k] = 0.0, 0.0, 0.0
            continue
        for i in range(start, ends[k]):
            beyond -= labels[i, 0]
            censored_below += labels[i, 0] * value[i]
        start = ends[k]
        # The label of a row beyond the cut, of an event before it, and the step from one to
        # the other per unit of 1 / S(Y).
        mean = (beyond + cuts[1, k] * censored_below) / mass
        cuts[2, k] = scale[k + 1] * (1.0 - mean)
        cuts[3, k] = -scale[k + 1] * mean
        cuts[1, k] *= scale[k + 1]
    start = 0
    for c in range(n_levels + 1):
        for i in range(start, ends[c]):
            for k in range(c):
                labels[i, k + 1] = labels[i, 0] * cuts[2, k]
            for k in range(c, n_levels):
                labels[i, k + 1] = labels[i, 0] * (cuts[1, k] * value[i] + cuts[3, k])
        start = ends[c]


@called
def label_late_rows(
    event,
    first_at_risk,
    rows,
    mass,
    n_levels,
    reached,
    cuts,
    ends,
    at_risk,
    value,
    labels,
    scale,
):
    """The same for rows that may have entered late; ``at_risk`` becomes S after each row."""
    n = rows.shape[0]
    survival = 1.0
    for i in range(n):
        if event[rows[i]]:
            survival *= 1.0 - labels[i, 0] / at_risk[i]
        at_risk[i] = survival
    for k in range(n_levels):
        cuts[2, k] = 0.0
    for i in range(n):
        entered = first_position(rows, first_at_risk[rows[i]])
        at_entry = 1.0 if entered == 0 else at_risk[entered - 1]
        for k in range(n_levels):
            label, expected = 1.0, 1.0
            if i < ends[k]:
                label = cuts[1, k] * value[i]
            if entered < ends[k]:
                expected = cuts[1, k] / at_entry if at_entry > 0.0 else 0.0
            labels[i, k + 1] = scale[k + 1] * (label - expected) if k < reached else 0.0
            cuts[2, k] += labels[i, 0] * labels[i, k + 1] / mass
    for i in range(n):
        for k in range(n_levels):
            labels[i, k + 1] = labels[i, 0] * (labels[i, k + 1] - cuts[2, k])
