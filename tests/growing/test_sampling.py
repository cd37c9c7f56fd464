"""Sampling: sizes are kept, honest halves are disjoint, clusters stay whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf.growing.sampling import draw_units, rows_drawn

seeds = st.integers(0, 2**64 - 1).map(np.uint64)
units = st.integers(1, 60)


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
            draws = draw_units(np.uint64(seed), n_units, 60 * n_units, True, True)
            assert (draws != 0).all()
            assert (draws > 0).sum() == n_units // 2


def test_halves_of_the_bootstrap_do_not_hang_on_how_often_a_unit_is_drawn():
    counts, split = [], []
    for seed in range(400):
        draws = draw_units(np.uint64(seed), 50, 50, True, True)
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
        draws = draw_units(np.uint64(seed), 6, 2, True, True)
        all_in_leaf += not (draws > 0).any()
        mixed += (draws > 0).any()
    assert mixed == pytest.approx(500, abs=60)
    assert all_in_leaf == 1000 - mixed
    assert draw_units(np.uint64(5), 1, 4, True, True).tolist() == [-4]
    assert draw_units(np.uint64(5), 1, 1, False, True).tolist() == [-1]


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8), st.data())
def test_rows_are_listed_ascending_as_often_as_their_unit_is_drawn(draws, data):
    n_units = len(draws)
    # A row of unit -1 belongs to none.
    unit_of_row = data.draw(st.lists(st.integers(-1, n_units - 1), max_size=30))
    for sign in (1, -1):
        expected = []
        for row, unit in enumerate(unit_of_row):
            if unit >= 0:
                expected += [row] * max(0, sign * draws[unit])
        rows = rows_drawn(np.array(draws, np.int32), np.array(unit_of_row, np.int32), sign)
        assert rows.tolist() == expected


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("honest", [False, True])
def test_clusters_are_drawn_whole_and_never_shared_between_halves(bootstrap, honest):
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, 15, 90).astype(np.int32)
    for seed in range(50):
        draws = draw_units(np.uint64(seed), 15, 9, bootstrap, honest)
        split, leaf = rows_drawn(draws, cluster, 1), rows_drawn(draws, cluster, -1)
        assert not set(cluster[split]) & set(cluster[leaf])
        for unit in range(15):
            members = np.flatnonzero(cluster == unit)
            rows = np.concatenate([split, leaf])
            drawn = rows[np.isin(rows, members)]
            assert np.array_equal(np.sort(drawn), np.repeat(members, abs(draws[unit])))
        assert honest or len(leaf) == 0
