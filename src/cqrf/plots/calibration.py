"""Plot of the calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cqrf.plots.style import COLORS, LEGEND, make_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cqrf.calibration import Calibration

PALE = 0.35  # of what is not judged, relative to what is
LINE: Any = {"color": COLORS[0], "lw": 1.8}


def plot_calibration(calibration: Calibration, *, ax: Axes | None = None) -> Axes:
    """Observed share of subjects with the event before each predicted quantile, with its band.

    Curve and band are pale at levels that too few rows can judge; a dotted line marks where these
    begin, and the legend gives the level.

    Parameters
    ----------
    calibration : Calibration
        What :func:`cqrf.calibration.assess_calibration` returns.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        What was drawn on.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.calibration import assess_calibration
    >>> from cqrf.datasets import make_aft
    >>> from cqrf.plots import plot_calibration
    >>> X, y, _, _ = make_aft(200, 3, random_state=0)
    >>> forest = CensoredQuantileForest(n_estimators=100, random_state=0).fit(X, y)
    >>> plot_calibration(assess_calibration(forest)).get_xlabel()
    'predicted level'
    """
    ax = make_axes(ax)
    levels, observed, is_known = calibration.levels, calibration.observed, calibration.is_known
    ax.plot([0, 1], [0, 1], color="0.6", lw=1, ls="--", label="perfect")
    for is_shown, strength in ((is_known, 1.0), (_with_neighbours(~is_known), PALE)):
        band: Any = {"color": COLORS[0], "alpha": 0.22 * strength, "lw": 0}
        ax.fill_between(levels, calibration.lower, calibration.upper, where=is_shown, **band)
    ax.plot(levels, observed, alpha=PALE, **LINE)
    judged = np.where(is_known, observed, np.nan)
    ax.plot(levels, judged, label=_describe_test(calibration), **LINE)
    for level, side in ((calibration.known_to, "above"), (calibration.known_from, "below")):
        if 0 < level < 1:
            text = f"too few rows to judge {side} {level:.2f}"
            ax.axvline(level, color="0.4", lw=1, ls=":", label=text)
    share = "share of subjects with the event before"
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="predicted level", ylabel=share)
    ax.set_aspect("equal")
    ax.legend(loc="lower right", fontsize="small", **LEGEND)
    return ax


def _describe_test(calibration: Calibration) -> str:
    if np.isnan(calibration.distance):
        return "observed: too few rows to judge any level"
    return f"observed: distance {calibration.distance:.3f}, p {calibration.p_value:.2f}"


def _with_neighbours(chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The chosen levels and those next to them, so that the area has no gap."""
    padded = np.pad(chosen, 1)
    return np.asarray(padded[:-2] | padded[1:-1] | padded[2:])
