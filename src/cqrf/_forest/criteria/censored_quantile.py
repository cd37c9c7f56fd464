"""Censored quantiles: labels that tell apart distributions of the latent time T.

With c the Kaplan-Meier quantile of T in the node at a level tau, the label of a row is
P(T > c) given the row's own time and event, by the node's curve S:

    1             if Y > c,
    0             if the event came at Y <= c,
    S(c) / S(Y)   if the row was censored at Y <= c,

divided by the standard deviation sqrt(tau (1 - tau)). There is one label for each level. Splits
therefore do not follow covariates that drive the censoring alone. Without censoring the gain is an
Anderson-Darling distance between the children's distributions.

With delayed entry, what was certain at entry is subtracted: P(T > c | T > entry).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.criteria.at_risk import has_entries, remove_not_entered, weigh_rows
from cqrf._forest.criteria.interval_quantile import IntervalQuantile
from cqrf._input.risk_sets import TOLERANCE, first_position
from cqrf._runtime.compiling import called, inlined

# Five levels serve shifts of location, scale and tails alike.
DEFAULT_LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
# Rows of ``work.cuts``: the level used, S at its quantile, and the labels of a row beyond it and of
# an event before it.
LEVEL, SURVIVAL, BEYOND, BEFORE = 0, 1, 2, 3
MEAN = 2  # the mean label, with delayed entry


class CensoredQuantile(NamedTuple):
    """Parameters: the levels, ascending."""

    n_labels: int
    levels: NDArray[np.float64]

    @classmethod
    def from_levels(cls, levels: tuple[float, ...]) -> CensoredQuantile:
        """One label for each level."""
        return cls(len(levels), np.array(levels))

    def of_intervals(self) -> IntervalQuantile:
        """The same levels for interval-censored rows."""
        return IntervalQuantile.from_levels(tuple(self.levels))

    def scaled_to(self, largest_time: float) -> CensoredQuantile:
        """Only the order of times matters."""
        return self


@called
def label_censored_quantile(criterion, rows, here, work):
    """Write P(T > c) at each level; no split if S reaches none of them."""
    time, labels, at_risk = rows.time, work.labels, work.at_risk
    levels, cuts, direction = criterion.levels, work.cuts, work.direction
    n, n_levels = here.shape[0], levels.shape[0]
    if time[here[0]] == time[here[n - 1]]:
        return False, 0.0
    mass = weigh_rows(rows.weight, here, labels, at_risk)
    remove_not_entered(rows.first_at_risk, here, labels, at_risk, work.value, work.absent)
    # Of one type from the start, so that what it is passed to is compiled once.
    reached = np.int64(cut_curve(rows, here, levels, work))
    direction[0] = 0.0
    for k in range(n_levels):
        direction[k + 1] = 0.0
        if k < reached:
            direction[k + 1] = 1.0 / np.sqrt(cuts[LEVEL, k] * (1.0 - cuts[LEVEL, k]))
    if has_entries(rows.first_at_risk):
        label_by_curve_truncated(
            rows.first_at_risk, rows.event, here, mass, n_levels, reached, work
        )
    else:
        label_by_curve(mass, n_levels, reached, work)
    return reached > 0, mass


@inlined
def cut_curve(rows, here, levels, work):
    """Cut the node's Kaplan-Meier curve at the levels; return how many of them it reaches.

    Writes to ``work.ends`` how many rows lie up to each cut, to ``work.cuts`` the levels used and S
    at the cuts, and to ``work.value`` 1 / S(Y) of censored rows and 0 of events. Where S does not
    reach the lowest level, the levels are shrunk to the range that it reaches, so that a node of a
    heavily censored table can still be split.
    """
    n, n_levels = here.shape[0], levels.shape[0]
    time, event = rows.time, rows.event
    labels, at_risk = work.labels, work.at_risk
    value, cuts = work.value, work.cuts
    ends = work.ends
    k = 0
    for level in range(n_levels):
        cuts[LEVEL, level] = levels[level]
    for attempt in range(2):
        survival = 1.0
        for i in range(n):
            row = here[i]
            if event[row]:
                survival *= 1.0 - labels[i, 0] / at_risk[i]
                value[i] = 0.0
            else:
                value[i] = 1.0 / survival
            if i + 1 < n and time[here[i + 1]] == time[row]:
                continue
            while k < n_levels and survival <= 1.0 - cuts[LEVEL, k] + TOLERANCE:
                cuts[SURVIVAL, k] = survival
                ends[k] = i + 1
                k += 1
        if k > 0 or survival >= 1.0 or attempt == 1:
            break
        for level in range(n_levels):
            cuts[LEVEL, level] *= 1.0 - survival
    for rest in range(k, n_levels + 1):
        ends[rest] = n
    return k


@inlined
def label_by_curve(mass, n_levels, reached, work):
    """Write P(T > c) of each row at each cut; a cut that is not reached gives no label."""
    labels, value = work.labels, work.value
    cuts, ends = work.cuts, work.ends
    scale = work.direction
    beyond, censored_below, start = mass, 0.0, 0
    for k in range(n_levels):
        if k >= reached:
            cuts[SURVIVAL, k], cuts[BEYOND, k], cuts[BEFORE, k] = 0.0, 0.0, 0.0
            continue
        for i in range(start, ends[k]):
            beyond -= labels[i, 0]
            censored_below += labels[i, 0] * value[i]
        start = ends[k]
        mean = (beyond + cuts[SURVIVAL, k] * censored_below) / mass
        cuts[BEYOND, k] = scale[k + 1] * (1.0 - mean)
        cuts[BEFORE, k] = -scale[k + 1] * mean
        cuts[SURVIVAL, k] *= scale[k + 1]
    start = 0
    for c in range(n_levels + 1):
        for i in range(start, ends[c]):
            for k in range(c):
                labels[i, k + 1] = labels[i, 0] * cuts[BEYOND, k]
            for k in range(c, n_levels):
                labels[i, k + 1] = labels[i, 0] * (cuts[SURVIVAL, k] * value[i] + cuts[BEFORE, k])
        start = ends[c]


@called
def label_by_curve_truncated(first_at_risk, event, here, mass, n_levels, reached, work):
    """label_by_curve under left truncation; ``work.at_risk`` becomes S after each row."""
    if first_at_risk is None:
        return
    n = here.shape[0]
    labels, value = work.labels, work.value
    cuts, ends = work.cuts, work.ends
    scale, after = work.direction, work.at_risk
    survival = 1.0
    for i in range(n):
        if event[here[i]]:
            survival *= 1.0 - labels[i, 0] / after[i]
        after[i] = survival
    for k in range(n_levels):
        cuts[MEAN, k] = 0.0
    for i in range(n):
        entered = first_position(here, first_at_risk[here[i]])
        at_entry = 1.0 if entered == 0 else after[entered - 1]
        for k in range(n_levels):
            label, expected = 1.0, 1.0
            if i < ends[k]:
                label = cuts[SURVIVAL, k] * value[i]
            if entered < ends[k]:
                expected = cuts[SURVIVAL, k] / at_entry if at_entry > 0.0 else 0.0
            labels[i, k + 1] = scale[k + 1] * (label - expected) if k < reached else 0.0
            cuts[MEAN, k] += labels[i, 0] * labels[i, k + 1] / mass
    for i in range(n):
        for k in range(n_levels):
            labels[i, k + 1] = labels[i, 0] * (labels[i, k + 1] - cuts[MEAN, k])
