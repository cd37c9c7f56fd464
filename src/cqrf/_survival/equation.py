"""The estimating equation of a quantile, and the two rules that solve it.

    S_n(q) = (1 - tau) G(q) - H(q),    H(q) = sum_i w_i 1(Y_i > q),

over the candidates q = Y_i with w_i > 0, up to the last event among them. Behind it both terms may
be 0 together, which says nothing.

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

Tied rows are one candidate. It is read behind the last of them, where S and G have taken all of
their factors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._input.risk_sets import TOLERANCE
from cqrf._runtime.compiling import allocating_kernel, kernel
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


class Candidates(NamedTuple):
    """Candidates of one row of weights, at the front of arrays of (longest row,) float64."""

    time: NDArray[np.float64]
    remaining: NDArray[np.float64]
    """H, the weight behind the candidate."""
    censoring_survival: NDArray[np.float64]
    """G."""
    survival: NDArray[np.float64]
    """H / G."""


class Work(NamedTuple):
    """Work arrays of :func:`list_candidates`, (longest row,) float64, one more for ``at_risk``."""

    at_risk: NDArray[np.float64]
    survival: NDArray[np.float64]
    beran: NDArray[np.float64]
    other: NDArray[np.float64]
    copies: NDArray[np.float64]
    unused: NDArray[np.float64]


def make_work(longest: int) -> tuple[Work, Candidates]:
    """Arrays for rows of at most so many weights."""
    return Work(np.empty(longest + 1), *np.empty((5, longest))), Candidates(*np.empty((4, longest)))


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


@allocating_kernel
def root_rule(weights, target, equation, taus, work, candidates, quantiles):
    """Solve by the root rule with any G; arguments as for :func:`argmin_rule`."""
    offsets, n_taus = weights.offsets, taus.shape[0]
    for q in range(offsets.shape[0] - 1):
        row = slice(offsets[q], offsets[q + 1])
        n_candidates = list_candidates(
            weights.ranks[row], weights.values[row], target, equation, work, candidates
        )
        k = 0
        for c in range(n_candidates):
            while k < n_taus and candidates.survival[c] <= 1.0 - taus[k] + TOLERANCE:
                quantiles[q, k] = candidates.time[c]
                k += 1


@allocating_kernel
def argmin_rule(weights, target, equation, taus, work, candidates, quantiles):
    """Solve by the argmin rule.

    weights : Weights of n_queries rows; target : RankedTarget; equation : Equation
    taus : (n_taus,) float64, ascending
    work, candidates : from :func:`make_work`
    quantiles : (n_queries, n_taus) float64
        Solutions are written; entries without a solution are left as they are.
    """
    offsets = weights.offsets
    for q in range(offsets.shape[0] - 1):
        row = slice(offsets[q], offsets[q + 1])
        n_candidates = list_candidates(
            weights.ranks[row], weights.values[row], target, equation, work, candidates
        )
        for k in range(taus.shape[0]):
            smallest = np.inf
            for c in range(n_candidates):
                g, h = candidates.censoring_survival[c], candidates.remaining[c]
                distance = abs((1.0 - taus[k]) * g - h)
                if (g > 0.0 or h > 0.0) and distance < smallest:
                    smallest = distance
                    quantiles[q, k] = candidates.time[c]


@allocating_kernel
def largest_levels(weights, target, equation, work, candidates, levels):
    """Write the largest identifiable level of each row, 1 - min H / G.

    Arguments as for :func:`argmin_rule`; levels : (n_queries,) float64, 0 where nothing is.
    """
    offsets = weights.offsets
    for q in range(offsets.shape[0] - 1):
        row = slice(offsets[q], offsets[q + 1])
        n_candidates = list_candidates(
            weights.ranks[row], weights.values[row], target, equation, work, candidates
        )
        largest = 0.0
        for c in range(n_candidates):
            largest = max(largest, 1.0 - candidates.survival[c])
        levels[q] = largest


@allocating_kernel
def list_candidates(ranks, weights, target, equation, work, candidates):
    """Write the candidates of one row of weights in time order; return their number.

    ranks : (n,) int32, ascending; weights : (n,) float64
    Other arguments as for :func:`argmin_rule`.
    """
    n, time, event = ranks.shape[0], target.time, target.event
    product_limit(
        ranks, weights, event, target.first_at_risk, work.at_risk, work.survival, work.beran
    )
    write_other_survival(ranks, weights, target, equation, work)
    neighbors_only = equation.neighbors_only
    end = n
    while end > 0 and not (
        event[ranks[end - 1]] and (not neighbors_only or work.copies[end - 1] > 0.0)
    ):
        end -= 1
    while 0 < end < n and time[ranks[end]] == time[ranks[end - 1]]:
        end += 1
    n_candidates, is_candidate = 0, False
    for i in range(end):
        is_candidate |= not neighbors_only or work.copies[i] > 0.0
        if i + 1 < n and time[ranks[i + 1]] == time[ranks[i]]:
            continue
        if is_candidate:
            s, g = work.survival[i], work.beran[i]
            remaining = s * g
            if equation.method != BERAN:
                g = work.other[i]
                if g > 0.0:
                    s = remaining / g
                elif remaining > 0.0:
                    s = 1.0
            candidates.time[n_candidates] = time[ranks[i]]
            candidates.remaining[n_candidates] = remaining
            candidates.censoring_survival[n_candidates] = g
            candidates.survival[n_candidates] = s
            n_candidates += 1
        is_candidate = False
    return n_candidates


@allocating_kernel
def write_other_survival(ranks, weights, target, equation, work):
    """Write G after each row to ``work.other``, unless it is Beran's."""
    n = ranks.shape[0]
    if equation.method == KNN:
        copies = work.copies[:n]
        mark_neighbors(ranks, weights, target.weight, equation, copies)
        product_limit(
            ranks, copies, target.event, target.first_at_risk, work.at_risk, work.unused, work.other
        )
    elif equation.method == KM:
        for i in range(n):
            work.other[i] = equation.marginal[ranks[i]]


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
