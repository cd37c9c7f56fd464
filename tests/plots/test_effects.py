"""Plots of effects show what the treatment forest estimates."""

import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")
from matplotlib import pyplot as plt

from cqrf import BeyondFollowUpWarning, CensoredQuantileForest
from cqrf.datasets import make_competing_risks, make_treatment
from cqrf.plots import (
    plot_arms,
    plot_censoring,
    plot_effect,
    plot_incidence,
    plot_overlap,
    plot_partial_dependence,
    plot_quantile_fan,
    plot_subgroups,
    plot_survival,
    plot_toc,
)
from cqrf.plots.style import COLORS
from support.effect_plots import HOSTILE, MINUS, drawn, grow_treatment_forest, read_numbers


def solid_line(ax):
    (line,) = [each for each in ax.lines if each.get_linestyle() == "-"]
    return line


def band_of(ax):
    """Lower and upper ends of the only band, at each of its places."""
    (band,) = ax.collections
    corners = band.get_paths()[0].vertices
    at = np.unique(corners[:, 0])
    return np.array([[f(corners[corners[:, 0] == x, 1]) for f in (np.min, np.max)] for x in at])


def area_of(band):
    """Area of a filled region by the shoelace formula."""
    x, y = band.get_paths()[0].vertices[:-1].T
    return abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


@pytest.mark.parametrize(
    "target",
    [{}, {"horizon": 1.5}, {"target": "survival", "times": 0.5}, {"target": "quantile"}],
    ids=["default", "rmst", "survival", "quantile"],
)
def test_the_effect_of_a_row_is_drawn_as_one_feature_moves(forest, data, target):
    row = data.X[7:8]
    _, own = plt.subplots()
    ax = plot_effect(forest, 0, row, confidence=0.8, scale=2.0, ax=own, **target)
    assert ax is own
    line = solid_line(ax)
    at = line.get_xdata()
    assert len(at) == 20
    assert (at[0], at[-1]) == (data.X[:, 0].min(), data.X[:, 0].max())
    moved = np.repeat(row, 20, axis=0)
    moved[:, 0] = at
    divisor = 1.0 if target.get("target") == "survival" else 2.0
    effects = forest.effect(moved, **target) / divisor
    ends = forest.effect_interval(moved, confidence=0.8, **target) / divisor
    assert np.isfinite(ends).all()
    np.testing.assert_allclose(line.get_ydata(), effects, rtol=1e-12)
    np.testing.assert_allclose(band_of(ax), ends, rtol=1e-9)
    assert len(np.unique(effects)) > 3
    (rug,) = [each for each in ax.lines if each.get_marker() == "|"]
    np.testing.assert_allclose(rug.get_xdata(), np.sort(data.X[:, 0]), atol=1e-9)
    (mark,) = [each for each in ax.lines if each.get_linestyle() == ":"]
    assert mark.get_xdata() == [row[0, 0], row[0, 0]]
    assert ax.get_title(loc="left") == "80 % intervals, other features as in the row"
    (zero,) = [each for each in ax.lines if each.get_linestyle() == "--"]
    assert zero.get_ydata() == [0, 0]


def test_without_a_row_other_features_are_at_their_medians(forest, data):
    ax = plot_effect(forest, 1, horizon=1.0)
    line = solid_line(ax)
    middle = np.quantile(data.X, 0.5, axis=0, method="nearest")
    moved = np.tile(middle, (len(line.get_xdata()), 1))
    moved[:, 1] = line.get_xdata()
    np.testing.assert_allclose(line.get_ydata(), forest.effect(moved, horizon=1.0), rtol=1e-12)
    assert ax.get_title(loc="left") == "95 % intervals, other features at their medians"
    assert not [each for each in ax.lines if each.get_linestyle() == ":"]


def test_a_category_has_a_point_with_a_bar_for_each_level(named, frame):
    ax = plot_effect(named, "level", horizon=1.0)
    levels = [text.get_text() for text in ax.get_xticklabels()]
    assert levels == ["high", "low", "mid"]
    moved = pd.DataFrame(
        {
            HOSTILE: np.quantile(frame[HOSTILE], 0.5, method="nearest"),
            "level": levels,
            "rest": np.quantile(frame["rest"], 0.5, method="nearest"),
        }
    )
    (points,) = [each for each in ax.lines if each.get_marker() == "o"]
    np.testing.assert_allclose(points.get_ydata(), named.effect(moved, horizon=1.0), rtol=1e-12)
    (bars,) = ax.collections
    ends = [[low, high] for (_, low), (_, high) in bars.get_segments()]
    np.testing.assert_allclose(ends, named.effect_interval(moved, horizon=1.0), rtol=1e-9)


def test_the_other_features_of_a_category_are_at_its_most_frequent_level(named, frame):
    assert frame["level"].value_counts().idxmax() == "low"  # not the first of the alphabet
    line = solid_line(plot_effect(named, HOSTILE, horizon=1.0))
    moved = pd.DataFrame({HOSTILE: line.get_xdata(), "level": "low"})
    moved["rest"] = np.quantile(frame["rest"], 0.5, method="nearest")
    np.testing.assert_allclose(line.get_ydata(), named.effect(moved, horizon=1.0), rtol=1e-12)


def test_names_of_features_and_arms_are_drawn_as_they_stand(named, frame):
    ax = plot_effect(named, HOSTILE, horizon=1.0)
    assert drawn(ax.xaxis.label) == HOSTILE
    assert drawn(ax.yaxis.label) == f"mean time up to 1\nnew $drug$ {MINUS} old"
    legend = plot_arms(named, frame[:1]).get_legend().get_texts()
    assert [drawn(text) for text in legend[:2]] == ["old", "new $drug$"]
    ax = plot_subgroups(named, {HOSTILE: frame["level"] == "low"}, horizon=1.0)
    assert drawn(ax.get_yticklabels()[1]) == f"{HOSTILE} ({(frame['level'] == 'low').sum()})"
    ax = plot_overlap(named)
    assert drawn(ax.xaxis.label) == "probability of new $drug$, as given"


@pytest.mark.parametrize(
    ("target", "scale", "label"),
    [
        ({"horizon": 1.0}, 1.0, "mean time up to 1"),
        ({"horizon": 1.0}, 0.5, "mean time up to 2"),
        ({"target": "survival", "times": 1.0}, 0.5, "survival probability at 2"),
        ({"target": "quantile"}, 1.0, "median time"),
        ({"target": "quantile", "quantiles": 0.25}, 1.0, "0.25 quantile of time"),
    ],
)
def test_the_axis_says_what_is_compared(forest, target, scale, label):
    ax = plot_effect(forest, 0, scale=scale, **target)
    assert ax.get_ylabel() == f"{label}\ntreatment {MINUS} control"


def test_effects_on_hidden_quantiles_are_gaps(short, data):
    rows = [
        (row, solid_line(plot_effect(short, 0, data.X[[row]], target="quantile")).get_xdata())
        for row in range(3)
    ]
    for row, at in rows:
        moved = np.repeat(data.X[[row]], len(at), axis=0)
        moved[:, 0] = at
        effects = short.effect(moved, "quantile")
        ax = plot_effect(short, 0, data.X[[row]], target="quantile")
        expected = np.where(np.isfinite(effects), effects, np.nan)
        np.testing.assert_allclose(solid_line(ax).get_ydata(), expected, rtol=1e-12)
        assert np.isnan(expected).any()
        assert ax.get_title(loc="left").endswith("as in the row; gaps not identified")


def test_a_horizon_beyond_the_data_is_drawn_as_nothing_with_a_warning(short):
    with pytest.warns(BeyondFollowUpWarning, match="Ask for an earlier time"):
        ax = plot_effect(short, 0, horizon=100.0)
    assert np.isnan(solid_line(ax).get_ydata()).all()
    with pytest.warns(BeyondFollowUpWarning, match="Ask for an earlier time"):
        ax = plot_subgroups(short, {"first": np.arange(100)}, horizon=100.0)
    (numbers,) = ax.child_axes
    assert [text.get_text() for text in numbers.get_yticklabels()[1:]] == ["not identified"] * 2


def test_a_picture_has_one_target_and_one_row(forest, data):
    for draw in (
        lambda **more: plot_effect(forest, 0, **more),
        lambda **more: plot_toc(forest, **more),
        lambda **more: plot_subgroups(forest, {"first": np.arange(100)}, **more),
    ):
        with pytest.raises(ValueError, match=r"times must be one number here; found \[1.0, 2.0\]"):
            draw(target="survival", times=[1.0, 2.0])
        with pytest.raises(TypeError, match="horizons is no argument; a target has target"):
            draw(horizons=3)
    with pytest.raises(ValueError, match="X must have one row here; found 2"):
        plot_arms(forest, data.X[:2])
    with pytest.raises(ValueError, match="X must have one row here; found 3"):
        plot_effect(forest, 0, data.X[:3])
    with pytest.raises(ValueError, match="feature='age': the forest was fitted without feature"):
        plot_effect(forest, "age")


def test_the_curves_of_both_arms_are_drawn_with_their_difference(short, data):
    _, own = plt.subplots()
    X = data.X[3:4]
    ax = plot_arms(short, X, scale=2.0, ax=own)
    assert ax is own
    steps = [line for line in ax.lines if line.get_drawstyle() == "steps-post"]
    arms = [short.predict_survival(X, arm=arm)[0] for arm in (0, 1)]
    for line, curve, color in zip(steps, arms, COLORS, strict=False):
        assert line.get_color() == color
        np.testing.assert_array_equal(line.get_xdata(), np.r_[0, curve.times, curve.end] / 2)
        np.testing.assert_array_equal(line.get_ydata(), np.r_[1, curve.values, curve.values[-1]])
        assert curve.values[-1] > 0
    ends = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    expected = [(curve.end / 2, curve.values[-1]) for curve in arms]
    assert [tuple(line.get_xydata()[0]) for line in ends] == expected
    # Area between the curves where either is higher, by a fine sum of rectangles.
    end = min(curve.end for curve in arms)
    times = np.unique(np.r_[0.0, arms[0].times, arms[1].times, end])
    times = times[times <= end]
    control, treated = (curve(times[:-1]) for curve in arms)
    areas = [area_of(band) for band in ax.collections[:2]]
    higher = [np.maximum(control - treated, 0), np.maximum(treated - control, 0)]
    np.testing.assert_allclose(areas, [each @ np.diff(times) / 2 for each in higher], atol=1e-12)
    assert max(areas) > 0.01
    for band in ax.collections[:2]:
        assert band.get_paths()[0].get_extents().x1 <= end / 2
    assert ax.get_xlabel() == "time"
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["control", "treatment", "not identified"]


def test_the_medians_of_both_arms_are_marked_if_they_are_known(forest, short, data):
    def marks(ax):
        return [line.get_xydata()[0].tolist() for line in ax.lines if len(line.get_xdata()) == 1]

    X = data.X[3:4]
    medians = [[forest.predict(X, arm=arm)[0] / 2, 0.5] for arm in (0, 1)]
    assert np.isfinite(medians).all()
    assert [mark for mark in marks(plot_arms(forest, X, scale=2.0)) if mark[1] == 0.5] == medians
    X = data.X[[np.isinf(short.predict(data.X, arm=1)).argmax()]]
    ax = plot_arms(short, X)
    assert sum(mark[1] == 0.5 for mark in marks(ax)) == np.isfinite(short.predict(X, arm=0)).sum()
    assert ax.get_xlim()[1] < 2 * short.model_.effect.rows.time.max()


@pytest.mark.parametrize("has_priorities", [False, True])
def test_the_toc_curve_is_drawn_with_its_mean(forest, data, has_priorities):
    priorities = data.X[:, 0] if has_priorities else None
    _, own = plt.subplots()
    ax = plot_toc(forest, priorities, confidence=0.8, scale=2.0, ax=own, horizon=1.0)
    assert ax is own
    shares = np.linspace(0.1, 1, 19)
    curve = forest.toc(priorities, shares=shares, horizon=1.0)
    line = solid_line(ax)
    np.testing.assert_allclose(line.get_xdata(), shares)
    np.testing.assert_allclose(line.get_ydata(), curve.estimate / 2, atol=1e-12)
    z = 1.2815515655446004
    low, high = (curve.estimate + side * z * curve.standard_error for side in (-1, 1))
    np.testing.assert_allclose(band_of(ax), np.transpose([low, high]) / 2, atol=1e-9)
    average = forest.rate(priorities, horizon=1.0, confidence=0.8)
    title = ax.get_title(loc="left")
    assert title.startswith("AUTOC ")
    assert title.endswith("80 % intervals")
    shown = read_numbers(title)[:3]
    expected = np.array([average.estimate, average.lower, average.upper]) / 2
    np.testing.assert_allclose(shown, expected, atol=average.standard_error / 2 / 10)
    first = "priority" if has_priorities else "estimated effect"
    assert ax.get_xlabel() == f"share of the rows, highest {first} first"


def test_the_toc_curve_warns_once_of_priorities_that_know_the_outcomes(forest, data):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        plot_toc(forest, forest.effect(data.X, horizon=1.0), horizon=1.0)
    assert len(said) == 1
    assert "not independent of the outcomes" in str(said[0].message)


def test_overlap_has_the_propensities_of_the_treated_above_and_of_controls_below():
    data = make_treatment("confounded", n=300, random_state=0)
    forest = grow_treatment_forest(data.X, data.y, data.treatment)
    _, own = plt.subplots()
    ax = plot_overlap(forest, ax=own)
    assert ax is own
    overlap = forest.overlap()
    for color, treated, side in ((COLORS[1], True, 1), (COLORS[0], False, -1)):
        bars = [bar for bar in ax.patches if bar.get_facecolor()[:3] == mpl.colors.to_rgb(color)]
        assert len(bars) == 40
        for bar in bars:
            low, high = bar.get_x(), bar.get_x() + bar.get_width()
            inside = overlap.propensity[overlap.treated == treated]
            count = ((inside >= low) & (inside < high)).sum()
            assert bar.get_height() == side * count
        assert sum(abs(bar.get_height()) for bar in bars) == (overlap.treated == treated).sum()
    limits = [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == ":"]
    assert limits == [0.05, 0.95]
    assert [text.get_text() for text in ax.texts] == [
        f"treatment, {data.treatment.sum():.0f} rows",
        f"control, {(1 - data.treatment).sum():.0f} rows",
    ]
    assert ax.get_title(loc="left") == f"{overlap.n_outside} of 300 rows below 0.05 or above 0.95"
    assert ax.get_xlabel() == "probability of treatment, estimated out of bag"
    ax.figure.canvas.draw()
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == labels[::-1]
    assert all(label.isdigit() for label in labels)


def test_a_feature_with_one_value_has_no_picture(data):
    X = data.X[:, :3].copy()
    X[:, 1] = 4.0
    few = grow_treatment_forest(X, data.y, data.treatment, propensity=0.5)
    with pytest.raises(ValueError, match="feature=1 has the same value in all training rows"):
        plot_effect(few, 1)
    line = solid_line(plot_effect(few, 0, horizon=1.0))
    middle = np.quantile(X, 0.5, axis=0, method="nearest")
    moved = np.tile(middle, (len(line.get_xdata()), 1))
    moved[:, 0] = line.get_xdata()
    np.testing.assert_allclose(line.get_ydata(), few.effect(moved, horizon=1.0), rtol=1e-12)


def test_texts_stay_inside_of_a_small_figure(named, frame):
    low = frame["level"] == "low"
    draw = {
        "effect": lambda ax: plot_effect(named, HOSTILE, frame[:1], horizon=1.0, ax=ax),
        "arms": lambda ax: plot_arms(named, frame[:1], ax=ax),
        "toc": lambda ax: plot_toc(named, target="survival", times=1.0, ax=ax),
        "overlap": lambda ax: plot_overlap(named, ax=ax),
        "subgroups": lambda ax: plot_subgroups(
            named, {f"group number {i}": low for i in range(8)}, horizon=1.0, ax=ax
        ),
    }
    for name, one in draw.items():
        figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
        one(ax)
        figure.canvas.draw()
        used = figure.get_tightbbox(figure.canvas.get_renderer())  # in inches, texts included
        assert used.x0 > -0.01, name
        assert used.y0 > -0.01, name
        assert used.x1 < 6.01, name
        assert used.y1 < 4.01, name
        assert ax.get_position().width * 6 > 2, name


@pytest.mark.parametrize("scale", [0, -1.0, np.inf, np.nan, "year", True])
def test_no_plot_takes_a_scale_that_is_not_positive(scale, forest, data):
    causes = make_competing_risks(60, random_state=0)
    other = CensoredQuantileForest(n_estimators=5, random_state=0).fit(causes.X, causes.y)
    plots = [
        lambda: plot_incidence(other, causes.X[:1], scale=scale),
        lambda: plot_survival(other, causes.X[:2], scale=scale),
        lambda: plot_survival(other, causes.X[:2], scale=scale, at_risk=True),
        lambda: plot_censoring(other, causes.X[:2], scale=scale),
        lambda: plot_quantile_fan(other, causes.X[:9], 0, scale=scale),
        lambda: plot_partial_dependence(other, causes.X[:9], 0, scale=scale),
        lambda: plot_arms(forest, data.X[:1], scale=scale),
        lambda: plot_effect(forest, 0, data.X[:1], scale=scale),
        lambda: plot_subgroups(forest, {"some": data.X[:, 0] > 0.5}, scale=scale),
        lambda: plot_toc(forest, data.X[:, 0], scale=scale),
    ]
    for plot in plots:
        with pytest.raises(ValueError, match=r"scale=.* must be a positive, finite number"):
            plot()
    assert not plt.get_fignums()
