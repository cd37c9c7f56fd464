"""Plots show what the forest predicts."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.text import Text

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
from cqrf.plots.style import COLORS, TEXT_COLORS

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
    ends = []
    for line, curve in zip(step_lines(ax), forest.predict_survival(X[:3]), strict=True):
        end = curve.end if np.isfinite(curve.end) else curve.times[-1]
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
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["row 0", "row 1"]


def test_curves_have_their_names_beside_them(data):
    """Two groups far apart: each label is at its own curve, away from the other."""
    X = np.repeat([0.0, 1.0], 100)[:, np.newaxis]
    time = np.exp(3 * X[:, 0] + np.random.default_rng(0).normal(size=200) / 4)
    forest = grow(X, time, min_samples_leaf=20)
    ax = plot_survival(forest, X[[0, -1]], labels=["early", "late"])
    curves = forest.predict_survival(X[[0, -1]])
    assert [text.get_text() for text in ax.texts] == ["early", "late"]
    for i, text in enumerate(ax.texts):
        at, height = text.xy
        own, other = curves[i](at), curves[1 - i](at)
        assert height == own
        assert abs(own - other) > 0.07


def test_curves_without_room_have_their_names_in_the_margin(left):
    """Three curves that are one, then six that cross: every label is written, none on another."""
    X = np.repeat([0.0, 1.0], 100)[:, np.newaxis]
    forest = grow(X, np.exp(X[:, 0] + np.random.default_rng(0).normal(size=200)))
    many = make_aft(300, 3, censoring_rate=0.7, random_state=0)
    crowded = grow(many.X, many.y)
    for ax, names in (
        (plot_survival(forest, X[:3], labels=["first", "second", "third"]), 3),
        (plot_survival(crowded, many.X[:6], labels=[f"patient {i}" for i in range(6)]), 6),
        (plot_survival(left[0], left[1][:6]), 6),
    ):
        ax.figure.canvas.draw()
        renderer, frame = ax.figure.canvas.get_renderer(), ax.get_window_extent()
        texts = [text.get_text() for text in ax.texts]
        assert sorted(texts) == sorted(t.get_text() for t in ax.get_legend().get_texts()[:names])
        boxes = [Text.get_window_extent(text, renderer) for text in ax.texts]
        for i, box in enumerate(boxes):
            assert frame.x0 <= box.x0 + 1e-9  # pixels: matplotlib 3.9 rounds otherwise
            assert box.x1 <= frame.x1 + 1e-9
            assert not any(box.overlaps(other) for other in boxes[:i])


@pytest.mark.parametrize(("at_risk", "width"), [(False, None), (True, None), (False, 4.0)])
def test_long_names_stay_inside_of_the_figure(at_risk, width):
    many = make_aft(300, 3, censoring_rate=0.5, random_state=0)
    forest, names = grow(many.X, many.y), [f"GBSG-2026-{i:05d}" for i in range(4)]
    ax = None if width is None else plt.subplots(figsize=(width, 4), layout="constrained")[1]
    ax = plot_survival(forest, many.X[:4], labels=names, at_risk=at_risk, ax=ax)
    ax.figure.canvas.draw()
    renderer, inside = ax.figure.canvas.get_renderer(), ax.get_window_extent()
    whole = ax.figure.bbox
    for text in ax.get_legend().get_texts():
        assert text.get_window_extent(renderer).x1 <= whole.x1, text
    for text in ax.texts:
        box = Text.get_window_extent(text, renderer)
        assert whole.x0 - 1 <= box.x0, text
        assert box.x1 <= whole.x1, text
        if box.y0 > inside.y0:  # beside a curve
            assert inside.x0 <= box.x0, text
            assert box.x1 <= inside.x1, text
    if width is None:
        assert inside.width / ax.figure.dpi > 5


def test_short_names_are_on_one_line_of_the_legend(fitted):
    forest, X = fitted
    ax = plot_survival(forest, X[:3], labels=["patient 1", "patient 5", "patient 13"])
    ax.figure.canvas.draw()
    texts = ax.get_legend().get_texts()
    assert len(texts) == 4
    assert len({text.get_window_extent().y0 // 10 for text in texts}) == 1


def test_texts_can_be_read():
    """Contrast with white of 4.5, as WCAG asks of text; the hue is that of the curve."""

    def luminance(color):
        parts = np.array(mpl.colors.to_rgb(color))
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    for color, text in zip(COLORS, TEXT_COLORS, strict=True):
        assert 1.05 / (luminance(text) + 0.05) >= 4.5
        hues = [mpl.colors.rgb_to_hsv(mpl.colors.to_rgb(each))[0] for each in (color, text)]
        assert abs(hues[0] - hues[1]) < 0.03


@pytest.mark.parametrize("is_open", [False, True], ids=["reaches 0", "ends above 0"])
def test_many_rows_are_drawn_as_bands(is_open):
    rate, seed = (0.6, 1) if is_open else (0.3, 0)
    data = make_aft(200, 3, censoring_rate=rate, random_state=seed)
    forest, X = grow(data.X, data.y, working_model=None), data.X  # with few steps: all are drawn
    ax = plot_survival(forest, X[:50], scale=2.0)
    (median,) = step_lines(ax)
    curves, ends = forest.predict_survival(X[:50]), []
    for curve, censoring in zip(curves, forest.predict_censoring(X[:50]), strict=True):
        is_known = curve.values[-1] <= 1e-9
        ends.append(np.inf if is_known else max(curve.times[-1], censoring.times[-1]))
    steps = [curve.times for curve in curves]
    times = np.unique(np.concatenate([[0.0], *steps, np.array(ends)[np.isfinite(ends)]]))
    highest = curves(times, beyond="extend")
    lowest = np.where(times > np.array(ends)[:, np.newaxis], 0, highest)
    expected = np.quantile(highest, 0.5, axis=0)
    is_known = np.abs(expected - np.quantile(lowest, 0.5, axis=0)) < 1e-9
    # Some curves end before the median does.
    assert min(ends) < times[is_known][-1]
    np.testing.assert_array_equal(2 * median.get_xdata(), times[is_known])
    np.testing.assert_allclose(median.get_ydata(), expected[is_known], atol=1e-9)
    assert (median.get_ydata()[-1] > 1e-9) == is_open
    found = [end.get_xydata().tolist() for end in open_ends(ax)]
    assert found == [[median.get_xydata()[-1].tolist()]] * is_open
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    expected = ["80 % of the rows", "half of the rows", "median of 50 rows"]
    assert texts == expected + ["known no further"] * is_open
    outer, inner = ax.collections
    assert outer.get_paths()[0].get_extents().y0 <= inner.get_paths()[0].get_extents().y0
    with pytest.raises(ValueError, match="labels name the curves of up to 6 rows; X has 50"):
        plot_survival(forest, X[:50], labels=["a"] * 50)


def test_bands_of_curves_with_many_steps_are_drawn_at_some_of_them():
    data = make_aft(200, 3, censoring_rate=0.6, random_state=1)
    forest = grow(data.X, data.y)
    ax = plot_survival(forest, data.X[:50])
    curves = forest.predict_survival(data.X[:50])
    assert len(np.unique(curves.times)) > 1000
    (median,) = step_lines(ax)
    at, drawn_heights = median.get_xdata(), median.get_ydata()
    assert 200 < len(at) <= 500
    assert np.isin(at, np.r_[0, curves.times, curves.end]).all()
    np.testing.assert_allclose(drawn_heights, np.median(curves(at, beyond="extend"), axis=0))
    # Were every curve 0 beyond its end, the median would be the same.
    lowest = np.nan_to_num(curves(at), nan=0.0)
    np.testing.assert_allclose(drawn_heights, np.median(lowest, axis=0))
    assert np.isnan(curves(at)).any()


@pytest.mark.parametrize("side", ["right", "left"])
def test_bands_are_drawn_for_either_side_and_for_the_censoring_time(side, fitted, left):
    forest, X = fitted if side == "right" else left
    for draw in (plot_survival, plot_censoring):
        ax = draw(forest, X[:30])
        (median,) = step_lines(ax)
        known = median.get_ydata()[~np.isnan(median.get_ydata())]
        assert len(known) > 5
        assert (np.diff(known) <= 0).all()
        ax.figure.canvas.draw()


def test_numbers_at_risk_are_effective_numbers_of_neighbours(fitted, data):
    forest, X = fitted
    ax = plot_survival(forest, X[:2], labels=["a", "b"], at_risk=True, scale=2.0)
    ax.figure.canvas.draw()
    counts = {}
    for text in ax.texts:
        if text.get_text().replace(",", "").isdigit():
            counts.setdefault(text.xyann[1], {})[text.xy[0]] = int(text.get_text())
    assert len(counts) == 2
    weights = forest.weights(X[:2]).toarray()
    for row, line in zip(weights, counts.values(), strict=True):
        assert len(line) > 3
        for tick, count in line.items():
            at_risk = row[data.y["time"] >= 2 * tick].sum()
            assert count == round(at_risk / (row**2).sum())
        assert list(line.values()) == sorted(line.values(), reverse=True)
    bare = plot_survival(forest, X[:2])
    bare.figure.canvas.draw()
    heights = [each.get_window_extent().height for each in (bare, ax)]
    assert heights[1] > 0.85 * heights[0]  # the figure grows, the axes do not shrink
    assert "effective neighbours at risk" in [text.get_text() for text in ax.texts]


def test_numbers_at_risk_of_bands_are_training_rows(data):
    y = censored(data.y["time"], data.y["event"], 0.4 * data.y["time"])
    ax = plot_survival(grow(data.X, y), data.X[:20], at_risk=True)
    title, *counts = [text for text in ax.texts if text.get_text()]
    assert title.get_text() == "training rows at risk"
    for text in counts:
        tick = text.xy[0]
        expected = np.sum((data.y["time"] >= tick) & (0.4 * data.y["time"] < tick))
        assert int(text.get_text()) == expected


def test_labels_have_the_unit_and_the_event(data):
    forest = grow(data.X, data.y)
    forest.time_unit, forest.event_name = "days", "death"
    ax = plot_survival(forest, data.X[:2])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time (days)", "probability without death")
    assert plot_survival(forest, data.X[:2], scale=7).get_xlabel() == "time (days / 7)"
    for ax in (
        plot_quantile_fan(forest, data.X, 0),
        plot_partial_dependence(forest, data.X, 0, n_rows=5),
    ):
        assert ax.get_ylabel() == "time (days)"
    plain = plot_survival(grow(data.X, data.y), data.X[:2])
    assert (plain.get_xlabel(), plain.get_ylabel()) == ("time", "survival probability")


def test_survival_plot_under_left_censoring_hatches_the_low_levels(left):
    forest, X = left
    ax = plot_survival(forest, X[:3])
    hidden = [
        (curve.start, curve.initial)
        for curve in forest.predict_survival(X[:3])
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


@pytest.fixture(scope="module")
def censored_much():
    data = make_aft(300, 3, censoring_rate=0.7, random_state=0)
    return grow(data.X, data.y)


def test_calibration_plot_shows_the_curve_its_band_and_the_diagonal(censored_much):
    calibration = assess_calibration(censored_much)
    assert 0 < calibration.known_to < 0.9
    ax = plot_calibration(calibration)
    diagonal, whole, judged, limit = ax.lines
    assert diagonal.get_xydata().tolist() == [[0, 0], [1, 1]]
    np.testing.assert_array_equal(whole.get_ydata(), calibration.observed)
    known = calibration.levels <= calibration.known_to
    np.testing.assert_array_equal(judged.get_ydata()[known], calibration.observed[known])
    assert np.isnan(judged.get_ydata()[~known]).all()
    assert whole.get_alpha() < 1
    assert f"{calibration.distance:.3f}" in judged.get_label()
    assert limit.get_xdata() == [calibration.known_to, calibration.known_to]
    assert limit.get_label() == f"too few rows to judge above {calibration.known_to:.2f}"
    full, pale = ax.collections
    assert pale.get_alpha() < full.get_alpha() / 2
    assert full.get_paths()[0].get_extents().x1 == calibration.known_to
    assert pale.get_paths()[0].get_extents().x0 == calibration.known_to
    ax.figure.canvas.draw()
    legend, figure = ax.get_legend().get_window_extent(), ax.figure.bbox
    assert legend.x0 >= figure.x0
    assert legend.x1 <= figure.x1


def curves_of(ax):
    """Lines of quantiles, without the marks of the values in X."""
    return [line for line in ax.lines if "quantile" in line.get_label()]


def rug_of(ax):
    marks = [line for line in ax.lines if line.get_marker() == "|"]
    return marks[0].get_xdata() if marks else None


def test_quantile_fan_is_the_partial_dependence(fitted):
    forest, X = fitted
    _, own = plt.subplots()
    ax = plot_quantile_fan(forest, X, 0, quantiles=[0.9, 0.1, 0.5], scale=2.0, ax=own)
    assert ax is own
    found = partial_dependence(forest, X, 0, [0.1, 0.5, 0.9])
    lines = curves_of(ax)
    assert len({line.get_linestyle() for line in lines}) == len(lines) == 3
    for k, line in enumerate(lines):
        np.testing.assert_array_equal(line.get_xdata(), found.grid)
        np.testing.assert_array_equal(line.get_ydata(), found.values[:, k] / 2)
    assert len(ax.collections) == 1
    np.testing.assert_array_equal(rug_of(ax), np.sort(X[:, 0]))


def test_quantile_fan_of_a_row_moves_the_feature_of_that_row(fitted):
    forest, X = fitted
    ax = plot_quantile_fan(forest, X, 1, quantiles=[0.25, 0.5], row=7)
    lines = curves_of(ax)
    moved = np.tile(X[7], (len(lines[0].get_xdata()), 1))
    moved[:, 1] = lines[0].get_xdata()
    expected = forest.predict(moved, [0.25, 0.5], unidentified="nan")
    np.testing.assert_array_equal(np.transpose([line.get_ydata() for line in lines]), expected)
    own = [line for line in ax.lines if line.get_label() == "value of row 7"]
    assert own[0].get_xdata() == [X[7, 1], X[7, 1]]
    for row in (-1, 200, "first"):
        with pytest.raises(
            ValueError, match=r"row=.* must be the position of a row of X, 0 to 199"
        ):
            plot_quantile_fan(forest, X, 1, row=row)


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
    seen = 1 - forest.predict_survival(alike, [1e9], beyond="extend").reshape(20, 200).mean(axis=1)
    levels = [0.5, np.median(seen), 0.999]
    found = partial_dependence(forest, X, 1, levels)
    hidden = np.isnan(found.values)
    assert 0 < hidden[:, 1].sum() < len(hidden)
    assert hidden[:, 2].all()
    _, own = plt.subplots()
    ax = plot_partial_dependence(forest, X, 1, levels, own, scale=2.0)
    assert ax is own
    lines = curves_of(ax)
    for k, line in enumerate(lines):
        np.testing.assert_array_equal(line.get_xdata(), found.grid)
        np.testing.assert_array_equal(line.get_ydata(), found.values[:, k] / 2)
    assert len({line.get_linestyle() for line in lines}) == 3
    np.testing.assert_array_equal(rug_of(ax), np.sort(X[:, 1]))
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


def test_a_column_of_two_values_is_drawn_as_two_points(data):
    X = data.X.copy()
    X[:, 1] = X[:, 1] > 1
    forest = grow(X, data.y)
    for ax in (plot_partial_dependence(forest, X, 1), plot_quantile_fan(forest, X, 1)):
        assert [text.get_text() for text in ax.get_xticklabels()] == ["0", "1"]
        assert {line.get_linestyle() for line in curves_of(ax)} == {"None"}
        assert rug_of(ax) is None


def test_the_rug_of_many_rows_is_thinned(data):
    X = np.tile(data.X, (10, 1))
    ax = plot_partial_dependence(grow(data.X, data.y), X, 0, n_rows=10)
    rug = rug_of(ax)
    assert len(rug) == 500
    assert (rug[0], rug[-1]) == (X[:, 0].min(), X[:, 0].max())


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
