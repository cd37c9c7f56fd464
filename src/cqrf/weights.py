"""Weights: how much each training row says about a query.

    w_i(x) = mean over trees of 1(i in the leaf of x) s_i / (sum of s over that leaf)

with sample weights s (1 unless given). A row of weights is sparse and sums to 1; its
columns are ranks, so it is in time order. This is the seam of the library: everything
before makes weights, everything after only reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from cqrf.forest import Forest
from cqrf.growing.tree import LEAF, goes_left
from cqrf.kernel import called, inlined, kernel, prefetch, trailing_zeros
from cqrf.threads import in_threads

Result = TypeVar("Result")

# Queries are read in chunks whose weights hold about this many numbers (24 MB), so that
# memory does not grow with the number of queries.
CHUNK_WEIGHTS = 2_000_000
# Leaves lie far apart in memory: they are asked for this many trees before they are read.
TREES_AHEAD = 8


class Weights(NamedTuple):
    """Rows of weights in compressed form: row q is ``offsets[q] : offsets[q + 1]``."""

    offsets: NDArray[np.int64]
    ranks: NDArray[np.int32]
    values: NDArray[np.float64]


def forest_weights(
    forest: Forest,
    queries: NDArray[np.uint8],
    n_train: int,
    sample_weight: NDArray[np.float32] | None = None,
    in_bag: NDArray[np.uint8] | None = None,
) -> Weights:
    """Weights of the training rows for each query, codes of shape (n_queries, n_features).

    ``in_bag`` has bits of shape (n_queries, trees / 8): trees whose bit is set are left
    out for that query. A query that no tree is left for has an empty row.
    """
    n_queries, n_trees = len(queries), len(forest.roots)
    starts = np.zeros((n_queries, n_trees), np.int64)
    sizes = np.zeros((n_queries, n_trees), np.int32)
    find_leaves(
        queries,
        forest.categorical,
        forest.roots,
        forest.feature,
        forest.code,
        forest.missing_left,
        forest.left,
        forest.subsets,
        forest.leaf_offsets,
        in_bag,
        starts,
        sizes,
    )
    capacity = np.minimum(sizes.sum(axis=1, dtype=np.int64), n_train).sum()
    weights = Weights(
        np.zeros(n_queries + 1, np.int64), np.empty(capacity, np.int32), np.empty(capacity)
    )
    n = add_leaves(
        starts,
        sizes,
        forest.leaf_rows,
        sample_weight,
        np.zeros(n_train),
        np.zeros((n_train >> 6) + 1, np.uint64),
        np.zeros((n_train >> 12) + 1, np.uint64),
        *weights,
    )
    return Weights(weights.offsets, weights.ranks[:n], weights.values[:n])


def map_weights(
    read: Callable[[Weights], Result],
    forest: Forest,
    queries: NDArray[np.uint8],
    n_train: int,
    sample_weight: NDArray[np.float32] | None = None,
    in_bag: NDArray[np.uint8] | None = None,
    n_jobs: int | None = None,
) -> list[Result]:
    """Make the weights of all queries chunk by chunk, in threads, and ``read`` each chunk."""
    n_queries, n_trees = len(queries), len(forest.roots)
    n_leaves = max(1, len(forest.leaf_offsets) - 1)
    neighbors = min(n_train, n_trees * (1 + len(forest.leaf_rows) // n_leaves))
    threads = effective_n_jobs(n_jobs)
    rounds = -(-n_queries * neighbors // (CHUNK_WEIGHTS * threads))
    chunk = max(1, -(-n_queries // (threads * max(1, rounds))))

    def task(start: int) -> Result:
        rows = slice(start, start + chunk)
        bag = None if in_bag is None else in_bag[rows]
        return read(forest_weights(forest, queries[rows], n_train, sample_weight, bag))

    return list(in_threads(task, [(start,) for start in range(0, n_queries, chunk)], n_jobs))


@kernel
def find_leaves(
    queries,
    categorical,
    roots,
    feature,
    code,
    missing_left,
    left,
    subsets,
    leaf_offsets,
    in_bag,
    starts,
    sizes,
):
    """Write where the rows of the leaf of each query in each tree start, and how many they are."""
    # All queries go through one tree before the next: its nodes stay in the cache.
    for t in range(roots.shape[0]):
        for q in range(queries.shape[0]):
            if in_bag is not None and (in_bag[q, t >> 3] >> (t & 7)) & 1:
                continue
            leaf = find_leaf(
                queries[q], roots[t], categorical, feature, code, missing_left, left, subsets
            )
            starts[q, t] = leaf_offsets[leaf]
            sizes[q, t] = leaf_offsets[leaf + 1] - leaf_offsets[leaf]


@kernel
def add_leaves(
    starts,
    sizes,
    leaf_rows,
    sample_weight,
    total,
    touched_bits,
    touched_words,
    offsets,
    ranks,
    values,
):
    """Write the weights of each query from its leaves; return how many there are.

    ``total`` (a number for each rank) and the bits touched are scratch that is zero between
    queries: one bit per rank, and one per word of these. Walking the set bits visits only the
    rows touched, in time order, however many there are.
    """
    n_trees = starts.shape[1]
    at = 0
    for q in range(starts.shape[0]):
        n_used = 0
        for t in range(n_trees):
            if t + TREES_AHEAD < n_trees:
                prefetch(leaf_rows, starts[q, t + TREES_AHEAD])
            if sizes[q, t] > 0:
                n_used += 1
                rows = leaf_rows[starts[q, t] : starts[q, t] + sizes[q, t]]
                add_leaf(rows, sample_weight, total, touched_bits, touched_words)
        per_tree = 1.0 / max(1, n_used)
        for first in range(touched_words.shape[0]):
            words = touched_words[first]
            touched_words[first] = np.uint64(0)
            while words != np.uint64(0):
                at_word = (first << 6) + trailing_zeros(words)
                words &= words - np.uint64(1)
                word = touched_bits[at_word]
                touched_bits[at_word] = np.uint64(0)
                while word != np.uint64(0):
                    rank = (at_word << 6) + trailing_zeros(word)
                    word &= word - np.uint64(1)
                    ranks[at] = rank
                    values[at] = total[rank] * per_tree
                    total[rank] = 0.0
                    at += 1
        offsets[q + 1] = at
    return at


@inlined
def find_leaf(query, root, categorical, feature, code, missing_left, left, subsets):
    """Number of the leaf that a query reaches in the tree that starts at ``root``."""
    node = root
    split = feature[node]
    while split != LEAF:
        goes_right = not goes_left(
            query[split], split, code[node], missing_left[node], categorical, subsets
        )
        # A sum, not a branch: where a row goes cannot be guessed.
        node = left[node] + goes_right
        split = feature[node]
    return left[node]


@called
def add_leaf(rows, sample_weight, total, touched_bits, touched_words):
    """Spread weight 1 over the rows of a leaf."""
    mass = 1.0 * rows.shape[0]
    if sample_weight is not None:
        mass = 0.0
        for i in range(rows.shape[0]):
            mass += sample_weight[rows[i]]
    share = 1.0 / mass
    for i in range(rows.shape[0]):
        # An unsigned index spares the compiler the check for one that counts from the end.
        rank = np.uint64(rows[i])
        if sample_weight is None:
            total[rank] += share
        else:
            total[rank] += share * sample_weight[rank]
        word = rank >> np.uint64(6)
        if touched_bits[word] == np.uint64(0):
            touched_words[word >> np.uint64(6)] |= np.uint64(1) << (word & np.uint64(63))
        touched_bits[word] |= np.uint64(1) << (rank & np.uint64(63))
