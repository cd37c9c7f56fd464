"""Metrics of one cause: against plain loops, scikit-survival and lifelines, and with one cause."""

import warnings

import numpy as np
import pandas as pd
import pytest
from lifelines import AalenJohansenFitter
from sksurv.nonparametric import cumulative_incidence_competing_risks

from cqrf import StepCurves, censored
from cqrf._input.target import read_target
from cqrf.datasets import make_aft, make_competing_risks
from cqrf.metrics import (
    FLOOR,
    brier_score,
    brier_score_incidence,
    concordance_index,
    incidence_calibration,
    integrated_brier_score,
    integrated_brier_score_incidence,
)
from cqrf.metrics.incidence_calibration import aalen_johansen
from cqrf.metrics.ipcw import estimate_censoring_survival


def random_rows(rng, n, n_times=12, n_causes=3):
    """Tied times and causes, a third of them censored."""
    cause = rng.integers(0, n_causes + 1, n)
    return censored(rng.integers(1, n_times, n).astype(float), cause, censored=0)


def random_curves(rng, n, n_steps=6, last=12.0):
    """Incidences: step curves from 0 up."""
    times = np.sort(rng.uniform(0, last, (n, n_steps)), axis=1)
    values = np.sort(rng.uniform(size=(n, n_steps)), axis=1)
    return StepCurves(np.arange(n + 1) * n_steps, times.ravel(), values.ravel(), np.zeros(n))


def brier_by_loops(y_train, y_test, curves, t, cause, weight, g_of_row=None):
    marginal = estimate_censoring_survival(read_target(y_train))
    total = 0.0
    for i, curve in enumerate(curves):
        g = marginal if g_of_row is None else g_of_row[i]
        predicted = float(curve(t))
        if y_test["time"][i] > t:
            total += weight[i] * predicted**2 / max(float(g(t)), FLOOR)
        elif y_test["event"][i]:
            outcome = 1.0 if y_test["cause"][i] == cause else 0.0
            before = float(g(np.nextafter(y_test["time"][i], -np.inf)))
            total += weight[i] * (outcome - predicted) ** 2 / max(before, FLOOR)
    return total / weight.sum()


@pytest.mark.parametrize("own", [False, True], ids=["Kaplan-Meier", "own G"])
@pytest.mark.parametrize("cause", [1, 3])
def test_brier_equals_loops(cause, own):
    rng = np.random.default_rng(cause)
    train, test = random_rows(rng, 200), random_rows(rng, 80)
    curves, weight = random_curves(rng, 80), rng.uniform(0.1, 2, 80)
    g_of_row = None
    if own:
        rising = random_curves(rng, 80)
        g_of_row = StepCurves(rising.offsets, rising.times, 1 - rising.values, np.ones(80))
    times = np.array([0.5, 2.0, 3.0, 5.5, 7.0])
    options = {"cause": cause, "censoring_survival": g_of_row, "sample_weight": weight}
    found = brier_score_incidence(train, test, curves, times, **options)
    expected = [brier_by_loops(train, test, curves, t, cause, weight, g_of_row) for t in times]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    values = brier_score_incidence(train, test, curves(times), times, **options)
    np.testing.assert_array_equal(values, found)
    integral = integrated_brier_score_incidence(train, test, curves, times, **options)
    assert integral == pytest.approx(np.trapezoid(expected, times) / np.ptp(times), abs=1e-13)


@pytest.mark.parametrize("cause", [None, 7])
def test_with_one_cause_it_is_the_score_of_the_survival_curve(cause):
    rng = np.random.default_rng(0)
    train, test = make_aft(200, 2, random_state=0).y, make_aft(100, 2, random_state=1).y
    curves = random_curves(rng, 100, last=4.0)
    survival = StepCurves(curves.offsets, curves.times, 1 - curves.values, np.ones(100))
    times = np.quantile(test["time"], np.linspace(0.1, 0.9, 9))
    told = [np.where(y["event"], 7, 0) for y in (train, test)]
    if cause is not None:  # as part of a table with other causes
        fields = [("event", "?"), ("time", "<f8"), ("cause", "<i8")]
        parts = [
            np.array(list(zip(y["event"], y["time"], causes)), fields)
            for y, causes in zip((train, test), told)
        ]
    else:
        parts = [train, test]
    np.testing.assert_allclose(
        brier_score_incidence(*parts, curves, times, cause=cause),
        brier_score(train, test, survival, times),
        rtol=1e-14,
    )
    assert integrated_brier_score_incidence(*parts, curves, cause=cause) == pytest.approx(
        integrated_brier_score(train, test, survival), rel=1e-14
    )
    predicted = rng.integers(0, 9, 100).astype(float)
    assert concordance_index(parts[1], predicted, cause=cause) == concordance_index(test, predicted)
    assert concordance_index(
        parts[1], predicted, y_train=parts[0], cause=cause
    ) == concordance_index(test, predicted, y_train=train)


def test_a_cause_that_no_test_row_has_is_predicted_never():
    rng = np.random.default_rng(0)
    train, test = random_rows(rng, 100), random_rows(rng, 60)
    test = test[test["cause"] != 2]
    nothing = np.zeros((len(test), 2))
    found = brier_score_incidence(train, test, nothing, [2.0, 4.0], cause=2)
    assert found.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="no two rows of y are comparable"):
        concordance_index(test, np.ones(len(test)), y_train=train, cause=2)


def wolbers_by_loops(test, predicted, cause, weight, *, train=None, horizon=np.inf):
    curve = None if train is None else estimate_censoring_survival(read_target(train))

    def before(t):
        return 1.0 if curve is None else max(float(curve(np.nextafter(t, -np.inf))), FLOOR)

    concordant = comparable = 0.0
    for i in np.flatnonzero((test["cause"] == cause) & (test["time"] < horizon)):
        first = test["time"][i]
        for j in range(len(test)):
            time, other = test["time"][j], test["event"][j] and test["cause"][j] != cause
            if time > first or (time == first and not test["event"][j]):
                divisor = before(first) ** 2
            elif other:
                divisor = before(first) * before(time)
            else:
                continue
            pair = weight[i] * weight[j] / divisor
            comparable += pair
            concordant += pair * (predicted[j] > predicted[i])
            concordant += 0.5 * pair * (predicted[j] == predicted[i])
    return concordant / comparable


@pytest.mark.parametrize("ipcw", [False, True], ids=["plain", "IPCW"])
@pytest.mark.parametrize("cause", [1, 2])
def test_wolbers_concordance_equals_loops(cause, ipcw):
    rng = np.random.default_rng(cause)
    train, test = random_rows(rng, 300), random_rows(rng, 120)
    predicted, weight = rng.integers(0, 6, 120).astype(float), rng.uniform(size=120)
    options = {"y_train": train, "horizon": 7.0} if ipcw else {}
    found = concordance_index(test, predicted, cause=cause, sample_weight=weight, **options)
    loops = {"train": train, "horizon": 7.0} if ipcw else {}
    expected = wolbers_by_loops(test, predicted, cause, weight, **loops)
    assert found == pytest.approx(expected, abs=1e-12)


def test_wolbers_concordance_is_harrells_if_other_events_are_never():
    rng = np.random.default_rng(0)
    y, predicted = random_rows(rng, 200), rng.normal(size=200)
    is_other = y["event"] & (y["cause"] != 1)
    never = censored(np.where(is_other, 1e9, y["time"]), y["cause"] == 1)
    assert concordance_index(y, predicted, cause=1) == pytest.approx(
        concordance_index(never, predicted), abs=1e-14
    )


def test_in_the_long_run_ipcw_gives_the_concordance_without_censoring():
    simulation = make_competing_risks(40_000, 3, slope=0.0, random_state=0)
    horizon = 5.0
    predicted = -simulation.incidence(simulation.X, [horizon], cause=1)[:, 0]
    complete = censored(simulation.latent, simulation.latent_cause, censored=0)
    expected = concordance_index(complete, predicted, cause=1, horizon=horizon)
    y = simulation.y
    found = concordance_index(y, predicted, y_train=y, cause=1, horizon=horizon)
    plain = concordance_index(y, predicted, cause=1, horizon=horizon)
    assert found == pytest.approx(expected, abs=0.004)
    assert abs(plain - expected) > 0.008


def test_in_the_long_run_the_true_incidence_has_the_smallest_score():
    simulation = make_competing_risks(20_000, 3, slope=0.0, random_state=0)
    times = np.linspace(1, 5, 9)
    true = simulation.incidence(simulation.X, times, cause=2)
    y = simulation.y
    best = integrated_brier_score_incidence(y, y, true, times, cause=2)
    outcome = (simulation.latent_cause == 2)[:, np.newaxis] & (
        simulation.latent[:, np.newaxis] <= times
    )
    complete = np.trapezoid(((outcome - true) ** 2).mean(axis=0), times) / np.ptp(times)
    assert best == pytest.approx(complete, abs=0.003)
    for worse in (true * 0.7, np.minimum(true * 1.3, 1), np.tile(true.mean(axis=0), (20_000, 1))):
        assert integrated_brier_score_incidence(y, y, worse, times, cause=2) > best + 0.003


@pytest.mark.parametrize("cause", [1, 2])
def test_aalen_johansen_is_that_of_scikit_survival_and_lifelines(cause):
    simulation = make_competing_risks(150, 3, random_state=cause)
    y, t = simulation.y, 3.0
    share, variance = aalen_johansen(read_target(y), y["cause"] == cause, np.ones(150), t)
    times, theirs = cumulative_incidence_competing_risks(y["cause"], y["time"])
    assert share == pytest.approx(theirs[cause][np.searchsorted(times, t, "right") - 1], abs=1e-12)
    peer = AalenJohansenFitter(calculate_variance=True).fit(y["time"], y["cause"], cause)
    at = peer.variance_.index[peer.variance_.index <= t][-1]
    assert variance == pytest.approx(float(peer.variance_.loc[at]), rel=1e-9)


def test_with_one_cause_the_variance_is_greenwoods():
    y = make_aft(80, 2, random_state=0).y
    target, t = read_target(y), 3.0
    share, variance = aalen_johansen(target, target.event, np.ones(80), t)
    survival, greenwood = 1.0, 0.0
    for now in sorted(y["time"][y["event"] & (y["time"] <= t)]):
        at_risk = (y["time"] >= now).sum()
        survival *= 1 - 1 / at_risk
        greenwood += 1 / (at_risk * (at_risk - 1))
    assert share == pytest.approx(1 - survival, abs=1e-12)
    assert variance == pytest.approx(survival**2 * greenwood, rel=1e-9)


def test_entry_times_shrink_the_risk_sets():
    y = censored([2.0, 3.0, 4.0, 5.0], [1, 2, 1, 0], entry=[0.0, 2.5, 0.0, 0.0])
    share, _ = aalen_johansen(read_target(y), y["cause"] == 1, np.ones(4), 4.5)
    assert share == pytest.approx(1 / 3 + (2 / 3) * (2 / 3) * (1 / 2))


def test_the_true_incidence_is_calibrated_and_others_are_not():
    simulation = make_competing_risks(6000, 3, random_state=0)
    true = simulation.incidence(simulation.X, [3.0], cause=1)
    found = incidence_calibration(simulation.y, true, 3.0, cause=1)
    assert len(found.predicted) == 10
    assert (np.diff(found.predicted) > 0).all()
    assert found.n_rows.sum() == 6000
    assert found.distance < 0.02
    inside = (found.lower <= found.predicted) & (found.predicted <= found.upper)
    assert inside.sum() >= 8
    worse = incidence_calibration(simulation.y, np.sqrt(true), 3.0, cause=1)
    assert worse.distance > 0.15
    assert "IncidenceCalibration(distance=0.0" in repr(found)


def test_groups_are_calibrated_one_by_one():
    rng = np.random.default_rng(0)
    y = random_rows(rng, 90)
    predicted = np.repeat([0.1, 0.2, 0.6], 30)
    weight = rng.uniform(0.5, 2, 90)
    weight[[0, 1, 30, 31, 60, 61]] = 0
    found = incidence_calibration(y, predicted, 6.0, cause=2, n_groups=3, sample_weight=weight)
    np.testing.assert_allclose(found.predicted, [0.1, 0.2, 0.6])
    for group in range(3):
        rows = np.arange(90)[30 * group : 30 * group + 30]
        w = weight[rows] * weight[rows].sum() / (weight[rows] ** 2).sum()
        target = read_target(y[rows])
        share, variance = aalen_johansen(target, y["cause"][rows] == 2, w, 6.0)
        assert found.observed[group] == pytest.approx(share, abs=1e-14)
        assert found.n_rows[group] == pytest.approx(w.sum())
        error = 1.959964 * np.sqrt(variance) / (share * np.log(share))
        ends = sorted(np.exp(-np.exp(np.log(-np.log(share)) + sign * error)) for sign in (1, -1))
        assert [found.lower[group], found.upper[group]] == pytest.approx(ends, rel=1e-6)
    apart = np.abs(found.predicted - found.observed) @ found.n_rows / found.n_rows.sum()
    assert found.distance == pytest.approx(apart)


def test_groups_without_events_or_without_follow_up():
    y = censored([1.0, 2.0, 3.0, 4.0, 8.0, 9.0], [1, 0, 0, 0, 2, 2], censored=0)
    found = incidence_calibration(y, [0.1] * 4 + [0.5] * 2, 6.0, cause=1, n_groups=2)
    assert np.isnan(found.observed[0])  # all rows of the group are gone by 4
    assert found.observed[1] == 0
    assert np.isnan(found.lower).all()
    assert found.distance == pytest.approx(0.5)
    unknown = incidence_calibration(y[:4], [0.1] * 4, 6.0, cause=1)
    assert np.isnan(unknown.distance)
    assert "too many are censored" in repr(unknown)


def test_beyond_the_horizon_the_score_is_nan_with_a_warning():
    cause = [1, 2, *[0] * 18, 1]
    y = censored(np.arange(1.0, 22.0), cause)
    predicted = np.full((21, 2), 0.1)
    with pytest.warns(UserWarning, match="1 of 2 times lie beyond the horizon 20"):
        found = brier_score_incidence(y, y, predicted, [1.0, 20.0], cause=1)
    assert np.isnan(found).tolist() == [False, True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        brier_score_incidence(y, y, predicted, [1.0, 10.0], cause=1)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda y, p: brier_score_incidence(y, y, p, [1.0], cause=9),
            "cause=9 is no cause of y, which has 1, 2",
        ),
        (
            lambda y, p: brier_score_incidence(y, y, p, [1.0, 2.0], cause=1),
            r"incidence has shape \(3, 1\); expected \(3, 2\)",
        ),
        (
            lambda y, p: brier_score_incidence(y, y, 2 + p, [1.0], cause=1),
            "incidence must be probabilities",
        ),
        (lambda y, p: integrated_brier_score_incidence(y, y, p, cause=1), "must be step curves"),
        (
            lambda y, p: integrated_brier_score_incidence(y, y, p, [1.0], cause=1),
            "times must be at least two",
        ),
        (
            lambda y, p: concordance_index(y[["event", "time"]], p[:, 0], cause=1),
            "cause=1: y does not tell causes apart",
        ),
        (
            lambda y, p: concordance_index(y, p[:, 0], cause=1, censoring="left"),
            "right censoring only",
        ),
        (lambda y, p: incidence_calibration(y, p, "later", cause=1), "horizon='later'"),
    ],
)
def test_mistakes_are_named(call, said):
    y = censored([1.0, 2.0, 3.0], [1, 2, 0])
    with pytest.raises(ValueError, match=said):
        call(y, np.full((3, 1), 0.5))


TIME, CAUSE = [1.0, 2.0, 3.0], np.array([1, 2, 0])
WORDS = censored(TIME, np.array(["alive", "death", "graft"])[CAUSE], censored="alive")


@pytest.mark.parametrize("y_train", [WORDS, censored(TIME, CAUSE > 0)])
@pytest.mark.parametrize(
    "score",
    [
        lambda train, test: brier_score_incidence(train, test, np.ones((3, 1)), [1.0], cause=1),
        lambda train, test: integrated_brier_score_incidence(
            train, test, np.ones((3, 2)), [1.0, 2.0], cause=1
        ),
        lambda train, test: concordance_index(test, TIME, y_train=train, cause=1),
    ],
)
def test_test_rows_have_the_causes_of_the_training_rows(score, y_train):
    names = "'death', 'graft'" if y_train is WORDS else "does not tell"
    with pytest.raises(ValueError, match=f"rows have the causes 1, 2, but y_train .*{names}"):
        score(y_train, censored(TIME, CAUSE))


def test_events_of_the_test_rows_have_causes():
    train, test = censored(TIME, CAUSE), censored(TIME, [1, 0, 1])
    with pytest.raises(ValueError, match="rows have events without a cause, but y_train has"):
        brier_score_incidence(train, test, np.ones((3, 1)), [1.0], cause=1)
    frame = pd.DataFrame({"time": TIME, "cause": [1, 0, 1]})
    wrong = brier_score_incidence(train, frame, np.zeros((3, 1)), [1.0], cause=1)
    assert wrong == pytest.approx(1 / 3)
    none = censored(TIME, [False] * 3)
    assert brier_score_incidence(train, none, np.zeros((3, 1)), [0.5], cause=1) == 0
