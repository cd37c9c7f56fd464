"""The estimating equation of a quantile, and the two rules that solve it.

    S_n(q) = (1 - tau) G(q) - H(q),    H(q) = sum_i w_i 1(Y_i > q),

over the candidates q = Y_i with w_i > 0, up to the last event among them. Beyond it both terms may
be 0, which determines nothing.

root
    The first candidate with S_n(q) >= 0, that is with S = H / G at most 1 - tau; 0 = 0, where no
    weight is left, does not count. With Beran's G this S is the product-limit curve. The root is
    monotone in tau, and the ordinary weighted quantile where nothing is censored. Where S_n stays
    below 0 the quantile is not identifiable: inf.
argmin
    The candidate with the smallest |S_n(q)|, the first of equals: the paper's rule. With ``knn``
    only neighbours are candidates, as in the paper.

G is estimated by ``beran`` (product-limit with the same weights), ``knn`` (Kaplan-Meier over
the rows of largest weight) or ``km`` (Kaplan-Meier over all rows).

Tied rows are one candidate. It is read after the last of them, where S and G have taken all of
their factors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._input.risk_sets import TOLERANCE
from cqrf._runtime.compiling import allocating_kernel, inlined, kernel
from cqrf._survival.curves import RankedTarget, product_limit

BERAN, KNN, KM = 0, 1, 2


class Equation(NamedTuple):
    """How G is estimated, and which rows are candidates."""

    method: int
    """BERAN, KNN or KM."""
    n_neighbors: float
    """Of KNN, in copies of rows; 0: the rows of more than average weight."""
    n_copies: float
    """Training rows, each counted as often as its sample weight says."""
    marginal: NDArray[np.float64]
    """Of KM: G by rank, see :func:`marginal_censoring_survival`; else empty."""
    neighbors_only: bool
    """Whether only neighbours are candidates."""


class Work(NamedTuple):
    """Work arrays for one row of weights, (longest row,) float64 unless said otherwise.

    What :func:`write_terms` leaves in them describes the row after each of its training rows.
    """

    at_risk: NDArray[np.float64]
    """One number more."""
    survival: NDArray[np.float64]
    """Product-limit estimate of S, with the forest's weights."""
    beran: NDArray[np.float64]
    """Beran's G; S times this is H."""
    other: NDArray[np.float64]
    """G of KNN or KM."""
    copies: NDArray[np.float64]
    """Of KNN: how often each row counts as a neighbour, 0 if it is none."""
    unused: NDArray[np.float64]
    smallest: NDArray[np.float64]
    """Of the argmin rule, (n_taus,): the smallest |S_n| so far."""


def make_work(longest: int, n_taus: int = 0) -> Work:
    """Work arrays for rows of at most so many weights."""
    survival, beran, other, copies, unused = np.empty((5, longest))
    at_risk, smallest = np.empty(longest + 1), np.empty(n_taus)
    return Work(at_risk, survival, beran, other, copies, unused, smallest)


def marginal_censoring_survival(target: RankedTarget) -> NDArray[np.float64]:
    """Kaplan-Meier estimate of G over all rows, after each rank and all ranks tied with it."""
    n = len(target.time)
    copies = np.ones(n) if target.weight is None else target.weight.astype(np.float64)
    at_risk, survival, g = np.empty(n + 1), np.empty(n), np.empty(n)
    ranks = np.arange(n, dtype=np.int32)
    product_limit(ranks, copies, target.event, target.first_at_risk, at_risk, survival, g)
    last_of_tied = np.flatnonzero(np.append(target.time[1:] != target.time[:-1], True))
    return np.repeat(g[last_of_tied], np.diff(last_of_tied, prepend=-1))


@kernel
def beran_roots(weights, time, event, taus, at_risk, quantiles):
    """Solve by the root rule with Beran's G, without late entry: the default, and the fastest.

    weights : Weights of n_queries rows
    time : float64 by rank; event : bool by rank
    taus : (n_taus,) float64, ascending
    at_risk : (longest row + 1,) float64, work array
    quantiles : (n_queries, n_taus) float64
        Roots are written; entries without a root are left as they are.

    As S = A / G with A the weight still at risk, an event only compares A with (1 - tau) G, and
    only a censoring divides. A row is left at its last root.
    """
    offsets, ranks, values = weights.offsets, weights.ranks, weights.values
    n_taus = taus.shape[0]
    for q in range(offsets.shape[0] - 1):
        start, end = offsets[q], offsets[q + 1]
        if start == end or n_taus == 0:
            continue
        remaining = 0.0
        at_risk[end - start] = 0.0
        for i in range(end - 1, start - 1, -1):
            remaining += values[i]
            at_risk[i - start] = remaining
        k, g = 0, at_risk[0]
        threshold = (1.0 - taus[0] + TOLERANCE) * g
        for i in range(end - start):
            rank = ranks[start + i]
            if not event[rank]:
                g *= at_risk[i + 1] / at_risk[i]
                threshold = (1.0 - taus[k] + TOLERANCE) * g
                continue
            while at_risk[i + 1] <= threshold:
                quantiles[q, k] = time[rank]
                k += 1
                if k == n_taus:
                    break
                threshold = (1.0 - taus[k] + TOLERANCE) * g
            if k == n_taus:
                break


@kernel
def root_rule(weights, target, equation, taus, work, quantiles):
    """Solve by the root rule with any G; arguments as for :func:`argmin_rule`."""
    offsets, n_taus = weights.offsets, taus.shape[0]
    for q in range(offsets.shape[0] - 1):
        row = slice(offsets[q], offsets[q + 1])
        ranks = weights.ranks[row]
        end, k = write_terms(ranks, weights.values[row], target, equation, work), 0
        for i in range(end):
            if not is_candidate(i, ranks, target.time, equation.neighbors_only, work.copies):
                continue
            s = survival_after(i, equation.method, work.survival, work.beran, work.other)
            while k < n_taus and s <= 1.0 - taus[k] + TOLERANCE:
                quantiles[q, k] = target.time[ranks[i]]
                k += 1
            if k == n_taus:
                break


@kernel
def argmin_rule(weights, target, equation, taus, work, quantiles):
    """Solve by the argmin rule.

    weights : Weights of n_queries rows; target : RankedTarget; equation : Equation
    taus : (n_taus,) float64, ascending
    work : Work for the longest row
    quantiles : (n_queries, n_taus) float64
        Solutions are written; entries without a solution are left as they are.
    """
    offsets, smallest = weights.offsets, work.smallest
    for q in range(offsets.shape[0] - 1):
        row = slice(offsets[q], offsets[q + 1])
        ranks = weights.ranks[row]
        end = write_terms(ranks, weights.values[row], target, equation, work)
        for k in range(taus.shape[0]):
            smallest[k] = np.inf
        for i in range(end):
            if not is_candidate(i, ranks, target.time, equation.neighbors_only, work.copies):
                continue
            h, g = work.survival[i] * work.beran[i], work.beran[i]
            if equation.method != BERAN:
                g = work.other[i]
            if g == 0.0 and h == 0.0:
                continue
            for k in range(taus.shape[0]):
                distance = abs((1.0 - taus[k]) * g - h)
                if distance < smallest[k]:
                    smallest[k] = distance
                    quantiles[q, k] = target.time[ranks[i]]


@kernel
def largest_levels(weights, target, equation, work, levels):
    """Write the largest identifiable level of each row, 1 - min H / G.

    Arguments as for :func:`argmin_rule`; levels : (n_queries,) float64, 0 where nothing is.
    """
    offsets = weights.offsets
    for q in range(offsets.shape[0] - 1):
        row = slice(offsets[q], offsets[q + 1])
        ranks = weights.ranks[row]
        end, largest = write_terms(ranks, weights.values[row], target, equation, work), 0.0
        for i in range(end):
            if is_candidate(i, ranks, target.time, equation.neighbors_only, work.copies):
                s = survival_after(i, equation.method, work.survival, work.beran, work.other)
                largest = max(largest, 1.0 - s)
        levels[q] = largest


@inlined
def is_candidate(i, ranks, time, neighbors_only, copies):
    """Whether the i-th row of a query is the last at its time, and its time a candidate."""
    is_last = i + 1 == ranks.shape[0] or time[ranks[i + 1]] != time[ranks[i]]
    return is_last and (not neighbors_only or copies[i] > 0.0)


@inlined
def survival_after(i, method, survival, beran, other):
    """H / G after the i-th row of a query.

    With Beran's G that is S itself. Another G may be 0 where weight is left: H / G is then 1, so
    that no level is reached. Where both are 0, S decides.
    """
    s = survival[i]
    if method != BERAN:
        remaining, g = s * beran[i], other[i]
        if g > 0.0:
            s = remaining / g
        elif remaining > 0.0:
            s = 1.0
    return s


@kernel
def write_terms(ranks, weights, target, equation, work):
    """Write the terms of the equation for one row; return the end of its candidates.

    ranks : (n,) int32, ascending; weights : (n,) float64
    Other arguments as for :func:`argmin_rule`. Candidates end with the last event, and with the
    rows tied with it.
    """
    n, time, event = ranks.shape[0], target.time, target.event
    entered = target.first_at_risk
    product_limit(ranks, weights, event, entered, work.at_risk, work.survival, work.beran)
    if equation.method == KNN:
        copies = work.copies[:n]
        mark_neighbors(ranks, weights, target.weight, equation, copies)
        product_limit(ranks, copies, event, entered, work.at_risk, work.unused, work.other)
    elif equation.method == KM:
        for i in range(n):
            work.other[i] = equation.marginal[ranks[i]]
    end = n
    while end > 0 and not (
        event[ranks[end - 1]] and (not equation.neighbors_only or work.copies[end - 1] > 0.0)
    ):
        end -= 1
    while 0 < end < n and time[ranks[end]] == time[ranks[end - 1]]:
        end += 1
    if equation.neighbors_only:  # a time is a candidate if any row at it is a neighbour
        for i in range(1, end):
            if time[ranks[i]] == time[ranks[i - 1]]:
                work.copies[i] = max(work.copies[i], work.copies[i - 1])
    return end


@allocating_kernel
def mark_neighbors(ranks, weights, sample_weight, equation, copies):
    """Write how often each row counts in the Kaplan-Meier curve of the neighbours, 0 for others.

    ranks : (n,) int32; weights : (n,) float64; sample_weight : floats by rank, or None
    copies : (n,) float64, written

    A row with sample weight s is s copies, which share its weight. Without a number of neighbours
    they are the rows of more than average weight, or all if there are none.
    """
    n = ranks.shape[0]
    share = np.empty(n)
    for i in range(n):
        share[i] = weights[i] if sample_weight is None else weights[i] / sample_weight[ranks[i]]
    least = (1.0 + TOLERANCE) / equation.n_copies
    if equation.n_neighbors > 0:
        n_found = 0.0
        for i in np.argsort(-share):
            least = share[i] * (1.0 - TOLERANCE)
            n_found += 1.0 if sample_weight is None else np.float64(sample_weight[ranks[i]])
            if n_found >= equation.n_neighbors * (1.0 - TOLERANCE):
                break
    elif n > 0 and share.max() < least:
        least = 0.0
    for i in range(n):
        own = 1.0 if sample_weight is None else np.float64(sample_weight[ranks[i]])
        copies[i] = own if share[i] >= least else 0.0
