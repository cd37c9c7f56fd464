"""The best split of a node, found by trying every split.

The gain is computed from its definition: the drop in the weighted sum of squares of the labels
about their means.
"""

from itertools import combinations

import numpy as np

from cqrf._forest.spec import MISSING
from oracles.criteria import LEVELS, true_labels


def sum_of_squares(labels, weight):
    mean = weight @ labels / weight.sum()
    return weight @ (labels - mean) ** 2


def gain_of(left, labels, precision, weight):
    """Drop in the sum of squares of the labels when the rows ``left`` are split from the others."""
    right = ~left
    drop = (
        sum_of_squares(labels, weight)
        - sum_of_squares(labels[left], weight[left])
        - sum_of_squares(labels[right], weight[right])
    )
    return float(drop @ precision)


def ordered_categories(column, labels, precision, weight, is_classes):
    """Categories by their mean label; classes by their mean rank."""
    factor = np.arange(labels.shape[1]) if is_classes else precision
    present = [int(c) for c in np.unique(column) if c != MISSING]

    def score(code):
        inside = column == code
        return weight[inside] @ labels[inside] @ factor / weight[inside].sum()

    return sorted(present, key=lambda code: (round(score(code), 9), code))


def cost_of_order(column, labels, precision, weight, is_classes):
    """What the order of a category's levels is expected to gain, and two deviations more."""
    factor = np.arange(labels.shape[1]) if is_classes else precision
    masses = [weight[column == code].sum() for code in np.unique(column) if code != MISSING]
    if len(masses) < 3:
        return 0.0
    centred = labels - weight @ labels / weight.sum()
    along = centred @ factor
    variance = weight @ along**2 / weight.sum()
    if variance == 0:
        return 0.0
    covariance = weight @ (centred * along[:, np.newaxis]) / weight.sum()
    explained = covariance**2 @ precision / variance
    of_fixed_cut = explained * (weight @ weight) / weight.sum()
    n_levels = np.sqrt(masses).sum() ** 2 / np.sum(masses)
    excess = 2 / np.pi * (n_levels - 2) + 2 * 0.96 * (np.sqrt(n_levels) - np.sqrt(2))
    return max(0.0, excess) * of_fixed_cut


def sets_that_go_left(column, order=None):
    """Every set of codes that a split may send left, and where missing values go."""
    present = [int(c) for c in np.unique(column) if c != MISSING] if order is None else order
    missing_sides = (True, False) if MISSING in column else (False,)
    for missing_left in missing_sides:
        for i in range(1, len(present) + 1):
            yield present[:i], missing_left


def all_subsets(column):
    """Every set of categories, and where missing values go."""
    present = [int(c) for c in np.unique(column) if c != MISSING]
    missing_sides = (True, False) if MISSING in column else (False,)
    for missing_left in missing_sides:
        for size in range(len(present) + 1):
            for subset in combinations(present, size):
                yield list(subset), missing_left


def left_rows(column, codes, missing_left):
    return np.isin(column, codes) | ((column == MISSING) & missing_left)


def best_gain_by_force(columns, candidates_of, truth, weight, min_child, costs):
    """Best gain, less the cost of each feature, over all their splits; 0 if none is allowed."""
    labels, precision = truth
    n, best = len(weight), 0.0
    for j, column in enumerate(columns):
        for codes, missing_left in candidates_of(j, column):
            left = left_rows(column, codes, missing_left)
            if min(left.sum(), n - left.sum()) >= max(1, min_child):
                best = max(best, gain_of(left, labels, precision, weight) - costs[j])
    return best


def make_table(rng, n=50, missing=0.0, n_features=3, n_codes=8, censored=0.4, driver=0):
    """A table in time order; one feature, the driver, moves the time a little."""
    codes = rng.integers(0, n_codes, (n_features, n)) * rng.choice([1, 5, 30], (n_features, 1))
    effect = np.where(codes[driver] > codes[driver].mean(), 8, 0)
    time, event, weight = (
        rng.integers(0, 25, n) + effect,
        rng.random(n) >= censored,
        (rng.integers(1, 17, n) / 8).astype(np.float32),
    )
    order = np.lexsort((~event, time))
    codes = np.where(rng.random(codes.shape) < missing, MISSING, codes)
    codes = np.ascontiguousarray(codes[:, order].astype(np.uint8))
    return codes, time[order].astype(float), event[order], weight[order]


def node_truth(criterion, time, event, weight, rows, entry=None, levels=LEVELS):
    own = None if weight is None else weight[rows]
    own_entry = None if entry is None else entry[rows]
    truth = true_labels(criterion, time[rows], event[rows], own, levels, own_entry)
    return truth, np.ones(len(rows)) if own is None else own.astype(float)
