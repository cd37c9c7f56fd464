"""Histograms: sums per bin against plain loops, and scratch that is clean afterwards."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_labels import CENSORED_QUANTILE, CRITERIA, LEVELS, in_order, row_labels, write_labels

from cqrf.growing.histograms import MISSING, N_BINS, accumulate, add_bin, fill, list_seen
from cqrf.growing.labels import CLASSES, CURVE, MEAN

N_LABELS = len(LEVELS) + 1


def make_scratch():
    seen, count = np.zeros(N_BINS, np.uint8), np.zeros(N_BINS, np.int64)
    return seen, count, np.zeros((N_BINS, 2 * N_LABELS))


def make_node(seed, weighted, criterion, late=False):
    """A labelled node that is part of a larger table, with a column of codes."""
    rng = np.random.default_rng(seed)
    n = 80
    time, event, weight = in_order(
        rng.integers(0, 40, n), rng.random(n) < 0.6, rng.integers(1, 17, n) / 8
    )
    weight = weight if weighted else None
    column = rng.choice([0, 1, 2, 7, 63, 64, 200, 254, MISSING], n).astype(np.uint8)
    rows = np.flatnonzero(rng.random(n) < 0.7).astype(np.int32)
    entry = np.floor(rng.random(n) * time) - 1 if late else None
    node = write_labels(criterion, time, event, weight, rows, entry=entry)
    assert node.mixed
    return node, column, rows, weight


def fill_node(node, column, rows, weight):
    seen, count, sums = make_scratch()
    fill(
        node.shape,
        column,
        rows,
        weight,
        node.value,
        node.vectors,
        node.ends,
        N_LABELS,
        seen,
        count,
        sums,
    )
    return seen, count, sums


def n_used(node):
    return {MEAN: 1, CLASSES: N_LABELS}.get(node.shape, N_LABELS - 1)


cases = pytest.mark.parametrize(
    ("criterion", "weighted", "late", "seed"),
    [(c, w, False, s) for c in CRITERIA for w in (False, True) for s in range(3)]
    # Curve labels of rows that enter late have a shape of their own.
    + [(CENSORED_QUANTILE, w, True, s) for w in (False, True) for s in range(3)],
)


@cases
def test_a_bin_holds_the_labels_and_weights_of_its_rows(criterion, weighted, late, seed):
    node, column, rows, weight = make_node(seed, weighted, criterion, late)
    w = np.ones(len(rows)) if weight is None else weight[rows].astype(float)
    labels = row_labels(node, w)
    seen, count, sums = fill_node(node, column, rows, weight)
    for code in range(N_BINS):
        inside = column[rows] == code
        assert seen[code] == inside.any()
        assert count[code] == (inside.sum() if weighted else 0)
        found = np.zeros(N_LABELS)
        mass = add_bin(node.shape, code, sums, node.survival_at, LEVELS, found)
        assert mass == pytest.approx(w[inside].sum())
        used = n_used(node)
        expected = labels[inside].sum(axis=0)
        np.testing.assert_allclose(found[:used], expected[:used], atol=1e-10)


@cases
def test_running_sums_follow_the_sequence_of_bins_and_empty_them(criterion, weighted, late, seed):
    node, column, rows, weight = make_node(seed, weighted, criterion, late)
    w = np.ones(len(rows)) if weight is None else weight[rows].astype(float)
    labels = row_labels(node, w)
    _, count, sums = fill_node(node, column, rows, weight)
    sequence = np.random.default_rng(seed).permutation(np.unique(column[rows])).astype(np.int64)
    bins = np.full(N_BINS, -1)
    bins[: len(sequence)] = sequence
    label_below = np.full((N_BINS, N_LABELS), np.nan)
    mass_below, count_below = np.full(N_BINS, np.nan), np.full(N_BINS, np.nan)
    accumulate(
        node.shape,
        bins,
        len(sequence),
        weight,
        sums,
        count,
        node.survival_at,
        LEVELS,
        np.full(N_LABELS, np.nan),
        label_below,
        mass_below,
        count_below,
    )
    used = n_used(node)
    for at in range(len(sequence)):
        inside = np.isin(column[rows], sequence[: at + 1])
        assert mass_below[at] == pytest.approx(w[inside].sum())
        assert count_below[at] == inside.sum()
        expected = labels[inside].sum(axis=0)
        np.testing.assert_allclose(label_below[at, :used], expected[:used], atol=1e-10)
    assert not sums.any()
    assert not count.any()


def test_labels_are_added_to_what_is_there():
    node, column, rows, _ = make_node(0, False, CENSORED_QUANTILE)
    _, _, sums = fill_node(node, column, rows, None)
    once, twice = np.zeros(N_LABELS), np.zeros(N_LABELS)
    add_bin(CURVE, 7, sums, node.survival_at, LEVELS, once)
    for _ in range(2):
        add_bin(CURVE, 7, sums, node.survival_at, LEVELS, twice)
    assert once.any()
    assert twice == pytest.approx(2 * once)


@given(st.sets(st.integers(0, N_BINS - 1)))
def test_bins_seen_are_listed_ascending_and_forgotten(codes):
    seen, bins = np.zeros(N_BINS, np.uint8), np.full(N_BINS, -1)
    seen[list(codes)] = 1
    n = list_seen(seen, bins)
    assert bins[:n].tolist() == sorted(codes)
    assert not seen.any()
