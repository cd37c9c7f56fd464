"""Ties, edges and extremes: each with the answer that it must have."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cqrf import CensoredQuantileForest, censored

CRITERIA = ("censored_quantile", "quantile", "variance", "logrank")
TINY, NEARLY_ONE = 1e-9, 1 - 1e-9


def one_curve(time, event, **settings):
    """A forest that cannot split: one Kaplan-Meier curve of all rows, for everyone."""
    settings = {"n_estimators": 3, "honest": False, "max_samples": None, **settings}
    X = np.zeros((len(time), 2))
    return CensoredQuantileForest(random_state=0, **settings).fit(X, censored(time, event))


def ask(forest, levels, X=None):
    X = np.zeros((1, forest.n_features_in_)) if X is None else X
    return forest.predict(X, levels, unidentified="nan")


def make_table(n=80, seed=0, p=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).round(2)
    time = rng.exponential(np.exp(X[:, 0])).round(2) + 0.01
    return X, time, rng.random(n) < 0.7


@pytest.mark.parametrize("criterion", CRITERIA)
def test_all_times_equal(criterion):
    X, _, _ = make_table()
    forest = CensoredQuantileForest(criterion=criterion, n_estimators=20, random_state=0)
    forest.fit(X, censored(np.full(80, 7.5), np.ones(80, bool)))
    assert (forest.predict(X, [TINY, 0.5, NEARLY_ONE]) == 7.5).all()
    assert forest.score_oob() == 0.0
    # With censorings at the same time, behind the events: known up to the share of events.
    curve = one_curve(np.full(8, 7.5), [1, 1, 1, 0, 0, 0, 0, 0], criterion=criterion)
    assert np.array_equal(ask(curve, [0.37, 0.38]), [[7.5, np.nan]], equal_nan=True)
    assert curve.max_quantile(np.zeros((1, 2))) == pytest.approx(3 / 8)


def test_event_and_censoring_at_the_same_time_also_at_the_last():
    # At 1 one of four dies; at 2 one of the two left dies, before the other is censored.
    forest = one_curve([1, 1, 2, 2], [1, 0, 0, 1])
    survival = forest.predict_survival(np.zeros((1, 2)), [0.5, 1, 1.5, 2])
    np.testing.assert_allclose(survival, [[1, 0.75, 0.75, 0.375]])
    assert np.array_equal(
        ask(forest, [0.24, 0.26, 0.62, 0.63]), [[1, 2, 2, np.nan]], equal_nan=True
    )
    assert forest.max_quantile(np.zeros((1, 2))) == pytest.approx(0.625)


def test_a_single_event():
    X, time, _ = make_table()
    event = np.zeros(80, bool)
    first = np.argmin(time)
    event[first] = True
    forest = one_curve(time, event)
    assert forest.max_quantile(np.zeros((1, 2))) == pytest.approx(1 / 80)
    assert np.array_equal(ask(forest, [1 / 81, 1 / 79]), [[time[first], np.nan]], equal_nan=True)
    grown = CensoredQuantileForest(n_estimators=50, random_state=0).fit(X, censored(time, event))
    assert set(grown.predict(X, 0.01)) <= {time[first], np.inf}


def test_one_row():
    forest = CensoredQuantileForest(n_estimators=4).fit([[1.0, 2.0]], [3.0])
    assert (forest.predict([[0.0, 9.0], [np.nan, 1.0]], [TINY, 0.5]) == 3.0).all()
    assert forest.weights([[5.0, 5.0]]).toarray() == [[1.0]]
    assert forest.predict_mean([[0.0, 0.0]]) == [3.0]


def test_one_column():
    time = np.repeat([1.0, 10.0], 40)
    X = np.repeat([[0.0], [1.0]], 40, axis=0)
    forest = CensoredQuantileForest(n_estimators=10, random_state=0).fit(X, time)
    assert np.array_equal(forest.predict([[-5.0], [0.4], [0.6], [5.0]]), [1, 1, 10, 10])
    assert forest.feature_importances_.tolist() == [1.0]


@pytest.mark.parametrize("criterion", CRITERIA)
def test_constant_columns_tell_nothing(criterion):
    X, time, event = make_table()
    y = censored(time, event)
    constant = np.column_stack([np.full(80, 3.0), np.full(80, np.nan), np.zeros(80)])
    forest = CensoredQuantileForest(criterion=criterion, n_estimators=20, random_state=0)
    forest.fit(np.column_stack([constant, X]), y)
    assert forest.feature_importances_[:3].tolist() == [0, 0, 0]
    assert (forest.feature_importances_[3:] > 0).all()
    weights = forest.fit(constant, y).weights(np.array([[3.0, np.nan, 0.0], [9.0, 9.0, 9.0]]))
    assert np.array_equal(weights.toarray()[0], weights.toarray()[1])


def test_duplicate_rows_change_no_curve():
    _, time, event = make_table()
    once, thrice = one_curve(time, event), one_curve(np.tile(time, 3), np.tile(event, 3))
    times = np.unique(time)
    a, b = (forest.predict_survival(np.zeros((1, 2)), times) for forest in (once, thrice))
    np.testing.assert_allclose(a, b, rtol=1e-12)
    levels = [0.1, 0.35, 0.6]
    assert np.array_equal(ask(once, levels), ask(thrice, levels))


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("power", [-990, 0, 990])
def test_times_of_any_size_give_the_same_forest(criterion, power):
    """Multiplied by a power of two, exactly: from 1e-300 to 1e300."""
    X, time, event = make_table()
    factor = 2.0**power
    settings = {"criterion": criterion, "n_estimators": 10, "random_state": 0}
    plain = CensoredQuantileForest(**settings).fit(X, censored(time, event))
    forest = CensoredQuantileForest(**settings).fit(X, censored(time * factor, event))
    levels = [0.1, 0.5, 0.9]
    assert np.array_equal(ask(forest, levels, X), ask(plain, levels, X) * factor, equal_nan=True)
    assert np.array_equal(forest.weights(X).toarray(), plain.weights(X).toarray())
    mean, plain_mean = (each.predict_mean(X, beyond="restrict") for each in (forest, plain))
    np.testing.assert_allclose(mean / factor, plain_mean, rtol=1e-12)
    assert forest.score_oob() == pytest.approx(plain.score_oob(), rel=1e-9)


@pytest.mark.parametrize("working_model", [None, "cox"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_times_from_1e_minus_300_to_1e300_in_one_table(criterion, working_model):
    X, _, event = make_table()
    time = 10.0 ** np.linspace(-300, 300, 80)
    event[-1] = True
    forest = CensoredQuantileForest(
        criterion=criterion, n_estimators=20, random_state=0, working_model=working_model
    ).fit(X, censored(time, event))
    found = forest.predict(X, [TINY, 0.5, NEARLY_ONE], unidentified="clip")
    if working_model is None:
        assert np.isin(found, time).all()
    assert ((time[0] <= found) & (found <= time[-1])).all()
    assert (np.diff(found, axis=1) >= 0).all()
    assert one_curve(time, event).predict(np.zeros((1, 2)), NEARLY_ONE) == time[-1]


def test_times_1e_minus_15_apart_are_different_times():
    time = 1.0 + np.arange(9) * 1e-15
    assert len(set(time)) == 9
    forest = one_curve(time, np.ones(9))
    assert np.array_equal(ask(forest, (np.arange(9) + 0.5) / 9)[0], time)


def test_features_at_the_end_of_the_numbers():
    time = np.repeat([1.0, 5.0, 9.0], 30)
    X = np.repeat([[-1e308], [0.0], [1e308]], 30, axis=0)
    forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, time)
    asked = [[-1.7e308], [-1e308], [-1.0], [1.0], [1e308], [1.7e308]]
    assert np.array_equal(forest.predict(asked), [1, 1, 5, 5, 9, 9])
    with pytest.raises(ValueError, match="infinity"):
        forest.predict([[np.inf]])
    tiny = CensoredQuantileForest(n_estimators=20, random_state=0)
    tiny.fit(np.repeat([[-5e-324], [0.0], [5e-324]], 30, axis=0), time)
    assert np.array_equal(tiny.predict([[-5e-324], [0.0], [5e-324]]), [1, 5, 9])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_integers_above_2_to_the_53_are_read_as_floats(frame):
    ids = 2**60 + 1000 * np.arange(60)
    time = np.repeat([1.0, 5.0], 30)
    settings = {"n_estimators": 20, "random_state": 0}
    forest = CensoredQuantileForest(**settings).fit(frame({"id": ids}), time)
    assert np.array_equal(forest.predict(frame({"id": ids[[0, 59]]})), [1, 5])
    array = CensoredQuantileForest(**settings).fit(ids[:, np.newaxis], time)
    assert np.array_equal(array.predict(ids[:, np.newaxis]), forest.predict(frame({"id": ids})))
    # Neighbours that no float tells apart are one value, in fit as in predict.
    near = 2**60 + np.arange(60)
    merged = CensoredQuantileForest(**settings).fit(frame({"id": near}), time)
    assert merged.feature_importances_.tolist() == [0.0]


def test_dates_from_year_1_to_9999():
    days = [
        datetime.datetime(1, 1, 1),
        datetime.datetime(1970, 1, 1),
        datetime.datetime(9999, 1, 1),
    ]
    frame = pl.DataFrame({"when": days * 30})
    time = np.array([1.0, 5.0, 9.0] * 30)
    forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(frame, time)
    asked = pl.DataFrame({"when": [*days, None]})
    assert np.array_equal(forest.predict(asked)[:3], [1, 5, 9])


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_dates_with_a_time_zone_are_moments(zone):
    when = pd.date_range("2020-01-01", periods=60, freq="D", tz="UTC")
    time = np.repeat([1.0, 5.0], 30)
    forest = CensoredQuantileForest(n_estimators=20, random_state=0)
    forest.fit(pd.DataFrame({"when": when.tz_convert(zone)}), time)
    for other in ("UTC", "Asia/Kolkata"):
        asked = pd.DataFrame({"when": when.tz_convert(other)})
        assert np.array_equal(forest.predict(asked)[[0, 59]], [1, 5])


def test_300_levels_are_too_many_and_254_are_not():
    frame = pd.DataFrame({"name": [f"level {i}" for i in range(300)] * 2})
    with pytest.raises(ValueError, match=r"column 'name' has 300 levels; .* at most 254"):
        CensoredQuantileForest().fit(frame, np.arange(600.0))
    kept = pd.DataFrame({"name": [f"level {i}" for i in range(254)] * 20})
    time = np.arange(254 * 20) % 254 + 1.0
    forest = CensoredQuantileForest(
        n_estimators=3, honest=False, max_samples=None, min_samples_leaf=1, random_state=0
    ).fit(kept, time)
    np.testing.assert_allclose(forest.predict(kept[:254]), time[:254], atol=1)
    forest.set_params(working_model=None).fit(kept, time)
    assert np.array_equal(forest.predict(kept[:254]), time[:254])


@pytest.mark.parametrize("honest", [False, True])
def test_fewer_rows_than_a_leaf(honest):
    time = np.array([1.0, 2.0, 4.0])
    forest = CensoredQuantileForest(
        honest=honest, min_samples_leaf=50, n_estimators=200, random_state=0, max_samples=2
    ).fit(np.arange(3.0)[:, np.newaxis], time)
    weights = forest.weights([[0.0], [2.0]]).toarray()
    assert np.array_equal(weights[0], weights[1])
    np.testing.assert_allclose(weights[0], 1 / 3, atol=0.1)
    assert np.array_equal(ask(forest, [TINY, NEARLY_ONE]), [[1.0, 4.0]])


def test_levels_next_to_0_and_1():
    X, time, event = make_table()
    event[np.argmax(time)] = True
    forest = CensoredQuantileForest(n_estimators=20, random_state=0, working_model=None)
    forest.fit(X, censored(time, event))
    found = forest.predict(X, [TINY, NEARLY_ONE], unidentified="nan")
    weights = forest.weights(X).toarray()
    for row in range(len(X)):
        near = weights[row] > 0
        assert found[row, 0] == time[near & event].min()
        last = time[near].max()
        known = event[near & (time == last)].all()
        assert found[row, 1] == last if known else np.isnan(found[row, 1])


def test_an_honest_leaf_that_stays_empty_gives_way_to_its_sibling():
    X, time, event = make_table(n=24)
    forest = CensoredQuantileForest(
        n_estimators=300, min_samples_leaf=1, min_samples_split=2, random_state=0
    ).fit(X, censored(time, event))
    sizes = np.diff(forest.model_.forest.leaf_offsets)
    assert sizes.min() == 1
    far = np.array([[99.0, 99.0, 99.0], [-99.0, np.nan, 0.0]])
    for asked in (X, far):
        np.testing.assert_allclose(forest.weights(asked).sum(axis=1), 1.0, rtol=1e-12)


def test_a_row_that_never_was_out_of_bag_is_nan():
    X, time, event = make_table()
    forest = CensoredQuantileForest(n_estimators=2, random_state=0).fit(X, censored(time, event))
    drawn = np.array([forest.weights_oob().sum(axis=1) == 0])[0]
    assert 0 < drawn.sum() < 80
    found = forest.predict_oob([0.2, 0.4], unidentified="clip")
    assert np.array_equal(np.isnan(found).any(axis=1), drawn)
    survival = forest.predict_survival_oob([0.5, 1.0], beyond="extend")
    assert np.array_equal(np.isnan(survival), np.column_stack([drawn, drawn]))
    assert np.isfinite(forest.score_oob())
    everywhere = CensoredQuantileForest(n_estimators=2, max_samples=None).fit(X, time)
    assert np.isnan(everywhere.predict_oob(0.5)).all()
    with pytest.raises(ValueError, match="no row is out of bag"):
        everywhere.score_oob()
