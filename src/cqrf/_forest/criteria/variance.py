"""Variance: the label is Y minus its mean in the node, as in Breiman's regression forests.

The paper's *crf-quantile* grows its trees by it, on the observed time as if nothing were censored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cqrf._runtime.compiling import called


class Variance(NamedTuple):
    """Parameters: times are divided by ``scale``, so that their squares are finite."""

    n_labels: int = 1
    scale: float = 1.0

    @classmethod
    def from_levels(cls, levels: tuple[float, ...]) -> Variance:
        """It uses no levels."""
        return cls(n_labels=1)

    def scaled_to(self, largest_time: float) -> Variance:
        """Divide by a power of two close to the largest time: exact, and the same splits."""
        if largest_time <= 0:
            return self._replace(scale=1.0)
        return self._replace(scale=float(np.ldexp(1.0, int(np.frexp(largest_time)[1]) - 1)))


@called
def label_variance(criterion, rows, here, work):
    """Write the distance of each time from their mean; see :mod:`cqrf._forest.criteria`."""
    time, direction = rows.time, work.direction
    if time[here[0]] == time[here[here.shape[0] - 1]]:
        return False, 0.0
    direction[0], direction[1] = 0.0, 1.0
    return True, label_by_mean(time, rows.weight, here, criterion.scale, work.labels)


@called
def label_by_mean(time, weight, here, scale, labels):
    """Write weight and weight * (time - mean) of each row; return the total weight."""
    mass, total = 0.0, 0.0
    for i in range(here.shape[0]):
        labels[i, 0], labels[i, 1] = 1.0, time[here[i]] / scale
        if weight is not None:
            labels[i, 0] = weight[here[i]]
        mass += labels[i, 0]
        total += labels[i, 0] * labels[i, 1]
    mean = total / mass
    for i in range(here.shape[0]):
        labels[i, 1] = labels[i, 0] * (labels[i, 1] - mean)
    return mass
