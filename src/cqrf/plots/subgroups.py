"""Forest plot: average effects of a treatment in subgroups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf.plots.effect_labels import (
    NO_EFFECT,
    count_decimals,
    effect_label,
    read_single_target,
    time_divisor,
    write_interval,
    write_level,
)
from cqrf.plots.style import COLORS, make_axes, show_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cqrf._effects.averages import AverageEffect
    from cqrf.effects import CensoredTreatmentForest

LARGEST_MARKER = 90.0  # area of the mark of all rows, in points squared
ROW_HEIGHT = 0.3  # of a subgroup, in inches
Floats = NDArray[np.float64]


def plot_subgroups(
    forest: CensoredTreatmentForest,
    subgroups: Mapping[str, ArrayLike],
    *,
    population: str = "all",
    confidence: float = 0.95,
    scale: float = 1.0,
    ax: Axes | None = None,
    **target: Any,
) -> Axes:
    """Forest plot: average effects in subgroups of the training rows, and in all of them below.

    The area of a square is the number of rows. Estimates and intervals are written on the right.
    Intervals are not corrected for the number of subgroups.

    Parameters
    ----------
    forest : CensoredTreatmentForest
        A fitted forest.
    subgroups : mapping of str to array-like
        The training rows of each subgroup: a mask, or numbers of rows.
    population : {"all", "treated", "control", "overlap"}
        As in :meth:`~cqrf.effects.CensoredTreatmentForest.ate`.
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
    >>> from cqrf.plots import plot_subgroups
    >>> data = make_treatment("null", n=200, random_state=0)
    >>> forest = CensoredTreatmentForest(n_estimators=40, random_state=0)
    >>> forest = forest.fit(data.X, data.y, treatment=data.treatment, propensity=0.5)
    >>> low = data.X[:, 0] < 0.5
    >>> ax = plot_subgroups(forest, {"low": low, "high": ~low}, target="survival", times=1.0)
    >>> [text.get_text() for text in ax.get_yticklabels()][-1]
    'all (200)'
    """
    wanted = read_single_target(forest, target)
    if not isinstance(subgroups, Mapping) or len(subgroups) == 0:
        raise ValueError(
            "subgroups must be a mapping of names to masks of the training rows, such as "
            f'{{"women": X["sex"] == "f"}}; found {type(subgroups).__name__}.'
        )
    asked = {"population": population, "confidence": confidence, **target}
    of_all = forest.ate(**asked)
    found = [_average(forest, name, rows, asked) for name, rows in subgroups.items()]
    names = [*map(show_text, subgroups), "all"]
    ax = make_axes(ax, height=1.2 + ROW_HEIGHT * len(names), scale=scale)
    averages = _Averages.of([*found, of_all], names, time_divisor(wanted, scale))
    _draw_averages(ax, averages, f"effect ({write_level(confidence)} interval)")
    ax.set_xlabel(effect_label(forest, wanted, scale))
    return ax


def _average(
    forest: CensoredTreatmentForest, name: str, rows: ArrayLike, asked: dict[str, Any]
) -> AverageEffect:
    """Average effect of a subgroup; an error names it."""
    try:
        return forest.ate(subset=rows, **asked)
    except ValueError as error:
        raise ValueError(f"subgroup {name!r}: {error}") from error


class _Averages(NamedTuple):
    """Average effects of some groups of rows, the last one of all; NaN where not identified."""

    names: list[str]
    estimate: Floats
    lower: Floats
    upper: Floats
    n_rows: NDArray[np.int64]
    texts: list[str]

    @staticmethod
    def of(found: list[AverageEffect], names: list[str], divisor: float) -> _Averages:
        """Effects divided by the scale of time, and how they are written."""
        numbers = np.array([(each.estimate, each.lower, each.upper) for each in found]) / divisor
        errors = np.array([each.standard_error for each in found], np.float64) / divisor
        texts = [write_interval(each, count_decimals(errors)) for each in numbers]
        shown = np.where(np.isfinite(numbers).all(axis=1, keepdims=True), numbers, np.nan)
        n_rows = np.array([each.n_rows for each in found])
        return _Averages(names, shown[:, 0], shown[:, 1], shown[:, 2], n_rows, texts)


def _draw_averages(ax: Axes, averages: _Averages, heading: str) -> None:
    """A square and a bar for each group, from top to bottom, a diamond for all."""
    n = len(averages.names)
    at = np.append(np.arange(n - 1.0), n - 0.7)  # a gap before the last
    ax.vlines(0, -0.5, at[-1] + 0.6, **NO_EFFECT)
    ax.vlines(averages.estimate[-1], -0.5, at[-1], color=COLORS[0], lw=1, ls=":", zorder=1)
    ax.hlines(at, averages.lower, averages.upper, color=COLORS[0], lw=1.8, zorder=2)
    areas = LARGEST_MARKER * averages.n_rows / averages.n_rows[-1]
    for rows, marker in ((slice(0, n - 1), "s"), (slice(n - 1, n), "D")):
        ax.scatter(
            averages.estimate[rows], at[rows], areas[rows], COLORS[0], marker=marker, zorder=3
        )
    names = [f"{name} ({rows})" for name, rows in zip(averages.names, averages.n_rows, strict=True)]
    ax.set_yticks(np.append(-1.0, at), labels=["subgroup (rows)", *names])
    ax.set_ylim(at[-1] + 0.6, -1.5)
    numbers = ax.secondary_yaxis("right")
    numbers.set_yticks(np.append(-1.0, at), labels=[heading, *averages.texts])
    for axis in (ax, numbers):
        axis.tick_params(axis="y", length=0)
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
    numbers.spines["right"].set_visible(False)
