"""Log-rank: the label is the martingale residual, as in random survival forests.

The residual is the event indicator minus the cumulative hazard (Nelson-Aalen, in the node) at Y.
Its sum over a child is exactly the numerator of the two-sample log-rank test of that child against
the other. With delayed entry the cumulative hazard counts from the row's entry on.
"""

from __future__ import annotations

from typing import NamedTuple

from cqrf._forest.criteria.at_risk import remove_not_entered, weigh_rows
from cqrf._input.risk_sets import first_position
from cqrf._runtime.compiling import called, inlined


class Logrank(NamedTuple):
    """Parameters: none but the number of labels."""

    n_labels: int = 1

    @classmethod
    def from_levels(cls, levels: tuple[float, ...]) -> Logrank:
        """It uses no levels."""
        return cls(n_labels=1)

    def scaled_to(self, largest_time: float) -> Logrank:
        """Only the order of times matters."""
        return self


@called
def label_logrank(criterion, rows, here, work):
    """Write the martingale residuals; see :mod:`cqrf._forest.criteria`. No split without events."""
    event, labels = rows.event, work.labels
    at_risk, direction = work.at_risk, work.direction
    direction[0], direction[1] = 0.0, 1.0
    mass = weigh_rows(rows.weight, here, labels, at_risk)
    remove_not_entered(rows.first_at_risk, here, labels, at_risk, work.value, work.absent)
    any_event = write_cumulative_hazard(rows.time, event, here, labels, at_risk)
    subtract_hazard_at_entry(rows.first_at_risk, here, labels, at_risk)
    for i in range(here.shape[0]):
        labels[i, 1] = labels[i, 0] * (event[here[i]] - labels[i, 1])
    return any_event, mass


@inlined
def write_cumulative_hazard(time, event, here, labels, at_risk):
    """Write the cumulative hazard at each row's time; return whether there is any event."""
    n = here.shape[0]
    hazard, any_event, i = 0.0, False, 0
    while i < n:
        tied_end, died = i, 0.0
        while tied_end < n and time[here[tied_end]] == time[here[i]]:
            if event[here[tied_end]]:
                died += labels[tied_end, 0]
            tied_end += 1
        if died > 0.0:
            any_event = True
            hazard += died / at_risk[i]
        for j in range(i, tied_end):
            labels[j, 1] = hazard
        i = tied_end
    return any_event


@called
def subtract_hazard_at_entry(first_at_risk, here, labels, hazard):
    """With delayed entry, subtract the cumulative hazard before each row's entry.

    ``hazard`` is a work array, (n,) float64.
    """
    if first_at_risk is not None:
        n = here.shape[0]
        for i in range(n):
            hazard[i] = labels[i, 1]
        for i in range(n):
            entered = first_position(here, first_at_risk[here[i]])
            if entered > 0:
                labels[i, 1] -= hazard[entered - 1]
