"""Targets: what can be asked for, names of outputs, and times that are not known."""

import numpy as np
import pandas as pd
import pytest

from cqrf import censored
from cqrf._effects.targets import Quantiles, RestrictedMeans, SurvivalProbabilities, read_target
from cqrf._survival.step_curves import BeyondFollowUpWarning
from support.treated import fit_small, make_data


@pytest.fixture(scope="module")
def data():
    return make_data()


@pytest.fixture(scope="module")
def forest(data):
    return fit_small(data)


def test_a_target_has_an_argument_of_its_own(forest):
    model = forest.model_
    assert read_target(model, "rmst", horizon=2) == RestrictedMeans(2.0)
    assert read_target(model, "rmst") == RestrictedMeans(model.follow_up)
    one, many = (
        read_target(model, "survival", times=1),
        read_target(model, "survival", times=[1, 2]),
    )
    assert (one.times.tolist(), one.is_single) == ([1.0], True)
    assert (many.times.tolist(), many.is_single) == ([1.0, 2.0], False)
    middle = read_target(model, "quantile")
    assert (middle.levels.tolist(), middle.is_single) == ([0.5], True)
    assert read_target(model, "quantile", quantiles=[0.2, 0.7]).levels.tolist() == [0.2, 0.7]


def test_outputs_have_names():
    assert RestrictedMeans(2.5).names == ["rmst2.5"]
    assert SurvivalProbabilities(np.array([0.1, 30.0]), False).names == [
        "survival0.1",
        "survival30",
    ]
    assert Quantiles(np.array([0.25]), True).names == ["q0.25"]


def test_by_default_the_horizon_is_where_a_tenth_of_either_arm_is_at_risk(data, forest):
    ends = []
    for arm in (0, 1):
        time = np.sort(data.y["time"][data.treatment == arm])
        at_risk = np.array([(time >= t).mean() for t in time])
        ends.append(time[at_risk >= 0.1].max())
    assert forest.model_.follow_up == min(ends)
    assert np.array_equal(forest.effect(data.X[:5]), forest.effect(data.X[:5], horizon=min(ends)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "mean"}, r"target='mean' is unknown; choose one of rmst, survival, quantile"),
        ({"target": None}, r"target=None is unknown"),
        (
            {"target": "rmst", "times": 1.0},
            r'times goes with target="survival"; found target="rmst", whose argument is horizon',
        ),
        (
            {"target": "survival", "horizon": 1.0, "times": 1.0},
            r'horizon goes with target="rmst"; found target="survival", whose argument is times',
        ),
        (
            {"target": "rmst", "quantiles": 0.5},
            r'quantiles goes with target="quantile"; found target="rmst"',
        ),
        ({"target": "survival"}, r'target="survival" needs times=, one or several'),
        ({"target": "survival", "times": []}, r"times must be finite numbers; found \[\]"),
        ({"target": "survival", "times": [[1.0]]}, r"times must be finite numbers"),
        ({"target": "survival", "times": np.nan}, r"times must be finite numbers; found nan"),
        ({"target": "survival", "times": "1"}, r"times must be numbers; found"),
        ({"target": "rmst", "horizon": np.inf}, r"horizon=inf must be a finite time"),
        ({"target": "rmst", "horizon": "1"}, r"horizon='1' must be a finite time"),
        ({"target": "rmst", "horizon": 0}, r"horizon=0 must be after 0\."),
        ({"target": "quantile", "quantiles": 1.5}, r"quantiles"),
    ],
)
def test_other_targets_are_refused(data, forest, arguments, message):
    for method in (forest.effect, forest.effect_interval):
        with pytest.raises(ValueError, match=message):
            method(data.X[:2], **arguments)
    with pytest.raises(ValueError, match=message):
        forest.ate(**arguments)


def test_single_rows_have_no_scores_of_quantiles(data, forest):
    message = r'target="quantile" has no scores for single rows: use "rmst" or "survival"'
    for method in (
        forest.scores,
        forest.effect_oob,
        lambda target: forest.best_linear_projection(target=target),
        lambda target: forest.rate(target=target),
        lambda target: forest.toc(target=target),
    ):
        with pytest.raises(ValueError, match=message):
            method("quantile")


def test_averages_say_what_they_cannot_use(data, forest):
    with pytest.raises(ValueError, match=r"population='most' is unknown; choose one of all, trea"):
        forest.ate(population="most")
    with pytest.raises(ValueError, match=r'target="quantile" has population="all" only; found'):
        forest.ate("quantile", population="treated")
    with pytest.raises(ValueError, match=r"confidence=1.0 must lie strictly between 0 and 1"):
        forest.ate(confidence=1.0)
    with pytest.raises(ValueError, match=r"confidence='high' must be a number"):
        forest.effect_interval(data.X[:2], confidence="high")
    with pytest.raises(ValueError, match=r"metric='auc' is unknown; choose one of autoc, qini"):
        forest.rate(metric="auc")
    with pytest.raises(ValueError, match=r"times must be one time here; found \[0.5, 1.0\]"):
        forest.rate(target="survival", times=[0.5, 1.0])
    with pytest.raises(ValueError, match=r"times must be one time here"):
        forest.best_linear_projection(target="survival", times=[0.5, 1.0])
    for shares in ([0.0, 0.5], [1.1], 0.5, [np.nan]):
        with pytest.raises(ValueError, match=r"shares must be numbers above 0 and at most 1"):
            forest.toc(shares=shares)
    for priorities in (np.ones(299), np.full(300, np.nan), np.ones((300, 1))):
        with pytest.raises(ValueError, match=r"priorities must be 300 numbers without NaN"):
            forest.rate(priorities)


@pytest.mark.parametrize(
    ("subset", "message"),
    [
        ([0, 300], r"subset: row numbers must lie between 0 and 299"),
        ([-1, 5], r"subset: row numbers must lie between 0 and 299"),
        ([], r"subset must be 300 values True or False, or a list of row numbers; found an array"),
        (np.full(299, True), r"subset must be 300 values True or False.*bool with shape \(299,\)"),
        ([0.5], r"subset must be 300 values True or False"),
        (np.arange(300) % 2, r"subset has 300 numbers that are all 0 or 1.*subset=mask == 1"),
        (np.full(300, False), r"subset has 0 rows of positive weight, not some of each arm"),
        ("arm", r"subset has \d+ rows of positive weight, not some of each arm"),
    ],
)
def test_a_subset_has_rows_of_both_arms(data, forest, subset, message):
    subset = data.treatment == 1 if isinstance(subset, str) else subset
    with pytest.raises(ValueError, match=message):
        forest.ate(subset=subset)
    with pytest.raises(ValueError, match=message):
        forest.best_linear_projection(subset=subset)


def test_covariates_of_a_projection_are_numbers_for_each_row(data, forest):
    for A in (data.X[:-1], data.X[:, :, np.newaxis]):
        with pytest.raises(ValueError, match=r"A must have one row of finite numbers for each of"):
            forest.best_linear_projection(A)
    gaps = data.X.copy()
    gaps[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"found shape \(300, 5\) with missing values"):
        forest.best_linear_projection(gaps)
    with pytest.raises(ValueError, match=r"A must be numbers; found"):
        forest.best_linear_projection([["a"]] * 300)
    one = forest.best_linear_projection(data.X[:, 0], horizon=1.0)
    series = pd.Series(data.X[:, 0], name="age")
    assert forest.best_linear_projection(series, horizon=1.0).names == ["intercept", "age"]
    assert forest.best_linear_projection(series.rename(None), horizon=1.0).names == one.names
    assert one.names == ["intercept", "A0"]


@pytest.fixture(scope="module")
def short(data):
    """A forest whose controls are followed up to .8 only."""
    time, event = data.y["time"].copy(), data.y["event"].copy()
    late = (data.treatment == 0) & (time > 0.8)
    time[late], event[late] = 0.8, False
    y = censored(time, event)
    return fit_small(data, data.treatment).fit(data.X, y, data.treatment)


CALLS = [
    "forest.effect(X, **at)",
    "forest.effect_interval(X, **at)",
    "forest.effect_oob(**at)",
    "forest.scores(**at)",
    "forest.ate(**at).estimate",
    "forest.ate(**at).standard_error",
    "forest.best_linear_projection(**at).coefficient",
    "forest.rate(**at).estimate",
    "forest.rate(all_rows, **at).estimate",
    "forest.toc(**at).estimate",
]


def run(call, data, forest, **at):
    """Run a line of a user's file."""
    names = {"forest": forest, "X": data.X[:4], "all_rows": data.X[:, 0], "at": at}
    return eval(compile(call, "users_file.py", "eval"), names)


@pytest.mark.parametrize("call", CALLS)
def test_beyond_the_follow_up_of_an_arm_effects_are_nan_with_one_warning(data, short, call):
    message = r"the survival of one arm is known up to 0.8 only, .* NaN for 1.1. Ask for an earlier"
    for at in ({"horizon": 1.1}, {"target": "survival", "times": 1.1}):
        with pytest.warns(BeyondFollowUpWarning, match=message) as caught:
            values = run(call, data, short, **at)
        assert np.isnan(values).all()
        assert [each.filename for each in caught] == ["users_file.py"]
    known = run(call, data, short, horizon=0.8)
    assert np.isfinite(known).all()


def test_only_the_times_beyond_are_nan(data, short):
    with pytest.warns(BeyondFollowUpWarning, match=r"NaN for 0.9, 2\. Ask") as caught:
        found = short.effect(data.X[:4], "survival", times=[0.5, 0.9, 0.8, 2.0])
    assert np.isnan(found).all(axis=0).tolist() == [False, True, False, True]
    assert np.isnan(found).any(axis=0).tolist() == [False, True, False, True]
    assert len(caught) == 1
    with pytest.warns(BeyondFollowUpWarning):
        average = short.ate("survival", times=[0.5, 0.9])
    for values in (average.estimate, average.standard_error, average.lower, average.upper):
        assert np.isnan(values).tolist() == [False, True]


def test_beyond_the_follow_up_an_arm_has_neither_quantiles_nor_survival(data, short):
    levels = np.arange(0.05, 1.0, 0.05)
    control, treated = (short.predict(data.X, levels, arm=arm) for arm in (0, 1))
    assert (control[np.isfinite(control)] <= 0.8).all()
    assert (treated[np.isfinite(treated)] > 0.8).any()
    effects = short.effect(data.X, "quantile", quantiles=levels)
    assert not np.isfinite(effects[np.isinf(control)]).any()
    interval = short.effect_interval(data.X[:5], "quantile", quantiles=levels)
    assert np.isnan(interval[np.isinf(control[:5])]).all()
    assert np.isnan(short.predict_survival(data.X[:3], [0.81], arm=0)).all()
    assert np.isfinite(short.predict_survival(data.X[:3], [0.8], arm=0)).all()
    extended = short.predict_survival(data.X[:3], [0.8, 5.0], arm=0, beyond="extend")
    assert np.array_equal(extended[:, 0], extended[:, 1])
    average = short.ate("quantile", quantiles=[0.05, 0.99])
    assert np.isfinite(average.estimate[0])
    assert not np.isfinite(average.estimate[1])
    assert np.isnan(average.standard_error[1])


def test_an_arm_whose_last_row_is_an_event_is_known_for_ever(data):
    everyone = fit_small(data).fit(
        data.X, censored(data.y["time"], np.full(300, True)), data.treatment
    )
    assert everyone.model_.ends.tolist() == [np.inf, np.inf]
    assert np.isfinite(everyone.effect(data.X[:3], horizon=1e6)).all()
    assert (np.abs(everyone.effect(data.X[:3], "survival", times=1e6)) < 0.001).all()
