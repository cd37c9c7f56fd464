"""Conformity scores of the calibration rows, and the thresholds that are found from them.

A row is a *miss* at the threshold v if T < b_v(x) = the first t with S(t|x) <= v, which is the same
as S(T|x) > v: its score is S(T|x). Conventions:

- *Weights.* Sample weights are relative to that of an average unit, which is a row, or a cluster of
  rows. So a query has weight 1.
- *The query is counted as a miss*: (misses + 1) / (total + 1) must not exceed the allowed share.
- *The cutoff* c: misses are events strictly before c, and rows with C = c are observed up to c.
- *Delayed entry*: misses are counted in risk sets, see :func:`share_below_bounds`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._input.risk_sets import TOLERANCE
from cqrf._input.target import Target
from cqrf._survival.step_curves import StepCurves
from cqrf.metrics.ipcw import FLOOR

# Thresholds v that are tried where weights depend on v: with known C and the adaptive method, and
# with delayed entry.
THRESHOLDS = np.concatenate([1 - np.arange(1, 100) / 1000, 0.9 - np.arange(0, 180) / 200])
# Least G of rows at risk for upper ends: only the weights of events are truncated at FLOOR there,
# so that the share below a bound is rather under- than overestimated.
LEAST_AT_RISK = 0.001


class WeightedScores(NamedTuple):
    """Conformity scores of the calibration rows, from the largest, with cumulative weights.

    ``total_weight`` is the weight of all calibration rows, misses or not.
    """

    scores: NDArray[np.float64]
    cumulative_weight: NDArray[np.float64]
    total_weight: float

    def find_threshold(
        self, allowed: float, query_weight: NDArray[np.float64] | float = 1.0
    ) -> Any:
        """Smallest v with at most the allowed share of misses, the query counted as one.

        Infinite where there is none.
        """
        own = np.asarray(query_weight)
        whole = self.total_weight + own
        budget = allowed * whole - own + TOLERANCE * whole  # 1 - .9 is less than .1
        first_over = np.searchsorted(self.cumulative_weight, budget, side="right")
        values = np.append(self.scores, 0.0)[first_over]
        return np.where(budget < 0, np.inf, values)

    def find_upper_threshold(self, missed: float) -> float | None:
        """Largest v with T <= b_v(x) in at least the share 1 - missed; None if there is none.

        For scores S(T-|x), as T <= b_v(x) if S(T-|x) > v. The query is counted as above b_v(x).
        """
        needed = (1.0 - missed - TOLERANCE) * (self.total_weight + 1.0)
        enough = np.flatnonzero(self.cumulative_weight >= needed)
        return float(np.nextafter(self.scores[enough[0]], -1.0)) if len(enough) else None


class SharesByThreshold(NamedTuple):
    """Thresholds from the largest, and the share of times below the bound at each.

    The query is included: below lower bounds, and above upper ones. Shares do not decrease.
    """

    thresholds: NDArray[np.float64]
    shares: NDArray[np.float64]

    def find_threshold(
        self, allowed: float, query_weight: NDArray[np.float64] | float = 1.0
    ) -> Any:
        """Smallest v with at most the allowed share of misses; infinite where there is none."""
        n_allowed = np.searchsorted(self.shares, allowed + TOLERANCE, side="right")
        return np.asarray(np.append(np.inf, self.thresholds)[n_allowed])

    def find_upper_threshold(self, missed: float) -> float | None:
        """Largest v with at least the share 1 - missed; None if there is none."""
        first = int(np.searchsorted(self.shares, 1.0 - missed - TOLERANCE))
        return float(self.thresholds[first]) if first < len(self.shares) else None


Scores = WeightedScores | SharesByThreshold


class CalibrationRows(NamedTuple):
    """Calibration rows, all of positive weight.

    Attributes
    ----------
    target : Target
        Entry times are -inf in rows that are observed from the start.
    weight : ndarray of shape (n,)
        Sample weights relative to that of an average unit: 1 each without weights and groups.
    curves, censoring_curves : StepCurves
        S(.|x) and G(.|x); the second is None if nothing is censored.
    censoring_time : ndarray or None
        C, if it is known for every row.
    """

    target: Target
    weight: NDArray[np.float64]
    curves: StepCurves
    censoring_curves: StepCurves | None = None
    censoring_time: NDArray[np.float64] | None = None


def score_rows(rows: CalibrationRows, cutoff: float) -> tuple[Scores, Scores | None]:
    """Scores for lower and for upper bounds; None if upper ends are always infinite."""
    has_cutoff, knows_c = bool(np.isfinite(cutoff)), rows.censoring_time is not None
    if rows.target.entry is not None:
        return score_by_risk_sets(rows), score_upper_by_risk_sets(rows)
    if not knows_c:
        return score_by_ipcw(rows, cutoff), None if has_cutoff else score_upper(rows)
    return (score_up_to_cutoff(rows, cutoff) if has_cutoff else score_up_to_bounds(rows)), None


def censoring_survival_before(
    curves: StepCurves | None, times: NDArray[np.float64], least: float = FLOOR
) -> NDArray[np.float64]:
    """G(t-|x) = P(C >= t | x) of each row at its own time, if it is not below ``least``."""
    if curves is None:
        return np.ones(len(times))
    return np.maximum(curves.each(np.nextafter(times, -np.inf)), least)


def score_by_ipcw(rows: CalibrationRows, cutoff: float) -> WeightedScores:
    """Scores S(T|x) of the events before the cutoff, with weights 1 / G(T-|x)."""
    target = rows.target
    weight = weigh_events(rows) * (target.time < cutoff)
    return sort_scores(rows.curves.each(target.time), weight, float(rows.weight.sum()))


def score_upper(rows: CalibrationRows) -> WeightedScores:
    """Scores S(T-|x) of all events, with weights 1 / G(T-|x): for the upper end of intervals."""
    weight = weigh_events(rows)
    before = rows.curves.each(np.nextafter(rows.target.time, -np.inf))
    return sort_scores(before, weight, float(max(rows.weight.sum(), weight.sum())))


def weigh_events(rows: CalibrationRows) -> NDArray[np.float64]:
    """Sample weight over G(T-|x) of events, 0 for censored rows."""
    survival = censoring_survival_before(rows.censoring_curves, rows.target.time)
    return np.asarray(rows.weight * rows.target.event / survival)


def score_up_to_cutoff(rows: CalibrationRows, cutoff: float) -> WeightedScores:
    """Known C: rows with C >= cutoff c, with weights 1 / G(c-|x); misses are events before c."""
    target, n = rows.target, len(rows.target.time)
    assert rows.censoring_time is not None
    g = censoring_survival_before(rows.censoring_curves, np.full(n, cutoff))
    weight = rows.weight * (rows.censoring_time >= cutoff) / g
    total = float(weight.sum())
    weight = weight * (target.event & (target.time < cutoff))
    return sort_scores(rows.curves.each(target.time), weight, total)


def score_up_to_bounds(rows: CalibrationRows) -> SharesByThreshold:
    """Known C: for each v, rows with C >= b_v(x), with weights 1 / G(b_v(x)-|x)."""
    target = rows.target
    assert rows.censoring_time is not None
    shares = np.empty(len(THRESHOLDS))
    for k, v in enumerate(THRESHOLDS):
        bound = rows.curves.first_at_most(v)
        is_used = rows.censoring_time >= bound
        g = censoring_survival_before(rows.censoring_curves, np.where(is_used, bound, 0.0))
        weight = rows.weight * is_used / g
        # Both sums in the same order: the share is not above 1 by rounding.
        missed = (weight * (target.event & (target.time < bound))).sum()
        shares[k] = (missed + 1.0) / (weight.sum() + 1.0)
    return SharesByThreshold(THRESHOLDS, np.maximum.accumulate(shares))


def score_by_risk_sets(rows: CalibrationRows) -> SharesByThreshold:
    """Delayed entry: share of misses at each v, the query included."""
    total = rows.weight.sum()
    shares = share_below_bounds(rows)
    return SharesByThreshold(THRESHOLDS, (shares * total + 1.0) / (total + 1.0))


def score_upper_by_risk_sets(rows: CalibrationRows) -> SharesByThreshold:
    """Delayed entry: share of times that are at most the bound at each v, without the query."""
    total = rows.weight.sum()
    shares = share_below_bounds(rows, included=True)
    return SharesByThreshold(THRESHOLDS, shares * total / (total + 1.0))


def share_below_bounds(rows: CalibrationRows, included: bool = False) -> NDArray[np.float64]:
    """Product-limit estimate of P(T < b_v(x)) for each of THRESHOLDS; of T <= b_v(x) if included.

    From one threshold u to the next one v, the risk set holds the rows that have entered before
    b_u(x) and are under observation there. It tells which share of them has T below b_v(x). Rows
    at risk have the weight 1 / G(b_u(x)-|x), their events 1 / G(T-|x), as in IPCW. A row says
    nothing about times before its entry.
    """
    target = rows.target
    assert target.entry is not None
    is_below = np.less_equal if included else np.less
    least = LEAST_AT_RISK if included else FLOOR
    event_weight = weigh_events(rows)
    start = np.full(len(target.time), -np.inf)
    survival, shares = 1.0, np.empty(len(THRESHOLDS))
    for k, v in enumerate(THRESHOLDS):
        at_risk = (target.entry < start) | (target.entry == -np.inf)
        at_risk &= ~is_below(target.time, start)
        # Rows with T > b_u(x) are observed if C > b_u(x), those with T >= b_u(x) if C >= b_u(x).
        reached = np.where(included & np.isfinite(start), np.nextafter(start, np.inf), start)
        g = censoring_survival_before(rows.censoring_curves, reached, least)
        end = rows.curves.first_at_most(v)
        below = event_weight @ (at_risk & is_below(target.time, end))
        if below > 0:
            survival *= max(0.0, 1.0 - below / (at_risk * rows.weight / g).sum())
        shares[k] = 1.0 - survival
        start = end
    return shares


def sort_scores(
    scores: NDArray[np.float64], weight: NDArray[np.float64], total_weight: float
) -> WeightedScores:
    """Scores of the rows with positive weight, from the largest."""
    rows = np.flatnonzero(weight > 0)
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    return WeightedScores(scores[rows], np.cumsum(weight[rows]), total_weight)
