"""Product-limit curves equal what plain loops, lifelines and scikit-survival make of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from numpy.testing import assert_allclose, assert_array_equal
from sksurv.nonparametric import kaplan_meier_estimator

from cqrf import StepCurve, StepCurves
from cqrf._forest.weights import Weights
from cqrf._input.target import time_order
from cqrf._survival.curves import RankedTarget, product_limit, step_curves, weight_at_risk
from oracles.survival import kaplan_meier as grouped_product_limit
from oracles.survival import value_at

EXACT = {"rtol": 1e-12, "atol": 1e-13}

# Few distinct times, so that nearly every time is tied; a weight of 0 leaves a row out.
Row = st.tuples(st.integers(-4, 4), st.booleans(), st.integers(0, 5))
Sample = st.lists(Row, min_size=1, max_size=30).filter(lambda rows: any(w for _, _, w in rows))


class Walk:
    """Rows with weight in time order, as the curves want them."""

    def __init__(self, rows):
        rows = [row for row in rows if row[2]]
        time = np.array([row[0] for row in rows], dtype=float)
        event = np.array([row[1] for row in rows], dtype=bool)
        order = time_order(time, event)
        weight = np.array([row[2] for row in rows], dtype=float)[order]
        self.time, self.event = time[order], event[order]
        self.weight = weight / weight.sum()
        self.ranks = np.arange(len(rows), dtype=np.int32)
        self.weights = Weights(np.array([0, len(rows)]), self.ranks, self.weight)

    def product_limit(self, first_at_risk=None):
        n = len(self.ranks)
        at_risk, survival, censoring_survival = np.empty(n + 1), np.empty(n), np.empty(n)
        product_limit(
            self.ranks,
            self.weight,
            self.event,
            first_at_risk,
            at_risk,
            survival,
            censoring_survival,
        )
        return at_risk, survival, censoring_survival

    def curves(self, first_at_risk=None, **choices):
        target = RankedTarget(self.time, self.event, first_at_risk)
        return step_curves(self.weights, target, **choices)

    def curve(self, first_at_risk=None, **choices):
        return self.curves(first_at_risk, **choices)[0]


def kaplan_meier(rows, *, entries=None):
    """S and G at each distinct time, of rows (time, event, weight)."""
    time, event, weight = zip(*rows, strict=True)
    entry = None if entries is None else [-np.inf if e is None else e for e in entries]
    return tuple(
        grouped_product_limit(time, event, weight, of_censoring=of_censoring, entry=entry)
        for of_censoring in (False, True)
    )


def random_rows(rng, n, n_times, most=5):
    return [
        (int(rng.integers(1, n_times + 1)), bool(rng.integers(2)), int(rng.integers(1, most + 1)))
        for _ in range(n)
    ]


# The walk


def test_a_small_example_by_hand():
    # Ten units of weight: at 1 two die and one is lost, at 2 three die, at 3 the rest are lost.
    walk = Walk([(1, True, 2), (1, False, 1), (2, True, 3), (3, False, 4)])
    at_risk, survival, censoring_survival = walk.product_limit()
    assert_allclose(at_risk, [1.0, 0.8, 0.7, 0.4, 0.0], **EXACT)
    assert_allclose(survival, [8 / 10, 8 / 10, 8 / 10 * 4 / 7, 8 / 10 * 4 / 7], **EXACT)
    assert_allclose(censoring_survival, [1, 7 / 8, 7 / 8, 0], **EXACT)


@given(Sample)
def test_walking_row_by_row_equals_the_grouped_rule_at_ties(rows):
    walk = Walk(rows)
    _, survival, censoring_survival = walk.product_limit()
    expected_survival, expected_censoring = kaplan_meier(rows)
    for i in range(len(walk.time)):
        if i + 1 == len(walk.time) or walk.time[i + 1] > walk.time[i]:
            time = int(walk.time[i])
            assert_allclose(survival[i], float(expected_survival[time]), **EXACT)
            assert_allclose(censoring_survival[i], float(expected_censoring[time]), **EXACT)


@given(Sample)
def test_the_product_of_both_curves_is_the_weight_still_at_risk(rows):
    walk = Walk(rows)
    at_risk, survival, censoring_survival = walk.product_limit()
    total = sum(weight for _, _, weight in rows)
    for i, q in enumerate(walk.time):
        if i + 1 == len(walk.time) or walk.time[i + 1] > q:
            still_there = sum(weight for time, _, weight in rows if time > q) / total
            assert_allclose(survival[i] * censoring_survival[i], still_there, **EXACT)
            assert_allclose(at_risk[i + 1], still_there, **EXACT)
    assert at_risk[-1] == 0.0


@given(Sample)
def test_both_curves_fall_from_one_and_stay_above_zero(rows):
    _, survival, censoring_survival = Walk(rows).product_limit()
    for curve in (survival, censoring_survival):
        assert (np.diff(np.concatenate([[1.0], curve])) <= 0).all()
        assert (curve >= 0).all()


def test_a_curve_whose_last_row_is_an_event_ends_at_zero_exactly():
    rng = np.random.default_rng(3)
    for _ in range(50):
        rows = [(time, bool(rng.integers(2)), int(rng.integers(1, 9))) for time in range(30)]
        _, survival, _ = Walk([*rows, (30, True, 7)]).product_limit()
        assert survival[-1] == 0.0


def test_rows_without_weight_change_nothing():
    """The last ones neither, where nothing is at risk."""
    ranks = np.arange(5, dtype=np.int32)
    event = np.array([True, True, False, True, False])
    weight = np.array([0.4, 0.0, 0.6, 0.0, 0.0])
    at_risk, survival, censoring_survival = np.empty(6), np.empty(5), np.empty(5)
    product_limit(ranks, weight, event, None, at_risk, survival, censoring_survival)
    assert_allclose(survival, [0.6] * 5, **EXACT)
    assert_allclose(censoring_survival, [1, 1, 0, 0, 0], **EXACT)


def test_only_the_rows_of_a_query_enter_its_curve():
    event = np.array([True, False, True, False, True])
    time = np.arange(5.0)
    weights = Weights(
        np.array([0, 2, 2, 4]),
        np.array([2, 4, 0, 3], dtype=np.int32),
        np.array([0.3, 0.7, 0.5, 0.5]),
    )
    curves = step_curves(weights, RankedTarget(time, event))
    assert len(curves) == 3
    assert curves[0].times.tolist() == [2.0, 4.0]
    assert_allclose(curves[0].values, [0.7, 0.0], **EXACT)
    assert curves[1].times.tolist() == []  # a query that no row speaks for
    assert curves[1](3.0, beyond="extend") == 1.0
    assert curves[2].times.tolist() == [0.0]
    assert_allclose(curves[2].values, [0.5], **EXACT)
    of_censoring = step_curves(weights, RankedTarget(time, event), of_censoring=True)
    assert of_censoring[0].times.tolist() == []
    assert of_censoring[2].times.tolist() == [3.0]
    assert_allclose(of_censoring[2].values, [0.0], atol=1e-15)


# Curves against loops and other packages


@given(Sample)
def test_curves_are_the_grouped_kaplan_meier_curves_at_every_time(rows):
    walk = Walk(rows)
    survival, censoring = kaplan_meier(rows)
    grid = np.arange(-5, 5.5, 0.5)
    for steps, of_censoring in ((survival, False), (censoring, True)):
        curve = walk.curve(of_censoring=of_censoring)
        assert_allclose(
            curve(grid, beyond="extend"), [float(value_at(steps, t)) for t in grid], **EXACT
        )


@given(Sample)
def test_a_curve_has_one_step_for_each_time_of_its_own_kind(rows):
    walk = Walk(rows)
    for of_censoring in (False, True):
        curve = walk.curve(of_censoring=of_censoring)
        times = {time for time, event, weight in rows if weight and event != of_censoring}
        assert curve.times.tolist() == sorted(times)
        assert len(curve.values) == len(curve.times)


@pytest.mark.parametrize("seed", range(5))
def test_survival_equals_lifelines_with_weights_and_ties(seed):
    rows = random_rows(np.random.default_rng(seed), n=80, n_times=15)
    time, event, weight = (np.array(column) for column in zip(*rows, strict=True))
    fitter = KaplanMeierFitter().fit(time, event, weights=weight)
    grid = np.arange(0, 17, 0.5)
    expected = fitter.survival_function_at_times(grid).to_numpy()
    assert_allclose(Walk(rows).curve()(grid, beyond="extend"), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("of_censoring", [False, True], ids=["S", "G"])
def test_both_curves_equal_scikit_survival_with_ties(seed, of_censoring):
    rng = np.random.default_rng(seed)
    rows = [(time, event, 1) for time, event, _ in random_rows(rng, n=80, n_times=15)]
    time, event, _ = (np.array(column) for column in zip(*rows, strict=True))
    at, expected = kaplan_meier_estimator(event, time.astype(float), reverse=of_censoring)
    curve = Walk(rows).curve(of_censoring=of_censoring)
    assert_allclose(curve(at), expected, rtol=1e-10, atol=1e-12)


# Step curves


def test_a_step_curve_is_right_continuous():
    curve = StepCurve(times=[1.0, 3.0], values=[0.6, 0.2])
    just_before = np.nextafter([1.0, 3.0], -np.inf)
    assert curve(just_before).tolist() == [1.0, 0.6]
    assert curve([1.0, 3.0]).tolist() == [0.6, 0.2]
    assert curve([-np.inf, np.inf]).tolist() == [1.0, 0.2]


def test_a_step_curve_takes_times_in_any_order_and_shape():
    curve = StepCurve(np.array([1.0, 3.0]), np.array([0.6, 0.2]), initial=0.9)
    assert curve([3.0, 0.0, 2.0, 0.0]).tolist() == [0.2, 0.9, 0.6, 0.9]
    assert curve(2.0) == 0.6
    assert curve([[0.0, 1.0], [2.0, 9.0]]).tolist() == [[0.9, 0.6], [0.6, 0.2]]
    assert curve([]).shape == (0,)


@pytest.fixture
def curves():
    return StepCurves(
        offsets=np.array([0, 2, 2, 5]),
        times=np.array([1.0, 3.0, -2.0, 0.0, 4.0]),
        values=np.array([0.6, 0.2, 0.5, 0.25, 0.0]),
        initial=np.array([1.0, 0.7, 0.9]),
    )


def test_step_curves_are_indexed_like_a_list(curves):
    assert len(curves) == 3
    assert isinstance(curves[0], StepCurve)
    assert curves[0].times.tolist() == [1.0, 3.0]
    assert curves[0].values.tolist() == [0.6, 0.2]
    assert curves[0].initial == 1.0
    assert curves[1].times.tolist() == []
    assert curves[1].initial == 0.7
    assert curves[2].values.tolist() == curves[-1].values.tolist() == [0.5, 0.25, 0.0]
    assert curves[np.int64(2)].initial == curves[-1].initial == 0.9
    for beyond in (3, -4):
        with pytest.raises(IndexError):
            curves[beyond]


def test_step_curves_are_iterated_in_order(curves):
    assert [curve.values.tolist() for curve in curves] == [[0.6, 0.2], [], [0.5, 0.25, 0.0]]
    assert [curve.initial for curve in curves] == [1.0, 0.7, 0.9]


def test_calling_step_curves_calls_each_of_them_at_times_in_any_order(curves):
    times = [3.0, -5.0, 0.0, 4.0, 0.0, np.inf, -np.inf, 1.0, 3.5]
    values = curves(times)
    assert values.shape == (3, len(times))
    assert values.tolist() == [curve(times).tolist() for curve in curves]
    assert values[0].tolist() == [0.2, 1.0, 1.0, 0.2, 1.0, 0.2, 1.0, 0.6, 0.2]
    assert values[1].tolist() == [0.7] * len(times)
    assert curves([]).shape == (3, 0)


def test_each_curve_has_a_time_of_its_own(curves):
    assert curves.each([1.0, 5.0, -2.0]).tolist() == [0.6, 0.7, 0.5]
    for times in ([1.0, 5.0], [1.0, np.nan, -2.0]):
        with pytest.raises(ValueError, match="3 numbers without NaN"):
            curves.each(times)


def test_joined_curves_are_the_curves_of_the_parts(curves):
    other = StepCurves(np.array([0, 1]), np.array([2.0]), np.array([0.3]), np.array([0.8]))
    empty = StepCurves(np.array([0]), np.empty(0), np.empty(0), np.empty(0))
    joined = StepCurves.join([other, curves, empty])
    assert len(joined) == 4
    for one, expected in zip(joined, [*other, *curves], strict=True):
        assert_array_equal(one.times, expected.times)
        assert_array_equal(one.values, expected.values)
        assert one.initial == expected.initial
    times = [0.0, 5.0, 2.0]
    assert_array_equal(joined(times), np.vstack([other(times), curves(times)]))


# Restricted mean


def restricted_mean_by_area(curve, horizon, censoring):
    """E[min(T, h)] = h - area under P(T <= t) left of h; E[max(T, h)] = h + area of P(T > t)."""
    times = np.asarray(curve.times)
    low, high = min(times.min(), horizon) - 1.0, max(times.max(), horizon) + 1.0
    cuts = np.unique(np.concatenate([times, [low, horizon, high]]))
    middles, widths = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts)
    if censoring == "right":
        left = middles < horizon
        return horizon - ((1.0 - curve(middles, beyond="extend")) * widths)[left].sum()
    right = middles > horizon
    return horizon + (curve(middles, beyond="extend") * widths)[right].sum()


@given(Sample, st.sampled_from([-9.0, -4.0, -1.5, 0.0, 2.0, 2.25, 4.0, 11.0]))
def test_restricted_mean_is_an_area_under_the_curve(rows, horizon):
    walk = Walk(rows)
    for censoring in ("right", "left"):
        curves = walk.curves(censoring=censoring)
        (mean,) = curves.restricted_mean(horizon, censoring, beyond="extend")
        if not walk.event.any():
            assert_allclose(mean, horizon, **EXACT)
            continue
        expected = restricted_mean_by_area(curves[0], horizon, censoring)
        assert_allclose(mean, expected, rtol=1e-11, atol=1e-11)


def test_restricted_mean_without_censoring_is_the_weighted_mean_of_cut_times():
    rng = np.random.default_rng(0)
    rows = [(time, True, weight) for time, _, weight in random_rows(rng, 40, 12)]
    rows = [(time - 6, event, weight) for time, event, weight in rows]
    walk = Walk(rows)
    time, weight = (np.array([row[i] for row in rows]) for i in (0, 2))
    curves = walk.curves()
    for horizon in (-8.0, -2.0, 0.5, 3.0, 99.0):
        expected = np.average(np.minimum(time, horizon), weights=weight)
        assert_allclose(curves.restricted_mean(horizon), [expected], **EXACT)
    mirrored = Walk([(-time, event, weight) for time, event, weight in rows])
    curves = mirrored.curves(censoring="left")
    for horizon in (-99.0, -2.0, 0.5, 3.0, 8.0):
        expected = np.average(np.maximum(time, horizon), weights=weight)
        assert_allclose(curves.restricted_mean(horizon, "left"), [expected], **EXACT)


def test_what_a_curve_leaves_counts_at_the_horizon():
    walk = Walk([(1, True, 1), (2, False, 1)])
    curves = walk.curves()
    assert_allclose(curves.restricted_mean(10.0, beyond="extend"), [0.5 * 1 + 0.5 * 10])
    left = walk.curves(censoring="left")
    # An event at -1, and a time of at most -2 that counts at the horizon.
    assert_allclose(left.restricted_mean(-10.0, "left", "extend"), [0.5 * -1 + 0.5 * -10])


# Left censoring


def left_censored_survival(rows, t, of_censoring):
    """P(T > t), or P(C > t), where Y = max(T, C): the weight of -T below -t, by loops."""
    survival, censoring = kaplan_meier([(-time, event, weight) for time, event, weight in rows])
    steps = censoring if of_censoring else survival
    at_or_after = 1.0  # P(-T >= -t), the value just before -t
    for time in sorted(steps):
        if time < -t:
            at_or_after = float(steps[time])
    return 1.0 - at_or_after


@given(Sample)
def test_left_censored_curves_are_those_of_the_mirrored_problem(rows):
    mirrored = Walk([(-time, event, weight) for time, event, weight in rows])
    grid = np.arange(-5, 5.5, 0.5)
    for of_censoring in (False, True):
        curve = mirrored.curve(of_censoring=of_censoring, censoring="left")
        expected = [left_censored_survival(rows, t, of_censoring) for t in grid]
        assert_allclose(curve(grid, beyond="extend"), expected, **EXACT)
        assert (np.diff(curve.times) > 0).all()
        assert_allclose(curve.initial, left_censored_survival(rows, -np.inf, of_censoring), **EXACT)


def test_a_left_censored_curve_by_hand():
    # Seen at 1 and 3; at most 2 and at most 4, where nothing above 4 was ever seen.
    mirrored = Walk([(-1, True, 1), (-2, False, 1), (-3, True, 1), (-4, False, 1)])
    curve = mirrored.curve(censoring="left")
    assert curve.times.tolist() == [1.0, 3.0]
    assert_allclose(curve.values, [1 / 3, 0], atol=1e-15)  # of three at most 3, one is 3
    assert_allclose(curve.initial, 1.0)  # the last of them is 1
    of_censoring = mirrored.curve(censoring="left", of_censoring=True)
    assert of_censoring.times.tolist() == [2.0, 4.0]
    assert_allclose(of_censoring.values, [1 / 4, 0], atol=1e-15)
    assert_allclose(of_censoring.initial, 1 / 4 + 3 / 4 * 1 / 2)


def test_without_events_a_left_censored_time_is_below_everything():
    walk = Walk([(1, False, 1), (2, False, 1)])
    curve = walk.curve(censoring="left")
    assert curve.times.tolist() == []
    assert curve([-9.0, 9.0], beyond="extend").tolist() == [0.0, 0.0]


# Delayed entry


def first_ranks(time, entry):
    """The first rank whose time lies after the entry of each row."""
    return np.array([int((time <= e).sum()) for e in entry], dtype=np.int32)


def late_rows(rng, n, n_times):
    """Rows with an entry before their time, and often at another row's time."""
    rows = random_rows(rng, n, n_times)
    return rows, [int(rng.integers(-2, time)) for time, _, _ in rows]


def walk_late(rows, entries):
    walk = Walk(rows)
    time, event = (np.array([row[i] for row in rows]) for i in (0, 1))
    order = time_order(time.astype(float), event.astype(bool))
    return walk, first_ranks(walk.time, np.array(entries)[order])


@pytest.mark.parametrize("seed", range(20))
def test_weight_at_risk_counts_rows_from_the_first_time_after_their_entry(seed):
    rows, entries = late_rows(np.random.default_rng(seed), n=25, n_times=8)
    walk, first_at_risk = walk_late(rows, entries)
    at_risk = np.empty(len(rows) + 1)
    weight_at_risk(walk.ranks, walk.weight, first_at_risk, at_risk, np.empty(len(rows)))
    total = sum(weight for _, _, weight in rows)
    for i in range(len(rows)):
        if i and walk.time[i - 1] == walk.time[i]:
            continue  # inside a tie the rows before have left already
        now = walk.time[i]
        pairs = zip(rows, entries, strict=True)
        expected = sum(w for (time, _, w), entry in pairs if entry < now <= time)
        assert_allclose(at_risk[i], expected / total, **EXACT)


@pytest.mark.parametrize("seed", range(20))
def test_delayed_entry_equals_grouped_loops(seed):
    rows, entries = late_rows(np.random.default_rng(seed), n=25, n_times=8)
    walk, first_at_risk = walk_late(rows, entries)
    survival, censoring = kaplan_meier(rows, entries=entries)
    grid = np.arange(-1, 10, 0.5)
    for steps, of_censoring in ((survival, False), (censoring, True)):
        curve = walk.curve(first_at_risk=first_at_risk, of_censoring=of_censoring)
        expected = [float(value_at(steps, t)) for t in grid]
        assert_allclose(curve(grid, beyond="extend"), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tied", [False, True], ids=["entries between times", "entries at times"])
def test_delayed_entry_equals_lifelines(seed, tied):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, n=60, n_times=12)
    entries = [int(rng.integers(0, time)) + (0.0 if tied else 0.5) for time, _, _ in rows]
    walk, first_at_risk = walk_late(rows, entries)
    time, event, weight = (np.array(column) for column in zip(*rows, strict=True))
    fitter = KaplanMeierFitter().fit(time, event, entry=entries, weights=weight)
    grid = np.arange(1, 14, 0.5)  # lifelines says NaN where nobody has entered yet
    expected = fitter.survival_function_at_times(grid).to_numpy()
    curve = walk.curve(first_at_risk=first_at_risk)
    assert_allclose(curve(grid, beyond="extend"), expected, rtol=1e-9, atol=1e-12)


def test_entry_before_every_time_changes_nothing():
    rows = random_rows(np.random.default_rng(1), n=60, n_times=12)
    walk = Walk(rows)
    there = np.zeros(len(rows), dtype=np.int32)
    for late, early in zip(walk.product_limit(there), walk.product_limit(), strict=True):
        assert_allclose(late[: len(rows)], early[: len(rows)], **EXACT)


def test_delayed_entry_counts_ranks_of_all_training_rows_not_places_in_the_query():
    # The query knows the ranks 1, 3, 4; the row of rank 4 enters after the time of rank 2.
    time, event = np.arange(5.0), np.array([True, True, True, True, True])
    first_at_risk = np.array([0, 0, 0, 0, 3], dtype=np.int32)
    weights = Weights(np.array([0, 3]), np.array([1, 3, 4], dtype=np.int32), np.full(3, 1 / 3))
    curve = step_curves(weights, RankedTarget(time, event, first_at_risk))[0]
    assert_allclose(curve.values, [1 / 2, 1 / 4, 0], atol=1e-15)
