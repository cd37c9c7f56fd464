"""Plots of a forest's predictions. Each function draws on ``ax`` and returns it.

Survival curves are drawn up to the end of follow-up: the last step of S(.|x) or G(.|x). A curve
that has not fallen to 0 there ends in an open circle. A hatched area shows where it may continue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from cqrf._input.features import feature_names, read_features
from cqrf._input.risk_sets import TOLERANCE
from cqrf._input.target import oriented, read_target
from cqrf._runtime.arguments import is_count, read_count
from cqrf._survival.curves import StepCurve, StepCurves
from cqrf.inspection import find_feature, partial_dependence
from cqrf.metrics.metric import SCORE_QUANTILES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cqrf.calibration import Calibration
    from cqrf.estimator import CensoredQuantileForest

# Okabe and Ito's colours, which are distinct with any colour vision; markers and line styles differ
# as well.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":")
HATCHES = ("////", "\\\\\\\\", "....")
LEGEND: Any = {"facecolor": "white", "edgecolor": "none", "framealpha": 0.8}
LONGEST_NAME = 40


def plot_survival(
    forest: CensoredQuantileForest,
    X: Any,
    *,
    quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    labels: Sequence[str] | None = None,
    scale: float = 1.0,
    ax: Axes | None = None,
) -> Axes:
    """Survival curves of the rows of X, with their quantiles marked.

    A curve ends in an open circle at the end of follow-up of the row's neighbours, and may
    continue anywhere in the hatched area. Quantiles in that area are not identifiable and not
    marked. Times are divided by ``scale``.
    """
    ax = _axes(ax)
    times = forest.predict(X, quantiles, unidentified="nan") / scale
    _draw_curves(ax, forest, X, labels, scale, of_censoring=False)
    for i, row in enumerate(times):
        color, marker = COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)]
        ax.plot(row, 1 - np.asarray(quantiles), marker, color=color, zorder=3)
    for level in quantiles:
        ax.axhline(1 - level, color="0.85", lw=0.8, zorder=0)
    levels = ax.secondary_yaxis("right", functions=(_complement, _complement))
    levels.set_yticks(quantiles, labels=[f"{level:g}" for level in quantiles])
    levels.set_ylabel("marked quantiles")
    ax.set_ylabel("survival probability")
    return ax


def plot_censoring(
    forest: CensoredQuantileForest,
    X: Any,
    ax: Axes | None = None,
    *,
    labels: Sequence[str] | None = None,
    scale: float = 1.0,
) -> Axes:
    """Survival curves of the censoring time at the rows of X.

    A curve ends in an open circle at the end of follow-up of the row's neighbours, and may
    continue anywhere in the hatched area. Times are divided by ``scale``.
    """
    ax = _axes(ax)
    _draw_curves(ax, forest, X, labels, scale, of_censoring=True)
    ax.set_ylabel("probability of not being censored")
    return ax


def plot_quantile_fan(
    forest: CensoredQuantileForest,
    X: Any,
    feature: str | int,
    *,
    quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    ax: Axes | None = None,
) -> Axes:
    """Predicted quantiles of the rows of X against one numeric feature."""
    check_is_fitted(forest)
    column = find_feature(forest, feature)
    if forest.model_.columns.levels[column] is not None:
        raise ValueError(
            f"feature={feature!r} is a category, which has no order: use plot_partial_dependence."
        )
    along = read_features(forest, X, forest.model_.columns)[0][:, column]
    order = np.argsort(along, kind="stable")
    values = forest.predict(X, list(quantiles), unidentified="nan")[order]
    ax = _axes(ax)
    for k, level in enumerate(quantiles):
        color = COLORS[k % len(COLORS)]
        line, label = LINES[k % len(LINES)], f"{level:g} quantile"
        ax.plot(along[order], values[:, k], line, color=color, lw=1.8, label=label)
    ax.set(xlabel=_name(forest, column), ylabel="time")
    ax.legend(**LEGEND)
    return ax


def plot_calibration(calibration: Calibration, *, ax: Axes | None = None) -> Axes:
    """Observed share of events against the predicted level, with its confidence band."""
    ax = _axes(ax)
    levels = calibration.levels
    ax.plot([0, 1], [0, 1], color="0.6", lw=1, ls="--", label="perfect")
    ax.fill_between(levels, calibration.lower, calibration.upper, color=COLORS[0], alpha=0.2, lw=0)
    label = f"observed: distance {calibration.distance:.3f}, p {calibration.p_value:.2f}"
    ax.plot(levels, calibration.observed, color=COLORS[0], lw=1.8, label=label)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="predicted level", ylabel="share of events below it")
    ax.set_aspect("equal")
    ax.legend(loc="lower right", **LEGEND)
    return ax


def plot_importance(
    forest: CensoredQuantileForest, ax: Axes | None = None, *, n_features: int = 20
) -> Axes:
    """Share of each feature in the gain of all splits, largest first; at most ``n_features``."""
    importances = forest.feature_importances_
    n_shown = min(read_count("n_features", n_features, 1), len(importances))
    shown = np.argsort(-importances, kind="stable")[:n_shown]
    ax = _axes(ax, height=max(2.0, 0.9 + 0.27 * n_shown))
    ax.barh(np.arange(n_shown), importances[shown], color=COLORS[0], height=0.7)
    ax.set_yticks(np.arange(n_shown), labels=[_name(forest, column) for column in shown])
    ax.set(ylim=(n_shown - 0.4, -0.6), xlim=(0, None))
    some = f", {n_shown} of {len(importances)} features" if n_shown < len(importances) else ""
    ax.set_xlabel(f"share of the gain of all splits{some}")
    return ax


def plot_partial_dependence(
    forest: CensoredQuantileForest,
    X: Any,
    feature: str | int,
    quantiles: float | Sequence[float] = SCORE_QUANTILES,
    ax: Axes | None = None,
    *,
    grid: ArrayLike | None = None,
    n_rows: int = 200,
    scale: float = 1.0,
) -> Axes:
    """Partial dependence of quantiles on one feature.

    See :func:`cqrf.inspection.partial_dependence`. Gaps are not identifiable because of
    censoring. Times are divided by ``scale``.
    """
    found = partial_dependence(forest, X, feature, quantiles, grid=grid, n_rows=n_rows)
    ax = _axes(ax)
    name = _name(forest, find_feature(forest, feature))
    at, is_category = found.grid, found.grid.dtype == object
    if is_category:
        at = _label_categories(ax, found.grid)
    elif at.dtype.kind == "m":
        at, name = at / np.timedelta64(1, "D"), f"{name} (days)"
    for k, level in enumerate(found.quantiles):
        times = found.values[:, k] / scale
        is_gap = np.isnan(times)
        note = ": not identified" if is_gap.all() else ", gaps not identified"
        ax.plot(
            at,
            times,
            ls="none" if is_category else LINES[k % len(LINES)],
            marker=MARKERS[k % len(MARKERS)],
            ms=8 if is_category else 4,
            color=COLORS[k % len(COLORS)],
            lw=1.8,
            label=f"{level:g} quantile{note if is_gap.any() else ''}",
        )
    ax.set(xlabel=name, ylabel="time", ylim=(min(0.0, ax.get_ylim()[0]), None))
    ax.legend(**LEGEND)
    return ax


def _label_categories(ax: Axes, labels: NDArray[Any]) -> NDArray[Any]:
    """Write the labels of a category below the axis, and return their positions."""
    at = np.arange(len(labels))
    is_long = max(map(len, labels)) * len(at) > 60
    turned: Any = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if is_long else {}
    ax.set_xticks(at, labels=[_literal(label) for label in labels], **turned)
    ax.set_xlim(-0.5, len(at) - 0.5)
    return at


def plot_node_sizes(
    forest: CensoredQuantileForest,
    X: Any,
    y: Any,
    sizes: Sequence[int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Out-of-bag skill against the leaf size, beside the skill of the given forest.

    For each size a copy of the forest is fitted with it as ``min_samples_leaf``, and
    ``min_samples_split`` just above twice that. Default: up to 6 sizes from 1 to a tenth of the
    rows.
    """
    chosen = _read_sizes(sizes, y)
    start = clone(forest).set_params(verbose=0)
    if not is_count(start.random_state):
        start.set_params(random_state=0)  # the same for all: copies differ by their size only

    def skill(**settings: int) -> float:
        return clone(start).set_params(**settings).fit(X, y).score_oob()

    skills = [skill(min_samples_leaf=size, min_samples_split=2 * size + 1) for size in chosen]
    ax = _axes(ax)
    ax.plot(chosen, skills, "o-", color=COLORS[0], lw=1.8, label="copies with this leaf size")
    mark: Any = {"mfc": "none", "mec": COLORS[1], "mew": 2, "ms": 11}
    ax.plot(start.min_samples_leaf, skill(), "D", label="the given forest", **mark)
    ax.set_xscale("log")
    ax.set_xticks(chosen, labels=[str(size) for size in chosen])
    ax.set_xticks([], minor=True)
    ax.set(xlabel="min_samples_leaf", ylabel="out-of-bag skill (higher is better)")
    ax.legend(**LEGEND)
    return ax


def _read_sizes(sizes: Sequence[int] | None, y: Any) -> list[int]:
    if sizes is None:
        largest = max(1, len(read_target(y).time) // 10)
        return np.unique(np.geomspace(1, largest, 6).round().astype(int)).tolist()
    chosen = sorted({read_count("sizes", size, 1) for size in sizes})
    if not chosen:
        raise ValueError("sizes must have at least one node size.")
    return chosen


class _TimeAxis(NamedTuple):
    """Range of the time axis, divided by ``scale``; ``edge`` ends it on the open side."""

    first: float
    last: float
    edge: float
    from_left: bool
    scale: float

    @staticmethod
    def of(forest: CensoredQuantileForest, scale: float) -> _TimeAxis:
        """Range of the training times, from 0 under right censoring, and a margin."""
        model = forest.model_
        from_left = model.censoring == "left"
        first, last = np.sort(oriented(model.rows.time[[0, -1]], model.censoring)) / scale
        if not from_left:
            first = min(0.0, first)
        margin = 0.08 * (last - first) or 1.0
        return _TimeAxis(
            first, last, first - margin if from_left else last + margin, from_left, scale
        )


def _draw_curves(
    ax: Axes,
    forest: CensoredQuantileForest,
    X: Any,
    labels: Sequence[str] | None,
    scale: float,
    *,
    of_censoring: bool,
) -> None:
    """Step curves of S, or of G, up to the end of follow-up; beyond it, hatching."""
    curves, others = forest.predict_survival(X), forest.predict_censoring(X)
    assert isinstance(curves, StepCurves)
    assert isinstance(others, StepCurves)
    if of_censoring:
        curves, others = others, curves
    if labels is not None and len(labels) != len(curves):
        raise ValueError(f"labels has {len(labels)} texts for {len(curves)} rows of X.")
    axis = _TimeAxis.of(forest, scale)
    is_open = [
        _draw_curve(
            ax,
            axis,
            i,
            curve,
            other.times,
            label=None if labels is None else _literal(labels[i]),
            markevery=0.15 if of_censoring else [],  # on survival curves markers show quantiles
        )
        for i, (curve, other) in enumerate(zip(curves, others, strict=True))
    ]
    start = axis.last if axis.from_left else axis.first
    ax.set(xlim=sorted([axis.edge, start]), ylim=(0, 1.03), xlabel="time")
    _add_curve_legend(ax, any(is_open))


def _draw_curve(
    ax: Axes,
    axis: _TimeAxis,
    i: int,
    curve: StepCurve,
    other_times: NDArray[np.float64],
    **style: Any,
) -> bool:
    """Draw the i-th curve; return whether it is open at the end of follow-up.

    ``other_times``: steps of G beside S, or of S beside G; follow-up lasts to the last of both.
    """
    color = COLORS[i % len(COLORS)]
    steps = np.concatenate([curve.times, other_times]) / axis.scale
    heights = np.concatenate([[curve.initial], curve.values])
    if axis.from_left:
        end, height, goal = steps.min(initial=axis.last), heights[0], 1.0
    else:
        end, height, goal = steps.max(initial=axis.first), heights[-1], 0.0
    is_open = bool(abs(height - goal) > TOLERANCE)
    if is_open:
        beyond = [axis.edge, end]
        area = ax.fill_between(beyond, height, goal, fc="none", ec=color, lw=0, alpha=0.5)
        area.set_hatch(HATCHES[i % len(HATCHES)])
        ax.plot(end, height, "o", mfc="white", mec=color, ms=7, zorder=4)
    ends = (axis.first, end)
    if axis.from_left:
        ends = (end if is_open else axis.edge, axis.last)
    ax.step(
        np.concatenate([ends[:1], curve.times / axis.scale, ends[1:]]),
        np.append(heights, heights[-1]),
        where="post",
        color=color,
        lw=1.8,
        marker=MARKERS[i % len(MARKERS)],
        **style,
    )
    return is_open


def _add_curve_legend(ax: Axes, any_open: bool) -> None:
    from matplotlib.patches import Patch

    handles = ax.get_legend_handles_labels()[0]
    if any_open:
        handles.append(Patch(fc="none", ec="0.5", lw=0, hatch="////", label="not identified"))
    if handles:
        ax.legend(handles=handles, **LEGEND)


def _axes(ax: Axes | None, height: float = 4.2) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(7, height), layout="constrained")[1]


def _complement(share: Any) -> Any:
    return 1 - share


def _name(forest: CensoredQuantileForest, column: int) -> str:
    return _literal(feature_names(forest)[column])


def _literal(text: Any) -> str:
    """Text with "$" escaped, so that it is not read as a formula; if long, without its middle."""
    shown = str(text)
    if len(shown) > LONGEST_NAME:
        half = (LONGEST_NAME - 1) // 2
        shown = f"{shown[:half]}\N{HORIZONTAL ELLIPSIS}{shown[-half:]}"
    return shown.replace("$", r"\$")
