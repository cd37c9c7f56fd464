"""Treatment effects: labels that tell apart the effect of a treatment at several times.

With residuals of the treatment, W - e(x), and of the outcome, Y*(t) - m(t | x), the effect in a
node at time t is

    tau(t) = sum (W - e) (Y* - m) / sum (W - e)^2,

the weighted mean of (Y* - m) / (W - e) with weights (W - e)^2. The label of a row is its distance
from that mean, one for each time. ``rows.scores`` holds (W - e)^2 and then, for each time,
(W - e) (Y* - m).
"""

from __future__ import annotations

from typing import NamedTuple

from cqrf._runtime.compiling import called


class Effect(NamedTuple):
    """Parameters: the number of times."""

    n_labels: int

    @classmethod
    def from_levels(cls, levels: tuple[float, ...]) -> Effect:
        """One label for each time; the times themselves are in the scores."""
        return cls(len(levels))

    def scaled_to(self, largest_time: float) -> Effect:
        """The scores do not depend on the unit of time."""
        return self


@called
def label_effect(criterion, rows, here, work):
    """Write the distance of each row from the node's effect; see :mod:`cqrf._forest.criteria`."""
    work.direction[0] = 0.0
    mass = label_by_effect(rows.scores, rows.weight, here, work)
    return mass > 0.0, mass


@called
def label_by_effect(scores, weight, here, work):
    """Write the labels; return the total weight, 0 if there are no scores."""
    labels, cuts, direction = work.labels, work.cuts, work.direction
    mass = 0.0
    if scores is not None:
        n_labels = scores.shape[1] - 1
        for k in range(n_labels):
            cuts[0, k] = 0.0
            direction[k + 1] = 1.0
        for i in range(here.shape[0]):
            row_weight = weight_of(weight, here[i])
            labels[i, 0] = row_weight * scores[here[i], 0]
            mass += labels[i, 0]
            for k in range(n_labels):
                labels[i, k + 1] = row_weight * scores[here[i], k + 1]
                cuts[0, k] += labels[i, k + 1]
        for i in range(here.shape[0]):
            for k in range(n_labels):
                labels[i, k + 1] -= labels[i, 0] * (cuts[0, k] / mass)
    return mass


@called
def weight_of(weight, row):
    """The sample weight of a row, 1 if rows have none."""
    if weight is None:
        return 1.0
    return weight[row]
