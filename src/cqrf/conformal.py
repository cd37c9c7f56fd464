"""Conformal bounds: times that T exceeds with a promised probability, whatever its distribution.

One part of the rows grows the forest, the other finds how far down its survival curve S(.|x) the
bound may lie. The bound b_v(x), the first time with S(t|x) <= v, is missed where T < b_v(x), that
is, where S(T|x) > v. A row's miss is seen only if censoring let it be, so it is weighed by one over
the probability of that, from G(.|x) of a second forest whose events are the censorings. Of all v
whose weighted share of misses is allowed, the smallest gives the largest bounds.

What the promise rests on:

- Nothing censored: exchangeable rows, and nothing else. P(T >= bound) >= coverage at every n.
- Right censoring: also that T and C are independent given x, that G is estimated well, and that it
  is at least FLOOR wherever a row is asked (below, weights are cut there). Then the coverage tends
  to what was promised as rows are added.

``method="adaptive"`` asks each row up to its own bound (Gui, Hore, Ren and Barber 2024), and so
loses little where some rows are censored early. ``"fixed"`` asks all rows up to one cut-off c
(Candes, Lei and Ren 2023): the bound is never above c, and G matters at c only. Both papers take
C to be known for every row, as where a study ends on a fixed day: give it as ``censoring_time``.
Without it, where C is seen for censored rows only, a miss is weighed by 1 / G at its own time.
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
# Values of v that are tried where who counts depends on them: C known, adaptive.
GRID = np.concatenate([1 - np.arange(1, 100) / 1000, 0.9 - np.arange(0, 180) / 200])
DEFAULT_CUTOFF_SHARE = 0.5


class Misses(NamedTuple):
    """How much is missed at each v: rows by falling score, with the weight missed so far.

    ``total`` is the weight of all rows that count.
    """

    scores: NDArray[np.float64]
    missed: NDArray[np.float64]
    total: float

    def find(self, allowed: float, own_weight: NDArray[np.float64] | float = 1.0) -> Any:
        """Smallest v that misses an allowed share, the weight of the query counted as missed.

        Above 1 where no v does.
        """
        budget = allowed * (self.total + own_weight) - own_weight
        first_over = np.searchsorted(self.missed, budget, side="right")
        values = np.append(self.scores, 0.0)[first_over]
        return np.where(budget < 0, np.inf, values)


class GridMisses(NamedTuple):
    """Share missed at some falling values of v, and at all larger ones, the query's own added."""

    values: NDArray[np.float64]
    shares: NDArray[np.float64]

    def find(self, allowed: float, own_weight: NDArray[np.float64] | float = 1.0) -> Any:
        """Smallest of the values that misses an allowed share; above 1 where none does."""
        n_allowed = np.searchsorted(self.shares, allowed, side="right")
        return np.asarray(np.append(np.inf, self.values)[n_allowed])


class ConformalForest(BaseEstimator):
    """Forest whose lower bounds hold with a promised probability.

    Parameters
    ----------
    forest : CensoredQuantileForest, optional
        Forest to calibrate; a copy is fitted. Default: one with default settings.
    censoring_forest : CensoredQuantileForest, optional
        Forest of the censoring times, that is, of ``censoring_target(y)``. Default: one with
        default settings and the trees, threads and seed of ``forest``.
    coverage : float, default=0.9
        Promised probability that T is at least the bound.
    method : {"adaptive", "fixed"}
        Cut-off that each row is asked up to: its own quantile, or one for all.
    cutoff : float, optional
        The cut-off of ``"fixed"``. Default: the time by which half of the subjects would be
        censored, from Kaplan-Meier.
    calibration_share : float, default=0.5
        Share of the rows kept from the forest to find the level.
    random_state : int, RandomState or None
        Seed of the split into both parts, and of forests that have none of their own.

    Attributes
    ----------
    forest_, censoring_forest_ : CensoredQuantileForest
        The forest, and that of the censoring times (None if nothing is censored).
    level_ : float
        Level of the forest's quantile that is the bound (of a row of average weight, where
        weights enter). Far from 1 - coverage: the forest alone would be off.

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
        """Grow the forests on one part of the rows and find the bounds on the other.

        ``censoring_time``: C of every row, where it is known for events too.
        """
        coverage = read_fraction("coverage", self.coverage, 0.0, 1.0)
        if not 0 < coverage < 1:
            raise ValueError(f"coverage={self.coverage!r} must lie strictly between 0 and 1.")
        method = read_choice("method", self.method, METHODS)
        share = read_fraction("calibration_share", self.calibration_share, 0.0, 1.0)
        if not 0 < share < 1:
            raise ValueError(f"calibration_share={share:g} must lie strictly between 0 and 1.")
        if self.cutoff is not None and method != "fixed":
            raise ValueError(f'cutoff={self.cutoff!r} goes with method="fixed".')
        forest = CensoredQuantileForest() if self.forest is None else self.forest
        for name, given in (("forest", forest), ("censoring_forest", self.censoring_forest)):
            if given is not None and not isinstance(given, CensoredQuantileForest):
                raise ValueError(
                    f"{name} must be a CensoredQuantileForest; found {type(given).__name__}."
                )
        target = read_target(y)
        check_consistent_length(X, target.time)
        if forest.censoring != "right" or target.entry is not None:
            raise ValueError("ConformalForest takes right-censored times without delayed entry.")
        known = None
        if censoring_time is not None:
            known = read_censoring_time(censoring_time, target)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if forest.random_state is None and self.random_state is not None:
            forest = clone(forest).set_params(random_state=seed)
        split = {"test_size": share, "random_state": seed}
        rows, kept = train_test_split(np.arange(len(target.time)), **split)
        X_rows, X_kept = train_test_split(X, **split)
        train = target.take(rows)
        self.forest_ = clone(forest).fit(X_rows, censored(train.time, train.event))
        self.censoring_forest_ = None
        if not train.event.all():
            of_censoring = censoring_target(train)
            if known is not None:  # every C is seen: nothing is censored about it
                of_censoring = censored(known[rows], np.full(len(rows), True))
            shared = ("n_estimators", "n_jobs", "random_state")
            default = CensoredQuantileForest(**{name: getattr(forest, name) for name in shared})
            chosen = default if self.censoring_forest is None else clone(self.censoring_forest)
            self.censoring_forest_ = chosen.fit(X_rows, of_censoring)
        self.cutoff_ = self._read_cutoff(train) if method == "fixed" else np.inf
        self.misses_ = self._calibrate(
            X_kept, target.take(kept), None if known is None else known[kept]
        )
        self.coverage_ = coverage
        self.level_ = 1.0 - min(1.0, float(self.misses_.find(1.0 - coverage)))
        return self

    def predict_lower(self, X: Any) -> NDArray[np.float64]:
        """Bound that T reaches or exceeds with probability ``coverage``."""
        check_is_fitted(self)
        return self._lower(X, 1.0 - self.coverage_)

    def predict_interval(self, X: Any) -> NDArray[np.float64]:
        """Two-sided interval of shape (n, 2), each side missed half as often as allowed.

        The upper end is infinite where censoring leaves too little to find it; always so with
        ``method="fixed"`` and where ``censoring_time`` was given.
        """
        check_is_fitted(self)
        missed = (1.0 - self.coverage_) / 2
        lower = self._lower(X, missed)
        upper = np.full(len(lower), np.inf)
        if self.held_ is not None:
            # T <= b_v where S(T-) > v: enough rows must be held.
            enough = np.flatnonzero(self.held_.missed >= (1 - missed) * (self.held_.total + 1.0))
            if len(enough):
                v = np.nextafter(self.held_.scores[enough[0]], -1.0)
                upper = self._curves(X).first_at_most(v)
        return np.column_stack([lower, upper])

    def _lower(self, X: Any, allowed: float) -> NDArray[np.float64]:
        curves = self._curves(X)
        own_weight: NDArray[np.float64] | float = 1.0
        if self.weighs_queries_:
            own_weight = 1.0 / self._uncensored(X, np.full(len(curves), self.cutoff_))
        v = np.broadcast_to(self.misses_.find(allowed, own_weight), len(curves))
        bound = curves.first_at_most(v)
        smallest = 0.0 if self.forest_.model_.rows.time[0] >= 0 else -np.inf
        # A curve that never comes down so far: T exceeds all that the forest can tell, which is
        # nothing where all neighbours are censored.
        last, has_steps = np.full(len(curves), smallest), np.diff(curves.offsets) > 0
        last[has_steps] = curves.times[curves.offsets[1:][has_steps] - 1]
        bound = np.where(np.isposinf(bound), last, bound)
        return np.where(v >= 1, smallest, np.minimum(bound, self.cutoff_))

    def _calibrate(
        self, X: Any, target: Target, censoring_time: NDArray[np.float64] | None
    ) -> Misses | GridMisses:
        curves = self._curves(X)
        n = len(target.time)
        self.weighs_queries_ = censoring_time is not None and bool(np.isfinite(self.cutoff_))
        self.held_ = None
        if censoring_time is None:
            weight = target.event / self._uncensored(X, target.time)
            if np.isinf(self.cutoff_):
                before = curves.each(np.nextafter(target.time, -np.inf))
                self.held_ = count_misses(before, weight, max(float(n), float(weight.sum())))
            weight = weight * (target.time < self.cutoff_)
            return count_misses(curves.each(target.time), weight, float(n))
        if self.weighs_queries_:
            counts = censoring_time >= self.cutoff_
            weight = counts / self._uncensored(X, np.full(n, self.cutoff_))
            total = float(weight.sum())
            weight = weight * (target.event & (target.time < self.cutoff_))
            return count_misses(curves.each(target.time), weight, total)
        shares = np.empty(len(GRID))
        for k, v in enumerate(GRID):
            bound = curves.first_at_most(v)
            counts = censoring_time >= bound
            weight = counts / self._uncensored(X, np.where(counts, bound, 0.0))
            missed = weight @ (target.event & (target.time < bound))
            shares[k] = (missed + 1.0) / (weight.sum() + 1.0)
        return GridMisses(GRID, np.maximum.accumulate(shares))

    def _curves(self, X: Any) -> StepCurves:
        curves = self.forest_.predict_survival(X)
        assert isinstance(curves, StepCurves)
        return curves

    def _uncensored(self, X: Any, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(C >= t | x) of each row at a time of its own; at least FLOOR."""
        if self.censoring_forest_ is None:
            return np.ones(len(times))
        curves = self.censoring_forest_.predict_survival(X)
        assert isinstance(curves, StepCurves)
        return np.maximum(curves.each(np.nextafter(times, -np.inf)), FLOOR)

    def _read_cutoff(self, train: Target) -> float:
        if self.cutoff is not None:
            cutoff = float(read_floats("cutoff", self.cutoff))
            if not np.isfinite(cutoff):
                raise ValueError(f"cutoff={self.cutoff!r} must be a finite time.")
            return cutoff
        curve = estimate_censoring_survival(train)
        rare = curve.times[curve.values < DEFAULT_CUTOFF_SHARE]
        return float(rare[0]) if len(rare) else float(train.time.max())


def count_misses(scores: NDArray[np.float64], weight: NDArray[np.float64], total: float) -> Misses:
    """Rows with weight by falling score, and the weight of each and all before it."""
    rows = np.flatnonzero(weight > 0)
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    return Misses(scores[rows], np.cumsum(weight[rows]), total)


def read_censoring_time(censoring_time: ArrayLike, target: Target) -> NDArray[np.float64]:
    """C of every row, checked against what was observed."""
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
