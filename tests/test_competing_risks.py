"""Forests with competing risks: what the estimator promises about each cause."""

import numpy as np
import pandas as pd
import pytest

from cqrf import (
    BeyondFollowUpWarning,
    CensoredQuantileForest,
    ModelFileError,
    UnidentifiedQuantileWarning,
    censored,
)
from cqrf._model.file import read_model_file
from oracles.causes import curve_at, curves_by_definition

TIMES = [0.3, 0.8]


def make_table(n=240, seed=0, names=None):
    """Cause 1 depends on x0, cause 2 on x1; times with ties."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 4)).round(2)
    latent = rng.exponential(1 / np.exp(np.column_stack([2 * X[:, 0], 2 * X[:, 1]])), (n, 2))
    first, end = latent.min(axis=1), rng.exponential(1.0, n)
    time = np.ceil(np.minimum(first, end) * 50) / 50
    cause = np.where(first <= end, latent.argmin(axis=1) + 1, 0)
    if names is not None:
        cause = np.array(["alive", *names])[cause]
        return X, censored(time, cause, censored="alive")
    return X, censored(time, cause)


def fit(X, y, *, fit_settings=None, **settings):
    settings = {"n_estimators": 20, "random_state": 1, **settings}
    return CensoredQuantileForest(**settings).fit(X, y, **(fit_settings or {}))


@pytest.fixture(scope="module")
def forest():
    return fit(*make_table())


@pytest.fixture(scope="module")
def asked():
    return make_table(30, seed=5)[0]


def test_incidences_and_survival_add_up_to_one(forest, asked):
    incidence, survival = (
        forest.predict_incidence(asked, TIMES),
        forest.predict_survival(asked, TIMES),
    )
    assert incidence.shape == (30, 2, 2)
    np.testing.assert_allclose(incidence.sum(axis=1) + survival, 1, atol=1e-12)


def test_incidence_is_the_aalen_johansen_curve_of_the_forest_weights(forest, asked):
    y = make_table()[1]
    weights, incidence = forest.weights(asked).toarray(), forest.predict_incidence(asked, TIMES)
    for row, found in zip(weights[:3], incidence[:3], strict=True):
        steps = curves_by_definition(y["time"], y["cause"], row, np.full(len(row), -1.0), 2)
        truth = np.array([curve_at(steps, t, 2)[1] for t in TIMES], float).T
        np.testing.assert_allclose(found, truth, atol=1e-12)


def test_one_cause_is_all_causes_at_its_place(forest, asked):
    everything = forest.predict_incidence(asked, TIMES)
    for k, cause in enumerate(forest.causes_):
        assert np.array_equal(forest.predict_incidence(asked, TIMES, cause), everything[:, k])
        curves = forest.predict_incidence(asked, cause=cause)
        assert np.array_equal(curves(TIMES), everything[:, k])
    assert np.array_equal(forest.predict_incidence(asked)(TIMES), everything)


def test_splits_find_what_drives_each_cause():
    X, y = make_table(1500)
    forest = fit(X, y, n_estimators=60)
    low, high = np.full((2, 4), 0.5), np.full((2, 4), 0.5)
    low[[0, 1], [0, 1]], high[[0, 1], [0, 1]] = 0.1, 0.9
    rise = forest.predict_incidence(high, [0.5]) - forest.predict_incidence(low, [0.5])
    assert (np.diag(rise[:, :, 0]) > 0.15).all()  # each cause along its own feature
    assert (rise[[0, 1], [1, 0], 0] < 0).all()  # the other one comes less often


def test_split_causes_may_be_a_float():
    X, y = make_table()
    importances = [fit(X, y, split_causes=each).feature_importances_ for each in (2, 2.0)]
    assert np.array_equal(*importances)


def test_features_with_missing_values_split_causes_too():
    X, y = make_table(600)
    X[(X[:, 0] > 0.5) & (np.arange(600) % 2 == 0), 0] = np.nan  # missing where cause 1 comes early
    forest = fit(X, y, n_estimators=60)
    asked = np.full((2, 4), 0.5)
    asked[:, 0] = [np.nan, 0.1]
    incidence = forest.predict_incidence(asked, [0.5], 1)[:, 0]
    assert incidence[0] > incidence[1] + 0.1


def test_split_causes_aims_at_one_cause():
    X, y = make_table(1500)
    of_first, of_second = (
        fit(X, y, split_causes=cause, n_estimators=40).feature_importances_ for cause in (1, [2])
    )
    assert of_first[0] > of_second[0]
    assert of_second[1] > of_first[1]
    assert np.array_equal(
        fit(X, y, split_causes=[2, 1]).predict_incidence(X[:50], [0.3]),
        fit(X, y).predict_incidence(X[:50], [0.3]),
    )


def test_a_single_cause_is_the_ordinary_forest_bit_for_bit(asked):
    train, y = make_table()
    event = y["event"]
    plain = fit(train, censored(y["time"], event))
    cause = np.where(event, 7, 0)
    named = pd.DataFrame({"time": y["time"], "cause": cause})
    for one in (censored(y["time"], cause), named):
        alone = fit(train, one)
        assert alone.causes_ == plain.causes_ == ()
        assert np.array_equal(plain.predict(asked, [0.1, 0.4]), alone.predict(asked, [0.1, 0.4]))
        assert np.array_equal(plain.weights(asked).toarray(), alone.weights(asked).toarray())
        assert (plain.model_.working is None) == (alone.model_.working is None)


def test_quantiles_of_a_cause_are_where_its_incidence_reaches_the_level(forest, asked):
    levels = [0.1, 0.3]
    found = forest.predict(asked, levels, cause=2, unidentified="nan")
    curves = forest.predict_incidence(asked, cause=2)
    for i, curve in enumerate(curves):
        for j, level in enumerate(levels):
            reached = curve.times[curve.values >= level - 1e-12]
            expected = reached[0] if len(reached) else np.nan
            assert found[i, j] == pytest.approx(expected, nan_ok=True)


def test_a_level_that_a_cause_never_reaches_is_infinite_with_a_warning(forest, asked):
    limit = forest.max_quantile(asked, cause=1)
    assert limit.max() < 0.99
    with pytest.warns(UnidentifiedQuantileWarning, match="incidence of this cause does not reach"):
        assert np.isposinf(forest.predict(asked, 0.99, cause=1)).all()
    below = np.array([forest.predict(asked[[i]], limit[i] - 1e-9, cause=1)[0] for i in range(5)])
    assert np.isfinite(below).all()


def test_mean_time_lost_is_the_integral_of_the_incidence(forest, asked):
    grid = (np.arange(20_000) + 0.5) / 20_000
    lost = forest.predict_mean(asked, 1.0, cause=1)
    np.testing.assert_allclose(
        lost, forest.predict_incidence(asked, grid, 1).mean(axis=1), atol=1e-4
    )
    both = lost + forest.predict_mean(asked, 1.0, cause=2) + forest.predict_mean(asked, 1.0)
    np.testing.assert_allclose(both, 1.0, atol=1e-12)


def test_without_a_cause_predictions_are_those_of_any_event(forest, asked):
    survival = forest.predict_survival(asked)
    expected = survival.first_at_most(np.full(30, 0.7 + 1e-12))
    assert np.array_equal(forest.predict(asked, 0.3), expected)


def test_predict_without_quantiles_gives_the_time_lost_if_asked_for_means(asked):
    forest = fit(*make_table(), prediction="risk")
    lost = forest.predict_mean(asked, cause=1, beyond="restrict")
    assert np.array_equal(forest.predict(asked, cause=1), lost)


def test_rows_that_have_survived_have_what_is_left(forest, asked):
    found = forest.predict_incidence(asked, [0.2], 1, given=0.3)
    at, free = forest.predict_incidence(asked, [0.3, 0.5], 1), forest.predict_survival(asked, [0.3])
    np.testing.assert_allclose(found, (at[:, [1]] - at[:, [0]]) / free, atol=1e-12)


def test_out_of_bag_uses_the_trees_that_did_not_draw_a_row():
    X, y = make_table(60)
    forest = fit(X, y, n_estimators=9, max_samples=0.5)
    found, weights = forest.predict_incidence_oob(TIMES, beyond="extend"), forest.weights_oob()
    curves, quantiles = forest.predict_incidence_oob(cause=2), forest.predict_oob(0.2, cause=2)
    for i, row in enumerate(weights.toarray()):
        if row.sum() == 0:
            assert np.isnan(found[i]).all()
            continue
        assert row[i] == 0
        steps = curves_by_definition(y["time"], y["cause"], row, np.full(60, -1.0), 2)
        truth = np.array([curve_at(steps, t, 2)[1] for t in TIMES], float).T
        np.testing.assert_allclose(found[i], truth, atol=1e-9)
        reached = curves[i].times[curves[i].values >= 0.2 - 1e-12]
        assert quantiles[i] == (reached[0] if len(reached) else np.inf)


def test_weights_count_as_repeated_rows_in_the_curves(asked):
    train, y = make_table(80)
    times = np.random.default_rng(0).integers(1, 4, 80)
    settings = {"min_samples_split": 10_000, "honest": False, "max_samples": None}
    weighted = fit(train, y, fit_settings={"sample_weight": times}, **settings)
    repeated = fit(np.repeat(train, times, axis=0), np.repeat(y, times), **settings)
    at = [0.1, 0.4]
    found, expected = (each.predict_incidence(asked, at) for each in (weighted, repeated))
    np.testing.assert_allclose(found, expected, atol=1e-6)  # weights are 32-bit


def test_rows_that_enter_late_and_groups_are_taken(asked):
    train, y = make_table(150)
    late = censored(y["time"], y["cause"], entry=y["time"] / 2)
    forest = fit(train, late, fit_settings={"groups": np.arange(150) // 3})
    incidence = forest.predict_incidence(asked, TIMES, beyond="extend")
    survival = forest.predict_survival(asked, TIMES, beyond="extend")
    np.testing.assert_allclose(incidence.sum(axis=1) + survival, 1, atol=1e-12)
    row = forest.weights(asked[:1]).toarray()[0]
    steps = curves_by_definition(late["time"], late["cause"], row, late["entry"], 2)
    np.testing.assert_allclose(incidence[0, :, 0], [float(f) for f in curve_at(steps, 0.3, 2)[1]])


@pytest.mark.parametrize("criterion", ["logrank", "quantile", "variance"])
def test_every_criterion_takes_several_causes(criterion, asked):
    forest = fit(*make_table(), criterion=criterion)
    assert (forest.model_.forest.feature >= 0).any()
    incidence = forest.predict_incidence(asked, TIMES)
    assert np.ptp(incidence[:, 0, 1]) > 0


def test_intervals_contain_the_estimate_and_narrow_with_confidence(asked):
    forest = fit(*make_table(), bag_size=2, n_estimators=100)
    found = forest.predict_incidence(asked, TIMES, 1)
    wide, narrow = (
        forest.incidence_confidence_interval(asked, TIMES, 1, confidence=c) for c in (0.99, 0.5)
    )
    assert (wide[..., 0] <= narrow[..., 0]).all()
    assert (narrow[..., 0] <= found).all()
    assert (found <= narrow[..., 1]).all()
    errors = forest.incidence_standard_error(asked, TIMES, 1)
    assert (errors[(found > 0.05) & (found < 0.95)] > 0).all()


def test_the_errors_of_one_cause_alone_are_those_of_the_survival_curve(asked):
    # Cause 2 never comes before the last time: 1 - F_1 is the survival curve up to there.
    train, y = make_table()
    cause = np.where(y["event"], 1, 0)
    time = y["time"].copy()
    cause[np.argmax(time)], time[np.argmax(time)] = 2, time.max() + 1
    forest = fit(train, censored(time, cause), bag_size=2, n_estimators=60, criterion="variance")
    np.testing.assert_allclose(
        forest.incidence_standard_error(asked, TIMES, 1),
        forest.survival_standard_error(asked, TIMES),
        atol=1e-12,
    )


@pytest.mark.parametrize("names", [None, ("a death", "ünfall")])
def test_a_saved_forest_gives_the_same_incidence(names, asked, tmp_path):
    forest = fit(*make_table(names=names), split_causes=None if names is None else [names[0]])
    forest.save(tmp_path / "model.cqrf")
    loaded = CensoredQuantileForest.load(tmp_path / "model.cqrf")
    assert loaded.causes_ == forest.causes_ == (names or (1, 2))
    assert loaded.split_causes == forest.split_causes
    assert np.array_equal(
        loaded.predict_incidence(asked, TIMES),
        forest.predict_incidence(asked, TIMES),
        equal_nan=True,
    )
    assert np.array_equal(loaded.model_.training_target.cause, forest.model_.training_target.cause)


@pytest.mark.parametrize(
    "forge",
    [
        lambda header, cause: header.update(causes=[1]),
        lambda header, cause: header.update(causes=[2, 1]),
        lambda header, cause: header.update(causes=[1, "2"]),
        lambda header, cause: header.update(causes=[]),
        lambda header, cause: header.update(censoring="left"),
        lambda header, cause: cause.__setitem__(slice(None), 3),
        lambda header, cause: cause.__setitem__(0, 0),
    ],
)
def test_forged_causes_are_refused(forge, forest, tmp_path, monkeypatch):
    from cqrf._model import file as model_file

    arrays, pack = model_file._arrays, model_file.pack

    def forged_arrays(saved):
        found = arrays(saved)
        found["cause"] = found["cause"].copy()
        forge({}, found["cause"])
        return found

    def forged_pack(kind, header, found):
        header = dict(header)
        forge(header, np.zeros(1, np.uint8))
        return pack(kind, header, found)

    monkeypatch.setattr(model_file, "_arrays", forged_arrays)
    monkeypatch.setattr(model_file, "pack", forged_pack)
    forest.save(tmp_path / "model.cqrf")
    with pytest.raises(ModelFileError, match="is not as it should be"):
        read_model_file(tmp_path / "model.cqrf")


def test_frames_name_causes_and_times(asked):
    frame = pd.DataFrame(asked, columns=list("abcd"), index=[f"p{i}" for i in range(30)])
    train, y = make_table(names=("death", "graft"))
    forest = fit(pd.DataFrame(train, columns=list("abcd")), y).set_output(transform="pandas")
    found = forest.predict_incidence(frame, TIMES)
    assert list(found.columns) == [
        "incidence0.3 death",
        "incidence0.8 death",
        "incidence0.3 graft",
        "incidence0.8 graft",
    ]
    assert list(found.index) == list(frame.index)
    one = forest.predict_incidence(frame, TIMES, "graft")
    assert np.array_equal(one.to_numpy(), found.to_numpy()[:, 2:])


def test_times_beyond_the_follow_up_are_nan_with_a_warning(forest, asked):
    with pytest.warns(BeyondFollowUpWarning):
        values = forest.predict_incidence(asked, [0.3, 1e6])
    is_known = ~np.isnan(values).any(axis=1)
    assert is_known[:, 0].all()
    assert not is_known[:, 1].all()


def test_what_makes_no_sense_is_refused(forest, asked):
    train, y = make_table()
    plain = fit(train, censored(y["time"], y["event"]))
    with pytest.raises(ValueError, match=r"one kind of event, whose incidence is 1 - predict_surv"):
        plain.predict_incidence(asked, TIMES)
    with pytest.raises(ValueError, match=r"cause=1: this forest knows one kind of event"):
        plain.predict(asked, 0.5, cause=1)
    with pytest.raises(ValueError, match=r"cause=3 is no cause of this forest; .* 1, 2"):
        forest.predict_mean(asked, cause=3)
    with pytest.raises(ValueError, match=r"working_model='cox' is for one kind of event"):
        fit(train, y, working_model="cox")
    with pytest.raises(ValueError, match=r"split_causes=9 is no cause"):
        fit(train, y, split_causes=9)
    with pytest.raises(ValueError, match=r"split_causes=1: y has one kind of event"):
        fit(train, censored(y["time"], y["event"]), split_causes=1)
    with pytest.raises(ValueError, match=r"split_causes=3\.0 is no cause of this forest"):
        fit(train, y, split_causes=3.0)
    with pytest.raises(ValueError, match=r"times must be numbers; .* text such as 'a'"):
        forest.predict_incidence(asked, ["a"], 1)
    with pytest.raises(ValueError, match=r"split_causes=1: this criterion does not tell causes"):
        fit(train, y, split_causes=1, criterion="variance")
    with pytest.raises(ValueError, match=r"several causes go with right censoring only"):
        fit(train, y, censoring="left")


def test_effects_of_treatment_are_refused():
    from cqrf.effects import CensoredTreatmentForest

    X, y = make_table()
    with pytest.raises(ValueError, match=r"y has several causes: .* censored\(time, cause != 0\)"):
        CensoredTreatmentForest().fit(X, y, treatment=np.arange(len(X)) % 2)


@pytest.mark.slow
def test_intervals_cover_the_true_incidence():
    rng, covered = np.random.default_rng(0), []
    at, truth = np.full((1, 2), 0.5), 0.5 * (1 - np.exp(-2 * 0.4))
    for repeat in range(200):
        X = rng.uniform(size=(400, 2))
        time, end = rng.exponential(0.5, 400), rng.exponential(1.0, 400)
        cause = np.where(time <= end, rng.integers(1, 3, 400), 0)
        forest = fit(
            X,
            censored(np.minimum(time, end), cause),
            bag_size=2,
            n_estimators=400,
            random_state=repeat,
        )
        low, high = forest.incidence_confidence_interval(at, [0.4], 1, confidence=0.9)[0, 0]
        covered.append(low <= truth <= high)
    assert 0.85 <= np.mean(covered) <= 0.95
