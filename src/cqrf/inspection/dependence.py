"""Partial dependence of predicted quantiles on one feature.

Every row is given the same value v of the feature, and the survival curves are averaged over rows:
S_v(t) = mean_i S(t | x_i with feature = v). The partial dependence at level tau is the tau-quantile
of this mean curve, the first t with S_v(t) <= 1 - tau.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.columns import CATEGORY, DATE, DURATION
from cqrf._input.features import read_features
from cqrf._input.risk_sets import TOLERANCE
from cqrf._model.fitted import Model
from cqrf._model.queries import encode_queries
from cqrf._readers.curves import SurvivalCurves
from cqrf._readers.reader import read_one
from cqrf._runtime.arguments import read_count, read_floats
from cqrf._survival.mixture import MOST_ROOT_STEPS
from cqrf._survival.quantiles import read_levels
from cqrf._survival.step_curves import StepCurves
from cqrf.estimator import CensoredQuantileForest
from cqrf.inspection.forests import check_forest, find_feature

MAX_GRID_VALUES = 20
MAX_STEPS_AT_ONCE = 2**24  # steps of survival curves in memory at a time
TYPES = {DATE: "datetime64[us]", DURATION: "timedelta64[us]"}


class PartialDependence(NamedTuple):
    """Quantiles of the mean survival curve at values of one feature.

    Attributes
    ----------
    grid : ndarray of shape (n_grid,)
        Values of the feature: numbers, dates, durations, or labels of a category.
    quantiles : ndarray of shape (n_levels,)
        Levels.
    values : ndarray of shape (n_grid, n_levels)
        Times; NaN where not identifiable because of censoring.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> from cqrf.inspection import partial_dependence
    >>> X, y, _, _ = make_aft(100, 2, random_state=0)
    >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
    >>> partial_dependence(forest, X, 0, quantiles=[0.5], grid=[0.5, 1.5]).grid.tolist()
    [0.5, 1.5]
    """

    grid: NDArray[Any]
    quantiles: NDArray[np.float64]
    values: NDArray[np.float64]


def partial_dependence(
    forest: CensoredQuantileForest,
    X: Any,
    feature: str | int,
    quantiles: float | Sequence[float] | None = None,
    *,
    grid: ArrayLike | None = None,
    n_rows: int = 200,
) -> PartialDependence:
    """Quantiles of the mean survival curve, if every row had the same value of one feature.

    A quantile is the first time at which the mean curve is at most 1 - level. It is NaN where
    the curve does not fall that far or, under left censoring, where it starts below.

    Parameters
    ----------
    forest : CensoredQuantileForest
        A fitted forest.
    X : array-like or frame of shape (n, n_features)
        Rows to average over.
    feature : str or int
        Name of a column, if the forest was fitted to a frame, or its index.
    quantiles : float or sequence of float, optional
        Levels in (0, 1). Default: ``model_.score_levels``, those that the training rows can tell.
    grid : array-like, optional
        Values of the feature. Default: the distinct values in X; of a feature that is no
        category, at most 20 of them, at evenly spaced quantiles.
    n_rows : int, default=200
        Maximum number of rows to average over, evenly spaced in X.

    Returns
    -------
    PartialDependence
        Named tuple of ``grid``, ``quantiles`` and ``values``.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> from cqrf.inspection import partial_dependence
    >>> X, y, _, _ = make_aft(300, random_state=0)
    >>> forest = CensoredQuantileForest(n_estimators=50, random_state=0).fit(X, y)
    >>> partial_dependence(forest, X, 0, grid=[0.5, 1.5]).values.shape
    (2, 3)
    """
    check_forest(forest)
    model, n_rows = forest.model_, read_count("n_rows", n_rows, 1)
    levels, _ = read_levels(model.score_levels if quantiles is None else quantiles)
    column = find_feature(forest, feature)
    matrix, _ = read_features(forest, X, model.columns)
    if grid is None:
        codes = choose_codes(model, feature, column, matrix[:, column])
    else:
        codes = read_grid(model, column, grid)
    rows = matrix[evenly_spaced(len(matrix), n_rows)].astype(np.float64)
    values = quantiles_in_blocks(model, rows, column, codes, levels, forest.n_jobs)
    return PartialDependence(show_codes(model, column, codes), levels, values)


def choose_codes(
    model: Model, feature: str | int, column: int, values: NDArray[Any]
) -> NDArray[np.float64]:
    """Default grid of a column, as codes: its distinct values, or evenly spaced quantiles.

    Parameters
    ----------
    model : Model
        ``model_`` of a fitted forest.
    feature : str or int
        What errors call the column.
    column : int
        Its index.
    values : ndarray
        Codes of the column, as the forest reads them.

    Returns
    -------
    ndarray of float
        Codes, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> from cqrf.inspection.dependence import choose_codes
    >>> X, y, _, _ = make_aft(50, 2, random_state=0)
    >>> forest = CensoredQuantileForest(n_estimators=2).fit(X, y)
    >>> choose_codes(forest.model_, 0, 0, np.array([3.0, 1.0, 3.0])).tolist()
    [1.0, 3.0]
    """
    known = values[~np.isnan(values)].astype(np.float64)
    if len(known) == 0:
        raise ValueError(f"feature={feature!r} has no value in X; give a grid.")
    distinct = np.unique(known)
    if model.columns.kinds[column] == CATEGORY or len(distinct) <= MAX_GRID_VALUES:
        return distinct
    even = np.linspace(0, 1, MAX_GRID_VALUES)
    return np.unique(np.quantile(known, even, method="nearest"))


def read_grid(model: Model, column: int, grid: ArrayLike) -> NDArray[np.float64]:
    """The grid as the feature matrix holds it: numbers, or codes of a category."""
    kind, levels = model.columns.kinds[column], model.columns.levels[column]
    values = np.asarray(grid, dtype=object if levels is not None else None)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"grid must be a list of at least one value; found {grid!r}.")
    if levels is not None:
        labels = [str(value) for value in values.tolist()]
        unknown = sorted(set(labels) - set(levels))
        if unknown:
            raise ValueError(
                f"grid has {unknown[0]!r}, which was no level in training; choose from "
                f"{', '.join(map(repr, levels))}."
            )
        return np.array([levels.index(label) for label in labels], dtype=np.float64)
    if kind in TYPES:
        try:
            moments = np.asarray(grid, dtype=TYPES[kind])
        except (TypeError, ValueError) as error:
            raise ValueError(f"grid must be {kind}s, as the column is; found {grid!r}.") from error
        numbers = np.where(np.isnat(moments), np.nan, moments.astype(np.int64) / 1e6)
    else:
        numbers = read_floats("grid", grid)
    if not np.isfinite(numbers).all():
        raise ValueError(f"grid must have no missing or infinite value; found {grid!r}.")
    return numbers


def show_codes(model: Model, column: int, codes: NDArray[np.float64]) -> NDArray[Any]:
    """Codes of a column in the user's type: numbers, labels, dates or durations.

    Parameters
    ----------
    model : Model
        ``model_`` of a fitted forest.
    column : int
        Index of the column.
    codes : ndarray of float
        Codes, as the forest reads them.

    Returns
    -------
    ndarray
        Values as the user wrote them.

    Examples
    --------
    >>> import numpy as np
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import load_pbc
    >>> from cqrf.inspection.dependence import show_codes
    >>> pbc = load_pbc(as_frame=True)
    >>> forest = CensoredQuantileForest(n_estimators=2).fit(pbc.X, pbc.y)
    >>> show_codes(forest.model_, 2, np.array([0.0, 1.0])).tolist()
    ['f', 'm']
    """
    kind, levels = model.columns.kinds[column], model.columns.levels[column]
    if levels is not None:
        return np.array([levels[int(code)] for code in codes], dtype=object)
    if kind in TYPES:
        return np.round(codes * 1e6).astype(np.int64).astype(TYPES[kind])
    return codes


def evenly_spaced(n: int, most: int) -> NDArray[np.intp]:
    """At most ``most`` of the numbers 0 to n - 1, evenly spaced from the first to the last.

    Parameters
    ----------
    n : int
        Number of rows.
    most : int
        Most of them to take.

    Returns
    -------
    ndarray of int
        Row numbers, ascending.

    Examples
    --------
    >>> from cqrf.inspection.dependence import evenly_spaced
    >>> evenly_spaced(10, 4).tolist()
    [0, 3, 6, 9]
    """
    return np.linspace(0, max(n - 1, 0), min(n, most)).round().astype(np.intp)


def quantiles_in_blocks(
    model: Model,
    rows: NDArray[np.float64],
    column: int,
    codes: NDArray[np.float64],
    levels: NDArray[np.float64],
    n_jobs: int | None,
) -> NDArray[np.float64]:
    """Quantiles of the mean curve for each code in the column; shape (n_codes, n_levels).

    At most about MAX_STEPS_AT_ONCE steps of curves are in memory.
    """
    most_steps = 2 * int(model.rows.event.sum()) + MOST_ROOT_STEPS
    size = max(1, MAX_STEPS_AT_ONCE // (len(rows) * most_steps))
    found = []
    for start in range(0, len(codes), size):
        block = codes[start : start + size]
        repeated = np.tile(rows, (len(block), 1))
        repeated[:, column] = np.repeat(block, len(rows))
        queries = encode_queries(model, repeated, n_jobs)
        curves = read_one(model, queries, SurvivalCurves(), n_jobs)
        for first in range(0, len(curves), len(rows)):
            found.append(mean_quantiles(curves[first : first + len(rows)], levels))
    return np.array(found)


def mean_quantiles(curves: StepCurves, levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """First time at which the mean of the curves is at most 1 - level; shape (n_levels,).

    NaN where it is never that low, or is from the start.
    """
    lengths = np.diff(curves.offsets)
    before = np.empty(len(curves.values))
    before[1:] = curves.values[:-1]
    firsts = curves.offsets[:-1][lengths > 0]
    before[firsts] = curves.initial[lengths > 0]
    order = np.argsort(curves.times, kind="stable")
    initial = curves.initial.mean()
    mean = initial - np.cumsum((before - curves.values)[order]) / len(curves)
    bounds = 1.0 - levels + TOLERANCE
    steps = np.searchsorted(-mean, -bounds)
    times = np.append(curves.times[order], np.nan)[steps]
    return np.where(initial <= bounds, np.nan, times)
