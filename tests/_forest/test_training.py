"""Training: the same bits however the forest is grown, and arrays that mean what they say."""

from dataclasses import fields, replace

import numpy as np
import pytest

from cqrf._forest import training
from cqrf._forest.sampling import derive_tree_keys, draw_subsamples, subsample_units
from cqrf._forest.spec import LEAF, Forest, Sampling
from cqrf._forest.training import grow_batch, grow_forest, scale_criterion
from oracles.criteria import CRITERIA
from support.forests import (
    SEED,
    find_node,
    grow_small_forest,
    list_nodes,
    make_forest_rows,
    make_growing,
    make_sampling,
    rows_of_leaf,
)

samplings = pytest.mark.parametrize(
    ("bootstrap", "honest"), [(b, h) for b in (False, True) for h in (False, True)]
)


def assert_same(a, b):
    for field in fields(Forest):
        assert np.array_equal(getattr(a, field.name), getattr(b, field.name)), field.name


def describe(forest, tree, name_of_rank):
    """A tree as nested tuples, with rows by name: free of every numbering."""

    def describe_node(node):
        if forest.feature[node] == LEAF:
            return tuple(int(name_of_rank[rank]) for rank in rows_of_leaf(forest, node))
        split = int(forest.feature[node])
        where = int(forest.code[node])
        if forest.categorical[split]:
            where = tuple(forest.subsets[where].tolist())
        left = int(forest.left[node])
        sides = describe_node(left), describe_node(left + 1)
        return split, where, bool(forest.missing_left[node]), *sides

    return describe_node(int(forest.roots[tree]))


def draws_of(sampling, tree):
    """How often a tree draws each unit, negative in its leaf half."""
    units, counts = subsample_units(sampling, SEED, tree)
    draws = np.zeros(sampling.n_units, np.int32)
    draws[units] = counts
    return draws


def rows_drawn(draws, unit_of_row, sign):
    """Rows of the units whose draws have this sign, ascending, as often as drawn."""
    return np.repeat(np.arange(len(unit_of_row)), np.maximum(0, sign * draws[unit_of_row]))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_number_of_threads_changes_no_bit(weighted):
    alone = grow_small_forest(40, weighted=weighted)
    assert_same(alone, grow_small_forest(40, weighted=weighted, n_jobs=2))


def test_the_size_of_a_batch_changes_no_bit(monkeypatch):
    sizes, inner = [], training.grow_batch

    def record(rows, sampling, growing, keys):
        sizes.append(len(keys.growth))
        return inner(rows, sampling, growing, keys)

    monkeypatch.setattr(training, "grow_batch", record)
    forests = []
    for work in (1, 10**12):
        monkeypatch.setattr(training, "BATCH_WORK", work)
        forests.append(grow_small_forest(50))
    assert set(sizes) == {1, 6, 2}
    assert_same(*forests)


@pytest.mark.kernel
@pytest.mark.parametrize("criterion", CRITERIA)
def test_rows_of_the_same_weight_are_rows_without_weights(criterion):
    rows, order = make_forest_rows()

    def grow(rows):
        return grow_forest(rows, make_sampling(order), make_growing(criterion), 8, SEED, 1)

    plain = grow(rows)
    assert (plain.feature != LEAF).sum() > 30
    # Powers of two change no digit. Light rows count as much where rows are counted.
    for weight in (1.0, 0.25, 8.0):
        found = grow(rows._replace(weight=np.full(len(order), weight, np.float32)))
        assert_same(found, replace(plain, importance=weight * plain.importance))


def test_the_seed_decides_the_forest():
    forest = grow_small_forest(5)
    assert_same(forest, grow_small_forest(5))
    other = grow_small_forest(5, seed=SEED + 1)
    assert not np.array_equal(forest.leaf_rows, other.leaf_rows)


def test_a_tree_does_not_depend_on_the_number_of_trees():
    _, order = make_forest_rows()
    few, many = grow_small_forest(3), grow_small_forest(40)
    for tree in range(3):
        assert describe(few, tree, order) == describe(many, tree, order)
    n_nodes, n_leaves = len(few.feature), len(few.leaf_offsets)
    for name in ("feature", "code", "missing_left", "left"):
        assert np.array_equal(getattr(few, name), getattr(many, name)[:n_nodes])
    assert np.array_equal(few.leaf_offsets, many.leaf_offsets[:n_leaves])
    assert np.array_equal(few.leaf_rows, many.leaf_rows[: len(few.leaf_rows)])


def test_trees_of_a_forest_differ():
    _, order = make_forest_rows()
    forest = grow_small_forest(30)
    assert len({describe(forest, tree, order) for tree in range(30)}) == 30


@samplings
def test_the_arrays_of_a_forest_are_well_formed(bootstrap, honest):
    rows, order = make_forest_rows()
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
    ends = [*forest.roots[1:], len(forest.feature)]
    n_subsets = 0
    for tree, (start, end) in enumerate(zip(forest.roots, ends, strict=True)):
        nodes = list_nodes(forest, start)
        assert sorted(nodes) == list(range(start, end))
        inner = [node for node in nodes if forest.feature[node] != LEAF]
        assert inner, "a tree without splits would test nothing"
        on_category = [v for v in sorted(inner) if forest.categorical[forest.feature[v]]]
        codes = [int(forest.code[v]) for v in on_category]
        assert codes == [n_subsets + k for k in range(len(on_category))]
        n_subsets += len(on_category)

        leaves = [rows_of_leaf(forest, node) for node in nodes if forest.feature[node] == LEAF]
        assert all(len(leaf) > 0 for leaf in leaves)
        assert all((np.diff(leaf) >= (0 if bootstrap else 1)).all() for leaf in leaves)
        # The leaves share out exactly the rows that were drawn to fill them.
        expected = rows_drawn(draws_of(sampling, tree), order, -1 if honest else 1)
        assert np.array_equal(np.sort(np.concatenate(leaves)), expected)
    assert n_subsets == len(forest.subsets)


@samplings
def test_each_row_of_a_leaf_reaches_it(bootstrap, honest):
    rows, order = make_forest_rows()
    sampling = make_sampling(order, 100, bootstrap, honest)
    forest = grow_forest(rows, sampling, make_growing(), 6, SEED, 1)
    for root in forest.roots:
        for node in list_nodes(forest, root):
            if forest.feature[node] == LEAF:
                for rank in rows_of_leaf(forest, node):
                    assert find_node(forest, root, rows.codes[:, rank]) == node


@samplings
def test_each_tree_receives_its_own_rows(bootstrap, honest):
    # Clusters have more rows than units are drawn, so that the first arrays are too small.
    cluster = np.random.default_rng(3).integers(0, 12, 150).astype(np.int32)
    sampling = Sampling(cluster, 12, 5, bootstrap, honest)
    ranks, starts, _ = draw_subsamples(sampling, derive_tree_keys(sampling, SEED, range(2, 6)))
    assert starts[0] == 0
    assert starts[-1] == len(ranks)
    for k, tree in enumerate(range(2, 6)):
        draws = draws_of(sampling, tree)
        for part, sign in enumerate((1, -1)):
            found = ranks[starts[2 * k + part] : starts[2 * k + part + 1]]
            assert np.array_equal(found, rows_drawn(draws, cluster, sign))


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("bootstrap", [False, True])
def test_a_tree_depends_on_its_own_rows_alone(criterion, bootstrap):
    rows, order = make_forest_rows()
    n = len(order)
    sampling = make_sampling(order, 60, bootstrap)
    forest = grow_forest(rows, sampling, make_growing(criterion), 4, SEED, 1)
    rng = np.random.default_rng(1)
    for tree in range(4):
        drawn = draws_of(sampling, tree)[order] != 0
        assert 20 < drawn.sum() < n - 20
        time, event, codes = rows.time.copy(), rows.event.copy(), rows.codes.copy()
        # Rows that were not drawn move anywhere; the others keep their values and order.
        time[~drawn] = rng.exponential(3, (~drawn).sum())
        event[~drawn] = rng.random((~drawn).sum()) < 0.2
        codes[:, ~drawn] = rng.integers(0, 256, (4, (~drawn).sum()))
        again = np.lexsort((~event, time))
        assert not np.array_equal(again, np.arange(n))
        moved = rows._replace(
            codes=np.ascontiguousarray(codes[:, again]), time=time[again], event=event[again]
        )
        other_sampling = sampling._replace(unit_of_row=order[again])
        other = grow_forest(moved, other_sampling, make_growing(criterion), 4, SEED, 1)
        found = describe(other, tree, order[again])
        assert found == describe(forest, tree, order)
        assert len(found) == 5


def test_the_leaf_half_of_an_honest_tree_never_chooses_a_split():
    rows, order = make_forest_rows()
    sampling = make_sampling(order)

    def splits(rows, tree):
        keys = derive_tree_keys(sampling, SEED, range(tree, tree + 1))
        trees, _ = grow_batch(rows, sampling, make_growing(), keys)
        on_number = (trees.feature != LEAF) & ~rows.categorical[trees.feature]
        arrays = (trees.feature, trees.code[on_number], trees.missing_left, trees.subsets)
        return [array.tolist() for array in arrays]

    for tree in range(4):
        filling = draws_of(sampling, tree)[order] < 0
        event = rows.event.copy()
        event[filling] = ~event[filling]
        assert splits(rows._replace(event=event), tree) == splits(rows, tree)
        event = np.where(filling, rows.event, ~rows.event)
        assert splits(rows._replace(event=event), tree) != splits(rows, tree)


def test_clusters_fall_whole_into_one_half_of_a_tree():
    rows, _ = make_forest_rows()
    cluster = np.random.default_rng(3).integers(0, 30, 150).astype(np.int32)
    sampling = Sampling(cluster, 30, 16, False, True)
    forest = grow_forest(rows, sampling, make_growing(), 10, SEED, 1)
    for tree, root in enumerate(forest.roots):
        leaves = [node for node in list_nodes(forest, root) if forest.feature[node] == LEAF]
        ranks = np.concatenate([rows_of_leaf(forest, node) for node in leaves])
        filling = np.flatnonzero(draws_of(sampling, tree) < 0)
        assert len(filling) == 8
        assert np.array_equal(np.sort(ranks), np.flatnonzero(np.isin(cluster, filling)))


def test_importance_is_the_sum_over_trees():
    rows, order = make_forest_rows()
    rows.codes[3] = 7
    sampling, growing = make_sampling(order), make_growing()
    keys = [derive_tree_keys(sampling, SEED, range(t, t + 1)) for t in range(20)]
    gains = [grow_batch(rows, sampling, growing, each)[1][0] for each in keys]
    found = grow_forest(rows, sampling, growing, 20, SEED, 1).importance
    np.testing.assert_allclose(found, sum(gains))
    assert (found[:3] > 0).all()
    assert found[3] == 0


def test_a_tree_with_one_row_in_its_leaf_half_is_a_single_leaf():
    rows, order = make_forest_rows()
    forest = grow_forest(rows, make_sampling(order, 1), make_growing(), 5, SEED, 1)
    assert (forest.feature == LEAF).all()
    assert np.diff(forest.leaf_offsets).tolist() == [1] * 5


def test_the_criterion_is_scaled_to_the_largest_time_of_rows_with_positive_weight(monkeypatch):
    rows, order = make_forest_rows(weighted=True)
    rows.time[-1], rows.weight[-1] = 1e9, 0.0
    found = []

    def record(growing, largest):
        found.append(largest)
        return scale_criterion(growing, largest)

    monkeypatch.setattr(training, "scale_criterion", record)
    grow_forest(rows, make_sampling(order), make_growing(), 1, SEED, 1)
    assert found == [rows.time[-2]]


def test_progress_receives_every_batch():
    rows, order = make_forest_rows()
    numbers = []

    def progress(batches, n_batches):
        for batch in batches:
            numbers.append(n_batches)
            yield batch

    sampling = make_sampling(order)
    forest = grow_forest(rows, sampling, make_growing(), 40, SEED, 1, progress)
    assert numbers == [len(numbers)] * len(numbers)
    assert len(numbers) > 1
    assert_same(forest, grow_small_forest(40))
