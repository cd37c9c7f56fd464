"""Histograms: sums per bin against plain loops, and work arrays that are clean afterwards."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._forest import histograms
from cqrf._forest.histograms import MANY_ROWS
from cqrf._forest.spec import MISSING, N_BINS, N_STRATA
from cqrf._forest.workspace import StrataWork, make_workspace
from cqrf._runtime import intrinsics
from cqrf._runtime.compiling import kernel
from support.labelling import NO_LIMITS, make_rows

# Few and many rows, of which none to three remain when they are taken by fours.
N_ROWS = (1, 2, 3, 4, 5, 11, 100, MANY_ROWS - 1, MANY_ROWS, MANY_ROWS + 1, MANY_ROWS + 2, 1003)
sizes = pytest.mark.parametrize("n_rows", N_ROWS)
widths = pytest.mark.parametrize("n_pairs", [1, 2, 3, 4, 5])
SOME_CODES = [0, 1, 2, 7, 63, 64, 200, 254, MISSING]


@kernel
def fill(column, here, labels, pairs, work):
    histograms.fill(column, here, labels, pairs, work)


@kernel
def list_bins(n_rows, work):
    return histograms.list_bins(n_rows, work)


@kernel
def count_rows(count, column, here, bins, n_bins, count_below):
    return histograms.count_rows(count, column, here, bins, n_bins, count_below)


@kernel
def count_strata(work, stratum, column, here, bins, n_bins):
    histograms.count_strata(work, stratum, column, here, bins, n_bins)


@kernel
def keep_strata(work, n_bins, missing_left, fewest, first, last):
    return histograms.keep_strata(work, n_bins, missing_left, fewest, first, last)


@kernel
def clear_strata(work, bins, n_bins):
    histograms.clear_strata(work, bins, n_bins)


@kernel
def sum_rows(sums, bins, n_bins, start, keep, mass_below, score, pairs):
    intrinsics.sum_rows(sums, bins, n_bins, start, keep, mass_below, score, pairs)


def make_node(n_rows, n_pairs, codes=SOME_CODES):
    """Labels of a node that is part of a larger table, and a column of codes.

    Eighths have exact sums, whatever their order.
    """
    rng = np.random.default_rng([n_rows, n_pairs])
    column = rng.choice(codes, 2 * n_rows).astype(np.uint8)
    here = np.sort(rng.permutation(2 * n_rows)[:n_rows]).astype(np.uint32)
    labels = rng.integers(-80, 80, (n_rows, 2 * n_pairs)) / 8
    labels[:, 0] = rng.integers(1, 40, n_rows) / 8
    return column, here, labels


def make_work(n_pairs):
    """Work arrays of a histogram without weights, with bins that are no codes."""
    rows = make_rows(np.zeros(1), np.ones(1, bool))
    work = make_workspace(1, 1, rows, 2 * n_pairs - 1, NO_LIMITS).split
    work.bins[:] = 999
    return work


def fill_node(column, here, labels):
    n_pairs = labels.shape[1] // 2
    work = make_work(n_pairs)
    fill(column, here, labels, (0,) * n_pairs, work)
    return work


def sums_by_loop(column, here, labels):
    sums = np.zeros((N_BINS, labels.shape[1]))
    for row, label in zip(here, labels, strict=True):
        sums[column[row]] += label
    return sums


@sizes
@widths
def test_a_bin_holds_the_labels_of_its_rows(n_rows, n_pairs):
    column, here, labels = make_node(n_rows, n_pairs)
    work = fill_node(column, here, labels)
    assert np.array_equal(work.sums, sums_by_loop(column, here, labels))
    # Many rows mark nothing: their bins are known by their weight.
    marked = np.unique(column[here]) if n_rows < MANY_ROWS else []
    assert np.flatnonzero(work.seen).tolist() == list(marked)
    # A second node is added to what is there.
    fill(column, here, labels, (0,) * n_pairs, work)
    assert np.array_equal(work.sums, 2 * sums_by_loop(column, here, labels))


@sizes
@pytest.mark.parametrize("codes", [SOME_CODES, [0], [MISSING], range(N_BINS)])
def test_the_bins_of_a_node_are_listed_ascending_and_marks_cleared(n_rows, codes):
    column, here, labels = make_node(n_rows, 1, list(codes))
    # A row counts whatever its label: its bin has a weight.
    labels[:, 1] = -1.0
    work = fill_node(column, here, labels)
    n = list_bins(n_rows, work)
    assert work.bins[:n].tolist() == np.unique(column[here]).tolist()
    assert not work.seen.any()
    assert np.array_equal(work.sums, sums_by_loop(column, here, labels))


@pytest.mark.parametrize("n_rows", [1, MANY_ROWS])
@given(st.sets(st.integers(0, N_BINS - 1)))
def test_any_set_of_bins_is_listed(n_rows, codes):
    work = make_work(1)
    if n_rows < MANY_ROWS:
        work.seen[list(codes)] = 1
    else:
        work.sums[list(codes), 0] = 1e-30
    n = list_bins(n_rows, work)
    assert work.bins[:n].tolist() == sorted(codes)
    assert not work.seen.any()


def make_sequence(column, here, seed=0):
    """The bins of a node in any order, missing values left out, in a list of full length."""
    present = np.setdiff1d(column[here], [MISSING])
    bins = np.full(N_BINS + 1, 999, np.uint64)
    bins[: len(present)] = np.random.default_rng(seed).permutation(present)
    return bins, len(present)


@sizes
def test_rows_are_counted_along_the_sequence_of_bins(n_rows):
    column, here, _ = make_node(n_rows, 1)
    bins, n_bins = make_sequence(column, here)
    count, count_below = np.zeros(N_BINS, np.int32), np.full(N_BINS, np.nan)
    n_missing = count_rows(count, column, here, bins, n_bins, count_below)
    assert n_missing == (column[here] == MISSING).sum()
    for at in range(n_bins):
        assert count_below[at] == sum(code in bins[: at + 1] for code in column[here])
    assert np.isnan(count_below[n_bins:]).all()
    assert not count.any()


def test_without_weights_rows_are_not_counted():
    column, here, _ = make_node(100, 1)
    bins, n_bins = make_sequence(column, here)
    count_below = np.full(N_BINS, np.nan)
    assert count_rows(None, column, here, bins, n_bins, count_below) == 0
    assert np.isnan(count_below).all()


def make_strata(n_rows):
    """A column of a node, its sequence of bins, and strata of the rows, counted."""
    column, here, _ = make_node(n_rows, 1)
    bins, n_bins = make_sequence(column, here)
    stratum = np.random.default_rng(n_rows).integers(0, 8, len(column)).astype(np.uint8)
    shape = (N_BINS, N_STRATA)
    work = StrataWork(np.zeros(shape, np.int32), np.full(shape, -99, np.int32))
    count_strata(work, stratum, column, here, bins, n_bins)
    return column[here], stratum[here], bins, n_bins, work


@sizes
def test_rows_of_each_stratum_are_counted_along_the_sequence_of_bins(n_rows):
    column, stratum, bins, n_bins, work = make_strata(n_rows)
    for s in range(N_STRATA):
        inside = (stratum & 2**s) > 0
        for at in range(n_bins):
            up_to = np.isin(column, bins[: at + 1].astype(int))
            assert work.below[at, s] == (up_to & inside).sum()
        assert work.counts[MISSING, s] == ((column == MISSING) & inside).sum()
    assert (work.below[n_bins:] == -99).all()
    clear_strata(work, bins, n_bins)
    assert not work.counts.any()


@pytest.mark.parametrize("n_rows", [5, 11, 100])
@pytest.mark.parametrize("fewest", [0, 1, 2, 8, 20])
@pytest.mark.parametrize("missing_left", [False, True])
def test_cuts_that_leave_rows_of_each_stratum_on_both_sides_are_kept(n_rows, fewest, missing_left):
    column, stratum, bins, n_bins, work = make_strata(n_rows)
    n_cuts = n_bins - 1
    allowed = []
    for at in range(n_cuts):
        left = np.isin(column, bins[: at + 1].astype(int)) | ((column == MISSING) & missing_left)
        sides = [
            ((stratum & 2**s) > 0)[side].sum() for s in range(N_STRATA) for side in (left, ~left)
        ]
        if min(sides) >= fewest:
            allowed.append(at)
    first, last = keep_strata(work, n_bins, missing_left, fewest, 0, n_cuts)
    assert list(range(first, last)) == allowed


def test_rows_without_strata_are_not_counted():
    column, here, _ = make_node(100, 1)
    bins, n_bins = make_sequence(column, here)
    count_strata(None, None, column, here, bins, n_bins)
    assert keep_strata(None, n_bins, True, 5, 0, 3) == (0, 3)
    clear_strata(None, bins, n_bins)


@widths
@pytest.mark.parametrize("n_rows", [1, 11, 100, 1003])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("starts_empty", [False, True])
def test_running_sums_follow_the_sequence_of_bins(n_pairs, n_rows, keep, starts_empty):
    column, here, labels = make_node(n_rows, n_pairs)
    sums = fill_node(column, here, labels).sums
    # A bin that is not in the sequence stays as it is.
    sums[100] = 5.0
    bins, n_bins = make_sequence(column, here)
    start = np.arange(2.0 * n_pairs) * (0.0 if starts_empty else 1.5)
    mass_below, score = np.full(N_BINS, np.nan), np.full(N_BINS, np.nan)
    before = sums.copy()
    sum_rows(sums, bins, n_bins, start, keep, mass_below, score, (0,) * n_pairs)
    for at in range(n_bins):
        total = start.copy()
        for row, label in zip(here, labels, strict=True):
            if column[row] in bins[: at + 1]:
                total += label
        assert mass_below[at] == total[0]
        assert score[at] == sum(total[1:] ** 2)
    assert np.isnan(mass_below[n_bins:]).all()
    assert np.isnan(score[n_bins:]).all()
    if not keep:
        before[bins[:n_bins].astype(int)] = 0.0
    assert np.array_equal(sums, before)
