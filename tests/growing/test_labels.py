"""Labels: each criterion against its definition, in exact fractions.

The twin here goes by distinct times and rational numbers, never by position, so ties and
levels that are reached exactly leave no room for a last digit.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf.growing.labels import (
    CENSORED_QUANTILE,
    CLASSES,
    CURVE,
    LOGRANK,
    MEAN,
    QUANTILE,
    VARIANCE,
    VECTOR,
    label_node,
)

LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
CRITERIA = (VARIANCE, LOGRANK, QUANTILE, CENSORED_QUANTILE)


class Node(NamedTuple):
    """What label_node writes about the rows of one node, in their order."""

    mixed: bool
    shape: int
    mass: float
    value: np.ndarray
    ends: np.ndarray
    means: np.ndarray
    precision: np.ndarray
    survival_at: np.ndarray
    levels: np.ndarray
    vectors: np.ndarray


def write_labels(criterion, time, event, weight, rows=None, levels=LEVELS, used=None, entry=None):
    """Call the kernel with scratch full of NaN: it must write all that it promises.

    ``used`` may be the levels that another node has left behind.
    """
    first = None
    if entry is not None:
        first = np.array([(time <= since).sum() for since in entry], np.int32)
    rows = np.arange(len(time), dtype=np.int32) if rows is None else rows
    n, k = len(rows), len(levels)
    value, at_risk, ends = np.full(n, np.nan), np.full(n, np.nan), np.full(k + 1, -1)
    used = np.full(k, np.nan) if used is None else used
    vectors = np.full((0 if entry is None else n, k), np.nan)
    means, precision, survival_at = (np.full(k + 1, np.nan) for _ in range(3))
    mixed, shape, mass = label_node(
        criterion,
        time,
        event,
        weight,
        rows,
        levels,
        at_risk,
        used,
        value,
        ends,
        means,
        precision,
        survival_at,
        first,
        vectors,
    )
    return Node(mixed, shape, mass, value, ends, means, precision, survival_at, used, vectors)


def row_labels(node, weights):
    """Read back the label of each row, shape (rows, labels), times the row's weight."""
    n = len(node.value)
    if node.shape == MEAN:
        return node.value[:, None]
    if node.shape == VECTOR:
        return node.vectors
    labels = np.zeros((n, len(node.ends)))
    if node.shape == CLASSES:
        start = 0
        for c, end in enumerate(node.ends):
            labels[start:end, c] = weights[start:end]
            start = end
        return labels
    for k in np.flatnonzero(node.precision):
        end = node.ends[k]
        labels[:end, k] = node.survival_at[k] * node.value[:end]
        labels[end:, k] = weights[end:]
    return labels


def hazard_steps(time, event, weight, entry):
    """Weight that dies over weight at risk at each distinct time, in exact fractions."""
    rows, steps = list(zip(time, event, weight, entry, strict=True)), {}
    for t in sorted(set(time)):
        died = sum(w for y, d, w, _ in rows if y == t and d)
        steps[t] = died / sum(w for y, _, w, since in rows if since < t <= y)
    return steps


def true_labels(criterion, time, event, weight=None, levels=LEVELS, entry=None):
    """Labels by definition: (labels of shape (rows, labels), one over their variance).

    The labels are those of a row of weight 1. None where the node should not be split. A row
    is at risk only after its entry; what its label was expected to be at entry is taken off.
    """
    late = entry is not None
    entry = [float(since) for since in entry] if late else [-np.inf] * len(time)
    time, event = [Fraction(float(t)) for t in time], [bool(d) for d in event]
    weight = [
        Fraction(1) if weight is None else Fraction(float(weight[i])) for i in range(len(time))
    ]
    taus = [Fraction(level).limit_denominator(1000) for level in levels]
    rows = list(zip(time, event, weight, strict=True))
    if criterion == LOGRANK:
        if not any(event):
            return None
        hazard = hazard_steps(time, event, weight, entry)
        labels = [
            [d - sum(h for t, h in hazard.items() if since < t <= y)]
            for (y, d, _), since in zip(rows, entry, strict=True)
        ]
        return np.array(labels, float), np.ones(1)
    if len(set(time)) == 1:
        return None
    if criterion == VARIANCE:
        mean = sum(w * y for y, _, w in rows) / sum(weight)
        return np.array([[y - mean] for y in time], float), np.ones(1)
    if criterion == QUANTILE:
        share = {t: sum(w for y, _, w in rows if y <= t) / sum(weight) for t in time}
        cuts = [min(t for t in time if share[t] >= tau) for tau in taus]
        if cuts[0] == max(time):
            return None
        classes = [sum(y > c for c in cuts) for y in time]
        # Labels of classes that share a cut point are zero throughout.
        return np.array([[c == k for k in range(len(taus) + 1)] for c in classes], float), np.ones(
            len(taus) + 1
        )
    survival, alive = {}, Fraction(1)
    for t, hazard in hazard_steps(time, event, weight, entry).items():
        alive *= 1 - hazard
        survival[t] = alive
    end = min(survival.values())
    if end > 1 - taus[0]:
        if end == 1:
            return None
        taus = [tau * (1 - end) for tau in taus]
    taus = [tau for tau in taus if end <= 1 - tau]
    cuts = [min(t for t in survival if survival[t] <= 1 - tau) for tau in taus]
    labels = []
    for (y, died, _), since in zip(rows, entry, strict=True):
        row = []
        for cut in cuts:
            label = Fraction(y > cut)
            if y <= cut and not died:
                label = survival[cut] / survival[y]
            if late:
                at_entry = min((survival[t] for t in survival if t <= since), default=1)
                expected = survival[cut] / at_entry if at_entry > 0 else 0
                label -= 1 if since >= cut else expected
            row.append(label)
        labels.append(row)
    return np.array(labels, float), np.array([1 / (tau * (1 - tau)) for tau in taus], float)


def in_order(time, event, weight=None):
    """Arrays in time order, events before censorings at a tied time."""
    time, event = np.asarray(time, float), np.asarray(event, bool)
    order = np.lexsort((~event, time))
    if weight is not None:
        weight = np.asarray(weight, np.float32)[order]
    return time[order], event[order], weight


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


def assert_labels_are_true(criterion, time, event, weight, rows=None, entry=None):
    rows = np.arange(len(time), dtype=np.int32) if rows is None else rows
    node = write_labels(criterion, time, event, weight, rows, entry=entry)
    own_weight = None if weight is None else weight[rows]
    own_entry = None if entry is None else entry[rows]
    truth = true_labels(criterion, time[rows], event[rows], own_weight, entry=own_entry)
    assert node.mixed == (truth is not None)
    if truth is None:
        return
    labels, precision = truth
    w = weights_of(own_weight, len(rows))
    assert node.mass == pytest.approx(w.sum())
    used = labels.shape[1]
    found = row_labels(node, w)
    np.testing.assert_allclose(found[:, :used], labels * w[:, None], rtol=1e-10, atol=1e-10)
    if node.shape != MEAN:
        np.testing.assert_allclose(node.precision[:used], precision, rtol=1e-10)
        np.testing.assert_allclose(node.means[:used], w @ labels / w.sum(), atol=1e-10)
        assert (node.precision[used:] == 0).all()


@pytest.mark.parametrize("criterion", CRITERIA)
@given(samples(weighted=False))
def test_labels_are_those_of_the_definition(criterion, sample):
    assert_labels_are_true(criterion, *sample)


@pytest.mark.parametrize("criterion", CRITERIA)
@given(samples(weighted=True))
def test_weighted_labels_are_those_of_the_definition(criterion, sample):
    assert_labels_are_true(criterion, *sample)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_node_is_labelled_from_its_own_rows_alone(criterion, weighted):
    rng = np.random.default_rng(0)
    for _ in range(20):
        time, event, weight = in_order(
            rng.integers(0, 30, 60), rng.random(60) < 0.6, rng.integers(1, 9, 60) / 4
        )
        rows = np.flatnonzero(rng.random(60) < 0.4).astype(np.int32)
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
        rows = np.flatnonzero(rng.random(60) < 0.5).astype(np.int32)
        weight = weight if weighted else None
        assert_labels_are_true(criterion, time, event, weight, rows, entry)


@pytest.mark.parametrize("criterion", CRITERIA)
@given(samples(weighted=False, max_size=12), st.data())
def test_a_weight_of_two_is_a_row_twice(criterion, sample, data):
    time, event, _ = sample
    n = len(time)
    times = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)))
    weighted = write_labels(criterion, time, event, times.astype(np.float32))
    repeated = write_labels(criterion, np.repeat(time, times), np.repeat(event, times), None)
    assert weighted.mixed == repeated.mixed
    assert weighted.shape == repeated.shape
    if not weighted.mixed:
        return
    first = np.cumsum(times) - times
    np.testing.assert_allclose(
        row_labels(weighted, times.astype(float)),
        times[:, None] * row_labels(repeated, np.ones(times.sum()))[first],
        rtol=1e-10,
        atol=1e-10,
    )


def test_the_kernel_names_the_shape_of_its_labels():
    time, event, _ = in_order(range(20), [True] * 20)
    shapes = [write_labels(criterion, time, event, None).shape for criterion in CRITERIA]
    assert shapes == [MEAN, MEAN, CLASSES, CURVE]


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
    assert node.value[inside].sum() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@given(st.data())
def test_the_mean_curve_label_is_the_survival_of_the_node(weighted, data):
    # The Kaplan-Meier curve is self-consistent: what the censored rows are expected to
    # do adds up to the curve itself.
    time, event, weight = data.draw(samples(weighted))
    node = write_labels(CENSORED_QUANTILE, time, event, weight)
    if node.mixed:
        reached = node.precision > 0
        np.testing.assert_allclose(node.means[reached], node.survival_at[reached], atol=1e-10)


def test_without_censoring_curve_labels_say_who_lies_beyond_each_quantile():
    time, event, _ = in_order(range(1, 11), [True] * 10)
    node = write_labels(CENSORED_QUANTILE, time, event, None)
    assert node.ends[:5].tolist() == [1, 3, 5, 7, 9]
    expected = [[float(t > c) for c in (1, 3, 5, 7, 9)] for t in range(1, 11)]
    assert row_labels(node, np.ones(10))[:, :5].tolist() == expected


def test_a_censored_row_has_the_survival_from_its_own_time_on():
    # Events at 1 2 4 5, censored at 3: S is 4/5, 3/5, then 3/10, 0.
    time, event, _ = in_order([1, 2, 3, 4, 5], [1, 1, 0, 1, 1])
    node = write_labels(CENSORED_QUANTILE, time, event, None)
    assert node.ends[:5].tolist() == [1, 2, 4, 4, 5]
    np.testing.assert_allclose(
        row_labels(node, np.ones(5))[2, :5], [1, 1, (3 / 10) / (3 / 5), (3 / 10) / (3 / 5), 0]
    )


def test_a_level_that_survival_does_not_reach_is_left_out():
    # Events at 1 2 3 of ten rows: S ends at .7, which is the level .3, reached exactly.
    time, event, _ = in_order([1, 2, 3] + [9] * 7, [1] * 3 + [0] * 7)
    node = write_labels(CENSORED_QUANTILE, time, event, None)
    assert node.mixed
    assert node.ends.tolist() == [1, 3, 10, 10, 10, 10]
    assert node.precision[:2] == pytest.approx([1 / 0.09, 1 / 0.21])
    assert node.precision[2:].tolist() == [0, 0, 0, 0]
    assert node.levels.tolist() == list(LEVELS)


@pytest.mark.parametrize("weighted", [False, True])
def test_under_heavy_censoring_levels_shrink_to_what_survival_reaches(weighted):
    # Two events of forty rows: S ends at 19/20, above every level.
    n = 40
    time, event = np.arange(n, dtype=float), np.zeros(n, bool)
    event[[0, 1]] = True
    weight = np.ones(n, np.float32) if weighted else None
    node = write_labels(CENSORED_QUANTILE, time, event, weight)
    assert node.mixed
    assert node.levels == pytest.approx(np.array(LEVELS) / 20)
    assert node.survival_at[:5] == pytest.approx([39 / 40] * 3 + [38 / 40] * 2)
    assert node.ends.tolist() == [1, 1, 1, 2, 2, n]
    assert_labels_are_true(CENSORED_QUANTILE, time, event, weight)


def test_shrunken_levels_do_not_stay_for_the_next_node():
    time, event = np.arange(60.0), np.arange(60) < 31
    used = np.full(5, np.nan)
    for rows, n_events in ((np.arange(30, 60), 1), (np.arange(30), 30), (np.arange(30, 60), 1)):
        node = write_labels(CENSORED_QUANTILE, time, event, None, rows.astype(np.int32), used=used)
        assert node.levels == pytest.approx(np.array(LEVELS) * n_events / 30)


@pytest.mark.parametrize("criterion", [VARIANCE, QUANTILE, CENSORED_QUANTILE])
def test_one_time_for_all_cannot_be_split(criterion):
    time, event, _ = in_order([3.0] * 6, [1, 0, 1, 0, 1, 0])
    assert not write_labels(criterion, time, event, None).mixed


@pytest.mark.parametrize("criterion", [LOGRANK, CENSORED_QUANTILE])
def test_a_node_without_events_cannot_be_split(criterion):
    time, event, _ = in_order(range(6), [False] * 6)
    assert not write_labels(criterion, time, event, None).mixed
