"""Cumulative incidence of competing causes: Aalen-Johansen curves from rows of weights.

F_k(t | x) = P(T <= t, cause k | x). With A_i the weight at risk just before row i, and S the
product-limit curve of the time to any event, an event of cause k at row i raises F_k by
S w_i / A_i: by as much as S falls. So S and the incidences of all causes add up to 1. At a tied
time events come before censorings, and events of different causes share the drop of S by weight.

Curves are right-continuous: the value at t includes what happens at t. They are known as far as S.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._forest.weights import Weights
from cqrf._input.causes import Cause, find_cause
from cqrf._input.risk_sets import TOLERANCE
from cqrf._runtime.compiling import kernel
from cqrf._survival.curves import CurveWork, RankedTarget, product_limit
from cqrf._survival.quantiles import Solution, curve_quantiles
from cqrf._survival.step_curves import StepCurves


@dataclass(frozen=True, eq=False)
class IncidenceCurves:
    """Cumulative incidence of every cause for each query; ``curves[cause]`` are StepCurves.

    Calling it with times gives an array of shape (n_queries, n_causes, n_times), with causes in
    the order of ``causes``.

    Examples
    --------
    >>> import numpy as np
    >>> from cqrf import CensoredQuantileForest, censored
    >>> rng = np.random.default_rng(0)
    >>> X, time = rng.uniform(size=(100, 2)), rng.exponential(size=100)
    >>> forest = CensoredQuantileForest(n_estimators=10, random_state=0)
    >>> forest = forest.fit(X, censored(time, rng.integers(0, 3, 100)))
    >>> curves = forest.predict_incidence(X[:5])
    >>> curves.causes
    (1, 2)
    >>> curves([0.5, 1.0]).shape
    (5, 2, 2)
    >>> curves[2][0].times.shape == curves[2][0].values.shape
    True
    """

    causes: tuple[Cause, ...]
    by_cause: tuple[StepCurves, ...]
    survival: StepCurves
    """Curves of P(T > t | x), free of any event."""

    def __len__(self) -> int:
        return len(self.survival)

    def __getitem__(self, cause: Cause) -> StepCurves:
        return self.by_cause[find_cause(cause, self.causes)]

    def __call__(self, times: ArrayLike, beyond: str = "nan") -> NDArray[np.float64]:
        """Values of every curve at the given times.

        Parameters
        ----------
        times : float or array-like
            Times, the same for all curves.
        beyond : {"nan", "extend"}
            Values after the last time at which a curve is known: NaN, or the flat line, which is
            not an estimate.

        Returns
        -------
        ndarray of shape (n_queries, n_causes, n_times), or (n_queries, n_causes) for a single time
        """
        return np.stack([curves(times, beyond) for curves in self.by_cause], axis=1)

    def quantiles(self, cause: Cause, levels: NDArray[np.float64]) -> Solution:
        """First times at which F_k reaches the levels.

        Parameters
        ----------
        cause : one of ``causes``
            The cause k.
        levels : ndarray of shape (n_levels,)
            Levels in (0, 1).

        Returns
        -------
        Solution
            Named tuple: ``values``, of shape (n_queries, n_levels), infinite where the incidence
            does not reach a level; ``last_neighbor``, the last time of each query.

        Examples
        --------
        >>> import numpy as np
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, *_ = datasets.make_competing_risks(200, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.predict_incidence(X[:2]).quantiles(1, np.array([0.1, 0.2])).values.round(1)
        array([[2. , 3.3],
               [1.5, 2.2]])
        """
        return curve_quantiles(_complement(self[cause]), levels)

    def time_lost(self, cause: Cause, horizon: ArrayLike, beyond: str = "nan") -> NDArray[Any]:
        """Mean time lost to a cause before the horizon: the integral of F_k up to it.

        Parameters
        ----------
        cause : one of ``causes``
            The cause k.
        horizon : float or array-like of shape (n_queries,)
            One time for all queries, or one for each.
        beyond : {"nan", "restrict", "extend"}
            As in :meth:`StepCurves.restricted_mean`.

        Returns
        -------
        ndarray of shape (n_queries,)

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, *_ = datasets.make_competing_risks(200, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.predict_incidence(X[:2]).time_lost(1, 4.0).round(1)
        array([0.5, 0.7])
        """
        curves = self[cause]
        horizons = np.full(len(self), horizon, dtype=np.float64)
        if beyond == "restrict":
            horizons = np.minimum(horizons, curves.end)
        return horizons - _complement(curves).restricted_mean(horizons, "right", beyond)

    def last(self, cause: Cause) -> NDArray[np.float64]:
        """F_k at the end of each curve: the largest level with a finite quantile.

        Parameters
        ----------
        cause : one of ``causes``
            The cause k.

        Returns
        -------
        ndarray of shape (n_queries,)
            NaN for a query without weights.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, *_ = datasets.make_competing_risks(200, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.predict_incidence(X[:2]).last(1).round(1)
        array([0.5, 0.8])
        """
        curves = self[cause]
        last = curves.each(np.full(len(self), np.inf))
        return np.where(np.isneginf(curves.end), np.nan, last)

    def given(self, times: ArrayLike) -> IncidenceCurves:
        """Incidence of each cause from t0 on, given that nothing has happened up to t0.

        Parameters
        ----------
        times : float or array-like of shape (n_queries,)
            t0: one time for all queries, or one for each.

        Returns
        -------
        IncidenceCurves
            Time counts from t0.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, *_ = datasets.make_competing_risks(200, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.predict_incidence(X[:1]).given(1.0)([1.0, 2.0]).round(1)
        array([[[0.1, 0.2],
                [0.1, 0.2]]])
        """
        at = np.broadcast_to(np.asarray(times, dtype=np.float64), len(self))
        survival = self.survival.given(at)
        free = self.survival.each(at)
        is_known = np.isneginf(survival.start)
        is_later = self.survival.times > np.repeat(
            np.where(is_known, at, np.inf), np.diff(self.survival.offsets)
        )
        lengths = np.diff(survival.offsets)
        by_cause = []
        for curves in self.by_cause:
            before, left = np.repeat(curves.each(at), lengths), np.repeat(free, lengths)
            shares = (curves.values[is_later] - before) / left
            by_cause.append(_like(survival, shares))
        return IncidenceCurves(self.causes, tuple(by_cause), survival)

    def with_index(self, index: Any) -> IncidenceCurves:
        """The same curves with labels of the queries, for frames.

        Parameters
        ----------
        index : pandas.Index or None
            A label for each query.

        Returns
        -------
        self

        Examples
        --------
        >>> import pandas as pd
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, *_ = datasets.make_competing_risks(200, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> curves = forest.predict_incidence(X[:2]).with_index(pd.Index(["a", "b"]))
        >>> curves[1].to_frame([2.0]).index.tolist()
        ['a', 'b']
        """
        for curves in (*self.by_cause, self.survival):
            object.__setattr__(curves, "index", index)
        return self

    @staticmethod
    def join(parts: Sequence[IncidenceCurves]) -> IncidenceCurves:
        """Join the curves of consecutive blocks of queries.

        Parameters
        ----------
        parts : sequence of IncidenceCurves
            The blocks, in order, with the same causes.

        Returns
        -------
        IncidenceCurves

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, *_ = datasets.make_competing_risks(200, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> curves = forest.predict_incidence(X[:2])
        >>> len(curves.join([curves, curves]))
        4
        """
        causes = parts[0].causes
        by_cause = [
            StepCurves.join([part.by_cause[k] for part in parts]) for k in range(len(causes))
        ]
        return IncidenceCurves(
            causes, tuple(by_cause), StepCurves.join([part.survival for part in parts])
        )

    def __repr__(self) -> str:
        names = ", ".join(repr(cause) for cause in self.causes)
        return f"IncidenceCurves({len(self)} rows, causes {names}, {self.survival!r})"


def _like(survival: StepCurves, values: NDArray[np.float64]) -> StepCurves:
    """Curves that rise from 0, with the steps and the range of survival curves."""
    nothing = np.zeros(len(survival))
    return StepCurves(
        survival.offsets,
        survival.times,
        values,
        nothing,
        survival.start,
        survival.end,
        survival.index,
    )


def _complement(curves: StepCurves) -> StepCurves:
    """1 - F, which falls like a survival curve."""
    return StepCurves(
        curves.offsets,
        curves.times,
        1.0 - curves.values,
        1.0 - curves.initial,
        curves.start,
        curves.end,
        curves.index,
    )


class IncidenceSteps(NamedTuple):
    """What the kernel writes: steps of S and of F_k for each query.

    offsets : (n_queries + 1,) int64; times, survival : (n_steps,) float64
    incidence : (n_causes, n_steps) float64; end : (n_queries,) float64, last known time
    """

    offsets: NDArray[np.int64]
    times: NDArray[np.float64]
    survival: NDArray[np.float64]
    incidence: NDArray[np.float64]
    end: NDArray[np.float64]


def incidence_curves(
    weights: Weights,
    target: RankedTarget,
    cause: NDArray[np.uint8],
    causes: tuple[Cause, ...],
) -> IncidenceCurves:
    """Aalen-Johansen curves for each row of weights.

    cause : number of each training row's cause, by rank; causes : their names
    """
    n_queries, capacity = len(weights.offsets) - 1, len(weights.ranks)
    longest = np.diff(weights.offsets).max(initial=0)
    work = CurveWork._make(np.empty((3, longest + 1)))
    steps = IncidenceSteps(
        np.zeros(n_queries + 1, np.int64),
        np.empty(capacity),
        np.empty(capacity),
        np.empty((len(causes), capacity)),
        np.empty(n_queries),
    )
    running = np.empty(len(causes))
    n = _write_incidence(weights, target._replace(weight=None), cause, work, running, steps)
    everywhere = np.full(n_queries, np.inf)
    survival = StepCurves(
        steps.offsets,
        steps.times[:n].copy(),
        steps.survival[:n].copy(),
        np.ones(n_queries),
        -everywhere,
        steps.end,
    )
    by_cause = [_like(survival, of_cause[:n].copy()) for of_cause in steps.incidence]
    return IncidenceCurves(causes, tuple(by_cause), survival)


@kernel
def _write_incidence(weights, target, cause, work, running, steps):
    """Write the steps of the curves of each query; return their number.

    weights : Weights; target : RankedTarget; cause : uint8 by rank; work : CurveWork
    running : (n_causes,) float64, work array; steps : IncidenceSteps, written

    A step is a distinct time of an event.
    """
    offsets, time, event = weights.offsets, target.time, target.event
    times, incidence, end = steps.times, steps.incidence, steps.end
    survival = work.survival
    at = 0
    for q in range(offsets.shape[0] - 1):
        ranks = weights.ranks[offsets[q] : offsets[q + 1]]
        values = weights.values[offsets[q] : offsets[q + 1]]
        product_limit(
            ranks,
            values,
            event,
            target.first_at_risk,
            work.at_risk,
            survival,
            work.censoring_survival,
        )
        end[q] = -np.inf
        before = 1.0
        for k in range(running.shape[0]):
            running[k] = 0.0
        for i in range(ranks.shape[0]):
            if values[i] > 0.0:
                end[q] = time[ranks[i]] if survival[i] > TOLERANCE else np.inf
            if not event[ranks[i]]:
                continue
            running[cause[ranks[i]] - 1] += before - survival[i]
            before = survival[i]
            if at > steps.offsets[q] and times[at - 1] == time[ranks[i]]:
                at -= 1
            times[at] = time[ranks[i]]
            steps.survival[at] = before
            for k in range(running.shape[0]):
                incidence[k, at] = running[k]
            at += 1
        steps.offsets[q + 1] = at
    return at
