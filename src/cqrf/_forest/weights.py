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

from cqrf._forest.training import Forest
from cqrf._forest.traversal import find_leaves
from cqrf._runtime.compiling import ONE, ZERO, called, kernel
from cqrf._runtime.intrinsics import count_bits, prefetch, trailing_zeros
from cqrf._runtime.threads import thread_map

Result = TypeVar("Result")

# Queries are read in chunks whose weights hold about this many numbers (24 MB), so that
# memory does not grow with the number of queries.
CHUNK_WEIGHTS = 2_000_000
# Queries by which it is told how many weights each of them will have.
PROBES = 16
# Leaves lie far apart in memory: they are asked for so many before they are read.
LEAVES_AHEAD = 16
# Of more training rows, a number for each (1 MB) does not stay in the cache.
MANY_ROWS = 131_072
# The bit of a rank is in word ``rank >> WORD``, there at ``rank & WITHIN``.
WORD, WITHIN = np.uint64(6), np.uint64(63)
# Columns of the marks of a word: its bits, and the place of the first of its rows.
BITS, PLACE = 0, 1


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
    leaves = find_leaves(forest, queries, in_bag)
    capacity = np.minimum(leaves.sizes.sum(axis=1, dtype=np.int64), n_train).sum()
    weights = Weights(
        np.zeros(len(queries) + 1, np.int64), np.empty(capacity, np.int32), np.empty(capacity)
    )
    n_words = (n_train >> 6) + 1
    words = np.zeros((n_words >> 6) + 1, np.uint64)
    given = leaves.starts.ravel(), leaves.sizes.ravel(), forest.leaf_rows, sample_weight
    if n_train <= MANY_ROWS:
        bits, total = np.zeros(n_words, np.uint64), np.zeros(n_train)
        n = _add_leaves(*given, bits, words, total, *weights)
    else:
        n = _add_sparse_leaves(*given, np.zeros((n_words, 2), np.uint64), words, *weights)
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
    n_queries = len(queries)
    neighbors = n_train
    if n_queries * n_train > CHUNK_WEIGHTS:
        some = np.arange(0, n_queries, max(1, n_queries // PROBES))
        leaves = find_leaves(forest, queries[some], None if in_bag is None else in_bag[some])
        neighbors = min(n_train, int(leaves.sizes.sum(axis=1, dtype=np.int64).max()))
    threads = effective_n_jobs(n_jobs)
    rounds = -(-n_queries * neighbors // (CHUNK_WEIGHTS * threads))
    chunk = max(1, -(-n_queries // (threads * max(1, rounds))))

    def task(start: int) -> Result:
        rows = slice(start, start + chunk)
        bag = None if in_bag is None else in_bag[rows]
        return read(forest_weights(forest, queries[rows], n_train, sample_weight, bag))

    return list(thread_map(task, [(start,) for start in range(0, n_queries, chunk)], n_jobs))


@kernel
def _add_leaves(
    starts, sizes, leaf_rows, sample_weight, bits, words, total, offsets, ranks, values
):
    """Write the weights of each query from its leaves; return how many there are.

    Leaves stand one behind the other, as many for each query as there are trees. ``total`` (a
    number for each rank) and the bits (one for each rank touched, and one for each word of these)
    are scratch that is zero between queries. Walking the set bits visits only the rows touched, in
    time order, however many there are.
    """
    n_queries, at = offsets.shape[0] - 1, ZERO
    n_trees = starts.shape[0] // max(1, n_queries)
    for q in range(n_queries):
        n_used = 0
        for leaf in range(q * n_trees, (q + 1) * n_trees):
            if leaf + LEAVES_AHEAD < starts.shape[0]:
                prefetch(leaf_rows, starts[leaf + LEAVES_AHEAD])
            if sizes[leaf] > 0:
                n_used += 1
                rows = leaf_rows[starts[leaf] : starts[leaf] + sizes[leaf]]
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
def _add_sparse_leaves(
    starts, sizes, leaf_rows, sample_weight, marks, words, offsets, ranks, values
):
    """As :func:`_add_leaves`, for leaves that touch few of many rows.

    Goes through the leaves twice, to set bits and to add. In between the bits are counted: from
    the number of those before a word follows the place of a row among those of the query. A number
    for each rank would have to come from afar. ``marks`` has both, the bits of a word and the place
    of its first, side by side.
    """
    n_queries, at = offsets.shape[0] - 1, ZERO
    n_trees = starts.shape[0] // max(1, n_queries)
    for q in range(n_queries):
        for leaf in range(q * n_trees, (q + 1) * n_trees):
            if leaf + LEAVES_AHEAD < starts.shape[0]:
                prefetch(leaf_rows, starts[leaf + LEAVES_AHEAD])
            touch_leaf(leaf_rows[starts[leaf] : starts[leaf] + sizes[leaf]], marks, words)
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
        n_used = 0
        for leaf in range(q * n_trees, (q + 1) * n_trees):
            if sizes[leaf] > 0:
                n_used += 1
                rows = leaf_rows[starts[leaf] : starts[leaf] + sizes[leaf]]
                add_touched_leaf(rows, sample_weight, marks, values)
        per_tree = 1.0 / max(1, n_used)
        for place in range(offsets[q], at):
            values[place] *= per_tree
            marks[np.uint64(ranks[place]) >> WORD, BITS] = ZERO
        offsets[q + 1] = at
    return at


@called
def add_leaf(rows, sample_weight, bits, words, total):
    """Spread weight 1 over the rows of a leaf."""
    share = 1.0 / mass_of(rows, sample_weight)
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
def touch_leaf(rows, marks, words):
    """Set the bits of the rows of a leaf."""
    for i in range(rows.shape[0]):
        rank = np.uint64(rows[i])
        word = rank >> WORD
        words[word >> WORD] |= ONE << (word & WITHIN)
        marks[word, BITS] |= ONE << (rank & WITHIN)


@called
def add_touched_leaf(rows, sample_weight, marks, values):
    """Spread weight 1 over the places of the rows of a leaf."""
    share = 1.0 / mass_of(rows, sample_weight)
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
def mass_of(rows, sample_weight):
    """Sum of the sample weights of some rows."""
    mass = 1.0 * rows.shape[0]
    if sample_weight is not None:
        mass = 0.0
        for i in range(rows.shape[0]):
            mass += sample_weight[rows[i]]
    return mass
