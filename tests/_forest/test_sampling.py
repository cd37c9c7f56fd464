"""Sampling: sizes are kept, honest halves are disjoint, clusters stay whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._forest.sampling import BAGS, cast_lots, draw_for_tree, draw_rows
from cqrf._runtime.random import derive, draw_without_replacement

seeds = st.integers(0, 2**64 - 1)
units = st.integers(1, 60)


def draw_units(seed, n_units, size, bootstrap, honest):
    return draw_for_tree(seed, 0, n_units, size, bootstrap, honest, 1)


def draws_by_loops(seed, tree, n_units, size, bootstrap, honest, bag_size):
    """How often a tree draws each unit, from the words of chance alone."""
    tree_seed = derive(derive(seed, tree), 0)
    units = list(range(n_units))
    if bag_size > 1:
        bag_seed = derive(derive(seed, BAGS), tree // bag_size)
        units = draw_without_replacement(bag_seed, n_units, n_units // 2).tolist()
    n, draws = len(units), [0] * n_units
    if bootstrap:
        order = draw_without_replacement(derive(tree_seed, 1), n, n).tolist()
        drawn = [(int(word) >> 32) * n >> 32 for word in derive(derive(tree_seed, 0), range(size))]
        in_leaf_half = set(order[n // 2 :])
    else:
        drawn = draw_without_replacement(derive(tree_seed, 0), n, size).tolist()
        in_leaf_half = set(drawn[size // 2 :])
    for place in drawn:
        draws[units[place]] += -1 if honest and place in in_leaf_half else 1
    return [-abs(d) for d in draws] if honest and min(draws) >= 0 else draws


@given(seeds, st.integers(0, 40), st.integers(2, 60), st.data())
def test_draws_equal_loops(seed, tree, n_units, data):
    bag_size, honest = data.draw(st.integers(1, 4)), data.draw(st.booleans())
    n = n_units if bag_size == 1 else n_units // 2
    for bootstrap in (False, True):
        size = data.draw(st.integers(1, n))
        settings = (seed, tree, n_units, size, bootstrap, honest, bag_size)
        assert draw_for_tree(*settings).tolist() == draws_by_loops(*settings)


@given(seeds, units, st.data())
def test_a_subsample_draws_each_unit_at_most_once(seed, n_units, data):
    size = data.draw(st.integers(1, n_units))
    draws = draw_units(seed, n_units, size, False, False)
    assert draws.shape == (n_units,)
    assert set(draws.tolist()) <= {0, 1}
    assert draws.sum() == size


@given(seeds, units, st.data())
def test_an_honest_subsample_has_disjoint_halves_of_the_right_size(seed, n_units, data):
    size = data.draw(st.integers(1, n_units))
    draws = draw_units(seed, n_units, size, False, True)
    assert set(draws.tolist()) <= {-1, 0, 1}
    assert (draws > 0).sum() == size // 2
    assert (draws < 0).sum() == size - size // 2


@given(seeds, units, st.integers(1, 100))
def test_bootstrap_counts_sum_to_the_size(seed, n_units, size):
    draws = draw_units(seed, n_units, size, True, False)
    assert (draws >= 0).all()
    assert draws.sum() == size


@given(seeds, units, st.integers(1, 100))
def test_an_honest_bootstrap_keeps_each_unit_in_one_half(seed, n_units, size):
    # Draws of opposite sign of one unit would cancel: the sizes could not match then.
    honest = draw_units(seed, n_units, size, True, True)
    assert np.array_equal(np.abs(honest), draw_units(seed, n_units, size, True, False))
    assert np.abs(honest).sum() == size


@given(seeds, units, st.data())
def test_honesty_does_not_change_who_is_drawn(seed, n_units, data):
    size = data.draw(st.integers(1, n_units))
    for bootstrap in (False, True):
        honest = draw_units(seed, n_units, size, bootstrap, True)
        assert np.array_equal(honest != 0, draw_units(seed, n_units, size, bootstrap, False) != 0)


def test_bootstrap_halves_share_the_units_evenly():
    # Who could be drawn into which half: with many draws everybody is seen.
    for n_units in (1, 2, 7, 20):
        for seed in range(20):
            draws = draw_units(seed, n_units, 60 * n_units, True, True)
            assert (draws != 0).all()
            assert (draws > 0).sum() == n_units // 2


def test_halves_of_the_bootstrap_do_not_hang_on_how_often_a_unit_is_drawn():
    counts, split = [], []
    for seed in range(400):
        draws = draw_units(seed, 50, 50, True, True)
        counts.append(np.abs(draws[draws != 0]))
        split.append(draws[draws != 0] > 0)
    counts, split = np.concatenate(counts), np.concatenate(split)
    assert split.mean() == pytest.approx(0.5, abs=0.02)
    assert abs(np.corrcoef(counts, split)[0, 1]) < 0.03


@given(seeds, st.integers(1, 8), st.integers(1, 4))
def test_the_leaf_half_is_never_empty(seed, n_units, size):
    assert draw_units(seed, n_units, size, True, True).min() < 0
    assert draw_units(seed, n_units, min(size, n_units), False, True).min() < 0


def test_a_leaf_half_that_would_be_empty_receives_all_units():
    # Two draws from six units: both fall on the split side in about a quarter of the trees.
    all_in_leaf, mixed = 0, 0
    for seed in range(1000):
        draws = draw_units(seed, 6, 2, True, True)
        all_in_leaf += not (draws > 0).any()
        mixed += (draws > 0).any()
    assert mixed == pytest.approx(500, abs=60)
    assert all_in_leaf == 1000 - mixed
    assert draw_units(5, 1, 4, True, True).tolist() == [-4]
    assert draw_units(5, 1, 1, False, True).tolist() == [-1]


def rows_of_trees(seed, first, end, unit_of_row, n_units, room, *how):
    """What draw_rows writes and counts if there is room for so many rows."""
    *lots, _ = cast_lots(seed, first, end, n_units, how[1], how[3])
    starts = np.full(2 * (end - first) + 1, -1)
    rows, late = np.full((2, room + 1), 999, np.uint32)
    draws = np.full(n_units, 999, np.int32)
    size, _, honest, _ = how
    n = draw_rows(*lots, size, honest, unit_of_row, draws, starts, rows, late)
    return n, starts, rows


@given(seeds, st.integers(2, 8), st.booleans(), st.booleans(), st.sampled_from([1, 3]), st.data())
def test_rows_are_listed_ascending_as_often_as_their_unit_is_drawn(
    seed, n_units, bootstrap, honest, bag_size, data
):
    # A row of unit -1 belongs to none.
    unit_of_row = np.array(
        data.draw(st.lists(st.integers(-1, n_units - 1), min_size=1, max_size=30)), np.int32
    )
    size = data.draw(st.integers(1, n_units // 2 if not bootstrap else 20))
    how = (size, bootstrap, honest, bag_size)
    expected, expected_starts = [], [0]
    for tree in range(3, 6):
        draws = draws_by_loops(seed, tree, n_units, *how)
        for sign in (1, -1):
            for row, unit in enumerate(unit_of_row.tolist()):
                expected += [row] * (0 if unit < 0 else max(0, sign * draws[unit]))
            expected_starts.append(len(expected))
    # With just enough room, with more, and with too little, when only the count matters.
    for room in (len(expected), len(expected) + 7, len(expected) // 2):
        n, starts, rows = rows_of_trees(seed, 3, 6, unit_of_row, n_units, room, *how)
        assert n == len(expected)
        if room >= n:
            assert rows[:n].tolist() == expected
            assert starts.tolist() == expected_starts


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("honest", [False, True])
def test_clusters_are_drawn_whole_and_never_shared_between_halves(bootstrap, honest):
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, 15, 90).astype(np.int32)
    for seed in range(50):
        _, starts, rows = rows_of_trees(seed, 0, 1, cluster, 15, 2000, 9, bootstrap, honest, 1)
        split, leaf = rows[: starts[1]], rows[starts[1] : starts[2]]
        assert not set(cluster[split]) & set(cluster[leaf])
        for drawn in (split, leaf):
            whole = np.flatnonzero(np.isin(cluster, cluster[drawn]))
            assert set(drawn.tolist()) == set(whole.tolist())
        assert len(leaf) > 0 if honest else len(leaf) == 0
