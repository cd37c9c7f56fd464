"""Plots: pictures of what a forest predicts. Each draws on ``ax`` and returns it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from cqrf._input.features import read_features
from cqrf._input.risk_sets import TOLERANCE
from cqrf._input.target import oriented, read_target
from cqrf._runtime.arguments import is_count, read_count
from cqrf._survival.curves import StepCurves
from cqrf.inspection import find_feature

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cqrf.calibration import Calibration
    from cqrf.estimator import CensoredQuantileForest

# Okabe and Ito's colours, told apart with any colour vision; markers and lines repeat the message.
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

    A curve ends in an open circle where nobody like the row was followed any longer. It goes on
    somewhere in the hatched area, which begins there; quantiles in it are not marked. Times are
    divided by ``scale``.
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
    ax.set_ylabel("probability that the event is still to come")
    return ax


def plot_censoring(
    forest: CensoredQuantileForest,
    X: Any,
    ax: Axes | None = None,
    *,
    labels: Sequence[str] | None = None,
    scale: float = 1.0,
) -> Axes:
    """Survival curves of the censoring time at the rows of X: how long one can see.

    A curve ends in an open circle, and goes on somewhere in the hatched area, where nobody like
    the row was followed any longer. Times are divided by ``scale``.
    """
    ax = _axes(ax)
    _draw_curves(ax, forest, X, labels, scale, of_censoring=True)
    ax.set_ylabel("probability that censoring comes later")
    return ax


def plot_quantile_fan(
    forest: CensoredQuantileForest,
    X: Any,
    feature: str | int,
    *,
    quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    ax: Axes | None = None,
) -> Axes:
    """Predicted quantiles of the rows of X against one of its columns of numbers."""
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
    """Observed against predicted levels, with the confidence band; the diagonal is perfect."""
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
    quantiles: float | Sequence[float] = (0.25, 0.5, 0.75),
    ax: Axes | None = None,
    *,
    grid: ArrayLike | None = None,
    n_rows: int = 200,
    scale: float = 1.0,
) -> Axes:
    """Quantiles if every row of X had the same value of one feature, against that value.

    As :func:`cqrf.inspection.partial_dependence` defines them; gaps are what censoring hides.
    Times are divided by ``scale``.
    """
    from cqrf.inspection import find_feature, partial_dependence

    found = partial_dependence(forest, X, feature, quantiles, grid=grid, n_rows=n_rows)
    ax = _axes(ax)
    name = _name(forest, find_feature(forest, feature))
    at, is_category = found.grid, found.grid.dtype == object
    if is_category:
        at = np.arange(len(found.grid))
        long = max(map(len, found.grid)) * len(at) > 60
        turned: Any = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if long else {}
        ax.set_xticks(at, labels=[_literal(label) for label in found.grid], **turned)
        ax.set_xlim(-0.5, len(at) - 0.5)
    elif at.dtype.kind == "m":
        at, name = at / np.timedelta64(1, "D"), f"{name} (days)"
    for k, level in enumerate(found.quantiles):
        times = found.values[:, k] / scale
        hidden = np.isnan(times)
        note = ": not identified" if hidden.all() else ", gaps not identified"
        ax.plot(
            at,
            times,
            ls="none" if is_category else LINES[k % len(LINES)],
            marker=MARKERS[k % len(MARKERS)],
            ms=8 if is_category else 4,
            color=COLORS[k % len(COLORS)],
            lw=1.8,
            label=f"{level:g} quantile{note if hidden.any() else ''}",
        )
    ax.set(xlabel=name, ylabel="time", ylim=(min(0.0, ax.get_ylim()[0]), None))
    ax.legend(**LEGEND)
    return ax


def plot_node_sizes(
    forest: CensoredQuantileForest,
    X: Any,
    y: Any,
    sizes: Sequence[int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Out-of-bag skill of forests with leaves of different sizes, and of the forest as it is.

    For each size a copy of the forest is fitted with it as ``min_samples_leaf``, and
    ``min_samples_split`` just above twice that. Default: up to 6 sizes from 1 to a tenth of the
    rows.
    """
    from sklearn.base import clone

    if sizes is None:
        largest = max(1, len(read_target(y).time) // 10)
        chosen = np.unique(np.geomspace(1, largest, 6).round().astype(int)).tolist()
    else:
        chosen = sorted({read_count("sizes", size, 1) for size in sizes})
    if not chosen:
        raise ValueError("sizes must have at least one node size.")
    own = clone(forest).set_params(verbose=0)
    if not is_count(own.random_state):
        own.set_params(random_state=0)  # one seed for all: they differ by size, not by luck

    def skill(**settings: int) -> float:
        return clone(own).set_params(**settings).fit(X, y).score_oob()

    skills = [skill(min_samples_leaf=size, min_samples_split=2 * size + 1) for size in chosen]
    ax = _axes(ax)
    ax.plot(chosen, skills, "o-", color=COLORS[0], lw=1.8, label="copies with this size")
    ax.plot(
        own.min_samples_leaf,
        skill(),
        "D",
        mfc="none",
        mec=COLORS[1],
        mew=2,
        ms=11,
        label="the forest as it is",
    )
    ax.set_xscale("log")
    ax.set_xticks(chosen, labels=[str(size) for size in chosen])
    ax.set_xticks([], minor=True)
    ax.set(xlabel="fewest rows in a leaf", ylabel="out-of-bag skill (higher is better)")
    ax.legend(**LEGEND)
    return ax


def _draw_curves(
    ax: Axes,
    forest: CensoredQuantileForest,
    X: Any,
    labels: Sequence[str] | None,
    scale: float,
    *,
    of_censoring: bool,
) -> None:
    """Step curves up to where sight ends, the last step of either curve; beyond it, hatching."""
    from matplotlib.patches import Patch

    curves, others = forest.predict_survival(X), forest.predict_censoring(X)
    assert isinstance(curves, StepCurves)
    assert isinstance(others, StepCurves)
    if of_censoring:
        curves, others = others, curves
    if labels is not None and len(labels) != len(curves):
        raise ValueError(f"labels has {len(labels)} texts for {len(curves)} rows of X.")
    from_left = forest.model_.censoring == "left"
    seen = np.sort(oriented(forest.model_.rows.time[[0, -1]], forest.model_.censoring)) / scale
    first, last = (seen[0], seen[1]) if from_left else (min(0.0, seen[0]), seen[1])
    margin = 0.08 * (last - first) or 1.0
    edge = first - margin if from_left else last + margin
    any_hidden = False
    for i, (curve, other) in enumerate(zip(curves, others, strict=True)):
        color, marker = COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)]
        steps = np.concatenate([curve.times, other.times]) / scale
        heights = np.concatenate([[curve.initial], curve.values])
        if from_left:
            sight, height, goal = steps.min(initial=last), heights[0], 1.0
        else:
            sight, height, goal = steps.max(initial=first), heights[-1], 0.0
        is_hidden = abs(height - goal) > TOLERANCE
        if is_hidden:
            area = ax.fill_between(
                [edge, sight], height, goal, fc="none", ec=color, lw=0, alpha=0.5
            )
            area.set_hatch(HATCHES[i % len(HATCHES)])
            ax.plot(sight, height, "o", mfc="white", mec=color, ms=7, zorder=4)
            any_hidden = True
        ends = (sight if is_hidden else edge, last) if from_left else (first, sight)
        ax.step(
            np.concatenate([ends[:1], curve.times / scale, ends[1:]]),
            np.append(heights, heights[-1]),
            where="post",
            color=color,
            lw=1.8,
            marker=marker,
            markevery=0.15 if of_censoring else [],  # those of survival are its quantiles
            label=None if labels is None else _literal(labels[i]),
        )
    ax.set(xlim=sorted([edge, last if from_left else first]), ylim=(0, 1.03), xlabel="time")
    handles = ax.get_legend_handles_labels()[0]
    if any_hidden:
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
    names = getattr(forest, "feature_names_in_", None)
    return f"feature {column}" if names is None else _literal(names[column])


def _literal(text: Any) -> str:
    """Text that is drawn as it stands, no formula; if very long, without its middle."""
    shown = str(text)
    if len(shown) > LONGEST_NAME:
        half = (LONGEST_NAME - 1) // 2
        shown = f"{shown[:half]}\N{HORIZONTAL ELLIPSIS}{shown[-half:]}"
    return shown.replace("$", r"\$")
