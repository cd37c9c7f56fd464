"""Histograms: the labels of a node summed per bin of one feature.

A histogram is scratch that is clean between uses: ``seen`` (a byte per bin), ``sums`` (a row of
labels per bin) and ``count`` (rows per bin, written only if rows have weights; otherwise a row's
weight is 1 and weights count rows).
"""

from __future__ import annotations

import numpy as np

from cqrf._runtime.compiling import ONE, called, inlined
from cqrf._runtime.intrinsics import add_row, bits_of_bytes, trailing_zeros

N_BINS = 256
MISSING = 255
# From so many rows on nearly all bins have some: testing each for weight is sooner done than
# marking it with every row.
MANY_ROWS = 512
TWO, THREE, FOUR = np.uint64(2), np.uint64(3), np.uint64(4)


@inlined
def fill(column, rows, labels, pairs, seen, sums):
    """Sum the labels of the rows into the bins of a feature; mark the bins seen if few rows.

    ``pairs`` is a tuple as long as there are pairs of numbers in a row of labels, so that the
    compiler knows how many there are.
    """
    n, mark = rows.shape[0], rows.shape[0] < MANY_ROWS
    # Four codes are read before their sums are written: a processor that does not know yet
    # where it writes to is slow to read on.
    for i in range(n >> 2):
        first = FOUR * np.uint64(i)
        second, third, fourth = first + ONE, first + TWO, first + THREE
        one, two = column[rows[first]], column[rows[second]]
        three, four = column[rows[third]], column[rows[fourth]]
        if mark:
            seen[one] = 1
            seen[two] = 1
            seen[three] = 1
            seen[four] = 1
        add_row(sums, one, labels, first, pairs)
        add_row(sums, two, labels, second, pairs)
        add_row(sums, three, labels, third, pairs)
        add_row(sums, four, labels, fourth, pairs)
    for i in range(n & ~3, n):
        code = column[rows[i]]
        if mark:
            seen[code] = 1
        add_row(sums, code, labels, i, pairs)


@inlined
def list_seen(n_rows, seen, sums, bins):
    """List the bins that so many rows have been summed into, ascending; clear ``seen``."""
    n = 0
    if n_rows >= MANY_ROWS:
        for code in range(N_BINS):
            bins[n] = code
            n += sums[code, 0] > 0.0
        return n
    for word in range(N_BINS // 64):
        bits = bits_of_bytes(seen, word)
        while bits != np.uint64(0):
            bins[n] = 64 * word + np.int64(trailing_zeros(bits))
            n += 1
            bits &= bits - np.uint64(1)
    return n


@called
def count_rows(column, rows, bins, n_bins, count, count_below):
    """Number of rows up to each place in a sequence of bins."""
    for i in range(rows.shape[0]):
        count[column[rows[i]]] += 1
    total = 0.0
    for at in range(n_bins):
        total += count[bins[at]]
        count_below[at] = total
        count[bins[at]] = 0


@inlined
def empty_bin(code, sums):
    """Set one bin back to zero."""
    for k in range(sums.shape[1]):
        sums[code, k] = 0.0
