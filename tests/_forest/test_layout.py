"""Layout: leaves receive their rows, nodes the level order, subsets their numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._forest.grower import CODE, Grown
from cqrf._forest.layout import finish_trees, join_trees
from cqrf._forest.rows import Rows
from cqrf._forest.spec import LEAF, MISSING, Limits, Subsamples
from cqrf._forest.workspace import make_workspace
from support.grown_tree import Tree, make_tree_rows


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_in_the_leaf_that_a_plain_traversal_finds(weighted):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rows, _ = make_tree_rows(rng, n=150, weighted=weighted)
        tree = Tree(rows, seed=seed, n_candidates=2)
        expected = [tree.path(tree.codes[:, row])[-1] for row in range(150)]
        assert tree.node_of_row.tolist() == expected
        # Other rows, with codes that the tree was not grown from, in any order.
        others = rng.integers(0, 256, (4, 90)).astype(np.uint8)
        ranks = rng.integers(0, 90, 40).astype(np.uint32)
        expected = [tree.path(others[:, row])[-1] for row in ranks]
        assert tree.find_nodes(others, ranks).tolist() == expected
        # They are contiguous in every node that they pass, in their old order in a leaf.
        for node, found in enumerate(tree.sort_into_leaves(others, ranks)):
            passed = [row for row in ranks.tolist() if node in tree.path(others[:, row])]
            assert sorted(found.tolist()) == sorted(passed)
            assert tree.feature[node] != LEAF or found.tolist() == passed


@given(st.integers(0, 10**6), st.sampled_from([1, 2, 5, 30]))
def test_nodes_are_listed_level_by_level_without_those_that_split_no_rows(seed, n_rows):
    rng = np.random.default_rng(seed)
    tree = Tree(make_tree_rows(rng, n=60)[0], seed=seed, n_candidates=2)
    codes = rng.choice([0, 1, 2, 3, 4, 5, 30, 60, 150, MISSING], (4, n_rows)).astype(np.uint8)
    listed = tree.list_by_level(codes)
    n_through = [len(rows) for rows in tree.rows_of_nodes(codes)]

    def splits_rows(node):
        left = tree.left[node]
        return tree.feature[node] != LEAF and n_through[left] > 0 and n_through[left + 1] > 0

    # The nodes that split the rows, the leaves that have any, and how many of the former are
    # passed on the way to each.
    paths = [tree.path(codes[:, row]) for row in range(n_rows)]
    kept, level = [], {}
    for path in paths:
        passed = [node for node in path if splits_rows(node)]
        for depth, node in enumerate([*passed, path[-1]]):
            kept.append(node)
            level[node] = depth
    assert sorted(listed) == sorted(set(kept))
    levels = [level[node] for node in listed]
    assert levels == sorted(levels)
    # The i-th node that splits has its left side at 1 + 2 i and its right side at 2 + 2 i.
    above = [node for node in listed if splits_rows(node)]
    for side, node in enumerate(listed[1:]):
        child = tree.left[above[side // 2]] + side % 2
        rows = {row for row, path in enumerate(paths) if child in path}
        assert rows == {row for row, path in enumerate(paths) if node in path}


def test_a_tree_whose_rows_all_go_one_way_is_one_leaf():
    tree = Tree(make_tree_rows(np.random.default_rng(0))[0])
    assert tree.n_nodes > 10
    for row in range(0, 80, 9):
        listed = tree.list_by_level(np.repeat(tree.codes[:, [row]], 5, axis=1))
        assert listed == [tree.path(tree.codes[:, row])[-1]]


def test_a_full_tree_keeps_all_its_nodes():
    tree = Tree(make_tree_rows(np.random.default_rng(1))[0])
    assert sorted(tree.list_by_level(tree.codes)) == list(range(tree.n_nodes))


# Two trees as they are grown, the right side first: 0 is split into 1 and 2, these two by a
# category into 5 and 6, and into 3 and 4. Leaves have no child.
NOTHING = [LEAF, 0, 0, 77]
GROWN = np.array([[0, 3, 0, 1], [1, 1, 1, 5], [1, 0, 0, 3]] + [NOTHING] * 4, np.int32)
SUBSETS = np.array([[0b01, 0, 0, 0], [0b10, 0, 0, 0]], np.uint64)
CATEGORICAL = np.array([False, True])
# Ranks 0 to 9 end in 5 3 6 4 5 4 3 5 3 6.
CODES = np.array([[0, 9, 0, 9, 1, 9, 255, 2, 9, 3], [1, 0, 0, 1, 255, 255, 0, 1, 0, 7]], np.uint8)


def finish(honest, ranks, starts):
    n = CODES.shape[1]
    rows = Rows(CODES, CATEGORICAL, np.zeros(n), np.zeros(n, bool))
    first = np.hstack([GROWN, np.full((len(GROWN), 4), -9, np.int32)])
    # The same tree, with its subsets in the other order.
    second = first.copy()
    second[[1, 2], CODE] = first[[2, 1], CODE]
    # More nodes and subsets than the trees have, as in a workspace.
    work = make_workspace(2, n, rows, 1, Limits(2, 9, 2, 1, 0.0))
    work.nodes[:14] = np.vstack([first, second])
    work.subsets[:4] = np.vstack([SUBSETS, SUBSETS[::-1]])
    samples = Subsamples(np.array(ranks, np.uint32), np.array(starts), np.zeros(2, np.uint64))
    grown = Grown(np.array([0, 7, 14]), np.array([0, 2, 4]), np.zeros((2, 2)))
    return finish_trees(rows, honest, samples, work, grown)


def codes_of_numeric_splits(trees):
    """Codes of the nodes that split on the numeric feature; other codes have no meaning yet."""
    return trees.code[trees.feature == 0].tolist()


def test_nodes_are_in_level_order_and_leaves_list_their_rows_in_time_order():
    ranks = [0, 1, 2, 3, 4, 7, 1, 1, 3, 6, 7, 9]
    trees = finish(False, ranks, [0, 6, 6, 12, 12])
    assert trees.n_nodes.tolist() == [7, 7]
    assert trees.feature.tolist() == 2 * ([0, 1, 1] + [LEAF] * 4)
    assert codes_of_numeric_splits(trees) == [3, 3]
    assert trees.missing_left.tolist() == 2 * ([False, True] + [False] * 5)
    assert trees.subsets[:, 0].tolist() == [0b10, 0b01] * 2
    assert trees.leaf_sizes.tolist() == [3, 1, 1, 1, 1, 1, 3, 1]
    assert trees.leaf_rows.tolist() == [0, 4, 7, 2, 1, 3, 7, 9, 1, 1, 6, 3]


def test_an_honest_tree_is_filled_with_its_other_half_and_loses_empty_nodes():
    # Leaves 3 and 6 of the first tree stay empty, and leaf 4 of the second.
    ranks = [0, 1, 3, 4, 5, 7, 2, 0, 2, 6, 8, 8]
    trees = finish(True, ranks, [0, 2, 6, 7, 12])
    assert trees.n_nodes.tolist() == [3, 5]
    assert trees.feature.tolist() == [0, LEAF, LEAF, 0, 1, LEAF, LEAF, LEAF]
    assert codes_of_numeric_splits(trees) == [3, 3]
    assert trees.missing_left.tolist() == [False] * 4 + [True] + [False] * 3
    assert trees.subsets[:, 0].tolist() == [0b10]
    assert trees.leaf_sizes.tolist() == [2, 2, 3, 1, 1]
    assert trees.leaf_rows.tolist() == [4, 7, 3, 5, 6, 8, 8, 0, 2]


def test_joined_trees_are_linked_and_their_subsets_numbered():
    trees = finish(False, [0, 1, 2, 3, 4, 7, 1, 1, 3, 6, 7, 9], [0, 6, 6, 12, 12])
    forest = join_trees(trees, CATEGORICAL, np.array([2.0, 1.0]))
    assert forest.roots.tolist() == [0, 7]
    # Leaves have their number, the other nodes their left child.
    assert forest.left.tolist() == [1, 3, 5, 0, 1, 2, 3, 8, 10, 12, 4, 5, 6, 7]
    inner = forest.feature != LEAF
    assert forest.code[inner].tolist() == [3, 0, 1, 3, 2, 3]
    assert forest.leaf_offsets.tolist() == [0, 3, 4, 5, 6, 7, 8, 11, 12]
    assert forest.importance.tolist() == [2.0, 1.0]
    for name in ("feature", "missing_left", "subsets", "leaf_rows"):
        assert np.array_equal(getattr(forest, name), getattr(trees, name))
