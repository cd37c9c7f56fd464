"""Splitting: the best split of a node, from one histogram per candidate feature.

A split sends the rows of some bins left and the others right. Its gain is the drop in the labels'
sum of squares,

    gain = n / (n_L n_R) * sum_k L_k^2,

with L_k the sum of the k-th (centred) label on the left and n the weight of rows.

Bins of a numeric feature are cut in their order; those of a category in the order of their mean
label, less what this order gains by chance (:mod:`cqrf._forest.categories`). Missing values have a
bin of their own that is tried on both sides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cqrf._forest.categories import cost_of_order, sort_category, write_subset
from cqrf._forest.histograms import (
    clear_strata,
    count_rows,
    count_strata,
    fill,
    keep_strata,
    list_bins,
)
from cqrf._forest.spec import MISSING
from cqrf._runtime.compiling import called, inlined
from cqrf._runtime.intrinsics import sum_rows
from cqrf._runtime.random import below, mix


class Node(NamedTuple):
    """A node with its labels.

    ``rows`` are (n,) uint32 indices of its rows, ``mass`` their weight, ``min_child`` the fewest
    rows of a child, ``label`` a :class:`~cqrf._forest.workspace.LabelWork`. A child has at least
    ``min_stratum`` rows of each bit of ``stratum``, by row; None: rows have no strata.
    """

    rows: object
    label: object
    mass: float
    min_child: float
    stratum: object = None
    min_stratum: int = 0


class Split(NamedTuple):
    """A split: the feature (-1: none), where it is cut, and its gain.

    ``code`` is the last code that goes left, for numeric features. ``saw_missing`` says whether the
    node had missing values of the feature.
    """

    feature: int
    code: int | np.int64
    missing_left: bool
    saw_missing: bool
    gain: float


NO_SPLIT = Split(-1, 0, False, False, 0.0)


@called
def find_split(codes, categorical, node, n_candidates, random_word, subset, work):
    """Best split of a node over randomly drawn features: (Split, next random word).

    Features are drawn without replacement until ``n_candidates`` of them vary in the node. For a
    category, ``subset``, (4,) uint64, receives one bit for each code that goes left.
    """
    features = work.features
    n_features = features.shape[0]
    best = NO_SPLIT
    n_varying = 0
    for drawn in range(n_features):
        if n_varying == n_candidates:
            break
        random_word = mix(random_word)
        pick = drawn + below(random_word, n_features - drawn)
        feature = np.int64(features[pick])
        features[pick] = features[drawn]
        features[drawn] = feature
        best, varies = try_feature(codes[feature], categorical, feature, node, best, subset, work)
        n_varying += varies
    return best, random_word


@inlined
def try_feature(column, categorical, feature, node, best, subset, work):
    """The better of a split found so far and the best one on this feature; whether it varies."""
    rows, pairs, direction = node.rows, node.label.pairs, node.label.direction
    sums, bins = work.sums, work.bins
    running, start = work.running, work.start
    fill(column, rows, node.label.labels, pairs, work)
    n_bins = list_bins(rows.shape[0], work)
    varies = n_bins > 1
    saw_missing = bins[n_bins - 1] == MISSING
    if saw_missing:
        n_bins -= 1
    mass_below, score = running[0], running[1]
    sort_category(categorical, feature, bins, n_bins, sums, direction, score)
    cost = cost_of_order(categorical, feature, bins, n_bins, sums, node)
    count_below = running[row_of_counts(work.counts)]
    n_missing = count_rows(work.counts, column, rows, bins, n_bins, count_below)
    count_strata(work.strata, node.stratum, column, rows, bins, n_bins)
    # Missing values on the left, if there are any, then on the right.
    for missing_left in range(1 if saw_missing else 0, -1, -1):
        for k in range(sums.shape[1]):
            start[k] = sums[MISSING, k] if missing_left == 1 else 0.0
        sum_rows(sums, bins, n_bins, start, missing_left == 1, mass_below, score, pairs)
        n_cuts = n_bins if saw_missing and missing_left == 0 else n_bins - 1
        first, last = keep_strata(
            work.strata, n_bins, missing_left == 1, node.min_stratum, 0, n_cuts
        )
        at, gain = best_cut(node, first, last, n_missing * missing_left, count_below, running)
        gain -= cost
        if gain > best.gain:
            # A numeric split lies half way to the next bin. All values against the missing ones:
            # larger values than any seen here go left as well.
            code = np.int64(MISSING - 1)
            if at + 1 < n_bins:
                code = (np.int64(bins[at]) + np.int64(bins[at + 1]) - 1) >> 1
            best = Split(feature, code, missing_left == 1, saw_missing, gain)
            write_subset(categorical, feature, bins, at, subset)
    clear_strata(work.strata, bins, n_bins)
    if saw_missing:
        for k in range(sums.shape[1]):
            sums[MISSING, k] = 0.0
    return best, varies


@inlined
def best_cut(node, first, last, n_before, count_below, running):
    """Best place, from ``first`` to before ``last``, to cut a sequence of bins: (place, gain).

    The bins up to it go left. ``n_before`` rows are on the left besides those of ``count_below``.
    """
    n, mass, min_child = np.float64(node.rows.shape[0]), node.mass, node.min_child
    mass_below, score, gain = running[0], running[1], running[3]
    while first < last and count_below[first] + n_before < min_child:
        first += 1
    while last > first and (
        n - count_below[last - 1] - n_before < min_child
        or mass_below[last - 1] >= mass  # the weight of the rest is lost in rounding
    ):
        last -= 1
    # Two loops: the first, with nothing but divisions, is vectorised.
    mass_below, score = mass_below[first:last], score[first:last]
    for at in range(last - first):
        gain[at] = score[at] / (mass_below[at] * (mass - mass_below[at]))
    best_gain, best_at = 0.0, -1
    for at in range(last - first):
        if gain[at] > best_gain:
            best_gain, best_at = gain[at], at
    return first + best_at, mass * best_gain


@called
def row_of_counts(count):
    """Row of ``running`` with the rows up to each bin: without weights, their weight."""
    return 0 if count is None else 2
