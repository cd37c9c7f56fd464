"""Scores of curves: against plain loops, scikit-survival, and what they mean without censoring."""

import numpy as np
import pytest
from sksurv.metrics import brier_score as their_brier_score
from sksurv.metrics import concordance_index_ipcw
from sksurv.metrics import integrated_brier_score as their_integrated_brier_score
from sksurv.util import Surv

from cqrf import CensoredQuantileForest, StepCurve, StepCurves, censored
from cqrf._input.target import Target, read_target
from cqrf.datasets import make_aft, make_dependent_censoring
from cqrf.metrics import (
    FLOOR,
    brier_score,
    censored_quantile_loss,
    censoring_target,
    concordance_index,
    crps,
    integrated_brier_score,
)
from cqrf.metrics.ipcw import estimate_censoring_survival


def curves_of(parts):
    """StepCurves from (times, values) pairs."""
    lengths = [len(times) for times, _ in parts]
    return StepCurves(
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([times for times, _ in parts]).astype(float),
        np.concatenate([values for _, values in parts]).astype(float),
        np.ones(len(parts)),
    )


def random_curves(rng, n, n_steps=6, last=3.0):
    parts = []
    for _ in range(n):
        times = np.sort(rng.uniform(0, last, n_steps))
        parts.append((times, np.sort(rng.uniform(size=n_steps))[::-1]))
    return curves_of(parts)


def surv(y):
    return Surv.from_arrays(y["event"], y["time"])


@pytest.fixture(scope="module")
def data():
    return make_aft(300, 3, random_state=0), make_aft(200, 3, random_state=1)


@pytest.fixture(scope="module")
def forest(data):
    return CensoredQuantileForest(n_estimators=50, random_state=0).fit(data[0].X, data[0].y)


def test_a_curve_at_a_time_of_its_own():
    rng = np.random.default_rng(0)
    curves = random_curves(rng, 20)
    at = np.concatenate([[-1.0, 9.0], curves.times[[12, 20]], rng.uniform(0, 3, 16)])
    at[2:4] = curves[2].times[0], curves[3].times[-1]
    expected = [float(curve(t)) for curve, t in zip(curves, at)]
    np.testing.assert_array_equal(curves.each(at), expected)
    with pytest.raises(ValueError, match="20 numbers"):
        curves.each(at[:3])


def test_brier_equals_scikit_survival(data, forest):
    train, test = data
    times = np.quantile(test.y["time"], np.linspace(0.05, 0.85, 17))
    survival = forest.predict_survival(test.X, times)
    _, theirs = their_brier_score(surv(train.y), surv(test.y), survival, times)
    np.testing.assert_allclose(
        brier_score(train.y, test.y, survival, times), theirs, rtol=0, atol=1e-10
    )
    found = integrated_brier_score(train.y, test.y, forest.predict_survival(test.X), times)
    expected = their_integrated_brier_score(surv(train.y), surv(test.y), survival, times)
    assert found == pytest.approx(expected, abs=1e-10)


def test_uno_equals_scikit_survival(data, forest):
    train, test = data
    predicted = forest.predict(test.X, 0.5, unidentified="clip")
    horizon = float(np.quantile(test.y["time"], 0.8))
    theirs = concordance_index_ipcw(
        surv(train.y), surv(test.y), -predicted, tau=horizon, tied_tol=0
    )[0]
    found = concordance_index(test.y, predicted, y_train=train.y, horizon=horizon)
    assert found == pytest.approx(theirs, abs=1e-10)
    assert found != pytest.approx(concordance_index(test.y, predicted), abs=1e-6)


def uno_by_loops(train, test, predicted, weight, horizon):
    curve = estimate_censoring_survival(train)
    concordant = comparable = 0.0
    for i in np.flatnonzero(test.event & (test.time < horizon)):
        g = float(curve(np.nextafter(test.time[i], -np.inf)))
        for j in range(len(test.time)):
            tied = test.time[j] == test.time[i]
            if test.time[j] > test.time[i] or (tied and not test.event[j]):
                pair = weight[i] * weight[j] / g**2
                comparable += pair
                concordant += pair * (predicted[j] > predicted[i])
                concordant += 0.5 * pair * (predicted[j] == predicted[i])
    return concordant / comparable


def test_uno_equals_loops_with_ties_and_weights():
    rng = np.random.default_rng(0)
    train, test = (
        Target(rng.integers(1, 12, 150).astype(float), rng.uniform(size=150) < 0.7)
        for _ in range(2)
    )
    predicted = rng.integers(0, 5, 150).astype(float)
    weight = rng.uniform(size=150)
    curve = estimate_censoring_survival(train)
    horizon = min(8.0, curve.times[curve.values < FLOOR].min(initial=np.inf))
    expected = uno_by_loops(train, test, predicted, weight, horizon)
    found = concordance_index(test, predicted, y_train=train, horizon=horizon, sample_weight=weight)
    assert found == pytest.approx(expected, abs=1e-12)


def brier_by_loops(train, test, curves, t, weight, g_of_row=None):
    marginal = estimate_censoring_survival(train)
    total = 0.0
    for i, curve in enumerate(curves):
        g = marginal if g_of_row is None else g_of_row[i]
        still = float(curve(t))
        if test.time[i] > t:
            total += weight[i] * (1 - still) ** 2 / max(float(g(t)), FLOOR)
        elif test.event[i]:
            before = float(g(np.nextafter(test.time[i], -np.inf)))
            total += weight[i] * still**2 / max(before, FLOOR)
    return total / weight.sum()


@pytest.mark.parametrize("own", [False, True], ids=["Kaplan-Meier", "own G"])
def test_brier_and_crps_equal_loops(own):
    rng = np.random.default_rng(0)
    train, test = (
        Target(rng.integers(1, 40, 60) / 10, rng.uniform(size=60) < 0.6) for _ in range(2)
    )
    curves = random_curves(rng, 60)
    g = random_curves(rng, 60) if own else None
    weight = rng.uniform(size=60)
    options = {"sample_weight": weight, "censoring_survival": g}
    marginal = estimate_censoring_survival(train)
    horizon = marginal.times[marginal.values < FLOOR].min(initial=np.inf)
    assert np.isfinite(horizon)
    times = np.array([0.05, 0.3, 1.0, 1.7, 2.5])
    times = times[times < horizon]
    expected = [brier_by_loops(train, test, curves, t, weight, g) for t in times]
    np.testing.assert_allclose(
        brier_score(train, test, curves, times, **options), expected, atol=1e-12
    )
    # The integral by brute force, on a grid that no step can hide between.
    fine = np.arange(0, horizon, 1e-3) + 5e-4
    scores = [brier_by_loops(train, test, curves, t, weight, g) for t in fine]
    assert crps(train, test, curves, **options) == pytest.approx(np.sum(scores) * 1e-3, rel=2e-3)


def test_without_censoring_crps_is_the_usual_one():
    """E|T - X| - E|X - X'| / 2 for X, X' from the predicted distribution."""
    rng = np.random.default_rng(0)
    curves, expected = [], []
    time = rng.exponential(size=15)
    for t in time:
        atoms = np.sort(rng.exponential(size=8))
        curves.append((atoms, 1 - np.arange(1, 9) / 8))
        spread = np.abs(atoms[:, np.newaxis] - atoms).mean()
        expected.append(np.abs(atoms - t).mean() - spread / 2)
    target = Target(time, np.ones(15, bool))
    assert crps(target, target, curves_of(curves)) == pytest.approx(np.mean(expected), abs=1e-12)


def test_where_a_curve_that_never_ends_has_its_steps_does_not_matter():
    """Without a horizon it is judged up to the last time of all rows that count."""
    train, test = censored([1.0, 4.0], [1, 1]), censored([1.0, 2.0], [1, 1])
    half = curves_of([([1.0], [0.5])] * 2)
    late = curves_of([([1.0, 100.0], [0.5, 0.5 - 1e-9]), ([1.0], [0.5])])
    expected = (0.25 * 3 + 0.25 * 3) / 2  # (1(T > t) - .5)^2 from 1 to 4
    assert crps(train, test, half) == pytest.approx(expected, abs=1e-12)
    assert crps(train, test, late) == pytest.approx(expected, abs=1e-12)
    assert crps(train, test, half, train_weight=[1, 0]) == pytest.approx(0.25, abs=1e-12)
    far = censored([1.0, 2.0, 50.0], [1, 1, 1])
    three = curves_of([([1.0], [0.5])] * 3)
    weighted = crps(train, far, three, sample_weight=[1, 1, 0])
    assert weighted == pytest.approx(expected, abs=1e-12)
    # One curve has its end at 100, and is judged up to there: (.5^2 x 99 + .5^2 x 3) / 2.
    ends = curves_of([([1.0, 100.0], [0.5, 0.0]), ([1.0], [0.5])])
    assert crps(train, test, ends) == pytest.approx(0.25 * (99 + 3) / 2, abs=1e-12)
    turned = [censored(-y["time"], y["event"]) for y in (train, test)]
    for curves in (late, ends):
        assert crps(*turned, mirrored(curves), censoring="left") == pytest.approx(
            crps(train, test, curves), abs=1e-12
        )


def mirrored(curves):
    """Curves of -T: P(-T > t) = 1 - P(T >= -t)."""
    parts = []
    for curve in curves:
        before = np.concatenate([[curve.initial], curve.values[:-1]])
        parts.append(StepCurve(-curve.times[::-1], 1 - before[::-1], 1 - curve.values[-1]))
    return StepCurves(
        curves.offsets,
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.values for part in parts]),
        np.array([part.initial for part in parts]),
    )


def left_brier_by_loops(train, test, survival, t, g_of_row=None):
    """T > t is known of later events, T <= t of all that was over by then."""

    def not_hidden(c_up_to):
        """P(C <= c), from the right: of those not yet censored, the share that is not now."""
        share = 1.0
        for c in sorted({y for y, seen in zip(*train[:2]) if not seen and y > c_up_to})[::-1]:
            at_risk = sum(y < c or (y == c and not seen) for y, seen in zip(*train[:2]))
            share *= 1 - sum(y == c and not seen for y, seen in zip(*train[:2])) / at_risk
        return share

    total = 0.0
    for i, (y, seen) in enumerate(zip(*test[:2])):
        known = not_hidden if g_of_row is None else (lambda c, i=i: 1 - g_of_row[i](c))
        if seen and y > t:
            total += (1 - survival[i](t)) ** 2 / max(known(y), FLOOR)
        elif y <= t:
            total += survival[i](t) ** 2 / max(known(t), FLOOR)
    return total / len(test.time)


@pytest.mark.parametrize("own", [False, True], ids=["Kaplan-Meier", "own G"])
def test_left_brier_equals_loops_at_the_very_times(own):
    rng = np.random.default_rng(2)
    train, test = (Target(rng.integers(1, 9, 60) / 2, rng.uniform(size=60) < 0.6) for _ in range(2))
    curves, g = random_curves(rng, 60), random_curves(rng, 60) if own else None
    times = [2.0, 2.5, 3.0]
    found = brier_score(train, test, curves, times, censoring="left", censoring_survival=g)
    expected = [left_brier_by_loops(train, test, curves, t, g) for t in times]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    y, perfect = censored([1.0, 2.0, 3.0], [True] * 3), [[0.0], [0.0], [1.0]]
    for side in ("right", "left"):
        assert brier_score(y, y, perfect, [2.0], censoring=side) == 0


@pytest.mark.parametrize("side", ["right", "left"])
def test_the_censoring_target_takes_events_first_at_a_tied_time(side):
    rng = np.random.default_rng(0)
    y = censored(rng.integers(1, 6, 200), rng.uniform(size=200) < 0.6)
    one, at = np.ones((200, 1)), np.arange(1.0, 6.0)
    stump = CensoredQuantileForest(
        n_estimators=1, max_samples=None, honest=False, min_samples_split=1000, censoring=side
    )
    expected = stump.fit(one, y).predict_censoring(one[:1], at)
    found = stump.fit(one, censoring_target(y, side)).predict_survival(one[:1], at)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert 0.01 < expected[0, 2] < 0.99


@pytest.mark.parametrize("own", [False, True], ids=["Kaplan-Meier", "own G"])
def test_left_censoring_is_the_mirrored_problem(own):
    rng = np.random.default_rng(1)
    train, test = (Target(rng.uniform(0, 3, 60), rng.uniform(size=60) < 0.6) for _ in range(2))
    left_train, left_test = (Target(-target.time, target.event) for target in (train, test))
    curves, g = random_curves(rng, 60), random_curves(rng, 60) if own else None
    right = {"censoring_survival": g}
    left = {"censoring_survival": mirrored(g) if own else None, "censoring": "left"}
    times = np.array([0.21, 0.73, 1.41])
    np.testing.assert_allclose(
        brier_score(left_train, left_test, mirrored(curves), -times, **left),
        brier_score(train, test, curves, times, **right),
        atol=1e-12,
    )
    assert crps(left_train, left_test, mirrored(curves), **left) == pytest.approx(
        crps(train, test, curves, **right), abs=1e-12
    )
    predicted = rng.uniform(0, 3, (60, 2))
    np.testing.assert_allclose(
        censored_quantile_loss(left_train, left_test, -predicted, [0.8, 0.3], **left),
        censored_quantile_loss(train, test, predicted, [0.2, 0.7], **right),
        atol=1e-12,
    )


def test_test_times_beyond_all_training_times_are_no_error(data, forest):
    train, test = data
    y = test.y.copy()
    y["time"][:5] = 10 * train.y["time"].max()
    y["event"][:5] = [True, True, True, False, False]
    predicted = forest.predict(test.X, [0.5], unidentified="clip")
    survival = forest.predict_survival(test.X)
    assert np.isfinite(censored_quantile_loss(train.y, y, predicted, [0.5])).all()
    assert np.isfinite(concordance_index(y, predicted[:, 0], y_train=train.y))
    assert np.isfinite(crps(train.y, y, survival))
    times = np.array([1.0, 2.0, 1e3])
    with pytest.warns(UserWarning, match="1 of 3 times lie beyond the horizon"):
        scores = brier_score(train.y, y, survival, times)
    np.testing.assert_array_equal(np.isnan(scores), [False, False, True])
    with pytest.warns(UserWarning, match="beyond the horizon"):
        integrated = integrated_brier_score(train.y, y, survival, times)
    assert integrated == pytest.approx(scores[:2].mean(), abs=1e-12)


@pytest.mark.parametrize("side", ["right", "left"])
def test_at_the_horizon_itself_the_score_is_unknown(side):
    """G falls to 0 there."""
    sign = 1 if side == "right" else -1
    y = censored(sign * np.array([1.0, 1.0, 2.0, 2.0]), [True, True, False, False])
    times = sign * np.array([1.0, np.nextafter(2.0, 0.0), 2.0])
    with pytest.warns(UserWarning, match="1 of 3 times lie beyond the horizon"):
        scores = brier_score(y, y, np.full((4, 3), 0.5), times, censoring=side)
    np.testing.assert_array_equal(scores, [0.25, 0.25, np.nan])


def test_the_censoring_of_each_row_corrects_what_kaplan_meier_cannot():
    """Predictions that are wrong where most rows are censored: only the true G gives them back.

    Times are cut at 1.5, where the G of every row is above the floor.
    """
    train, test = (make_dependent_censoring(20_000, 2, random_state=s) for s in (0, 1))
    grid = np.linspace(0, 1.5, 300)
    mean = 7.4 * np.exp(2.0 * (test.X[:, 1] - 1))
    own = curves_of([(grid, np.exp(-grid / m)) for m in mean])
    target = read_target(test.y)
    cut = Target(np.minimum(target.time, 1.5), target.event | (target.time > 1.5))
    wrong = np.where(test.X[:, 1] < 0.7, 0.3, 1.0)[:, np.newaxis]
    q = np.minimum(wrong * test.quantile(test.X, [0.5]), 1.5)
    expected = (np.abs(np.minimum(test.latent, 1.5)[:, np.newaxis] - q) / 2).mean()
    by_row = censored_quantile_loss(train.y, cut, q, [0.5], censoring_survival=own)[0]
    by_kaplan_meier = censored_quantile_loss(train.y, cut, q, [0.5])[0]
    assert by_row == pytest.approx(expected, rel=0.02)
    assert by_kaplan_meier < 0.9 * expected


def test_a_single_level_gives_a_number(data, forest):
    train, test = data
    predicted = forest.predict(test.X, 0.5, unidentified="clip")
    one = censored_quantile_loss(train.y, test.y, predicted, 0.5)
    assert np.ndim(one) == 0
    assert one == censored_quantile_loss(train.y, test.y, predicted[:, np.newaxis], [0.5])[0]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda y, c: brier_score(y, y, np.ones((3, 2)), [1.0]), r"shape \(3, 2\)"),
        (lambda y, c: crps(y, y, c), "2 curves for 5 rows"),
        (lambda y, c: crps(y, y, np.ones((5, 3))), "survival must be step curves"),
        (lambda y, c: crps(y, y, c, censoring="Left"), "censoring='Left' is unknown"),
        (lambda y, c: concordance_index(y, y.time, censoring="interval"), "censoring='interval'"),
        (lambda y, c: concordance_index(y, y.time, y_train=y, train_weight=[1.0]), "train_weight"),
        (lambda y, c: brier_score(y, y, 100 * np.ones((5, 1)), [1.0]), "from 0 to 1"),
        (lambda y, c: brier_score(y, y, np.full((5, 1), np.nan), [1.0]), "without NaN"),
        (lambda y, c: censored_quantile_loss(y, y, np.ones(5), 50), "strictly between 0 and 1"),
        (lambda y, c: brier_score(y, y, np.ones((5, 1)), [np.nan]), "times must be .* without NaN"),
        (lambda y, c: brier_score(y, y, np.ones((5, 1)), [[1.0]]), "times must be a list"),
        (lambda y, c: concordance_index(y, y.time, horizon=np.nan), "horizon=nan must be"),
        (lambda y, c: concordance_index(y, y.time, train_weight=np.ones(5)), "y_train, which is m"),
        (lambda y, c: integrated_brier_score(y, y, np.ones((5, 50))), "must be step curves"),
        (lambda y, c: integrated_brier_score(y, y, np.ones((5, 1)), [1.0]), "at least two"),
        (lambda y, c: integrated_brier_score(y, y, np.ones((5, 2)), [2.0, 1.0]), "ascending"),
        (lambda y, c: integrated_brier_score(y, y, np.ones((5, 2)), [1.0, 1.0]), "ascending"),
        (lambda y, c: censored_quantile_loss(y, y, np.ones((5, 2)), [0.5]), r"shape \(5, 2\)"),
        (
            lambda y, c: censored_quantile_loss(y, y, np.ones((5, 1)), [0.5], censoring_survival=c),
            "2 curves for 5 rows",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_named(call, said):
    y = Target(np.arange(1.0, 6.0), np.ones(5, bool))
    with pytest.raises(ValueError, match=said):
        call(y, random_curves(np.random.default_rng(0), 2))
