"""Labels at the curves themselves, each where it touches no other curve and no other label.

A survival curve falls: it never passes to the right of a point above it, nor to the left of a point
below it. A label stands at one of these two sides, if no other curve passes there either. A label
without such a place stands in the margin, with a line to the end of its curve.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHARACTER = 0.068  # width of a character of a small text, in inches
WIDEST = 0.4  # of a margin with labels, as a share of the axis of time
EDGE = 0.08  # between a label and the edge, as a share of the margin
HEIGHT = 0.07  # height of a label, in probabilities


class Place(NamedTuple):
    """A place for a label: its anchor on the curve, and its ends in time.

    ``distance`` is that of the anchor to the nearest other curve.
    """

    anchor: int
    height: float
    is_above: bool
    ends: tuple[int, int]
    distance: float

    def touches(self, other: Place) -> bool:
        """Whether the labels at both places would overlap."""
        is_beside = self.ends[1] < other.ends[0] or other.ends[1] < self.ends[0]
        low, other_low = (place.height - HEIGHT * (not place.is_above) for place in (self, other))
        return not is_beside and abs(low - other_low) < HEIGHT


def character_share(ax: Axes) -> float:
    """Width of a character of a small text, as a share of the axis of time."""
    return float(CHARACTER * ax.figure.dpi / ax.bbox.width)


def find_places(
    ax: Axes, labels: Sequence[str], values: NDArray[np.float64], margin: float
) -> list[Place | None]:
    """A place beside the curve for each label; None if there is no room.

    ``values`` : survival at evenly spaced times, shape (n_curves, n_times); NaN where not known.
    ``margin`` : share of the axis that is beyond these times.
    """
    character = character_share(ax) / (1 - margin)
    places: list[Place | None] = []
    for i, label in enumerate(labels):
        width = int(np.ceil(character * (len(label) + 1) * values.shape[1]))
        free = [
            place
            for place in _find_free(values, i, width)
            if not any(place.touches(other) for other in places if other is not None)
        ]
        places.append(max(free, key=lambda place: place.distance) if free else None)
    return places


def write_beside(
    ax: Axes, label: str, color: str, times: NDArray[np.float64], place: Place
) -> None:
    """Write a label at its place beside the curve."""
    ax.annotate(
        label,
        (times[place.anchor], place.height),
        xytext=(4, 2) if place.is_above else (-4, -2),
        textcoords="offset points",
        ha="left" if place.is_above else "right",
        va="bottom" if place.is_above else "top",
        color=color,
        fontsize="small",
        zorder=5,
    )


def label_width(ax: Axes, labels: Sequence[str]) -> float:
    """Width of a margin that the labels need, as a share of the axis of time."""
    return min(WIDEST, character_share(ax) * (max(map(len, labels)) + 4))


def place_labels(
    ax: Axes, labels: list[str], values: NDArray[np.float64], least: float
) -> tuple[list[Place | None], float]:
    """Places beside the curves, and the margin that labels without such a place need, or ``least``.

    A wider margin leaves less space beside the curves, so that more labels may need it.
    """
    if len(labels) == 1:
        return [None], least
    margin = 0.0
    needed = least
    while needed > margin:
        margin = needed
        places = find_places(ax, labels, values, margin)
        at_ends = [label for label, place in zip(labels, places, strict=True) if place is None]
        needed = label_width(ax, at_ends) if at_ends else least
    return places, margin


def write_at_ends(
    ax: Axes,
    labels: Sequence[str],
    colors: Sequence[str],
    ends: Sequence[tuple[float, float]],
    edge: float,
) -> None:
    """Write labels at the edge of the axis, apart from each other, with lines to the curves."""
    heights = spread_out(np.array([height for _, height in ends]))
    inside = edge + EDGE * (ends[0][0] - edge) if ends else edge
    for label, color, (time, height), y in zip(labels, colors, ends, heights, strict=True):
        is_right = edge > time
        line: Any = {"arrowstyle": "-", "color": color, "lw": 0.8, "shrinkA": 0, "shrinkB": 4}
        line["relpos"] = (0.0, 0.5) if is_right else (1.0, 0.5)
        ax.annotate(
            label,
            (time, height),
            xytext=(inside, y),
            ha="right" if is_right else "left",
            va="center",
            color=color,
            fontsize="small",
            zorder=5,
            bbox={"fc": "white", "ec": "none", "alpha": 0.85, "pad": 1},
            arrowprops=line,
        )


def spread_out(heights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Heights of labels between 0 and 1: in the order of the curves, and HEIGHT apart."""
    order = np.argsort(heights, kind="stable")
    room = HEIGHT * np.arange(len(heights))
    lowest = HEIGHT / 2 + room
    spread = np.maximum.accumulate(np.maximum(heights[order], HEIGHT / 2) - room) + room
    above = max(0.0, spread.max(initial=0.0) - (1 - HEIGHT / 2))
    placed = np.empty(len(heights))
    placed[order] = np.maximum(spread - above, lowest)
    return placed


def _find_free(values: NDArray[np.float64], i: int, width: int) -> Iterator[Place]:
    """Places for the label of curve i that no other curve passes."""
    others = np.delete(values, i, axis=0)
    distances = np.nanmin(np.abs(others - values[i]), axis=0, initial=1.0)
    for anchor in np.flatnonzero(~np.isnan(values[i]) & (distances >= HEIGHT)).tolist():
        height = float(values[i, anchor])
        for is_above in (True, False):
            ends = (anchor, anchor + width) if is_above else (anchor - width, anchor)
            if ends[0] < 0 or ends[1] >= values.shape[1]:
                continue
            if _find_room(others, height, is_above, ends) >= HEIGHT:
                yield Place(anchor, height, is_above, ends, float(distances[anchor]))


def _find_room(
    others: NDArray[np.float64], height: float, is_above: bool, ends: tuple[int, int]
) -> float:
    """Free height above, or below, a point of a curve along the width of its label."""
    passing = others[:, ends[0] : ends[1] + 1]
    passing = passing[~np.isnan(passing)]
    if is_above:
        return float(passing[passing >= height].min(initial=1.0)) - height
    return height - float(passing[passing <= height].max(initial=0.0))
