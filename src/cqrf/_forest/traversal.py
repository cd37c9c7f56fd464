"""Leaves: where the training rows lie that share a leaf with a query, in every tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.grower import LEAF, goes_left
from cqrf._forest.training import Forest, none_unless_any
from cqrf._runtime.compiling import ONE, ZERO, kernel

# A step down a tree waits for a node from memory. So many queries and trees take each step
# together, and wait together.
ABREAST = 1024


class Leaves(NamedTuple):
    """The rows of a leaf are ``leaf_rows[start : start + size]``; shape (n_queries, n_trees)."""

    starts: NDArray[np.int64]
    sizes: NDArray[np.int32]


def find_leaves(
    forest: Forest, queries: NDArray[np.uint8], in_bag: NDArray[np.uint8] | None = None
) -> Leaves:
    """The leaf that each query, a row of codes, reaches in each tree.

    ``in_bag`` has bits of shape (n_queries, trees / 8): where one is set, the leaf has no rows.
    """
    shape = len(queries), len(forest.roots)
    leaves = Leaves(np.zeros(shape, np.int64), np.zeros(shape, np.int32))
    _walk_down(
        queries,
        none_unless_any(forest.categorical),
        forest.roots,
        forest.feature,
        forest.code,
        forest.missing_left,
        forest.left,
        forest.subsets,
        forest.leaf_offsets,
        in_bag,
        *np.empty((3, ABREAST), np.uint64),
        *leaves,
    )
    return leaves


@kernel
def _walk_down(
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
    query,
    tree,
    at_node,
    starts,
    sizes,
):
    n_queries = queries.shape[0]
    n_pairs = roots.shape[0] * n_queries
    # All queries go through one tree before the next: its nodes stay in the cache.
    for first in range(0, n_pairs, ABREAST):
        n_underway = ZERO
        for pair in range(first, min(first + ABREAST, n_pairs)):
            t = pair // n_queries
            q = pair - t * n_queries
            if in_bag is None or not (in_bag[q, t >> 3] >> (t & 7)) & 1:
                query[n_underway], tree[n_underway], at_node[n_underway] = q, t, roots[t]
                n_underway += ONE
        while n_underway > ZERO:
            n_further = ZERO
            for i in range(n_underway):
                q, t, node = query[i], tree[i], at_node[i]
                split = feature[node]
                if split == LEAF:
                    leaf = left[node]
                    starts[q, t] = leaf_offsets[leaf]
                    sizes[q, t] = leaf_offsets[leaf + 1] - leaf_offsets[leaf]
                    continue
                column = np.uint64(split)
                goes_right = not goes_left(
                    queries[q, column], column, code[node], missing_left[node], categorical, subsets
                )
                # A sum, not a branch: where a row goes cannot be guessed.
                query[n_further], tree[n_further], at_node[n_further] = (
                    q,
                    t,
                    left[node] + goes_right,
                )
                n_further += ONE
            n_underway = n_further
