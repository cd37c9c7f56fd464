"""Splitting: the best split of a node, from one histogram per candidate feature.

A split sends the rows of some bins left and the others right. Its gain is the drop in the
labels' sum of squares,

    gain = n / (n_L n_R) * sum_k L_k^2,

with L_k the sum of the k-th (centred) label on the left and n the weight of rows.

Bins of a numeric feature are taken in their order; those of a category in the order of their
mean label, which is where the best two-set split lies for one label. Missing values have a
bin of their own that is tried on both sides.
"""

from __future__ import annotations

import numpy as np

from cqrf._forest.histograms import (
    MISSING,
    count_rows,
    empty_bin,
    fill,
    list_seen,
)
from cqrf._input.risk_sets import TOLERANCE
from cqrf._runtime.compiling import called, inlined
from cqrf._runtime.intrinsics import sum_rows
from cqrf._runtime.random import below, mix


@inlined
def best_cut(n_bins, n, mass, min_child, open_end, n_before, mass_below, count_below, score, gain):
    """Best place to cut a sequence of bins: (place, gain); the bins up to it go left.

    ``n_before`` rows are on the left besides those of ``count_below``. ``open_end``: all bins
    may go left, as missing values are on the right.
    """
    first, last = 0, n_bins if open_end else n_bins - 1
    while first < last and count_below[first] + n_before < min_child:
        first += 1
    while last > first and (
        n - count_below[last - 1] - n_before < min_child
        or mass_below[last - 1] >= mass  # the rest weighs nothing beside it
    ):
        last -= 1
    # Two loops: the processor divides several numbers at once if nothing else is asked of it.
    mass_below, score = mass_below[first:last], score[first:last]
    for at in range(last - first):
        gain[at] = score[at] / (mass_below[at] * (mass - mass_below[at]))
    best_gain, best_at = 0.0, -1
    for at in range(last - first):
        if gain[at] > best_gain:
            best_gain, best_at = gain[at], at
    return first + best_at, mass * best_gain


@called
def order_by_label(bins, n_bins, sums, direction, score):
    """Sort the bins of a category by their mean label, ties by code (there are few bins)."""
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
def find_split(
    codes,
    categorical,
    rows,
    labels,
    pairs,
    direction,
    mass,
    min_child,
    features,
    n_candidates,
    random_word,
    count,
    subsets,
    n_subsets,
    seen,
    sums,
    bins,
    running,
    start,
):
    """Best split of the rows over randomly drawn features.

    Features are drawn without replacement until ``n_candidates`` of them vary in the node.
    Returns the feature (-1: none), the last code that goes left (numeric features; for a
    category row ``n_subsets`` of the subsets holds a bit per code that goes left), whether missing
    values go left, whether there were any, the gain, and the random word to go on with. ``count``
    is None unless rows have weights, and ``categorical`` unless there are categories.
    """
    n, n_features = np.float64(rows.shape[0]), features.shape[0]
    mass_below, score = running[0], running[1]
    count_below = mass_below if count is None else running[2]
    best_feature, best_code, best_gain = -1, np.int64(0), 0.0
    best_missing_left, best_saw_missing = False, False
    n_varying = 0
    for drawn in range(n_features):
        if n_varying == n_candidates:
            break
        random_word = mix(random_word)
        pick = drawn + below(random_word, n_features - drawn)
        feature = features[pick]
        features[pick] = features[drawn]
        features[drawn] = feature

        fill(codes[feature], rows, labels, pairs, seen, sums)
        n_bins = list_seen(rows.shape[0], seen, sums, bins)
        n_varying += n_bins > 1
        saw_missing = bins[n_bins - 1] == MISSING
        if saw_missing:
            n_bins -= 1
        if categorical is not None and categorical[feature]:
            order_by_label(bins, n_bins, sums, direction, score)
        n_missing = 0
        if count is not None:
            count_rows(codes[feature], rows, bins, n_bins, count, count_below)
            n_missing = count[MISSING]
            count[MISSING] = 0
        # Missing values on the left, if there are any, then on the right.
        for missing_left in range(1 if saw_missing else 0, -1, -1):
            for k in range(sums.shape[1]):
                start[k] = sums[MISSING, k] if missing_left == 1 else 0.0
            sum_rows(sums, bins, n_bins, start, missing_left == 1, mass_below, score, pairs)
            at, gain = best_cut(
                n_bins,
                n,
                mass,
                min_child,
                saw_missing and missing_left == 0,
                n_missing * missing_left,
                mass_below,
                count_below,
                score,
                running[3],
            )
            if gain <= best_gain:
                continue
            best_feature, best_gain = feature, gain
            best_missing_left, best_saw_missing = missing_left == 1, saw_missing
            if categorical is not None and categorical[feature]:
                for word in range(4):
                    subsets[n_subsets, word] = np.uint64(0)
                for i in range(at + 1):
                    code = bins[i]
                    bit = np.uint64(1) << (code & np.uint64(63))
                    subsets[n_subsets, code >> np.uint64(6)] |= bit
            elif at + 1 < n_bins:
                # Half way between the last bin on the left and the first on the right.
                best_code = (np.int64(bins[at]) + np.int64(bins[at + 1]) - 1) >> 1
            else:
                # All values against the missing ones: larger values, too, are no missing ones.
                best_code = np.int64(MISSING - 1)
        if saw_missing:
            empty_bin(MISSING, sums)
    return (
        best_feature,
        best_code,
        best_missing_left,
        best_saw_missing,
        best_gain,
        random_word,
    )
