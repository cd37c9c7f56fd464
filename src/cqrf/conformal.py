"""Conformal prediction: lower bounds b(x) with P(T >= b(x)) >= coverage, for any distribution of T.

This is split conformal prediction with censored times:

1. One part of the rows fits the forest, which predicts S(t|x) = P(T > t | x).
2. The other part, the calibration rows, chooses a threshold v. The bound is
   b_v(x) = the first t with S(t|x) <= v. A row is a *miss* if T < b_v(x), which is the same as
   S(T|x) > v. So S(T|x) is the conformity score of a row.
3. A miss is observed only if the row is not censored before. It has the IPCW weight 1 / G(T-|x),
   where G(.|x) = P(C > . | x) comes from a second forest, whose events are the censorings.
4. Of all v whose weighted share of misses is at most 1 - coverage, we take the smallest: it gives
   the largest bounds. As usual, the query itself is counted as a miss.

Assumptions:

- Without censoring: exchangeable rows. P(T >= bound) >= coverage then holds for every n.
- With right censoring: also T and C independent given x, a consistent estimate of G, and G at least
  FLOOR at the bounds (smaller values are replaced by FLOOR). The coverage is then asymptotic.

``method="adaptive"`` (Gui, Hore, Ren and Barber 2024) counts misses up to each row's own bound, and
loses little where some rows are censored early. ``method="fixed"`` (Candes, Lei and Ren 2023)
counts them up to one cutoff c: bounds do not exceed c, and G is needed at c only. Both papers
assume that C is known for every row, as under administrative censoring: pass it as
``censoring_time``. Without it, C is known for censored rows only, and step 3 gives the weights.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import train_test_split
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted

from cqrf._input.target import Target, censored, read_target
from cqrf._runtime.arguments import read_choice, read_floats, read_fraction
from cqrf._survival.curves import StepCurves
from cqrf.estimator import CensoredQuantileForest
from cqrf.metrics.ipcw import FLOOR, censoring_target, estimate_censoring_survival

METHODS = ("adaptive", "fixed")
# Thresholds v that are tried with known C and the adaptive method, where weights depend on v.
THRESHOLDS = np.concatenate([1 - np.arange(1, 100) / 1000, 0.9 - np.arange(0, 180) / 200])
DEFAULT_CUTOFF_SHARE = 0.5


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
        budget = allowed * (self.total_weight + own) - own
        first_over = np.searchsorted(self.cumulative_weight, budget, side="right")
        values = np.append(self.scores, 0.0)[first_over]
        return np.where(budget < 0, np.inf, values)


class MissesByThreshold(NamedTuple):
    """Thresholds from the largest, and the share of misses at each, the query included.

    Shares do not decrease: each is the largest so far.
    """

    thresholds: NDArray[np.float64]
    shares: NDArray[np.float64]

    def find_threshold(
        self, allowed: float, query_weight: NDArray[np.float64] | float = 1.0
    ) -> Any:
        """Smallest v with at most the allowed share of misses; infinite where there is none."""
        n_allowed = np.searchsorted(self.shares, allowed, side="right")
        return np.asarray(np.append(np.inf, self.thresholds)[n_allowed])


class CalibrationRows(NamedTuple):
    """Calibration rows: target, curves S and G, and C if it is known for every row.

    ``censoring_curves`` is None if nothing is censored.
    """

    target: Target
    curves: StepCurves
    censoring_curves: StepCurves | None
    censoring_time: NDArray[np.float64] | None


class ConformalForest(BaseEstimator):
    """Forest with lower bounds of guaranteed coverage.

    Parameters
    ----------
    forest : CensoredQuantileForest, optional
        Forest to calibrate; a copy is fitted. Default: one with default settings.
    censoring_forest : CensoredQuantileForest, optional
        Forest of the censoring times, that is, of ``censoring_target(y)``. Default: one with
        default settings and the trees, threads and seed of ``forest``.
    coverage : float, default=0.9
        Probability that T is at least the bound.
    method : {"adaptive", "fixed"}
        Where misses are counted: up to each row's own bound, or up to one cutoff for all.
    cutoff : float, optional
        The cutoff of ``"fixed"``. Default: the median censoring time, from Kaplan-Meier.
    calibration_share : float, default=0.5
        Share of the rows that are held out from the forest for calibration.
    random_state : int, RandomState or None
        Seed of the split into both parts, and of forests without a seed.

    Attributes
    ----------
    forest_, censoring_forest_ : CensoredQuantileForest
        The forest, and that of the censoring times (None if nothing is censored).
    level_ : float
        The bound is the forest's quantile at this level (for a query of average weight, where
        weights depend on the query). Far from 1 - coverage: the forest alone is miscalibrated.

    Examples
    --------
    >>> from cqrf.conformal import ConformalForest
    >>> from cqrf.datasets import make_aft
    >>> train, test = make_aft(1000, random_state=0), make_aft(1000, random_state=1)
    >>> bounds = ConformalForest(random_state=0).fit(train.X, train.y).predict_lower(test.X)
    >>> bool(0.85 < (test.latent >= bounds).mean() < 0.95)
    True
    """

    def __init__(
        self,
        forest: CensoredQuantileForest | None = None,
        *,
        censoring_forest: CensoredQuantileForest | None = None,
        coverage: float = 0.9,
        method: str = "adaptive",
        cutoff: float | None = None,
        calibration_share: float = 0.5,
        random_state: Any = None,
    ) -> None:
        self.forest = forest
        self.censoring_forest = censoring_forest
        self.coverage = coverage
        self.method = method
        self.cutoff = cutoff
        self.calibration_share = calibration_share
        self.random_state = random_state

    def fit(self, X: Any, y: Any, censoring_time: ArrayLike | None = None) -> ConformalForest:
        """Fit the forests to one part of the rows, and calibrate on the other.

        ``censoring_time``: C of every row, where it is known for events too.
        """
        coverage = self._read_coverage()
        target = read_target(y)
        check_consistent_length(X, target.time)
        forest = self._read_forest(target)
        known = None
        if censoring_time is not None:
            known = read_censoring_time(censoring_time, target)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if forest.random_state is None and self.random_state is not None:
            forest = clone(forest).set_params(random_state=seed)
        split = {"test_size": self.calibration_share, "random_state": seed}
        rows, kept = train_test_split(np.arange(len(target.time)), **split)
        X_rows, X_kept = train_test_split(X, **split)
        train = target.take(rows)
        self.forest_ = clone(forest).fit(X_rows, censored(train.time, train.event))
        self.censoring_forest_ = None
        if not train.event.all():
            known_rows = None if known is None else known[rows]
            self.censoring_forest_ = self._fit_censoring(forest, X_rows, train, known_rows)
        self.cutoff_ = self._read_cutoff(train) if self.method == "fixed" else np.inf
        self._calibrate(
            CalibrationRows(
                target.take(kept),
                predict_curves(self.forest_, X_kept),
                self._predict_censoring(X_kept),
                None if known is None else known[kept],
            )
        )
        self.coverage_ = coverage
        self.level_ = 1.0 - min(1.0, float(self.lower_scores_.find_threshold(1.0 - coverage)))
        return self

    def predict_lower(self, X: Any) -> NDArray[np.float64]:
        """Bound that T reaches or exceeds with probability ``coverage``."""
        check_is_fitted(self)
        return self._lower(X, predict_curves(self.forest_, X), 1.0 - self.coverage_)

    def predict_interval(self, X: Any) -> NDArray[np.float64]:
        """Two-sided interval of shape (n, 2), with (1 - coverage) / 2 on each side.

        The upper end is infinite where it is not identifiable because of censoring; always so
        with ``method="fixed"`` and where ``censoring_time`` was given.
        """
        check_is_fitted(self)
        missed = (1.0 - self.coverage_) / 2
        curves = predict_curves(self.forest_, X)
        lower = self._lower(X, curves, missed)
        upper = np.full(len(lower), np.inf)
        if self.upper_scores_ is not None:
            # T <= b_v where S(T-|x) > v: the weight of these rows must be large enough.
            held = self.upper_scores_
            needed = (1 - missed) * (held.total_weight + 1.0)
            enough = np.flatnonzero(held.cumulative_weight >= needed)
            if len(enough):
                upper = curves.first_at_most(np.nextafter(held.scores[enough[0]], -1.0))
        return np.column_stack([lower, upper])

    def _lower(self, X: Any, curves: StepCurves, allowed: float) -> NDArray[np.float64]:
        """Lower bounds, missed with probability ``allowed``."""
        query_weight: NDArray[np.float64] | float = 1.0
        if self.weights_depend_on_query_:
            at = np.full(len(curves), self.cutoff_)
            query_weight = 1.0 / censoring_survival_before(self._predict_censoring(X), at)
        found = self.lower_scores_.find_threshold(allowed, query_weight)
        v = np.broadcast_to(found, len(curves))
        bound = curves.first_at_most(v)
        smallest = 0.0 if self.forest_.model_.rows.time[0] >= 0 else -np.inf
        # A curve that does not fall to v is identified up to its last step only, and not at all
        # where all neighbours are censored.
        last, has_steps = np.full(len(curves), smallest), np.diff(curves.offsets) > 0
        last[has_steps] = curves.times[curves.offsets[1:][has_steps] - 1]
        bound = np.where(np.isposinf(bound), last, bound)
        return np.where(v >= 1, smallest, np.minimum(bound, self.cutoff_))

    def _calibrate(self, rows: CalibrationRows) -> None:
        """Set the scores that thresholds are found from."""
        has_cutoff, knows_c = bool(np.isfinite(self.cutoff_)), rows.censoring_time is not None
        self.weights_depend_on_query_ = knows_c and has_cutoff
        self.upper_scores_ = None if knows_c or has_cutoff else score_upper(rows)
        self.lower_scores_: WeightedScores | MissesByThreshold
        if not knows_c:
            self.lower_scores_ = score_by_ipcw(rows, self.cutoff_)
        elif has_cutoff:
            self.lower_scores_ = score_up_to_cutoff(rows, self.cutoff_)
        else:
            self.lower_scores_ = score_up_to_bounds(rows)

    def _predict_censoring(self, X: Any) -> StepCurves | None:
        """G(.|x); None if nothing is censored."""
        if self.censoring_forest_ is None:
            return None
        return predict_curves(self.censoring_forest_, X)

    def _fit_censoring(
        self,
        forest: CensoredQuantileForest,
        X: Any,
        train: Target,
        censoring_time: NDArray[np.float64] | None,
    ) -> CensoredQuantileForest:
        """The forest of the censoring times; none of these is censored if all are known."""
        y = censoring_target(train)
        if censoring_time is not None:
            y = censored(censoring_time, np.full(len(censoring_time), True))
        shared = ("n_estimators", "n_jobs", "random_state")
        default = CensoredQuantileForest(**{name: getattr(forest, name) for name in shared})
        chosen = default if self.censoring_forest is None else clone(self.censoring_forest)
        return chosen.fit(X, y)

    def _read_coverage(self) -> float:
        """The coverage, with the other settings checked too."""
        coverage = read_fraction("coverage", self.coverage, 0.0, 1.0)
        if not 0 < coverage < 1:
            raise ValueError(f"coverage={self.coverage!r} must lie strictly between 0 and 1.")
        method = read_choice("method", self.method, METHODS)
        share = read_fraction("calibration_share", self.calibration_share, 0.0, 1.0)
        if not 0 < share < 1:
            raise ValueError(f"calibration_share={share:g} must lie strictly between 0 and 1.")
        if self.cutoff is not None and method != "fixed":
            raise ValueError(f'cutoff={self.cutoff!r} goes with method="fixed".')
        return coverage

    def _read_forest(self, target: Target) -> CensoredQuantileForest:
        """The forest to calibrate, checked with the target."""
        forest = CensoredQuantileForest() if self.forest is None else self.forest
        for name, given in (("forest", forest), ("censoring_forest", self.censoring_forest)):
            if given is not None and not isinstance(given, CensoredQuantileForest):
                raise ValueError(
                    f"{name} must be a CensoredQuantileForest; found {type(given).__name__}."
                )
        if forest.censoring != "right" or target.entry is not None:
            raise ValueError("ConformalForest takes right-censored times without delayed entry.")
        return forest

    def _read_cutoff(self, train: Target) -> float:
        """The given cutoff, or the first time with a Kaplan-Meier G below 1/2."""
        if self.cutoff is not None:
            cutoff = float(read_floats("cutoff", self.cutoff))
            if not np.isfinite(cutoff):
                raise ValueError(f"cutoff={self.cutoff!r} must be a finite time.")
            return cutoff
        curve = estimate_censoring_survival(train)
        below = curve.times[curve.values < DEFAULT_CUTOFF_SHARE]
        return float(below[0]) if len(below) else float(train.time.max())


def predict_curves(forest: CensoredQuantileForest, X: Any) -> StepCurves:
    """Survival curves of the rows of X."""
    curves = forest.predict_survival(X)
    assert isinstance(curves, StepCurves)
    return curves


def censoring_survival_before(
    curves: StepCurves | None, times: NDArray[np.float64]
) -> NDArray[np.float64]:
    """G(t-|x) = P(C >= t | x) of each row at its own time; at least FLOOR."""
    if curves is None:
        return np.ones(len(times))
    return np.maximum(curves.each(np.nextafter(times, -np.inf)), FLOOR)


def score_by_ipcw(rows: CalibrationRows, cutoff: float) -> WeightedScores:
    """Scores S(T|x) of the events before the cutoff, with weights 1 / G(T-|x)."""
    target = rows.target
    weight = target.event / censoring_survival_before(rows.censoring_curves, target.time)
    weight = weight * (target.time < cutoff)
    return sort_scores(rows.curves.each(target.time), weight, float(len(weight)))


def score_upper(rows: CalibrationRows) -> WeightedScores:
    """Scores S(T-|x) of all events, with weights 1 / G(T-|x): for the upper end of intervals."""
    target = rows.target
    weight = target.event / censoring_survival_before(rows.censoring_curves, target.time)
    before = rows.curves.each(np.nextafter(target.time, -np.inf))
    return sort_scores(before, weight, max(float(len(weight)), float(weight.sum())))


def score_up_to_cutoff(rows: CalibrationRows, cutoff: float) -> WeightedScores:
    """Known C: rows with C >= cutoff c, with weights 1 / G(c-|x); misses are events before c."""
    target, n = rows.target, len(rows.target.time)
    assert rows.censoring_time is not None
    g = censoring_survival_before(rows.censoring_curves, np.full(n, cutoff))
    weight = (rows.censoring_time >= cutoff) / g
    total = float(weight.sum())
    weight = weight * (target.event & (target.time < cutoff))
    return sort_scores(rows.curves.each(target.time), weight, total)


def score_up_to_bounds(rows: CalibrationRows) -> MissesByThreshold:
    """Known C: for each v, rows with C >= b_v(x), with weights 1 / G(b_v(x)-|x)."""
    target = rows.target
    assert rows.censoring_time is not None
    shares = np.empty(len(THRESHOLDS))
    for k, v in enumerate(THRESHOLDS):
        bound = rows.curves.first_at_most(v)
        is_used = rows.censoring_time >= bound
        g = censoring_survival_before(rows.censoring_curves, np.where(is_used, bound, 0.0))
        weight = is_used / g
        missed = weight @ (target.event & (target.time < bound))
        shares[k] = (missed + 1.0) / (weight.sum() + 1.0)
    return MissesByThreshold(THRESHOLDS, np.maximum.accumulate(shares))


def sort_scores(
    scores: NDArray[np.float64], weight: NDArray[np.float64], total_weight: float
) -> WeightedScores:
    """Scores of the rows with positive weight, from the largest."""
    rows = np.flatnonzero(weight > 0)
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    return WeightedScores(scores[rows], np.cumsum(weight[rows]), total_weight)


def read_censoring_time(censoring_time: ArrayLike, target: Target) -> NDArray[np.float64]:
    """C of every row, checked against the target."""
    times = read_floats("censoring_time", censoring_time)
    if times.shape != target.time.shape:
        raise ValueError(f"censoring_time has shape {times.shape}; expected {target.time.shape}.")
    if not np.isfinite(times).all():
        raise ValueError("censoring_time must be finite in every row.")
    if not (times >= target.time).all() or (times != target.time)[~target.event].any():
        raise ValueError(
            "censoring_time must equal the observed time where a row was censored, and not be "
            "below it where it had its event."
        )
    return times
