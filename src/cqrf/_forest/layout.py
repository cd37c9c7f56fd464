"""Layout: grown trees receive the rows of their leaves, and their nodes the final order.

Nodes of a tree are kept in level order. The i-th of its nodes that is split then has its children
at 1 + 2 i and 2 + 2 i, so that children need no pointers in files and messages. Subsets of
categories are numbered once, when all trees are joined.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.grower import (
    BEGIN,
    CODE,
    END,
    FEATURE,
    LEFT,
    MISSING_LEFT,
    Grown,
    SplitRule,
    partition,
)
from cqrf._forest.rows import Rows
from cqrf._forest.spec import LEAF, Forest, Subsamples, Trees
from cqrf._forest.workspace import Workspace
from cqrf._runtime.compiling import called, inlined, kernel


class Leaves(NamedTuple):
    """What :func:`assign_rows` writes: nodes that stay, and the rows of their leaves.

    Attributes
    ----------
    n_nodes : (n_trees,) int32
        Nodes that stay of each tree.
    listed : int32
        These in level order, as numbers among the nodes of all trees.
    subsets : (n_subsets, 4) uint64
        Subsets of the nodes in ``listed`` that split on a category, in this order.
    sizes, rows : int32
        Rows in each leaf, and their ranks.
    """

    n_nodes: NDArray[np.int32]
    listed: NDArray[np.int32]
    subsets: NDArray[np.uint64]
    sizes: NDArray[np.int32]
    rows: NDArray[np.int32]


def finish_trees(
    rows: Rows, honest: bool, samples: Subsamples, work: Workspace, grown: Grown
) -> Trees:
    """The trees that the grower wrote into its workspace, with their leaves filled."""
    n_trees, n_grown = len(samples.seeds), grown.first_node[-1]
    nodes = work.nodes[:n_grown]
    leaves = Leaves(
        n_nodes=np.empty(n_trees, np.int32),
        listed=np.empty(n_grown, np.int32),
        subsets=np.empty((grown.first_subset[-1], 4), np.uint64),
        sizes=np.empty((n_grown + n_trees) // 2, np.int32),
        rows=np.empty(samples.starts[-1], np.int32),
    )
    buffer = np.empty(np.diff(samples.starts).max(), np.uint32)
    table = TreeTable(nodes, work.subsets, grown.first_node, grown.first_subset)
    n_listed, n_subsets, n_leaves, n_rows = assign_rows(
        rows.codes, rows.categorical, honest, samples, table, leaves, buffer
    )
    listed = leaves.listed[:n_listed]
    return Trees(
        leaves.n_nodes,
        nodes[listed, FEATURE],
        nodes[listed, CODE],
        nodes[listed, MISSING_LEFT] != 0,
        leaves.subsets[:n_subsets],
        leaves.sizes[:n_leaves],
        leaves.rows[:n_rows],
    )


class TreeTable(NamedTuple):
    """Nodes and subsets of some trees as the grower writes them, and where those of each begin."""

    nodes: NDArray[np.int32]
    subsets: NDArray[np.uint64]
    first_node: NDArray[np.int64]
    first_subset: NDArray[np.int64]


@kernel
def assign_rows(codes, categorical, honest, samples, trees, leaves, buffer):
    """Fill the leaves of some trees, and list the nodes of each in level order.

    ``codes`` and ``categorical`` are fields of Rows; ``samples`` is a Subsamples, ``trees`` a
    TreeTable, ``leaves`` a Leaves. ``leaves`` is written, and the ranks of a tree are permuted. An
    honest tree loses the nodes of which one side has no rows. ``buffer`` is a work array, uint32,
    with a place for each row of a tree. Returns how many nodes, subsets, leaves and rows have been
    written.
    """
    first_node, starts = trees.first_node, samples.starts
    listed, sizes, leaf_rows = leaves.listed, leaves.sizes, leaves.rows
    at_node, at_subset = np.int64(0), np.int64(0)
    at_leaf, at_row = 0, 0
    for k in range(leaves.n_nodes.shape[0]):
        nodes = trees.nodes[first_node[k] : first_node[k + 1]]
        subsets = trees.subsets[trees.first_subset[k] : trees.first_subset[k + 1]]
        part = 2 * k + 1 if honest else 2 * k
        ranks = samples.ranks[starts[part] : starts[part + 1]]
        sort_into_leaves(codes, categorical, ranks, nodes, subsets, buffer)
        n_nodes = list_by_level(nodes, listed[at_node:])
        leaves.n_nodes[k] = n_nodes
        for i in range(at_node, at_node + n_nodes):
            node = listed[i]
            listed[i] += first_node[k]
            begin, end = nodes[node, BEGIN], nodes[node, END]
            if nodes[node, FEATURE] == LEAF:
                sizes[at_leaf] = end - begin
                at_leaf += 1
                for place in range(begin, end):
                    leaf_rows[at_row] = ranks[place]
                    at_row += 1
            else:
                at_subset += copy_subset(
                    categorical, nodes, node, subsets, leaves.subsets, at_subset
                )
        at_node += n_nodes
    return at_node, at_subset, at_leaf, at_row


@called
def copy_subset(categorical, nodes, node, subsets, target, at):
    """Copy the subset of a node that splits on a category; return 1 if it does, else 0."""
    if categorical is not None and categorical[nodes[node, FEATURE]]:
        for word in range(4):
            target[at, word] = subsets[nodes[node, CODE], word]
        return 1
    return 0


@inlined
def sort_into_leaves(codes, categorical, ranks, nodes, subsets, buffer):
    """Send rows down a tree, so that those of each node are contiguous in ``ranks``.

    Writes BEGIN and END of each node; within a leaf ranks keep their order. Children stand behind
    their parents.
    """
    nodes[0, BEGIN], nodes[0, END] = 0, ranks.shape[0]
    for node in range(nodes.shape[0]):
        split, left = nodes[node, FEATURE], nodes[node, LEFT]
        if split == LEAF:
            continue
        begin, end = nodes[node, BEGIN], nodes[node, END]
        code = np.int64(nodes[node, CODE])
        rule = SplitRule(np.int64(split), code, nodes[node, MISSING_LEFT] != 0)
        n_left = partition(codes[split], ranks[begin:end], rule, categorical, subsets, buffer)
        nodes[left, BEGIN], nodes[left + 1, BEGIN] = begin, begin + n_left
        nodes[left, END], nodes[left + 1, END] = begin + n_left, end


@inlined
def list_by_level(nodes, listed):
    """List the nodes in level order, each level from left to right; return how many there are.

    A node of which one side has no rows is replaced by its other side.
    """
    listed[0] = 0
    n_listed, at = 1, 0
    while at < n_listed:
        node = listed[at]
        while nodes[node, FEATURE] != LEAF:
            left = nodes[node, LEFT]
            any_left = nodes[left, BEGIN] < nodes[left, END]
            if any_left and nodes[left + 1, BEGIN] < nodes[left + 1, END]:
                listed[n_listed], listed[n_listed + 1] = left, left + 1
                n_listed += 2
                break
            node = left if any_left else left + 1
        listed[at] = node
        at += 1
    return n_listed


def join_trees(
    trees: Trees, categorical: NDArray[np.bool_], importance: NDArray[np.float64]
) -> Forest:
    """The forest of these trees: nodes linked to their children, subsets numbered."""
    feature, code = trees.feature, trees.code
    if categorical.any():
        uses_subset = (feature != LEAF) & categorical[feature]
        code = np.where(uses_subset, np.cumsum(uses_subset, dtype=np.int32) - 1, code)
    left = np.empty(len(feature), np.int64)
    link_nodes(feature, trees.n_nodes, left)
    return Forest(
        roots=_starts(trees.n_nodes)[:-1],
        feature=feature,
        code=code,
        missing_left=trees.missing_left,
        left=left,
        subsets=trees.subsets,
        categorical=categorical,
        leaf_offsets=_starts(trees.leaf_sizes),
        leaf_rows=trees.leaf_rows,
        importance=importance,
    )


def concatenate_trees(parts: list[Trees]) -> Trees:
    """Trees of several parts, in their order."""
    return Trees(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))


def renumber_leaf_rows(trees: Trees, new_rank: NDArray[np.int32]) -> Trees:
    """The same trees, with the rows of each leaf by other ranks, ascending."""
    leaf = np.repeat(np.arange(len(trees.leaf_sizes)), trees.leaf_sizes)
    keys = leaf * len(new_rank) + new_rank[trees.leaf_rows]
    keys.sort()
    return trees._replace(leaf_rows=(keys - leaf * len(new_rank)).astype(np.int32))


@kernel
def link_nodes(feature, n_nodes, left):
    """Write the left child of each node, for a leaf its number; trees are in level order.

    The trees before the t-th have s splits together and thus t + 2 s nodes: the k-th split of the
    whole forest, in tree t, has its left child at t + 2 k + 1.
    """
    node, n_splits, n_leaves = 0, 0, 0
    for tree in range(n_nodes.shape[0]):
        for _ in range(n_nodes[tree]):
            if feature[node] == LEAF:
                left[node] = n_leaves
                n_leaves += 1
            else:
                left[node] = tree + 2 * n_splits + 1
                n_splits += 1
            node += 1


def _starts(sizes: NDArray[Any]) -> NDArray[np.int64]:
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts
