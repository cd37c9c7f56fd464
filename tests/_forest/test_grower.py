"""The grower: every split is the best there is, and only nodes that may be split are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf import CensoredQuantileForest
from cqrf._forest import grower, workspace
from cqrf._forest.grower import SplitRule
from cqrf._forest.spec import LEAF, MISSING
from cqrf._runtime.compiling import kernel
from oracles.criteria import CRITERIA, LEVELS
from oracles.splitting import (
    best_gain_by_force,
    cost_of_order,
    gain_of,
    node_truth,
    ordered_categories,
    sets_that_go_left,
)
from support.grown_tree import Tree, make_limits, make_tree_rows
from support.labelling import make_rows

SETTINGS = [
    {},
    {"min_samples_split": 20, "min_child_fraction": 0.05},
    {"min_samples_leaf": 7},
    {"min_child_fraction": 0.25},
    {"max_depth": 3, "min_samples_split": 10, "min_samples_leaf": 3, "min_child_fraction": 0.1},
    {"max_depth": 0},
]


@kernel
def send_unseen_left(categorical, feature, column, rows, subsets, code):
    grower.send_unseen_left(categorical, feature, column, rows, subsets, code)


@kernel
def partition(column, rows, rule, categorical, subsets, buffer):
    return grower.partition(column, rows, rule, categorical, subsets, buffer)


def make_rng(criterion, *others):
    return np.random.default_rng([*others, CRITERIA.index(criterion)])


def assert_well_formed(tree):
    """Children come in pairs behind their parent, each node but the root is a child once."""
    inner = np.flatnonzero(tree.feature != LEAF)
    assert (tree.left[inner] > inner).all()
    children = np.concatenate([tree.left[inner], tree.left[inner] + 1])
    assert sorted(children) == list(range(1, tree.n_nodes))
    on_category = [node for node in inner if tree.is_category(tree.feature[node])]
    assert (tree.code[tree.feature == LEAF] == 0).all()
    assert sorted(tree.code[on_category]) == list(range(len(tree.subsets)))


def truth_of_node(tree, criterion, rows, depth, limits, entry, levels):
    """Labels of a node by definition, and its weights; None if it should not be split."""
    n = len(rows)
    if n < max(limits.min_samples_split, 2 * limits.min_samples_leaf) or depth >= limits.max_depth:
        return None, None
    table = tree.rows
    return node_truth(criterion, table.time, table.event, table.weight, rows, entry, levels)


def assert_grown_greedily(tree, criterion, entry=None, levels=LEVELS, **settings):
    """Each split is the best there is by definition, each leaf could or should not be split.

    For trees that try every feature at every node.
    """
    limits, depth = make_limits(len(tree.codes), **settings), tree.depths()
    importance = np.zeros(len(tree.codes))
    for node, rows in enumerate(tree.rows_of_nodes()):
        min_child = max(limits.min_samples_leaf, np.ceil(limits.min_child_fraction * len(rows)))
        truth, w = truth_of_node(tree, criterion, rows, depth[node], limits, entry, levels)
        columns, best, costs = tree.codes[:, rows], 0.0, []
        if truth is not None:

            def candidates_of(j, column, truth=truth, w=w):
                order = None
                if tree.is_category(j):
                    order = ordered_categories(column, *truth, w, criterion == "quantile")
                return sets_that_go_left(column, order)

            is_classes = criterion == "quantile"
            costs = [
                cost_of_order(column, *truth, w, is_classes) if tree.is_category(j) else 0.0
                for j, column in enumerate(columns)
            ]
            best = best_gain_by_force(columns, candidates_of, truth, w, min_child, costs)
        if tree.feature[node] == LEAF:
            assert best == pytest.approx(0.0, abs=1e-9)
            continue
        assert truth is not None
        left = np.array([tree.goes_left(node, tree.codes[:, row]) for row in rows])
        assert min(left.sum(), (~left).sum()) >= min_child
        gain = gain_of(left, *truth, w) - costs[tree.feature[node]]
        assert gain == pytest.approx(best, rel=1e-8, abs=1e-9)
        importance[tree.feature[node]] += gain / tree.codes.shape[1]
        if not (columns[tree.feature[node]] == MISSING).any():
            assert tree.missing_left[node] == (left.sum() > (~left).sum())
    np.testing.assert_allclose(tree.importance, importance, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("limits", SETTINGS)
def test_a_tree_splits_best_while_it_should_and_only_then(criterion, weighted, limits):
    rows, _ = make_tree_rows(make_rng(criterion, weighted), n=60, weighted=weighted)
    tree = Tree(rows, criterion, **limits)
    assert_well_formed(tree)
    assert (tree.n_nodes > 1) == (limits.get("max_depth") != 0)
    assert_grown_greedily(tree, criterion, **limits)


# With one level a row of labels has no filling zero, with two it has.
@pytest.mark.parametrize(
    ("criterion", "levels"), [("quantile", (0.5,)), ("censored_quantile", (0.25, 0.75))]
)
def test_a_tree_splits_best_with_any_number_of_levels(criterion, levels):
    # Large nodes with weights have no categories of the same mean label.
    rows, _ = make_tree_rows(make_rng(criterion, 2), weighted=True)
    tree = Tree(rows, criterion, levels=levels, max_depth=2)
    assert tree.n_nodes == 7
    assert_grown_greedily(tree, criterion, levels=levels, max_depth=2)


@pytest.mark.parametrize("criterion", ["logrank", "censored_quantile"])
def test_a_tree_splits_best_with_delayed_entry(criterion):
    rows, entry = make_tree_rows(make_rng(criterion, 3), n=60, weighted=True, late=True)
    tree = Tree(rows, criterion, min_samples_leaf=4)
    assert tree.n_nodes > 5
    assert_grown_greedily(tree, criterion, entry, min_samples_leaf=4)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("late", [False, True])
def test_a_tree_of_some_rows_is_that_of_a_table_of_these_rows(criterion, late):
    rng = make_rng(criterion, 4, late)
    rows, entry = make_tree_rows(rng, n=100, weighted=True, late=late)
    # Some of them twice, as a bootstrap draws them.
    ranks = np.sort(rng.integers(0, 100, 80)).astype(np.uint32)
    settings = {"min_samples_leaf": 3, "n_candidates": 2, "seed": 5}
    drawn = Tree(rows, criterion, ranks, **settings)
    of_ranks = make_rows(
        rows.time[ranks],
        rows.event[ranks],
        rows.weight[ranks],
        entry[ranks] if late else None,
        np.ascontiguousarray(rows.codes[:, ranks]),
        rows.categorical,
    )
    alone = Tree(of_ranks, criterion, **settings)
    assert drawn.n_nodes > 9
    for a, b in zip(drawn.arrays(), alone.arrays(), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("limits", SETTINGS)
def test_every_node_obeys_the_limits_when_features_are_drawn(criterion, limits):
    full = make_limits(4, **limits)
    for seed in range(3):
        rows, _ = make_tree_rows(np.random.default_rng(seed), n=200)
        tree = Tree(rows, criterion, seed=seed, n_candidates=1, **limits)
        assert_well_formed(tree)
        assert tree.depths().max() <= full.max_depth
        sizes = [len(its_rows) for its_rows in tree.rows_of_nodes()]
        assert min(sizes) >= full.min_samples_leaf
        for node in np.flatnonzero(tree.feature != LEAF):
            assert sizes[node] >= full.min_samples_split
            smaller = min(sizes[tree.left[node]], sizes[tree.left[node] + 1])
            assert smaller >= full.min_child_fraction * sizes[node]


@given(st.lists(st.integers(0, 8).map(lambda code: MISSING if code == 8 else code)), st.data())
def test_a_node_is_partitioned_without_a_change_of_order(column, data):
    code, missing_left = data.draw(st.integers(0, 7)), data.draw(st.booleans())
    categorical = np.array([data.draw(st.booleans())])
    subsets = np.array([[0b10110010, 0, 0, 0]] * 8, np.uint64)
    n = len(column)
    rows = np.sort(np.random.default_rng(n).permutation(2 * n)[:n]).astype(np.uint32)
    of_row = np.zeros(2 * n, np.uint8)
    of_row[rows] = column
    sides = [[], []]
    for row, c in zip(rows, column, strict=True):
        left = (0b10110010 >> c) & 1 if categorical[0] else c <= code
        sides[1 - (missing_left if c == MISSING else left)].append(row)
    buffer = np.zeros(n, np.uint32)
    rule = SplitRule(0, code, missing_left)
    n_left = partition(of_row, rows, rule, categorical, subsets, buffer)
    assert n_left == len(sides[0])
    assert rows.tolist() == sides[0] + sides[1]


def test_the_seed_decides_which_features_are_tried():
    rows, _ = make_tree_rows(np.random.default_rng(0), n=150)

    def arrays(seed):
        return Tree(rows, seed=seed, n_candidates=1).arrays()

    for a, b in zip(arrays(1), arrays(1), strict=True):
        assert np.array_equal(a, b)
    assert len({arrays(seed)[0].tobytes() for seed in range(10)}) > 5


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_tree_of_hardly_any_rows_is_a_tree(n):
    codes = np.arange(3 * n, dtype=np.uint8).reshape(3, n)
    tree = Tree(make_rows(np.arange(n, dtype=float), np.ones(n, bool), codes=codes))
    assert tree.n_nodes == (3 if n == 2 else 1)
    assert len(tree.node_of_row) == n


def test_missing_values_follow_the_larger_child_of_a_node_that_had_none():
    time, event = np.arange(30.0), np.ones(30, bool)
    for n_left in (10, 20):
        codes = (np.arange(30) >= n_left).astype(np.uint8)[None]
        tree = Tree(make_rows(time, event, codes=codes), "variance")
        assert tree.n_nodes == 3
        missing = tree.find_nodes(np.array([[MISSING]], np.uint8), np.zeros(1, np.uint32))
        larger = tree.left[0] + (n_left == 10)
        assert missing == [larger]


def test_a_tree_may_split_on_categories_everywhere():
    n = 300
    codes = np.random.default_rng(4).integers(0, 200, (2, n)).astype(np.uint8)
    time, event = np.arange(n, dtype=float), np.ones(n, bool)
    tree = Tree(make_rows(time, event, codes=codes, categorical=np.ones(2, bool)), "quantile")
    assert len(tree.subsets) > 16
    assert_well_formed(tree)
    assert tree.node_of_row.tolist() == [tree.path(codes[:, row])[-1] for row in range(n)]


@pytest.mark.parametrize(
    ("criterion", "weighted", "late", "categories"),
    [
        ("censored_quantile", False, False, False),
        ("censored_quantile", True, True, True),
        ("censored_quantile", False, False, True),
        ("quantile", True, False, True),
        ("variance", False, False, False),
        ("logrank", True, True, True),
    ],
)
def test_copying_deep_nodes_changes_nothing(criterion, weighted, late, categories, monkeypatch):
    n, block_rows = 500, 64
    rng = make_rng(criterion, weighted)
    rows, _ = make_tree_rows(
        rng, n, weighted, late, categorical=(0, categories, 0), n_codes=8, missing=0.05
    )
    rows = rows._replace(time=rows.time + np.sort(rng.random(n)))

    def grow(most_copied):
        monkeypatch.setattr(workspace, "BLOCK_ROWS", most_copied)
        return Tree(rows, criterion, n_candidates=2)

    read_in_place, copied = grow(0), grow(block_rows)
    sizes = [len(its_rows) for its_rows in copied.rows_of_nodes()]
    inner = copied.feature != LEAF
    # Nodes above the limit, several blocks, and splits within them.
    assert sum(size > block_rows for size in sizes) >= 2
    assert sum(size <= block_rows for size, split in zip(sizes, inner, strict=True) if split) > 20
    assert len(copied.subsets) > 5 or not categories
    for a, b in zip(read_in_place.arrays(), copied.arrays(), strict=True):
        assert np.array_equal(a, b)
    expected = [copied.path(rows.codes[:, row])[-1] for row in range(n)]
    assert copied.node_of_row.tolist() == expected


def test_nodes_of_a_copied_block_are_split_best_too(monkeypatch):
    monkeypatch.setattr(workspace, "BLOCK_ROWS", 200)
    rng = np.random.default_rng(11)
    rows, _ = make_tree_rows(rng, n=300, weighted=True, categorical=(0, 1), n_codes=5)
    tree = Tree(rows, "variance", min_samples_leaf=40)
    assert (tree.feature != LEAF).sum() >= 3
    assert_grown_greedily(tree, "variance", min_samples_leaf=40)


def test_values_larger_than_any_in_a_node_do_not_follow_the_missing_ones():
    time = np.arange(30.0)
    codes = np.random.default_rng(0).integers(0, 5, 30).astype(np.uint8)
    codes[20:] = 255
    X = np.where(codes == 255, np.nan, codes.astype(float))[:, None]
    # Training values end at 4.
    forest = CensoredQuantileForest(
        criterion="variance", honest=False, max_samples=None, max_depth=1, n_estimators=1
    )
    four, more, missing = forest.fit(X, time).predict([[4.0], [200.0], [np.nan]])
    assert four == more < 20 <= missing


def test_levels_that_a_node_did_not_have_go_left_with_its_larger_child():
    """Of two subsets only that of the node changes, and only for a category."""
    column = np.repeat(np.array([0, 1], dtype=np.uint8), [30, 70])
    rows, kept = np.arange(100, dtype=np.uint32), [0b10, 0, 0, 0]
    for categorical in (np.array([True]), np.array([False])):
        subsets = np.array([kept, kept], dtype=np.uint64)
        send_unseen_left(categorical, 0, column, rows, subsets, 1)
        assert subsets[0].tolist() == kept
        # Every level but 0.
        expected = [2**64 - 2] + [2**64 - 1] * 3 if categorical[0] else kept
        assert subsets[1].tolist() == expected
