"""Plots of features: partial dependence, profiles of a row, importance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.columns import DURATION
from cqrf._input.features import read_features
from cqrf._model.fitted import Model
from cqrf._model.queries import encode_queries
from cqrf._model.settings import read_solver
from cqrf._readers.quantiles import Quantiles
from cqrf._readers.reader import read_one
from cqrf._runtime.arguments import is_count, read_count
from cqrf._survival.quantiles import read_levels
from cqrf.inspection import PartialDependence, partial_dependence
from cqrf.inspection.dependence import choose_codes, evenly_spaced, show_codes
from cqrf.inspection.forests import check_forest, find_feature
from cqrf.plots.style import (
    COLORS,
    LEGEND,
    LINES,
    MARKERS,
    make_axes,
    show_name,
    show_text,
    start_at_zero,
    time_label,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cqrf.estimator import CensoredQuantileForest

MAX_RUG_MARKS = 500


class FeatureAxis(NamedTuple):
    """The axis of a feature: its label, the values in X and whether these are points apart.

    A category and a feature with two values in X are points, which no line joins.
    """

    label: str
    known: NDArray[Any]
    is_points: bool

    @staticmethod
    def of(forest: CensoredQuantileForest, X: Any, column: int) -> FeatureAxis:
        """The axis of a column with its values in X."""
        matrix, _ = read_features(forest, X, forest.model_.columns)
        values = matrix[:, column].astype(np.float64)
        return FeatureAxis.of_values(show_name(forest, column), forest.model_, column, values)

    @staticmethod
    def of_values(
        label: str, model: Model, column: int, values: NDArray[np.float64]
    ) -> FeatureAxis:
        """The axis of a column with these values, as the feature matrix holds them."""
        codes = values[~np.isnan(values)]
        if model.columns.levels[column] is not None:
            return FeatureAxis(label, codes, True)
        if model.columns.kinds[column] == DURATION:
            label = f"{label} (days)"
        return FeatureAxis(label, show_codes(model, column, codes), len(np.unique(codes)) <= 2)

    def positions(self, ax: Axes, grid: NDArray[Any]) -> NDArray[Any]:
        """Where the values of the grid are drawn; labels of points are written."""
        if self.is_points:
            return _label_points(ax, grid)
        return in_days(grid)

    def draw(self, ax: Axes) -> None:
        """Label the axis, and mark the values in X below the curves."""
        ax.set_xlabel(self.label)
        if not self.is_points and len(self.known) > 0:
            marks = in_days(np.sort(self.known)[evenly_spaced(len(self.known), MAX_RUG_MARKS)])
            low = np.zeros(len(marks))
            style: Any = {"color": "0.4", "ms": 7, "mew": 0.5, "ls": "none", "zorder": 1}
            # Half of a mark of the length 7 lies below the axis and is clipped.
            ax.plot(marks, low, "|", transform=ax.get_xaxis_transform(), label="_rug", **style)


def plot_quantile_fan(
    forest: CensoredQuantileForest,
    X: Any,
    feature: str | int,
    *,
    quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    row: int | None = None,
    scale: float = 1.0,
    ax: Axes | None = None,
) -> Axes:
    """Quantiles against one numeric feature: partial dependence, or the profile of one row.

    By default the quantiles are those of :func:`cqrf.inspection.partial_dependence`, averaged over
    the rows of X. With ``row``, the position of a row in X, they are what the forest predicts for
    that row if the feature alone is moved; a vertical line marks the row's own value. Marks below
    the curves are the values in X. Times are divided by ``scale``.

    Parameters
    ----------
    forest : CensoredQuantileForest
        A fitted forest.
    X : array-like or frame of shape (n, n_features)
        Rows to average over.
    feature : str or int
        Name of a column, if the forest was fitted to a frame, or its index.
    quantiles : sequence of float
        Levels.
    row : int, optional
        Position of one row in X.
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
    >>> from cqrf.datasets import make_aft
    >>> from cqrf.plots import plot_quantile_fan
    >>> X, y, _, _ = make_aft(200, 3, random_state=0)
    >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
    >>> plot_quantile_fan(forest, X, 0, quantiles=(0.1, 0.5)).get_ylabel()
    'time'
    """
    check_forest(forest)
    column = find_feature(forest, feature)
    if forest.model_.columns.levels[column] is not None:
        raise ValueError(
            f"feature={feature!r} is a category, which has no order: use plot_partial_dependence."
        )
    ax = make_axes(ax, scale=scale)
    if row is None:
        found = partial_dependence(forest, X, feature, quantiles)
    else:
        found = _read_profile(forest, X, feature, quantiles, row)
    axis = FeatureAxis.of(forest, X, column)
    at, order = axis.positions(ax, found.grid), np.argsort(found.quantiles)
    times = found.values[:, order] / scale
    for k in range(len(order) // 2):
        ax.fill_between(at, times[:, k], times[:, -1 - k], color=COLORS[0], alpha=0.13, lw=0)
    _draw_quantiles(ax, axis, at, found._replace(quantiles=found.quantiles[order], values=times))
    if row is not None and not axis.is_points:
        own = read_features(forest, X, forest.model_.columns)[0][row, column]
        if not np.isnan(own):
            shown = in_days(show_codes(forest.model_, column, np.array([own], np.float64)))
            ax.axvline(shown[0], color="0.5", lw=1, ls=":", label=f"value of row {row}")
    ax.set_ylabel(time_label(forest, scale))
    start_at_zero(ax)
    ax.legend(**LEGEND)
    return ax


def _read_profile(
    forest: CensoredQuantileForest,
    X: Any,
    feature: str | int,
    quantiles: Sequence[float],
    row: int,
) -> PartialDependence:
    """Predicted quantiles of one row of X at the usual grid of the feature in X."""
    model, column = forest.model_, find_feature(forest, feature)
    levels = read_levels(quantiles)[0]
    matrix, _ = read_features(forest, X, model.columns)
    if not is_count(row) or not 0 <= row < len(matrix):
        raise ValueError(f"row={row!r} must be the position of a row of X, 0 to {len(matrix) - 1}.")
    codes = choose_codes(model, feature, column, matrix[:, column])
    moved = np.tile(matrix[row].astype(np.float64), (len(codes), 1))
    moved[:, column] = codes
    reader = Quantiles(read_solver(forest, model.censoring), levels)
    solved = read_one(model, encode_queries(model, moved, forest.n_jobs), reader, forest.n_jobs)
    return PartialDependence(show_codes(model, column, codes), levels, solved.fill("nan"))


def plot_partial_dependence(
    forest: CensoredQuantileForest,
    X: Any,
    feature: str | int,
    quantiles: float | Sequence[float] | None = None,
    ax: Axes | None = None,
    *,
    grid: ArrayLike | None = None,
    n_rows: int = 200,
    scale: float = 1.0,
) -> Axes:
    """Partial dependence of quantiles on one feature.

    See :func:`cqrf.inspection.partial_dependence`. Gaps are not identifiable because of
    censoring. Marks below the curves are the values in X; a category and a feature with two
    values are drawn as points. Times are divided by ``scale``.

    Parameters
    ----------
    forest : CensoredQuantileForest
        A fitted forest.
    X, feature, quantiles, grid, n_rows
        As in :func:`cqrf.inspection.partial_dependence`.
    ax : Axes, optional
        Where to draw.
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
    >>> from cqrf.plots import plot_partial_dependence
    >>> X, y, _, _ = make_aft(200, 3, random_state=0)
    >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
    >>> plot_partial_dependence(forest, X, 0).get_ylabel()
    'time'
    """
    found = partial_dependence(forest, X, feature, quantiles, grid=grid, n_rows=n_rows)
    ax = make_axes(ax, scale=scale)
    axis = FeatureAxis.of(forest, X, find_feature(forest, feature))
    at = axis.positions(ax, found.grid)
    _draw_quantiles(ax, axis, at, found._replace(values=found.values / scale))
    ax.set_ylabel(time_label(forest, scale))
    start_at_zero(ax)
    ax.legend(**LEGEND)
    return ax


def _draw_quantiles(
    ax: Axes, axis: FeatureAxis, at: NDArray[Any], found: PartialDependence
) -> None:
    """One line for each level, or points; then the marks below them."""
    for k, level in enumerate(found.quantiles):
        times = found.values[:, k]
        is_gap = np.isnan(times)
        note = ": not identified" if is_gap.all() else ", gaps not identified"
        ax.plot(
            at,
            times,
            ls="none" if axis.is_points else LINES[k % len(LINES)],
            marker=MARKERS[k % len(MARKERS)],
            ms=8 if axis.is_points else 4,
            color=COLORS[k % len(COLORS)],
            lw=1.8,
            label=f"{level:g} quantile{note if is_gap.any() else ''}",
        )
    axis.draw(ax)


def _label_points(ax: Axes, grid: NDArray[Any]) -> NDArray[Any]:
    """Write the values of the grid below the axis, and return their positions."""
    labels = [f"{value:g}" if grid.dtype.kind == "f" else str(value) for value in grid.tolist()]
    at = np.arange(len(labels))
    is_long = max(map(len, labels)) * len(at) > 60
    turned: Any = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if is_long else {}
    ax.set_xticks(at, labels=[show_text(label) for label in labels], **turned)
    ax.set_xlim(-0.5, len(at) - 0.5)
    return at


def in_days(values: NDArray[Any]) -> NDArray[Any]:
    """Durations as days; other values as they are."""
    return values / np.timedelta64(1, "D") if values.dtype.kind == "m" else values


def plot_importance(
    forest: CensoredQuantileForest, ax: Axes | None = None, *, n_features: int = 20
) -> Axes:
    """Share of each feature in the gain of all splits, largest first; at most ``n_features``.

    Parameters
    ----------
    forest : CensoredQuantileForest
        A fitted forest.
    ax : Axes, optional
        Where to draw.
    n_features : int, default=20
        Most features to show.

    Returns
    -------
    Axes
        What was drawn on.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> from cqrf.plots import plot_importance
    >>> X, y, _, _ = make_aft(200, 3, random_state=0)
    >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
    >>> plot_importance(forest).get_xlabel()
    'share of the gain of all splits'
    """
    importances = forest.feature_importances_
    n_shown = min(read_count("n_features", n_features, 1), len(importances))
    shown = np.argsort(-importances, kind="stable")[:n_shown]
    ax = make_axes(ax, height=max(2.0, 0.9 + 0.27 * n_shown))
    ax.barh(np.arange(n_shown), importances[shown], color=COLORS[0], height=0.7)
    ax.set_yticks(np.arange(n_shown), labels=[show_name(forest, column) for column in shown])
    ax.set(ylim=(n_shown - 0.4, -0.6), xlim=(0, None))
    some = f", {n_shown} of {len(importances)} features" if n_shown < len(importances) else ""
    ax.set_xlabel(f"share of the gain of all splits{some}")
    return ax
