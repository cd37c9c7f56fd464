"""What all plots share: colours, axes, texts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cqrf._input.features import feature_names
from cqrf._runtime.arguments import is_number
from cqrf._runtime.extras import need

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cqrf.effects import CensoredTreatmentForest
    from cqrf.estimator import CensoredQuantileForest

    AnyForest = CensoredQuantileForest | CensoredTreatmentForest

# Okabe and Ito's colours, which are distinct with any colour vision; markers and line styles differ
# as well.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# The same hues, dark enough for text on white (contrast of 4.5 or more).
TEXT_COLORS = ("#0072B2", "#B85000", "#007A59", "#A24E7D", "#8F6300", "#2176A8")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":")
HATCHES = ("////", "\\\\\\\\", "....")
LEGEND: Any = {"facecolor": "white", "edgecolor": "none", "framealpha": 0.8}
LONGEST_NAME = 40
WIDTH = 7.0  # of a figure, in inches


def make_axes(
    ax: Axes | None, height: float = 4.2, width: float = WIDTH, scale: float = 1.0
) -> Axes:
    """The given axes, or new ones of this size in inches; ``scale`` is what divides times."""
    if not is_number(scale) or not 0 < scale < math.inf:
        raise ValueError(
            f"scale={scale!r} must be a positive, finite number: times are divided by it."
        )
    if ax is not None:
        return ax
    need("a plot", "plots", "matplotlib")
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def start_at_zero(ax: Axes) -> None:
    """Let the axis of times start at 0, or below if some time is negative, with room above."""
    low, high = ax.get_ylim()
    low = min(0.0, low)
    ax.set_ylim(low, high + 0.05 * (high - low))


def show_name(forest: AnyForest, column: int) -> str:
    """Name of a column, as a text of Matplotlib."""
    return show_text(feature_names(forest)[column])


def show_text(text: Any) -> str:
    """Text with "$" escaped, so that it is not read as a formula; if long, without its middle."""
    shown = str(text)
    if len(shown) > LONGEST_NAME:
        half = (LONGEST_NAME - 1) // 2
        shown = f"{shown[:half]}\N{HORIZONTAL ELLIPSIS}{shown[-half:]}"
    return shown.replace("$", r"\$")


def time_label(forest: AnyForest, scale: float = 1.0) -> str:
    """Label of an axis of times, with their unit if the forest has one."""
    unit = getattr(forest, "time_unit", None)
    if unit is None:
        return "time"
    return f"time ({show_text(unit)})" if scale == 1 else f"time ({show_text(unit)} / {scale:g})"


def survival_label(forest: AnyForest) -> str:
    """Label of an axis of survival probabilities, with the event if the forest has its name."""
    event = getattr(forest, "event_name", None)
    return "survival probability" if event is None else f"probability without {show_text(event)}"
