"""Incidence of each cause for rows, as JSON has it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cqrf._input.risk_sets import TOLERANCE
from cqrf._model.fitted import Model
from cqrf._model.queries import Queries, encode_queries
from cqrf._readers.curves import KnownTimes
from cqrf._readers.incidence import Incidence
from cqrf._readers.reader import read_one, read_weights
from cqrf.serve.known import AFTER, NEVER, TOO_LATE, is_known_nowhere, known_content, round_all
from cqrf.serve.model_view import ModelView


class CauseRequest(Protocol):
    """The part of a request that is about causes."""

    @property
    def quantiles(self) -> Sequence[float]:
        """Levels."""

    @property
    def times(self) -> Sequence[float]:
        """Times of incidences."""

    @property
    def horizons(self) -> Sequence[float]:
        """Horizons of times lost."""

    @property
    def given(self) -> float | Sequence[float] | None:
        """Time already survived."""


def predict_causes(
    view: ModelView, matrix: NDArray[np.float64], request: CauseRequest
) -> list[list[dict[str, Any]]]:
    """Incidence, quantiles and time lost of every cause, for each row."""
    model = view.model
    queries = encode_queries(model, matrix, 1, request.given)
    curves, known = read_weights(model, queries, [Incidence(), KnownTimes()], 1)
    known, levels = view.round(known), np.array(request.quantiles, dtype=np.float64)
    found: list[list[dict[str, Any]]] = [[] for _ in range(len(matrix))]
    for cause in model.causes:
        at_times = curves[cause](np.array(request.times, dtype=np.float64))
        reached, last = view.round(curves.quantiles(cause, levels).values), curves.last(cause)
        most = last + curves.survival.each(np.full(len(matrix), np.inf))
        # After a time already survived, none is lost before a horizon that is not later.
        lost = [
            view.round(curves.time_lost(cause, max(0.0, each), "nan")) for each in request.horizons
        ]
        for i, of_row in enumerate(found):
            of_row.append(
                {
                    "cause": cause,
                    "incidence": [
                        {"time": time, **known_content("probability", value, time, known[i])}
                        for time, value in zip(request.times, at_times[i].tolist(), strict=True)
                    ],
                    "quantiles": [
                        {"level": level, **reached_content(value, level, most[i], known[i])}
                        for level, value in zip(request.quantiles, reached[i].tolist(), strict=True)
                    ],
                    "time_lost": [
                        {"horizon": horizon, **known_content("value", value, horizon, known[i])}
                        for horizon, value in zip(
                            request.horizons, [float(each[i]) for each in lost], strict=True
                        )
                    ],
                    "max_level": finite(last[i]),
                }
            )
    return found


def list_incidences(
    model: Model, queries: Queries, times: NDArray[np.float64]
) -> list[list[dict[str, Any]]]:
    """Incidence of every cause on a grid of times, for each query."""
    values = read_one(model, queries, Incidence(), 1)(times)
    return [
        [
            {"cause": cause, "values": round_all(of_cause)}
            for cause, of_cause in zip(model.causes, of_row, strict=True)
        ]
        for of_row in values
    ]


def reached_content(
    value: float, level: float, most: float, known: NDArray[np.float64]
) -> dict[str, Any]:
    """First time at which the incidence of a cause reaches a level, or why there is none.

    ``most``: the largest value that the incidence can still reach, with all who had no event.
    """
    if math.isfinite(value):
        return {"value": value, "bound": None, "reason": None}
    if is_known_nowhere(known):
        return {"value": None, "bound": None, "reason": TOO_LATE}
    last = float(known[1])
    if level > most + TOLERANCE or not math.isfinite(last):
        return {"value": None, "bound": None, "reason": NEVER}
    return {"value": None, "bound": last, "reason": AFTER}


def finite(value: float) -> float | None:
    """The value, or None if it is infinite or NaN."""
    return float(value) if math.isfinite(value) else None
