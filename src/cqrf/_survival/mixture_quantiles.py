"""Quantiles of the mixture of curves, without the curves.

The rows of all components are compared on the scale of the baseline hazard h = H0(t): a row of a
direct tree is at H0 of its time, a residual u at u exp(-l(x)). There the survival of the mixture is
a sum of three steps, and the first h at which it is at most 1 - tau is found by bisection over the
direct rows, then among the residuals between two of them. That is so until the first component
ends; quantiles beyond it are left to :mod:`cqrf._survival.mixture`.

Rows must not enter late: S is then the weight at risk over G, which changes only at censorings.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.weights import Weights
from cqrf._input.risk_sets import TOLERANCE
from cqrf._input.target import oriented
from cqrf._runtime.compiling import ONE, ZERO, called, kernel
from cqrf._survival.curves import RankedTarget, Steps
from cqrf._survival.mixture import Scale, map_end, share_out
from cqrf._survival.quantiles import Solution
from cqrf._working_model.transform import find_time


class HazardRows(NamedTuple):
    """Training rows of direct or residual trees, by rank.

    Attributes
    ----------
    hazard : (n_train,) float64, ascending
        H0 of the times, or residuals.
    event : (n_train,) bool
    """

    hazard: NDArray[np.float64]
    event: NDArray[np.bool_]


class Component(NamedTuple):
    """Rows of one query in direct or residual trees, ascending; filled by ``write_component``.

    Attributes
    ----------
    hazard : float64
        Of each row.
    at_risk : float64
        Weight behind the first m rows, by m.
    n_censored : uint64
        Number of censored rows among the first m, by m.
    censored : uint64
        Places of the censored rows.
    per_g : float64
        1 / G after the first c censored rows, by c; relative to the weight of all rows.
    """

    hazard: NDArray[np.float64]
    at_risk: NDArray[np.float64]
    n_censored: NDArray[np.uint64]
    censored: NDArray[np.uint64]
    per_g: NDArray[np.float64]


class Root(NamedTuple):
    """Steps of the root, on the residual scale, and its value after the first m of them, by m."""

    hazard: NDArray[np.float64]
    survival: NDArray[np.float64]


class Mixture(NamedTuple):
    """What the components of all queries have in common."""

    direct: HazardRows
    residual: HazardRows
    root: Root
    """Without steps if it has no share."""
    root_end: float
    """Last residual up to which the root is known, infinity if it falls to 0."""
    shares: NDArray[np.float64]
    time: NDArray[np.float64]
    """By rank, of direct trees."""


def make_mixture(
    targets: tuple[RankedTarget, RankedTarget],
    direct_hazard: NDArray[np.float64],
    root: Steps,
    shares: tuple[float, float, float],
) -> Mixture:
    """The mixture of direct and residual trees and the root, with these shares."""
    on_times, on_residuals = targets
    n_root = len(root.times) if shares[2] > 0 else 0
    return Mixture(
        direct=HazardRows(direct_hazard, on_times.event),
        residual=HazardRows(on_residuals.time, on_residuals.event),
        root=Root(root.times[:n_root], np.concatenate([[1.0], root.values[:n_root]])),
        root_end=float(root.end[0]),
        shares=np.array(shares),
        time=on_times.time,
    )


def mixture_quantiles(
    weights: tuple[Weights, Weights],
    mixture: Mixture,
    scale: Scale,
    levels: NDArray[np.float64],
    censoring: str,
) -> tuple[Solution, NDArray[np.intp]]:
    """Quantiles of each query; ``weights`` are those of direct and of residual trees.

    Only up to the time at which the first component ends. The second result lists the queries for
    which there may be quantiles beyond it: their curve has to be read. The last neighbours do not
    depend on the levels.
    """
    taus = levels if censoring == "right" else 1.0 - levels
    order = np.argsort(taus, kind="stable")
    n_queries = len(scale.factor)
    lengths = [np.diff(each.offsets).max(initial=0) + 1 for each in weights]
    work = tuple(_make_component(length) for length in lengths)
    solved, values = np.empty((2, n_queries, len(taus)))
    first, last = np.empty((2, n_queries))
    bounds = 1.0 - taus[order] + TOLERANCE
    _solve(weights, mixture, scale, bounds, work, solved, (first, last))
    values[:, order] = oriented(solved, censoring)
    unfinished = np.flatnonzero((first < last) & np.isinf(solved).any(axis=1))
    return Solution(values, oriented(last, censoring)), unfinished


def _make_component(length: int) -> Component:
    """Work arrays for fewer rows than ``length``."""
    hazard, at_risk, per_g = np.empty((3, length))
    n_censored, censored = np.empty((2, length), np.uint64)
    return Component(hazard, at_risk, n_censored, censored, per_g)


@called
def write_component(weights, q, rows, factor, component):
    """Write the rows of a query; return how many there are, and up to which hazard S is known.

    weights : Weights; rows : HazardRows; component : Component, written
    """
    start, end = weights.offsets[q], weights.offsets[q + 1]
    ranks, values = weights.ranks[start:end], weights.values[start:end]
    hazard, at_risk, n_censored = component.hazard, component.at_risk, component.n_censored
    censored, per_g = component.censored, component.per_g
    of_rank, event = rows.hazard, rows.event
    n, remaining, c = np.uint64(end - start), 0.0, ZERO
    at_risk[n] = 0.0
    for behind in range(n):
        place = n - ONE - behind
        remaining += values[place]
        at_risk[place] = remaining
        hazard[place] = of_rank[np.uint64(ranks[place])] * factor
    for i in range(n):
        # Written for every row, kept for censored ones: a branch would be mispredicted.
        n_censored[i], censored[c] = c, i
        c += np.uint64(not event[np.uint64(ranks[i])])
    n_censored[n] = c
    inverse = 1.0 / max(remaining, TOLERANCE)
    for k in range(c):
        place = censored[k]
        per_g[k] = inverse
        if at_risk[place + ONE] > 0.0:
            inverse *= at_risk[place] / at_risk[place + ONE]
    per_g[c] = inverse
    is_known = n > ZERO and survival_after(component, n) > TOLERANCE
    return end - start, (hazard[n - ONE] if is_known else np.inf)


@called
def survival_after(component, m):
    """S after the first m rows of a component.

    S is the weight at risk over G. It does not change at a censoring, behind which no weight may be
    left: there both are read before the row.
    """
    m = np.uint64(m)
    if m == ZERO:
        return 1.0
    before = component.n_censored[m - ONE]
    if component.n_censored[m] > before:
        m -= ONE
    return component.at_risk[m] * component.per_g[before]


@called
def count_up_to(hazard, low, high, h, factor):
    """Number of rows whose hazard times a factor is at most h; it is in low .. high."""
    while low < high:
        middle = (low + high) >> 1
        if hazard[middle] * factor <= h:
            low = middle + 1
        else:
            high = middle
    return low


@called
def first_direct(components, n_rows, root, factor, shares, bound, low):
    """First direct row, from ``low`` on, at which the mixture is at most a bound."""
    direct, residual = components
    high, n_root = n_rows[0], root.hazard.shape[0]
    fewest, most = 0, n_rows[1]
    while low < high:
        middle = (low + high) >> 1
        h = direct.hazard[middle]
        n_residual = count_up_to(residual.hazard, fewest, most, h, 1.0)
        value = shares[0] * survival_after(direct, middle + 1)
        value += shares[1] * survival_after(residual, n_residual)
        if shares[2] > 0.0:
            value += shares[2] * root.survival[count_up_to(root.hazard, 0, n_root, h, factor)]
        if value <= bound:
            high, most = middle, n_residual
        else:
            low, fewest = middle + 1, n_residual
    return low


@called
def first_between(components, n_rows, root, factor, shares, bound, n_direct):
    """Hazard of the first residual after ``n_direct`` direct rows that meets the bound.

    Infinity if none comes before the next direct row.
    """
    direct, residual = components
    before = direct.hazard[n_direct - 1] if n_direct > 0 else -np.inf
    behind = direct.hazard[n_direct] if n_direct < n_rows[0] else np.inf
    n_root = root.hazard.shape[0]
    j = count_up_to(residual.hazard, 0, n_rows[1], before, 1.0)
    k = count_up_to(root.hazard, 0, n_root, before, factor)
    of_direct = shares[0] * survival_after(direct, n_direct)
    while True:
        next_residual = residual.hazard[j] if j < n_rows[1] else np.inf
        next_root = root.hazard[k] * factor if k < n_root else np.inf
        h = min(next_residual, next_root)
        if h >= behind:
            return np.inf
        j += next_residual == h
        k += next_root == h
        value = of_direct + shares[1] * survival_after(residual, j) + shares[2] * root.survival[k]
        if value <= bound:
            return h


@called
def find_ends(last_direct, residual, n_rows, ends, mixture, scale, factor):
    """When the first component of a query ends, and its last neighbour.

    The first result is infinity if all components fall to 0. The second is the time up to which the
    mixture is known; if it falls to 0, that of its last step.

    last_direct : time of the last direct row; residual : Component; n_rows : rows of either kind
    ends : hazards up to which direct and residual trees are known
    """
    first, last, known_to = np.inf, -np.inf, np.inf
    if n_rows[0] > 0:
        last = last_direct
        if ends[0] < np.inf:
            first, known_to = last, last
    if n_rows[1] > 0:
        h = residual.hazard[n_rows[1] - 1]
        end = map_end(ends[1], h, scale)
        first = min(first, end)
        last = max(last, end if end < np.inf else find_time(h, scale.knots, scale.hazards, 0)[0])
        if n_rows[0] == 0:
            known_to = end
    if mixture.shares[2] > 0.0:
        n_root = mixture.root.hazard.shape[0]
        h = mixture.root.hazard[n_root - 1] * factor if n_root > 0 else -np.inf
        end = map_end(mixture.root_end * factor, h, scale)
        first = min(first, end)
        last = max(last, end if end < np.inf else find_time(h, scale.knots, scale.hazards, 0)[0])
    return first, min(last, known_to)


@kernel
def _solve(weights, mixture, scale, bounds, work, solved, ends):
    """Write the quantile of each query at each bound of S up to the first end of a component.

    weights : two Weights; mixture : Mixture; scale : Scale; bounds : (n,) float64, descending
    work : two Components; solved : (n_queries, n) float64
    ends : two arrays, (n_queries,) float64: the results of ``find_ends``
    """
    root, time = mixture.root, mixture.time
    first_end, last = ends
    for q in range(solved.shape[0]):
        factor, first = scale.factor[q], weights[0].offsets[q]
        n_direct, end_direct = write_component(weights[0], q, mixture.direct, 1.0, work[0])
        n_residual, end_residual = write_component(weights[1], q, mixture.residual, factor, work[1])
        if n_direct == 0 and n_residual == 0:
            solved[q], first_end[q], last[q] = np.nan, np.nan, np.nan
            continue
        of_direct, of_residual = share_out(
            mixture.shares[0], mixture.shares[1], n_direct > 0, n_residual > 0
        )
        n_rows = n_direct, n_residual
        shares = of_direct, of_residual, mixture.shares[2]
        ranks = weights[0].ranks[first : first + n_direct]
        last_direct = time[ranks[n_direct - 1]] if n_direct > 0 else -np.inf
        ends_of_kinds = end_direct, end_residual
        first_end[q], last[q] = find_ends(
            last_direct, work[1], n_rows, ends_of_kinds, mixture, scale, factor
        )
        i = 0
        for k in range(bounds.shape[0]):
            i = first_direct(work, n_rows, root, factor, shares, bounds[k], i)
            h = first_between(work, n_rows, root, factor, shares, bounds[k], i)
            found = find_time(h, scale.knots, scale.hazards, 0)[0]
            if h == np.inf and i < n_direct:
                found = time[ranks[i]]
            solved[q, k] = found if found <= first_end[q] else np.inf
