"""Uncertainty: how far the estimate itself would move with another sample.

Trees come in bags that share a half of the rows (the bootstrap of little bags, Athey, Tibshirani
and Wager 2019). Each tree t moves S(t|x) from the forest's by about

    psi_t = sum_i w_i(x; t) xi_i,    xi_i = dS / dw_i at the forest's own weights,

and the variance of the bags' means of psi, less what the trees within a bag would make of it by
chance, is that of the forest. What is left of it when that difference is small or negative is the
posterior mean under a flat prior on the positive numbers, as in R's grf.

For the product-limit curve, with H_j the weight at risk before row j in time order,

    xi_i = S(t) (sum over events j < i of (1 / H_{j+1} - 1 / H_j)  -  1(i is an event) / H_i),

over events up to t: exact, and zero on average over the forest's weights.

A quantile is where S crosses 1 - tau, so an interval for S there is one for the level, and the
quantiles at its two ends bound the quantile (Woodruff 1952).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc, ndtri

from cqrf._forest.spec import Forest
from cqrf._forest.traversal import find_leaves
from cqrf._forest.weights import CHUNK_WEIGHTS, forest_weights
from cqrf._runtime.arguments import read_fraction
from cqrf._runtime.compiling import allocating_kernel
from cqrf._runtime.threads import thread_map


def survival_errors(
    forest: Forest,
    queries: NDArray[np.uint8],
    time: NDArray[np.float64],
    event: NDArray[np.bool_],
    sample_weight: NDArray[np.float32] | None,
    at: NDArray[np.float64],
    bag_size: int,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Standard error of S at ``at``, times of shape (n_queries, n_times), oriented to the right."""
    n_train, n_bags = len(time), len(forest.roots) // bag_size
    chunk = max(1, CHUNK_WEIGHTS // n_train)

    def task(start: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rows = slice(start, start + chunk)
        leaves = find_leaves(forest, queries[rows])
        weights = forest_weights(leaves, forest.leaf_rows, n_train, sample_weight)
        return _bag_variances(
            *leaves,
            forest.leaf_rows,
            *weights,
            time,
            event,
            sample_weight,
            at[rows],
            n_bags,
            bag_size,
        )

    parts = thread_map(task, [(start,) for start in range(0, len(queries), chunk)], n_jobs)
    between, within = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return np.sqrt(remove_noise(between, within, n_bags))


def confidence_width(confidence: float) -> float:
    """Standard errors on each side of an estimate."""
    level = read_fraction("confidence", confidence, 0.0, 1.0)
    if not 0.0 < level < 1.0:
        raise ValueError(f"confidence={confidence!r} must lie strictly between 0 and 1.")
    return float(ndtri((1.0 + level) / 2.0))


def log_log_interval(
    survival: NDArray[np.float64], width: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Interval of S on the scale of log(-log S), from its half width on the scale of S."""
    inside = (survival > 0) & (survival < 1)
    s = np.where(inside, survival, 0.5)
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


@allocating_kernel
def write_influence(ranks, weights, time, event, at, influence):
    """Write dS(at) / dw of every row of weights, by rank."""
    n = ranks.shape[0]
    at_risk = np.empty(n + 1)
    at_risk[n] = 0.0
    for i in range(n - 1, -1, -1):
        at_risk[i] = at_risk[i + 1] + weights[i]
    survival, so_far = 1.0, 0.0
    for i in range(n):
        rank = ranks[i]
        own = so_far
        if event[rank] and time[rank] <= at:
            survival *= at_risk[i + 1] / at_risk[i]
            own -= 1.0 / at_risk[i]
            if i + 1 < n:
                so_far += 1.0 / at_risk[i + 1] - 1.0 / at_risk[i]
        influence[rank] = own
    for i in range(n):
        influence[ranks[i]] *= survival


@allocating_kernel
def _bag_variances(
    starts,
    sizes,
    leaf_rows,
    offsets,
    ranks,
    weights,
    time,
    event,
    sample_weight,
    at,
    n_bags,
    bag_size,
):
    """Variance of the bags' means, and of their noise, for each query and time."""
    n_queries, n_times = at.shape
    between, within = np.zeros((n_queries, n_times)), np.zeros((n_queries, n_times))
    influence = np.zeros(time.shape[0])
    moves = np.empty(bag_size)
    for q in range(n_queries):
        row = ranks[offsets[q] : offsets[q + 1]]
        row_weights = weights[offsets[q] : offsets[q + 1]]
        for k in range(n_times):
            write_influence(row, row_weights, time, event, at[q, k], influence)
            for bag in range(n_bags):
                mean = 0.0
                for b in range(bag_size):
                    t = bag * bag_size + b
                    total, mass = 0.0, 0.0
                    for i in range(starts[q, t], starts[q, t] + sizes[q, t]):
                        rank = leaf_rows[i]
                        weight = 1.0 if sample_weight is None else np.float64(sample_weight[rank])
                        total += weight * influence[rank]
                        mass += weight
                    moves[b] = total / mass
                    mean += moves[b] / bag_size
                between[q, k] += mean * mean / n_bags
                for b in range(bag_size):
                    distance = moves[b] - mean
                    within[q, k] += distance * distance / (n_bags * bag_size * (bag_size - 1))
    return between, within
