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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.weights import Weights
from cqrf._input.risk_sets import TOLERANCE, first_at_risk, subtract_not_entered
from cqrf._input.target import Target
from cqrf._runtime.compiling import kernel
from cqrf._survival.step_curves import StepCurves


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


class Steps(NamedTuple):
    """Steps of one curve per query: those of curve q are ``offsets[q] : offsets[q + 1]``.

    ``end`` is the last time up to which each curve is known: that of the last row with weight, or
    infinity if the curve has fallen to 0.
    """

    offsets: NDArray[np.int64]
    times: NDArray[np.float64]
    values: NDArray[np.float64]
    end: NDArray[np.float64]


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
    return as_curves(compute_steps(weights, target, of_censoring), censoring)


def compute_steps(weights: Weights, target: RankedTarget, of_censoring: bool = False) -> Steps:
    """Steps of the survival of T, or of C, for each row of weights."""
    n_queries = len(weights.offsets) - 1
    longest = np.diff(weights.offsets).max(initial=0)
    work = CurveWork._make(np.empty((3, longest + 1)))
    times, values = np.empty((2, len(weights.ranks)))
    steps = Steps(np.zeros(n_queries + 1, np.int64), times, values, np.empty(n_queries))
    # Curves need no sample weights: without them there is one compiled kernel less.
    n = _write_steps(weights, target._replace(weight=None), of_censoring, work, steps)
    return steps._replace(times=times[:n].copy(), values=values[:n].copy())


def as_curves(steps: Steps, censoring: str) -> StepCurves:
    """Curves of times as the user knows them, from steps of times oriented to the right."""
    n_queries, n = len(steps.end), len(steps.times)
    everywhere = np.full(n_queries, np.inf)
    if censoring == "right":
        initial = np.ones(n_queries)
        return StepCurves(steps.offsets, steps.times, steps.values, initial, -everywhere, steps.end)
    mirrored = Steps(steps.offsets, np.empty(n), np.empty(n), -steps.end)
    initial = np.empty(n_queries)
    _mirror(steps, mirrored, initial)
    return StepCurves(
        steps.offsets, mirrored.times, mirrored.values, initial, mirrored.end, everywhere
    )


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
    end = steps.end
    at_risk, survival, censoring_survival = work.at_risk, work.survival, work.censoring_survival
    at = 0
    for q in range(offsets.shape[0] - 1):
        row = weights.ranks[offsets[q] : offsets[q + 1]]
        row_weights = weights.values[offsets[q] : offsets[q + 1]]
        product_limit(
            row, row_weights, event, target.first_at_risk, at_risk, survival, censoring_survival
        )
        curve = censoring_survival if of_censoring else survival
        end[q] = -np.inf
        for i in range(row.shape[0]):
            if row_weights[i] > 0.0:
                end[q] = time[row[i]] if curve[i] > TOLERANCE else np.inf
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
