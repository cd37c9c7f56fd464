"""Censored quantiles with competing risks: labels that tell apart the incidence of each cause.

With c the Kaplan-Meier quantile of the time to any event in the node at a level tau, the label of a
row for cause k is P(T <= c, cause k) given the row's own time and event, by the node's curves:

    1                             if an event of cause k came at Y <= c,
    0                             if another event came at Y <= c, or if Y > c,
    (F_k(c) - F_k(Y)) / S(Y)      if the row was censored at Y <= c,

with F_k the node's Aalen-Johansen curve, divided by the standard deviation
sqrt(F_k(c) (1 - F_k(c))). There is one label for each level and cause that is split on; a rare
cause counts as much as a frequent one. With a single cause these are the labels of
:mod:`cqrf._forest.criteria.censored_quantile`, with the sign turned.

With delayed entry, what was expected at entry is subtracted: P(T <= c, cause k | T > entry).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.criteria.at_risk import remove_not_entered, weigh_rows
from cqrf._forest.criteria.censored_quantile import cut_curve
from cqrf._input.risk_sets import TOLERANCE, first_position
from cqrf._runtime.compiling import called, inlined

# Rows of ``work.cuts``, beside the first, which ``cut_curve`` writes: means of the labels, F_k at
# the cuts, and F_k up to the current row.
MEAN, AT_CUT, RUNNING = 1, 2, 3


class CauseQuantile(NamedTuple):
    """Parameters: the levels, ascending, and the causes."""

    n_labels: int
    levels: NDArray[np.float64]
    place: NDArray[np.int64]
    """(n_causes + 1,): place of each cause among those that are split on, below 0 for others; the
    first entry is that of censored rows."""
    n_causes: int
    """Causes that are split on."""

    @classmethod
    def from_causes(cls, levels: tuple[float, ...], place: NDArray[np.int64]) -> CauseQuantile:
        """One label for each level and cause."""
        n_causes = int(place.max()) + 1
        return cls(len(levels) * n_causes, np.array(levels), place, n_causes)

    def scaled_to(self, largest_time: float) -> CauseQuantile:
        """Only the order of times matters."""
        return self


@called
def label_cause_quantile(criterion, rows, here, work):
    """Write P(T <= c, cause k) at each level; no split if the curve of any event reaches none."""
    time, labels, at_risk = rows.time, work.labels, work.at_risk
    n_causes, levels = criterion.n_causes, criterion.levels
    n = here.shape[0]
    if time[here[0]] == time[here[n - 1]]:
        return False, 0.0
    mass = weigh_rows(rows.weight, here, labels, at_risk)
    remove_not_entered(rows.first_at_risk, here, labels, at_risk, work.value, work.absent)
    reached = np.int64(cut_curve(rows, here, levels, work))
    follow_incidence(rows, here, criterion, reached, work)
    for i in range(n - 1, -1, -1):
        write_labels(rows, here, i, criterion, reached, work)
    centre_labels(n, mass, levels.shape[0] * n_causes, work)
    return reached > 0, mass


@inlined
def follow_incidence(rows, here, criterion, reached, work):
    """Write F_k after row i to ``labels[i, 1 + k]``, S to ``at_risk[i]``, and F_k at the cuts."""
    labels, at_risk = work.labels, work.at_risk
    cuts, ends = work.cuts, work.ends
    place, n_causes = criterion.place, criterion.n_causes
    for k in range(n_causes):
        cuts[RUNNING, k] = 0.0
    survival, cut = 1.0, 0
    for i in range(here.shape[0]):
        row = here[i]
        if rows.event[row]:
            drop = survival * labels[i, 0] / at_risk[i]
            survival -= drop
            k = place_of(rows.cause, row, place)
            if k >= 0:
                cuts[RUNNING, k] += drop
        at_risk[i] = survival
        for k in range(n_causes):
            labels[i, 1 + k] = cuts[RUNNING, k]
        while cut < reached and ends[cut] == i + 1:
            for k in range(n_causes):
                cuts[AT_CUT, cut * n_causes + k] = cuts[RUNNING, k]
            cut += 1


@called
def place_of(cause, row, place):
    """Place of the row's cause among those that are split on; ``cause`` is never None here."""
    if cause is None:
        return np.int64(-1)
    return place[cause[row]]


@inlined
def write_labels(rows, here, i, criterion, reached, work):
    """Replace F_k of row i by its labels.

    From the last row to the first, and in each from the last level to the first: F_k of a row is
    read until its own labels are written, and those of rows before it for their entries.
    """
    labels, value, cuts, ends = work.labels, work.value, work.cuts, work.ends
    n_causes, n_levels = criterion.n_causes, criterion.levels.shape[0]
    row = here[i]
    is_event, own = rows.event[row], place_of(rows.cause, row, criterion.place)
    entered = find_entry(rows.first_at_risk, here, row)
    for level in range(n_levels - 1, -1, -1):
        for k in range(n_causes):
            at = level * n_causes + k
            label = 0.0
            if level < reached:
                if i < ends[level]:
                    if is_event:
                        label = 1.0 if own == k else 0.0
                    else:
                        label = (cuts[AT_CUT, at] - labels[i, 1 + k]) * value[i]
                if entered < ends[level]:
                    label -= expected_at(rows.first_at_risk, entered, cuts[AT_CUT, at], k, work)
            labels[i, 1 + at] = label


@called
def find_entry(first_at_risk, here, row):
    """Position at which a row enters; 0 without delayed entry."""
    if first_at_risk is None:
        return np.int64(0)
    return np.int64(first_position(here, first_at_risk[row]))


@called
def expected_at(first_at_risk, entered, at_cut, k, work):
    """P(T <= c, cause k | T > entry) of a row, with S and F_k after each row in the work arrays."""
    if first_at_risk is None or entered == 0:
        return at_cut
    survival = work.at_risk[entered - 1]
    if survival <= 0.0:
        return 0.0
    return (at_cut - work.labels[entered - 1, 1 + k]) / survival


@inlined
def centre_labels(n, mass, n_labels, work):
    """Subtract the mean of each label, divide by its standard deviation, multiply by weights."""
    labels, cuts, direction = work.labels, work.cuts, work.direction
    direction[0] = 0.0
    for at in range(n_labels):
        variance = cuts[AT_CUT, at] * (1.0 - cuts[AT_CUT, at])
        # Rounding must not make a label out of one that is the same in all rows.
        direction[at + 1] = 1.0 / np.sqrt(variance) if variance > TOLERANCE else 0.0
        cuts[MEAN, at] = 0.0
    for i in range(n):
        for at in range(n_labels):
            cuts[MEAN, at] += labels[i, 0] * labels[i, at + 1]
    for i in range(n):
        for at in range(n_labels):
            centred = labels[i, at + 1] - cuts[MEAN, at] / mass
            labels[i, at + 1] = labels[i, 0] * direction[at + 1] * centred
