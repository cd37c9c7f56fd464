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
from cqrf._forest.traversal import Leaves
from cqrf._runtime.compiling import allocating_kernel, called
from cqrf._survival.little_bags import BagVariances


class Moves(NamedTuple):
    """What psi is made of, for each query and output: columns of a table, times factors.

    ``table`` is (n_train, n_columns) float64; ``columns``, int64, and ``factors``, float64, are
    (n_queries, n_outputs, n_terms).
    """

    table: Floats
    columns: NDArray[np.int64]
    factors: Floats


def bag_variances(
    leaves: Leaves,
    leaf_rows: NDArray[np.int32],
    sample_weight: NDArray[np.float32] | None,
    moves: Moves,
    bag_size: int,
) -> BagVariances:
    """Variance of the bags' means of psi, and of the noise in them; (n_queries, n_outputs)."""
    n_queries, n_outputs, _ = moves.columns.shape
    between, within = np.zeros((2, n_queries, n_outputs))
    _bag_variances(leaves, leaf_rows, sample_weight, moves, bag_size, between, within)
    return BagVariances(between, within)


@allocating_kernel
def _bag_variances(leaves, leaf_rows, sample_weight, moves, bag_size, between, within):
    """Write the variances; ``leaves`` is a Leaves, ``moves`` a Moves."""
    starts, sizes = leaves.starts, leaves.sizes
    n_queries, n_outputs, n_terms = moves.columns.shape
    n_trees = starts.shape[1]
    n_bags = n_trees // bag_size
    psi = np.empty(n_trees)
    for q in range(n_queries):
        for k in range(n_outputs):
            center = 0.0
            for t in range(n_trees):
                rows = leaf_rows[starts[q, t] : starts[q, t] + sizes[q, t]]
                psi[t] = 0.0
                for j in range(n_terms):
                    column = moves.columns[q, k, j]
                    mean = mean_over_leaf(moves.table, column, rows, sample_weight)
                    psi[t] += moves.factors[q, k, j] * mean
                center += psi[t] / n_trees
            for bag in range(n_bags):
                mean = 0.0
                for t in range(bag * bag_size, (bag + 1) * bag_size):
                    mean += (psi[t] - center) / bag_size
                between[q, k] += mean * mean / n_bags
                for t in range(bag * bag_size, (bag + 1) * bag_size):
                    distance = psi[t] - center - mean
                    within[q, k] += distance * distance / (n_bags * bag_size * (bag_size - 1))


@called
def mean_over_leaf(table, column, rows, sample_weight):
    """Weighted mean of a column over the rows of a leaf."""
    total, mass = 0.0, 0.0
    for i in range(rows.shape[0]):
        weight = 1.0 if sample_weight is None else np.float64(sample_weight[rows[i]])
        total += weight * table[rows[i], column]
        mass += weight
    return total / mass
