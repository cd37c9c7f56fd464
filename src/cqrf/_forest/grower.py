"""The grower: nodes are split until they are small.

While it grows, a tree is ranges of one array of its rows, in time order, which every split
partitions stably: each node and each leaf is in time order without sorting. It is a table of
integers with one row per node:

FEATURE
    the feature a node splits on, LEAF for a leaf
CODE
    numeric features: codes up to this one go left; categories: the row of the tree's ``subsets``,
    a table of 256 bits each, whose set bits go left
MISSING_LEFT
    whether missing values go left. If the node had none, they follow its larger child, as do
    levels of a category that it did not have
LEFT
    the left child; the right one is the next node
BEGIN, END
    the range of its rows
DEPTH, NEXT
    its depth, and the node that is to be split after it; while the tree grows
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.categories import is_category
from cqrf._forest.criteria import label_node
from cqrf._forest.rows import take_rows
from cqrf._forest.spec import LEAF, MISSING
from cqrf._forest.splitting import NO_SPLIT, Node, find_split
from cqrf._runtime.compiling import called, inlined, kernel

FEATURE, CODE, MISSING_LEFT, LEFT, BEGIN, END, DEPTH, NEXT = range(8)


class Grown(NamedTuple):
    """What the grower writes beside ``nodes`` and ``subsets`` of its workspace.

    Attributes
    ----------
    first_node, first_subset : (n_trees + 1,) int64
        Where the nodes and subsets of each tree begin, and where the last ends.
    gains : (n_trees, n_features) float64
        Gain of each feature over the splits of a tree, divided by the rows of the tree.
    """

    first_node: NDArray[np.int64]
    first_subset: NDArray[np.int64]
    gains: NDArray[np.float64]


@kernel
def grow_trees(rows, samples, growing, work, grown):
    """Grow a tree from each subsample until no node should or can be split.

    ``rows`` is a :class:`~cqrf._forest.spec.Rows`, ``samples`` a ``Subsamples``, ``growing`` a
    ``Growing``, ``work`` a :class:`~cqrf._forest.workspace.Workspace`. Writes nodes and subsets
    into ``work``, tree after tree, and ``grown``.
    """
    first_node, first_subset, starts = grown.first_node, grown.first_subset, samples.starts
    first_node[0], first_subset[0] = 0, 0
    for tree in range(samples.seeds.shape[0]):
        ranks = samples.ranks[starts[2 * tree] : starts[2 * tree + 1]]
        nodes = work.nodes[first_node[tree] :]
        subsets = work.subsets[first_subset[tree] :]
        target = Growth(nodes, subsets, grown.gains[tree])
        n_nodes, n_subsets = grow_tree(rows, ranks, samples.seeds[tree], growing, work, target)
        first_node[tree + 1] = first_node[tree] + n_nodes
        first_subset[tree + 1] = first_subset[tree] + n_subsets


class Growth(NamedTuple):
    """Where one tree is written: its nodes, its subsets, and the gains of each feature."""

    nodes: NDArray[np.int32]
    subsets: NDArray[np.uint64]
    gains: NDArray[np.float64]


@inlined
def grow_tree(rows, ranks, random_word, growing, work, tree):
    """Grow one tree from the rows with these ranks; return its numbers of nodes and subsets."""
    nodes, subsets, gains = tree.nodes, tree.subsets, tree.gains
    n_rows, n_copied = ranks.shape[0], work.block_rows.shape[0]
    all_rows, features = work.here, work.split.features
    for j in range(features.shape[0]):
        features[j] = j
    for i in range(n_rows):
        all_rows[i] = i
    drawn = work.tree
    take_rows(rows, ranks, drawn)
    # The rows that nodes are read from, and the range of rows that it holds.
    block, block_begin, block_end = drawn, 0, n_rows
    add_node(nodes, 0, 0, n_rows, 0, -1)
    n_nodes, n_subsets, waiting = 1, 0, 0
    while waiting >= 0:
        node = waiting
        begin, end, waiting = nodes[node, BEGIN], nodes[node, END], nodes[node, NEXT]
        if begin < block_begin or end > block_end:
            block, block_begin, block_end = drawn, 0, n_rows
        here = all_rows[begin:end]
        n = here.shape[0]
        if not may_split(n, nodes[node, DEPTH], growing.limits):
            continue
        if n <= n_copied and block_end - block_begin > n_copied:
            copy_block(drawn, here, work)
            block, block_begin, block_end = work.block, begin, end
        split, random_word = choose_split(
            block, here, random_word, growing, work, subsets[n_subsets]
        )
        if split.feature < 0:
            continue
        uses_subset = is_category(rows.categorical, split.feature)
        code = n_subsets if uses_subset else split.code
        n_left = apply_split(block, here, split, code, nodes[node], subsets, work.buffer)
        n_subsets += uses_subset
        gains[split.feature] += split.gain / n_rows
        nodes[node, LEFT] = n_nodes
        middle, depth = begin + n_left, nodes[node, DEPTH] + 1
        add_node(nodes, n_nodes, begin, middle, depth, waiting)
        add_node(nodes, n_nodes + 1, middle, end, depth, n_nodes)
        waiting = n_nodes + 1
        n_nodes += 2
    return n_nodes, n_subsets


@inlined
def may_split(n, depth, limits):
    """Whether a node of n rows at this depth may be split."""
    return (
        n >= limits.min_samples_split
        and n >= 2 * limits.min_samples_leaf
        and depth < limits.max_depth
    )


@inlined
def copy_block(drawn, here, work):
    """Copy the rows of a node; ``here`` then counts within the copy."""
    n = here.shape[0]
    block_rows = work.block_rows[:n]
    for i in range(n):
        block_rows[i] = here[i]
        here[i] = i
    take_rows(drawn, block_rows, work.block)


@inlined
def choose_split(block, here, random_word, growing, work, subset):
    """Label a node and find its best split: (Split, next random word)."""
    limits = growing.limits
    can_be_split, mass = label_node(growing.criterion, block, here, work.label)
    if not can_be_split:
        return NO_SPLIT, random_word
    n = here.shape[0]
    min_child = max(np.float64(limits.min_samples_leaf), np.ceil(limits.min_child_fraction * n))
    node = Node(here, work.label, mass, min_child, block.stratum, limits.min_samples_stratum)
    return find_split(
        block.codes,
        block.categorical,
        node,
        limits.n_candidates,
        random_word,
        subset,
        work.split,
    )


@inlined
def apply_split(block, here, split, code, node, subsets, buffer):
    """Partition the rows of a node and write its split; return how many rows go left."""
    column = block.codes[split.feature]
    missing_left = split.missing_left
    n_left = partition(
        column,
        here,
        SplitRule(split.feature, code, missing_left),
        block.categorical,
        subsets,
        buffer,
    )
    if 2 * n_left > here.shape[0]:
        missing_left |= not split.saw_missing
        send_unseen_left(block.categorical, split.feature, column, here, subsets, code)
    node[FEATURE], node[CODE], node[MISSING_LEFT] = split.feature, code, missing_left
    return n_left


class SplitRule(NamedTuple):
    """How a node sends rows left or right; ``code`` as in the module's docstring."""

    feature: np.int64
    code: np.int64
    missing_left: bool


@inlined
def partition(column, rows, rule, categorical, subsets, buffer):
    """Move the rows that go left to the front, both sides in their old order; count them."""
    n_left, n_right = 0, 0
    for i in range(rows.shape[0]):
        row = rows[i]
        # Written to both, kept in one: a branch would be mispredicted.
        rows[n_left] = row
        buffer[n_right] = row
        left = goes_left(
            categorical, column[row], rule.feature, rule.code, rule.missing_left, subsets
        )
        n_left += left
        n_right += not left
    for i in range(n_right):
        rows[n_left + i] = buffer[i]
    return n_left


@called
def goes_left(categorical, row_code, feature, code, missing_left, subsets):
    """Whether a row with this code of the node's feature goes to the left child.

    ``categorical`` is None if no feature is.
    """
    if row_code == MISSING:
        return missing_left
    if categorical is not None and categorical[feature]:
        word = subsets[code, row_code >> 6]
        return (word >> np.uint64(row_code & 63)) & np.uint64(1) == np.uint64(1)
    return row_code <= code


@inlined
def add_node(nodes, node, begin, end, depth, behind):
    """Write a leaf with these rows, to be split before the node ``behind``."""
    nodes[node, FEATURE], nodes[node, CODE], nodes[node, MISSING_LEFT] = LEAF, 0, 0
    nodes[node, BEGIN], nodes[node, END] = begin, end
    nodes[node, DEPTH], nodes[node, NEXT] = depth, behind


@called
def send_unseen_left(categorical, feature, column, rows, subsets, code):
    """For a category, add the codes that none of the rows has to those that go left."""
    if categorical is not None and categorical[feature]:
        for word in range(4):
            present = np.uint64(0)
            for i in range(rows.shape[0]):
                row_code = np.uint64(column[rows[i]])
                if row_code >> np.uint64(6) == np.uint64(word):
                    present |= np.uint64(1) << (row_code & np.uint64(63))
            subsets[code, word] |= ~present
