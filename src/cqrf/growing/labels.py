"""Labels: what each criterion writes on the rows of a node before it is split.

The rows of a node stand in time order, events before censorings at a tied time, so every
label is found in one pass. Four shapes of label exist, and the splitter knows how to sum
each:

MEAN
    One number per row, centred. `variance`: Y minus its mean. `logrank`: the martingale
    residual, event minus cumulative hazard at Y; its sum over a child is exactly the
    numerator of the two-sample log-rank test of that child against the other.
CLASSES
    `quantile`: the rows between two quantiles of Y form a class. Classes are runs of rows.
CURVE
    `censored_quantile`: for each level, P(T > c) as far as the node knows, with c the
    Kaplan-Meier quantile of T in the node: 1 for a row with Y > c, 0 for an event with
    Y <= c, and S(c) / S(Y) for a row censored at Y <= c. Rows between two cut points form a
    class; a row needs only its class and its 1 / S(Y) (0 for an event).
VECTOR
    The same where rows enter late, written out level by level and less what was certain to
    be, given that the row was there to enter: P(T > c | T > entry).
"""

from __future__ import annotations

import numpy as np

from cqrf.kernel import kernel

VARIANCE, LOGRANK, QUANTILE, CENSORED_QUANTILE = 0, 1, 2, 3
MEAN, CLASSES, CURVE, VECTOR = 0, 1, 2, 3

# A survival within this distance of a level has reached it: sums of weights that should
# be equal differ in their last digits.
TOLERANCE = 1e-12


@kernel
def label_by_mean(time, weight, rows, value):
    """Write weight * (time - mean); return the rows' weight."""
    n = rows.shape[0]
    total, mass = 0.0, 0.0
    for i in range(n):
        row_weight = 1.0 if weight is None else np.float64(weight[rows[i]])
        total += row_weight * time[rows[i]]
        mass += row_weight
    mean = total / mass
    for i in range(n):
        row_weight = 1.0 if weight is None else np.float64(weight[rows[i]])
        value[i] = row_weight * (time[rows[i]] - mean)
    return mass


@kernel
def label_by_hazard(time, event, at_risk, weight, rows, first_at_risk, value):
    """Write weight * (event - cumulative hazard while at risk); False without events."""
    n = rows.shape[0]
    hazard, any_event, i = 0.0, False, 0
    while i < n:
        tied_end, died = i, 0.0
        while tied_end < n and time[rows[tied_end]] == time[rows[i]]:
            if event[rows[tied_end]]:
                died += 1.0 if weight is None else np.float64(weight[rows[tied_end]])
            tied_end += 1
        if died > 0.0:
            any_event = True
            hazard += died / at_risk[i]
        for j in range(i, tied_end):
            value[j] = hazard
        i = tied_end
    if first_at_risk is not None:
        for i in range(n):
            at_risk[i] = value[i]
        for i in range(n):
            entered = np.searchsorted(rows, first_at_risk[rows[i]])
            if entered > 0:
                value[i] -= at_risk[entered - 1]
    for i in range(n):
        row_weight = 1.0 if weight is None else np.float64(weight[rows[i]])
        value[i] = row_weight * (event[rows[i]] - value[i])
    return any_event


@kernel
def label_by_classes(time, weight, rows, levels, ends):
    """Write the ends of the classes between quantiles of time; False if there is only one."""
    n = rows.shape[0]
    mass = 0.0
    for i in range(n):
        mass += 1.0 if weight is None else np.float64(weight[rows[i]])
    below, i = 0.0, 0
    for k in range(levels.shape[0]):
        while below < levels[k] * mass * (1.0 - TOLERANCE) and i < n:
            below += 1.0 if weight is None else np.float64(weight[rows[i]])
            i += 1
        while 0 < i < n and time[rows[i]] == time[rows[i - 1]]:
            below += 1.0 if weight is None else np.float64(weight[rows[i]])
            i += 1
        ends[k] = i
    ends[levels.shape[0]] = n
    return ends[0] < n


@kernel
def label_by_curve(time, event, at_risk, weight, rows, levels, ends, survival_at, value):
    """Write class ends, S at the cut points and weight / S(Y); return the levels reached.

    Where S does not reach the lowest level, the levels are shrunk to the range that it
    does reach, so that a node of a heavily censored table can still be split; ``levels``
    is changed in place to those used.
    """
    reached = _cut_curve(time, event, at_risk, weight, rows, levels, ends, survival_at, value)
    if reached == 0:
        survival_end = survival_at[0]
        if survival_end >= 1.0:
            return 0
        for k in range(levels.shape[0]):
            levels[k] *= 1.0 - survival_end
        reached = _cut_curve(time, event, at_risk, weight, rows, levels, ends, survival_at, value)
    return reached


@kernel
def _cut_curve(time, event, at_risk, weight, rows, levels, ends, survival_at, value):
    n = rows.shape[0]
    survival, k = 1.0, 0
    for i in range(n):
        row = rows[i]
        row_weight = 1.0 if weight is None else np.float64(weight[row])
        if event[row]:
            survival *= 1.0 - row_weight / at_risk[i]
            value[i] = 0.0
        else:
            value[i] = row_weight / survival
        if i + 1 < n and time[rows[i + 1]] == time[row]:
            continue
        while k < levels.shape[0] and survival <= 1.0 - levels[k] + TOLERANCE:
            survival_at[k] = survival
            ends[k] = i + 1
            k += 1
    if k == 0:
        survival_at[0] = survival
    return k


@kernel
def write_vectors(
    event, at_risk, weight, rows, first_at_risk, reached, ends, survival_at, vectors, means
):
    """Write the labels of a curve level by level, for rows that may have entered late.

    ``at_risk`` is overwritten with S after each row.
    """
    n = rows.shape[0]
    survival = 1.0
    for i in range(n):
        row_weight = 1.0 if weight is None else np.float64(weight[rows[i]])
        if event[rows[i]]:
            survival *= 1.0 - row_weight / at_risk[i]
        at_risk[i] = survival
    for k in range(means.shape[0]):
        means[k] = 0.0
    mass = 0.0
    for i in range(n):
        row_weight = 1.0 if weight is None else np.float64(weight[rows[i]])
        mass += row_weight
        entered = np.searchsorted(rows, first_at_risk[rows[i]])
        at_entry = 1.0 if entered == 0 else at_risk[entered - 1]
        for k in range(reached):
            label, expected = 1.0, 1.0
            if i < ends[k]:
                label = 0.0 if event[rows[i]] else survival_at[k] / at_risk[i]
            if entered < ends[k]:
                expected = survival_at[k] / at_entry if at_entry > 0.0 else 0.0
            vectors[i, k] = row_weight * (label - expected)
            means[k] += vectors[i, k]
        for k in range(reached, vectors.shape[1]):
            vectors[i, k] = 0.0
    for k in range(means.shape[0]):
        means[k] /= mass


@kernel
def count_at_risk(weight, rows, at_risk):
    """Write the weight of the rows from each position on."""
    remaining = 0.0
    for i in range(rows.shape[0] - 1, -1, -1):
        remaining += 1.0 if weight is None else np.float64(weight[rows[i]])
        at_risk[i] = remaining


@kernel
def remove_absent(rows, weights, first_at_risk, at_risk):
    """Take from the weight at risk at each row that of rows which have not entered yet.

    Rows ascend; ``weights`` stand by position, ``first_at_risk`` by row.
    """
    n = rows.shape[0]
    absent = np.zeros(n + 1)
    for j in range(n):
        absent[0] += weights[j]
        absent[np.searchsorted(rows, first_at_risk[rows[j]])] -= weights[j]
    waiting = 0.0
    for i in range(n):
        waiting += absent[i]
        at_risk[i] = max(at_risk[i] - waiting, weights[i])


@kernel
def label_node(
    criterion,
    time,
    event,
    weight,
    rows,
    base_levels,
    at_risk,
    levels,
    value,
    ends,
    means,
    precision,
    survival_at,
    first_at_risk,
    vectors,
):
    """Write the labels of a node; return (can be split, shape, weight of rows).

    ``means`` receives the mean of each label in the node, ``precision`` one over its variance
    as far as it takes part in the gain, 0 for a label that takes no part.
    """
    n, n_levels = rows.shape[0], len(base_levels)
    if time[rows[0]] == time[rows[n - 1]] and criterion != LOGRANK:
        return False, MEAN, 0.0
    if criterion == VARIANCE:
        return True, MEAN, label_by_mean(time, weight, rows, value)
    count_at_risk(weight, rows, at_risk)
    mass = at_risk[0]
    if first_at_risk is not None and criterion != QUANTILE:
        for i in range(n):
            value[i] = 1.0 if weight is None else np.float64(weight[rows[i]])
        remove_absent(rows, value, first_at_risk, at_risk)
    if criterion == LOGRANK:
        any_event = label_by_hazard(time, event, at_risk, weight, rows, first_at_risk, value)
        return any_event, MEAN, mass
    for k in range(n_levels):
        levels[k] = base_levels[k]
    if criterion == QUANTILE:
        mixed = label_by_classes(time, weight, rows, levels, ends)
        start = 0
        for c in range(n_levels + 1):
            means[c] = (_weight_from(at_risk, start) - _weight_from(at_risk, ends[c])) / mass
            precision[c] = 1.0
            start = ends[c]
        return mixed, CLASSES, mass
    reached = label_by_curve(time, event, at_risk, weight, rows, levels, ends, survival_at, value)
    for k in range(n_levels + 1):
        means[k], precision[k] = 0.0, 0.0
        if k < reached:
            precision[k] = 1.0 / (levels[k] * (1.0 - levels[k]))
        else:
            ends[k], survival_at[k] = n, 0.0
    if first_at_risk is not None:
        write_vectors(
            event, at_risk, weight, rows, first_at_risk, reached, ends, survival_at, vectors, means
        )
        return reached > 0, VECTOR, mass
    start, beyond, censored_below = 0, mass, 0.0
    for k in range(reached):
        for i in range(start, ends[k]):
            beyond -= 1.0 if weight is None else np.float64(weight[rows[i]])
            censored_below += value[i]
        start = ends[k]
        means[k] = (beyond + survival_at[k] * censored_below) / mass
    return reached > 0, CURVE, mass


@kernel
def _weight_from(at_risk, position):
    return at_risk[position] if position < at_risk.shape[0] else 0.0
