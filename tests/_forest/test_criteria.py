"""Labels: each criterion against its definition, in exact fractions."""

import numpy as np
import pytest
from cqrf._forest.labels import (
    CENSORED_QUANTILE,
    LOGRANK,
    QUANTILE,
    VARIANCE,
    class_labels,
    read_labelling,
)
from hypothesis import given
from hypothesis import strategies as st

from oracles.criteria import CRITERIA, LEVELS, in_order, true_labels
from support.labelling import write_labels

# Numbers of levels with which a row of labels is filled up with a zero, and with which not.
MANY_LEVELS = (LEVELS, (0.5,), (0.25, 0.75), (0.05, 0.2, 0.5), (0.1, 0.4, 0.6, 0.95))


# Eighths are exact in single precision, and as fractions.
WEIGHTS = st.integers(1, 40).map(lambda eighths: eighths / 8)


@st.composite
def samples(draw, weighted, min_size=2, max_size=25):
    n = draw(st.integers(min_size, max_size))
    n_times = draw(st.sampled_from([2, 4, 8, 1000]))
    time = draw(st.lists(st.integers(0, n_times), min_size=n, max_size=n))
    censored = draw(st.sampled_from([0, 3, 9]))
    event = [draw(st.integers(0, 10)) >= censored for _ in range(n)]
    weight = draw(st.lists(WEIGHTS, min_size=n, max_size=n)) if weighted else None
    return in_order(time, event, weight)


def weights_of(weight, n):
    return np.ones(n) if weight is None else weight.astype(np.float64)


def assert_labels_are_true(criterion, time, event, weight, rows=None, levels=LEVELS, entry=None):
    rows = np.arange(len(time), dtype=np.uint32) if rows is None else rows
    node = write_labels(criterion, time, event, weight, rows, levels, entry)
    own_weight = None if weight is None else weight[rows]
    own_entry = None if entry is None else entry[rows]
    truth = true_labels(criterion, time[rows], event[rows], own_weight, levels, own_entry)
    assert node.mixed == (truth is not None)
    if truth is None:
        return
    labels, precision = truth
    w = weights_of(own_weight, len(rows))
    assert node.mass == pytest.approx(w.sum())
    assert np.array_equal(node.labels[:, 0], w)
    if criterion == QUANTILE:
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
def test_labels_are_those_of_the_definition(criterion, sample, levels):
    assert_labels_are_true(criterion, *sample, levels=levels)


@pytest.mark.parametrize("criterion", CRITERIA)
@given(samples(weighted=True), st.sampled_from(MANY_LEVELS))
def test_weighted_labels_are_those_of_the_definition(criterion, sample, levels):
    assert_labels_are_true(criterion, *sample, levels=levels)


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=9))
def test_labels_of_classes_have_the_length_of_one_label_for_each_class(excess):
    # What one side has too much of some classes it has too little of the others.
    excess = [*excess, -sum(excess)]
    of_class, direction = class_labels(len(excess) - 1)
    assert of_class.shape == (len(excess), len(excess) - 1)
    gini = sum(d * d for d in excess)
    assert ((np.array(excess) @ of_class) ** 2).sum() == pytest.approx(gini, rel=1e-12)
    assert np.diff(of_class @ direction) == pytest.approx(np.ones(len(excess) - 1))


@pytest.mark.parametrize("weighted", [False, True])
@given(st.data())
def test_labels_of_classes_sum_to_the_drop_in_gini_impurity(weighted, data):
    time, event, weight = data.draw(samples(weighted))
    levels = data.draw(st.sampled_from(MANY_LEVELS))
    truth = true_labels(QUANTILE, time, event, weight, levels)
    if truth is None:
        return
    n = len(time)
    inside = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    excess = weights_of(weight, n)[inside] @ truth[0][inside]
    sums = write_labels(QUANTILE, time, event, weight, levels=levels).labels[inside].sum(axis=0)
    assert (sums[1:] ** 2).sum() == pytest.approx((excess**2).sum(), abs=1e-9)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_node_is_labelled_from_its_own_rows_alone(criterion, weighted):
    rng = np.random.default_rng(0)
    for _ in range(20):
        time, event, weight = in_order(
            rng.integers(0, 30, 60), rng.random(60) < 0.6, rng.integers(1, 9, 60) / 4
        )
        rows = np.flatnonzero(rng.random(60) < 0.4).astype(np.uint32)
        assert_labels_are_true(criterion, time, event, weight if weighted else None, rows)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_row_that_enters_late_is_at_risk_only_after_its_entry(criterion, weighted):
    rng = np.random.default_rng([1, criterion, weighted])
    for _ in range(20):
        time, event, weight = in_order(
            rng.integers(1, 30, 60), rng.random(60) < 0.6, rng.integers(1, 9, 60) / 4
        )
        entry = np.where(rng.random(60) < 0.5, np.floor(rng.random(60) * time), -np.inf)
        rows = np.flatnonzero(rng.random(60) < 0.5).astype(np.uint32)
        weight = weight if weighted else None
        assert_labels_are_true(criterion, time, event, weight, rows, entry=entry)


@pytest.mark.parametrize("criterion", CRITERIA)
@given(samples(weighted=False, max_size=12), st.data())
def test_a_weight_of_two_is_a_row_twice(criterion, sample, data):
    time, event, _ = sample
    n = len(time)
    times = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)))
    weighted = write_labels(criterion, time, event, times.astype(np.float32))
    repeated = write_labels(criterion, np.repeat(time, times), np.repeat(event, times), None)
    assert weighted.mixed == repeated.mixed
    if not weighted.mixed:
        return
    first = np.cumsum(times) - times
    expected = times[:, None] * repeated.labels[first]
    np.testing.assert_allclose(weighted.labels, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(weighted.direction, repeated.direction, rtol=1e-10)


def logrank_numerator(time, event, weight, inside):
    """Observed minus expected events of a subset, over the distinct event times."""
    total = 0.0
    for t in np.unique(time[event]):
        at_risk, died = weight[time >= t].sum(), weight[(time == t) & event].sum()
        at_risk_inside = weight[(time >= t) & inside].sum()
        died_inside = weight[(time == t) & event & inside].sum()
        total += died_inside - died * at_risk_inside / at_risk
    return total


@pytest.mark.parametrize("weighted", [False, True])
@given(st.data())
def test_hazard_labels_of_a_subset_sum_to_the_numerator_of_the_logrank_test(weighted, data):
    time, event, weight = data.draw(samples(weighted))
    n = len(time)
    inside = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    node = write_labels(LOGRANK, time, event, weight)
    assert node.mixed == event.any()
    expected = logrank_numerator(time, event, weights_of(weight, n), inside)
    assert node.labels[inside, 1].sum() == pytest.approx(expected, abs=1e-9)


def survivals(node, event):
    """P(T > c) of each row at each cut: an event before all cuts has 0 throughout."""
    reached = node.direction > 0
    labels = node.labels[:, reached] / node.labels[:, :1] / node.direction[reached]
    return labels - labels[event.argmax()]


@pytest.mark.parametrize("weighted", [False, True])
@given(st.data())
def test_the_mean_curve_label_is_the_survival_of_the_node(weighted, data):
    # The Kaplan-Meier curve is self-consistent: what the censored rows are expected to
    # do adds up to the curve itself.
    time, event, weight = data.draw(samples(weighted))
    node = write_labels(CENSORED_QUANTILE, time, event, weight)
    if not node.mixed:
        return
    w = weights_of(weight, len(time))
    steps = [w[(time == t) & event].sum() / w[time >= t].sum() for t in np.unique(time)]
    curve = np.cumprod(1 - np.array(steps))
    shrunk = 1.0 if curve[-1] <= 1 - LEVELS[0] + 1e-9 else 1 - curve[-1]
    means = w @ survivals(node, event) / w.sum()
    for level, mean in zip(LEVELS, means, strict=False):
        survival = curve[curve <= 1 - level * shrunk + 1e-9][0]
        assert mean == pytest.approx(survival, abs=1e-10)


def test_without_censoring_curve_labels_say_who_lies_beyond_each_quantile():
    time, event, _ = in_order(range(1, 11), [True] * 10)
    node = write_labels(CENSORED_QUANTILE, time, event, None)
    beyond = np.array([[float(t > c) for c in (1, 3, 5, 7, 9)] for t in range(1, 11)])
    np.testing.assert_allclose(survivals(node, event), beyond, atol=1e-12)
    level = np.array(LEVELS)
    expected = (beyond - (1 - level)) / np.sqrt(level * (1 - level))
    np.testing.assert_allclose(node.labels[:, 1:], expected, atol=1e-12)


def test_a_censored_row_has_the_survival_from_its_own_time_on():
    # Events at 1 2 4 5, censored at 3: S is 4/5, 3/5, then 3/10, 0.
    time, event, _ = in_order([1, 2, 3, 4, 5], [1, 1, 0, 1, 1])
    node = write_labels(CENSORED_QUANTILE, time, event, None)
    censored = (3 / 10) / (3 / 5)
    np.testing.assert_allclose(survivals(node, event)[2], [1, 1, censored, censored, 0], atol=1e-12)


def test_a_level_that_survival_does_not_reach_is_left_out():
    # Events at 1 2 3 of ten rows: S ends at .7, which is the level .3, reached exactly.
    time, event, _ = in_order([1, 2, 3] + [9] * 7, [1] * 3 + [0] * 7)
    node = write_labels(CENSORED_QUANTILE, time, event, None)
    assert node.mixed
    assert node.direction[1:3] == pytest.approx([0.09**-0.5, 0.21**-0.5])
    assert node.direction[3:].tolist() == [0, 0, 0]
    assert not node.labels[:, 3:].any()
    assert survivals(node, event) == pytest.approx(
        np.array([[0, 0]] + [[1, 0]] * 2 + [[1, 1]] * 7), abs=1e-12
    )


def scale_of(levels):
    return 1 / np.sqrt(levels * (1 - levels))


@pytest.mark.parametrize("weighted", [False, True])
def test_under_heavy_censoring_levels_shrink_to_what_survival_reaches(weighted):
    # Two events of forty rows: S ends at 19/20, above every level.
    n = 40
    time, event = np.arange(n, dtype=float), np.zeros(n, bool)
    event[[0, 1]] = True
    weight = np.ones(n, np.float32) if weighted else None
    node = write_labels(CENSORED_QUANTILE, time, event, weight)
    assert node.mixed
    assert node.direction[1:] == pytest.approx(scale_of(np.array(LEVELS) / 20))
    found = survivals(node, event)
    assert found.mean(axis=0) == pytest.approx([39 / 40] * 3 + [38 / 40] * 2)
    assert found[1] == pytest.approx([1, 1, 1, 0, 0], abs=1e-12)
    assert_labels_are_true(CENSORED_QUANTILE, time, event, weight)


def test_shrunken_levels_do_not_stay_for_the_next_node():
    time, event = np.arange(60.0), np.arange(60) < 31
    labelling, cuts = read_labelling(CENSORED_QUANTILE, LEVELS), np.full((4, 6), np.nan)
    for rows, n_events in ((np.arange(30, 60), 1), (np.arange(30), 30), (np.arange(30, 60), 1)):
        rows = rows.astype(np.uint32)
        node = write_labels(
            CENSORED_QUANTILE, time, event, None, rows, labelling=labelling, cuts=cuts
        )
        assert node.direction[1:] == pytest.approx(scale_of(np.array(LEVELS) * n_events / 30))
    assert labelling.levels.tolist() == list(LEVELS)


@pytest.mark.parametrize("criterion", [VARIANCE, QUANTILE, CENSORED_QUANTILE])
def test_one_time_for_all_cannot_be_split(criterion):
    time, event, _ = in_order([3.0] * 6, [1, 0, 1, 0, 1, 0])
    assert not write_labels(criterion, time, event, None).mixed


@pytest.mark.parametrize("criterion", [LOGRANK, CENSORED_QUANTILE])
def test_a_node_without_events_cannot_be_split(criterion):
    time, event, _ = in_order(range(6), [False] * 6)
    assert not write_labels(criterion, time, event, None).mixed
