"""Histograms: the labels of a node summed per bin of one feature.

A histogram is scratch that is clean between uses: ``seen`` (a byte per bin), ``sums`` (the
channels below) and ``count`` (rows per bin, written only if rows have weights; otherwise a
row's weight is 1 and the weight channels count rows).

======== ======================================================================
shape    channels
======== ======================================================================
MEAN     label, weight
CLASSES  weight of each class
CURVE    of each class: weight, weight / S(Y) of its censored rows
VECTOR   label of each level, weight
======== ======================================================================
"""

from __future__ import annotations

import numpy as np

from cqrf.growing.labels import CLASSES, CURVE, MEAN, VECTOR
from cqrf.kernel import inlined, kernel, trailing_zeros

N_BINS = 256
MISSING = 255


@kernel
def fill(shape, column, rows, weight, value, vectors, ends, n_classes, seen, count, sums):
    """Sum the labels of the rows into the bins of a feature."""
    if shape == MEAN:
        for i in range(rows.shape[0]):
            code = column[rows[i]]
            seen[code] = 1
            sums[code, 0] += value[i]
            sums[code, 1] += 1.0 if weight is None else np.float64(weight[rows[i]])
    elif shape == VECTOR:
        for i in range(rows.shape[0]):
            code = column[rows[i]]
            seen[code] = 1
            for k in range(n_classes - 1):
                sums[code, k] += vectors[i, k]
            sums[code, n_classes - 1] += 1.0 if weight is None else np.float64(weight[rows[i]])
    else:
        start = 0
        for c in range(n_classes):
            for i in range(start, ends[c]):
                code = column[rows[i]]
                seen[code] = 1
                row_weight = 1.0 if weight is None else np.float64(weight[rows[i]])
                if shape == CLASSES:
                    sums[code, c] += row_weight
                else:
                    sums[code, 2 * c] += row_weight
                    sums[code, 2 * c + 1] += value[i]
            start = ends[c]
    if weight is not None:
        for i in range(rows.shape[0]):
            count[column[rows[i]]] += 1


@kernel
def list_seen(seen, bins):
    """List the bins seen, ascending; clear ``seen``."""
    words = seen.view(np.uint64)
    n = 0
    for w in range(N_BINS // 64):
        # Eight bytes of 0 or 1 become eight bits by one multiplication: walking the bits of
        # four words costs far fewer wrong guesses of the processor than testing 256 bytes.
        bits = np.uint64(0)
        for b in range(8):
            packed = (words[8 * w + b] * np.uint64(0x0102040810204080)) >> np.uint64(56)
            bits |= packed << np.uint64(8 * b)
            words[8 * w + b] = np.uint64(0)
        while bits != np.uint64(0):
            bins[n] = 64 * w + trailing_zeros(bits)
            n += 1
            bits &= bits - np.uint64(1)
    return n


@inlined
def add_curve_bin(code, sums, survival_at, levels, labels):
    """Add the label sums of the rows in a bin, for a curve; return the rows' weight.

    At each level, classes above the cut point count whole, those below it by their censored
    rows. ``levels`` is a tuple, so that these loops have a length known to the compiler.
    """
    mass = 0.0
    for c in range(len(levels) + 1):
        mass += sums[code, 2 * c]
    beyond, censored_below = mass, 0.0
    for k in range(len(levels)):
        beyond -= sums[code, 2 * k]
        censored_below += sums[code, 2 * k + 1]
        labels[k] += beyond + survival_at[k] * censored_below
    return mass


@inlined
def add_class_bin(code, sums, levels, labels):
    """The same for classes."""
    mass = 0.0
    for c in range(len(levels) + 1):
        labels[c] += sums[code, c]
        mass += sums[code, c]
    return mass


@kernel
def add_bin(shape, code, sums, survival_at, levels, labels):
    """Add the label sums of the rows in a bin to ``labels``; return the rows' weight."""
    if shape == MEAN:
        labels[0] += sums[code, 0]
        return sums[code, 1]
    if shape == CLASSES:
        return add_class_bin(code, sums, levels, labels)
    if shape == VECTOR:
        for k in range(len(levels)):
            labels[k] += sums[code, k]
        return sums[code, len(levels)]
    return add_curve_bin(code, sums, survival_at, levels, labels)


@inlined
def empty_bin(code, sums, levels):
    """Set one bin back to zero."""
    for c in range(2 * len(levels) + 2):
        sums[code, c] = 0.0


@inlined
def pass_bin(at, code, mass, levels, labels, sums, label_below, mass_below):
    """Note the running sums at one place of the sequence, and empty its bin."""
    mass_below[at] = mass
    for k in range(len(levels) + 1):
        label_below[at, k] = labels[k]
    empty_bin(code, sums, levels)


@kernel
def accumulate(
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
):
    """Running sums over a sequence of bins, which are emptied on the way.

    Writes for each place in the sequence the label sums (shape (places, labels)), weight
    and number of rows up to and including it. Each shape has a loop of its own: this is hot.
    """
    mass = 0.0
    for k in range(len(levels) + 1):
        labels[k] = 0.0
    if shape == MEAN:
        label = 0.0
        for at in range(n_bins):
            code = bins[at]
            label += sums[code, 0]
            mass += sums[code, 1]
            label_below[at, 0] = label
            mass_below[at] = mass
            sums[code, 0] = 0.0
            sums[code, 1] = 0.0
    elif shape == CURVE:
        for at in range(n_bins):
            mass += add_curve_bin(bins[at], sums, survival_at, levels, labels)
            pass_bin(at, bins[at], mass, levels, labels, sums, label_below, mass_below)
    elif shape == CLASSES:
        for at in range(n_bins):
            mass += add_class_bin(bins[at], sums, levels, labels)
            pass_bin(at, bins[at], mass, levels, labels, sums, label_below, mass_below)
    else:
        for at in range(n_bins):
            mass += add_bin(shape, bins[at], sums, survival_at, levels, labels)
            pass_bin(at, bins[at], mass, levels, labels, sums, label_below, mass_below)
    if weight is None:
        for at in range(n_bins):
            count_below[at] = mass_below[at]
    else:
        n_rows = 0.0
        for at in range(n_bins):
            n_rows += count[bins[at]]
            count_below[at] = n_rows
            count[bins[at]] = 0
