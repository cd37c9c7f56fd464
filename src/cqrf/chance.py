"""Chance: every random choice as a pure function of a seed and a number.

Which rows a tree sees is decided by a keyed permutation of the row numbers 0 .. n - 1:
the tree draws the rows that its permutation puts first. Nobody needs the table, a stream
of random numbers or another row to decide about one row, so the same forest can be grown
anywhere, from any part of the table, in any order.
"""

from __future__ import annotations

import numpy as np

from cqrf.kernel import kernel

# Rounds of multiply, add and shift-xor, on words of at least MIN_BITS bits: fewer leave
# traces in how often pairs of rows are drawn together when n is small.
ROUNDS = 6
MIN_BITS = 8


@kernel
def mix(x):
    """Scramble a 64-bit word (the output step of splitmix64); a bijection."""
    x = np.uint64(x) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def derive(seed, number):
    """Seed of the ``number``-th thing that hangs on ``seed``."""
    return mix(mix(np.uint64(seed)) ^ np.uint64(number))


@kernel
def below(word, n):
    """A number in 0 .. n - 1 from a random word; n below 2**32."""
    return np.int64(((word >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@kernel
def permutation_key(seed, n):
    """Constants of the keyed permutation of 0 .. n - 1: bits, then multipliers and addends."""
    bits = MIN_BITS
    while (1 << bits) < n:
        bits += 1
    key = np.empty(2 * ROUNDS + 1, np.uint64)
    key[0] = np.uint64(bits)
    for r in range(ROUNDS):
        key[2 * r + 1] = derive(seed, 2 * r) | np.uint64(1)
        key[2 * r + 2] = derive(seed, 2 * r + 1)
    return key


@kernel
def permuted(i, n, key):
    """Image of i under the keyed permutation of 0 .. n - 1.

    Each round is a bijection of the words of ``bits`` bits; words that fall outside
    0 .. n - 1 walk on until they fall inside.
    """
    bits = key[0]
    mask = (np.uint64(1) << bits) - np.uint64(1)
    shift = (bits + np.uint64(1)) >> np.uint64(1)
    x = np.uint64(i)
    while True:
        for r in range(ROUNDS):
            x = (x * key[2 * r + 1] + key[2 * r + 2]) & mask
            x ^= x >> shift
        if x < np.uint64(n):
            return np.int64(x)


@kernel
def draw_without_replacement(seed, n, size):
    """The ``size`` first rows of the keyed permutation of 0 .. n - 1, in its order."""
    key = permutation_key(seed, n)
    drawn = np.empty(size, np.int64)
    for i in range(size):
        drawn[i] = permuted(i, n, key)
    return drawn


@kernel
def draw_with_replacement(seed, n, size):
    """``size`` independent rows of 0 .. n - 1."""
    drawn = np.empty(size, np.int64)
    for i in range(size):
        drawn[i] = below(derive(seed, i), n)
    return drawn
