"""U = F(T|x) of each row; its distribution, and its events in bins of levels.

The conventions are those of :mod:`cqrf.calibration`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cqrf._input.risk_sets import TOLERANCE, weigh_risk_sets
from cqrf._input.target import Target
from cqrf._survival.step_curves import StepCurves

LEVELS = np.arange(1, 100) / 100
# Rows that the Kaplan-Meier estimate must rest on at a level that is judged.
FEWEST_ROWS, SMALLEST_SHARE = 10, 0.1
# Bins with fewer expected events are joined with their neighbours.
FEWEST_EXPECTED = 5.0


def transform(curves: StepCurves, target: Target, censoring: str = "right") -> Target:
    """Probability integral transform F(Y|x) as a right-censored target; 1 - F(Y|x) from the left.

    The draws at ties come from a generator with seed 0.
    """
    survival = curves.each(target.time)
    before = curves.each(np.nextafter(target.time, -np.inf))
    within = survival + np.random.default_rng(0).random(len(survival)) * (before - survival)
    first, last = curves.offsets[:-1], curves.offsets[1:] - 1
    has_steps = last >= first
    event = target.event & has_steps
    if censoring == "right":
        beyond = target.time[has_steps] > curves.times[last[has_steps]]
        event[has_steps] &= ~(beyond & (curves.values[last[has_steps]] > 0))
        entry = None if target.entry is None else 1.0 - curves.each(target.entry)
        return Target(1.0 - np.where(event, within, survival), event, entry)
    beyond = target.time[has_steps] < curves.times[first[has_steps]]
    event[has_steps] &= ~(beyond & (curves.initial[has_steps] < 1))
    return Target(np.where(event, within, before), event)


class ShareBelow(NamedTuple):
    """Kaplan-Meier estimate of P(U <= p) on LEVELS, its band, and the rows it rests on."""

    below: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    n_rows: NDArray[np.float64]
    """Rows at risk over the estimated survival before the level."""


def estimate_share_below(
    target: Target, weight: NDArray[np.float64], confidence: float
) -> ShareBelow:
    """Kaplan-Meier estimate on LEVELS; NaN beyond the largest U unless it has reached 1."""
    times = np.unique(target.time[target.event])
    at_risk = weigh_risk_sets(target, weight, times)
    places = np.searchsorted(times, target.time[target.event])
    n_events = np.bincount(places, weight[target.event], len(times))
    survival = np.cumprod(1.0 - n_events / at_risk)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.cumsum(n_events / (at_risk * (at_risk - n_events)))
        spread = ndtri((1 + confidence) / 2) * np.sqrt(variance) / np.abs(np.log(survival))
        ends = survival ** np.exp(np.array([[1.0], [-1.0]]) * spread)
    ends = np.where(survival == 0, 0.0, ends)
    steps = [np.concatenate([[1.0], values]) for values in (survival, *ends)]
    n_before = np.searchsorted(times, LEVELS, side="right")
    above, lowest, highest = (values[n_before] for values in steps)
    shares = 1 - above, 1 - np.maximum(lowest, highest), 1 - np.minimum(lowest, highest)
    largest = target.time.max() if len(target.time) else -np.inf
    closed = len(survival) > 0 and survival[-1] == 0
    unknown = (largest < LEVELS) & (not closed)
    below, lower, upper = (np.where(unknown, np.nan, share) for share in shares)
    at = np.minimum(LEVELS, largest)  # beyond it no row is left, whatever the censoring
    just_before = steps[0][np.searchsorted(times, at, side="left")]
    left = weigh_risk_sets(target, weight, at)
    n_rows = np.divide(left, just_before, out=np.zeros(len(at)), where=just_before > 0)
    return ShareBelow(below, lower, upper, n_rows)


def find_last_known(estimate: ShareBelow, n_rows: float) -> float:
    """Last level at which the estimate rests on enough of all rows; 0 if there is none."""
    needed = max(SMALLEST_SHARE * n_rows, min(FEWEST_ROWS, n_rows))
    is_known = (estimate.n_rows >= needed * (1.0 - TOLERANCE)) & ~np.isnan(estimate.below)
    return float(LEVELS[np.flatnonzero(is_known)[-1]]) if is_known.any() else 0.0


def count_events(
    target: Target, weight: NDArray[np.float64], last: float, n_bins: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Edges of bins of U up to the last level, and the observed and expected events in each."""
    edges = np.linspace(0, 1, n_bins + 1)
    edges = np.append(edges[edges < last - TOLERANCE], last) if last > 0 else np.zeros(1)
    if len(edges) == 1:
        return edges, np.empty(0), np.empty(0)
    hazard = -np.log1p(-edges)  # cumulative

    def passed(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cumulative hazard of each row in each bin up to its value."""
        own = -np.log1p(-np.clip(values, 0.0, last))
        return np.diff(np.minimum(own[:, np.newaxis], hazard), axis=1)

    under_risk = passed(target.time)
    if target.entry is not None:
        under_risk -= passed(target.entry)
    expected = weight @ under_risk
    events, _ = np.histogram(target.time[target.event], edges, weights=weight[target.event])
    return join_bins(edges, events, expected)


def join_bins(
    edges: NDArray[np.float64], events: NDArray[np.float64], expected: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Join neighbouring bins, from the first, until each has FEWEST_EXPECTED events.

    What remains at the end joins the last such bin. There is one bin at least.
    """
    starts, total = [0], 0.0
    for k, more in enumerate(expected):
        if total >= FEWEST_EXPECTED:
            starts.append(k)
            total = 0.0
        total += more
    if len(starts) > 1 and total < FEWEST_EXPECTED:
        starts.pop()
    joined = np.append(edges[starts], edges[-1])
    return joined, np.add.reduceat(events, starts), np.add.reduceat(expected, starts)
