"""Splitting: the best split of a node, from one histogram per candidate feature.

A split sends the rows of some bins left and the others right. Its gain is the drop in the
labels' sum of squares,

    gain = n / (n_L n_R) * sum_k D_k^2 / v_k,    D_k = L_k - n_L mean_k,

with L_k the label sum on the left, n the weight of rows, and v_k = tau_k (1 - tau_k) for the
levels of a curve (each level standardised by its own variance), 1 otherwise. ``precision``
is 1 / v_k.

Bins of a numeric feature are taken in their order; those of a category in the order of their
mean label, which is where the best two-set split lies for one label. Missing values have a
bin of their own that is tried on both sides.
"""

from __future__ import annotations

import numpy as np

from cqrf.chance import below, mix
from cqrf.growing.histograms import MISSING, accumulate, add_bin, empty_bin, fill, list_seen
from cqrf.growing.labels import CLASSES, MEAN
from cqrf.kernel import kernel


@kernel
def best_cut(
    shape,
    n_bins,
    n,
    mass,
    means,
    precision,
    levels,
    min_child,
    open_end,
    missing_label,
    missing_mass,
    missing_count,
    label_below,
    mass_below,
    count_below,
):
    """Best place to cut a sequence of bins: (place, gain); the bins up to it go left.

    ``missing_*`` is what joins the left side before the first bin. ``open_end``: all bins
    may go left, as missing values are on the right.
    """
    last = n_bins if open_end else n_bins - 1
    first = 0
    while first < last and count_below[first] + missing_count < min_child:
        first += 1
    while last > first and n - count_below[last - 1] - missing_count < min_child:
        last -= 1
    best_gain, best_at = 0.0, -1
    for at in range(first, last):
        left = mass_below[at] + missing_mass
        if shape == MEAN:
            excess = label_below[at, 0] + missing_label[0]
            gain = excess * excess
        else:
            gain = 0.0
            for k in range(len(levels) + 1):
                excess = label_below[at, k] + missing_label[k] - left * means[k]
                gain += precision[k] * excess * excess
        gain *= mass / (left * (mass - left))
        if gain > best_gain:
            best_gain, best_at = gain, at
    return best_at, best_gain


@kernel
def order_by_label(shape, bins, n_bins, sums, survival_at, precision, levels, labels, score):
    """Sort the bins of a category by their mean label, ties by code (there are few bins)."""
    for at in range(n_bins):
        code = bins[at]
        for k in range(labels.shape[0]):
            labels[k] = 0.0
        mass = add_bin(shape, code, sums, survival_at, levels, labels)
        total = 0.0
        for k in range(1 if shape == MEAN else labels.shape[0]):
            # Classes are disjoint: their mean rank is the label that orders them.
            scale = 1.0 if shape == MEAN else precision[k]
            total += (k if shape == CLASSES else scale) * labels[k]
        score[code] = total / mass
    for at in range(1, n_bins):
        code, i = bins[at], at - 1
        while i >= 0 and score[bins[i]] > score[code]:
            bins[i + 1] = bins[i]
            i -= 1
        bins[i + 1] = code


@kernel
def find_split(
    codes,
    categorical,
    rows,
    weight,
    shape,
    value,
    vectors,
    ends,
    means,
    precision,
    survival_at,
    levels,
    mass,
    min_child,
    features,
    n_candidates,
    random_word,
    seen,
    count,
    sums,
    bins,
    labels,
    missing_label,
    label_below,
    mass_below,
    count_below,
    score,
    subset,
):
    """Best split of the rows over randomly drawn features.

    Features are drawn without replacement until ``n_candidates`` of them vary in the node.
    Returns the feature (-1: none), the last code that goes left (numeric features; for a
    category ``subset`` holds a bit per code that goes left), whether missing values go left,
    whether there were any, the gain, and the random word to go on with.
    """
    n, n_features = np.float64(rows.shape[0]), features.shape[0]
    best_feature, best_code, best_gain = -1, 0, 0.0
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

        fill(
            shape,
            codes[feature],
            rows,
            weight,
            value,
            vectors,
            ends,
            len(levels) + 1,
            seen,
            count,
            sums,
        )
        n_bins = list_seen(seen, bins)
        n_varying += n_bins > 1
        saw_missing = bins[n_bins - 1] == MISSING
        missing_mass, missing_count = 0.0, 0.0
        if saw_missing:
            n_bins -= 1
            missing_mass = add_bin(shape, MISSING, sums, survival_at, levels, missing_label)
            missing_count = missing_mass if weight is None else np.float64(count[MISSING])
            empty_bin(MISSING, sums, levels)
            count[MISSING] = 0
        if categorical[feature]:
            order_by_label(shape, bins, n_bins, sums, survival_at, precision, levels, labels, score)
        accumulate(
            shape,
            bins,
            n_bins,
            weight,
            sums,
            count,
            survival_at,
            levels,
            labels,
            label_below,
            mass_below,
            count_below,
        )
        for side in range(2 if saw_missing else 1):
            missing_left = saw_missing and side == 0
            if saw_missing and side == 1:
                for k in range(missing_label.shape[0]):
                    missing_label[k] = 0.0
                missing_mass, missing_count = 0.0, 0.0
            at, gain = best_cut(
                shape,
                n_bins,
                n,
                mass,
                means,
                precision,
                levels,
                min_child,
                saw_missing and not missing_left,
                missing_label,
                missing_mass,
                missing_count,
                label_below,
                mass_below,
                count_below,
            )
            if gain <= best_gain:
                continue
            best_feature, best_gain = feature, gain
            best_missing_left, best_saw_missing = missing_left, saw_missing
            if categorical[feature]:
                for word in range(4):
                    subset[word] = np.uint64(0)
                for i in range(at + 1):
                    code = np.uint64(bins[i])
                    subset[code >> np.uint64(6)] |= np.uint64(1) << (code & np.uint64(63))
            elif at + 1 < n_bins:
                # Half way between the last bin on the left and the first on the right.
                best_code = (bins[at] + bins[at + 1] - 1) >> 1
            else:
                # All values against the missing ones: larger values, too, are no missing ones.
                best_code = MISSING - 1
    return (
        best_feature,
        best_code,
        best_missing_left,
        best_saw_missing,
        best_gain,
        random_word,
    )
