"""Predictions for rows, as JSON has them.

Nothing here is NaN or infinite. A time that is not identifiable because of censoring has no value
but a bound: the time of the last neighbour, after which it lies (of the first neighbour, before
which it lies, under left censoring). Likewise a survival probability, or a restricted mean, beyond
the end of a curve has no value but a bound: the time up to which the curve is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._model.queries import encode_queries
from cqrf._readers.curves import KnownTimes, RestrictedMean, SurvivalAt
from cqrf._readers.errors import Confidence, SurvivalErrors
from cqrf._readers.quantiles import MaxLevel, Quantiles
from cqrf._readers.reader import read_weights
from cqrf._readers.weight_rows import WeightRows
from cqrf._survival.little_bags import confidence_width, survival_interval
from cqrf._survival.quantiles import Solution
from cqrf._views.causes import cause_of
from cqrf._views.curves import SHOWN_LEVELS
from cqrf._views.intervals import left_end_of
from cqrf.serve.computing import VALUE_WORK
from cqrf.serve.data_rows import row_values
from cqrf.serve.incidence import list_incidences, predict_causes
from cqrf.serve.known import (
    AFTER,
    BEFORE,
    DECIMALS,
    TOO_LATE,
    is_known_nowhere,
    known_content,
    round_all,
)
from cqrf.serve.model_view import ModelView
from cqrf.serve.values import Problem, RequestError, RowsRead

OPEN = "open"
CONFIDENCE = 0.95  # of the band on the page
MAX_NEIGHBOURS = 12


class PredictionRequest(NamedTuple):
    """What is predicted for every row.

    ``given``: the time already survived, one for all rows or one for each; times and horizons
    count from it on.
    """

    quantiles: Sequence[float]
    times: Sequence[float] = ()
    intervals: Sequence[float] = ()
    confidence: float | None = None
    horizons: Sequence[float] = ()
    given: float | Sequence[float] | None = None
    n_causes: int = 0

    @property
    def n_values(self) -> int:
        """Predicted values for each row."""
        n_each = len(self.quantiles) + len(self.times) + len(self.horizons)
        return n_each * (1 + self.n_causes) + 2 * len(self.intervals)

    def work(self, leaf_rows: float) -> float:
        """Work for one row whose leaves hold so many rows, in the unit of ``computing.py``."""
        n_errors = 0 if self.confidence is None else 2 * len(self.quantiles) + len(self.times)
        return leaf_rows * (1 + n_errors) + VALUE_WORK * self.n_values

    def take(self, rows: slice) -> PredictionRequest:
        """What is predicted for some of the rows."""
        return self._replace(given=self.given[rows]) if isinstance(self.given, list) else self

    def given_of(self, i: int) -> float | None:
        """Time that row i has already survived."""
        return self.given[i] if isinstance(self.given, Sequence) else self.given


class Estimates(NamedTuple):
    """Estimates for n rows.

    Attributes
    ----------
    quantiles : ndarray of shape (n, n_levels)
        The requested quantiles, then both ends of each prediction interval.
    bounds, max_levels : ndarray of shape (n,)
        Time of the last neighbour, and largest identifiable level.
    survival, means : ndarray of shape (n, n_times) and (n, n_horizons)
        Survival probabilities and restricted means; NaN where they are not known.
    known : ndarray of shape (n, 2)
        First and last time at which each survival curve is known.
    quantile_intervals, survival_intervals : ndarray of shape (n, ..., 2), or None
        Confidence intervals; None if there are no standard errors.
    """

    quantiles: NDArray[np.float64]
    bounds: NDArray[np.float64]
    max_levels: NDArray[np.float64]
    survival: NDArray[np.float64]
    means: NDArray[np.float64]
    known: NDArray[np.float64]
    quantile_intervals: NDArray[np.float64] | None
    survival_intervals: NDArray[np.float64] | None


def predict_rows(
    view: ModelView, rows: RowsRead, request: PredictionRequest
) -> list[dict[str, Any]]:
    """Quantiles, intervals, survival and means of each row, with the notes on it."""
    estimates = estimate(view, rows.matrix, request)
    predictions = []
    for i, notes in enumerate(rows.notes):
        content, given = row_content(view, estimates, i, request), request.given_of(i)
        if is_known_nowhere(estimates.known[i]):
            notes = [
                *notes,
                f"no training row with weight is at risk after the time already survived, {given:g}"
                ": nothing is known of the time that remains.",
            ]
        predictions.append({**content, "given": given, "notes": notes})
    if view.model.causes:
        of_rows = predict_causes(view, rows.matrix, request)
        return [{**row, "causes": of_row} for row, of_row in zip(predictions, of_rows, strict=True)]
    return predictions


def round_request(view: ModelView, request: PredictionRequest) -> PredictionRequest:
    """The request at times that are multiples of the unit, if the server has one.

    Otherwise the steps of curves, and so the times of training rows, could be found by trying.
    """
    if view.unit is None:
        return request
    given = request.given
    return request._replace(
        times=view.round(request.times).tolist(),
        horizons=view.round(request.horizons).tolist(),
        given=None if given is None else view.round(given).tolist(),
    )


def check_given(view: ModelView, given: float | Sequence[float] | None, n_rows: int) -> None:
    """Refuse times already survived if times are left-censored, or if there are not n of them."""
    if given is None:
        return
    if view.model.censoring == "left":
        message = "given: the times of this model are left-censored; leave it out, or send null."
        raise RequestError(Problem(message, "given"))
    if isinstance(given, Sequence) and len(given) != n_rows:
        message = f"given: {len(given)} times for {n_rows} rows; send one number, or one per row."
        raise RequestError(Problem(message, "given"))


def estimate(view: ModelView, matrix: NDArray[np.float64], request: PredictionRequest) -> Estimates:
    """Everything that is requested, from one pass over the weights."""
    model, solver = view.model, view.solver
    tails = [(1 - coverage) / 2 for coverage in request.intervals]
    ends = [level for tail in tails for level in (tail, 1 - tail)]
    levels = np.array([*request.quantiles, *ends], dtype=np.float64)
    times = np.array(request.times, dtype=np.float64)
    readers: list[Any] = [MaxLevel(solver), SurvivalAt(times, "nan"), KnownTimes()]
    readers += [RestrictedMean(horizon, "nan") for horizon in request.horizons]
    queries = encode_queries(model, matrix, 1, request.given)
    quantile_intervals = survival_intervals = None
    if request.confidence is None or view.why_no_errors(request.given is not None) is not None:
        readers.append(Quantiles(solver, levels))
        *results, solution = read_weights(model, queries, readers, 1)
    else:
        width = confidence_width(request.confidence)
        readers.append(Confidence(solver, levels, len(request.quantiles), times, width))
        with np.errstate(over="ignore"):  # at levels near 1 an end is infinite
            *results, confident = read_weights(model, queries, readers, 1)
            solution, quantile_intervals, errors = confident
            band = survival_interval(results[1], width * errors, model.censoring)
        survival_intervals = np.stack(band, axis=-1)
    max_levels, survival, known, *found = results
    if request.given is not None:  # T > given, so that min(T - given, h) = h for h <= 0
        is_known = known[:, 0] <= known[:, 1]
        found = [
            np.where(is_known, horizon, np.nan) if horizon <= 0 else mean
            for horizon, mean in zip(request.horizons, found, strict=True)
        ]
    if quantile_intervals is not None:
        quantile_intervals = view.round(quantile_intervals)
    return Estimates(
        quantiles=view.round(solution.values),
        bounds=view.round(solution.last_neighbor),
        max_levels=max_levels,
        survival=survival,
        means=view.round(np.column_stack([np.empty((len(matrix), 0)), *found])),
        known=view.round(known),
        quantile_intervals=quantile_intervals,
        survival_intervals=survival_intervals,
    )


def row_content(
    view: ModelView, estimates: Estimates, i: int, request: PredictionRequest
) -> dict[str, Any]:
    """Predictions for row i."""
    bound, values = float(estimates.bounds[i]), estimates.quantiles[i].tolist()
    first_end = len(request.quantiles)
    intervals = [
        {
            "coverage": coverage,
            "lower": time_content(values[first_end + 2 * k], bound),
            "upper": time_content(values[first_end + 2 * k + 1], bound),
        }
        for k, coverage in enumerate(request.intervals)
    ]
    quantiles = [
        {"level": level, **time_content(values[k], bound)}
        for k, level in enumerate(request.quantiles)
    ]
    known = estimates.known[i]
    survival: list[dict[str, Any]] = [
        {"time": time, **known_content("probability", value, time, known)}
        for time, value in zip(request.times, estimates.survival[i].tolist(), strict=True)
    ]
    means = [
        {"horizon": horizon, **known_content("value", value, horizon, known)}
        for horizon, value in zip(request.horizons, estimates.means[i].tolist(), strict=True)
    ]
    if request.confidence is not None:
        for k, quantile in enumerate(quantiles):
            found = estimates.quantile_intervals
            ends = None if found is None else found[i, k]
            quantile["confidence_interval"] = interval_content(ends, bound, view.model.censoring)
        for k, probability in enumerate(survival):
            found = estimates.survival_intervals
            band = None if found is None else found[i, k].tolist()
            probability["confidence_interval"] = (
                None
                if band is None or probability["probability"] is None
                else {"lower": band[0], "upper": band[1]}
            )
    return {
        "quantiles": quantiles,
        "intervals": intervals,
        "survival": survival,
        "means": means,
        "estimable": estimable_content(view, float(estimates.max_levels[i]), bound),
    }


def describe_subjects(
    view: ModelView,
    matrix: NDArray[np.float64],
    given: float | None = None,
    times: NDArray[np.float64] | None = None,
) -> list[dict[str, Any]]:
    """Everything that the page shows of each row of a matrix; curves at ``times``, or a grid."""
    check_given(view, given, len(matrix))
    given = None if given is None else float(view.round(given))
    times = view.grid(given) if times is None else times
    model, solver = view.model, view.solver
    readers: list[Any] = [
        Quantiles(solver, np.array(SHOWN_LEVELS)),
        MaxLevel(solver),
        SurvivalAt(times, "nan"),
        WeightRows(),
    ]
    queries = encode_queries(model, matrix, 1, given)
    lower = upper = None
    if view.why_no_errors(given is not None) is not None:
        solution, max_levels, survival, weights = read_weights(model, queries, readers, 1)
    else:
        readers.append(SurvivalErrors(times))
        solution, max_levels, survival, weights, errors = read_weights(model, queries, readers, 1)
        width = confidence_width(CONFIDENCE) * errors
        with np.errstate(over="ignore"):
            lower, upper = survival_interval(survival, width, model.censoring)
    solution = Solution(view.round(solution.values), view.round(solution.last_neighbor))
    subjects = []
    for i in range(len(matrix)):
        bound = float(solution.last_neighbor[i])
        quantiles = [
            {"level": level, **time_content(value, bound)}
            for level, value in zip(SHOWN_LEVELS, solution.values[i].tolist(), strict=True)
        ]
        positive = slice(weights.indptr[i], weights.indptr[i + 1])
        rows, values = weights.indices[positive], weights.data[positive]
        subjects.append(
            {
                "quantiles": quantiles,
                "estimable": estimable_content(view, float(max_levels[i]), bound),
                "survival": round_all(survival[i]),
                "lower": None if lower is None else round_all(lower[i]),
                "upper": None if upper is None else round_all(upper[i]),
                "n_neighbours": len(rows),
                "effective_sample_size": round(float(1 / (values**2).sum()), 1),
                "neighbours": list_neighbours(view, rows, values),
            }
        )
    if not model.causes:
        return subjects
    of_subjects = list_incidences(model, queries, times)
    return [
        {**subject, "incidence": found}
        for subject, found in zip(subjects, of_subjects, strict=True)
    ]


def list_neighbours(
    view: ModelView, rows: NDArray[np.int32], weights: NDArray[np.float64]
) -> list[dict[str, Any]] | None:
    """The training rows of largest weight; None if they may not be shown."""
    data = view.data
    if data is None or data.training is None:
        return None
    columns = view.columns
    largest = np.lexsort((rows, -weights))[:MAX_NEIGHBOURS]
    return [
        {
            "row": int(rows[k]) + 1,
            "label": data.labels[rows[k]],
            "weight": round(float(weights[k]), DECIMALS),
            "time": float(data.training.time[rows[k]]),
            "event": bool(data.training.event[rows[k]]),
            **left_end_of(data.left_ends, int(rows[k])),
            **cause_of(data.training, int(rows[k])),
            "values": row_values(data, int(rows[k]), columns),
        }
        for k in largest
    ]


def time_content(value: float, bound: float) -> dict[str, Any]:
    """A time, or the bound beyond which it lies; NaN after a time that no neighbour survived."""
    if math.isfinite(value):
        return {"value": value, "bound": None, "reason": None}
    if math.isnan(value):
        return {"value": None, "bound": None, "reason": TOO_LATE}
    return {"value": None, "bound": bound, "reason": AFTER if value > 0 else BEFORE}


def end_content(value: float, bound: float, censoring: str) -> dict[str, Any]:
    """An end of a confidence interval, which may be open on the side without censoring."""
    if math.isfinite(value) or (value > 0) == (censoring == "right"):
        return time_content(value, bound)
    return {"value": None, "bound": None, "reason": OPEN}


def interval_content(
    ends: NDArray[np.float64] | None, bound: float, censoring: str
) -> dict[str, Any] | None:
    """Confidence interval of a quantile; None if there are no standard errors."""
    if ends is None:
        return None
    lower, upper = (end_content(end, bound, censoring) for end in ends.tolist())
    return {"lower": lower, "upper": upper}


def estimable_content(view: ModelView, max_level: float, bound: float) -> dict[str, Any]:
    """Identifiable levels, and the time of the last neighbour."""
    max_level = max_level if math.isfinite(max_level) else 0.0
    from_left = view.model.censoring == "left"
    return {
        "from_level": max_level if from_left else 0.0,
        "to_level": 1.0 if from_left else max_level,
        "bound": bound if math.isfinite(bound) else None,
    }
