"""Plots of survival curves, of the event time and of the censoring time.

Up to six rows have a curve each. It ends in an open circle where it is known no further: at the
last neighbour of its row (the first, under left censoring). A hatched area shows where it may
continue. Of more rows, the median and two bands of all curves are drawn, as far as these are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._input.risk_sets import TOLERANCE
from cqrf._input.target import oriented
from cqrf._model.fitted import Model
from cqrf._survival.step_curve import StepCurve
from cqrf._survival.step_curves import StepCurves
from cqrf.plots.at_risk import (
    count_rows_at_risk,
    height_at_risk,
    sum_neighbors_at_risk,
    width_at_risk,
    write_at_risk,
)
from cqrf.plots.direct_labels import character_share, place_labels, write_at_ends, write_beside
from cqrf.plots.intervals import shade_undetermined
from cqrf.plots.style import (
    COLORS,
    HATCHES,
    LEGEND,
    MARKERS,
    TEXT_COLORS,
    WIDTH,
    make_axes,
    show_text,
    survival_label,
    time_label,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cqrf.estimator import CensoredQuantileForest

HEIGHT = 4.2  # inches, without numbers at risk
MARGIN = 0.08  # share of the axis of time beyond the training times
MAX_CURVES = 6  # of more rows, quantiles of all curves are drawn
BANDS = ((0.1, 0.9, 0.15, "80 % of the rows"), (0.25, 0.75, 0.25, "half of the rows"))
N_LABEL_TIMES = 150  # at which places for the labels of curves are tried
# Above the axes, where it hides no curve.
LEGEND_ABOVE: Any = {
    "loc": "lower left",
    "bbox_to_anchor": (0, 1),
    "frameon": False,
    "fontsize": "small",
}
MAX_COLUMNS, LEGEND_KEY = 4, 7  # of the legend; characters as wide as a key and its margins
MAX_STEPS = 500  # of the quantiles of all curves


def plot_survival(
    forest: CensoredQuantileForest,
    X: Any,
    *,
    quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    labels: Sequence[str] | None = None,
    scale: float = 1.0,
    at_risk: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Survival curves of the rows of X.

    Up to six rows have a curve each, with their quantiles marked. A curve ends in an open circle
    at the end of follow-up of the row's neighbours, and may continue anywhere in the hatched area.
    Quantiles in that area are not identifiable and not marked. Of more rows, the median of all
    curves is drawn, and bands that hold half and 80 % of them. For a forest of intervals, what they
    leave open is shaded: all curves in the shaded area fit equally well.

    Parameters
    ----------
    forest : CensoredQuantileForest
        A fitted forest.
    X : array-like or frame of shape (n, n_features)
        Rows.
    quantiles : sequence of float
        Levels to mark.
    labels : sequence of str, optional
        Names of up to six rows. Default: row 0, row 1, ...
    scale : float
        Times are divided by it.
    at_risk : bool
        Whether to write numbers at risk below the axis: for each curve the effective number of the
        row's neighbours, 1 / sum of w^2 over their weights w, times the share of the weight at
        risk; for bands the number of training rows at risk.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        What was drawn on.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> from cqrf.plots import plot_survival
    >>> X, y, _, _ = make_aft(200, 3, random_state=0)
    >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
    >>> plot_survival(forest, X[:2]).get_xlabel()
    'time'
    """
    curves = _predict_curves(forest, X, labels, of_censoring=False)
    n_lines = len(curves.labels) or 1
    if at_risk:
        width = WIDTH + width_at_risk(curves.labels)
        ax = make_axes(ax, HEIGHT + height_at_risk(n_lines), width, scale)
    else:
        ax = make_axes(ax, HEIGHT, scale=scale)
    draw_curves(ax, forest.model_, curves, scale)
    texts = curves.labels
    if texts:
        shade_undetermined(ax, forest, X, scale)
        _mark_quantiles(ax, forest, X, quantiles, scale)
    ax.set(xlabel=time_label(forest, scale), ylabel=survival_label(forest))
    if at_risk and texts:
        times, counts = sum_neighbors_at_risk(ax, forest, X, scale)
        write_at_risk(ax, "effective neighbours at risk", times, counts, texts, TEXT_COLORS)
    elif at_risk:
        times, counts = count_rows_at_risk(ax, forest, scale)
        write_at_risk(ax, "training rows at risk", times, counts)
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
    continue anywhere in the hatched area. Of more than six rows, the median of all curves is
    drawn, and bands that hold half and 80 % of them. Times are divided by ``scale``.

    Parameters
    ----------
    forest : CensoredQuantileForest
        A fitted forest.
    X : array-like or frame of shape (n, n_features)
        Rows.
    ax : Axes, optional
        Where to draw.
    labels : sequence of str, optional
        Names of up to six rows.
    scale : float
        Times are divided by it.

    Returns
    -------
    Axes
        What was drawn on.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> from cqrf.plots import plot_censoring
    >>> X, y, _, _ = make_aft(200, 3, random_state=0)
    >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
    >>> plot_censoring(forest, X[:2]).get_ylabel()
    'probability of not being censored'
    """
    curves = _predict_curves(forest, X, labels, of_censoring=True)
    ax = make_axes(ax, scale=scale)
    draw_curves(ax, forest.model_, curves, scale, has_markers=True)
    ax.set(xlabel=time_label(forest, scale), ylabel="probability of not being censored")
    return ax


class LabelledCurves(NamedTuple):
    """Curves of S, or of G, and their labels; none if they are drawn as bands."""

    steps: StepCurves
    labels: list[str]


def _predict_curves(
    forest: CensoredQuantileForest, X: Any, labels: Sequence[str] | None, *, of_censoring: bool
) -> LabelledCurves:
    steps = forest.predict_censoring(X) if of_censoring else forest.predict_survival(X)
    assert isinstance(steps, StepCurves)
    n = len(steps)
    if labels is not None and len(labels) != n:
        raise ValueError(f"labels has {len(labels)} texts for {n} rows of X.")
    if n > MAX_CURVES:
        if labels is not None:
            raise ValueError(
                f"labels name the curves of up to {MAX_CURVES} rows; X has {n}, drawn as bands."
            )
        return LabelledCurves(steps, [])
    return LabelledCurves(
        steps, [show_text(f"row {i}" if labels is None else labels[i]) for i in range(n)]
    )


class _TimeAxis(NamedTuple):
    """Range of the time axis, divided by ``scale``; ``edge`` ends it on the open side."""

    first: float
    last: float
    edge: float
    from_left: bool
    scale: float

    @staticmethod
    def of(model: Model, scale: float) -> _TimeAxis:
        """Range of the training times, from 0 under right censoring, and a margin."""
        from_left = model.censoring == "left"
        first, last = np.sort(oriented(model.rows.time[[0, -1]], model.censoring)) / scale
        if not from_left:
            first = min(0.0, first)
        return _TimeAxis(first, last, 0.0, from_left, scale).with_margin(MARGIN)

    def with_margin(self, share: float) -> _TimeAxis:
        """The same range with a margin, a share of the whole axis."""
        margin = share / (1 - share) * (self.last - self.first) or 1.0
        return self._replace(edge=self.first - margin if self.from_left else self.last + margin)

    def ends_of(self, curves: StepCurves) -> NDArray[np.float64]:
        """Last time (first, ``from_left``) at which each curve is known; infinite if at all."""
        ends: NDArray[np.float64] = curves.start if self.from_left else curves.end
        return ends


def draw_curves(
    ax: Axes, model: Model, curves: LabelledCurves, scale: float, *, has_markers: bool = False
) -> None:
    """Draw curves, or bands, and set the limits of the axes.

    The axis of time has the training times of the model, divided by ``scale``.
    """
    axis = _TimeAxis.of(model, scale)
    if curves.labels:
        axis = _draw_curves(ax, axis, curves, has_markers=has_markers)
    else:
        _draw_bands(ax, axis, curves.steps)
    start = axis.last if axis.from_left else axis.first
    ax.set(xlim=sorted([axis.edge, start]), ylim=(0, 1.03))


def _draw_curves(
    ax: Axes, axis: _TimeAxis, curves: LabelledCurves, *, has_markers: bool
) -> _TimeAxis:
    """A curve for each row, its label at the curve and in the legend; hatching beyond its end.

    Returns the axis, with a wider margin if labels stand in it.
    """
    from matplotlib.patches import Patch

    steps, labels, ends = curves.steps, curves.labels, axis.ends_of(curves.steps)
    times = np.linspace(axis.first, axis.last, N_LABEL_TIMES)
    places, margin = place_labels(ax, labels, steps(times * axis.scale), MARGIN)
    at_ends = [i for i, place in enumerate(places) if place is None and len(labels) > 1]
    axis = axis.with_margin(margin)
    corners = [
        # On survival curves markers show quantiles.
        _draw_curve(
            ax, axis, i, curve, ends[i], label=labels[i], markevery=0.15 * has_markers or []
        )
        for i, curve in enumerate(steps)
    ]
    handles = ax.get_legend_handles_labels()[0]
    if np.isfinite(ends).any():
        handles.append(Patch(fc="none", ec="0.5", lw=0, hatch="////", label="not identified"))
    n_columns = _count_columns([str(each.get_label()) for each in handles], character_share(ax))
    ax.legend(handles=handles, ncols=n_columns, **LEGEND_ABOVE)
    for i, place in enumerate(places):
        if place is not None:
            write_beside(ax, labels[i], TEXT_COLORS[i], times, place)
    write_at_ends(
        ax,
        [labels[i] for i in at_ends],
        [TEXT_COLORS[i] for i in at_ends],
        [corners[i] for i in at_ends],
        axis.edge,
    )
    return axis


def _count_columns(texts: Sequence[str], character: float) -> int:
    """Columns of a legend that is not wider than the axis; a character takes this share of it."""
    lengths = [len(text) + LEGEND_KEY for text in texts]
    for n_columns in range(min(MAX_COLUMNS, len(texts)), 1, -1):
        widths = [column.max() for column in np.array_split(lengths, n_columns)]
        if sum(widths) * character <= 1:
            return n_columns
    return 1


def _draw_curve(
    ax: Axes, axis: _TimeAxis, i: int, curve: StepCurve, end: float, **style: Any
) -> tuple[float, float]:
    """Steps of the i-th curve up to its end; returns the point where it ends."""
    color, end = COLORS[i % len(COLORS)], end / axis.scale
    heights = np.append(curve.initial, curve.values)
    is_open = np.isfinite(end)
    if is_open:
        height, goal = (heights[0], 1.0) if axis.from_left else (heights[-1], 0.0)
        area = ax.fill_between([axis.edge, end], height, goal, fc="none", ec=color, lw=0, alpha=0.5)
        area.set_hatch(HATCHES[i % len(HATCHES)])
        ax.plot(end, height, "o", mfc="white", mec=color, ms=7, zorder=4)
    if axis.from_left:
        ends = (end if is_open else axis.edge, axis.last)
    else:
        ends = (axis.first, end if is_open else max(axis.first, *curve.times[-1:] / axis.scale))
    ax.step(
        np.concatenate([ends[:1], curve.times / axis.scale, ends[1:]]),
        np.append(heights, heights[-1]),
        where="post",
        color=color,
        lw=1.8,
        marker=MARKERS[i % len(MARKERS)],
        **style,
    )
    return (ends[0], heights[0]) if axis.from_left else (ends[1], heights[-1])


def _draw_bands(ax: Axes, axis: _TimeAxis, curves: StepCurves) -> None:
    """Median of all curves and bands around it, where they do not depend on what is not known.

    An open circle marks where the median is known no further.
    """
    ends = axis.ends_of(curves)
    reach = np.array([axis.edge if axis.from_left else axis.first, axis.last]) * axis.scale
    times = np.unique(np.concatenate([curves.times, ends[np.isfinite(ends)], reach]))
    times = times[np.linspace(0, len(times) - 1, min(len(times), MAX_STEPS)).round().astype(int)]
    known = curves(times)
    lowest = highest = curves(times, beyond="extend")
    if axis.from_left:
        highest = np.where(np.isnan(known), 1.0, known)
    else:
        lowest = np.where(np.isnan(known), 0.0, known)
    at = times / axis.scale

    def quantile(level: float) -> NDArray[np.float64]:
        low, high = (np.quantile(values, level, axis=0) for values in (lowest, highest))
        return np.where(high - low <= TOLERANCE, low, np.nan)

    for low, high, alpha, label in BANDS:
        ax.fill_between(
            at,
            quantile(low),
            quantile(high),
            step="post",
            color=COLORS[0],
            alpha=alpha,
            lw=0,
            label=label,
        )
    median = quantile(0.5)
    is_known = ~np.isnan(median)
    at, median = at[is_known], median[is_known]
    ax.step(
        at, median, where="post", color=COLORS[0], lw=1.8, label=f"median of {len(curves)} rows"
    )
    end, goal = (0, 1.0) if axis.from_left else (-1, 0.0)
    if len(median) > 0 and abs(median[end] - goal) > TOLERANCE:
        mark: Any = {"mfc": "white", "mec": COLORS[0], "ms": 7, "ls": "none", "zorder": 4}
        ax.plot(at[end], median[end], "o", label="known no further", **mark)
    ax.legend(**LEGEND)


def _mark_quantiles(
    ax: Axes, forest: CensoredQuantileForest, X: Any, quantiles: Sequence[float], scale: float
) -> None:
    """Mark the quantiles of each row on its curve, and their levels on the right."""
    times = np.asarray(forest.predict(X, quantiles, unidentified="nan")) / scale
    for i, row in enumerate(times):
        color, marker = COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)]
        ax.plot(row, 1 - np.asarray(quantiles), marker, color=color, zorder=3)
    for level in quantiles:
        ax.axhline(1 - level, color="0.85", lw=0.8, zorder=0)
    levels = ax.secondary_yaxis("right", functions=(_complement, _complement))
    levels.set_yticks(quantiles, labels=[f"{level:g}" for level in quantiles])
    levels.set_ylabel("marked quantiles")


def _complement(share: Any) -> Any:
    return 1 - share
