"""Traversal: the leaf that each query reaches in every tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.grower import goes_left
from cqrf._forest.spec import LEAF, Forest
from cqrf._runtime.compiling import ONE, ZERO, kernel

# A step down a tree waits for a node from memory. So many pairs of a query and a tree take each
# step together, so that their loads overlap.
PAIRS_TOGETHER = 1024


class Leaves(NamedTuple):
    """Leaves of some queries, shape (n_queries, n_trees).

    The rows of a leaf are ``leaf_rows[start : start + size]`` of the forest. ``starts`` is int64,
    ``sizes`` int32 and 0 for trees that are left out.
    """

    starts: NDArray[np.int64]
    sizes: NDArray[np.int32]


class Pairs(NamedTuple):
    """Work arrays, (PAIRS_TOGETHER,) uint64: query, tree and current node of each pair."""

    query: NDArray[np.uint64]
    tree: NDArray[np.uint64]
    node: NDArray[np.uint64]


def find_leaves(
    forest: Forest, queries: NDArray[np.uint8], in_bag: NDArray[np.uint8] | None = None
) -> Leaves:
    """The leaf that each query, a row of codes, reaches in each tree.

    ``in_bag`` has bits of shape (n_queries, trees / 8): trees whose bit is set are left out.
    """
    shape = len(queries), len(forest.roots)
    leaves = Leaves(np.zeros(shape, np.int64), np.zeros(shape, np.int32))
    pairs = Pairs._make(np.empty((3, PAIRS_TOGETHER), np.uint64))
    _find_leaves(queries, forest.nodes, in_bag, pairs, leaves)
    return leaves


@kernel
def _find_leaves(queries, nodes, in_bag, pairs, leaves):
    """Write the leaf of each query in each tree that is not left out.

    queries : (n_queries, n_features) uint8; nodes : Nodes
    in_bag : (n_queries, n_trees / 8, rounded up) uint8, bits of trees left out, or None
    pairs : Pairs, work arrays; leaves : Leaves, 0 before, written
    """
    query, tree, at_node = pairs.query, pairs.tree, pairs.node
    roots, feature = nodes.roots, nodes.feature
    code, left = nodes.code, nodes.left
    missing_left, subsets, leaf_offsets = nodes.missing_left, nodes.subsets, nodes.leaf_offsets
    starts, sizes = leaves.starts, leaves.sizes
    n_queries = queries.shape[0]
    n_pairs = roots.shape[0] * n_queries
    # All queries pass one tree before the next: its nodes stay in the cache.
    for first in range(0, n_pairs, PAIRS_TOGETHER):
        n_underway = ZERO
        for pair in range(first, min(first + PAIRS_TOGETHER, n_pairs)):
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
                is_left = goes_left(
                    nodes.categorical,
                    queries[q, column],
                    np.int64(split),
                    np.int64(code[node]),
                    missing_left[node],
                    subsets,
                )
                # A sum, not a branch: a branch would be mispredicted.
                query[n_further], tree[n_further] = q, t
                at_node[n_further] = left[node] + (not is_left)
                n_further += ONE
            n_underway = n_further
