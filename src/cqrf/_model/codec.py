"""Codec: the leaves of a forest as a stream of bytes.

A leaf is written as its size, its first rank, and the steps from each rank to the next. Each
number takes seven bits per byte, the lowest first; the top bit says that more bytes follow.

:func:`are_leaves` reads bytes from an unknown source: it takes no index from them and keeps
nothing of them. :func:`decode_leaves` is for a stream that has been checked.
"""

from __future__ import annotations

import numpy as np

from cqrf._runtime.compiling import allocating_kernel, kernel

# A number of more bits than these is refused: it could only be a wrong one.
NUMBER_BITS = 31


@allocating_kernel
def encode_leaves(leaf_sizes, leaf_rows):
    """Stream of all leaves, uint8.

    leaf_sizes : (n_leaves,) integers; leaf_rows : (n_leaf_rows,) int32, ascending in each leaf
    """
    n_bytes = 0
    for is_written in range(2):  # the first time bytes are only counted
        stream = np.empty(n_bytes if is_written else 0, np.uint8)
        at, row = 0, 0
        for size in leaf_sizes:
            at = encode_number(stream, at, size, is_written)
            before = 0
            for _ in range(size):
                at = encode_number(stream, at, leaf_rows[row] - before, is_written)
                before = leaf_rows[row]
                row += 1
        n_bytes = at
    return stream


@kernel
def encode_number(stream, at, number, is_written):
    """Write a number at a position, or only count its bytes; return the position behind it."""
    while number >= 128:
        if is_written:
            stream[at] = 128 | (number & 127)
        number >>= 7
        at += 1
    if is_written:
        stream[at] = number
    return at + 1


@kernel
def decode_number(stream, at):
    """Number at a position and the position behind it; -1 if no valid number is there."""
    number, shift = 0, 0
    while at < stream.shape[0] and shift < NUMBER_BITS:
        byte = int(stream[at])
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return (number if number < 1 << NUMBER_BITS else -1), at
        shift += 7
    return -1, at


@kernel
def are_leaves(stream, n_leaves, n_leaf_rows, n_train):
    """Whether this is the stream of so many leaves and rows, with ranks below ``n_train``."""
    at, n_rows = 0, 0
    for _ in range(n_leaves):
        size, at = decode_number(stream, at)
        n_rows += size
        if size < 1 or n_rows > n_leaf_rows:
            return False
        rank = 0
        for _ in range(size):
            step, at = decode_number(stream, at)
            rank += step
            if step < 0 or rank >= n_train:
                return False
    return at == stream.shape[0] and n_rows == n_leaf_rows


@allocating_kernel
def decode_leaves(stream, n_leaves, n_leaf_rows):
    """Sizes and rows of the leaves of a checked stream, int32 each."""
    leaf_sizes = np.empty(n_leaves, np.int32)
    leaf_rows = np.empty(n_leaf_rows, np.int32)
    at, row = 0, 0
    for leaf in range(n_leaves):
        size, at = decode_number(stream, at)
        leaf_sizes[leaf] = size
        rank = 0
        for _ in range(size):
            step, at = decode_number(stream, at)
            rank += step
            leaf_rows[row] = rank
            row += 1
    return leaf_sizes, leaf_rows
