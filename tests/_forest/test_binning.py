"""Binning: a code says on which side of every edge a value lies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from cqrf._forest import binning
from cqrf._forest.binning import (
    column_edges,
    encode,
    encode_columns,
    find_edges,
    level_edges,
    pad_edges,
)
from cqrf._forest.spec import MAX_BINS, MISSING
from cqrf._runtime.random import draw_without_replacement

finite = st.floats(allow_nan=False, allow_infinity=False)
few_values = st.sampled_from([-1e308, -1.0, -0.0, 0.0, 5e-324, 1.0, np.nextafter(1.0, 2.0), 1e308])


def columns(elements):
    return nps.arrays(np.float64, st.integers(1, 60), elements=elements)


def assert_codes_mean_edges(column, edges):
    """For every value and every edge: code <= b exactly where x <= edges[b]."""
    codes = encode(column[:, None], [edges])[0]
    for x, code in zip(column, codes, strict=True):
        if np.isnan(x):
            assert code == MISSING
        else:
            assert code <= len(edges)
            for b, edge in enumerate(edges):
                assert (code <= b) == (x <= edge)


@given(columns(finite | few_values | st.just(np.nan)), st.integers(2, 20))
def test_a_code_is_at_most_b_exactly_where_x_is_at_most_edge_b(column, max_bins):
    edges = column_edges(column, max_bins)
    assert np.isfinite(edges).all()
    assert (np.diff(edges) > 0).all()
    assert len(edges) <= max_bins - 1
    assert_codes_mean_edges(column, edges)


@given(columns(finite | few_values), columns(finite | few_values))
def test_codes_of_values_not_in_training_obey_the_same_rule(train, test):
    edges = column_edges(train, 10)
    # A query may lie on an edge, or next to one.
    near = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
    assert_codes_mean_edges(np.concatenate([test, near]), edges)


@given(columns(finite | few_values | st.just(np.nan)))
def test_with_enough_bins_each_value_has_its_own(column):
    values = np.unique(column[~np.isnan(column)])
    edges = column_edges(column, MAX_BINS)
    assert len(edges) == max(0, len(values) - 1)
    assert encode(values[:, None], [edges])[0].tolist() == list(range(len(values)))


def test_edges_are_midpoints():
    edges = column_edges(np.array([4.0, 1.0, 2.0, 1.0, np.nan]), 255)
    assert edges.tolist() == [1.5, 3.0]


def test_no_midpoint_overflows():
    assert column_edges(np.array([-1e308, 1e308]), 255).tolist() == [0.0]
    (edge,) = column_edges(np.array([1e308, 1.5e308]), 255)
    assert edge == pytest.approx(1.25e308)


@pytest.mark.parametrize("low", [1.0, -1.0, 0.0, 5e-324, 1e308, -5e-324])
def test_adjacent_floats_are_told_apart(low):
    high = np.nextafter(low, np.inf)
    edges = column_edges(np.array([low, high]), 255)
    assert edges.tolist() == [low]
    assert encode(np.array([[low], [high]]), [edges])[0].tolist() == [0, 1]


def test_single_precision_is_binned_as_well():
    column = np.array([1.0, np.nextafter(np.float32(1), np.float32(2)), 3.0, 3e38], np.float32)
    edges = column_edges(column, 255)
    assert encode(column[:, None], [edges])[0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("column", [np.full(9, 3.5), np.full(9, np.nan), np.array([np.nan, 2.0])])
def test_a_column_of_at_most_one_value_has_one_bin(column):
    edges = column_edges(column, 255)
    assert len(edges) == 0
    assert encode(column[:, None], [edges])[0].tolist() == [
        MISSING if np.isnan(x) else 0 for x in column
    ]


def test_a_column_of_255_values_keeps_them_all_and_one_of_256_does_not():
    for n, n_codes in ((254, 254), (255, 255)):
        column = np.arange(n, dtype=float)
        codes = encode(column[:, None], find_edges(column[:, None], MAX_BINS, 0))[0]
        assert len(np.unique(codes)) == n_codes
    column = np.arange(256, dtype=float)
    codes = encode(column[:, None], find_edges(column[:, None], MAX_BINS, 0))[0]
    assert len(np.unique(codes)) <= MAX_BINS
    assert codes.max() < MISSING


@pytest.mark.parametrize("n", [256, 1000, 1275, 5001])
@pytest.mark.parametrize("max_bins", [2, 7, 255])
def test_many_distinct_values_fall_into_bins_of_even_size(n, max_bins):
    column = np.random.default_rng(n).permutation(n) ** 3.0
    counts = np.bincount(encode(column[:, None], [column_edges(column, max_bins)])[0])
    assert len(counts) == max_bins
    assert (np.abs(counts - n / max_bins) < 1 + 1e-9).all()


@pytest.mark.parametrize("max_bins", [2, 10, 255])
@pytest.mark.parametrize("seed", range(5))
def test_heavy_ties_never_make_a_bin_larger_than_they_must(seed, max_bins):
    rng = np.random.default_rng(seed)
    common = rng.choice([-2.0, 0.0, 3.5, 900.0], 3000)
    column = np.concatenate([common, rng.normal(size=600)])
    assert len(np.unique(column)) > MAX_BINS
    edges = column_edges(column, max_bins)
    assert 1 <= len(edges) <= max_bins - 1
    assert (np.diff(edges) > 0).all()
    codes = encode(column[:, None], [edges])[0]
    for code in np.unique(codes):
        inside = column[codes == code]
        # Without its largest value a bin holds less than its even share.
        assert (inside < inside.max()).sum() <= len(column) / max_bins


@pytest.mark.parametrize("n_levels", [0, 1, 2, 3, 254])
def test_each_level_of_a_category_has_its_own_bin(n_levels):
    levels = np.append(np.arange(n_levels, dtype=float), np.nan)
    codes = encode(levels[:, None], [level_edges(n_levels)])[0]
    assert codes.tolist() == [*range(n_levels), MISSING]


def test_missing_values_do_not_move_the_edges():
    rng = np.random.default_rng(0)
    column = rng.normal(size=700)
    holes = np.concatenate([column, np.full(300, np.nan)])
    assert np.array_equal(column_edges(column, 50), column_edges(rng.permutation(holes), 50))
    codes = encode(holes[:, None], [column_edges(holes, 255)])[0]
    assert (codes[700:] == MISSING).all()
    assert (codes[:700] != MISSING).all()


@pytest.mark.parametrize("serial_size", [0, 10**9])
@pytest.mark.parametrize("task_size", [1, 80, 10**9])
def test_codes_are_one_contiguous_column_of_bytes_per_feature(monkeypatch, serial_size, task_size):
    monkeypatch.setattr(binning, "SERIAL_SIZE", serial_size)
    monkeypatch.setattr(binning, "TASK_SIZE", task_size)
    X = np.random.default_rng(1).normal(size=(40, 3))
    edges = find_edges(X, 255, 0, n_jobs=2)
    codes = encode(X, edges, n_jobs=2)
    assert codes.shape == (3, 40)
    assert codes.dtype == np.uint8
    assert codes.flags.c_contiguous
    for j in range(3):
        assert np.array_equal(edges[j], column_edges(X[:, j], 255))
        assert np.array_equal(codes[j], encode(X[:, [j]], [edges[j]])[0])
    assert np.array_equal(codes, encode(np.asfortranarray(X), edges))


@pytest.mark.parametrize("task_size", [1, 80, 10**9])
@pytest.mark.parametrize("columns", [[], [2], [0, 3], [0, 1, 2, 3]])
def test_only_the_columns_asked_for_are_encoded(monkeypatch, task_size, columns):
    monkeypatch.setattr(binning, "TASK_SIZE", task_size)
    X = np.random.default_rng(1).normal(size=(40, 4))
    edges = find_edges(X, 255, 0)
    expected = np.zeros((4, 40), np.uint8)
    expected[columns] = encode(X, edges)[columns]
    chosen = np.array(columns, np.intp)
    assert np.array_equal(encode_columns(X, chosen, pad_edges(edges, chosen)), expected)


def same_edges(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_edges_come_from_a_sample_only_above_its_size(monkeypatch):
    X = np.random.default_rng(2).normal(size=(81, 2))
    whole = find_edges(X, 255, 7)
    assert [len(edges) for edges in whole] == [80, 80]

    monkeypatch.setattr(binning, "EDGE_SAMPLE", 81)
    assert same_edges(find_edges(X, 255, 7), whole)

    monkeypatch.setattr(binning, "EDGE_SAMPLE", 80)
    sampled = find_edges(X, 255, 7)
    assert [len(edges) for edges in sampled] == [79, 79]
    rows = draw_without_replacement(np.uint64(7), 81, 80)
    assert same_edges(sampled, [column_edges(X[rows, j], 255) for j in range(2)])


def test_the_sample_for_edges_depends_on_the_seed_alone(monkeypatch):
    monkeypatch.setattr(binning, "EDGE_SAMPLE", 30)
    monkeypatch.setattr(binning, "SERIAL_SIZE", 0)
    X = np.random.default_rng(3).normal(size=(200, 2))
    edges = find_edges(X, 255, 1)
    assert same_edges(edges, find_edges(X, 255, 1, n_jobs=2))
    assert not same_edges(edges, find_edges(X, 255, 2))


def test_one_value_that_holds_nearly_all_rows_leaves_an_edge_on_either_side():
    rare = np.arange(1.0, 301.0)
    column = np.concatenate([-rare, np.zeros(299_700)])
    for mirrored in (column, -column):
        assert len(column_edges(mirrored, 255)) >= 1
