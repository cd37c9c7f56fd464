"""Histograms: the labels of a node summed per bin of one feature.

The histogram's arrays, fields of :class:`~cqrf._forest.workspace.SplitWork`, are zero between uses.
"""

from __future__ import annotations

import numpy as np

from cqrf._forest.spec import MISSING, N_BINS, N_STRATA
from cqrf._runtime.compiling import ONE, called, inlined
from cqrf._runtime.intrinsics import add_row, bits_of_bytes, trailing_zeros

# From so many rows on nearly every bin has some: testing each bin for weight is then faster than
# marking one with every row.
MANY_ROWS = 512
TWO, THREE, FOUR = np.uint64(2), np.uint64(3), np.uint64(4)


@inlined
def fill(column, here, labels, pairs, work):
    """Add the labels of the rows to ``work.sums`` by bin; mark few rows' bins in ``work.seen``.

    ``column`` is (n,) uint8, ``here`` the uint32 rows of the node in it, ``labels`` by position in
    ``here``. O(rows).
    """
    n, mark = here.shape[0], here.shape[0] < MANY_ROWS
    seen, sums = work.seen, work.sums
    # Four codes are read before their sums are written: a store to an address not yet known would
    # hold up the next load.
    for i in range(n >> 2):
        first = FOUR * np.uint64(i)
        second, third, fourth = first + ONE, first + TWO, first + THREE
        one, two = column[here[first]], column[here[second]]
        three, four = column[here[third]], column[here[fourth]]
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
        code = column[here[i]]
        if mark:
            seen[code] = 1
        add_row(sums, code, labels, i, pairs)


@inlined
def list_bins(n_rows, work):
    """List the bins with rows in ``work.bins``, ascending, and count them; clear ``work.seen``."""
    seen, sums, bins = work.seen, work.sums, work.bins
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
def count_rows(count, column, here, bins, n_bins, count_below):
    """Write the number of rows up to each of the bins, in their order; count the missing values.

    ``count`` is a work array, (N_BINS,) int32 and zero between uses, or None if rows have no
    weights: then nothing is written and 0 is returned.
    """
    if count is None:
        return 0
    for i in range(here.shape[0]):
        count[column[here[i]]] += 1
    total = 0.0
    for at in range(n_bins):
        total += count[bins[at]]
        count_below[at] = total
        count[bins[at]] = 0
    n_missing = count[MISSING]
    count[MISSING] = 0
    return n_missing


@called
def count_strata(work, stratum, column, here, bins, n_bins):
    """Write how many rows of each stratum lie up to each of the bins, in their order.

    ``work`` is a :class:`~cqrf._forest.workspace.StrataWork`, or None: then nothing is written.
    """
    if work is None:
        return
    counts, below = work.counts, work.below
    for i in range(here.shape[0]):
        bits, of_bin = stratum[here[i]], counts[column[here[i]]]
        for s in range(N_STRATA):
            of_bin[s] += (bits >> s) & 1
    for s in range(N_STRATA):
        total = 0
        for at in range(n_bins):
            total += counts[bins[at], s]
            below[at, s] = total


@called
def keep_strata(work, n_bins, missing_left, fewest, first, last):
    """Narrow a range of cuts to those that leave rows of each stratum on both sides."""
    if work is None:
        return first, last
    counts, below = work.counts, work.below
    for s in range(N_STRATA):
        missing = counts[MISSING, s]
        before = missing if missing_left else 0
        total = below[n_bins - 1, s] + missing
        while first < last and below[first, s] + before < fewest:
            first += 1
        while last > first and total - below[last - 1, s] - before < fewest:
            last -= 1
    return first, last


@called
def clear_strata(work, bins, n_bins):
    """Set the counts of the bins, and of missing values, to zero."""
    if work is None:
        return
    for s in range(N_STRATA):
        work.counts[MISSING, s] = 0
        for at in range(n_bins):
            work.counts[bins[at], s] = 0
