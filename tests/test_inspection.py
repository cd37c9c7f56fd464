"""Partial dependence is what its definition says, on tables of every kind."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from lifelines.datasets import load_rossi

from cqrf import CensoredQuantileForest, censored
from cqrf._survival.step_curves import StepCurves
from cqrf.datasets import make_aft
from cqrf.inspection import partial_dependence
from cqrf.inspection.dependence import evenly_spaced, mean_quantiles
from cqrf.inspection.forests import check_forest


def grow(X, y, **settings):
    few = {"n_estimators": 30, "max_samples": 0.5, "random_state": 0}
    return CensoredQuantileForest(**{**few, **settings}).fit(X, y)


@pytest.fixture(scope="module")
def data():
    return make_aft(200, 3, censoring_rate=0.3, random_state=0)


@pytest.fixture(scope="module", params=["auto", None], ids=["working model", "plain"])
def working_model(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(data, working_model):
    return grow(data.X, data.y, working_model=working_model), data.X


@pytest.fixture(scope="module")
def left(data, working_model):
    much = make_aft(200, 3, censoring_rate=0.5, random_state=0)
    turned = censored(-much.y["time"], much.y["event"])
    return grow(much.X, turned, censoring="left", working_model=working_model), much.X


@pytest.fixture(scope="module")
def framed(data):
    group = np.array(["old", "young", "new"])[np.digitize(data.X[:, 1], [0.7, 1.4])]
    frame = pd.DataFrame({"first": data.X[:, 0], "group": group, "third": data.X[:, 2]})
    return grow(frame, data.y), frame


def loop_partial_dependence(forest, X, column, grid, levels, rows):
    """The definition, row by row and time by time; X an array."""
    values = np.full((len(grid), len(levels)), np.nan)
    for g, value in enumerate(grid):
        curves = []
        for row in rows:
            changed = X[row].copy()
            changed[column] = value
            curves.append(forest.predict_survival(changed[np.newaxis])[0])
        times = np.unique(np.concatenate([curve.times for curve in curves]))
        means = sum(curve(times, beyond="extend") for curve in curves) / len(rows)
        for k, level in enumerate(levels):
            if sum(curve.initial for curve in curves) / len(rows) <= 1 - level:
                continue
            for t, mean in zip(times, means, strict=True):
                if mean <= 1 - level + 1e-12:
                    values[g, k] = t
                    break
    return values


def test_partial_dependence_is_its_definition_in_loops(fitted):
    forest, X = fitted
    levels = [0.2, 0.5, 0.97]
    found = partial_dependence(forest, X, 0, levels, grid=[0.3, 1.1, 1.9], n_rows=7)
    rows = [0, 33, 66, 100, 133, 166, 199]
    expected = loop_partial_dependence(forest, X, 0, [0.3, 1.1, 1.9], levels, rows)
    np.testing.assert_array_equal(found.values, expected)
    np.testing.assert_array_equal(found.quantiles, levels)
    assert np.isnan(expected).any()
    assert np.isfinite(expected[:, :2]).all()


def test_partial_dependence_under_left_censoring_hides_low_levels(left):
    forest, X = left
    levels, rows = [0.002, 0.5, 0.9], np.arange(0, 25, 3)
    found = partial_dependence(forest, X[rows], 1, levels, grid=[0.2, 1.5])
    expected = loop_partial_dependence(forest, X, 1, [0.2, 1.5], levels, rows)
    np.testing.assert_array_equal(found.values, expected)
    assert np.isnan(found.values[:, 0]).all()
    assert np.isfinite(found.values[:, 2]).all()


@pytest.mark.parametrize("side", ["right", "left"])
def test_partial_dependence_over_one_row_is_its_prediction(side, fitted, left):
    forest, X = fitted if side == "right" else left
    levels = [0.05, 0.31, 0.62, 0.9]
    for row in X[:5]:
        found = partial_dependence(forest, row[np.newaxis], 2, levels)
        np.testing.assert_array_equal(found.grid, row[2:])
        expected = forest.predict(row[np.newaxis], levels, unidentified="nan")
        np.testing.assert_array_equal(found.values, expected)


def test_partial_dependence_in_blocks(fitted, monkeypatch):
    forest, X = fitted
    whole = partial_dependence(forest, X, 0)
    monkeypatch.setattr("cqrf.inspection.dependence.MAX_STEPS_AT_ONCE", 1)
    np.testing.assert_array_equal(partial_dependence(forest, X, 0).values, whole.values)


def test_default_grid_has_the_values_or_even_quantiles_of_them(fitted):
    forest, X = fitted
    grid = partial_dependence(forest, X, 0).grid
    assert len(grid) == 20
    assert (grid[0], grid[-1]) == (X[:, 0].min(), X[:, 0].max())
    assert np.isin(grid, X[:, 0]).all()
    below = np.searchsorted(np.sort(X[:, 0]), grid)
    np.testing.assert_allclose(below, np.arange(20) * 199 / 19, atol=1)
    few = X[:40].copy()
    few[:, 1] = np.repeat([3.0, 1.0, np.nan, 2.0], 10)
    np.testing.assert_array_equal(partial_dependence(forest, few, 1).grid, [1, 2, 3])


def test_default_levels_are_those_that_the_training_rows_can_tell():
    table = load_rossi()  # three quarters are censored
    X = table.drop(columns=["week", "arrest"])
    forest = grow(X, censored(table["week"], table["arrest"]))
    found = partial_dependence(forest, X, "prio")
    assert found.quantiles.max() < 0.25
    assert tuple(found.quantiles) == forest.model_.score_levels
    assert np.isfinite(found.values).all()
    assert np.isnan(partial_dependence(forest, X, "prio", 0.75).values).all()


def test_frames_of_every_kind_give_the_same_partial_dependence(framed):
    forest, frame = framed
    some = frame.iloc[::4]
    columns = {name: some[name].tolist() for name in some}
    expected = {}
    for level in ("new", "old", "young"):
        changed = some.assign(group=level)
        curves = forest.predict_survival(changed)
        times = np.unique(curves.times)
        mean = curves(times, beyond="extend").mean(axis=0)
        expected[level] = times[np.flatnonzero(mean <= 0.5 + 1e-12)[0]]
    for rows in (some, pl.DataFrame(columns), pa.table(columns)):
        found = partial_dependence(forest, rows, "group", 0.5)
        assert found.grid.tolist() == ["new", "old", "young"]
        assert found.values[:, 0].tolist() == list(expected.values())
        by_number = partial_dependence(forest, rows, 1, 0.5, grid=["young", "new"])
        assert by_number.values[:, 0].tolist() == [expected["young"], expected["new"]]


def test_dates_and_durations_come_back_as_such(data):
    dates = np.datetime64("2020-01-01", "us") + (data.X[:, 0] * 1e3).astype("timedelta64[D]")
    frame = pl.DataFrame({"since": dates, "stay": dates - dates.min(), "third": data.X[:, 2]})
    forest = grow(frame, data.y)
    for name in ("since", "stay"):
        grid = partial_dependence(forest, frame, name).grid
        assert np.isin(grid, frame[name].to_numpy()).all()
        again = partial_dependence(forest, frame, name, grid=grid[:3])
        np.testing.assert_array_equal(again.grid, grid[:3])
    with pytest.raises(ValueError, match="grid must be dates"):
        partial_dependence(forest, frame, "since", grid=["soon"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"feature": "height"}, r"feature='height' is unknown; the forest has .*'group'"),
        ({"feature": 3}, "feature=3 must be a name or a number from 0 to 2"),
        ({"feature": -1}, "feature=-1"),
        ({"feature": True}, "feature=True"),
        ({"feature": "group", "grid": ["old", "odd"]}, "grid has 'odd'.*'new', 'old', 'young'"),
        ({"feature": "third", "grid": []}, "grid must be a list of at least one value"),
        ({"feature": "third", "grid": 1.0}, "grid must be a list"),
        ({"feature": "third", "grid": ["a"]}, "grid must be numbers"),
        ({"feature": "third", "grid": [1.0, np.nan]}, "grid must have no missing"),
        ({"feature": "third", "n_rows": 0}, "n_rows=0"),
        ({"feature": "third", "quantiles": [1.5]}, "quantiles must lie"),
    ],
)
def test_wrong_arguments_are_named(framed, arguments, message):
    forest, frame = framed
    with pytest.raises(ValueError, match=message):
        partial_dependence(forest, frame, **arguments)


def test_partial_dependence_needs_a_forest_its_names_and_a_value(fitted):
    forest, X = fitted
    with pytest.raises(ValueError, match="forest must be"):
        partial_dependence(None, X, 0)
    with pytest.raises(ValueError, match="fitted without feature names"):
        partial_dependence(forest, X, "age")
    empty = X.copy()
    empty[:, 1] = np.nan
    with pytest.raises(ValueError, match="feature=1 has no value in X; give a grid"):
        partial_dependence(forest, empty, 1)
    assert np.isfinite(partial_dependence(forest, empty, 1, 0.5, grid=[1.0]).values).all()


def test_quantiles_of_a_mean_curve_are_the_first_times_at_or_below():
    """The mean is .8, .6 from 1 on, .35 from 2, .2 from 3; the last curve has no step."""
    curves = StepCurves(
        offsets=np.array([0, 2, 4, 4]),
        times=np.array([1.0, 2.0, 2.0, 3.0]),
        values=np.array([0.4, 0.0, 0.45, 0.0]),
        initial=np.array([1.0, 0.8, 0.6]),
    )
    levels = np.array([0.1, 0.3, 0.4, 0.45, 0.7, 0.8, 0.9])
    expected = [np.nan, 1.0, 1.0, 2.0, 3.0, 3.0, np.nan]
    np.testing.assert_array_equal(mean_quantiles(curves, levels), expected)


def test_evenly_spaced_rows():
    assert evenly_spaced(5, 10).tolist() == [0, 1, 2, 3, 4]
    assert evenly_spaced(10, 4).tolist() == [0, 3, 6, 9]
    assert evenly_spaced(0, 4).tolist() == []


def test_a_forest_must_be_one_and_fitted(fitted):
    check_forest(fitted[0])
    with pytest.raises(ValueError, match="must be a CensoredQuantileForest; found dict"):
        check_forest({})
    with pytest.raises(ValueError, match="not fitted yet"):
        check_forest(CensoredQuantileForest())
