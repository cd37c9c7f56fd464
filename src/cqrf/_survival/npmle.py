"""The weighted non-parametric maximum likelihood estimate of interval-censored rows.

Row i, of weight w_i (they sum to 1), covers the innermost intervals first_i .. last_i (see
:mod:`cqrf._survival.innermost`). With S_j the survival after interval j - 1, S_0 = 1 and S_m = 0,
the log-likelihood is

    l(S) = sum_i w_i log P_i,    P_i = S[first_i] - S[last_i + 1].

It is concave. With g_j the sum of w_i / P_i over the rows that cover interval j, S is the maximum
if and only if g_j <= 1 for all j; in any case l is within max_j g_j - 1 of the maximum. That
number, the *violation*, is what the solver brings below ``ENOUGH``.

One iteration has up to three parts, none of which lowers l:

- EM steps for the hazards. A row that is not right-censored is spread over its intervals as S says;
  then S is the product-limit curve of what results. Right-censored rows need no spreading, so that
  with exact and right-censored rows the first step is the Kaplan-Meier curve.
- A step of the iterative convex minorant algorithm: Newton's method with the diagonal of the
  Hessian, projected on falling curves by pooling adjacent violators. It finds which intervals have
  no mass. EM and this together converge where neither does alone (Wellner and Zhan, 1997).
- Newton's method for the masses of the intervals that have any: the last digits of tables with some
  exact rows, where the others are slow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._runtime.compiling import called, inlined

ENOUGH = 1e-9  # violation of the optimality conditions
# A curve that moves by no more in an iteration is as good as its digits: the mass of a row of tiny
# weight is the difference of two numbers near each other, and its g_j is known to few digits.
STILL = 1e-13
MOST_ITERATIONS = 1000
EM_STEPS = 3  # in an iteration
MOST_HALVINGS = 8  # of a step that would lower the likelihood
# Newton's method costs the cube of the number of intervals with mass: it starts when the other
# steps have had their chance, and not if there are too many.
NEWTON_FROM, MOST_NEWTON = 12, 200
RIDGE = 1e-13  # relative to the Hessian's diagonal: masses need not be unique


class RowsCovering(NamedTuple):
    """Rows: their weights, which sum to 1, and the innermost intervals that each covers."""

    weight: NDArray[np.float64]
    first: NDArray[np.int32]
    last: NDArray[np.int32]


class SolverWork(NamedTuple):
    """Work arrays for at most n intervals; (n + 1,) float64 unless said otherwise.

    ``survival`` holds the solution. ``lengths`` and ``support`` are int32; ``matrix`` is
    (MOST_NEWTON + 1, MOST_NEWTON + 1), ``move`` (MOST_NEWTON + 1,).
    """

    survival: NDArray[np.float64]
    before: NDArray[np.float64]
    trial: NDArray[np.float64]
    goal: NDArray[np.float64]
    gradient: NDArray[np.float64]
    curvature: NDArray[np.float64]
    levels: NDArray[np.float64]
    masses: NDArray[np.float64]
    lengths: NDArray[np.int32]
    support: NDArray[np.int32]
    matrix: NDArray[np.float64]
    move: NDArray[np.float64]


def make_solver_work(n_intervals: int) -> SolverWork:
    """Work arrays for at most so many intervals."""
    lengths, support = np.empty((2, n_intervals + 1), np.int32)
    matrix = np.empty((MOST_NEWTON + 1, MOST_NEWTON + 1))
    survival, before, trial, goal = np.empty((4, n_intervals + 1))
    gradient, curvature, levels, masses = np.empty((4, n_intervals + 1))
    return SolverWork(
        survival=survival,
        before=before,
        trial=trial,
        goal=goal,
        gradient=gradient,
        curvature=curvature,
        levels=levels,
        masses=masses,
        lengths=lengths,
        support=support,
        matrix=matrix,
        move=np.empty(MOST_NEWTON + 1),
    )


@called
def maximise(rows, n_intervals, work):
    """Maximise the likelihood from the curve in ``work.survival``; return the violation left.

    rows : RowsCovering; work : SolverWork

    The curve must fall at every interval.
    """
    survival, gradient = work.survival[: n_intervals + 1], work.gradient
    violation = np.inf
    for j in range(n_intervals + 1):
        work.before[j] = np.inf
    for iteration in range(MOST_ITERATIONS):
        for _ in range(EM_STEPS):
            expect(rows, survival, work.gradient, work.curvature)
        violation = sum_gradient(rows, survival, gradient)
        if violation <= ENOUGH or has_stopped(survival, work.before):
            break
        likelihood = log_likelihood(rows, survival)
        project(rows, survival, work)
        likelihood = move_to_goal(rows, survival, work, likelihood)
        if iteration >= NEWTON_FROM:
            n_support = find_support(survival, work)
            if n_support <= MOST_NEWTON and newton_goal(rows, survival, n_support, work):
                move_to_goal(rows, survival, work, likelihood)
    return violation


@inlined
def has_stopped(survival, before):
    """Whether the curve is as it was before, which is overwritten."""
    largest = 0.0
    for j in range(survival.shape[0]):
        largest = max(largest, abs(survival[j] - before[j]))
        before[j] = survival[j]
    return largest <= STILL


@inlined
def log_likelihood(rows, survival):
    """The log-likelihood of a curve; minus infinity if some row is impossible."""
    total = 0.0
    for i in range(rows.weight.shape[0]):
        mass = survival[rows.first[i]] - survival[rows.last[i] + 1]
        if mass <= 0.0:
            return -np.inf
        total += rows.weight[i] * np.log(mass)
    return total


@called
def sum_gradient(rows, survival, gradient):
    """Write g_j; return the violation, max g_j - 1."""
    n_intervals = survival.shape[0] - 1
    for j in range(n_intervals + 1):
        gradient[j] = 0.0
    for i in range(rows.weight.shape[0]):
        first, behind = rows.first[i], rows.last[i] + 1
        share = rows.weight[i] / (survival[first] - survival[behind])
        gradient[first] += share
        gradient[behind] -= share
    running, largest = 0.0, 0.0
    for j in range(n_intervals):
        running += gradient[j]
        gradient[j] = running
        largest = max(largest, running)
    return largest - 1.0


@inlined
def expect(rows, survival, events, leaving):
    """One EM step for the hazards."""
    n_intervals = survival.shape[0] - 1
    for j in range(n_intervals + 1):
        events[j], leaving[j] = 0.0, 0.0
    for i in range(rows.weight.shape[0]):
        first, behind = rows.first[i], rows.last[i] + 1
        if behind == n_intervals:
            leaving[first] += rows.weight[i]
        else:
            share = rows.weight[i] / (survival[first] - survival[behind])
            events[first] += share
            events[behind] -= share
    running = 0.0
    for j in range(n_intervals):
        running += events[j]
        events[j] = max(0.0, running * (survival[j] - survival[j + 1]))
    at_risk = 0.0
    for j in range(n_intervals - 1, -1, -1):
        at_risk += events[j] + leaving[j + 1]
        events[j] = events[j] / at_risk if at_risk > 0.0 else 0.0
    for j in range(n_intervals - 1):
        survival[j + 1] = survival[j] * (1.0 - events[j])
    survival[n_intervals] = 0.0


@called
def project(rows, survival, work):
    """Write to ``work.goal`` where a step of the iterative convex minorant algorithm leads."""
    n_intervals = survival.shape[0] - 1
    gradient, curvature = work.gradient, work.curvature
    levels, masses, lengths = work.levels, work.masses, work.lengths
    for j in range(n_intervals + 1):
        gradient[j], curvature[j] = 0.0, 0.0
    for i in range(rows.weight.shape[0]):
        first, behind = rows.first[i], rows.last[i] + 1
        mass = survival[first] - survival[behind]
        share = rows.weight[i] / mass
        gradient[first] += share
        gradient[behind] -= share
        curvature[first] += share / mass
        curvature[behind] += share / mass
    n_levels = 0
    for j in range(1, n_intervals):
        level, mass, length = survival[j] + gradient[j] / curvature[j], curvature[j], 1
        while n_levels > 0 and levels[n_levels - 1] <= level:
            n_levels -= 1
            both = mass + masses[n_levels]
            level = (level * mass + levels[n_levels] * masses[n_levels]) / both
            mass = both
            length += lengths[n_levels]
        levels[n_levels], masses[n_levels], lengths[n_levels] = level, mass, length
        n_levels += 1
    work.goal[0], work.goal[n_intervals] = 1.0, 0.0
    j = 1
    for k in range(n_levels):
        level = min(1.0, max(0.0, levels[k]))
        for _ in range(lengths[k]):
            work.goal[j] = level
            j += 1


@called
def move_to_goal(rows, survival, work, likelihood):
    """Go to ``work.goal``, or a part of the way, if that is better; return the likelihood."""
    trial, goal = work.trial[: survival.shape[0]], work.goal
    step = 1.0
    for _ in range(MOST_HALVINGS):
        for j in range(survival.shape[0]):
            trial[j] = survival[j] + step * (goal[j] - survival[j])
        reached = log_likelihood(rows, trial)
        if reached > likelihood:
            for j in range(survival.shape[0]):
                survival[j] = trial[j]
            return reached
        step *= 0.5
    return likelihood


@inlined
def find_support(survival, work):
    """Write the number of intervals with mass before each interval; return their number."""
    n_support = 0
    for j in range(survival.shape[0] - 1):
        work.support[j] = n_support
        n_support += survival[j] > survival[j + 1]
    work.support[survival.shape[0] - 1] = n_support
    return n_support


@called
def newton_goal(rows, survival, n_support, work):
    """Write to ``work.goal`` where a Newton step for the masses leads; return whether there is one.

    Maximises l(p) - sum p over the masses p of the support: the maximum sums to 1 by itself.
    """
    matrix, move, support = work.matrix, work.move, work.support
    write_hessian(rows, survival, n_support, work)
    if not factorise(matrix, n_support):
        return False
    substitute(matrix, move, n_support)
    total = 0.0
    n_intervals = survival.shape[0] - 1
    for j in range(n_intervals):
        mass = survival[j] - survival[j + 1]
        if support[j + 1] > support[j]:
            mass = max(0.0, mass + move[support[j]])
        work.levels[j] = mass
        total += mass
    work.goal[0] = 1.0
    remaining = 0.0
    for j in range(n_intervals - 1, -1, -1):
        work.goal[j + 1] = remaining / total
        remaining += work.levels[j]
    return True


@inlined
def write_hessian(rows, survival, n_support, work):
    """Write minus the Hessian for the masses of the support, and the gradient g_j - 1.

    A row adds one number to a square of the matrix: its four corners are enough, summed up after.
    """
    matrix, move, support = work.matrix, work.move, work.support
    for j in range(n_support + 1):
        move[j] = 0.0
        for k in range(n_support + 1):
            matrix[j, k] = 0.0
    for i in range(rows.weight.shape[0]):
        mass = survival[rows.first[i]] - survival[rows.last[i] + 1]
        first, behind = support[rows.first[i]], support[rows.last[i] + 1]
        share = rows.weight[i] / mass
        move[first] += share
        move[behind] -= share
        share /= mass
        matrix[first, first] += share
        matrix[first, behind] -= share
        matrix[behind, first] -= share
        matrix[behind, behind] += share
    running = 0.0
    for j in range(n_support):
        running += move[j]
        move[j] = running - 1.0
        for k in range(1, n_support):
            matrix[j, k] += matrix[j, k - 1]
        if j > 0:
            for k in range(n_support):
                matrix[j, k] += matrix[j - 1, k]


@inlined
def factorise(matrix, n):
    """Replace the lower triangle by its Cholesky factor; return whether there is one."""
    for j in range(n):
        diagonal = matrix[j, j] * (1.0 + RIDGE)
        for k in range(j):
            diagonal -= matrix[j, k] * matrix[j, k]
        if not diagonal > RIDGE * matrix[j, j]:
            return False
        root = np.sqrt(diagonal)
        matrix[j, j] = root
        for i in range(j + 1, n):
            value = matrix[i, j]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = value / root
    return True


@inlined
def substitute(matrix, values, n):
    """Solve with the Cholesky factor, in place."""
    for j in range(n):
        value = values[j]
        for k in range(j):
            value -= matrix[j, k] * values[k]
        values[j] = value / matrix[j, j]
    for j in range(n - 1, -1, -1):
        value = values[j]
        for i in range(j + 1, n):
            value -= matrix[i, j] * values[i]
        values[j] = value / matrix[j, j]
