"""Log-rank with competing risks: one label for each cause, its martingale residual.

The residual is 1 for an event of the cause, 0 otherwise, minus the cause-specific cumulative hazard
(Nelson-Aalen, in the node) at Y. Rows that had another event have left the risk set. The gain of a
split adds up the cause-specific log-rank tests. With delayed entry the hazard counts from the row's
entry on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.criteria.at_risk import remove_not_entered, weigh_rows
from cqrf._forest.criteria.cause_quantile import find_entry, place_of
from cqrf._runtime.compiling import called, inlined


class CauseLogrank(NamedTuple):
    """Parameters: the causes."""

    n_labels: int
    place: NDArray[np.int64]
    """As in :class:`~cqrf._forest.criteria.cause_quantile.CauseQuantile`."""

    @classmethod
    def from_causes(cls, levels: tuple[float, ...], place: NDArray[np.int64]) -> CauseLogrank:
        """One label for each cause; it uses no levels."""
        return cls(int(place.max()) + 1, place)

    def scaled_to(self, largest_time: float) -> CauseLogrank:
        """Only the order of times matters."""
        return self


@called
def label_cause_logrank(criterion, rows, here, work):
    """Write the martingale residuals of each cause; no split without events of these causes."""
    labels, direction, n_causes = work.labels, work.direction, criterion.n_labels
    direction[0] = 0.0
    for k in range(n_causes):
        direction[k + 1] = 1.0
    mass = weigh_rows(rows.weight, here, labels, work.at_risk)
    remove_not_entered(rows.first_at_risk, here, labels, work.at_risk, work.value, work.absent)
    any_event = write_hazards(rows, here, criterion, work)
    for i in range(here.shape[0] - 1, -1, -1):  # hazards of rows before it are read for its entry
        row = here[i]
        own, entered = (
            place_of(rows.cause, row, criterion.place),
            find_entry(rows.first_at_risk, here, row),
        )
        for k in range(n_causes):
            expected = labels[i, 1 + k]
            if entered > 0:
                expected -= labels[entered - 1, 1 + k]
            labels[i, 1 + k] = labels[i, 0] * ((1.0 if own == k else 0.0) - expected)
    return any_event, mass


@inlined
def write_hazards(rows, here, criterion, work):
    """Write the cumulative hazard of cause k at row i to ``labels[i, 1 + k]``.

    Returns whether there is an event of these causes. The hazards up to the current time are in
    the first row of ``work.cuts``.
    """
    time, labels, cuts = rows.time, work.labels, work.cuts
    n, n_causes = here.shape[0], criterion.n_labels
    any_event, i = False, 0
    for k in range(n_causes):
        cuts[0, k] = 0.0
    while i < n:
        tied_end = i
        while tied_end < n and time[here[tied_end]] == time[here[i]]:
            k = place_of(rows.cause, here[tied_end], criterion.place)
            if k >= 0:
                any_event = True
                cuts[0, k] += labels[tied_end, 0] / work.at_risk[i]
            tied_end += 1
        for j in range(i, tied_end):
            for k in range(n_causes):
                labels[j, 1 + k] = cuts[0, k]
        i = tied_end
    return any_event
