"""Times at which curves are scored, probabilities at these times, and means over them."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.target import oriented
from cqrf._runtime.arguments import read_floats
from cqrf._survival.step_curves import StepCurves
from cqrf.metrics.ipcw import FLOOR, EvaluationRows

# Default times of the integrated Brier score: percentiles that bound them, and their number.
DEFAULT_RANGE = (0.1, 0.9)
N_TIMES = 50


def read_times(times: ArrayLike) -> NDArray[np.float64]:
    """Times to score at, as an array of one dimension without NaN."""
    at = np.atleast_1d(read_floats("times", times))
    if at.ndim > 1 or np.isnan(at).any():
        raise ValueError(f"times must be a list of numbers without NaN; found {times!r}.")
    return at


def read_range(times: ArrayLike) -> NDArray[np.float64]:
    """Times to integrate over: at least two, ascending."""
    at = read_times(times)
    if len(at) < 2 or not (np.diff(at) > 0).all():
        raise ValueError("times must be at least two, in ascending order.")
    return at


def default_times(rows: EvaluationRows) -> NDArray[np.float64]:
    """Evenly spaced times over DEFAULT_RANGE, oriented; a single one if all times are equal."""
    time = rows.time[rows.sample_weight > 0]
    first, last = np.quantile(time, DEFAULT_RANGE)
    if first >= min(last, rows.horizon):
        first, last = np.quantile(np.unique(np.minimum(time, rows.horizon)), DEFAULT_RANGE)
    return np.unique(np.linspace(first, last, N_TIMES))


def read_probabilities(
    name: str, predicted: ArrayLike | StepCurves, times: NDArray[np.float64], n: int
) -> NDArray[np.float64]:
    """Probabilities of shape (n, n_times), given as such or as step curves."""
    values = (
        predicted(times, "extend")
        if isinstance(predicted, StepCurves)
        else np.asarray(predicted, np.float64)
    )
    if values.shape != (n, len(times)):
        raise ValueError(
            f"{name} has shape {values.shape}; expected ({n}, {len(times)}): a row for "
            "each of y_test, a column for each time."
        )
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"{name} must be probabilities, from 0 to 1 and without NaN.")
    return values


def hide_beyond_horizon(
    scores: NDArray[np.float64], rows: EvaluationRows, times: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Scores with NaN at times beyond the horizon, of which the caller's caller is warned."""
    beyond = oriented(times, rows.censoring) >= rows.horizon
    if beyond.any():
        warnings.warn(
            f"{beyond.sum()} of {len(times)} times lie beyond the horizon "
            f"{oriented(rows.horizon, rows.censoring):g}, where fewer than {FLOOR:g} of the "
            "training rows are uncensored: their score is NaN.",
            stacklevel=3,
        )
        scores[beyond] = np.nan
    return scores


def average(scores: NDArray[np.float64], times: NDArray[np.float64]) -> float:
    """Mean over the times at which the score is known; NaN if these are fewer than two."""
    is_known = ~np.isnan(scores)
    if len(times) == 1 and is_known.all():
        warnings.warn(
            f"the test times are all {times[0]:g}: with no range to integrate over, the integrated "
            "Brier score is NaN.",
            stacklevel=3,
        )
    if is_known.sum() < 2:
        return np.nan
    return float(np.trapezoid(scores[is_known], times[is_known]) / np.ptp(times[is_known]))
