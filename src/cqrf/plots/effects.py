"""Plots of effects of a treatment: along a feature, of one subject, by priority, and overlap.

The control is drawn in the first colour and the treatment in the second. An effect is that of the
treatment less that of the control. Arguments ``target``, ``horizon``, ``times`` and ``quantiles``
are those of :meth:`~cqrf.effects.CensoredTreatmentForest.effect`, with one time or one level.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from cqrf._effects.follow_up import follow
from cqrf._effects.predict import effects_and_errors
from cqrf._effects.targets import Quantiles, Target
from cqrf._effects.treatment import HIGH, LOW
from cqrf._input.features import read_features
from cqrf._model.bin_values import decode_column
from cqrf._model.fitted import Model
from cqrf._model.queries import Queries, encode_all
from cqrf._survival.little_bags import confidence_width
from cqrf._survival.step_curves import StepCurves
from cqrf.inspection.dependence import choose_codes, show_codes
from cqrf.inspection.forests import find_feature
from cqrf.plots.effect_labels import (
    NO_EFFECT,
    arm_names,
    count_decimals,
    effect_label,
    read_single_target,
    time_divisor,
    write_interval,
    write_level,
)
from cqrf.plots.features import FeatureAxis, in_days
from cqrf.plots.style import (
    COLORS,
    MARKERS,
    TEXT_COLORS,
    make_axes,
    show_name,
    survival_label,
    time_label,
)
from cqrf.plots.survival import LabelledCurves, draw_curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cqrf.effects import CensoredTreatmentForest

SHARES = np.arange(2, 21) / 20  # of the TOC curve, which is erratic below a tenth of the rows
PROPENSITY_BINS = np.linspace(0, 1, 41)  # the limits of overlap are edges
Floats = NDArray[np.float64]


def plot_effect(
    forest: CensoredTreatmentForest,
    feature: str | int,
    X: Any = None,
    *,
    confidence: float = 0.95,
    scale: float = 1.0,
    ax: Axes | None = None,
    **target: Any,
) -> Axes:
    """Effect along one feature, with its confidence intervals.

    All other features stay as they are in one row, so that the intervals are those of the forest's
    ``effect_interval``, each at its own point; an average over rows has no such interval. Marks
    below the curve are the values of the training rows: where they are few, it rests on few.

    Parameters
    ----------
    forest : CensoredTreatmentForest
        A fitted forest.
    feature : str or int
        Name of a column, if the forest was fitted to a frame, or its index.
    X : array-like or frame of shape (1, n_features), optional
        The row; its value is marked. Default: medians, and the most frequent levels of categories.
    confidence : float, default=0.95
    scale : float
        Times are divided by it.
    ax : Axes, optional
        Where to draw.
    **target
        ``target`` (default ``"rmst"``), ``horizon``, ``times`` or ``quantiles``.

    Examples
    --------
    >>> from cqrf.datasets import make_treatment
    >>> from cqrf.effects import CensoredTreatmentForest
    >>> from cqrf.plots import plot_effect
    >>> data = make_treatment("null", n=200, random_state=0)
    >>> forest = CensoredTreatmentForest(n_estimators=40, random_state=0)
    >>> forest = forest.fit(data.X, data.y, treatment=data.treatment, propensity=0.5)
    >>> plot_effect(forest, 0, target="survival", times=1.0).get_xlabel()
    'feature 0'
    """
    wanted = read_single_target(forest, target)
    model, column = forest.model_.effect, find_feature(forest, feature)
    values = _known_values(model, feature, column)
    codes = choose_codes(model, feature, column, values)
    row = _typical_row(model) if X is None else _read_row(forest, X)
    effects, errors = _effects_along(forest, wanted, row, column, codes)
    width, unit = confidence_width(confidence), time_divisor(wanted, scale)
    ax = make_axes(ax, scale=scale)
    axis = FeatureAxis.of_values(show_name(forest, column), model, column, values)
    at = axis.positions(ax, show_codes(model, column, codes))
    _draw_band(ax, at, effects / unit, width * errors / unit, is_points=axis.is_points)
    axis.draw(ax)
    if X is not None and not axis.is_points and not np.isnan(row[column]):
        _mark_own_value(ax, in_days(show_codes(model, column, row[[column]]))[0])
    _write_title(ax, f"{write_level(confidence)} intervals, {_describe_others(X, effects)}")
    ax.set_ylabel(effect_label(forest, wanted, scale))
    return ax


def plot_arms(
    forest: CensoredTreatmentForest, X: Any, *, scale: float = 1.0, ax: Axes | None = None
) -> Axes:
    """Survival curves of one subject in both arms.

    The area between them has the colour of the arm with the higher curve, and a mark is a median. A
    curve ends in an open circle where it is known no further, and may continue anywhere in the
    hatched area. The shaded area is close to the effect on the restricted mean but not equal to it:
    the forest estimates the effect directly and not from the two curves.

    Parameters
    ----------
    forest : CensoredTreatmentForest
        A fitted forest.
    X : array-like or frame of shape (1, n_features)
        The subject.
    scale : float
        Times are divided by it.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> from cqrf.datasets import make_treatment
    >>> from cqrf.effects import CensoredTreatmentForest
    >>> from cqrf.plots import plot_arms
    >>> data = make_treatment("null", n=200, random_state=0)
    >>> forest = CensoredTreatmentForest(n_estimators=40, random_state=0)
    >>> forest = forest.fit(data.X, data.y, treatment=data.treatment, propensity=0.5)
    >>> plot_arms(forest, data.X[:1]).get_ylabel()
    'survival probability'
    """
    check_is_fitted(forest, "model_")
    _read_row(forest, X)
    curves = _predict_arms(forest, X)
    ax = make_axes(ax, scale=scale)
    _shade_difference(ax, curves, scale)
    draw_curves(ax, forest.model_.effect, LabelledCurves(curves, arm_names(forest)), scale)
    ax.axhline(0.5, color="0.85", lw=0.8, zorder=0)
    for arm in (0, 1):
        median = forest.predict(X, 0.5, arm=arm)[0] / scale
        if np.isfinite(median):
            ax.plot(median, 0.5, MARKERS[arm], color=COLORS[arm], zorder=3)
    ax.set(xlabel=time_label(forest, scale), ylabel=survival_label(forest))
    return ax


def plot_toc(
    forest: CensoredTreatmentForest,
    priorities: ArrayLike | None = None,
    *,
    confidence: float = 0.95,
    scale: float = 1.0,
    ax: Axes | None = None,
    **target: Any,
) -> Axes:
    """TOC curve: what is gained by treating those with the highest priority first.

    Its height at a share is the average effect of that share of the rows, those with the highest
    priority, less the average effect of all. AUTOC, the mean height, is in the title.

    Parameters
    ----------
    forest : CensoredTreatmentForest
        A fitted forest.
    priorities : array-like of shape (n,), optional
        As in :meth:`~cqrf.effects.CensoredTreatmentForest.rate`. Default: each half of the rows is
        ranked by the effects that a forest of the other half estimates.
    confidence : float, default=0.95
    scale : float
        Times are divided by it.
    ax : Axes, optional
        Where to draw.
    **target
        ``target`` (``"rmst"`` or ``"survival"``), ``horizon`` or ``times``.

    Examples
    --------
    >>> from cqrf.datasets import make_treatment
    >>> from cqrf.effects import CensoredTreatmentForest
    >>> from cqrf.plots import plot_toc
    >>> data = make_treatment("null", n=200, random_state=0)
    >>> forest = CensoredTreatmentForest(n_estimators=40, random_state=0)
    >>> forest = forest.fit(data.X, data.y, treatment=data.treatment, propensity=0.5)
    >>> plot_toc(forest, data.X[:, 0], target="survival", times=1.0).get_xlabel()
    'share of the rows, highest priority first'
    """
    wanted = read_single_target(forest, target)
    width, unit = confidence_width(confidence), time_divisor(wanted, scale)
    average = forest.rate(priorities, confidence=confidence, **target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rate has said it
        curve = forest.toc(priorities, shares=SHARES, **target)
    ax = make_axes(ax, scale=scale)
    widths = width * curve.standard_error / unit
    _draw_band(ax, curve.share, curve.estimate / unit, widths)
    numbers = np.array([average.estimate, average.lower, average.upper]) / unit
    shown = write_interval(numbers, count_decimals(np.array([average.standard_error]) / unit))
    _write_title(ax, f"AUTOC {shown}, {write_level(confidence)} intervals")
    by = "estimated effect" if priorities is None else "priority"
    ax.set(
        xlim=(0, 1),
        xlabel=f"share of the rows, highest {by} first",
        ylabel=f"{effect_label(forest, wanted, scale)}\nin this share, less that in all rows",
    )
    return ax


def plot_overlap(forest: CensoredTreatmentForest, *, ax: Axes | None = None) -> Axes:
    """Histograms of the propensities in both arms, the treatment above and the control below.

    Effects are compared where both arms have rows. Beyond the dotted lines, at .05 and .95, a row
    has hardly a counterpart in the other arm.

    Parameters
    ----------
    forest : CensoredTreatmentForest
        A fitted forest.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> from cqrf.datasets import make_treatment
    >>> from cqrf.effects import CensoredTreatmentForest
    >>> from cqrf.plots import plot_overlap
    >>> data = make_treatment("confounded", n=200, random_state=0)
    >>> forest = CensoredTreatmentForest(n_estimators=40, random_state=0)
    >>> forest = forest.fit(data.X, data.y, treatment=data.treatment)
    >>> plot_overlap(forest).get_xlabel()
    'probability of treatment, estimated out of bag'
    """
    overlap, names = forest.overlap(), arm_names(forest)
    ax = make_axes(ax, height=3.8)
    highest = 0
    for arm, side in ((1, 1), (0, -1)):
        inside = overlap.propensity[overlap.treated == bool(arm)]
        counts, edges = np.histogram(inside, PROPENSITY_BINS)
        highest = max(highest, counts.max())
        style: Any = {"color": COLORS[arm], "alpha": 0.75, "ec": "white", "lw": 0.5}
        ax.bar(edges[:-1], side * counts, np.diff(edges), align="edge", **style)
        ax.text(
            0.5,
            0.5 + side * 0.47,
            f"{names[arm]}, {len(inside)} rows",
            transform=ax.transAxes,
            ha="center",
            va="top" if side == 1 else "bottom",
            color=TEXT_COLORS[arm],
        )
    for limit in (LOW, HIGH):
        ax.axvline(limit, color="0.4", lw=1, ls=":")
    ax.axhline(0, color="0.3", lw=0.8)
    n_rows = len(overlap.propensity)
    _write_title(ax, f"{overlap.n_outside} of {n_rows} rows below {LOW:g} or above {HIGH:g}")
    source = "estimated out of bag" if forest.model_.known_propensity is None else "as given"
    ax.set(
        xlim=(0, 1),
        ylim=(-1.2 * highest, 1.2 * highest),
        xticks=[LOW, 0.25, 0.5, 0.75, HIGH],
        xlabel=f"probability of {names[1]}, {source}",
        ylabel="number of rows",
    )
    ax.yaxis.set_major_formatter(lambda count, _: f"{abs(count):g}")
    return ax


def _read_row(forest: CensoredTreatmentForest, X: Any) -> Floats:
    """The only row of X, as the feature matrix holds it."""
    matrix, _ = read_features(forest, X, forest.model_.effect.columns)
    if len(matrix) != 1:
        raise ValueError(f"X must have one row here; found {len(matrix)}.")
    return matrix[0].astype(np.float64)


def _known_values(model: Model, feature: str | int, column: int) -> Floats:
    """Values of the training rows in a column, which must not be all the same."""
    if len(np.unique(model.rows.codes[column])) < 2:
        raise ValueError(
            f"feature={feature!r} has the same value in all training rows: choose another one."
        )
    return decode_column(model, column)


def _typical_row(model: Model) -> Floats:
    """Median of each feature in the training rows; the most frequent level of a category."""
    row = np.full(len(model.edges), np.nan)
    for column, levels in enumerate(model.columns.levels):
        values = decode_column(model, column)
        known = values[~np.isnan(values)]
        if len(known) == 0:
            continue
        if levels is None:
            row[column] = np.quantile(known, 0.5, method="nearest")
        else:
            row[column] = np.bincount(known.astype(np.intp)).argmax()
    return row


def _effects_along(
    forest: CensoredTreatmentForest, wanted: Target, row: Floats, column: int, codes: Floats
) -> tuple[Floats, Floats]:
    """Effects and their errors at the row with each of these values in a column.

    NaN where they are not identified.
    """
    moved = np.tile(row, (len(codes), 1))
    moved[:, column] = codes
    queries = Queries(encode_all(forest.model_.effect, moved))
    if isinstance(wanted, Quantiles):
        effects, errors = effects_and_errors(forest.model_, wanted, queries, forest.n_jobs)
    else:
        known = follow(forest.model_, wanted, "nan", stacklevel=4)
        effects, errors = effects_and_errors(forest.model_, known.target, queries, forest.n_jobs)
        effects = known.blank(effects)
    return np.where(np.isfinite(effects), effects, np.nan)[:, 0], errors[:, 0]


def _describe_others(X: Any, effects: Floats) -> str:
    """Where the features that do not move are kept, and why there are gaps, if there are."""
    where = "other features at their medians" if X is None else "other features as in the row"
    return f"{where}; gaps not identified" if np.isnan(effects).any() else where


def _write_title(ax: Axes, text: str) -> None:
    ax.set_title(text, loc="left", fontsize="medium")


def _draw_band(
    ax: Axes, at: NDArray[Any], heights: Floats, widths: Floats, *, is_points: bool = False
) -> None:
    """A curve with its band, or points with bars, and a line at 0."""
    ax.axhline(0, **NO_EFFECT)
    if is_points:
        style: Any = {"color": COLORS[0], "ms": 7, "lw": 1.8, "capsize": 4}
        ax.errorbar(at, heights, yerr=widths, fmt="o", **style)
        return
    ax.plot(at, heights, color=COLORS[0], lw=1.8)
    ax.fill_between(at, heights - widths, heights + widths, color=COLORS[0], alpha=0.18, lw=0)


def _mark_own_value(ax: Axes, value: Any) -> None:
    """A line at the row's value of the feature, and what it is, above the axis."""
    ax.axvline(value, color="0.4", lw=1, ls=":")
    ax.annotate(
        "the row's value",
        (value, 1),
        xytext=(4, -4),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        va="top",
        color="0.3",
        fontsize="small",
    )


def _predict_arms(forest: CensoredTreatmentForest, X: Any) -> StepCurves:
    """The curves of one row in both arms, the control first."""
    arms: Any = [forest.predict_survival(X, arm=arm) for arm in (0, 1)]
    lengths = [len(curves.times) for curves in arms]
    return StepCurves(
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([curves.times for curves in arms]),
        np.concatenate([curves.values for curves in arms]),
        np.ones(2),
        end=np.concatenate([curves.end for curves in arms]),
    )


def _shade_difference(ax: Axes, curves: StepCurves, scale: float) -> None:
    """Fill the area between two curves, as far as both are known, in the colour of the higher."""
    times = np.unique(np.concatenate([[0.0], curves.times, curves.end[np.isfinite(curves.end)]]))
    values = curves(times)  # NaN, which is not filled, where a curve is not known
    for arm in (0, 1):
        higher, lower = values.max(axis=0), values[1 - arm]
        area = np.where(values[arm] > lower, higher, lower)
        style: Any = {"color": COLORS[arm], "alpha": 0.2, "lw": 0, "step": "post"}
        ax.fill_between(times / scale, lower, area, **style)
