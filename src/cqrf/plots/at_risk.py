"""Numbers at risk, written below the axis of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cqrf.plots.direct_labels import CHARACTER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cqrf.estimator import CensoredQuantileForest

TOP, LINE, LEFT = 38, 12, 20  # points: axis to first line, line to line, label to the axis
USUAL = 0.7  # inches on the left of the axis, for its own labels
POINTS_PER_INCH = 72


def count_rows_at_risk(
    ax: Axes, forest: CensoredQuantileForest, scale: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ticks of the axis, and the number of training rows at risk there, shape (1, n_ticks)."""
    ticks = _inner_ticks(ax)
    return ticks, _is_at_risk(forest, ticks * scale).sum(axis=0, keepdims=True).astype(np.float64)


def sum_neighbors_at_risk(
    ax: Axes, forest: CensoredQuantileForest, X: Any, scale: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ticks of the axis, and the effective number of neighbours at risk, shape (n, n_ticks).

    It is the effective number of all neighbours, 1 / (sum of w^2) over the weights w of a row,
    times the share of the weight that is at risk.
    """
    ticks, weights = _inner_ticks(ax), forest.weights(X)
    is_at_risk = _is_at_risk(forest, ticks * scale).astype(np.float64)
    n_effective = 1.0 / weights.multiply(weights).sum(axis=1)
    return ticks, n_effective[:, np.newaxis] * (weights @ is_at_risk)


def height_at_risk(n_lines: int) -> float:
    """Height of so many lines of counts, in inches."""
    return (TOP - LINE + LINE * (n_lines + 1)) / POINTS_PER_INCH


def width_at_risk(labels: Sequence[str]) -> float:
    """Width of the labels on the left that the figure has no room for, in inches."""
    return max(0.0, CHARACTER * max(map(len, labels), default=0) + LEFT / POINTS_PER_INCH - USUAL)


def write_at_risk(
    ax: Axes,
    title: str,
    times: NDArray[np.float64],
    counts: NDArray[np.float64],
    labels: Sequence[str] = ("",),
    colors: Sequence[str] = ("0.2",),
) -> None:
    """Write a line of counts for each curve below the axis, with its label on the left."""
    ax.set_xticks(times)
    style: Any = {"textcoords": "offset points", "fontsize": "small", "annotation_clip": False}
    ax.annotate(title, (0, 0), (0, -TOP), xycoords="axes fraction", va="top", **style)
    for i, line in enumerate(counts):
        below = -TOP - LINE * (i + 1)
        style["color"] = colors[i % len(colors)]
        place = (-LEFT, below)
        ax.annotate(
            labels[i], (0, 0), place, xycoords="axes fraction", ha="right", va="top", **style
        )
        for time, count in zip(times, line, strict=True):
            ax.annotate(
                f"{count:,.0f}",
                (time, 0),
                (0, below),
                xycoords=("data", "axes fraction"),
                ha="center",
                va="top",
                **style,
            )


def _inner_ticks(ax: Axes) -> NDArray[np.float64]:
    low, high = ax.get_xlim()
    ticks = np.asarray(ax.get_xticks(), dtype=np.float64)
    return ticks[(ticks >= low) & (ticks <= high)]


def _is_at_risk(forest: CensoredQuantileForest, times: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each training row is at risk just before each time, shape (n, n_times)."""
    target = forest.model_.training_target
    if forest.model_.censoring == "left":
        return np.asarray(target.time[:, np.newaxis] <= times)
    is_at_risk = target.time[:, np.newaxis] >= times
    if target.entry is not None:
        is_at_risk &= target.entry[:, np.newaxis] < times
    return np.asarray(is_at_risk)
