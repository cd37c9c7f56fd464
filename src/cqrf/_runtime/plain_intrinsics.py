"""The instructions of :mod:`cqrf._runtime.intrinsics` in plain Python, for runs without Numba."""

from __future__ import annotations

import numpy as np


def trailing_zeros(word):
    """Index of the lowest set bit of a nonzero word."""
    number = int(word)
    return np.uint64((number & -number).bit_length() - 1)


def count_bits(word):
    """Number of set bits."""
    return np.uint64(int(word).bit_count())


def add_row(table, at, source, row, pairs):
    """Add a row of one table to a row of another."""
    table[at] += source[row]


def sum_rows(table, rows, n_rows, start, keep, first, squares, pairs):
    """Running sums over some rows, in the order of additions of the compiled form."""
    sums = start.copy()
    for i in range(n_rows):
        sums += table[rows[i]]
        if not keep:
            table[rows[i]] = 0.0
        first[i] = sums[0]
        squared = sums * sums
        total = squared[1]
        for k in range(2, len(squared), 2):
            total += squared[k] + squared[k + 1]
        squares[i] = total


def bits_of_bytes(seen, word):
    """One bit for each nonzero byte of 64; clears the bytes."""
    chunk = seen[64 * word : 64 * word + 64]
    bits = sum(1 << int(i) for i in np.flatnonzero(chunk))
    chunk[:] = 0
    return np.uint64(bits)


def prefetch(values, place):
    """Do nothing: plain Python has no cache to fill ahead."""
