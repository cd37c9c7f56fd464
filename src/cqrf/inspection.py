"""Inspection: how predicted quantiles move with one feature, the others left as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from cqrf._input.features import CATEGORY, DATE, DURATION, read_features
from cqrf._input.risk_sets import TOLERANCE
from cqrf._input.target import oriented
from cqrf._model.fitted import Model
from cqrf._model.predict import SurvivalAt, encode_queries, read_one
from cqrf._runtime.arguments import is_count, read_count, read_floats
from cqrf._survival.quantiles import read_levels
from cqrf.estimator import CensoredQuantileForest

MOST_GRID_VALUES = 20
MOST_TIMES = 300
MOST_AT_ONCE = 2**24  # values of survival curves held in memory
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
        Times; NaN where censoring hides them.
    """

    grid: NDArray[Any]
    quantiles: NDArray[np.float64]
    values: NDArray[np.float64]


def partial_dependence(
    forest: CensoredQuantileForest,
    X: Any,
    feature: str | int,
    quantiles: float | Sequence[float] = (0.25, 0.5, 0.75),
    *,
    grid: ArrayLike | None = None,
    n_rows: int = 200,
) -> PartialDependence:
    """Quantiles of the time if every row of X had the same value of one feature.

    For each value the survival curves of the rows are averaged, and the quantile is the first
    time at which their mean is at most 1 - level. It is NaN where the mean does not come down
    so far, or, under left censoring, where it starts below: low levels are hidden there. Times
    are those of the events in training, thinned to 300.

    Parameters
    ----------
    forest : CensoredQuantileForest
        A fitted forest.
    X : array-like or frame of shape (n, n_features)
        Rows to average over.
    feature : str or int
        Name of a column, if the forest was fitted on a frame, or its number from 0.
    quantiles : float or sequence of float, default=(0.25, 0.5, 0.75)
        Levels in (0, 1).
    grid : array-like, optional
        Values of the feature. Default: of a category, the levels in X; otherwise the values
        in X, if there are more than 20 then 20 of them at even quantiles.
    n_rows : int, default=200
        Most rows to average over, evenly spaced in X.

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
    if not isinstance(forest, CensoredQuantileForest):
        raise ValueError(f"forest must be a CensoredQuantileForest; found {type(forest).__name__}.")
    check_is_fitted(forest)
    model = forest.model_
    levels, _ = read_levels(quantiles)
    n_rows = read_count("n_rows", n_rows, 1)
    column = find_feature(forest, feature)
    matrix, _ = read_features(forest, X, model.columns)
    if grid is None:
        codes = choose_codes(model, feature, column, matrix[:, column])
    else:
        codes = read_grid(model, column, grid)
    times = np.concatenate([[-np.inf], event_times(model)])
    rows = matrix[evenly_spaced(len(matrix), n_rows)].astype(np.float64)
    block = max(1, MOST_AT_ONCE // (len(rows) * len(times)))
    mean = np.concatenate(
        [
            mean_survival(model, rows, column, codes[start : start + block], times, forest.n_jobs)
            for start in range(0, len(codes), block)
        ]
    )
    reached = mean[:, :, np.newaxis] <= 1.0 - levels + TOLERANCE
    found = times[reached.argmax(axis=1)]
    # -inf: not reached, or there from the start.
    values = np.where(np.isinf(found), np.nan, found)
    return PartialDependence(show_codes(model, column, codes), levels, values)


def find_feature(forest: CensoredQuantileForest, feature: Any) -> int:
    """Number of the column that a name or a number stands for."""
    names = getattr(forest, "feature_names_in_", None)
    if isinstance(feature, str):
        if names is None:
            raise ValueError(
                f"feature={feature!r}: the forest was fitted without names of features; give a "
                f"number from 0 to {forest.n_features_in_ - 1}."
            )
        found = np.flatnonzero(names == feature)
        if len(found) == 0:
            some = ", ".join(map(repr, names[:10].tolist())) + ", ..." * (len(names) > 10)
            raise ValueError(f"feature={feature!r} is unknown; the forest has {some}.")
        return int(found[0])
    if not is_count(feature) or not 0 <= feature < forest.n_features_in_:
        raise ValueError(
            f"feature={feature!r} must be a name or a number from 0 to {forest.n_features_in_ - 1}."
        )
    return int(feature)


def choose_codes(
    model: Model, feature: str | int, column: int, values: NDArray[Any]
) -> NDArray[np.float64]:
    """Values of a column to try: all, or of many numbers some at even quantiles."""
    known = values[~np.isnan(values)].astype(np.float64)
    if len(known) == 0:
        raise ValueError(f"feature={feature!r} has no value in X; give a grid.")
    distinct = np.unique(known)
    if model.columns.kinds[column] == CATEGORY or len(distinct) <= MOST_GRID_VALUES:
        return distinct
    even = np.linspace(0, 1, MOST_GRID_VALUES)
    return np.unique(np.quantile(known, even, method="nearest"))


def read_grid(model: Model, column: int, grid: ArrayLike) -> NDArray[np.float64]:
    """The grid as the table has it: numbers, or codes of a category."""
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
    """Values of a column as the user knows them."""
    kind, levels = model.columns.kinds[column], model.columns.levels[column]
    if levels is not None:
        return np.array([levels[int(code)] for code in codes], dtype=object)
    if kind in TYPES:
        return np.round(codes * 1e6).astype(np.int64).astype(TYPES[kind])
    return codes


def event_times(model: Model) -> NDArray[np.float64]:
    """Times of the events in training, ascending, thinned to the most we look at."""
    times = np.unique(oriented(model.rows.time[model.rows.event], model.censoring))
    return times[evenly_spaced(len(times), MOST_TIMES)]


def evenly_spaced(n: int, most: int) -> NDArray[np.intp]:
    """At most so many of the numbers below n, the first and the last among them."""
    return np.linspace(0, max(n - 1, 0), min(n, most)).round().astype(np.intp)


def mean_survival(
    model: Model,
    rows: NDArray[np.float64],
    column: int,
    codes: NDArray[np.float64],
    times: NDArray[np.float64],
    n_jobs: int | None,
) -> NDArray[np.float64]:
    """Survival averaged over the rows with each code in the column; shape (n_codes, n_times)."""
    repeated = np.tile(rows, (len(codes), 1))
    repeated[:, column] = np.repeat(codes, len(rows))
    survival = read_one(model, encode_queries(model, repeated, n_jobs), SurvivalAt(times), n_jobs)
    return survival.reshape(len(codes), len(rows), len(times)).mean(axis=1)
