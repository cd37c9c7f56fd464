"""Where interval censoring leaves a survival curve open: shaded on plots of curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cqrf._survival.step_curve import StepCurve
from cqrf.plots.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cqrf.estimator import CensoredQuantileForest

ALPHA = 0.3


def shade_undetermined(ax: Axes, forest: CensoredQuantileForest, X: Any, scale: float) -> None:
    """Shade the area between the smallest and the largest curve of each row, if they differ."""
    if forest.model_.lower is None:
        return
    lower, upper = forest.predict_survival_bounds(X)
    first = ax.get_xlim()[0] * scale
    for i, (low, high) in enumerate(zip(lower, upper, strict=True)):
        times = np.unique(np.concatenate([low.times, high.times]).clip(first))
        smallest, largest = (_extend(curve, times) for curve in (low, high))
        color = COLORS[i % len(COLORS)]
        ax.fill_between(
            times / scale, smallest, largest, step="post", color=color, alpha=ALPHA, lw=0
        )


def _extend(curve: StepCurve, times: Any) -> Any:
    return curve(times, beyond="extend")
