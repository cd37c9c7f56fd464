"""Weights: which training rows are neighbours of a query, and how much each counts.

    w_i(x) = mean over trees of 1(i in the leaf of x) s_i / (sum of s over that leaf)

with sample weights s (1 unless given). A row of weights is sparse and sums to 1; its columns are
ranks, so it is in time order. Everything before this module makes weights, everything after it only
reads them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from cqrf._forest.spec import Forest
from cqrf._forest.traversal import Leaves, find_leaves
from cqrf._runtime.compiling import ONE, ZERO, called, inlined, kernel
from cqrf._runtime.intrinsics import count_bits, prefetch, trailing_zeros

# Queries are read in chunks whose weights hold about this many numbers (24 MB), so that memory does
# not grow with the number of queries.
CHUNK_WEIGHTS = 2_000_000
# Nor does the number of leaves of a chunk, one for each query and tree (24 MB).
CHUNK_LEAVES = 2_000_000
# Queries from which the number of weights of a query is estimated.
PROBES = 16
# Leaves lie far apart in memory: they are prefetched so many before they are read.
LEAVES_AHEAD = 16
# With more training rows, a dense accumulator (one number per row, 1 MB) would miss the cache.
MANY_ROWS = 131_072
# The bit of a rank is in word ``rank >> WORD``, there at ``rank & WITHIN``.
WORD, WITHIN = np.uint64(6), np.uint64(63)
# Columns of the marks of a word: its bits, and the place of the first of its rows.
BITS, PLACE = 0, 1


class Weights(NamedTuple):
    """Rows of weights in compressed form: row q is ``offsets[q] : offsets[q + 1]``.

    ``offsets`` is (n_queries + 1,) int64, ``ranks`` int32 ascending within a row, ``values``
    float64.
    """

    offsets: NDArray[np.int64]
    ranks: NDArray[np.int32]
    values: NDArray[np.float64]


class LeafRows(NamedTuple):
    """Leaves of queries, flattened, as many for each query as there are trees; and their rows."""

    starts: NDArray[np.int64]
    sizes: NDArray[np.int32]
    rows: NDArray[np.int32]


class DenseWork(NamedTuple):
    """Work arrays, zero between queries: one number per rank, and two levels of bits of those set.

    ``total`` is (n_train,) float64. ``bits`` has a bit for each rank, ``words`` one for each
    word of ``bits``.
    """

    total: NDArray[np.float64]
    bits: NDArray[np.uint64]
    words: NDArray[np.uint64]


class SparseWork(NamedTuple):
    """Work arrays, zero between queries: ``marks`` (n_words, 2) holds BITS and PLACE of a word."""

    marks: NDArray[np.uint64]
    words: NDArray[np.uint64]


def forest_weights(
    leaves: Leaves,
    leaf_rows: NDArray[np.int32],
    n_train: int,
    sample_weight: NDArray[np.float32] | None = None,
) -> Weights:
    """Weights of the training rows for each query, from the leaves that it reaches.

    A query without leaves (a training row that every tree has drawn) has an empty row.
    """
    n_queries = len(leaves.sizes)
    capacity = np.minimum(leaves.sizes.sum(axis=1, dtype=np.int64), n_train).sum()
    weights = Weights(
        np.zeros(n_queries + 1, np.int64), np.empty(capacity, np.int32), np.empty(capacity)
    )
    n_words = (n_train >> 6) + 1
    words = np.zeros((n_words >> 6) + 1, np.uint64)
    flat = LeafRows(leaves.starts.ravel(), leaves.sizes.ravel(), leaf_rows)
    if n_train <= MANY_ROWS:
        dense = DenseWork(np.zeros(n_train), np.zeros(n_words, np.uint64), words)
        n = add_dense(flat, sample_weight, dense, weights)
    else:
        sparse = SparseWork(np.zeros((n_words, 2), np.uint64), words)
        n = add_sparse(flat, sample_weight, sparse, weights)
    return Weights(weights.offsets, weights.ranks[:n], weights.values[:n])


def chunk_queries(
    forest: Forest,
    queries: NDArray[np.uint8],
    n_train: int,
    in_bag: NDArray[np.uint8] | None = None,
    n_jobs: int | None = None,
) -> list[slice]:
    """Consecutive chunks of queries whose weights are small, an even number for each thread."""
    n_queries = len(queries)
    neighbors = n_train
    if n_queries * n_train > CHUNK_WEIGHTS:
        some = np.arange(0, n_queries, max(1, n_queries // PROBES))
        leaves = find_leaves(forest, queries[some], None if in_bag is None else in_bag[some])
        neighbors = min(n_train, int(leaves.sizes.sum(axis=1, dtype=np.int64).max()))
    threads = effective_n_jobs(n_jobs)
    rounds = max(
        -(-n_queries * neighbors // (CHUNK_WEIGHTS * threads)),
        -(-n_queries * len(forest.roots) // (CHUNK_LEAVES * threads)),
    )
    size = max(1, -(-n_queries // (threads * max(1, rounds))))
    return [slice(start, start + size) for start in range(0, n_queries, size)]


@kernel
def add_dense(leaves, sample_weight, work, weights):
    """Write the weights of each query from its leaves; return how many there are.

    ``leaves`` is a LeafRows, ``work`` a DenseWork, ``weights`` a Weights that is written. Reading
    the set bits visits only the rows touched, in time order.
    """
    starts, sizes = leaves.starts, leaves.sizes
    all_rows = leaves.rows
    bits, words, total = work.bits, work.words, work.total
    offsets, ranks, values = weights.offsets, weights.ranks, weights.values
    n_queries, at = offsets.shape[0] - 1, ZERO
    n_trees = starts.shape[0] // max(1, n_queries)
    for q in range(n_queries):
        n_used = 0
        for leaf in range(q * n_trees, (q + 1) * n_trees):
            if leaf + LEAVES_AHEAD < starts.shape[0]:
                prefetch(all_rows, starts[leaf + LEAVES_AHEAD])
            if sizes[leaf] > 0:
                n_used += 1
                rows = all_rows[starts[leaf] : starts[leaf] + sizes[leaf]]
                add_leaf(rows, sample_weight, bits, words, total)
        per_tree = 1.0 / max(1, n_used)
        for first in range(words.shape[0]):
            its_words = words[first]
            words[first] = ZERO
            while its_words != ZERO:
                at_word = np.uint64(first << 6) + trailing_zeros(its_words)
                its_words &= its_words - ONE
                word = bits[at_word]
                bits[at_word] = ZERO
                while word != ZERO:
                    rank = (at_word << WORD) + trailing_zeros(word)
                    word &= word - ONE
                    ranks[at] = rank
                    values[at] = total[rank] * per_tree
                    total[rank] = 0.0
                    at += ONE
        offsets[q + 1] = at
    return at


@kernel
def add_sparse(leaves, sample_weight, work, weights):
    """As :func:`add_dense`, for leaves that touch few of many rows; ``work`` is a SparseWork.

    Reads the leaves twice, to set bits and to add. In between the bits are counted: the number of
    bits before a word gives the place of its rows among those of the query.
    """
    starts, sizes, all_rows = leaves.starts, leaves.sizes, leaves.rows
    marks, words = work.marks, work.words
    offsets, ranks, values = weights.offsets, weights.ranks, weights.values
    n_queries, at = offsets.shape[0] - 1, ZERO
    n_trees = starts.shape[0] // max(1, n_queries)
    for q in range(n_queries):
        for leaf in range(q * n_trees, (q + 1) * n_trees):
            if leaf + LEAVES_AHEAD < starts.shape[0]:
                prefetch(all_rows, starts[leaf + LEAVES_AHEAD])
            mark_leaf(all_rows[starts[leaf] : starts[leaf] + sizes[leaf]], marks, words)
        at = number_marks(marks, words, ranks, values, at)
        n_used = 0
        for leaf in range(q * n_trees, (q + 1) * n_trees):
            if sizes[leaf] > 0:
                n_used += 1
                rows = all_rows[starts[leaf] : starts[leaf] + sizes[leaf]]
                add_marked_leaf(rows, sample_weight, marks, values)
        per_tree = 1.0 / max(1, n_used)
        for place in range(offsets[q], at):
            values[place] *= per_tree
            marks[np.uint64(ranks[place]) >> WORD, BITS] = ZERO
        offsets[q + 1] = at
    return at


@inlined
def number_marks(marks, words, ranks, values, at):
    """Write the ranks of the marked rows, ascending, from place ``at`` on; return its end."""
    for first in range(words.shape[0]):
        its_words = words[first]
        words[first] = ZERO
        while its_words != ZERO:
            at_word = np.uint64(first << 6) + trailing_zeros(its_words)
            its_words &= its_words - ONE
            word = marks[at_word, BITS]
            marks[at_word, PLACE] = at
            while word != ZERO:
                ranks[at] = (at_word << WORD) + trailing_zeros(word)
                word &= word - ONE
                values[at] = 0.0
                at += ONE
    return at


@called
def add_leaf(rows, sample_weight, bits, words, total):
    """Spread weight 1 over the rows of a leaf."""
    share = 1.0 / sum_weights(rows, sample_weight)
    for i in range(rows.shape[0]):
        rank = np.uint64(rows[i])
        if sample_weight is None:
            total[rank] += share
        else:
            total[rank] += share * sample_weight[rank]
        word = rank >> WORD
        if bits[word] == ZERO:
            words[word >> WORD] |= ONE << (word & WITHIN)
        bits[word] |= ONE << (rank & WITHIN)


@called
def mark_leaf(rows, marks, words):
    """Set the bits of the rows of a leaf."""
    for i in range(rows.shape[0]):
        rank = np.uint64(rows[i])
        word = rank >> WORD
        words[word >> WORD] |= ONE << (word & WITHIN)
        marks[word, BITS] |= ONE << (rank & WITHIN)


@called
def add_marked_leaf(rows, sample_weight, marks, values):
    """Spread weight 1 over the places of the rows of a leaf."""
    share = 1.0 / sum_weights(rows, sample_weight)
    for i in range(rows.shape[0]):
        rank = np.uint64(rows[i])
        word = rank >> WORD
        before = (ONE << (rank & WITHIN)) - ONE
        place = marks[word, PLACE] + count_bits(marks[word, BITS] & before)
        if sample_weight is None:
            values[place] += share
        else:
            values[place] += share * sample_weight[rank]


@called
def sum_weights(rows, sample_weight):
    """Sum of the sample weights of some rows."""
    mass = 1.0 * rows.shape[0]
    if sample_weight is not None:
        mass = 0.0
        for i in range(rows.shape[0]):
            mass += sample_weight[rows[i]]
    return mass
