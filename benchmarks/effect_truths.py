"""Averages of doubly robust scores with the true nuisances, on simulated data.

No estimate of an average from the same rows can be expected to be nearer to the truth, so that what
these averages miss is the chance of the rows, and not an error of estimated nuisances.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr, pdtr

from cqrf._effects.response import Response, make_grid, make_response
from cqrf.datasets.treatment import TreatmentSimulation

# Least value of the true curves that are divided by; far below those of the estimates.
LEAST = 1e-6


class Average(NamedTuple):
    """An average effect and its standard error."""

    estimate: float
    standard_error: float


def not_censored_before(kind: str, X: np.ndarray, w: np.ndarray, time: Any) -> np.ndarray:
    """P(C >= time | x, w); the formulas are those of cqrf.datasets.treatment."""
    if kind in ("simple1", "type2"):
        return np.clip(1.0 - time / (2.0 if kind == "simple1" else 3.0), LEAST, 1.0) + 0.0 * w
    if kind == "type1":
        low, root = X[:, 0] < 0.5, np.sqrt(X[:, 1])
        log_rate = -1.75 - 0.5 * root + 0.2 * X[:, 2] + w * (1.15 + 0.5 * low - 0.3 * root)
        return np.exp(-np.exp(log_rate) * time**2)
    if kind in ("type3", "type4"):
        mean = (12.0 if kind == "type3" else 1.0) + np.log1p(np.exp(X[:, 2]))
        below = np.ceil(time) - 1.0
        return np.where(below < 0, 1.0, 1.0 - pdtr(np.maximum(below, 0.0), mean))
    if kind == "type5":
        log_time = np.log(np.maximum(time, LEAST))
        return np.exp(log_ndtr(X[:, 0] - w * X[:, 2] - log_time))
    if kind == "spread":
        return np.exp(-((time / np.exp(1.3 + 0.5 * X[:, 1])) ** 1.5))
    return np.exp(-((time / np.exp(0.9 + 0.8 * X[:, 3] - 0.5 * w)) ** 1.5))


def average_with_truths(
    data: TreatmentSimulation, cut_at: float | None, target: dict[str, Any]
) -> Average:
    """The average effect; ``cut_at`` is the horizon at which times are cut, or None."""
    X, w, e = data.X, data.treatment.astype(np.float64), data.propensity
    time = data.y["time"]
    grid = make_grid(time, data.y["event"])
    curves = [
        np.hstack([np.ones((len(w), 1)), data.true_survival(X, grid.times, arm)]) for arm in (0, 1)
    ]
    for curve in curves:
        curve[:, grid.begins >= (np.inf if cut_at is None else cut_at)] = 0.0
    own = np.where(w[:, np.newaxis] == 1, curves[1], curves[0])
    censoring = np.column_stack([not_censored_before(data.kind, X, w, t) for t in grid.times])
    at_own = not_censored_before(data.kind, X, w, time)
    response = make_response(grid, time, data.y["event"], own[:, 1:], censoring, at_own)
    responses, means = responses_and_means(response, curves, target)
    effect = data.true_effect(X, **target)
    pooled = e * means[1] + (1.0 - e) * means[0]
    scores = effect + (w - e) / (e * (1.0 - e)) * (responses - pooled - (w - e) * effect)
    return Average(float(scores.mean()), float(scores.std(ddof=1) / np.sqrt(len(w))))


def responses_and_means(
    response: Response, curves: list[np.ndarray], target: dict[str, Any]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Y* of each row, and the target in each arm."""
    grid = response.grid
    if target["target"] == "rmst":
        horizon = target["horizon"]
        return response.means(horizon), [grid.means(curve, horizon) for curve in curves]
    at = np.array([target["times"]])
    column = grid.columns(at)[0]
    return response.at(at)[:, 0], [curve[:, column] for curve in curves]
