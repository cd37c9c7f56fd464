"""Curves that pages draw: the levels they show, the axis of time, the marginal curve."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cqrf._input.target import Target, rank_target
from cqrf._survival.curves import RankedTarget, as_curves, step_curves
from cqrf._survival.innermost import number_ends
from cqrf._survival.interval_curves import interval_steps
from cqrf._survival.step_curve import StepCurve
from cqrf._survival.step_curves import StepCurves
from cqrf.metrics.ipcw import marginal_weights

SHOWN_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)


def time_range(time: NDArray[np.float64]) -> tuple[float, float]:
    """Ends of the axis of time: from 0 if the first time is less than twice the span from 0."""
    low, high = float(time.min()), float(time.max())
    if 0 <= low <= 2 * (high - low):
        low = 0.0
    if low == high:
        pad = abs(low) / 2 or 1.0
        return low - pad, high + pad
    return low, high


def marginal_curve(target: Target, censoring: str, *, of_censoring: bool = False) -> StepCurve:
    """Survival curve of the event time of a table, or of its censoring time.

    Interval-censored rows have no censoring time: its curve is then empty.
    """
    ranked, order = rank_target(target, censoring)
    if ranked.lower is not None:
        if of_censoring:
            return StepCurve(np.empty(0), np.empty(0))
        steps = interval_steps(marginal_weights(None, len(order)), number_ends(ranked))
        return as_curves(steps.at_right(), "right")[0]
    return step_curves(
        marginal_weights(None, len(order)),
        RankedTarget.of(ranked),
        of_censoring=of_censoring,
        censoring=censoring,
    )[0]


def marginal_lower_curve(target: Target) -> StepCurve | None:
    """With intervals, the smallest survival curve that fits as well as ``marginal_curve``."""
    if target.lower is None:
        return None
    ranked, order = rank_target(target, "right")
    steps = interval_steps(marginal_weights(None, len(order)), number_ends(ranked))
    return as_curves(steps.at_left(), "right")[0]


def thin_curve(curve: StepCurve, max_steps: int) -> StepCurve:
    """Keep at most ``max_steps`` steps, at even heights, with the first and the last."""
    n = len(curve.times)
    if n <= max_steps:
        return curve
    heights = np.linspace(curve.values[0], curve.values[-1], max_steps)
    found = np.searchsorted(-curve.values, -heights, side="left")
    kept = np.unique(np.append(found.clip(0, n - 1), [0, n - 1]))
    if len(kept) > max_steps:
        kept = np.delete(kept, len(kept) // 2)
    return replace(curve, times=curve.times[kept], values=curve.values[kept])


def take_curves(curves: StepCurves, rows: NDArray[np.intp]) -> StepCurves:
    """Curves of some of the queries, in the order of ``rows``."""
    lengths = np.diff(curves.offsets)[rows]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    steps = np.arange(offsets[-1]) + np.repeat(curves.offsets[rows] - offsets[:-1], lengths)
    return StepCurves(
        offsets,
        curves.times[steps],
        curves.values[steps],
        curves.initial[rows],
        curves.start[rows],
        curves.end[rows],
    )
