"""The forest: the same bits however it is grown, and arrays that mean what they say."""

from dataclasses import replace

import numpy as np
import pytest
from cqrf._forest.labels import CENSORED_QUANTILE, LOGRANK, QUANTILE, VARIANCE

from cqrf._forest import training as forest_room
from cqrf._forest.grower import CODE, LEAF
from cqrf._forest.sampling import draw_for_tree
from cqrf._forest.training import (
    Forest,
    Growing,
    Rows,
    Sampling,
    draw_lots,
    draw_ranks,
    grow_forest,
    grow_trees,
    in_bag_bits,
    settle_trees,
)

LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
MISSING = 255
SEED = 12


def make_rows(n=150, seed=0, weighted=False):
    """Rows by rank, with a category and missing values; the row numbers are shuffled."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 12, (4, n)).astype(np.uint8)
    time = rng.exponential(1 + 0.2 * codes[0] + 0.5 * (codes[1] % 3)).round(1)
    event = rng.random(n) < 0.7
    codes[rng.random((4, n)) < 0.08] = MISSING
    order = np.lexsort((~event, time))
    return Rows(
        codes=np.ascontiguousarray(codes[:, order]),
        categorical=np.array([False, True, False, False]),
        time=time[order],
        event=event[order],
        weight=(rng.integers(1, 9, n) / 4).astype(np.float32) if weighted else None,
    ), order.astype(np.int32)


def make_sampling(order, size=None, bootstrap=False, honest=True):
    return Sampling(order, len(order), size or len(order) // 2, bootstrap, honest)


def make_growing(criterion=CENSORED_QUANTILE):
    return Growing(criterion, LEVELS, 2, 1000, 6, 2, 0.05)


def grow(n_trees=20, *, n=150, n_jobs=1, weighted=False, seed=SEED, **sampling):
    rows, order = make_rows(n, weighted=weighted)
    drawn = make_sampling(order, **sampling)
    return grow_forest(rows, drawn, make_growing(), n_trees, seed, n_jobs)


def assert_same(a, b):
    for name in Forest.__dataclass_fields__:
        assert np.array_equal(getattr(a, name), getattr(b, name)), name


def node_ranges(forest):
    return zip(forest.roots, [*forest.roots[1:], len(forest.feature)], strict=True)


def reachable(forest, root):
    found, waiting = [], [int(root)]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if forest.feature[node] != LEAF:
            waiting += [int(forest.left[node]), int(forest.left[node]) + 1]
    return found


def leaf_rows(forest, node):
    leaf = forest.left[node]
    return forest.leaf_rows[forest.leaf_offsets[leaf] : forest.leaf_offsets[leaf + 1]]


def describe(forest, tree, name_of_rank):
    """A tree as nested tuples, with rows by name: free of every numbering."""

    def walk(node):
        if forest.feature[node] == LEAF:
            return tuple(int(name_of_rank[rank]) for rank in leaf_rows(forest, node))
        split = int(forest.feature[node])
        where = int(forest.code[node])
        if forest.categorical[split]:
            where = tuple(forest.subsets[where].tolist())
        left = int(forest.left[node])
        return split, where, bool(forest.missing_left[node]), walk(left), walk(left + 1)

    return walk(int(forest.roots[tree]))


def drawn_units(sampling, tree, seed=SEED):
    return draw_for_tree(seed, tree, *sampling[1:])


def rows_drawn(draws, unit_of_row, sign):
    """Rows of the units whose draws have this sign, ascending, as often as drawn."""
    return np.repeat(np.arange(len(unit_of_row)), np.maximum(0, sign * draws[unit_of_row]))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_number_of_threads_changes_no_bit(weighted):
    assert_same(grow(40, weighted=weighted), grow(40, weighted=weighted, n_jobs=2))


def test_the_size_of_a_batch_changes_no_bit(monkeypatch):
    sizes, inner = [], forest_room.grow_trees

    def record(rows, sampling, growing, lots):
        sizes.append(len(lots.tree_seeds))
        return inner(rows, sampling, growing, lots)

    monkeypatch.setattr(forest_room, "grow_trees", record)
    forests = []
    for work in (1, 10**12):
        monkeypatch.setattr(forest_room, "BATCH_WORK", work)
        forests.append(grow(50))
    assert set(sizes) == {1, 6, 2}
    assert_same(*forests)


@pytest.mark.parametrize("criterion", [CENSORED_QUANTILE, QUANTILE, VARIANCE, LOGRANK])
def test_rows_of_the_same_weight_are_rows_without_weights(criterion):
    rows, order = make_rows()

    def forest(rows):
        return grow_forest(rows, make_sampling(order), make_growing(criterion), 8, SEED, 1)

    plain = forest(rows)
    assert (plain.feature != LEAF).sum() > 30
    # Powers of two change no digit. Light rows count as much where rows are counted.
    for weight in (1.0, 0.25, 8.0):
        found = forest(rows._replace(weight=np.full(len(order), weight, np.float32)))
        assert_same(found, replace(plain, importance=weight * plain.importance))


def test_the_seed_decides_the_forest():
    assert_same(grow(5), grow(5))
    a, b = grow(5), grow(5, seed=SEED + 1)
    assert not np.array_equal(a.leaf_rows, b.leaf_rows)


def test_a_tree_does_not_depend_on_the_number_of_trees():
    _, order = make_rows()
    few, many = grow(3), grow(40)
    for tree in range(3):
        assert describe(few, tree, order) == describe(many, tree, order)
    n_nodes, n_leaves = len(few.feature), len(few.leaf_offsets)
    for name in ("feature", "code", "missing_left", "left"):
        assert np.array_equal(getattr(few, name), getattr(many, name)[:n_nodes])
    assert np.array_equal(few.leaf_offsets, many.leaf_offsets[:n_leaves])
    assert np.array_equal(few.leaf_rows, many.leaf_rows[: len(few.leaf_rows)])


def test_trees_of_a_forest_differ():
    _, order = make_rows()
    forest = grow(30)
    assert len({describe(forest, tree, order) for tree in range(30)}) == 30


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("honest", [False, True])
def test_the_arrays_of_a_forest_are_well_formed(bootstrap, honest):
    rows, order = make_rows()
    sampling = make_sampling(order, 100, bootstrap, honest)
    forest = grow_forest(rows, sampling, make_growing(), 12, SEED, 1)
    assert len(forest.roots) == 12
    assert forest.roots[0] == 0
    assert forest.leaf_offsets[0] == 0
    assert forest.leaf_offsets[-1] == len(forest.leaf_rows)
    assert (np.diff(forest.leaf_offsets) >= 0).all()
    is_leaf = forest.feature == LEAF
    assert len(forest.leaf_offsets) == is_leaf.sum() + 1
    assert sorted(forest.left[is_leaf]) == list(range(is_leaf.sum()))
    n_subsets = 0
    for tree, (start, end) in enumerate(node_ranges(forest)):
        nodes = reachable(forest, start)
        assert sorted(nodes) == list(range(start, end))
        inner = [node for node in nodes if forest.feature[node] != LEAF]
        assert inner, "a stump would test nothing"
        category = [v for v in sorted(inner) if forest.categorical[forest.feature[v]]]
        assert [int(forest.code[v]) for v in category] == [
            n_subsets + k for k in range(len(category))
        ]
        n_subsets += len(category)

        leaves = [leaf_rows(forest, node) for node in nodes if forest.feature[node] == LEAF]
        assert all(len(leaf) > 0 for leaf in leaves)
        assert all((np.diff(leaf) >= (0 if bootstrap else 1)).all() for leaf in leaves)
        # The leaves share out exactly the rows that were drawn to fill them.
        expected = rows_drawn(drawn_units(sampling, tree), order, -1 if honest else 1)
        assert np.array_equal(np.sort(np.concatenate(leaves)), expected)
    assert n_subsets == len(forest.subsets)


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("honest", [False, True])
def test_each_row_of_a_leaf_walks_there(bootstrap, honest):
    rows, order = make_rows()
    sampling = make_sampling(order, 100, bootstrap, honest)
    forest = grow_forest(rows, sampling, make_growing(), 6, SEED, 1)
    for root in forest.roots:
        for node in reachable(forest, root):
            if forest.feature[node] != LEAF:
                continue
            for rank in leaf_rows(forest, node):
                assert walk(forest, root, rows.codes[:, rank]) == node


def walk(forest, root, codes):
    node = int(root)
    while forest.feature[node] != LEAF:
        split = forest.feature[node]
        code, at = int(codes[split]), int(forest.code[node])
        if code == MISSING:
            left = forest.missing_left[node]
        elif forest.categorical[split]:
            left = (int(forest.subsets[at, code // 64]) >> (code % 64)) & 1
        else:
            left = code <= at
        node = int(forest.left[node]) + (not left)
    return node


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("honest", [False, True])
def test_each_tree_is_given_its_own_rows(bootstrap, honest):
    # Clusters have more rows than are drawn of them, so that there is no room for all at first.
    cluster = np.random.default_rng(3).integers(0, 12, 150).astype(np.int32)
    sampling = Sampling(cluster, 12, 5, bootstrap, honest)
    ranks, starts = draw_ranks(sampling, draw_lots(sampling, SEED, 2, 6))
    assert starts[0] == 0
    assert starts[-1] == len(ranks)
    for k, tree in enumerate(range(2, 6)):
        draws = drawn_units(sampling, tree)
        for part, sign in enumerate((1, -1)):
            found = ranks[starts[2 * k + part] : starts[2 * k + part + 1]]
            assert np.array_equal(found, rows_drawn(draws, cluster, sign))


# Two trees as they are grown, the right side first: 0 parts into 1 and 2, these two by a
# category into 5 and 6, and into 3 and 4. Leaves have no child.
NOTHING = [LEAF, 0, 0, 77]
GROWN = np.array([[0, 3, 0, 1], [1, 1, 1, 5], [1, 0, 0, 3]] + [NOTHING] * 4, np.int32)
SUBSETS = np.array([[0b01, 0, 0, 0], [0b10, 0, 0, 0]], np.uint64)
# Ranks 0 to 9 end in 5 3 6 4 5 4 3 5 3 6.
CODES = np.array([[0, 9, 0, 9, 1, 9, 255, 2, 9, 3], [1, 0, 0, 1, 255, 255, 0, 1, 0, 7]], np.uint8)


def settle(honest, ranks, starts):
    n = CODES.shape[1]
    rows = Rows(CODES, np.array([False, True]), np.zeros(n), np.zeros(n, bool))
    first = np.hstack([GROWN, np.full((len(GROWN), 2), -9, np.int32)])
    # The same tree, with its subsets in the other order.
    second = first.copy()
    second[[1, 2], CODE] = first[[2, 1], CODE]
    nodes, subsets = np.vstack([first, second]), np.vstack([SUBSETS, SUBSETS[::-1]])
    grown = nodes, np.array([0, 7, 14]), subsets, np.array([0, 2, 4])
    return settle_trees(rows, honest, np.array(ranks, np.uint32), np.array(starts), *grown)


def test_nodes_stand_level_by_level_and_leaves_list_their_rows_in_time_order():
    ranks = [0, 1, 2, 3, 4, 7, 1, 1, 3, 6, 7, 9]
    trees = settle(False, ranks, [0, 6, 6, 12, 12])
    assert trees.n_nodes.tolist() == [7, 7]
    assert trees.feature.tolist() == 2 * ([0, 1, 1] + [LEAF] * 4)
    assert trees.code.tolist() == 2 * [3, 0, 0, 0, 0, 0, 0]
    assert trees.missing_left.tolist() == 2 * ([False, True] + [False] * 5)
    assert trees.subsets[:, 0].tolist() == [0b10, 0b01] * 2
    assert trees.leaf_sizes.tolist() == [3, 1, 1, 1, 1, 1, 3, 1]
    assert trees.leaf_rows.tolist() == [0, 4, 7, 2, 1, 3, 7, 9, 1, 1, 6, 3]


def test_an_honest_tree_is_filled_with_its_other_half_and_loses_empty_nodes():
    # Leaves 3 and 6 of the first tree stay empty, and leaf 4 of the second.
    ranks = [0, 1, 3, 4, 5, 7, 2, 0, 2, 6, 8, 8]
    trees = settle(True, ranks, [0, 2, 6, 7, 12])
    assert trees.n_nodes.tolist() == [3, 5]
    assert trees.feature.tolist() == [0, LEAF, LEAF, 0, 1, LEAF, LEAF, LEAF]
    assert trees.code.tolist() == [3, 0, 0, 3, 0, 0, 0, 0]
    assert trees.missing_left.tolist() == [False] * 4 + [True] + [False] * 3
    assert trees.subsets[:, 0].tolist() == [0b10]
    assert trees.leaf_sizes.tolist() == [2, 2, 3, 1, 1]
    assert trees.leaf_rows.tolist() == [4, 7, 3, 5, 6, 8, 8, 0, 2]


@pytest.mark.parametrize("criterion", [CENSORED_QUANTILE, QUANTILE, VARIANCE, LOGRANK])
@pytest.mark.parametrize("bootstrap", [False, True])
def test_a_tree_depends_on_its_own_rows_alone(criterion, bootstrap):
    rows, order = make_rows()
    n = len(order)
    sampling = make_sampling(order, 60, bootstrap)
    # Numeric features only: the order of categories is another test's matter.
    rows = rows._replace(categorical=np.zeros(4, bool))
    forest = grow_forest(rows, sampling, make_growing(criterion), 4, SEED, 1)
    rng = np.random.default_rng(1)
    for tree in range(4):
        drawn = drawn_units(sampling, tree)[order] != 0
        assert 20 < drawn.sum() < n - 20
        time, event, codes = rows.time.copy(), rows.event.copy(), rows.codes.copy()
        # Rows that were not drawn move anywhere; the others keep their values and order.
        time[~drawn] = rng.exponential(3, (~drawn).sum())
        event[~drawn] = rng.random((~drawn).sum()) < 0.2
        codes[:, ~drawn] = rng.integers(0, 256, (4, (~drawn).sum()))
        again = np.lexsort((~event, time))
        assert not np.array_equal(again, np.arange(n))
        moved = Rows(
            np.ascontiguousarray(codes[:, again]),
            rows.categorical,
            time[again],
            event[again],
            None,
        )
        other = grow_forest(
            moved, sampling._replace(unit_of_row=order[again]), make_growing(criterion), 4, SEED, 1
        )
        found = describe(other, tree, order[again])
        assert found == describe(forest, tree, order)
        assert len(found) == 5


def test_the_leaf_half_of_an_honest_tree_never_chooses_a_split():
    rows, order = make_rows()
    sampling = make_sampling(order)

    def splits(rows, tree):
        grown, _ = grow_trees(
            rows, sampling, make_growing(), draw_lots(sampling, SEED, tree, tree + 1)
        )
        return [array.tolist() for array in grown[:5]]

    for tree in range(4):
        filling = drawn_units(sampling, tree)[order] < 0
        event = rows.event.copy()
        event[filling] = ~event[filling]
        assert splits(rows._replace(event=event), tree) == splits(rows, tree)
        event = np.where(filling, rows.event, ~rows.event)
        assert splits(rows._replace(event=event), tree) != splits(rows, tree)


def test_clusters_fall_whole_into_one_half_of_a_tree():
    rows, _ = make_rows()
    cluster = np.random.default_rng(3).integers(0, 30, 150).astype(np.int32)
    sampling = Sampling(cluster, 30, 16, False, True)
    forest = grow_forest(rows, sampling, make_growing(), 10, SEED, 1)
    for tree, root in enumerate(forest.roots):
        nodes = [node for node in reachable(forest, root) if forest.feature[node] == LEAF]
        ranks = np.concatenate([leaf_rows(forest, node) for node in nodes])
        filling = np.flatnonzero(drawn_units(sampling, tree) < 0)
        assert len(filling) == 8
        assert np.array_equal(np.sort(ranks), np.flatnonzero(np.isin(cluster, filling)))


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("honest", [False, True])
@pytest.mark.parametrize("n_trees", [1, 8, 21])
def test_in_bag_bits_say_who_was_drawn(bootstrap, honest, n_trees):
    _, order = make_rows(40)
    sampling = make_sampling(order, 25, bootstrap, honest)
    bits = in_bag_bits(sampling, n_trees, SEED)
    assert bits.shape == (40, -(-n_trees // 8))
    assert bits.dtype == np.uint8
    for tree in range(8 * bits.shape[1]):
        marked = (bits[:, tree // 8] >> (tree % 8)) & 1
        drawn = drawn_units(sampling, tree) != 0 if tree < n_trees else np.zeros(40, bool)
        assert np.array_equal(marked == 1, drawn)


def test_importance_is_the_sum_over_trees():
    rows, order = make_rows()
    rows.codes[3] = 7
    sampling, growing = make_sampling(order), make_growing()
    lots = [draw_lots(sampling, SEED, t, t + 1) for t in range(20)]
    gains = [grow_trees(rows, sampling, growing, each)[1][0] for each in lots]
    found = grow_forest(rows, sampling, growing, 20, SEED, 1).importance
    np.testing.assert_allclose(found, sum(gains))
    assert (found[:3] > 0).all()
    assert found[3] == 0


def test_a_tree_with_one_row_to_fill_is_a_single_leaf():
    rows, order = make_rows()
    forest = grow_forest(rows, make_sampling(order, 1), make_growing(), 5, SEED, 1)
    assert (forest.feature == LEAF).all()
    assert np.diff(forest.leaf_offsets).tolist() == [1] * 5


def test_progress_sees_every_batch():
    rows, order = make_rows()
    seen = []

    def progress(batches, n_batches):
        for batch in batches:
            seen.append(n_batches)
            yield batch

    sampling = make_sampling(order)
    forest = grow_forest(rows, sampling, make_growing(), 40, SEED, 1, progress)
    assert seen == [len(seen)] * len(seen)
    assert_same(forest, grow(40))
