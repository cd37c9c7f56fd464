"""Standard errors of effects, by the bootstrap of little bags.

Tree t moves an estimate at x by about psi_t, a sum of means over the leaf of x; each is the mean of
a column of a table of the training rows. For an effect tau = N / D, a ratio of such means,

    psi_t = (mean of (W - e) (Y* - m) - tau mean of (W - e)^2) / D.

The variance of the bags' means of psi, less what trees within a bag add by chance, is that of the
estimate (see :mod:`cqrf._survival.little_bags`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._effects.response import Floats
from cqrf._runtime.compiling import kernel
from cqrf._survival.little_bags import BagVariances


class Moves(NamedTuple):
    """What psi is made of, for each query and output: columns of means over leaves, times factors.

    ``means`` is (n_leaves, n_columns) float64; ``columns``, int64, and ``factors``, float64, are
    (n_queries, n_outputs, n_terms).
    """

    means: Floats
    columns: NDArray[np.int64]
    factors: Floats


def bag_variances(numbers: NDArray[np.int64], moves: Moves, bag_size: int) -> BagVariances:
    """Variance of the bags' means of psi, and of the noise in them; (n_queries, n_outputs).

    numbers : (n_queries, n_trees), leaf of each query in each tree
    """
    n_queries, n_outputs, _ = moves.columns.shape
    between, within = np.zeros((2, n_queries, n_outputs))
    work = np.empty(numbers.shape[1])
    _bag_variances(numbers, moves, bag_size, work, between, within)
    return BagVariances(between, within)


@kernel
def _bag_variances(numbers, moves, bag_size, psi, between, within):
    """Add to the variances; ``moves`` is a Moves, ``psi`` a work array with an entry per tree."""
    n_queries, n_outputs, n_terms = moves.columns.shape
    n_trees = numbers.shape[1]
    n_bags = n_trees // bag_size
    for q in range(n_queries):
        for k in range(n_outputs):
            center = 0.0
            for t in range(n_trees):
                of_leaf = moves.means[numbers[q, t]]
                psi[t] = 0.0
                for j in range(n_terms):
                    psi[t] += moves.factors[q, k, j] * of_leaf[moves.columns[q, k, j]]
                center += psi[t] / n_trees
            for bag in range(n_bags):
                mean = 0.0
                for t in range(bag * bag_size, (bag + 1) * bag_size):
                    mean += (psi[t] - center) / bag_size
                between[q, k] += mean * mean / n_bags
                for t in range(bag * bag_size, (bag + 1) * bag_size):
                    distance = psi[t] - center - mean
                    within[q, k] += distance * distance / (n_bags * bag_size * (bag_size - 1))
