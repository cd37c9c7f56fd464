"""Treatment forests as users see them: invariances, kinds of input, warnings, settings."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from cqrf import CensoredQuantileForest, NegativeTimeWarning, censored
from cqrf.datasets import make_treatment
from cqrf.effects import CensoredTreatmentForest, OverlapWarning
from support.treated import fit_small, make_data, make_forest

HERE = __file__
HORIZON, TIMES, LEVELS = 1.5, [0.1, 0.5, 1.0], [0.25, 0.5, 0.75]


@pytest.fixture(scope="module")
def data():
    return make_data()


@pytest.fixture(scope="module")
def forest(data):
    return fit_small(data)


def answers(forest, X, scale=1.0):
    """What a forest answers, in times of the unit that scale gives; each turns with the arms."""
    at = {"horizon": scale * HORIZON}
    times = {"target": "survival", "times": scale * np.array(TIMES)}
    return {
        "rmst": forest.effect(X, **at) / scale,
        "survival": forest.effect(X, **times),
        "quantile": forest.effect(X, "quantile", quantiles=LEVELS) / scale,
        "default": forest.effect(X) / scale,
        "oob": forest.effect_oob(**at) / scale,
        "scores": forest.scores(**times),
        "ate": forest.ate(**at).estimate / scale,
        "overlap": forest.ate(**at, population="overlap").estimate / scale,
        "ate quantile": forest.ate("quantile", quantiles=LEVELS).estimate / scale,
        "projection": forest.best_linear_projection(
            np.arange(300) % 7, **at, subset=np.arange(250)
        ).coefficient
        / scale,
    }


def unsigned(forest, X, scale=1.0):
    """What does not turn with the arms, or turns otherwise."""
    at = {"horizon": scale * HORIZON}
    return {
        "error": forest.ate(**at).standard_error / scale,
        "error quantile": forest.ate("quantile").standard_error / scale,
        "interval": forest.effect_interval(X, **at) / scale,
        "interval quantile": forest.effect_interval(X, "quantile", quantiles=LEVELS) / scale,
        "treated": forest.ate(**at, population="treated").estimate / scale,
        "control": forest.ate(**at, population="control").estimate / scale,
        "arms": [forest.predict(X, LEVELS, arm=arm) / scale for arm in (0, 1)],
        "curves": [forest.predict_survival(X, scale * np.array(TIMES), arm=arm) for arm in (0, 1)],
        "propensity": forest.overlap().propensity,
        "rate": forest.rate(np.arange(300.0), **at).estimate / scale,
        "toc": forest.toc(**at).estimate / scale,
    }


def assert_same(first, second):
    for name in first:
        assert np.array_equal(first[name], second[name], equal_nan=True), name


def everything(forest, X, scale=1.0):
    return answers(forest, X, scale) | unsigned(forest, X, scale)


def test_swapping_the_arms_turns_the_sign_exactly(data, forest):
    X = data.X[:40]
    turned = fit_small(data, 1 - data.treatment)
    first, second = answers(forest, X), answers(turned, X)
    assert_same(first, {name: -np.asarray(value) for name, value in second.items()})
    first, second = unsigned(forest, X), unsigned(turned, X)
    for name in ("error", "error quantile"):
        assert first[name] == second[name]
    for name in ("interval", "interval quantile"):
        assert np.array_equal(first[name], -second[name][..., ::-1], equal_nan=True)
    for name in ("arms", "curves"):
        assert np.array_equal(first[name], second[name][::-1])
    assert (first["treated"], first["control"]) == (-second["control"], -second["treated"])
    np.testing.assert_allclose(first["propensity"], 1 - second["propensity"], rtol=1e-14)
    assert first["rate"] == -second["rate"]


def test_with_known_propensities_as_well(data):
    first = fit_small(data, propensity=data.propensity)
    second = fit_small(data, 1 - data.treatment, propensity=1 - data.propensity)
    X = data.X[:40]
    # 1 - (1 - e) may differ from e in the last digit.
    for name, value in answers(second, X).items():
        np.testing.assert_allclose(answers(first, X)[name], -np.asarray(value), atol=1e-9)


@pytest.mark.parametrize(
    "name", [{0: "a", 1: "b"}, {0: False, 1: True}, {0: 1.5, 1: 7.0}, {0: "b", 1: "a"}]
)
def test_arms_may_have_any_two_names(data, forest, name):
    treatment = np.array([name[w] for w in data.treatment.tolist()])
    named = fit_small(data, treatment, control=name[0])
    assert named.arms_ == (name[0], name[1])
    assert_same(everything(forest, data.X[:20]), everything(named, data.X[:20]))
    for arm in (0, 1):
        if not isinstance(name[arm], bool | float):
            by_name = named.predict(data.X[:5], arm=name[arm])
            assert np.array_equal(by_name, forest.predict(data.X[:5], arm=arm))
    kinds = (list(treatment), pd.Series(treatment), pl.Series(treatment.tolist()))
    for kind in kinds:
        again = fit_small(data, kind, control=name[0])
        assert np.array_equal(again.effect(data.X[:5]), forest.effect(data.X[:5]))


def test_without_a_named_control_the_first_in_the_alphabet_is_it(data, forest):
    named = fit_small(data, np.where(data.treatment == 1, "a", "b"))
    assert named.arms_ == ("a", "b")
    assert np.array_equal(named.effect(data.X[:9]), -forest.effect(data.X[:9]))


# Time


def test_a_unit_of_time_scales_effects_exactly(data, forest):
    scaled = fit_small(replace(data, y=censored(8 * data.y["time"], data.y["event"])))
    assert_same(everything(forest, data.X[:40]), everything(scaled, data.X[:40], 8.0))


@pytest.mark.parametrize("shift", [4.0, -0.25])
def test_another_start_of_time_changes_no_effect(data, shift):
    # Without a working model, whose curves are rounded at times that they jump at.
    plain = CensoredQuantileForest(n_estimators=80, working_model=None)
    forest = fit_small(data, forest=make_forest(nuisance_forest=plain))
    moved = make_forest(nuisance_forest=plain)
    y = censored(data.y["time"] + shift, data.y["event"])
    if shift > 0:
        moved.fit(data.X, y, data.treatment)
    else:
        with pytest.warns(NegativeTimeWarning, match=r"time is -0\.\d+ in row \d+") as caught:
            moved.fit(data.X, y, data.treatment)
        assert [each.filename for each in caught] == [HERE]
    X = data.X[:40]
    for target, at in (
        ("rmst", {"horizon": HORIZON}),
        ("survival", {"times": np.array(TIMES)}),
    ):
        later = {name: value + shift for name, value in at.items()}
        found, expected = moved.effect(X, target, **later), forest.effect(X, target, **at)
        np.testing.assert_allclose(found, expected, atol=1e-10)
        found, expected = moved.ate(target, **later), forest.ate(target, **at)
        np.testing.assert_allclose(found.estimate, expected.estimate, atol=1e-10)
        np.testing.assert_allclose(found.standard_error, expected.standard_error, atol=1e-10)
    quantiles = [each.effect(X, "quantile", quantiles=LEVELS) for each in (moved, forest)]
    np.testing.assert_allclose(*quantiles, atol=1e-10)


def test_before_the_first_event_there_is_no_effect(data, forest):
    assert (forest.effect(data.X[:5], "survival", times=[-1.0, 0.0]) == 0).all()
    assert (forest.effect(data.X[:5], horizon=1e-12) == 0).all()
    assert forest.ate("survival", times=0.0).estimate == 0


def test_effects_on_survival_add_up_to_that_on_the_restricted_mean(data, forest):
    # The response is constant between the times of the grid and those of the rows.
    corners = np.unique(np.concatenate([[0.0], forest.model_.grid.times, data.y["time"]]))
    corners = np.append(corners[corners < HORIZON], HORIZON)
    at_corners = forest.effect(data.X[:20], "survival", times=corners[:-1])
    area = at_corners @ np.diff(corners)
    np.testing.assert_allclose(forest.effect(data.X[:20], horizon=HORIZON), area, atol=1e-10)


# Rows and queries


def test_a_row_alone_equals_the_row_among_others(data, forest):
    def ask(X):
        return (
            forest.effect(X, horizon=HORIZON),
            forest.effect(X, "survival", times=TIMES),
            forest.effect_interval(X, horizon=HORIZON),
            forest.effect(X, "quantile", quantiles=LEVELS),
            forest.predict_survival(X, TIMES, arm=1),
        )

    X = data.X[:30]
    order = np.random.default_rng(0).permutation(30)
    for rows in (order, *([row] for row in range(0, 30, 5))):
        for found, whole in zip(ask(X[rows]), ask(X), strict=True):
            assert np.array_equal(found, whole[rows], equal_nan=True)


def test_one_number_gives_one_dimension_and_a_list_two(data, forest):
    X = data.X[:3]
    shapes = {
        (3,): [forest.effect(X), forest.effect(X, "survival", times=1.0), forest.predict(X)],
        (3, 1): [forest.effect(X, "survival", times=[1.0]), forest.predict(X, [0.5])],
        (3, 2): [forest.effect_interval(X), forest.effect(X, "quantile", quantiles=[0.1, 0.2])],
        (3, 1, 2): [forest.effect_interval(X, "survival", times=[1.0])],
    }
    for shape, found in shapes.items():
        assert [each.shape for each in found] == [shape] * len(found)


def test_threads_change_nothing(data, forest):
    several = fit_small(data, forest=make_forest(n_jobs=2))
    assert_same(everything(forest, data.X[:40]), everything(several, data.X[:40]))


def test_a_seed_gives_the_same_forest_and_another_one_another(data, forest):
    again, other = fit_small(data), fit_small(data, forest=make_forest(random_state=1))
    assert_same(everything(forest, data.X[:40]), everything(again, data.X[:40]))
    assert not np.array_equal(other.effect(data.X[:40]), forest.effect(data.X[:40]))


def test_a_pickled_forest_answers_the_same(data, forest):
    again = pickle.loads(pickle.dumps(forest))
    assert_same(everything(forest, data.X[:10]), everything(again, data.X[:10]))


# Weights and groups


def test_rows_of_weight_zero_have_no_influence(data):
    used = np.random.default_rng(0).random(300) < 0.8
    changed = replace(data, X=data.X.copy(), y=data.y.copy(), treatment=data.treatment.copy())
    changed.X[~used] = 1e6
    changed.y["time"][~used] = 1e6
    weighted = fit_small(changed, sample_weight=used.astype(float))
    alone = make_forest().fit(data.X[used], data.y[used], data.treatment[used])
    X = data.X[:40]
    assert weighted.model_.grid.times.tolist() == alone.model_.grid.times.tolist()
    at = {"horizon": HORIZON}
    for found, expected in (
        (weighted.effect(X, **at), alone.effect(X, **at)),
        (weighted.effect(X, "quantile"), alone.effect(X, "quantile")),
        (weighted.effect_interval(X, **at), alone.effect_interval(X, **at)),
        (weighted.scores(**at)[used], alone.scores(**at)),
        (weighted.ate("quantile").standard_error, alone.ate("quantile").standard_error),
        (
            weighted.rate(np.arange(300.0), **at).estimate,
            alone.rate(np.flatnonzero(used).astype(float), **at).estimate,
        ),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-9)
    first, second = weighted.ate(**at), alone.ate(**at)
    assert first.n_rows == second.n_rows == used.sum()
    assert first.estimate == pytest.approx(second.estimate, abs=1e-9)
    assert first.standard_error == pytest.approx(second.standard_error, rel=1e-9)
    assert np.isfinite(weighted.toc(**at).estimate).all()


def test_weights_that_differ_by_a_factor_or_not_at_all_give_the_same_forest(data, forest):
    weight = np.random.default_rng(1).integers(1, 5, 300).astype(float)
    X = data.X[:20]
    once, twice = (fit_small(data, sample_weight=w) for w in (weight, 2 * weight))
    assert_same(everything(once, X), everything(twice, X))
    assert_same(
        everything(forest, X), everything(fit_small(data, sample_weight=np.full(300, 3.0)), X)
    )
    assert not np.array_equal(once.effect(X), forest.effect(X))


def test_groups_of_single_rows_are_no_groups(data, forest):
    grouped = fit_small(data, groups=np.random.default_rng(2).permutation(300))
    assert_same(everything(forest, data.X[:20]), everything(grouped, data.X[:20]))


def test_copies_of_rows_in_one_group_widen_the_error_to_that_of_the_rows(data):
    copies = replace(
        data,
        X=np.repeat(data.X, 3, axis=0),
        y=np.repeat(data.y, 3),
        treatment=np.repeat(data.treatment, 3),
    )
    groups = np.repeat(np.arange(300), 3)
    once = fit_small(data, propensity=0.5).ate(horizon=HORIZON)
    grouped = fit_small(copies, groups=groups, propensity=0.5).ate(horizon=HORIZON)
    alone = fit_small(copies, propensity=0.5).ate(horizon=HORIZON)
    assert grouped.standard_error == pytest.approx(once.standard_error, rel=0.15)
    assert alone.standard_error < 0.75 * once.standard_error


def test_few_groups_are_refused(data):
    with pytest.raises(ValueError, match=r"groups: 2 groups are too few, at least 10 are needed"):
        fit_small(data, groups=np.arange(300) % 2)
    assert fit_small(data, groups=np.arange(300) % 10).rate(horizon=HORIZON).standard_error > 0


# Features


def test_frames_with_categories_and_missing_values(data):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(data.X.copy(), columns=list("abcde"))
    frame["site"] = pd.Categorical(rng.choice(["north", "south", "west"], 300))
    frame.loc[rng.random(300) < 0.2, "b"] = np.nan
    forest = make_forest().fit(frame, data.y, data.treatment)
    assert forest.feature_names_in_.tolist() == [*"abcde", "site"]
    found = forest.effect(frame[:30], horizon=HORIZON)
    assert np.isfinite(found).all()
    by_polars = make_forest().fit(pl.from_pandas(frame), data.y, data.treatment)
    assert np.array_equal(by_polars.effect(pl.from_pandas(frame[:30]), horizon=HORIZON), found)
    # Renamed levels are the same category.
    renamed = frame.assign(site=frame["site"].cat.rename_categories(["n", "s", "w"]))
    again = make_forest().fit(renamed, data.y, data.treatment)
    assert np.array_equal(again.effect(renamed[:30], horizon=HORIZON), found)
    projection = forest.best_linear_projection(frame[["a", "c"]], horizon=HORIZON)
    assert projection.names == ["intercept", "a", "c"]
    with pytest.raises(ValueError, match="feature names"):
        forest.effect(frame.drop(columns="site"))
    assert forest.predict_survival(frame[5:9]).to_frame()["row"].unique().tolist() == [5, 6, 7, 8]


def test_an_effect_of_a_category_is_found():
    rng = np.random.default_rng(4)
    n = 600
    site, w = rng.choice(["a", "b", "c"], n), rng.integers(0, 2, n)
    frame = pd.DataFrame({"site": pd.Categorical(site), "x": rng.normal(size=n)})
    time = rng.exponential(size=n) + 2.0 * w * (site == "b")
    forest = make_forest().fit(frame, censored(time, np.full(n, True)), w, propensity=0.5)
    effect = forest.effect(frame, horizon=4.0)
    assert effect[site == "b"].mean() > 1.2
    assert abs(effect[site != "b"]).mean() < 0.4


# Warnings


def test_rows_without_a_counterpart_are_warned_of_at_the_callers_line(data):
    message = r"300 of 300 rows have a propensity below 0.05 or above 0.95 \(from 0.010 to 0.010\)"
    of_trial = r"propensity is 0.01 on average, but 49.7% of the rows are in the arm 1: chance does"
    outer, inner = (pytest.warns(UserWarning, match=each) for each in (of_trial, message))
    with outer, inner as caught:
        forest = make_forest().fit(data.X, data.y, data.treatment, propensity=0.01)
    assert [each.filename for each in caught] == [HERE, HERE]
    assert [each.category for each in caught] == [OverlapWarning, UserWarning]
    overlap = forest.overlap()
    assert overlap.n_outside == 300
    assert overlap.treated.tolist() == (data.treatment == 1).tolist()
    assert "propensity from 0.010 to 0.010; 300 of 300 rows" in repr(overlap)


def test_propensities_of_the_control_are_warned_of_at_the_callers_line(data):
    weight = np.where(np.arange(300) < 280, 1.0, 0.0)
    with pytest.warns(UserWarning, match="lower than in the arm 0, where it is") as caught:
        make_forest().fit(
            data.X, data.y, data.treatment, propensity=1 - data.propensity, sample_weight=weight
        )
    assert [each.filename for each in caught] == [HERE]
    fit_small(data, propensity=data.propensity)


def test_priorities_from_the_same_rows_are_warned_of_at_the_callers_line(data, forest):
    for own in (forest.effect(data.X, horizon=HORIZON), forest.effect_oob(horizon=HORIZON)):
        for method in (forest.rate, forest.toc):
            with pytest.warns(UserWarning, match=r"priorities are this forest's effects") as caught:
                method(own, horizon=HORIZON)
            assert [each.filename for each in caught] == [HERE]
    forest.rate(data.X[:, 0], horizon=HORIZON)


# The estimator


def test_a_failed_fit_leaves_the_forest_as_it_was(data, forest):
    fitted = fit_small(data)
    before = everything(fitted, data.X[:5])
    failures = [
        {"treatment": np.zeros(300)},
        {"treatment": data.treatment[:-1]},
        {"treatment": data.treatment, "propensity": 1.0},
        {"treatment": data.treatment, "control": 5},
        {"treatment": data.treatment, "sample_weight": -np.ones(300)},
    ]
    for arguments in failures:
        with pytest.raises(ValueError, match=r"treatment|propensity|control|sample_weight"):
            fitted.fit(data.X[:, :3], data.y, **arguments)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples"):
        fitted.fit(data.X, data.y[:-1], data.treatment)
    fitted.n_estimators = 41
    with pytest.raises(ValueError, match=r"n_estimators=41 must be a multiple"):
        fitted.fit(data.X, data.y, data.treatment)
    fitted.n_estimators = 80
    assert fitted.n_features_in_ == 5
    assert_same(before, everything(fitted, data.X[:5]))
    unfitted = make_forest()
    with pytest.raises(ValueError, match=r"propensity"):
        unfitted.fit(data.X, data.y, data.treatment, propensity=2.0)
    assert not hasattr(unfitted, "model_")
    assert not hasattr(unfitted, "n_features_in_")


def test_rows_that_enter_late_are_refused(data):
    late = censored(data.y["time"], data.y["event"], entry=data.y["time"] / 2)
    message = r"y has entry times: effects of treatment on rows that .*censored\(time - entry, eve"
    with pytest.raises(ValueError, match=message):
        make_forest().fit(data.X, late, data.treatment)


def test_an_estimator_of_scikit_learn():
    nuisance = CensoredQuantileForest(n_estimators=60)
    forest = CensoredTreatmentForest(n_estimators=400, nuisance_forest=nuisance, random_state=3)
    copy = clone(forest)
    assert copy.get_params()["n_estimators"] == 400
    assert copy.get_params()["nuisance_forest__n_estimators"] == 60
    assert copy.nuisance_forest is not nuisance
    copy.set_params(max_depth=3, nuisance_forest__n_estimators=70)
    assert (copy.max_depth, copy.nuisance_forest.n_estimators) == (3, 70)
    assert "CensoredTreatmentForest(n_estimators=400" in repr(forest)


def test_a_forest_must_be_fitted_first(data):
    for call in ("effect", "effect_interval", "predict", "predict_survival"):
        with pytest.raises(NotFittedError):
            getattr(CensoredTreatmentForest(), call)(data.X)
    for call in ("ate", "scores", "effect_oob", "best_linear_projection", "rate", "toc", "overlap"):
        with pytest.raises(NotFittedError):
            getattr(CensoredTreatmentForest(), call)()


def test_fitting_changes_neither_the_data_nor_the_nuisance_forest(data):
    copies = data.X.copy(), data.y.copy(), data.treatment.copy()
    forest = make_forest()
    parameters = forest.nuisance_forest.get_params()
    fit_small(data, forest=forest)
    for before, after in zip(copies, (data.X, data.y, data.treatment), strict=True):
        assert np.array_equal(before, after)
    assert forest.nuisance_forest.get_params() == parameters
    assert not hasattr(forest.nuisance_forest, "model_")


def test_the_names_of_times_are_texts():
    X, y, treatment = np.zeros((60, 1)), np.arange(1.0, 61.0), np.tile([0, 1], 30)
    forest = CensoredTreatmentForest(n_estimators=8, time_unit=3)
    with pytest.raises(ValueError, match="time_unit=3 must be text"):
        forest.fit(X, y, treatment)


def test_an_average_over_one_arm_counts_its_rows():
    data = make_treatment("confounded", 200, random_state=0)
    forest = CensoredTreatmentForest(n_estimators=40, random_state=0)
    forest.fit(data.X, data.y, data.treatment)
    n_treated = int(data.treatment.sum())
    assert forest.ate(population="treated").n_rows == n_treated
    assert forest.ate(population="control").n_rows == 200 - n_treated
