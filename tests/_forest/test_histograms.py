"""Histograms: sums per bin against plain loops, and scratch that is clean afterwards."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from cqrf._forest import histograms as room
from cqrf._forest.histograms import (
    MANY_ROWS,
    MISSING,
    N_BINS,
    empty_bin,
    fill,
    list_seen,
)
from cqrf._runtime import compiling as kernel

# Few and many rows, of which none to three remain when they are taken by fours.
N_ROWS = (1, 2, 3, 4, 5, 11, 100, MANY_ROWS - 1, MANY_ROWS, MANY_ROWS + 1, MANY_ROWS + 2, 1003)
sizes = pytest.mark.parametrize("n_rows", N_ROWS)
widths = pytest.mark.parametrize("n_pairs", [1, 2, 3, 4, 5])
SOME_CODES = [0, 1, 2, 7, 63, 64, 200, 254, MISSING]


@njit
def count_rows(*arguments):
    room.count_rows(*arguments)


@njit
def sum_rows(table, rows, n_rows, start, keep, first, squares, pairs):
    kernel.sum_rows(table, rows, n_rows, start, keep, first, squares, pairs)


def make_node(n_rows, n_pairs, codes=SOME_CODES):
    """Labels of a node that is part of a larger table, and a column of codes.

    Eighths have exact sums, whatever their order.
    """
    rng = np.random.default_rng([n_rows, n_pairs])
    column = rng.choice(codes, 2 * n_rows).astype(np.uint8)
    rows = np.sort(rng.permutation(2 * n_rows)[:n_rows]).astype(np.uint32)
    labels = rng.integers(-80, 80, (n_rows, 2 * n_pairs)) / 8
    labels[:, 0] = rng.integers(1, 40, n_rows) / 8
    return column, rows, labels


def fill_node(column, rows, labels):
    seen, sums = np.zeros(N_BINS, np.uint8), np.zeros((N_BINS, labels.shape[1]))
    fill(column, rows, labels, (0,) * (labels.shape[1] // 2), seen, sums)
    return seen, sums


def sums_by_loop(column, rows, labels):
    sums = np.zeros((N_BINS, labels.shape[1]))
    for row, label in zip(rows, labels, strict=True):
        sums[column[row]] += label
    return sums


@sizes
@widths
def test_a_bin_holds_the_labels_of_its_rows(n_rows, n_pairs):
    column, rows, labels = make_node(n_rows, n_pairs)
    seen, sums = fill_node(column, rows, labels)
    assert np.array_equal(sums, sums_by_loop(column, rows, labels))
    # Many rows mark nothing: their bins are known by their weight.
    marked = np.unique(column[rows]) if n_rows < MANY_ROWS else []
    assert np.flatnonzero(seen).tolist() == list(marked)
    # A second node is added to what is there.
    fill(column, rows, labels, (0,) * (labels.shape[1] // 2), seen, sums)
    assert np.array_equal(sums, 2 * sums_by_loop(column, rows, labels))


@sizes
@pytest.mark.parametrize("codes", [SOME_CODES, [0], [MISSING], range(N_BINS)])
def test_the_bins_of_a_node_are_listed_ascending_and_marks_forgotten(n_rows, codes):
    column, rows, labels = make_node(n_rows, 1, list(codes))
    # A label of zero, or below it, is no reason to overlook a row.
    labels[:, 1] = -1.0
    seen, sums = fill_node(column, rows, labels)
    bins = np.full(N_BINS + 1, 999, np.uint64)
    n = list_seen(n_rows, seen, sums, bins)
    assert bins[:n].tolist() == np.unique(column[rows]).tolist()
    assert not seen.any()
    assert np.array_equal(sums, sums_by_loop(column, rows, labels))


@pytest.mark.parametrize("n_rows", [1, MANY_ROWS])
@given(st.sets(st.integers(0, N_BINS - 1)))
def test_any_set_of_bins_is_listed(n_rows, codes):
    seen, sums = np.zeros(N_BINS, np.uint8), np.zeros((N_BINS, 2))
    if n_rows < MANY_ROWS:
        seen[list(codes)] = 1
    else:
        sums[list(codes), 0] = 1e-30
    bins = np.full(N_BINS + 1, 999, np.uint64)
    n = list_seen(n_rows, seen, sums, bins)
    assert bins[:n].tolist() == sorted(codes)
    assert not seen.any()


def make_sequence(column, rows, seed=0):
    """The bins of a node in any order, at the front of a list with room for all."""
    present = np.unique(column[rows])
    bins = np.full(N_BINS + 1, 999, np.uint64)
    bins[: len(present)] = np.random.default_rng(seed).permutation(present)
    return bins, len(present)


@sizes
def test_rows_are_counted_along_the_sequence_of_bins(n_rows):
    column, rows, _ = make_node(n_rows, 1)
    bins, n_bins = make_sequence(column, rows)
    # The last bin is left out, as that of missing values is.
    n_bins -= 1
    count, count_below = np.zeros(N_BINS, np.int32), np.full(N_BINS, np.nan)
    count_rows(column, rows, bins, n_bins, count, count_below)
    for at in range(n_bins):
        assert count_below[at] == sum(code in bins[: at + 1] for code in column[rows])
    assert np.isnan(count_below[n_bins:]).all()
    left_out = int(bins[n_bins])
    assert count[left_out] == (column[rows] == left_out).sum()
    count[left_out] = 0
    assert not count.any()


@widths
@pytest.mark.parametrize("n_rows", [1, 11, 100, 1003])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("starts_empty", [False, True])
def test_running_sums_follow_the_sequence_of_bins(n_pairs, n_rows, keep, starts_empty):
    column, rows, labels = make_node(n_rows, n_pairs)
    _, sums = fill_node(column, rows, labels)
    # A bin that is not in the sequence stays as it is.
    sums[100] = 5.0
    bins, n_bins = make_sequence(column, rows)
    start = np.arange(2.0 * n_pairs) * (0.0 if starts_empty else 1.5)
    mass_below, score = np.full(N_BINS, np.nan), np.full(N_BINS, np.nan)
    before = sums.copy()
    sum_rows(sums, bins, n_bins, start, keep, mass_below, score, (0,) * n_pairs)
    for at in range(n_bins):
        total = start.copy()
        for row, label in zip(rows, labels, strict=True):
            if column[row] in bins[: at + 1]:
                total += label
        assert mass_below[at] == total[0]
        assert score[at] == sum(total[1:] ** 2)
    assert np.isnan(mass_below[n_bins:]).all()
    assert np.isnan(score[n_bins:]).all()
    if not keep:
        before[bins[:n_bins].astype(int)] = 0.0
    assert np.array_equal(sums, before)


@widths
def test_one_bin_is_emptied_and_no_other(n_pairs):
    sums = np.ones((N_BINS, 2 * n_pairs))
    empty_bin(MISSING, sums)
    assert not sums[MISSING].any()
    assert (sums[:MISSING] == 1).all()
