"""Plots of cumulative incidence, for forests with several causes.

The curves of all causes and the probability of no event add up to 1: for one row they are drawn as
areas on top of each other. The incidence of one cause is drawn as a curve for each of some rows.
What is drawn ends where the curves are known no further, at the last neighbour of the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cqrf._input.causes import Cause, name_cause
from cqrf._survival.incidence import IncidenceCurves
from cqrf._survival.step_curves import StepCurves
from cqrf.plots.direct_labels import HEIGHT, label_width
from cqrf.plots.style import COLORS, HATCHES, TEXT_COLORS, make_axes, show_text, time_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cqrf.estimator import CensoredQuantileForest

MAX_CURVES = 6  # rows whose curves of one cause are drawn
GAP = 0.02  # between the end of the areas and their labels, as a share of the axis of time
PAST = 0.03  # share of the axis past the last training time, so that a step there is seen
HEADROOM = 1.15  # of the axis of one cause, above its largest incidence
NO_EVENT = "no event"
NO_EVENT_COLOR, NO_EVENT_TEXT = "#E8EBEE", "0.3"


def plot_incidence(
    forest: CensoredQuantileForest,
    X: Any,
    *,
    cause: Cause | None = None,
    labels: Sequence[str] | None = None,
    scale: float = 1.0,
    ax: Axes | None = None,
) -> Axes:
    """Cumulative incidence of all causes for one row, or of one cause for up to six rows.

    Without ``cause`` the areas of all causes and of no event add up to 1 at every time. Areas and
    curves end at the end of follow-up of the row's neighbours; beyond it nothing is drawn.

    Parameters
    ----------
    forest : CensoredQuantileForest
        A forest fitted to several causes.
    X : array-like or frame of shape (n, n_features)
        One row; with ``cause`` up to six.
    cause : optional
        One of ``causes_``.
    labels : sequence of str, optional
        Names of the causes, in the order of ``causes_``; with ``cause``, names of the rows.
    scale : float
        Times are divided by it.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        What was drawn on.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_competing_risks
    >>> from cqrf.plots import plot_incidence
    >>> X, y, *_ = make_competing_risks(200, random_state=0)
    >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
    >>> plot_incidence(forest, X[:1]).get_ylabel()
    'probability'
    """
    curves = forest.predict_incidence(X)
    assert isinstance(curves, IncidenceCurves)
    ax, time = make_axes(ax, scale=scale), forest.model_.rows.time
    last = float(time[-1] + PAST * (time[-1] - min(0.0, time[0])))
    if cause is None:
        names = [name_cause(each) for each in curves.causes]
        _draw_areas(ax, curves, _read_labels(labels, names, "causes"), last, scale)
        ylabel = "probability"
    else:
        n = len(curves)
        if n > MAX_CURVES:
            raise ValueError(
                f"plot_incidence draws a cause for up to {MAX_CURVES} rows; X has {n}."
            )
        rows = _read_labels(labels, [f"row {i}" for i in range(n)], "rows of X")
        _draw_curves(ax, curves[cause], rows, last, scale)
        ylabel = f"cumulative incidence of {show_text(name_cause(cause))}"
    ax.set(xlabel=time_label(forest, scale), ylabel=ylabel)
    return ax


def _read_labels(labels: Sequence[str] | None, default: Sequence[Any], of: str) -> list[str]:
    if labels is None:
        return [show_text(each) for each in default]
    if len(labels) != len(default):
        raise ValueError(f"labels has {len(labels)} texts for {len(default)} {of}.")
    return [show_text(each) for each in labels]


def _draw_areas(
    ax: Axes, curves: IncidenceCurves, labels: list[str], last: float, scale: float
) -> None:
    """Areas of the causes, the first at the bottom, and of no event on top."""
    if len(curves) != 1:
        raise ValueError(
            f"plot_incidence draws all causes of one row; X has {len(curves)}. Give one row, or a "
            "cause to compare rows."
        )
    survival = curves.survival
    end = _last_time(survival, 0, last)
    times = np.concatenate([[min(0.0, end)], survival.times, [end]]) / scale
    heights = np.array([np.pad(each.values, (1, 1), mode="edge") for each in curves.by_cause])
    heights[:, 0] = 0.0
    tops = np.vstack([np.zeros(len(times)), np.cumsum(heights, axis=0), np.ones(len(times))])
    colors = [COLORS[k % len(COLORS)] for k in range(len(labels))] + [NO_EVENT_COLOR]
    for k, color in enumerate(colors):
        ax.fill_between(
            times,
            tops[k],
            tops[k + 1],
            step="post",
            facecolor=color,
            edgecolor="white",
            lw=0.6,
            hatch=HATCHES[k // len(COLORS) - 1] if len(COLORS) <= k < len(labels) else None,
        )
    middles = (tops[:-1, -1] + tops[1:, -1]) / 2
    texts = [TEXT_COLORS[k % len(TEXT_COLORS)] for k in range(len(labels))] + [NO_EVENT_TEXT]
    names = [
        f"{name} {share:.0%}"
        for name, share in zip([*labels, NO_EVENT], np.diff(tops[:, -1], axis=0), strict=True)
    ]
    _finish(ax, times[0], [times[-1]] * len(names), middles.tolist(), names, texts, 1.0)


def _draw_curves(
    ax: Axes, curves: StepCurves, labels: list[str], last_time: float, scale: float
) -> None:
    """A curve for each row, with an open circle where it is known no further."""
    ends = [_last_time(curves, i, last_time) / scale for i in range(len(curves))]
    last = [float(curve.values[-1]) if len(curve.values) else 0.0 for curve in curves]
    start = min(0.0, *ends)
    for i, curve in enumerate(curves):
        color = COLORS[i % len(COLORS)]
        times = np.concatenate([[start], curve.times / scale, [ends[i]]])
        heights = np.concatenate([[0.0], curve.values, [last[i]]])
        ax.step(times, heights, where="post", color=color, lw=1.8, label=labels[i])
        if np.isfinite(curves.end[i]):
            ax.plot(ends[i], last[i], "o", mfc="white", mec=color, ms=7, zorder=4)
    top = min(1.0, HEADROOM * max([*last, 0.02]))
    colors = [TEXT_COLORS[i % len(TEXT_COLORS)] for i in range(len(labels))]
    _finish(ax, start, ends, last, labels, colors, top)


def _last_time(curves: StepCurves, i: int, last: float) -> float:
    """Time at which curve i ends: the last known one, or past the last training time if all are."""
    end = float(curves.end[i])
    if np.isneginf(end):  # a row without weights
        return 0.0
    return end if np.isfinite(end) else last


def _spread(heights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Heights of labels between 0 and 1, HEIGHT apart, each as near to its own as may be."""
    order = np.argsort(-heights, kind="stable")
    placed = np.empty(len(heights))
    above = 1 + HEIGHT / 2
    for i in order:
        placed[i] = above = min(heights[i], above - HEIGHT)
    below = -HEIGHT / 2
    for i in order[::-1]:
        placed[i] = below = max(placed[i], below + HEIGHT)
    return placed


def _finish(
    ax: Axes,
    start: float,
    ends: Sequence[float],
    heights: Sequence[float],
    labels: Sequence[str],
    colors: Sequence[str],
    top: float,
) -> None:
    """Limits of the axes, and a label on the right of each end, apart from each other."""
    last = max(ends) if max(ends) > start else start + 1.0
    margin = label_width(ax, labels)
    edge = start + (last - start) / (1 - margin)
    ax.set(xlim=(start, edge), ylim=(0, top))
    places = _spread(np.array(heights) / top) * top
    at = last + GAP * (edge - start)
    for label, color, time, height, y in zip(labels, colors, ends, heights, places, strict=True):
        line: Any = {"arrowstyle": "-", "color": color, "lw": 0.8, "shrinkA": 0, "shrinkB": 4}
        line["relpos"] = (0.0, 0.5)
        is_beside = time == last and abs(y - height) < top * HEIGHT / 4
        ax.annotate(
            label,
            (time, height),
            xytext=(at, y),
            ha="left",
            va="center",
            color=color,
            fontsize="small",
            zorder=5,
            arrowprops=None if is_beside else line,
        )
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
