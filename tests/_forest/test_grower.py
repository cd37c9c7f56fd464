"""The tree: every node is what its rows call for, and every row sits where it belongs."""

import numpy as np
import pytest
from cqrf._forest.labels import CENSORED_QUANTILE, LOGRANK, QUANTILE, VARIANCE, read_labelling
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from cqrf import CensoredQuantileForest
from cqrf._forest import grower as room
from cqrf._forest import workspace as scratch_room
from cqrf._forest.grower import BEGIN, END, LEAF, LEFT, grow_nodes, partition
from cqrf._forest.histograms import MISSING, N_BINS
from cqrf._forest.layout import list_by_level, sort_into_leaves
from cqrf._forest.workspace import BLOCK_ROWS, COPIED_PER_CANDIDATE, make_scratch
from oracles.criteria import CRITERIA, LEVELS
from oracles.splitting import (
    best_gain_by_force,
    gain_of,
    make_table,
    node_truth,
    ordered_categories,
    sets_that_go_left,
)

NO_LIMIT = np.iinfo(np.int32).max


@njit
def send_unseen_left(*arguments):
    room.send_unseen_left(*arguments)


class Tree:
    """A tree from grow_nodes, read with plain loops."""

    def __init__(
        self, codes, categorical, time, event, weight, criterion=CENSORED_QUANTILE,
        n_candidates=None, max_depth=NO_LIMIT, min_samples_split=2, min_samples_leaf=1,
        min_child_fraction=0.0, seed=0, entry=None, ranks=None, levels=LEVELS,
    ):  # fmt: skip
        self.codes, self.categorical = codes, categorical
        n = codes.shape[1]
        first = None
        if entry is not None:
            first = np.searchsorted(time, entry, "right").astype(np.int32)
        labelling = read_labelling(criterion, levels)
        ranks = np.arange(n, dtype=np.uint32) if ranks is None else ranks
        n_candidates = len(codes) if n_candidates is None else n_candidates
        # Room for more rows than there are, as for a larger tree of the same forest.
        scratch = make_scratch(
            1,
            len(ranks) + 3,
            len(codes),
            2 * len(labelling.pairs),
            n_candidates,
            min_samples_leaf,
            weight is not None,
        )
        scratch.subsets[:] = 2**64 - 1
        scratch.nodes[:] = 77
        importance = np.zeros((1, len(codes)))
        first_node, first_subset = np.full((2, 2), 77)
        counts = None if weight is None else np.zeros(N_BINS, np.int32)
        grow_nodes(
            ranks,
            np.array([0, len(ranks)]),
            codes,
            categorical if categorical.any() else None,
            time,
            event,
            weight,
            first,
            *labelling,
            n_candidates,
            max_depth,
            min_samples_split,
            min_samples_leaf,
            min_child_fraction,
            np.array([seed], np.uint64),
            counts,
            tuple(scratch),
            first_node,
            first_subset,
            importance,
        )
        self.importance = importance[0]
        assert (first_node[0], first_subset[0]) == (0, 0)
        assert not any(used.any() for used in (scratch.seen, scratch.sums))
        assert counts is None or not counts.any()
        self.nodes = scratch.nodes[: first_node[1]]
        self.subsets = scratch.subsets[: first_subset[1]]
        self.node_of_row = self.find_nodes(codes, ranks)

    @property
    def feature(self):
        return self.nodes[:, 0]

    @property
    def code(self):
        return self.nodes[:, 1]

    @property
    def missing_left(self):
        return self.nodes[:, 2]

    @property
    def left(self):
        return self.nodes[:, 3]

    @property
    def n_nodes(self):
        return len(self.feature)

    def goes_left(self, node, codes_of_row):
        code = int(codes_of_row[self.feature[node]])
        if code == MISSING:
            return bool(self.missing_left[node])
        if self.categorical[self.feature[node]]:
            bits = "".join(f"{int(word):064b}"[::-1] for word in self.subsets[self.code[node]])
            return bits[code] == "1"
        return code <= self.code[node]

    def path(self, codes_of_row):
        node, visited = 0, [0]
        while self.feature[node] != LEAF:
            node = self.left[node] + (not self.goes_left(node, codes_of_row))
            visited.append(int(node))
        return visited

    def rows_of_nodes(self, codes=None):
        """Rows that pass through each node, by plain traversal."""
        codes = self.codes if codes is None else codes
        rows = [[] for _ in range(self.n_nodes)]
        for row in range(codes.shape[1]):
            for node in self.path(codes[:, row]):
                rows[node].append(row)
        return [np.array(r, np.uint32) for r in rows]

    def depths(self):
        depth = np.zeros(self.n_nodes, int)
        for node in range(self.n_nodes):
            if self.feature[node] != LEAF:
                depth[self.left[node]] = depth[self.left[node] + 1] = depth[node] + 1
        return depth

    def find_nodes(self, codes, rows):
        """Leaf of each of some rows, by where they stand when they are sorted."""
        places = self.sort_into_leaves(codes, rows)
        found = {}
        for node, its_rows in enumerate(places):
            if self.feature[node] == LEAF:
                found |= dict.fromkeys(its_rows.tolist(), node)
        return np.array([found[row] for row in rows.tolist()], np.int32)

    def sort_into_leaves(self, codes, rows):
        """Rows of each node, in the order in which they come to stand."""
        moved, buffer = rows.copy(), np.empty_like(rows)
        self.nodes[:, BEGIN : END + 1] = -1
        sort_into_leaves(codes, moved, self.categorical, self.nodes, self.subsets, buffer)
        return [moved[first:last] for first, last in self.nodes[:, BEGIN : END + 1]]

    def arrays(self):
        """All that a tree is; a leaf has no child."""
        nodes = self.nodes[:, : LEFT + 1]
        nodes = np.where((self.feature == LEAF)[:, None], [1, 1, 1, 0] * nodes, nodes)
        return nodes, self.subsets, self.node_of_row, self.importance


def grow(rng, criterion=CENSORED_QUANTILE, n=80, weighted=False, categories=True, **settings):
    codes, time, event, weight = make_table(rng, n=n, missing=0.1, n_features=4, n_codes=6)
    categorical = np.array([False, categories, False, False])
    weight = weight if weighted else None
    return Tree(codes, categorical, time, event, weight, criterion, **settings), time, event, weight


def assert_well_formed(tree):
    """Children come in pairs behind their parent, each node but the root is a child once."""
    inner = np.flatnonzero(tree.feature != LEAF)
    assert (tree.left[inner] > inner).all()
    children = np.concatenate([tree.left[inner], tree.left[inner] + 1])
    assert sorted(children) == list(range(1, tree.n_nodes))
    is_category = np.zeros(tree.n_nodes, bool)
    is_category[inner] = tree.categorical[tree.feature[inner]]
    assert (tree.code[tree.feature == LEAF] == 0).all()
    assert sorted(tree.code[is_category]) == list(range(len(tree.subsets)))


def assert_grown_greedily(
    tree, time, event, weight, criterion, max_depth, min_samples_split, min_samples_leaf, fraction,
    entry=None, levels=LEVELS,
):  # fmt: skip
    """Each split is the best there is by definition, each leaf could or should not be split.

    For trees that try every feature at every node.
    """
    depth = tree.depths()
    importance = np.zeros(len(tree.codes))
    for node, rows in enumerate(tree.rows_of_nodes()):
        n = len(rows)
        best, truth = 0.0, None
        min_child = max(min_samples_leaf, int(np.ceil(fraction * n)))
        if n >= min_samples_split and n >= 2 * min_samples_leaf and depth[node] < max_depth:
            truth, w = node_truth(criterion, time, event, weight, rows, entry, levels)
        columns = tree.codes[:, rows]
        if truth is not None:

            def candidates_of(j, column, truth=truth, w=w):
                order = None
                if tree.categorical[j]:
                    order = ordered_categories(column, *truth, w, criterion == QUANTILE)
                return sets_that_go_left(column, order)

            best = best_gain_by_force(columns, candidates_of, truth, w, min_child)
        if tree.feature[node] == LEAF:
            assert best == pytest.approx(0.0, abs=1e-9)
            continue
        assert truth is not None
        left = np.array([tree.goes_left(node, tree.codes[:, row]) for row in rows])
        assert min(left.sum(), (~left).sum()) >= min_child
        gain = gain_of(left, *truth, w)
        assert gain == pytest.approx(best, rel=1e-8, abs=1e-9)
        importance[tree.feature[node]] += gain / len(time)
        if not (columns[tree.feature[node]] == MISSING).any():
            assert tree.missing_left[node] == (left.sum() > (~left).sum())
    np.testing.assert_allclose(tree.importance, importance, rtol=1e-7, atol=1e-9)


SETTINGS = [
    (NO_LIMIT, 2, 1, 0.0),
    (NO_LIMIT, 20, 1, 0.05),
    (NO_LIMIT, 2, 7, 0.0),
    (NO_LIMIT, 2, 1, 0.25),
    (3, 10, 3, 0.1),
    (0, 2, 1, 0.0),
]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("limits", SETTINGS)
def test_a_tree_splits_best_while_it_should_and_only_then(criterion, weighted, limits):
    rng = np.random.default_rng([criterion, weighted])
    max_depth, min_samples_split, min_samples_leaf, fraction = limits
    tree, time, event, weight = grow(
        rng,
        criterion,
        n=60,
        weighted=weighted,
        max_depth=max_depth,
        min_samples_split=min_samples_split,
        min_samples_leaf=min_samples_leaf,
        min_child_fraction=fraction,
    )
    assert_well_formed(tree)
    assert (tree.n_nodes > 1) == (max_depth > 0)
    assert_grown_greedily(tree, time, event, weight, criterion, *limits)


@pytest.mark.parametrize("criterion", [QUANTILE, CENSORED_QUANTILE])
@pytest.mark.parametrize("levels", [(0.5,), (0.25, 0.75)])
def test_a_tree_splits_best_with_any_number_of_levels(criterion, levels):
    # With two levels a row of labels is filled up with a zero. Large nodes with weights have no
    # categories of the same mean label.
    rng = np.random.default_rng([2, criterion])
    limits = (2, 2, 1, 0.0)
    tree, *target = grow(rng, criterion, weighted=True, max_depth=2, levels=levels)
    assert_grown_greedily(tree, *target, criterion, *limits, levels=levels)


def make_entries(rng, time):
    """Half of the rows enter late, before their own time."""
    late = rng.random(len(time)) < 0.5
    return np.where(late, np.floor(rng.random(len(time)) * time) - 1, -np.inf)


@pytest.mark.parametrize("criterion", [LOGRANK, CENSORED_QUANTILE])
def test_a_tree_of_rows_that_enter_late_splits_best(criterion):
    rng = np.random.default_rng([3, criterion])
    codes, time, event, weight = make_table(rng, n=60, n_features=3, n_codes=6, missing=0.1)
    entry = make_entries(rng, time)
    limits = (NO_LIMIT, 2, 4, 0.0)
    tree = Tree(
        codes, np.zeros(3, bool), time, event, weight, criterion, None, *limits, entry=entry
    )
    assert tree.n_nodes > 5
    assert_grown_greedily(tree, time, event, weight, criterion, *limits, entry)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("late", [False, True])
def test_a_tree_of_some_rows_is_that_of_a_table_of_these_rows(criterion, late):
    rng = np.random.default_rng([4, criterion, late])
    codes, time, event, weight = make_table(rng, n=100, n_features=3, missing=0.1)
    entry = make_entries(rng, time) if late else None
    # Some of them twice, as a bootstrap draws them.
    ranks = np.sort(rng.integers(0, 100, 80)).astype(np.uint32)
    settings = {"min_samples_leaf": 3, "n_candidates": 2, "seed": 5}
    drawn = Tree(
        codes, np.zeros(3, bool), time, event, weight, criterion,
        ranks=ranks, entry=entry, **settings,
    )  # fmt: skip
    alone = Tree(
        np.ascontiguousarray(codes[:, ranks]), np.zeros(3, bool), time[ranks], event[ranks],
        weight[ranks], criterion, entry=entry[ranks] if late else None, **settings,
    )  # fmt: skip
    assert drawn.n_nodes > 9
    for a, b in zip(drawn.arrays(), alone.arrays(), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("limits", SETTINGS)
def test_every_node_obeys_the_limits_when_features_are_drawn(criterion, limits):
    max_depth, min_samples_split, min_samples_leaf, fraction = limits
    for seed in range(3):
        tree, *_ = grow(
            np.random.default_rng(seed),
            criterion,
            n=200,
            n_candidates=1,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            min_child_fraction=fraction,
            seed=seed,
        )
        assert_well_formed(tree)
        assert tree.depths().max() <= max_depth
        sizes = [len(rows) for rows in tree.rows_of_nodes()]
        assert min(sizes) >= min_samples_leaf
        for node in np.flatnonzero(tree.feature != LEAF):
            assert sizes[node] >= min_samples_split
            assert min(sizes[tree.left[node]], sizes[tree.left[node] + 1]) >= fraction * sizes[node]


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_sit_in_the_leaf_that_a_plain_traversal_finds(weighted):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        tree, *_ = grow(rng, n=150, weighted=weighted, n_candidates=2, seed=seed)
        expected = [tree.path(tree.codes[:, row])[-1] for row in range(150)]
        assert tree.node_of_row.tolist() == expected
        # Rows that the tree has never seen, with codes it has never seen, in any order.
        others = rng.integers(0, 256, (4, 90)).astype(np.uint8)
        rows = rng.integers(0, 90, 40).astype(np.uint32)
        expected = [tree.path(others[:, row])[-1] for row in rows]
        assert tree.find_nodes(others, rows).tolist() == expected
        # They stand together in every node that they pass, in their old order in a leaf.
        for node, found in enumerate(tree.sort_into_leaves(others, rows)):
            passed = [row for row in rows.tolist() if node in tree.path(others[:, row])]
            assert sorted(found.tolist()) == sorted(passed)
            assert tree.feature[node] != LEAF or found.tolist() == passed


@given(st.lists(st.integers(0, 8).map(lambda code: MISSING if code == 8 else code)), st.data())
def test_a_node_is_parted_without_a_change_of_order(column, data):
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
    n_left = partition(of_row, rows, 0, code, missing_left, categorical, subsets, buffer)
    assert n_left == len(sides[0])
    assert rows.tolist() == sides[0] + sides[1]


def test_the_seed_decides_which_features_are_tried():
    def arrays(seed):
        return grow(np.random.default_rng(0), n=150, n_candidates=1, seed=seed)[0].arrays()

    for a, b in zip(arrays(1), arrays(1), strict=True):
        assert np.array_equal(a, b)
    assert len({arrays(seed)[0].tobytes() for seed in range(10)}) > 5


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_tree_of_hardly_any_rows_is_a_tree(n):
    codes = np.arange(3 * n, dtype=np.uint8).reshape(3, n)
    time, event = np.arange(n, dtype=float), np.ones(n, bool)
    tree = Tree(codes, np.zeros(3, bool), time, event, None)
    assert tree.n_nodes == (3 if n == 2 else 1)
    assert len(tree.node_of_row) == n


def test_missing_values_follow_the_larger_child_where_a_node_saw_none():
    time, event = np.arange(30.0), np.ones(30, bool)
    for n_left in (10, 20):
        codes = (np.arange(30) >= n_left).astype(np.uint8)[None]
        tree = Tree(codes, np.zeros(1, bool), time, event, None, VARIANCE)
        assert tree.n_nodes == 3
        missing = tree.find_nodes(np.array([[MISSING]], np.uint8), np.zeros(1, np.uint32))
        larger = tree.left[0] + (n_left == 10)
        assert missing == [larger]


def test_a_tree_may_split_by_categories_everywhere():
    rng = np.random.default_rng(4)
    n = 300
    codes = rng.integers(0, 200, (2, n)).astype(np.uint8)
    time, event = np.arange(n, dtype=float), np.ones(n, bool)
    tree = Tree(codes, np.ones(2, bool), time, event, None, QUANTILE)
    assert len(tree.subsets) > 16
    assert_well_formed(tree)
    assert tree.node_of_row.tolist() == [tree.path(codes[:, row])[-1] for row in range(n)]


@pytest.mark.parametrize(
    ("criterion", "weighted", "late", "categories"),
    [
        (CENSORED_QUANTILE, False, False, False),
        (CENSORED_QUANTILE, True, True, False),
        (CENSORED_QUANTILE, False, False, True),
        (QUANTILE, True, False, True),
        (VARIANCE, False, False, False),
        (LOGRANK, True, True, True),
    ],
)
def test_copying_deep_nodes_changes_nothing(criterion, weighted, late, categories, monkeypatch):
    n, block_rows = 500, 64
    rng = np.random.default_rng([criterion, weighted])
    codes, time, event, weight = make_table(rng, n=n, n_features=3, n_codes=8, missing=0.05)
    time = time + np.sort(rng.random(n))
    weight = weight if weighted else None
    entry = make_entries(rng, time) if late else None
    categorical = np.array([False, categories, False])

    def tree(most_copied):
        monkeypatch.setattr(scratch_room, "BLOCK_ROWS", most_copied)
        return Tree(codes, categorical, time, event, weight, criterion, 2, entry=entry)

    read_in_place, copied = tree(0), tree(block_rows)
    sizes = [len(rows) for rows in copied.rows_of_nodes()]
    inner = copied.feature != LEAF
    # Nodes above the limit, several blocks, and splits within them.
    assert sum(size > block_rows for size in sizes) >= 2
    assert sum(size <= block_rows for size, split in zip(sizes, inner, strict=True) if split) > 20
    assert len(copied.subsets) > 5 or not categories
    for a, b in zip(read_in_place.arrays(), copied.arrays(), strict=True):
        assert np.array_equal(a, b)
    assert copied.node_of_row.tolist() == [copied.path(codes[:, row])[-1] for row in range(n)]


def test_nodes_of_a_copied_block_are_split_best_too(monkeypatch):
    n = 300
    monkeypatch.setattr(scratch_room, "BLOCK_ROWS", 200)
    rng = np.random.default_rng(11)
    codes, time, event, weight = make_table(rng, n=n, n_features=2, n_codes=5, missing=0.05)
    tree = Tree(codes, np.zeros(2, bool), time, event, weight, VARIANCE, min_samples_leaf=40)
    assert (tree.feature != LEAF).sum() >= 3
    assert_grown_greedily(tree, time, event, weight, VARIANCE, NO_LIMIT, 2, 40, 0.0)


def test_of_many_features_of_which_few_are_tried_no_node_is_copied():
    few, many = COPIED_PER_CANDIDATE, COPIED_PER_CANDIDATE + 1
    assert len(make_scratch(1, 5000, few, 2, 1, 1, False).own_rows) == BLOCK_ROWS
    assert len(make_scratch(1, 5000, many, 2, 1, 1, False).own_rows) == 0
    assert len(make_scratch(1, 50, few, 2, 1, 1, False).own_rows) == 50


def list_with_rows(tree, codes):
    """Drop other rows into a grown tree and list its nodes, as for an honest tree."""
    rows = np.arange(codes.shape[1], dtype=np.uint32)
    sizes = [len(its_rows) for its_rows in tree.sort_into_leaves(codes, rows)]
    listed = np.full(tree.n_nodes, 7, np.int32)
    n_listed = list_by_level(tree.nodes, listed)
    return sizes, listed[:n_listed].tolist()


@given(st.integers(0, 10**6), st.sampled_from([1, 2, 5, 30]))
def test_nodes_are_listed_level_by_level_without_those_that_part_no_rows(seed, n_rows):
    rng = np.random.default_rng(seed)
    tree, *_ = grow(rng, n=60, n_candidates=2, seed=seed)
    codes = rng.choice([0, 1, 2, 3, 4, 5, 30, 60, 150, MISSING], (4, n_rows)).astype(np.uint8)
    sizes, listed = list_with_rows(tree, codes)
    through = [len(rows) for rows in tree.rows_of_nodes(codes)]
    assert sizes == through

    def parts_rows(node):
        left = tree.left[node]
        return tree.feature[node] != LEAF and through[left] > 0 and through[left + 1] > 0

    # The nodes that part the rows, the leaves that have any, and how many of the former are
    # passed on the way to each.
    kept, level = [], {}
    for row in range(n_rows):
        passed = [node for node in tree.path(codes[:, row]) if parts_rows(node)]
        for depth, node in enumerate([*passed, tree.path(codes[:, row])[-1]]):
            kept.append(node)
            level[node] = depth
    assert sorted(listed) == sorted(set(kept))
    levels = [level[node] for node in listed]
    assert levels == sorted(levels)
    # A split is followed, in its turn, by what its left and its right side have come to.
    above = [node for node in listed if parts_rows(node)]
    for side, node in enumerate(listed[1:]):
        child = tree.left[above[side // 2]] + side % 2
        rows = {row for row in range(n_rows) if child in tree.path(codes[:, row])}
        assert rows == {row for row in range(n_rows) if node in tree.path(codes[:, row])}


def test_a_tree_whose_rows_all_go_one_way_is_one_leaf():
    tree, *_ = grow(np.random.default_rng(0))
    assert tree.n_nodes > 10
    _, listed = list_with_rows(tree, np.repeat(tree.codes[:, :1], 5, axis=1))
    assert listed == [tree.path(tree.codes[:, 0])[-1]]


def test_a_full_tree_keeps_all_its_nodes():
    tree, *_ = grow(np.random.default_rng(1))
    _, listed = list_with_rows(tree, tree.codes)
    assert sorted(listed) == list(range(tree.n_nodes))


def test_values_larger_than_any_seen_do_not_follow_the_missing_ones():
    time = np.arange(30.0)
    codes = np.random.default_rng(0).integers(0, 5, 30).astype(np.uint8)
    codes[20:] = 255
    X = np.where(codes == 255, np.nan, codes.astype(float))[:, None]
    # Training values end at 4 in the half that chooses the splits of each tree.
    forest = CensoredQuantileForest(
        criterion="variance", honest=False, max_samples=None, max_depth=1, n_estimators=1
    )
    four, more, missing = forest.fit(X, time).predict([[4.0], [200.0], [np.nan]])
    assert four == more < 20 <= missing


def test_levels_a_node_did_not_see_follow_its_larger_child():
    """Level 'c' is only in the rows of another tree half: it goes with the 70."""
    column = np.repeat(np.array([0, 1], dtype=np.uint8), [30, 70])
    subset = np.array([0b10, 0, 0, 0], dtype=np.uint64)
    send_unseen_left(column, np.arange(100, dtype=np.uint32), subset)
    assert subset[0] == np.uint64(2**64 - 2)  # every level but 0
    assert (subset[1:] == np.uint64(2**64 - 1)).all()
