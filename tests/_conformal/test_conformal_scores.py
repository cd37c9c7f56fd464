"""Scores and thresholds: small cases by hand, loops, and lifelines."""

import numpy as np
import pytest
from lifelines import KaplanMeierFitter

from cqrf._conformal.scores import (
    LEAST_AT_RISK,
    THRESHOLDS,
    CalibrationRows,
    SharesByThreshold,
    WeightedScores,
    censoring_survival_before,
    score_by_ipcw,
    score_by_risk_sets,
    score_rows,
    score_up_to_bounds,
    score_up_to_cutoff,
    score_upper,
    score_upper_by_risk_sets,
    share_below_bounds,
)
from cqrf._input.target import Target
from cqrf._survival.step_curves import StepCurves
from cqrf.metrics.ipcw import FLOOR


def same_curve(n, times, values):
    """The same step curve for n rows."""
    steps = np.asarray(times, float), np.asarray(values, float)
    tiled = (np.tile(each, n) for each in steps)
    return StepCurves(np.arange(n + 1) * len(steps[0]), *tiled, np.ones(n))


def make_rows(time, event=True, *, entry=None, weight=1.0, g=None, c=None, curve=None):
    """Calibration rows with S(t) = 1 - t / 10 at whole t, or another curve for all."""
    time = np.asarray(time, float)
    n = len(time)
    times, values = curve or (np.arange(1, 11), 1 - np.arange(1, 11) / 10)
    return CalibrationRows(
        Target(time, np.broadcast_to(event, n), None if entry is None else np.asarray(entry)),
        np.broadcast_to(np.asarray(weight, float), n),
        same_curve(n, times, values),
        None if g is None else same_curve(n, *g),
        None if c is None else np.asarray(c, float),
    )


# The query is counted as a miss, and all held-out rows count.


@pytest.mark.parametrize(
    ("n", "coverage", "rank"),
    [(9, 0.9, 1), (99, 0.9, 10), (98, 0.9, 9), (19, 0.95, 1), (4, 0.8, 1)],
)
def test_the_threshold_is_the_rank_of_split_conformal(n, coverage, rank):
    """The k-th largest of n scores with k = (1 - coverage) (n + 1), rounded down."""
    scores = WeightedScores(1 - np.arange(n) / n, np.arange(1.0, n + 1), float(n))
    assert scores.find_threshold(1 - coverage) == scores.scores[rank - 1]


@pytest.mark.parametrize(("n", "coverage"), [(8, 0.9), (18, 0.95), (3, 0.8)])
def test_one_row_less_gives_no_threshold(n, coverage):
    scores = WeightedScores(1 - np.arange(n) / n, np.arange(1.0, n + 1), float(n))
    assert scores.find_threshold(1 - coverage) == np.inf


def test_the_upper_threshold_is_the_rank_of_split_conformal():
    """The k-th largest of n scores with k = (1 - missed) (n + 1), rounded up."""
    for n, rank in ((19, 19), (38, 38), (39, 38), (40, 39)):
        scores = WeightedScores(1 - np.arange(n) / n, np.arange(1.0, n + 1), float(n))
        found = scores.find_upper_threshold(0.05)
        assert found == np.nextafter(scores.scores[rank - 1], -1)
    few = WeightedScores(1 - np.arange(18) / 18, np.arange(1.0, 19), 18.0)
    assert few.find_upper_threshold(0.05) is None


def test_shares_by_threshold():
    shares = SharesByThreshold(np.array([0.8, 0.4]), np.array([0.1, 0.3]))
    assert shares.find_threshold(1 - 0.9) == 0.8  # 1 - .9 is less than .1
    assert shares.find_threshold(0.09) == np.inf
    assert shares.find_upper_threshold(1 - 0.3) == 0.4
    assert shares.find_upper_threshold(0.95) == 0.8
    assert shares.find_upper_threshold(0.65) is None


def test_censored_rows_count_in_the_total():
    rows = make_rows([1.5, 2.5, 3.5, 4.5], [True, False, True, False], weight=[1, 2, 3, 4])
    scores = score_by_ipcw(rows, np.inf)
    assert scores.total_weight == 10
    np.testing.assert_allclose(scores.scores, [0.9, 0.7])
    np.testing.assert_allclose(scores.cumulative_weight, [1, 4])
    assert score_upper(rows).total_weight == 10


def test_weights_of_events():
    """1 / G just before the event, not more than 1 / FLOOR, times the sample weight."""
    g = ([1.0, 2.0, 3.0], [0.5, 0.25, 0.01])
    rows = make_rows([1.0, 2.0, 2.5, 3.5], weight=[1, 1, 2, 1], g=g)
    scores = score_by_ipcw(rows, np.inf)
    np.testing.assert_allclose(np.diff(scores.cumulative_weight, prepend=0), [1, 2, 8, 1 / FLOOR])
    assert scores.total_weight == 5
    upper = score_upper(rows)
    np.testing.assert_allclose(upper.scores, [1.0, 0.9, 0.8, 0.7])  # just before the event
    assert upper.total_weight == 21  # no less than the weight of all events


# The edge of the cutoff.


def test_an_event_at_the_cutoff_is_no_miss():
    rows = make_rows([1.0, 2.0, 3.0])
    assert score_by_ipcw(rows, 2.0).scores.tolist() == [0.9]
    assert score_by_ipcw(rows, np.nextafter(2.0, 3.0)).scores.tolist() == [0.9, 0.8]
    assert score_by_ipcw(rows, 2.0).total_weight == 3
    known = rows._replace(censoring_time=np.array([9.0, 9.0, 9.0]))
    assert score_up_to_cutoff(known, 2.0).scores.tolist() == [0.9]
    assert score_up_to_cutoff(known, np.nextafter(2.0, 3.0)).scores.tolist() == [0.9, 0.8]


def test_a_row_with_c_at_the_cutoff_is_observed_up_to_it():
    """And G counts just before the cutoff."""
    time, c = [1.0, 1.0, 2.0, 2.5], [2.0, 1.5, 2.0, 9.0]
    rows = make_rows(time, [True, True, False, True], c=c, weight=[1, 1, 3, 1])
    found = score_up_to_cutoff(rows, 2.0)
    assert found.total_weight == 5  # all but the second
    assert found.cumulative_weight.tolist() == [1]
    g = ([2.0], [0.5])
    halved = score_up_to_cutoff(rows._replace(censoring_curves=same_curve(4, *g)), 2.0)
    assert halved.total_weight == 5
    later = score_up_to_cutoff(rows._replace(censoring_curves=same_curve(4, *g)), 2.25)
    assert later.total_weight == 2


def test_known_censoring_times_by_loops():
    """For each v: rows with C >= b_v, misses before b_v, and the query as one more miss."""
    rng = np.random.default_rng(0)
    time, c = rng.integers(1, 11, 40).astype(float), rng.integers(1, 13, 40).astype(float)
    event = time <= c
    weight = rng.integers(1, 4, 40).astype(float)
    g = (np.arange(1.0, 12), 1 - np.arange(1, 12) / 12)
    rows = make_rows(np.minimum(time, c), event, c=c, g=g, weight=weight)
    found = score_up_to_bounds(rows)
    largest = 0.0
    for v, share in zip(found.thresholds, found.shares, strict=True):
        bound = next(t for t in range(1, 11) if 1 - t / 10 <= v)
        before = max(1 - (bound - 1) / 12, FLOOR)
        used = [i for i in range(40) if c[i] >= bound]
        missed = sum(weight[i] / before for i in used if event[i] and time[i] < bound)
        total = sum(weight[i] / before for i in used)
        largest = max(largest, (missed + 1) / (total + 1))
        assert share == pytest.approx(largest)


# Delayed entry.


def test_shares_under_delayed_entry_are_kaplan_meier_of_lifelines():
    """S(t) = 1 - t / 1000 takes the k-th threshold to the time k; all happens between these."""
    rng = np.random.default_rng(0)
    entry = rng.integers(-40, 60, 300) - 0.25
    time = np.maximum(entry, 0) + rng.integers(1, 60, 300)
    time = np.floor(time) + 0.5
    event = rng.random(300) < 0.6
    weight = rng.integers(1, 4, 300)
    entry = np.where(entry < 0, -np.inf, entry)
    steps = np.arange(1, 1000)
    rows = make_rows(time, event, entry=entry, weight=weight, curve=(steps, 1 - steps / 1000))
    peer = KaplanMeierFitter()
    peer.fit(time, event, entry=np.maximum(entry, 0), weights=weight)
    expected = 1 - peer.predict(np.arange(1, 100)).to_numpy()
    np.testing.assert_allclose(share_below_bounds(rows)[:99], expected, atol=1e-12)
    np.testing.assert_allclose(share_below_bounds(rows, included=True)[:99], expected, atol=1e-12)
    total = weight.sum()
    lower, upper = score_by_risk_sets(rows).shares, score_upper_by_risk_sets(rows).shares
    np.testing.assert_allclose(lower[:99], (expected * total + 1) / (total + 1), atol=1e-12)
    np.testing.assert_allclose(upper[:99], expected * total / (total + 1), atol=1e-12)


@pytest.mark.parametrize("included", [False, True])
def test_shares_under_delayed_entry_by_loops(included):
    """Whole times: entries, events and censorings at the bounds themselves, each row's own."""
    rng = np.random.default_rng(3)
    n = 60
    entry = rng.integers(-6, 7, n).astype(float)
    time = np.maximum(entry, 0) + rng.integers(1, 7, n)
    event, weight = rng.random(n) < 0.6, rng.uniform(0.5, 2, n)
    entry[entry < 1] = -np.inf
    jumps = np.sort(rng.uniform(0, 1, (n, 12)))[:, ::-1]
    g_jumps = np.sort(rng.uniform(0, 1, (n, 12)))[:, ::-1]
    offsets, grid = 12 * np.arange(n + 1), np.tile(np.arange(1.0, 13), n)
    rows = CalibrationRows(
        Target(time, event, entry),
        weight,
        StepCurves(offsets, grid, jumps.ravel(), np.ones(n)),
        StepCurves(offsets, grid, g_jumps.ravel(), np.ones(n)),
    )

    def bound(i, v):
        return next((t for t in range(1, 13) if jumps[i, t - 1] <= v), np.inf)

    def g(i, t):
        """G at a whole time or -inf; beyond the last step it stays flat."""
        return 1.0 if t < 1 else g_jumps[i, int(min(t, 12)) - 1]

    found = share_below_bounds(rows, included)
    survival, before = 1.0, None
    for k, v in enumerate(THRESHOLDS):
        at_risk = missed = 0.0
        for i in range(n):
            start = -np.inf if before is None else bound(i, before)
            end = bound(i, v)
            if entry[i] > -np.inf and not entry[i] < start:
                continue
            if time[i] < start or (included and time[i] == start):
                continue
            reached = start if included else start - 1
            at_risk += weight[i] / max(g(i, reached), LEAST_AT_RISK if included else FLOOR)
            if event[i] and (time[i] < end or (included and time[i] == end)):
                missed += weight[i] / max(g(i, time[i] - 1), FLOOR)
        survival *= 1 - min(1.0, missed / at_risk) if missed else 1.0
        assert found[k] == pytest.approx(1 - survival, abs=1e-12)
        before = v


def test_without_late_rows_risk_sets_count_all_misses():
    """As plain split conformal does: (misses + 1) / (n + 1)."""
    time = np.random.default_rng(0).integers(1, 11, 50)
    rows = make_rows(time, entry=np.full(50, -np.inf))
    for v, share in zip(THRESHOLDS, score_by_risk_sets(rows).shares, strict=True):
        bound = next(t for t in range(1, 11) if 1 - t / 10 <= v)
        assert share == pytest.approx(((time < bound).sum() + 1) / 51)


def test_late_rows_are_left_out_before_their_entry():
    """Of three rows one had its event before 2; two more enter then, and one of four leaves."""
    rows = make_rows([1.5, 3.5, 9.5, 9.5, 9.5], entry=[-np.inf, -np.inf, -np.inf, 1.75, 1.75])
    shares = dict(zip(THRESHOLDS.round(3).tolist(), share_below_bounds(rows), strict=True))
    assert shares[0.8] == pytest.approx(1 / 3)
    assert shares[0.6] == pytest.approx(1 - 2 / 3 * 3 / 4)


def test_a_share_is_never_above_one():
    """G falls from 1 to 1/2 before the events, whose weight is then twice that of the risk set."""
    rows = make_rows([1.5, 1.5], entry=[-np.inf, -np.inf], g=([1.0], [0.5]))
    assert share_below_bounds(rows).max() == 1.0


def test_thresholds_fall_from_one_to_zero_exclusive():
    assert THRESHOLDS[0] == 0.999
    assert THRESHOLDS[-1] == pytest.approx(0.005)
    assert (np.diff(THRESHOLDS) < 0).all()


def test_which_scores_are_used():
    rows = make_rows([1.0, 2.0], c=[3.0, 4.0])
    assert score_rows(rows, np.inf)[1] is None
    assert isinstance(score_rows(rows, np.inf)[0], SharesByThreshold)
    assert isinstance(score_rows(rows, 2.0)[0], WeightedScores)
    unknown = rows._replace(censoring_time=None)
    assert score_rows(unknown, 2.0)[1] is None
    assert isinstance(score_rows(unknown, np.inf)[1], WeightedScores)


def test_censoring_survival_is_taken_just_before():
    curves = same_curve(3, [1.0, 2.0], [0.5, 0.02])
    found = censoring_survival_before(curves, np.array([1.0, 2.0, 3.0]))
    assert found.tolist() == [1.0, 0.5, FLOOR]
    assert censoring_survival_before(curves, np.full(3, 3.0), 0.01).tolist() == [0.02] * 3
    assert censoring_survival_before(None, np.arange(3.0)).tolist() == [1.0] * 3


@pytest.mark.parametrize("n", [1, 4, 9, 10, 19, 20, 39])
@pytest.mark.parametrize("percent", [1, 5, 10, 20, 50])
def test_the_query_is_counted_among_the_rows(n, percent):
    """By loops over whole numbers: (misses + 1) / (n + 1) is at most the allowed share."""
    scores = np.arange(n, 0, -1) / (n + 1)
    held = WeightedScores(scores, np.cumsum(np.ones(n)), float(n))
    allowed = [v for v in (*scores, 0.0) if 100 * ((scores > v).sum() + 1) <= percent * (n + 1)]
    assert held.find_threshold(percent / 100) == min(allowed, default=np.inf)
    reached = [v for v in scores if 100 * (scores >= v).sum() >= (100 - percent) * (n + 1)]
    found = held.find_upper_threshold(percent / 100)
    assert found == (np.nextafter(max(reached), -1.0) if reached else None)


def test_misses_are_events_strictly_before_the_cutoff():
    target = Target(np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, True, True, True]), None)
    rows = CalibrationRows(target, np.ones(4), same_curve(4, [1, 2, 3, 4], [0.8, 0.6, 0.4, 0.2]))
    held = score_by_ipcw(rows, 3.0)
    assert held.scores.tolist() == [0.8, 0.6]
    assert held.total_weight == 4.0
