"""Labels of every criterion against their definition, in exact fractions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._forest.criteria import censored_quantile, quantile
from cqrf._forest.criteria.quantile import class_labels
from oracles.criteria import CRITERIA, LEVELS, in_order, true_labels
from support.labelling import make_rows, write_labels
from support.samples import MANY_LEVELS, samples, weights_of


def assert_labels_are_true(criterion, time, event, weight, here=None, levels=LEVELS, entry=None):
    here = np.arange(len(time), dtype=np.uint32) if here is None else here
    node = write_labels(criterion, make_rows(time, event, weight, entry), here, levels)
    own_weight = None if weight is None else weight[here]
    own_entry = None if entry is None else entry[here]
    truth = true_labels(criterion, time[here], event[here], own_weight, levels, own_entry)
    assert node.can_be_split == (truth is not None)
    if truth is None:
        return
    labels, precision = truth
    w = weights_of(own_weight, len(here))
    assert node.mass == pytest.approx(w.sum())
    assert np.array_equal(node.labels[:, 0], w)
    if criterion == "quantile":
        of_class, direction = class_labels(len(levels))
        expected = labels @ of_class
    else:
        expected, direction = labels * np.sqrt(precision), np.sqrt(precision)
    end = 1 + expected.shape[1]
    np.testing.assert_allclose(node.labels[:, 1:end], expected * w[:, None], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(node.direction[:end], [0, *direction], rtol=1e-10)
    # Levels that are not reached, and what fills up the row.
    assert not node.labels[:, end:].any()
    assert not node.direction[end:].any()


@pytest.mark.parametrize("criterion", CRITERIA)
@given(samples(weighted=False), st.sampled_from(MANY_LEVELS))
def test_labels_equal_their_definition(criterion, sample, levels):
    assert_labels_are_true(criterion, *sample, levels=levels)


@pytest.mark.parametrize("criterion", CRITERIA)
@given(samples(weighted=True), st.sampled_from(MANY_LEVELS))
def test_weighted_labels_equal_their_definition(criterion, sample, levels):
    assert_labels_are_true(criterion, *sample, levels=levels)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weighted", [False, True])
def test_labels_under_heavy_censoring_equal_their_definition(criterion, weighted):
    # Two events of forty rows: survival reaches none of the levels.
    weight = np.ones(40, np.float32) if weighted else None
    assert_labels_are_true(criterion, np.arange(40.0), np.arange(40) < 2, weight)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_node_is_labelled_from_its_own_rows_alone(criterion, weighted):
    rng = np.random.default_rng(0)
    for _ in range(20):
        time, event, weight = in_order(
            rng.integers(0, 30, 60), rng.random(60) < 0.6, rng.integers(1, 9, 60) / 4
        )
        here = np.flatnonzero(rng.random(60) < 0.4).astype(np.uint32)
        assert_labels_are_true(criterion, time, event, weight if weighted else None, here)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [12, 60])
def test_with_delayed_entry_a_row_is_at_risk_only_after_its_entry(criterion, weighted, n):
    rng = np.random.default_rng([1, CRITERIA.index(criterion), weighted])
    for _ in range(20):
        time, event, weight = in_order(
            rng.integers(1, n // 2, n), rng.random(n) < 0.6, rng.integers(1, 9, n) / 4
        )
        entry = np.where(rng.random(n) < 0.5, np.floor(rng.random(n) * time), -np.inf)
        here = np.flatnonzero(rng.random(n) < 0.5).astype(np.uint32)
        weight = weight if weighted else None
        assert_labels_are_true(criterion, time, event, weight, here, entry=entry)


@pytest.mark.parametrize("criterion", CRITERIA)
@given(samples(weighted=False, max_size=12), st.data())
def test_a_weight_of_two_equals_a_row_twice(criterion, sample, data):
    time, event, _ = sample
    n = len(time)
    times = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)))
    weighted = write_labels(criterion, make_rows(time, event, times.astype(np.float32)))
    repeated = write_labels(criterion, make_rows(np.repeat(time, times), np.repeat(event, times)))
    assert weighted.can_be_split == repeated.can_be_split
    if not weighted.can_be_split:
        return
    first = np.cumsum(times) - times
    expected = times[:, None] * repeated.labels[first]
    np.testing.assert_allclose(weighted.labels, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(weighted.direction, repeated.direction, rtol=1e-10)


@pytest.mark.parametrize("levels", [censored_quantile.DEFAULT_LEVELS, quantile.DEFAULT_LEVELS])
def test_the_usual_levels_are_symmetric(levels):
    """So a forest of the mirrored times has the mirrored splits, under left censoring too."""
    assert np.all(np.diff(levels) > 0)
    assert 0 < levels[0] < levels[-1] < 1
    assert levels == pytest.approx([1 - level for level in reversed(levels)])


@pytest.mark.parametrize("criterion", ["variance", "quantile", "censored_quantile"])
def test_rows_of_one_time_cannot_be_split(criterion):
    time, event, _ = in_order([3.0] * 6, [1, 0, 1, 0, 1, 0])
    assert not write_labels(criterion, make_rows(time, event)).can_be_split


@pytest.mark.parametrize("criterion", ["logrank", "censored_quantile"])
def test_a_node_without_events_cannot_be_split(criterion):
    time, event, _ = in_order(range(6), [False] * 6)
    assert not write_labels(criterion, make_rows(time, event)).can_be_split
