"""Means over leaves: what the forest's weights average, without making the weights.

The weights of a query are the mean over trees of equal weights on the rows of its leaf. So the
weighted mean of a column is the mean over trees of the column's mean in the leaf. The means of all
leaves are computed once, and a query looks them up. For few queries only their leaves are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cqrf._effects.response import Floats
from cqrf._forest.spec import Forest
from cqrf._forest.traversal import Leaves
from cqrf._model.fitted import Model
from cqrf._model.queries import Queries
from cqrf._readers.reader import ArrayReader, Chunk, read_one
from cqrf._runtime.compiling import kernel
from cqrf._runtime.threads import thread_map

LEFT_OUT = -1  # number of the leaf of a tree that is left out
LEAVES_PER_TASK = 4096


def average(model: Model, queries: Queries, table: Floats, n_jobs: int | None) -> Floats:
    """Means of columns of a table of the training rows with the weights of each query.

    table : (n_train, n_columns), by rank. Returns (n_queries, n_columns); NaN for a query without
    trees.
    """
    means = compute_leaf_means(model, table, n_jobs, find_wanted(model, queries, n_jobs))
    return read_one(model, queries, LeafAverages(means), n_jobs)


def find_wanted(model: Model, queries: Queries, n_jobs: int | None) -> NDArray[np.uint8] | None:
    """1 for each leaf that some query is in, (n_leaves,); None if these may be nearly all."""
    n_leaves = len(model.forest.leaf_offsets) - 1
    if len(queries.codes) * len(model.forest.roots) >= n_leaves:
        return None
    wanted = np.zeros(n_leaves + 1, np.uint8)  # the last entry is of trees that are left out
    wanted[read_one(model, queries, LeafNumbers(), n_jobs)] = 1
    return wanted[:-1]


def compute_leaf_means(
    model: Model, table: Floats, n_jobs: int | None, wanted: NDArray[np.uint8] | None = None
) -> Floats:
    """Mean of each column of a table over the rows of every leaf, (n_leaves, n_columns).

    ``wanted`` is 1 for leaves whose means are needed; others are left 0.
    """
    forest, table = model.forest, np.ascontiguousarray(table, dtype=np.float64)
    n_leaves = len(forest.leaf_offsets) - 1
    if wanted is None:
        wanted = np.ones(n_leaves, np.uint8)
    means = np.zeros((n_leaves, table.shape[1]))
    tasks = [
        (
            forest.leaf_offsets[first : first + LEAVES_PER_TASK + 1],
            forest.leaf_rows,
            model.rows.weight,
            table,
            wanted[first : first + LEAVES_PER_TASK],
            means[first : first + LEAVES_PER_TASK],
        )
        for first in range(0, n_leaves, LEAVES_PER_TASK)
    ]
    list(thread_map(_write_leaf_means, tasks, n_jobs))
    return means


def number_leaves(forest: Forest, leaves: Leaves) -> NDArray[np.int64]:
    """Number of the leaf of each query in each tree, (n_queries, n_trees)."""
    numbers = np.empty(leaves.sizes.shape, np.int64)
    _number_leaves(forest.leaf_offsets, leaves.starts, leaves.sizes, numbers)
    return numbers


class LeafNumbers(ArrayReader):
    """Numbers of the leaves of each query."""

    def read(self, chunk: Chunk) -> Any:
        """Numbers of shape (n_queries, n_trees)."""
        return number_leaves(chunk.model.forest, chunk.leaves)


@dataclass(frozen=True, eq=False)
class LeafAverages(ArrayReader):
    """Averages over trees of the means in the leaves of a query."""

    means: Floats

    def read(self, chunk: Chunk) -> Floats:
        """Averages of shape (n_queries, n_columns)."""
        averages = np.zeros((chunk.n_queries, self.means.shape[1]))
        _add_leaves(number_leaves(chunk.model.forest, chunk.leaves), self.means, averages)
        return averages


@kernel
def _write_leaf_means(offsets, leaf_rows, sample_weight, table, wanted, means):
    """Write the mean of each column over the rows of the wanted ones of some leaves.

    offsets : (n_leaves + 1,) int64 into leaf_rows; sample_weight : float32 by rank, or None
    wanted : (n_leaves,) uint8
    table : (n_train, n_columns) float64; means : (n_leaves, n_columns) float64, 0 before
    """
    for leaf in range(means.shape[0]):
        if wanted[leaf] == 0:
            continue
        of_leaf, mass = means[leaf], 0.0
        for i in range(offsets[leaf], offsets[leaf + 1]):
            row = leaf_rows[i]
            weight = 1.0
            if sample_weight is not None:
                weight = np.float64(sample_weight[row])
            of_row = table[row]
            for k in range(of_leaf.shape[0]):
                of_leaf[k] += weight * of_row[k]
            mass += weight
        for k in range(of_leaf.shape[0]):
            of_leaf[k] /= mass


@kernel
def _number_leaves(offsets, starts, sizes, numbers):
    """Write the number of the leaf that begins at each of ``starts``; LEFT_OUT if it is empty.

    offsets : (n_leaves + 1,) int64; starts, sizes : int64 and int32, fields of Leaves
    numbers : (n_queries, n_trees) int64, written
    """
    for q in range(starts.shape[0]):
        for t in range(starts.shape[1]):
            if sizes[q, t] == 0:
                numbers[q, t] = LEFT_OUT
                continue
            low, high = 0, offsets.shape[0] - 1
            while low < high:
                middle = (low + high) // 2
                if offsets[middle] < starts[q, t]:
                    low = middle + 1
                else:
                    high = middle
            numbers[q, t] = low


@kernel
def _add_leaves(numbers, means, averages):
    """Write the average over trees; NaN for a query without trees.

    numbers : (n_queries, n_trees) int64; means : (n_leaves, n_columns); averages : 0 before
    """
    n_columns = means.shape[1]
    for q in range(numbers.shape[0]):
        n_used, of_query = 0, averages[q]
        for t in range(numbers.shape[1]):
            if numbers[q, t] == LEFT_OUT:
                continue
            n_used += 1
            of_leaf = means[numbers[q, t]]
            for k in range(n_columns):
                of_query[k] += of_leaf[k]
        for k in range(n_columns):
            of_query[k] = of_query[k] / n_used if n_used > 0 else np.nan
