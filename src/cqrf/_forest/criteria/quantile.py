"""Quantile classes: the relabelling of generalized random forests, on the observed time.

The rows between two quantiles of Y in the node form a class. With one label for each class the gain
would be the drop in the classes' Gini impurity; the labels here are one fewer and give the same
gain (:func:`class_labels`). The paper's *crf-generalized* grows its trees by this criterion.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.criteria.at_risk import weigh_rows
from cqrf._input.risk_sets import TOLERANCE
from cqrf._runtime.compiling import called, inlined

DEFAULT_LEVELS = (0.1, 0.5, 0.9)  # those of R's grf
MEAN = 1  # row of ``work.cuts``: the mean of each label over the node


class Quantile(NamedTuple):
    """Parameters: the levels, the labels of each class, and how they combine to its number."""

    n_labels: int
    levels: NDArray[np.float64]
    of_class: NDArray[np.float64]
    direction: NDArray[np.float64]

    @classmethod
    def from_levels(cls, levels: tuple[float, ...]) -> Quantile:
        """Classes between these levels."""
        of_class, direction = class_labels(len(levels))
        return cls(len(levels), np.array(levels), of_class, direction)

    def scaled_to(self, largest_time: float) -> Quantile:
        """Only the order of times matters."""
        return self


def class_labels(n_levels: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Labels of each class, (n_levels + 1, n_levels), and the factors that give its number.

    With D_c the excess of class c on one side, the excess of the last class is minus the sum of
    the others, so that sum_c D_c^2 = D' (1 + J) D over the others, J all ones. The rows of a
    Cholesky factor of 1 + J, with zeros for the last class, have sums of just this length.
    """
    factor = np.linalg.cholesky(np.eye(n_levels) + 1.0)
    direction = np.linalg.solve(factor, np.arange(n_levels) - float(n_levels))
    return np.vstack([factor, np.zeros(n_levels)]), direction


@called
def label_quantile(criterion, rows, here, work):
    """Write the labels of the classes between quantiles of time; no split of a single class."""
    time, labels = rows.time, work.labels
    ends, cuts = work.ends, work.cuts
    of_class, own_direction, direction = criterion.of_class, criterion.direction, work.direction
    n, n_levels = here.shape[0], of_class.shape[1]
    if time[here[0]] == time[here[n - 1]]:
        return False, 0.0
    mass = weigh_rows(rows.weight, here, labels, work.at_risk)
    direction[0] = 0.0
    for k in range(n_levels):
        direction[k + 1] = own_direction[k]
    cut_times(criterion, time, here, mass, work)
    start = 0
    for c in range(n_levels + 1):
        for i in range(start, ends[c]):
            for k in range(n_levels):
                labels[i, k + 1] = labels[i, 0] * (of_class[c, k] - cuts[MEAN, k])
        start = ends[c]
    return ends[0] < n, mass


@inlined
def cut_times(criterion, time, here, mass, work):
    """Write where each class ends to ``work.ends``, and the mean labels to ``work.cuts[MEAN]``.

    Tied times are in one class.
    """
    labels, ends, cuts = work.labels, work.ends, work.cuts
    levels, of_class = criterion.levels, criterion.of_class
    n, n_levels = here.shape[0], of_class.shape[1]
    for k in range(n_levels):
        cuts[MEAN, k] = 0.0
    below, i = 0.0, 0
    for c in range(n_levels + 1):
        before = below
        if c == n_levels:
            i, below = n, mass
        else:
            while below < levels[c] * mass * (1.0 - TOLERANCE) and i < n:
                below += labels[i, 0]
                i += 1
            while 0 < i < n and time[here[i]] == time[here[i - 1]]:
                below += labels[i, 0]
                i += 1
        ends[c] = i
        for k in range(n_levels):
            cuts[MEAN, k] += of_class[c, k] * (below - before) / mass
