"""Effects of the treatment for rows, as JSON has them: nothing here is NaN or infinite."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._effects.predict import (
    arm_curves,
    column_times,
    effects_and_errors,
    quantile_columns,
    quantile_effect_errors,
)
from cqrf._effects.targets import LinearTarget, RestrictedMeans, SurvivalProbabilities
from cqrf._model.queries import Queries, encode_all
from cqrf._survival.little_bags import confidence_width
from cqrf._views.effects import describe_assumptions
from cqrf.serve.effect_view import EffectView
from cqrf.serve.known import AFTER, round_all
from cqrf.serve.predictions import time_content
from cqrf.serve.values import Problem, RequestError, RowsRead

NOT_IDENTIFIABLE, NO_ERROR = "not_identifiable", "no_error"
Floats = NDArray[np.float64]


class EffectRequest(NamedTuple):
    """Which effects are given for every row; ``n_curve_times`` is 0 without curves."""

    horizons: Sequence[float]
    times: Sequence[float]
    quantiles: Sequence[float]
    confidence: float
    n_curve_times: int

    @property
    def n_values(self) -> int:
        """Values for each row."""
        n_effects = len(self.horizons) + len(self.times) + len(self.quantiles)
        return n_effects + 2 * self.n_curve_times


class EffectEstimates(NamedTuple):
    """Effects of n rows.

    Attributes
    ----------
    linear, linear_errors : ndarray of shape (n, n_horizons + n_times)
        Times gained, then differences of survival; NaN where they are not known.
    quantiles : ndarray of shape (2, n, n_levels)
        Quantiles of control and treatment; infinite where they are not identifiable.
    quantile_errors : ndarray of shape (n, n_levels)
        Standard errors of the differences of quantiles; NaN where there are none.
    curves : ndarray of shape (2, n, n_curve_times)
        Survival of control and treatment; NaN where it is not known.
    """

    linear: Floats
    linear_errors: Floats
    quantiles: Floats
    quantile_errors: Floats
    curves: Floats


def respond_with_effects(view: EffectView, rows: RowsRead, request: EffectRequest) -> Any:
    """Content of the response to a request."""
    check_horizons(view, request.horizons)
    estimates = estimate(view, rows.matrix, request)
    control, treatment = (arm.name for arm in view.arms)
    return {
        "arms": {"control": control, "treatment": treatment},
        "confidence": request.confidence,
        "times": view.times.tolist() if request.n_curve_times else None,
        "assumption": describe_assumptions(view.forest),
        "rows": [
            {**row_content(view, estimates, i, request), "notes": notes}
            for i, notes in enumerate(rows.notes)
        ],
    }


def check_horizons(view: EffectView, horizons: Sequence[float]) -> None:
    """Refuse horizons at which nothing can have been gained yet."""
    start = view.model.grid.start
    problems = [
        Problem(f"horizons[{k}]: {horizon:g} must be after {start:g}.", f"horizons[{k}]")
        for k, horizon in enumerate(horizons)
        if horizon <= start
    ]
    if problems:
        raise RequestError(*problems)


def estimate(view: EffectView, matrix: Floats, request: EffectRequest) -> EffectEstimates:
    """Everything that is requested."""
    model = view.model
    queries = Queries(encode_all(model.effect, matrix, 1))
    linear, linear_errors = estimate_linear(view, queries, request)
    levels = np.array(request.quantiles, dtype=np.float64)
    shape = (2, len(matrix), request.n_curve_times)
    if len(levels) == 0 and request.n_curve_times == 0:
        none = np.empty((2, len(matrix), 0))
        return EffectEstimates(linear, linear_errors, none, none[0], none)
    by_number = arm_curves(model, queries, 1)
    quantiles = np.stack(
        [column_times(model, quantile_columns(by_number[k], levels)) for k in view.arm_order]
    )
    errors = quantile_effect_errors(model, by_number, levels, queries, 1)
    curves = np.empty(shape)
    if request.n_curve_times:
        columns = model.grid.columns(view.times)
        for place, number in enumerate(view.arm_order):
            at_times = by_number[number][:, columns]
            is_known = (view.times <= model.ends[number]) | (at_times <= 0.0)
            curves[place] = np.where(is_known, at_times, np.nan)
    return EffectEstimates(linear, linear_errors, quantiles, errors, curves)


def estimate_linear(
    view: EffectView, queries: Queries, request: EffectRequest
) -> tuple[Floats, Floats]:
    """Times gained and differences of survival, with their standard errors."""
    model, end = view.model, view.model.ends.min()
    is_known = np.array([*request.horizons, *request.times], dtype=np.float64) <= end
    effects, errors = np.full((2, len(queries.codes), len(is_known)), np.nan)
    targets: list[LinearTarget] = [
        RestrictedMeans(horizon) for horizon in request.horizons if horizon <= end
    ]
    times = np.array([time for time in request.times if time <= end])
    if len(times):
        targets.append(SurvivalProbabilities(times, False))
    if targets:
        with np.errstate(over="ignore", invalid="ignore"):  # horizons may be near the largest float
            found = [effects_and_errors(model, target, queries, 1) for target in targets]
        effects[:, is_known], errors[:, is_known] = (
            np.hstack(each) for each in zip(*found, strict=True)
        )
    return effects, errors


def row_content(
    view: EffectView, estimates: EffectEstimates, i: int, request: EffectRequest
) -> dict[str, Any]:
    """Effects of row i."""
    width, bound = confidence_width(request.confidence), float(view.model.ends.min())
    linear = [
        effect_content(value, width * error, bound)
        for value, error in zip(
            estimates.linear[i].tolist(), estimates.linear_errors[i].tolist(), strict=True
        )
    ]
    n_horizons = len(request.horizons)
    quantiles = []
    for k, level in enumerate(request.quantiles):
        control, treatment = estimates.quantiles[:, i, k].tolist()
        difference = treatment - control if math.isfinite(treatment - control) else math.nan
        quantiles.append(
            {
                "level": level,
                **effect_content(difference, width * float(estimates.quantile_errors[i, k]), None),
                "control": time_content(control, float(view.last_times[0])),
                "treatment": time_content(treatment, float(view.last_times[1])),
            }
        )
    return {
        "time_gained": [
            {"horizon": horizon, **effect}
            for horizon, effect in zip(request.horizons, linear[:n_horizons], strict=True)
        ],
        "survival": [
            {"time": time, **effect}
            for time, effect in zip(request.times, linear[n_horizons:], strict=True)
        ],
        "quantiles": quantiles,
        "curves": None
        if request.n_curve_times == 0
        else {
            "control": round_all(estimates.curves[0, i]),
            "treatment": round_all(estimates.curves[1, i]),
        },
    }


def effect_content(value: float, half_width: float, bound: float | None) -> dict[str, Any]:
    """An effect with its interval; without a value, the bound of what is known, if there is one."""
    if not math.isfinite(value):
        if bound is not None and math.isinf(bound):
            bound = None
        reason = NOT_IDENTIFIABLE if bound is None else AFTER
        return {"value": None, "lower": None, "upper": None, "bound": bound, "reason": reason}
    if not math.isfinite(half_width):
        return {"value": value, "lower": None, "upper": None, "bound": None, "reason": NO_ERROR}
    return {
        "value": value,
        "lower": value - half_width,
        "upper": value + half_width,
        "bound": None,
        "reason": None,
    }
