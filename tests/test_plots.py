"""Plots show what the forest predicts."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest

mpl.use("Agg")
from matplotlib import pyplot as plt

from cqrf import CensoredQuantileForest, censored
from cqrf.calibration import assess_calibration
from cqrf.datasets import make_aft
from cqrf.inspection import partial_dependence
from cqrf.plots import (
    plot_calibration,
    plot_censoring,
    plot_importance,
    plot_node_sizes,
    plot_partial_dependence,
    plot_quantile_fan,
    plot_survival,
)

HOSTILE = "$x_1$ <b>"


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def grow(X, y, **settings):
    few = {"n_estimators": 30, "max_samples": 0.5, "random_state": 0}
    return CensoredQuantileForest(**{**few, **settings}).fit(X, y)


@pytest.fixture(scope="module")
def data():
    return make_aft(200, 3, censoring_rate=0.3, random_state=0)


@pytest.fixture(scope="module")
def fitted(data):
    return grow(data.X, data.y), data.X


@pytest.fixture(scope="module")
def left(data):
    much = make_aft(200, 3, censoring_rate=0.5, random_state=0)
    turned = censored(-much.y["time"], much.y["event"])
    return grow(much.X, turned, censoring="left"), much.X


@pytest.fixture(scope="module")
def framed(data):
    group = np.array(["old", "young", "new"])[np.digitize(data.X[:, 1], [0.7, 1.4])]
    frame = pd.DataFrame({HOSTILE: data.X[:, 0], "group": group, "third": data.X[:, 2]})
    return grow(frame, data.y), frame


def step_lines(ax):
    return [line for line in ax.lines if line.get_drawstyle() == "steps-post"]


def open_ends(ax):
    return [line for line in ax.lines if line.get_markerfacecolor() == "white"]


def drawn(text):
    """A text as Matplotlib will draw it; None if as a formula."""
    shown, is_formula = text._preprocess_math(text.get_text())
    return None if is_formula else shown


def test_survival_plot_marks_quantiles_and_where_sight_ends(fitted):
    forest, X = fitted
    _, own = plt.subplots()
    ax = plot_survival(
        forest, X[:3], quantiles=[0.25, 0.5], labels=["a", "b", HOSTILE], scale=2.0, ax=own
    )
    assert ax is own
    marks = [line for line in ax.lines if len(line.get_xdata()) == 2 and line.get_ls() == "None"]
    np.testing.assert_array_equal(
        [line.get_xdata() for line in marks],
        forest.predict(X[:3], [0.25, 0.5], unidentified="nan") / 2,
    )
    assert len({line.get_marker() for line in marks}) == 3
    curves, censorings = forest.predict_survival(X[:3]), forest.predict_censoring(X[:3])
    ends = []
    for line, curve, censoring in zip(step_lines(ax), curves, censorings, strict=True):
        end = max(curve.times[-1], censoring.times[-1])
        np.testing.assert_array_equal(line.get_xdata(), np.r_[0, curve.times, end] / 2)
        np.testing.assert_array_equal(line.get_ydata(), np.r_[1, curve.values, curve.values[-1]])
        if curve.values[-1] > 0:
            ends.append((end / 2, curve.values[-1]))
    assert [tuple(line.get_xydata()[0]) for line in open_ends(ax)] == ends
    assert len(ends) > 0
    for (end, height), area in zip(ends, ax.collections, strict=True):
        low, high = area.get_paths()[0].get_extents().get_points()
        assert (*low, high[1]) == (end, 0, height)
        assert high[0] == ax.get_xlim()[1] > end
        assert area.get_hatch()
    assert ax.get_ylabel() == "survival probability"
    texts = ax.get_legend().get_texts()
    assert [drawn(text) for text in texts] == ["a", "b", HOSTILE, "not identified"]
    with pytest.raises(ValueError, match="labels has 1 texts for 3 rows"):
        plot_survival(forest, X[:3], labels=["a"])


def test_survival_plot_hatches_nothing_where_all_is_seen(data):
    seen = censored(data.y["time"], np.full(200, True))
    ax = plot_survival(grow(data.X, seen), data.X[:2])
    assert not open_ends(ax)
    assert not ax.collections
    assert ax.get_legend() is None


def test_survival_plot_under_left_censoring_hatches_the_low_levels(left):
    forest, X = left
    ax = plot_survival(forest, X[:3])
    curves, censorings = forest.predict_survival(X[:3]), forest.predict_censoring(X[:3])
    hidden = [
        (min(curve.times[0], censoring.times[0]), curve.initial)
        for curve, censoring in zip(curves, censorings, strict=True)
        if curve.initial < 1
    ]
    assert [tuple(line.get_xydata()[0]) for line in open_ends(ax)] == hidden
    assert len(hidden) > 0
    for (sight, height), area in zip(hidden, ax.collections, strict=True):
        low, high = area.get_paths()[0].get_extents().get_points()
        assert (low[1], *high) == (height, sight, 1)
        assert low[0] == ax.get_xlim()[0] < sight


def test_survival_plot_of_flat_curves(data):
    once = censored(np.arange(1.0, 201.0), np.arange(200) == 0)
    ax = plot_survival(CensoredQuantileForest(n_estimators=1).fit(data.X, once), data.X[:2])
    assert len(open_ends(ax)) == 2


@pytest.mark.parametrize("side", ["right", "left"])
def test_censoring_plot_draws_the_survival_of_the_censoring_time(side, fitted, left):
    forest, X = fitted if side == "right" else left
    _, own = plt.subplots()
    ax = plot_censoring(forest, X[:2], own, labels=["a", "b"])
    assert ax is own
    for line, curve in zip(step_lines(ax), forest.predict_censoring(X[:2]), strict=True):
        np.testing.assert_array_equal(line.get_xdata()[1:-1], curve.times)
        np.testing.assert_array_equal(line.get_ydata()[1:-1], curve.values)
    assert len({line.get_marker() for line in step_lines(ax)}) == 2
    assert ax.get_ylabel() == "probability of not being censored"
    ax.figure.canvas.draw()


def test_durations_are_drawn_in_days(data):
    stay = (data.X[:, 0] * 1e3).astype("timedelta64[D]").astype("timedelta64[us]")
    frame = pl.DataFrame({"stay": stay, "third": data.X[:, 2]})
    forest = grow(frame, data.y)
    ax = plot_partial_dependence(forest, frame, "stay", n_rows=20)
    ax.figure.canvas.draw()
    grid = partial_dependence(forest, frame, "stay", n_rows=20).grid
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), grid / np.timedelta64(1, "D"))
    assert ax.get_xlabel() == "stay (days)"


def test_calibration_plot_shows_the_curve_its_band_and_the_diagonal(fitted):
    forest, _ = fitted
    calibration = assess_calibration(forest)
    ax = plot_calibration(calibration)
    diagonal, curve = ax.lines
    assert diagonal.get_xydata().tolist() == [[0, 0], [1, 1]]
    np.testing.assert_array_equal(curve.get_ydata(), calibration.observed)
    assert f"{calibration.distance:.3f}" in curve.get_label()
    assert len(ax.collections) == 1


def test_quantile_fan_draws_one_line_a_level_on_the_axes_given(fitted):
    forest, X = fitted
    _, own = plt.subplots()
    ax = plot_quantile_fan(forest, X, 0, quantiles=[0.1, 0.5], ax=own)
    assert ax is own
    assert len({line.get_linestyle() for line in ax.lines}) == len(ax.lines) == 2
    order = np.argsort(X[:, 0])
    np.testing.assert_array_equal(
        ax.lines[1].get_ydata(), forest.predict(X[order], 0.5, unidentified="nan")
    )


def test_quantile_fan_takes_frames_and_names(framed):
    forest, X = framed
    numbers = [j for j, levels in enumerate(forest.model_.columns.levels) if levels is None]
    name = forest.feature_names_in_[numbers[0]]
    by_name, by_number = (plot_quantile_fan(forest, X, feature) for feature in (name, numbers[0]))
    assert np.array_equal(by_name.lines[0].get_ydata(), by_number.lines[0].get_ydata())
    assert drawn(by_name.xaxis.label) == name
    categories = set(range(len(forest.feature_names_in_))) - set(numbers)
    for category in categories:
        with pytest.raises(ValueError, match="is a category"):
            plot_quantile_fan(forest, X, category)
    assert categories


def test_importance_plot_sorts_the_bars_and_draws_names_as_they_stand(framed, fitted):
    forest, _ = framed
    _, own = plt.subplots()
    ax = plot_importance(forest, own)
    assert ax is own
    order = np.argsort(-forest.feature_importances_)
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_array_equal(widths, forest.feature_importances_[order])
    ax.figure.canvas.draw()
    names = [drawn(text) for text in ax.get_yticklabels()]
    assert names == forest.feature_names_in_[order].tolist()
    assert HOSTILE in names
    assert ax.yaxis_inverted()

    unnamed, _ = fitted
    ax = plot_importance(unnamed, n_features=2)
    best = np.argsort(-unnamed.feature_importances_)[:2]
    assert [text.get_text() for text in ax.get_yticklabels()] == [f"feature {i}" for i in best]
    assert "2 of 3 features" in ax.get_xlabel()
    with pytest.raises(ValueError, match="n_features=0"):
        plot_importance(unnamed, n_features=0)


def test_a_very_long_name_loses_its_middle(data):
    name = "begin" + "$" * 200 + "end"
    frame = pd.DataFrame(data.X, columns=[name, "b", "c"])
    ax = plot_partial_dependence(grow(frame, data.y), frame, name, n_rows=5)
    shown = drawn(ax.xaxis.label)
    assert shown.startswith("begin$")
    assert shown.endswith("$end")
    assert len(shown) <= 40


def test_partial_dependence_plot_has_gaps_where_time_is_hidden(fitted):
    forest, X = fitted
    grid = partial_dependence(forest, X, 1).grid
    alike = np.tile(X, (20, 1))
    alike[:, 1] = np.repeat(grid, 200)
    seen = 1 - forest.predict_survival(alike, [1e9]).reshape(20, 200).mean(axis=1)
    levels = [0.5, np.median(seen), 0.999]
    found = partial_dependence(forest, X, 1, levels)
    hidden = np.isnan(found.values)
    assert 0 < hidden[:, 1].sum() < len(hidden)
    assert hidden[:, 2].all()
    _, own = plt.subplots()
    ax = plot_partial_dependence(forest, X, 1, levels, own, scale=2.0)
    assert ax is own
    for k, line in enumerate(ax.lines):
        np.testing.assert_array_equal(line.get_xdata(), found.grid)
        np.testing.assert_array_equal(line.get_ydata(), found.values[:, k] / 2)
    assert len({line.get_linestyle() for line in ax.lines}) == 3
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "0.5 quantile",
        f"{levels[1]:g} quantile, gaps not identified",
        "0.999 quantile: not identified",
    ]
    assert ax.get_xlabel() == "feature 1"


def test_partial_dependence_plot_of_a_category_has_a_mark_a_level(framed):
    forest, frame = framed
    found = partial_dependence(forest, frame, "group", [0.25, 0.5])
    ax = plot_partial_dependence(forest, frame, "group", [0.25, 0.5])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["new", "old", "young"]
    assert [line.get_linestyle() for line in ax.lines] == ["None", "None"]
    assert [line.get_marker() for line in ax.lines] == ["o", "s"]
    for k, line in enumerate(ax.lines):
        np.testing.assert_array_equal(line.get_ydata(), found.values[:, k])
    assert drawn(plot_partial_dependence(forest, frame, HOSTILE).xaxis.label) == HOSTILE


def test_node_size_plot_shows_the_skill_of_each_size_and_of_the_forest(data):
    few = {"n_estimators": 20, "max_samples": 0.5, "random_state": 3}
    forest = CensoredQuantileForest(min_samples_leaf=7, **few)
    _, own = plt.subplots()
    ax = plot_node_sizes(forest, data.X, data.y, [20, 2], own)
    assert ax is own
    curve, mark = ax.lines

    def skill(**settings):
        return grow(data.X, data.y, **few, **settings)

    expected = [
        skill(min_samples_leaf=size, min_samples_split=2 * size + 1).score_oob() for size in (2, 20)
    ]
    assert curve.get_xdata().tolist() == [2, 20]
    assert curve.get_ydata().tolist() == expected
    assert mark.get_xydata().tolist() == [[7, skill(min_samples_leaf=7).score_oob()]]
    assert not hasattr(forest, "model_")

    default = plot_node_sizes(forest.set_params(random_state=None), data.X, data.y)
    sizes = default.lines[0].get_xdata()
    assert (sizes[0], sizes[-1]) == (1, 20)
    assert len(sizes) <= 6
    with pytest.raises(ValueError, match="sizes=0"):
        plot_node_sizes(forest, data.X, data.y, [0])
    with pytest.raises(ValueError, match="sizes must have at least one"):
        plot_node_sizes(forest, data.X, data.y, [])
