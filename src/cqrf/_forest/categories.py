"""Categories: in which order the levels of a category are cut, and what that order costs.

The best split of the levels into two sets lies in the order of their mean labels, for one label.
But this order is made from the same labels that judge the split, so that a category of many levels
always seems to explain something. Under no effect, L levels of m_l rows each, cut at the best place
of their order, gain on average

    1 + 2 / pi (L' - 2),   L' = (sum of sqrt(m_l))^2 / sum of m_l,

times the gain of a fixed cut, with a standard deviation of about sqrt(.92 L'). What exceeds a fixed
cut is subtracted from the gain, and DEVIATIONS standard deviations more, so that a category without
effect is hardly ever split on, and ``feature_importances_`` of such a category is about 0. A
category of two levels has nothing to order and pays nothing.
"""

from __future__ import annotations

import numpy as np

from cqrf._input.risk_sets import TOLERANCE
from cqrf._runtime.compiling import called

DEVIATIONS = 2.0
# Share of the levels' variance that two sets of ordered levels explain, under no effect; and the
# standard deviation of the gain, over the square root of the number of levels.
EXPLAINED, SPREAD = 2.0 / np.pi, 0.96


@called
def is_category(categorical, feature):
    """Whether a feature is a category; ``categorical`` is None if none is."""
    return False if categorical is None else categorical[feature]


@called
def sort_category(categorical, feature, bins, n_bins, sums, direction, score):
    """Sort the bins of a category by their mean label, ties by code. Other features stay."""
    if categorical is not None and categorical[feature]:
        order_by_label(bins, n_bins, sums, direction, score)


@called
def order_by_label(bins, n_bins, sums, direction, score):
    """Insertion sort of some bins (few) by mean label; overwrites ``score`` by code."""
    longest, steepness = 0.0, 0.0
    for at in range(n_bins):
        code = bins[at]
        total, length, steepness = 0.0, 0.0, 0.0
        for k in range(1, sums.shape[1]):
            total += direction[k] * sums[code, k]
            length += sums[code, k] ** 2
            steepness += direction[k] ** 2
        score[code] = total / sums[code, 0]
        longest = max(longest, np.sqrt(length) / sums[code, 0])
    # Means that should be equal differ in the last digits of the labels.
    tolerance = TOLERANCE * longest * np.sqrt(steepness)
    for at in range(1, n_bins):
        code, i = bins[at], at - 1
        while i >= 0 and score[bins[i]] > score[code] + tolerance:
            bins[i + 1] = bins[i]
            i -= 1
        bins[i + 1] = code


@called
def cost_of_order(categorical, feature, bins, n_bins, sums, node):
    """What the order of the levels is expected to gain under no effect; 0 for other features.

    bins : the first ``n_bins`` are those of known levels; sums : (N_BINS, width) float64, weight
    and labels by bin; node : Node
    """
    if categorical is None or not categorical[feature] or n_bins < 3:
        return 0.0
    # In units of the mean weight, so that the same weight for all rows changes no digit.
    unit, total, roots = node.mass / node.rows.shape[0], 0.0, 0.0
    for at in range(n_bins):
        mass = sums[bins[at], 0] / unit
        total += mass
        roots += np.sqrt(mass)
    n_levels = roots * roots / total
    excess = EXPLAINED * (n_levels - 2.0)
    excess += DEVIATIONS * SPREAD * (np.sqrt(n_levels) - np.sqrt(2.0))
    return max(excess, 0.0) * gain_of_fixed_cut(node.label.labels, node.label.direction, node)


@called
def gain_of_fixed_cut(labels, direction, node):
    """Gain of a fixed cut under no effect, in the direction by which levels are ordered.

    labels : (n_rows, width) float64, weight, then weight times each label

    That is the labels' variance in this direction, and a factor for unequal weights.
    """
    n, along, squares = node.rows.shape[0], 0.0, 0.0
    for i in range(n):
        squares += labels[i, 0] * labels[i, 0]
    across = 0.0
    for k in range(1, labels.shape[1]):
        covariance, along = 0.0, 0.0
        for i in range(n):
            value = 0.0
            for j in range(1, labels.shape[1]):
                value += direction[j] * labels[i, j]
            value /= labels[i, 0]
            along += labels[i, 0] * value * value
            covariance += labels[i, k] * value
        across += covariance * covariance
    return across / along / node.mass * squares / node.mass if along > 0.0 else 0.0


@called
def write_subset(categorical, feature, bins, at, subset):
    """For a category, write one bit for each bin up to a place."""
    if categorical is not None and categorical[feature]:
        for word in range(4):
            subset[word] = np.uint64(0)
        for i in range(at + 1):
            code = bins[i]
            subset[code >> np.uint64(6)] |= np.uint64(1) << (code & np.uint64(63))
