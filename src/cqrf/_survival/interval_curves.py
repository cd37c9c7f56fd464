"""Survival curves and quantiles from rows of weights, for interval-censored training rows.

The curve of a query is the weighted non-parametric maximum likelihood estimate (see
:mod:`cqrf._survival.npmle`). It says how much mass an innermost interval (q, p] has, not where in
it: the estimate is not unique there. Curves are given twice, with all of this mass at p, the
larger survival, and with all of it at q, the smaller one; a quantile lies between the two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.weights import Weights
from cqrf._input.risk_sets import TOLERANCE
from cqrf._runtime.compiling import kernel
from cqrf._survival.curves import RankedTarget, Steps, as_curves, compute_steps
from cqrf._survival.innermost import (
    IntervalEnds,
    find_innermost,
    make_innermost_work,
)
from cqrf._survival.npmle import RowsCovering, make_solver_work, maximise
from cqrf._survival.step_curves import StepCurves

# A survival probability within this distance of a level has reached it. The solver's precision.
REACHED = 1e-9


class IntervalSteps(NamedTuple):
    """Steps of one curve per query, as in :class:`~cqrf._survival.curves.Steps`.

    Step j falls somewhere in (``left[j]``, ``right[j]``], or at both if they are equal.
    ``violation`` is how far each curve is from the optimality conditions.
    """

    offsets: NDArray[np.int64]
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    values: NDArray[np.float64]
    end: NDArray[np.float64]
    violation: NDArray[np.float64]

    def at_right(self) -> Steps:
        """The curve with each step at the right end of its interval."""
        return Steps(self.offsets, self.right, self.values, self.end)

    def at_left(self) -> Steps:
        """The curve with each step at the left end of its interval.

        Left ends may be equal, as of an exact row and of those that come after it: the value at
        such a time is the one after the last of the steps.
        """
        return Steps(self.offsets, self.left, self.values, self.end)


def survival_curves(
    weights: Weights, target: RankedTarget, ends: IntervalEnds | None
) -> StepCurves:
    """Survival of T for each row of weights, on times oriented to the right.

    With the ends of intervals, each step is at the right end of its own.
    """
    if ends is None:
        return as_curves(compute_steps(weights, target), "right")
    return as_curves(interval_steps(weights, ends).at_right(), "right")


def interval_steps(weights: Weights, ends: IntervalEnds) -> IntervalSteps:
    """Steps of the maximum likelihood estimate of each row of weights."""
    n_queries, n = len(weights.offsets) - 1, len(weights.ranks)
    longest = int(np.diff(weights.offsets).max(initial=0))
    left, right, values = np.empty((3, n))
    steps = IntervalSteps(
        np.zeros(n_queries + 1, np.int64),
        left,
        right,
        values,
        np.empty(n_queries),
        np.zeros(n_queries),
    )
    innermost = make_innermost_work(len(ends.value), longest)
    n = _write_steps(weights, ends, innermost, make_solver_work(longest), steps)
    return steps._replace(left=left[:n].copy(), right=right[:n].copy(), values=values[:n].copy())


@kernel
def _write_steps(weights, ends, innermost, work, steps):
    """Write the steps of one curve per query; return their number.

    weights : Weights; ends : IntervalEnds; innermost : InnermostWork; work : SolverWork
    steps : IntervalSteps, written; as many steps as there are weights are enough
    """
    offsets, value, survival = weights.offsets, ends.value, work.survival
    at = 0
    for q in range(offsets.shape[0] - 1):
        ranks = weights.ranks[offsets[q] : offsets[q + 1]]
        row_weights = weights.values[offsets[q] : offsets[q + 1]]
        n_rows, m = find_innermost(ranks, row_weights, ends, innermost)
        steps.end[q] = -np.inf
        if m > 0:
            rows = RowsCovering(
                innermost.weight[:n_rows], innermost.first[:n_rows], innermost.last[:n_rows]
            )
            for j in range(m + 1):
                survival[j] = 1.0 - j / m
            steps.violation[q] = maximise(rows, m, work)
            steps.end[q] = np.inf
            last = value[innermost.right[m - 1]]
            if np.isinf(last):
                steps.end[q] = value[innermost.left[m - 1]]
                m -= 1
            for j in range(m):
                if survival[j] - survival[j + 1] > TOLERANCE:
                    steps.left[at] = value[innermost.left[j]]
                    steps.right[at] = value[innermost.right[j]]
                    steps.values[at] = survival[j + 1]
                    at += 1
        steps.offsets[q + 1] = at
    return at
