"""Standard errors by the bootstrap of little bags (Athey, Tibshirani and Wager 2019).

The trees of a bag draw from the same half of the rows. Each tree t moves S(.|x) from the forest's
estimate by about

    psi_t = sum_i w_i(x; t) xi_i,    xi_i = dS / dw_i at the forest's own weights.

The variance of the bags' means of psi, less the part that trees within a bag add by chance, is the
variance of the forest. Where that difference is small or negative it is replaced by its posterior
mean under a flat prior on the positive numbers, as in R's grf.

For the product-limit curve, with H_j the weight at risk before row j in time order,

    xi_i = S(t) (sum over events j < i of (1 / H_{j+1} - 1 / H_j)  -  1(i is an event) / H_i),

over events up to t: exact, and zero on average over the forest's weights.

For the incidence of a cause, F(t) = sum of f_j over its events j up to t, f_j = S_{j-} w_j / H_j,
with b_j = sum over events m < j of (1 / H_{m+1} - 1 / H_m),

    xi_i = sum over its events j <= i of f_j (b_j - 1 / H_j)  +  1(i is one of them) S_{i-} / H_i
           + (b_i - 1(i is an event) / H_i) (sum of f_j over its events j > i),

over events up to t. A move of S is a move of 1 - S, and the bags' variance is that of either.

A quantile is where S crosses 1 - tau. An interval for S there is therefore an interval for the
level, and the quantiles at its two ends bound the quantile (Woodruff 1952).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc, ndtri

from cqrf._forest.traversal import Leaves
from cqrf._forest.weights import Weights
from cqrf._runtime.arguments import read_fraction
from cqrf._runtime.compiling import allocating_kernel, called, kernel
from cqrf._survival.curves import RankedTarget

MAX_BLOCK = 96  # times that are handled at once, as vectors; more would not stay in the cache
VECTOR = 8  # numbers of a vector instruction: a width that is a multiple leaves no remainder


class OfCause(NamedTuple):
    """Number of the cause of each row, uint8 by rank, and the cause in question."""

    number: NDArray[np.uint8]
    chosen: int


class Bags(NamedTuple):
    """Leaves of queries, (n_queries, n_trees), the rows in them, and trees per bag."""

    starts: NDArray[np.int64]
    sizes: NDArray[np.int32]
    leaf_rows: NDArray[np.int32]
    bag_size: int


class BagVariances(NamedTuple):
    """Variance of the bags' means, and of the noise in them; (n_queries, n_times) each."""

    between: NDArray[np.float64]
    within: NDArray[np.float64]


class BagMoves(NamedTuple):
    """Mean of psi in each bag, (n_queries, n_times, n_bags), and the variance of its noise."""

    means: NDArray[np.float64]
    within: NDArray[np.float64]


def bag_moves(
    leaves: Leaves,
    leaf_rows: NDArray[np.int32],
    weights: Weights,
    target: RankedTarget,
    at: NDArray[np.float64],
    bag_size: int,
) -> BagMoves:
    """How each bag moves S at times of shape (n_queries, n_times).

    A query without weights does not move.
    """
    n_queries, n_times = at.shape
    n_bags = leaves.sizes.shape[1] // bag_size
    means = np.empty((n_bags, n_queries, n_times))
    bags = Bags(leaves.starts, leaves.sizes, leaf_rows, bag_size)
    _, within = _bag_variances(bags, weights, target, at, None, 0, means)
    return BagMoves(np.moveaxis(means, 0, 2), within)


def bag_variances(
    leaves: Leaves,
    leaf_rows: NDArray[np.int32],
    weights: Weights,
    target: RankedTarget,
    at: NDArray[np.float64],
    bag_size: int,
    cause: OfCause | None = None,
) -> BagVariances:
    """Variances of S, or of the incidence of a cause, at times of shape (n_queries, n_times).

    Times are oriented to the right.
    """
    number, chosen = (None, 0) if cause is None else cause
    between, within = _bag_variances(
        Bags(leaves.starts, leaves.sizes, leaf_rows, bag_size),
        weights,
        target,
        at,
        number,
        chosen,
        None,
    )
    return BagVariances(between, within)


def standard_errors(variances: BagVariances, n_bags: int) -> NDArray[np.float64]:
    """Standard error of S, from the variances of so many bags."""
    return np.sqrt(remove_noise(variances.between, variances.within, n_bags))


def confidence_width(confidence: float) -> float:
    """Standard errors on each side of an estimate."""
    level = read_fraction("confidence", confidence, 0.0, 1.0)
    if not 0.0 < level < 1.0:
        raise ValueError(f"confidence={confidence!r} must lie strictly between 0 and 1.")
    return float(ndtri((1.0 + level) / 2.0))


def survival_interval(
    survival: NDArray[np.float64], width: NDArray[np.float64], censoring: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Interval of P(T > t); under left censoring the mirror image of that of P(-T > -t)."""
    if censoring == "right":
        return log_log_interval(survival, width)
    lower, upper = log_log_interval(1.0 - survival, width)
    return 1.0 - upper, 1.0 - lower


def log_log_interval(
    survival: NDArray[np.float64], width: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Interval of S on the scale of log(-log S), from its half width on the scale of S."""
    inside = (survival > 0) & (survival < 1)
    s = np.where(inside, survival, 0.5)
    with np.errstate(over="ignore"):  # next to 0 or 1 an infinite stretch gives the limits 0 and 1
        stretch = np.exp(np.where(inside, width / np.abs(s * np.log(s)), 0.0))
    return np.where(inside, s**stretch, survival), np.where(inside, s ** (1 / stretch), survival)


def remove_noise(
    between: NDArray[np.float64], within: NDArray[np.float64], n_bags: int
) -> NDArray[np.float64]:
    """Variance between bags less that of their noise, kept positive."""
    difference = between - within
    error = np.maximum(between, within) * np.sqrt(2.0 / n_bags)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = difference / error
        density = np.exp(-(ratio**2) / 2) / np.sqrt(2 * np.pi)
        correction = error * density / (0.5 * erfc(-ratio / np.sqrt(2)))
    return np.where(error > 0, difference + correction, 0.0)


class CurvePath(NamedTuple):
    """The curve of one row of weights, row by row in time order: S, or F of a cause."""

    fixed: NDArray[np.float64]
    """(n,): xi_i is ``fixed + slope * level`` for any t from the time of row i on; 0 for S."""
    slope: NDArray[np.float64]
    """(n,)"""
    level: NDArray[np.float64]
    """(n + 1,): the curve by the number of rows up to t."""
    later: NDArray[np.float64]
    """(n + 1,): xi_i of the rows after t, by the number of rows up to t."""


@allocating_kernel
def follow_curve(ranks, weights, event, cause, chosen):
    """The path of the incidence of the chosen cause, or of S if ``cause`` is None.

    ranks : (n,) int32, ascending; weights : (n,) float64; event : bool by rank
    cause : uint8 by rank, or None; chosen : int
    """
    if cause is None:
        return follow_survival(ranks, weights, event)
    return follow_incidence(ranks, weights, event, cause, chosen)


@allocating_kernel
def follow_survival(ranks, weights, event):
    """The path of S; arguments as for :func:`follow_curve`."""
    n = ranks.shape[0]
    at_risk = sum_behind(weights)
    own, later, survival = np.empty(n), np.empty(n + 1), np.empty(n + 1)
    later[0], survival[0] = 0.0, 1.0
    for i in range(n):
        own[i], later[i + 1], survival[i + 1] = later[i], later[i], survival[i]
        if event[ranks[i]]:
            survival[i + 1] *= at_risk[i + 1] / at_risk[i]
            own[i] -= 1.0 / at_risk[i]
            if i + 1 < n:
                later[i + 1] += 1.0 / at_risk[i + 1] - 1.0 / at_risk[i]
    for i in range(n + 1):
        later[i] *= survival[i]
    return CurvePath(np.zeros(n), own, survival, later)


@allocating_kernel
def follow_incidence(ranks, weights, event, cause, chosen):
    """The path of the incidence of the chosen cause; arguments as for :func:`follow_curve`."""
    n = ranks.shape[0]
    at_risk = sum_behind(weights)
    fixed, own = np.empty(n), np.empty(n)
    later, level = np.empty(n + 1), np.empty(n + 1)
    later[0], level[0] = 0.0, 0.0
    survival, base = 1.0, 0.0
    for i in range(n):
        later[i + 1], level[i + 1] = later[i], level[i]
        own[i], fixed[i] = base, 0.0
        if event[ranks[i]]:
            own[i] -= 1.0 / at_risk[i]
            stays = at_risk[i + 1] / at_risk[i]
            if cause[ranks[i]] == chosen:
                step = survival * (1.0 - stays)
                level[i + 1] += step
                later[i + 1] += step * (base - 1.0 / at_risk[i])
                fixed[i] = survival / at_risk[i]
            survival *= stays
            if i + 1 < n:
                base += 1.0 / at_risk[i + 1] - 1.0 / at_risk[i]
        fixed[i] += later[i + 1] - own[i] * level[i + 1]
    return CurvePath(fixed, own, level, later)


@allocating_kernel
def sum_behind(weights):
    """Weight of each row and all behind it, and a 0 behind the last; (n + 1,) float64."""
    n = weights.shape[0]
    total = np.empty(n + 1)
    total[n] = 0.0
    for i in range(n - 1, -1, -1):
        total[i] = total[i + 1] + weights[i]
    return total


@allocating_kernel
def write_influence(ranks, path, time, at, influence):
    """Write xi_i, the derivative of the curve at times by w_i, of every row of weights.

    ranks : (n,) int32, ascending; path : CurvePath of the row; time : float64 by rank
    at : (n_times,) float64; influence : (n_train, width) float64, written at ``ranks``
    """
    n, n_times = ranks.shape[0], at.shape[0]
    n_before, level, later = np.empty(n_times, np.int64), np.empty(n_times), np.empty(n_times)
    for j in range(n_times):
        first, last = 0, n  # the number of rows up to at[j], by bisection
        while first < last:
            middle = (first + last) // 2
            if time[ranks[middle]] <= at[j]:
                first = middle + 1
            else:
                last = middle
        n_before[j], level[j], later[j] = first, path.level[first], path.later[first]
    for i in range(n):
        of_row = influence[ranks[i]]
        fixed, slope = path.fixed[i], path.slope[i]
        for j in range(n_times):
            of_row[j] = fixed + slope * level[j] if i < n_before[j] else later[j]


@kernel
def mean_over_leaf(rows, sample_weight, influence, mean):
    """Write the mean of each column of the influence over the rows of a leaf.

    rows : (n,) int32 ranks; sample_weight : floats by rank, or None
    influence : (n_train, width) float64; mean : (width,) float64, written
    """
    mass = 0.0
    for j in range(mean.shape[0]):
        mean[j] = 0.0
    for i in range(rows.shape[0]):
        weight = 1.0 if sample_weight is None else np.float64(sample_weight[rows[i]])
        of_row = influence[rows[i]]
        for j in range(mean.shape[0]):
            mean[j] += weight * of_row[j]
        mass += weight
    for j in range(mean.shape[0]):
        mean[j] /= mass


@kernel
def add_bag(moves, mean, n_bags, between, within):
    """Add the terms of one bag to the variances.

    moves : (bag_size, width) float64, psi of each tree; mean : (width,) float64, written
    between, within : (width,) float64, added to
    """
    bag_size = moves.shape[0]
    for j in range(mean.shape[0]):
        mean[j] = 0.0
    for b in range(bag_size):
        move = moves[b]
        for j in range(mean.shape[0]):
            mean[j] += move[j] / bag_size
    for j in range(mean.shape[0]):
        between[j] += mean[j] * mean[j] / n_bags
    for b in range(bag_size):
        move = moves[b]
        for j in range(mean.shape[0]):
            distance = move[j] - mean[j]
            within[j] += distance * distance / (n_bags * bag_size * (bag_size - 1))


@called
def keep_mean(means, bag, mean):
    """Copy the mean of a bag unless ``means`` is None; there may be fewer times than in a block."""
    if means is not None:
        for j in range(means.shape[1]):
            means[bag, j] = mean[j]


@kernel
def add_bags(bags, sample_weight, influence, moves, mean, variances, means):
    """Add the terms of all bags of a query to the variances at a block of times.

    bags : Bags of one query, ``starts`` and ``sizes`` of shape (n_trees,)
    sample_weight, influence : as for :func:`mean_over_leaf`
    moves : (bag_size, width) float64, mean : (width,) float64, work arrays
    variances : BagVariances, arrays of shape (width,), added to
    means : (n_bags, n_times) float64, written; None: not kept

    In a kernel of its own, as counting references to the rows of each leaf would take longer than
    reading them.
    """
    starts, sizes, leaf_rows = bags.starts, bags.sizes, bags.leaf_rows
    n_bags = starts.shape[0] // bags.bag_size
    for bag in range(n_bags):
        for b in range(bags.bag_size):
            tree = bag * bags.bag_size + b
            rows = leaf_rows[starts[tree] : starts[tree] + sizes[tree]]
            mean_over_leaf(rows, sample_weight, influence, moves[b])
        add_bag(moves, mean, n_bags, variances.between, variances.within)
        keep_mean(means, bag, mean)


@allocating_kernel
def _bag_variances(bags, weights, target, at, cause, chosen, means):
    """Variance of the bags' means, and of their noise, for each query and time.

    bags : Bags; weights : Weights of n_queries rows
    target : RankedTarget; at : (n_queries, n_times) float64
    cause, chosen : as for :func:`follow_curve`
    means : (n_bags, n_queries, n_times) float64, written; None: not kept

    Times are taken in blocks, so that loops over them become vector instructions. Blocks do not
    change the order in which the terms of one time are added.
    """
    offsets, (n_queries, n_times) = weights.offsets, at.shape
    n_blocks = max(1, -(-n_times // MAX_BLOCK))
    width = VECTOR * -(-n_times // (n_blocks * VECTOR))
    shape = (n_queries, n_blocks, width)
    between, within = np.zeros(shape), np.zeros(shape)
    influence, mean = np.zeros((target.time.shape[0], width)), np.empty(width)
    moves = np.empty((bags.bag_size, width))
    for q in range(n_queries):
        row = slice(offsets[q], offsets[q + 1])
        ranks = weights.ranks[row]
        path = follow_curve(ranks, weights.values[row], target.event, cause, chosen)
        of_query = Bags(bags.starts[q], bags.sizes[q], bags.leaf_rows, bags.bag_size)
        for block in range(n_blocks):
            times = at[q, block * width : (block + 1) * width]
            write_influence(ranks, path, target.time, times, influence)
            variances = BagVariances(between[q, block], within[q, block])
            kept = None if means is None else means[:, q, block * width : (block + 1) * width]
            add_bags(of_query, target.weight, influence, moves, mean, variances, kept)
    n_columns = n_blocks * width
    return (
        between.reshape(n_queries, n_columns)[:, :n_times].copy(),
        within.reshape(n_queries, n_columns)[:, :n_times].copy(),
    )
