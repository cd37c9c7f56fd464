"""Random numbers keyed by (seed, tree, row): every random choice is a pure function of its key.

A subsample is the beginning of a keyed permutation of the row numbers 0 .. n - 1. Whether a tree
draws a row depends on its key and the row number alone, not on a stream of random numbers or on
other rows. The same forest can therefore be grown anywhere, from any part of the table, in any
order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._runtime.compiling import inlined, kernel

# Rounds of multiply, add and shift-xor, on words of at least MIN_BITS bits. With fewer, some pairs
# of rows are drawn together too often when n is small.
ROUNDS = 6
MIN_BITS = 8


def _mix(x: Any) -> Any:
    """Scramble a 64-bit word (the output step of splitmix64); a bijection."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


mix = inlined(_mix)


def derive(seed: ArrayLike, number: ArrayLike) -> NDArray[np.uint64]:
    """Seed of the ``number``-th stream derived from ``seed``, for numbers or arrays of them."""
    seeds, numbers = np.asarray(seed, np.uint64), np.asarray(number, np.uint64)
    # Arrays wrap around silently; NumPy warns for scalars.
    mixed = _mix(_mix(np.atleast_1d(seeds)) ^ numbers)
    return mixed if seeds.ndim or numbers.ndim else mixed[0]


@inlined
def below(word, n):
    """A number in 0 .. n - 1 from a random word; n below 2**32."""
    return np.int64(((word >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


def permutation_keys(seeds: NDArray[np.uint64], n: int) -> NDArray[np.uint64]:
    """Keys of a permutation of 0 .. n - 1 for each seed, shape (n_seeds, 1 + 2 * ROUNDS).

    A row holds the number of bits, then alternating multipliers and addends.
    """
    bits = max(MIN_BITS, (n - 1).bit_length())
    constants = derive(seeds[:, np.newaxis], np.arange(2 * ROUNDS))
    constants[:, ::2] |= np.uint64(1)
    return np.hstack([np.full((len(seeds), 1), bits, np.uint64), constants])


@inlined
def permuted(i, n, key):
    """Image of i under the keyed permutation of 0 .. n - 1.

    Each round is a bijection of the words of ``bits`` bits; words that fall outside
    0 .. n - 1 are mapped again until they fall inside (cycle walking).
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


def draw_without_replacement(seed: ArrayLike, n: int, size: int) -> NDArray[np.int64]:
    """The first ``size`` images of the keyed permutation of 0 .. n - 1, in its order."""
    drawn = np.empty(size, np.int64)
    _permute(n, permutation_keys(np.atleast_1d(np.asarray(seed, np.uint64)), n)[0], drawn)
    return drawn


@kernel
def _permute(n, key, drawn):
    """Write the first images of the permutation of 0 .. n - 1 to ``drawn``, int64."""
    for i in range(drawn.shape[0]):
        drawn[i] = permuted(i, n, key)
