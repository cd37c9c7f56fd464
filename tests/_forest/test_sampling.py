"""Subsampling: sizes are kept, honest halves are disjoint, clusters stay whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._forest.sampling import (
    BAG_STREAM,
    derive_tree_keys,
    draw_subsamples,
    growth_seed,
    in_bag_bits,
    subsample_units,
)
from cqrf._forest.spec import Sampling
from cqrf._runtime.random import derive, draw_without_replacement

seeds = st.integers(0, 2**64 - 1)
units = st.integers(1, 60)


def make_sampling(n_units, size, bootstrap, honest, bag_size=1):
    """Each unit is a row of the same number."""
    return Sampling(np.arange(n_units, dtype=np.int32), n_units, size, bootstrap, honest, bag_size)


def draws_of_tree(sampling, seed, tree):
    """How often a tree draws each unit, from the list of those drawn."""
    drawn, counts = subsample_units(sampling, seed, tree)
    assert (np.diff(drawn) > 0).all()
    draws = np.zeros(sampling.n_units, np.int32)
    draws[drawn] = counts
    return draws


def draw_units(seed, n_units, size, bootstrap, honest):
    return draws_of_tree(make_sampling(n_units, size, bootstrap, honest), seed, 0)


def draws_from_subsamples(sampling, seed, tree):
    """How often a tree draws each unit, from its rows."""
    found = draw_subsamples(sampling, derive_tree_keys(sampling, seed, range(tree, tree + 1)))
    _, middle, end = found.starts
    draws = np.bincount(found.ranks[:middle], minlength=sampling.n_units)
    return draws - np.bincount(found.ranks[middle:end], minlength=sampling.n_units)


def draws_by_loops(sampling, seed, tree):
    """How often a tree draws each unit, from random words alone."""
    n_units, size = sampling.n_units, sampling.size
    tree_seed = derive(derive(seed, tree), 0)
    units = list(range(n_units))
    if sampling.bag_size > 1:
        bag_seed = derive(derive(seed, BAG_STREAM), tree // sampling.bag_size)
        units = draw_without_replacement(bag_seed, n_units, n_units // 2).tolist()
    n, draws = len(units), [0] * n_units
    if sampling.bootstrap:
        order = draw_without_replacement(derive(tree_seed, 1), n, n).tolist()
        drawn = [(int(word) >> 32) * n >> 32 for word in derive(derive(tree_seed, 0), range(size))]
        in_leaf_half = set(order[n // 2 :])
    else:
        drawn = draw_without_replacement(derive(tree_seed, 0), n, size).tolist()
        in_leaf_half = set(drawn[size // 2 :])
    for place in drawn:
        draws[units[place]] += -1 if sampling.honest and place in in_leaf_half else 1
    return [-abs(d) for d in draws] if sampling.honest and min(draws) >= 0 else draws


@given(seeds, st.integers(0, 40), st.integers(2, 60), st.data())
def test_both_ways_to_draw_equal_plain_loops(seed, tree, n_units, data):
    # One lists the units that a tree draws, the other the rows of several trees.
    bag_size, honest = data.draw(st.integers(1, 4)), data.draw(st.booleans())
    n = n_units if bag_size == 1 else n_units // 2
    for bootstrap in (False, True):
        size = data.draw(st.integers(1, n))
        sampling = make_sampling(n_units, size, bootstrap, honest, bag_size)
        expected = draws_by_loops(sampling, seed, tree)
        assert draws_of_tree(sampling, seed, tree).tolist() == expected
        assert draws_from_subsamples(sampling, seed, tree).tolist() == expected


@given(seeds, units, st.data())
def test_a_subsample_draws_each_unit_at_most_once(seed, n_units, data):
    size = data.draw(st.integers(1, n_units))
    draws = draw_units(seed, n_units, size, False, False)
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
def test_honesty_does_not_change_which_units_are_drawn(seed, n_units, data):
    size = data.draw(st.integers(1, n_units))
    for bootstrap in (False, True):
        honest = draw_units(seed, n_units, size, bootstrap, True)
        assert np.array_equal(honest != 0, draw_units(seed, n_units, size, bootstrap, False) != 0)


def test_bootstrap_halves_share_the_units_evenly():
    # With many draws every unit is drawn, so that each one's half is known.
    for n_units in (1, 2, 7, 20):
        for seed in range(20):
            draws = draw_units(seed, n_units, 60 * n_units, True, True)
            assert (draws != 0).all()
            assert (draws > 0).sum() == n_units // 2


def test_halves_of_the_bootstrap_do_not_depend_on_how_often_a_unit_is_drawn():
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


@given(seeds, st.integers(2, 8), st.booleans(), st.booleans(), st.sampled_from([1, 3]), st.data())
def test_rows_are_listed_ascending_as_often_as_their_unit_is_drawn(
    seed, n_units, bootstrap, honest, bag_size, data
):
    # A row of unit -1 belongs to none. Clusters may have more rows than units are drawn, so that
    # the first arrays are too small.
    unit_of_row = np.array(
        data.draw(st.lists(st.integers(-1, n_units - 1), min_size=1, max_size=30)), np.int32
    )
    size = data.draw(st.integers(1, n_units // 2 if not bootstrap else 20))
    sampling = Sampling(unit_of_row, n_units, size, bootstrap, honest, bag_size)
    expected, starts = [], [0]
    for tree in range(3, 6):
        draws = draws_by_loops(sampling, seed, tree)
        for sign in (1, -1):
            for row, unit in enumerate(unit_of_row.tolist()):
                expected += [row] * (0 if unit < 0 else max(0, sign * draws[unit]))
            starts.append(len(expected))
    found = draw_subsamples(sampling, derive_tree_keys(sampling, seed, range(3, 6)))
    assert found.ranks.tolist() == expected
    assert found.starts.tolist() == starts
    assert found.seeds.tolist() == [growth_seed(seed, tree)[0] for tree in range(3, 6)]


@given(seeds, st.booleans(), st.sampled_from([1, 3]))
def test_keys_of_some_trees_are_those_of_the_whole_forest(seed, bootstrap, bag_size):
    sampling = make_sampling(20, 7, bootstrap, True, bag_size)
    part = derive_tree_keys(sampling, seed, range(0, 9)).take(slice(4, 7))
    for a, b in zip(part, derive_tree_keys(sampling, seed, range(4, 7)), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("honest", [False, True])
def test_clusters_are_drawn_whole_and_never_shared_between_halves(bootstrap, honest):
    cluster = np.random.default_rng(0).integers(0, 15, 90).astype(np.int32)
    sampling = Sampling(cluster, 15, 9, bootstrap, honest)
    for seed in range(50):
        found = draw_subsamples(sampling, derive_tree_keys(sampling, seed, range(0, 1)))
        split, leaf = found.ranks[: found.starts[1]], found.ranks[found.starts[1] :]
        assert not set(cluster[split]) & set(cluster[leaf])
        for drawn in (split, leaf):
            whole = np.flatnonzero(np.isin(cluster, cluster[drawn]))
            assert set(drawn.tolist()) == set(whole.tolist())
        assert len(leaf) > 0 if honest else len(leaf) == 0


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("honest", [False, True])
@pytest.mark.parametrize("bag_size", [1, 2])
@pytest.mark.parametrize("n_trees", [1, 8, 21])
def test_in_bag_bits_say_which_units_were_drawn(bootstrap, honest, bag_size, n_trees):
    sampling = make_sampling(40, 18, bootstrap, honest, bag_size)
    bits = in_bag_bits(sampling, range(n_trees), 12)
    assert bits.shape == (40, -(-n_trees // 8))
    assert bits.dtype == np.uint8
    for tree in range(8 * bits.shape[1]):
        marked = (bits[:, tree // 8] >> (tree % 8)) & 1
        drawn = draws_of_tree(sampling, 12, tree) != 0 if tree < n_trees else np.zeros(40, bool)
        assert np.array_equal(marked == 1, drawn)


@pytest.mark.parametrize("n_trees", [1, 64, 150])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_in_bag_bits_of_some_units_are_their_rows(n_trees, n_jobs):
    sampling = make_sampling(40, 18, False, True, 1)
    units = np.array([39, 3, 3, 0])
    bits = in_bag_bits(sampling, range(n_trees), 12, units, n_jobs)
    assert bits.shape == (4, -(-n_trees // 8))
    assert np.array_equal(bits, in_bag_bits(sampling, range(n_trees), 12)[units])
