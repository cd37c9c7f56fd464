"""Product-limit curves from rows of weights.

A row of weights is in time order, with events before censorings at a tied time. Let A_i be the
weight at risk just before row i. An event multiplies the survival S of T by 1 - w_i / A_i; a
censoring multiplies the survival G of C. Row by row this equals the grouped rule at ties: S drops
by d_event / at_risk, G by d_censored / (at_risk - d_event). Without late entry, S G is the weight
still at risk, so that S_n(q) = G(q) (1 - tau - S(q)).

All curves are right-continuous: the value at t includes what happens at t. Under left censoring
the product runs over negated times and the result is mirrored: curves are P(T > t) and P(C > t) in
either case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._forest.weights import Weights
from cqrf._input.risk_sets import first_at_risk, subtract_not_entered
from cqrf._input.target import Target
from cqrf._runtime.compiling import kernel


class RankedTarget(NamedTuple):
    """Training rows by rank, as curves and quantiles read them; times oriented to the right."""

    time: NDArray[np.float64]
    event: NDArray[np.bool_]
    first_at_risk: NDArray[np.int32] | None = None
    """First rank at which each row is at risk; None if no row enters late."""
    weight: NDArray[np.floating] | None = None
    """Sample weight of each row; None if all are equal."""

    @staticmethod
    def of(target: Target, weight: NDArray[np.floating] | None = None) -> RankedTarget:
        """From a target in time order, as ``rank_target`` gives it."""
        return RankedTarget(target.time, target.event, first_at_risk(target), weight)


@dataclass(frozen=True, eq=False)
class StepCurve:
    """A right-continuous step function: ``initial`` before the first of ``times``.

    Examples
    --------
    >>> from cqrf import StepCurve
    >>> curve = StepCurve(times=[1.0, 3.0], values=[0.6, 0.2])
    >>> curve([0.5, 1.0, 2.9, 3.0]).tolist()
    [1.0, 0.6, 0.6, 0.2]
    """

    times: NDArray[np.float64]
    values: NDArray[np.float64]
    initial: float = 1.0

    def __call__(self, times: ArrayLike) -> NDArray[np.float64]:
        """Values at the given times."""
        steps = np.concatenate([[self.initial], self.values])
        return steps[np.searchsorted(self.times, times, side="right")]


@dataclass(frozen=True, eq=False)
class StepCurves:
    """One step curve per query; ``curves[i]`` is a :class:`StepCurve`.

    Calling it with times gives an array of shape (n_queries, n_times).
    """

    offsets: NDArray[np.int64]
    times: NDArray[np.float64]
    values: NDArray[np.float64]
    initial: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, query: int) -> StepCurve:
        query = range(len(self))[query]
        steps = slice(self.offsets[query], self.offsets[query + 1])
        return StepCurve(self.times[steps], self.values[steps], float(self.initial[query]))

    def __iter__(self) -> Iterator[StepCurve]:
        return (self[query] for query in range(len(self)))

    def __call__(self, times: ArrayLike) -> NDArray[np.float64]:
        """Values of every curve at the given times; shape (n_queries,) for a single time."""
        at = np.asarray(times, dtype=np.float64)
        if at.ndim > 1 or np.isnan(at).any():
            raise ValueError(f"times must be a list of numbers without NaN; found {times!r}.")
        if at.ndim == 0:
            return self(at[np.newaxis])[:, 0]
        order = np.argsort(at, kind="stable")
        ascending, values = np.empty((2, len(self), len(at)))
        _evaluate(self.offsets, self.times, self.values, self.initial, at[order], ascending)
        values[:, order] = ascending
        return values

    def each(self, times: ArrayLike) -> NDArray[np.float64]:
        """Value of every curve at a time of its own."""
        at = np.asarray(times, dtype=np.float64)
        if at.shape != (len(self),) or np.isnan(at).any():
            raise ValueError(f"times must be {len(self)} numbers without NaN, one for each curve.")
        values = np.empty(len(self))
        _evaluate_each(self.offsets, self.times, self.values, self.initial, at, values)
        return values

    def first_at_most(self, values: ArrayLike) -> NDArray[np.float64]:
        """First time at which each curve is at most a value of its own; inf if it never is."""
        bounds = np.broadcast_to(np.asarray(values, dtype=np.float64), len(self))
        times = np.empty(len(self))
        _first_at_most(self.offsets, self.times, self.values, self.initial, bounds, times)
        return times

    def restricted_mean(self, horizon: float, censoring: str = "right") -> NDArray[np.float64]:
        """E[min(T, horizon)] of each survival curve; E[max(T, horizon)] under left censoring.

        Probability that a curve leaves above 0 (below 1 at its start, under left censoring) is
        placed at the horizon.
        """
        from_left, means = censoring == "left", np.empty(len(self))
        _restricted_mean(
            self.offsets, self.times, self.values, self.initial, horizon, from_left, means
        )
        return means

    @staticmethod
    def join(parts: list[StepCurves]) -> StepCurves:
        """Join the curves of consecutive blocks of queries."""
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        return StepCurves(
            np.concatenate([[0], np.cumsum(lengths)]),
            np.concatenate([part.times for part in parts]),
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.initial for part in parts]),
        )


class Steps(NamedTuple):
    """Steps of one curve per query: those of curve q are ``offsets[q] : offsets[q + 1]``."""

    offsets: NDArray[np.int64]
    times: NDArray[np.float64]
    values: NDArray[np.float64]


class CurveWork(NamedTuple):
    """Work arrays of :func:`product_limit` for the longest row of n weights, (n + 1,) float64."""

    at_risk: NDArray[np.float64]
    survival: NDArray[np.float64]
    censoring_survival: NDArray[np.float64]


def step_curves(
    weights: Weights,
    target: RankedTarget,
    *,
    of_censoring: bool = False,
    censoring: str = "right",
) -> StepCurves:
    """Survival of T, or of C, for each row of weights."""
    n_queries = len(weights.offsets) - 1
    longest = np.diff(weights.offsets).max(initial=0)
    work = CurveWork._make(np.empty((3, longest + 1)))
    times, values = np.empty((2, len(weights.ranks)))
    steps = Steps(np.zeros(n_queries + 1, np.int64), times, values)
    # Curves need no sample weights: without them there is one compiled kernel less.
    n = _write_steps(weights, target._replace(weight=None), of_censoring, work, steps)
    times, values = times[:n].copy(), values[:n].copy()
    if censoring == "right":
        return StepCurves(steps.offsets, times, values, np.ones(n_queries))
    mirrored = Steps(steps.offsets, np.empty(n), np.empty(n))
    initial = np.empty(n_queries)
    _mirror(Steps(steps.offsets, times, values), mirrored, initial)
    return StepCurves(steps.offsets, mirrored.times, mirrored.values, initial)


@kernel
def weight_at_risk(ranks, weights, first_at_risk, at_risk, absent):
    """Write the weight at risk just before each row.

    ranks : (n,) int32, ascending; weights : (n,) float64
        The rows of a query and their weights.
    first_at_risk : int32 by rank, or None
        First rank at which each training row is at risk; None if no row enters late.
    at_risk : (n + 1,) float64 or longer, written
        The entry behind all rows is 0.
    absent : (n,) float64 or longer, work array
    """
    n = ranks.shape[0]
    at_risk[n] = 0.0
    remaining = 0.0
    for i in range(n - 1, -1, -1):
        remaining += weights[i]
        at_risk[i] = remaining
    if first_at_risk is not None:
        subtract_not_entered(ranks, weights, first_at_risk, at_risk, absent)


@kernel
def product_limit(ranks, weights, event, first_at_risk, at_risk, survival, censoring_survival):
    """Write S and G after each row; arguments as for :func:`weight_at_risk`.

    event : bool by rank
    survival, censoring_survival : (n,) float64 or longer, written
    """
    weight_at_risk(ranks, weights, first_at_risk, at_risk, survival)
    s, g = 1.0, 1.0
    for i in range(ranks.shape[0]):
        if weights[i] > 0.0:
            stays = 1.0 - weights[i] / at_risk[i]
            if first_at_risk is None:
                stays = at_risk[i + 1] / at_risk[i]
            if event[ranks[i]]:
                s *= stays
            else:
                g *= stays
        survival[i] = s
        censoring_survival[i] = g


@kernel
def _write_steps(weights, target, of_censoring, work, steps):
    """Write the steps of one curve per query; return their number.

    weights : Weights; target : RankedTarget; work : CurveWork
    steps : Steps, written; as many times and values as there are weights are enough

    A step is a distinct time of an event, or of a censoring if ``of_censoring``.
    """
    offsets, time, event = weights.offsets, target.time, target.event
    step_offsets, times, values = steps.offsets, steps.times, steps.values
    at_risk, survival, censoring_survival = work.at_risk, work.survival, work.censoring_survival
    at = 0
    for q in range(offsets.shape[0] - 1):
        row = weights.ranks[offsets[q] : offsets[q + 1]]
        row_weights = weights.values[offsets[q] : offsets[q + 1]]
        product_limit(
            row, row_weights, event, target.first_at_risk, at_risk, survival, censoring_survival
        )
        curve = censoring_survival if of_censoring else survival
        for i in range(row.shape[0]):
            if event[row[i]] == of_censoring:
                continue
            if at > step_offsets[q] and times[at - 1] == time[row[i]]:
                at -= 1
            times[at] = time[row[i]]
            values[at] = curve[i]
            at += 1
        step_offsets[q + 1] = at
    return at


@kernel
def _mirror(steps, mirrored, initial):
    """Write P(-V > t) = 1 - P(V >= -t), from curves of P(V > t).

    steps, mirrored : Steps, the second written; initial : (n_queries,) float64, written
    """
    offsets, times, values = steps.offsets, steps.times, steps.values
    for q in range(offsets.shape[0] - 1):
        start, end = offsets[q], offsets[q + 1]
        initial[q] = 1.0 - values[end - 1] if start < end else 0.0
        for i in range(start, end):
            to = start + end - 1 - i
            mirrored.times[to] = -times[i]
            mirrored.values[to] = 1.0 - values[i - 1] if i > start else 0.0


@kernel
def _evaluate(offsets, times, values, initial, at, out):
    """Write the values at ascending times; out : (n_queries, n_times) float64."""
    for q in range(offsets.shape[0] - 1):
        i, value = offsets[q], initial[q]
        for j in range(at.shape[0]):
            while i < offsets[q + 1] and times[i] <= at[j]:
                value = values[i]
                i += 1
            out[q, j] = value


@kernel
def _evaluate_each(offsets, times, values, initial, at, out):
    """Write the value of curve q at time ``at[q]``; out : (n_queries,) float64."""
    for q in range(at.shape[0]):
        start, end = offsets[q], offsets[q + 1]
        low, high = start, end  # the first step behind the time lies in low .. high
        while low < high:
            middle = (low + high) >> 1
            if times[middle] <= at[q]:
                low = middle + 1
            else:
                high = middle
        out[q] = values[low - 1] if low > start else initial[q]


@kernel
def _first_at_most(offsets, times, values, initial, bounds, out):
    """Write the first time at which curve q, which falls, is at most ``bounds[q]``."""
    for q in range(bounds.shape[0]):
        low, high = offsets[q], offsets[q + 1]
        while low < high:
            middle = (low + high) >> 1
            if values[middle] <= bounds[q]:
                high = middle
            else:
                low = middle + 1
        out[q] = times[low] if low < offsets[q + 1] else np.inf
        if initial[q] <= bounds[q]:
            out[q] = -np.inf


@kernel
def _restricted_mean(offsets, times, values, initial, horizon, from_left, out):
    """Write the mean of each curve's distribution, with times cut off at the horizon."""
    for q in range(offsets.shape[0] - 1):
        above, below, total = initial[q], 1.0 - initial[q], 0.0
        for i in range(offsets[q], offsets[q + 1]):
            drop = above - values[i]
            above = values[i]
            if from_left:
                total += drop * max(times[i], horizon)
            else:
                total += drop * min(times[i], horizon)
        out[q] = total + horizon * (below if from_left else above)
