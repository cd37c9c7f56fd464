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
from cqrf._input.target import oriented
from cqrf._model.fitted import Model
from cqrf._model.predict import SurvivalAt, read_one
from cqrf._model.queries import encode_queries
from cqrf._runtime.arguments import read_count, read_floats
from cqrf._survival.quantiles import read_levels
from cqrf.estimator import CensoredQuantileForest
from cqrf.inspection.forests import check_forest, find_feature

MAX_GRID_VALUES = 20
MAX_TIMES = 300
MAX_VALUES_AT_ONCE = 2**24  # values of survival curves in memory at a time
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
    the curve does not fall that far or, under left censoring, where it starts below. Curves are
    evaluated at the event times of the training rows, thinned to 300.

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
    times = np.concatenate([[-np.inf], event_times(model)])
    mean = mean_survival_in_blocks(model, rows, column, codes, times, forest.n_jobs)
    shown = show_codes(model, column, codes)
    return PartialDependence(shown, levels, find_quantiles(mean, times, levels))


def choose_codes(
    model: Model, feature: str | int, column: int, values: NDArray[Any]
) -> NDArray[np.float64]:
    """Default grid of a column, as codes: its distinct values, or evenly spaced quantiles."""
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
    """Codes of a column in the user's type: numbers, labels, dates or durations."""
    kind, levels = model.columns.kinds[column], model.columns.levels[column]
    if levels is not None:
        return np.array([levels[int(code)] for code in codes], dtype=object)
    if kind in TYPES:
        return np.round(codes * 1e6).astype(np.int64).astype(TYPES[kind])
    return codes


def event_times(model: Model) -> NDArray[np.float64]:
    """Event times of the training rows, ascending, thinned to MAX_TIMES."""
    times = np.unique(oriented(model.rows.time[model.rows.event], model.censoring))
    return times[evenly_spaced(len(times), MAX_TIMES)]


def evenly_spaced(n: int, most: int) -> NDArray[np.intp]:
    """At most ``most`` of 0 ... n - 1, evenly spaced from the first to the last."""
    return np.linspace(0, max(n - 1, 0), min(n, most)).round().astype(np.intp)


def mean_survival_in_blocks(
    model: Model,
    rows: NDArray[np.float64],
    column: int,
    codes: NDArray[np.float64],
    times: NDArray[np.float64],
    n_jobs: int | None,
) -> NDArray[np.float64]:
    """As :func:`mean_survival`, with at most MAX_VALUES_AT_ONCE values in memory."""
    size = max(1, MAX_VALUES_AT_ONCE // (len(rows) * len(times)))
    blocks = [codes[start : start + size] for start in range(0, len(codes), size)]
    return np.concatenate(
        [mean_survival(model, rows, column, block, times, n_jobs) for block in blocks]
    )


def mean_survival(
    model: Model,
    rows: NDArray[np.float64],
    column: int,
    codes: NDArray[np.float64],
    times: NDArray[np.float64],
    n_jobs: int | None,
) -> NDArray[np.float64]:
    """Survival averaged over rows, for each code in the column; shape (n_codes, n_times)."""
    repeated = np.tile(rows, (len(codes), 1))
    repeated[:, column] = np.repeat(codes, len(rows))
    survival = read_one(model, encode_queries(model, repeated, n_jobs), SurvivalAt(times), n_jobs)
    return survival.reshape(len(codes), len(rows), len(times)).mean(axis=1)


def find_quantiles(
    survival: NDArray[np.float64], times: NDArray[np.float64], levels: NDArray[np.float64]
) -> NDArray[np.float64]:
    """First time at which each curve is at most 1 - level; shape (n_curves, n_levels).

    ``times`` starts with -inf. NaN where a curve is never that low, or is from the start.
    """
    is_reached = survival[:, :, np.newaxis] <= 1.0 - levels + TOLERANCE
    found = times[is_reached.argmax(axis=1)]  # argmax is 0, and so the time -inf, in both cases
    return np.where(np.isinf(found), np.nan, found)
