"""Answers: what the forest says about rows, as plain numbers ready for JSON.

Nothing here is NaN or infinite. A time that censoring hides has no value but a bound: the last
time seen of rows like it, beyond which it lies (the first, before which, under left censoring).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._model.predict import (
    MaxLevel,
    QuantileIntervals,
    Quantiles,
    SurvivalAt,
    SurvivalErrors,
    WeightRows,
    encode_queries,
    read_weights,
)
from cqrf._survival.little_bags import confidence_width, survival_interval
from cqrf.report.subject import LEVELS
from cqrf.serve.served import Served
from cqrf.serve.values import show_value

AFTER, BEFORE, OPEN = "after_bound", "before_bound", "open"
CONFIDENCE = 0.95  # of the band that the page shows
MOST_NEIGHBOURS = 12
DIGITS = 6  # of shares and probabilities on the page


class Question(NamedTuple):
    """What is asked about every row."""

    quantiles: Sequence[float]
    times: Sequence[float] = ()
    intervals: Sequence[float] = ()
    confidence: float | None = None

    @property
    def n_answers(self) -> int:
        """Answers for each row."""
        return len(self.quantiles) + len(self.times) + 2 * len(self.intervals)


class Found(NamedTuple):
    """What the forest gives for rows, one row of each array for each; None where it is not sure.

    ``values`` holds the quantiles, then both ends of each interval; ``sides`` and ``bands`` are
    the confidence intervals of quantiles and of survival, with their ends in the last axis.
    """

    values: NDArray[np.float64]
    bounds: NDArray[np.float64]
    limits: NDArray[np.float64]
    survival: NDArray[np.float64]
    sides: NDArray[np.float64] | None
    bands: NDArray[np.float64] | None


def predict_rows(
    served: Served, matrix: NDArray[np.float64], question: Question
) -> list[dict[str, Any]]:
    """Quantiles, intervals and survival of each row of a matrix."""
    found = find_answers(served, matrix, question)
    return [say_row(served, found, i, question) for i in range(len(matrix))]


def find_answers(served: Served, matrix: NDArray[np.float64], question: Question) -> Found:
    """Everything that is asked, as arrays."""
    model, solver = served.model, served.solver
    tails = [(1 - coverage) / 2 for coverage in question.intervals]
    ends = [level for tail in tails for level in (tail, 1 - tail)]
    levels = np.array([*question.quantiles, *ends], dtype=np.float64)
    times = np.array(question.times, dtype=np.float64)
    readers: list[Any] = [Quantiles(solver, levels), MaxLevel(solver), SurvivalAt(times)]
    is_sure = question.confidence is not None and served.no_errors is None
    if is_sure:
        width = confidence_width(question.confidence or 0.0)
        asked = levels[: len(question.quantiles)]
        readers += [SurvivalErrors(times), QuantileIntervals(solver, asked, width)]
    queries = encode_queries(model, matrix, 1)
    solution, limits, survival, *sure = read_weights(model, queries, readers, 1)
    sides = bands = None
    if is_sure:
        errors, sides = sure
        bands = np.stack(survival_interval(survival, width * errors, model.censoring), axis=-1)
    return Found(solution.values, solution.last_neighbor, limits, survival, sides, bands)


def say_row(served: Served, found: Found, i: int, question: Question) -> dict[str, Any]:
    """The answers for one row."""
    bound, values = float(found.bounds[i]), found.values[i].tolist()
    censoring, is_sure = served.model.censoring, question.confidence is not None
    quantiles = [
        {"level": level, **say_time(values[k], bound)} for k, level in enumerate(question.quantiles)
    ]
    survival: list[dict[str, Any]] = [
        {"time": time, "probability": float(found.survival[i, k])}
        for k, time in enumerate(question.times)
    ]
    if is_sure:
        for k, quantile in enumerate(quantiles):
            sides = None if found.sides is None else found.sides[i, k]
            quantile["confidence_interval"] = say_interval(sides, bound, censoring)
        for k, chance in enumerate(survival):
            band = None if found.bands is None else found.bands[i, k].tolist()
            ends = None if band is None else {"lower": band[0], "upper": band[1]}
            chance["confidence_interval"] = ends
    ends_from = len(question.quantiles)
    intervals = [
        {
            "coverage": coverage,
            "lower": say_time(values[ends_from + 2 * k], bound),
            "upper": say_time(values[ends_from + 2 * k + 1], bound),
        }
        for k, coverage in enumerate(question.intervals)
    ]
    return {
        "quantiles": quantiles,
        "intervals": intervals,
        "survival": survival,
        "estimable": say_estimable(served, float(found.limits[i]), bound),
    }


def describe_subjects(served: Served, matrix: NDArray[np.float64]) -> list[dict[str, Any]]:
    """All that the page shows of each row of a matrix."""
    model, solver = served.model, served.solver
    readers: list[Any] = [
        Quantiles(solver, np.array(LEVELS)),
        MaxLevel(solver),
        SurvivalAt(served.times),
        WeightRows(),
    ]
    if served.no_errors is None:
        readers.append(SurvivalErrors(served.times))
    found = read_weights(model, encode_queries(model, matrix, 1), readers, 1)
    solution, limits, survival, weights = found[:4]
    lower = upper = None
    if served.no_errors is None:
        width = confidence_width(CONFIDENCE)
        lower, upper = survival_interval(survival, width * found[4], model.censoring)
    subjects = []
    for i in range(len(matrix)):
        bound = float(solution.last_neighbor[i])
        quantiles = [
            {"level": level, **say_time(value, bound)}
            for level, value in zip(LEVELS, solution.values[i].tolist(), strict=True)
        ]
        spoken = slice(weights.indptr[i], weights.indptr[i + 1])
        rows, shares = weights.indices[spoken], weights.data[spoken]
        subjects.append(
            {
                "quantiles": quantiles,
                "estimable": say_estimable(served, float(limits[i]), bound),
                "survival": round_all(survival[i]),
                "lower": None if lower is None else round_all(lower[i]),
                "upper": None if upper is None else round_all(upper[i]),
                "speaking": len(rows),
                "effective": round(float(1 / (shares**2).sum()), 1),
                "neighbours": list_neighbours(served, rows, shares),
            }
        )
    return subjects


def list_neighbours(
    served: Served, rows: NDArray[np.int32], shares: NDArray[np.float64]
) -> list[dict[str, Any]] | None:
    """The training rows that speak loudest; None if they may not be shown."""
    if served.data is None or served.data.training is None:
        return None
    target, kinds = served.data.training, served.kinds
    loudest = np.lexsort((rows, -shares))[:MOST_NEIGHBOURS]
    return [
        {
            "row": int(rows[k]) + 1,
            "label": served.data.labels[rows[k]],
            "weight": round(float(shares[k]), DIGITS),
            "time": float(target.time[rows[k]]),
            "event": bool(target.event[rows[k]]),
            "values": show_row(served, int(rows[k]), kinds),
        }
        for k in loudest
    ]


def show_row(served: Served, row: int, kinds: Sequence[Any] | None = None) -> dict[str, Any]:
    """A row of the table by column name."""
    assert served.data is not None
    values = served.data.matrix[row].tolist()
    return {
        kind.name: show_value(float(value), kind)
        for kind, value in zip(kinds or served.kinds, values, strict=True)
    }


def say_time(value: float, bound: float) -> dict[str, Any]:
    """A time, or the bound beyond which it is hidden."""
    if math.isfinite(value):
        return {"value": value, "bound": None, "reason": None}
    return {"value": None, "bound": bound, "reason": AFTER if value > 0 else BEFORE}


def say_end(value: float, bound: float, censoring: str) -> dict[str, Any]:
    """An end of a confidence interval, which may lie open on the side that is not censored."""
    if math.isfinite(value) or (value > 0) == (censoring == "right"):
        return say_time(value, bound)
    return {"value": None, "bound": None, "reason": OPEN}


def say_interval(
    sides: NDArray[np.float64] | None, bound: float, censoring: str
) -> dict[str, Any] | None:
    """Confidence interval of a quantile from its two ends; None if the forest cannot tell."""
    if sides is None:
        return None
    lower, upper = (say_end(end, bound, censoring) for end in sides.tolist())
    return {"lower": lower, "upper": upper}


def say_estimable(served: Served, limit: float, bound: float) -> dict[str, Any]:
    """Levels that can be estimated, and the time beyond which nothing was seen."""
    limit = limit if math.isfinite(limit) else 0.0
    from_left = served.model.censoring == "left"
    return {
        "from_level": limit if from_left else 0.0,
        "to_level": 1.0 if from_left else limit,
        "bound": bound,
    }


def round_all(values: NDArray[np.float64]) -> list[float]:
    """Probabilities with as many digits as a picture shows."""
    return [round(value, DIGITS) for value in values.tolist()]
