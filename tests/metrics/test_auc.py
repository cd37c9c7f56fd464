"""Time-dependent AUC: against scikit-survival, plain loops and what it means without censoring."""

import numpy as np
import pytest
from sksurv.metrics import cumulative_dynamic_auc
from sksurv.util import Surv

from cqrf import CensoredQuantileForest, StepCurves, censored
from cqrf._input.target import Target
from cqrf.datasets import make_aft, make_dependent_censoring
from cqrf.metrics import FLOOR, integrated_auc, make_scorer, time_dependent_auc
from cqrf.metrics.ipcw import estimate_censoring_survival

TIMES = np.linspace(0.8, 3.0, 7)


@pytest.fixture(scope="module")
def data():
    return make_aft(300, 3, random_state=0), make_aft(200, 3, random_state=1)


@pytest.fixture(scope="module")
def forest(data):
    return CensoredQuantileForest(n_estimators=50, random_state=0).fit(data[0].X, data[0].y)


def surv(y):
    return Surv.from_arrays(y["event"], y["time"])


def take_early(train, test):
    """Test rows that scikit-survival takes: the training rows tell their weights."""
    early = test.y["time"] < np.sort(train.y["time"][~train.y["event"]])[-2]
    return test.X[early], test.y[early]


def theirs(train, test, predicted, times):
    """scikit-survival's, of risks: larger means earlier."""
    return cumulative_dynamic_auc(surv(train), surv(test), -predicted, times)


def test_it_is_that_of_scikit_survival(data, forest):
    y, (X, y_test) = data[0].y, take_early(*data)
    survival = forest.predict_survival(X, TIMES, beyond="extend")
    scores, mean = theirs(y, y_test, survival, TIMES)
    found = time_dependent_auc(y, y_test, survival, TIMES)
    np.testing.assert_allclose(found, scores, atol=1e-12, rtol=0)
    curves = forest.predict_survival(X)
    np.testing.assert_array_equal(time_dependent_auc(y, y_test, curves, TIMES), found)
    assert integrated_auc(y, y_test, curves, TIMES) == pytest.approx(mean, abs=1e-12)
    assert len(y_test) > 150
    assert np.ptp(found) > 0.01


def test_one_prediction_for_all_times_with_ties(data, forest):
    y, (X, y_test) = data[0].y, take_early(*data)
    rounded = forest.predict_mean(X, beyond="extend").round(1)
    assert len(np.unique(rounded)) < 50
    scores, mean = theirs(y, y_test, rounded, TIMES)
    found = time_dependent_auc(y, y_test, rounded, TIMES)
    np.testing.assert_allclose(found, scores, atol=1e-12, rtol=0)
    assert integrated_auc(y, y_test, rounded, TIMES) == pytest.approx(mean, abs=1e-12)
    one = integrated_auc(y, y_test, rounded, TIMES[2:3])
    assert one == pytest.approx(theirs(y, y_test, rounded, TIMES[2:3])[1], abs=1e-12)


def auc_by_loops(train, test, predicted, t, *, side="right", weight=None, g_of_row=None):
    """Every pair of a row with T <= t and a row with T > t, as far as these are known."""
    n = len(test.time)
    weight = np.ones(n) if weight is None else weight
    sign = 1 if side == "right" else -1
    km = estimate_censoring_survival(train, censoring=side)
    before = lambda u: float(km(np.nextafter(sign * u, -np.inf), "extend"))  # noqa: E731
    total = in_order = 0.0
    for i in range(n):
        for j in range(n):
            if not (test.time[i] <= t < test.time[j]):
                continue
            # The event of one is seen; the other has not been censored when that is decided.
            first = i if side == "right" else j
            other = j if side == "right" else i
            if not test.event[first]:
                continue
            if g_of_row is not None:
                own = lambda r, u, strict: (  # noqa: E731
                    float(g_of_row[r](np.nextafter(u, -np.inf) if strict else u))
                    if side == "right"
                    else 1 - float(g_of_row[r](u))
                )
                g = own(first, test.time[first], True), own(other, t, False)
            elif side == "right":
                g = before(test.time[first]), float(km(t, "extend"))
            else:
                g = before(test.time[first]), before(t)
            pair = weight[i] * weight[j] / max(g[0], FLOOR) / max(g[1], FLOOR)
            total += pair
            in_order += pair * ((predicted[i] < predicted[j]) + (predicted[i] == predicted[j]) / 2)
    return in_order / total


def random_curves(rng, n):
    times = np.sort(rng.uniform(0, 5, (n, 4)), axis=1)
    values = np.sort(rng.uniform(0.2, 1, (n, 4)), axis=1)[:, ::-1]
    return StepCurves(np.arange(n + 1) * 4, times.ravel(), values.ravel(), np.ones(n))


@pytest.mark.parametrize("own", [False, True], ids=["Kaplan-Meier", "own G"])
@pytest.mark.parametrize("side", ["right", "left"])
def test_it_is_its_definition_in_loops(side, own):
    rng = np.random.default_rng(3)
    train, test = (Target(rng.integers(1, 9, 60) / 2, rng.uniform(size=60) < 0.7) for _ in range(2))
    predicted, weight = rng.integers(0, 6, 60).astype(float), rng.uniform(0, 2, 60)
    curves = random_curves(rng, 60) if own else None
    times = [1.5, 2.0, 2.6]
    found = time_dependent_auc(
        train,
        test,
        predicted,
        times,
        censoring=side,
        censoring_survival=curves,
        sample_weight=weight,
    )
    options = {"side": side, "weight": weight, "g_of_row": curves}
    expected = [auc_by_loops(train, test, predicted, t, **options) for t in times]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_left_censoring_is_the_mirrored_problem(data):
    train, test = (each.y for each in data)
    rng = np.random.default_rng(0)
    predicted, weight = rng.normal(size=200), rng.uniform(size=200)
    turned = [censored(-y["time"], y["event"]) for y in (train, test)]
    right = integrated_auc(train, test, predicted, sample_weight=weight)
    left = integrated_auc(*turned, -predicted, censoring="left", sample_weight=weight)
    assert left == pytest.approx(right, abs=1e-12)


def test_without_censoring_it_is_the_share_of_pairs_in_order():
    rng = np.random.default_rng(0)
    time = rng.permutation(50) + 1.0
    predicted = time + rng.normal(size=50) * 15
    early, late = time <= 20, time > 20
    share = (predicted[early][:, np.newaxis] < predicted[late]).mean()
    y = censored(time, np.ones(50))
    assert time_dependent_auc(y, y, predicted, [20.0]) == pytest.approx([share], abs=1e-12)
    assert integrated_auc(y, y, time) == 1.0
    assert integrated_auc(y, y, np.ones(50)) == pytest.approx(0.5, abs=1e-12)
    # An event at t counts as had by t on both sides.
    left = time_dependent_auc(y, y, predicted, [20.0], censoring="left")
    assert left == pytest.approx([share], abs=1e-12)


def test_a_weight_of_two_is_a_row_twice(data):
    train, test = (each.y for each in data)
    predicted = np.random.default_rng(0).normal(size=200)
    twice = np.r_[np.arange(200), np.arange(50)]
    weight = np.r_[np.full(50, 2.0), np.ones(150)]
    weighted = integrated_auc(train, test, predicted, TIMES, sample_weight=weight)
    copied = integrated_auc(train, test[twice], predicted[twice], TIMES)
    assert weighted == pytest.approx(copied, abs=1e-12)


def test_default_times_are_between_two_percentiles_and_before_the_horizon(data, forest):
    train, test = data
    curves = forest.predict_survival(test.X)
    times = np.linspace(*np.quantile(test.y["time"], [0.1, 0.9]), 50)
    found = integrated_auc(train.y, test.y, curves)
    assert found == pytest.approx(integrated_auc(train.y, test.y, curves, times), abs=1e-12)
    # Here most rows end with the study, so that the 90th percentile is beyond the horizon.
    end = np.quantile(test.y["time"], 0.5)
    cut = censored(np.minimum(test.y["time"], end), test.y["event"] & (test.y["time"] < end))
    assert 0.5 < integrated_auc(cut, cut, curves) < 1


def test_beyond_the_horizon_it_is_nan_with_a_warning():
    rng = np.random.default_rng(0)
    event, gone = rng.exponential(2, 300), rng.uniform(0, 1.05, 300)
    y = censored(np.minimum(event, gone), event <= gone)
    with pytest.warns(UserWarning, match="1 of 2 times lie beyond the horizon 0.9"):
        found = time_dependent_auc(y, y, event, [0.5, 1.04])
    assert np.isfinite(found[0])
    assert np.isnan(found[1])
    with pytest.warns(UserWarning, match="beyond the horizon"):
        assert integrated_auc(y, y, event, [0.5, 1.04]) == pytest.approx(found[0], abs=1e-12)
    with pytest.warns(UserWarning, match="beyond the horizon"):
        assert np.isnan(integrated_auc(y, y, event, [1.03, 1.04]))


def test_without_a_case_or_a_control_it_is_nan_with_a_warning():
    y = censored([1.0, 2.0, 3.0, 4.0], [True, True, True, True])
    with pytest.warns(UserWarning, match="at 2 of 3 times no test row has had its event, or none"):
        found = time_dependent_auc(y, y, [1.0, 2.0, 3.0, 4.0], [0.5, 2.5, 4.0])
    np.testing.assert_array_equal(found, [np.nan, 1.0, np.nan])
    with pytest.warns(UserWarning, match="1 of 1 times no test row"):
        assert np.isnan(integrated_auc(y, y, [1.0, 2.0, 3.0, 4.0], [0.5]))


def test_the_scorer_is_the_integrated_auc_of_the_survival_curves(data, forest):
    train, test = data
    curves = forest.predict_survival(test.X)
    assert make_scorer("auc")(forest, test.X, test.y) == integrated_auc(train.y, test.y, curves)
    some = make_scorer("auc", times=TIMES)(forest, test.X, test.y)
    assert some == pytest.approx(integrated_auc(train.y, test.y, curves, TIMES))
    dependent = make_dependent_censoring(300, random_state=0)
    fitted = CensoredQuantileForest(n_estimators=30, random_state=0).fit(dependent.X, dependent.y)
    own, common = (
        make_scorer("auc", forest_censoring=each)(fitted, dependent.X, dependent.y)
        for each in (True, False)
    )
    assert own != common


def test_predictions_may_be_infinite():
    y = censored([1.0, 2.0, 3.0], [True, True, True])
    assert time_dependent_auc(y, y, [-np.inf, np.inf, np.inf], [2.5]) == pytest.approx([0.75])


@pytest.mark.parametrize(
    ("predicted", "times", "said"),
    [
        ([1.0], [2.0], r"predicted has shape \(1,\); expected \(3,\), or \(3, 1\)"),
        ([[1.0, 2.0]] * 3, [2.0], r"predicted has shape \(3, 2\)"),
        ([1.0, np.nan, 2.0], [2.0], "predicted values must not be NaN"),
        ([1.0, 2.0, 3.0], [[2.0]], "times must be a list of numbers"),
        ([1.0, 2.0, 3.0], [2.5, 1.5], "times must be in ascending order"),
        ([1.0, 2.0, 3.0], [1.5, 1.5], "times must be in ascending order"),
    ],
)
def test_mistakes_are_named(predicted, times, said):
    y = censored([1.0, 2.0, 3.0], [True, True, True])
    with pytest.raises(ValueError, match=said):
        integrated_auc(y, y, predicted, times)
