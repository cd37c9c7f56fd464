"""Packing: the leaves of a forest as a stream of bytes, and what has to be true of such bytes.

A leaf is its size, the first of its ranks, and the steps from each rank to the next. Each number
takes seven bits a byte, the lowest first; the top bit says that more bytes follow. The checks read
bytes that anyone may have written: they take no index from them and keep nothing of them.
"""

from __future__ import annotations

import numpy as np

from cqrf._runtime.compiling import allocating_kernel

# A number of more bits than these is refused: it could only be a wrong one.
NUMBER_BITS = 31


@allocating_kernel
def pack_leaves(leaf_sizes, leaf_rows):
    """The stream of all leaves."""
    n_bytes = 0
    for written in range(2):
        packed = np.empty(n_bytes if written else 0, np.uint8)
        at, row = 0, 0
        for size in leaf_sizes:
            at = pack_number(packed, at, size, written)
            before = 0
            for _ in range(size):
                at = pack_number(packed, at, leaf_rows[row] - before, written)
                before = leaf_rows[row]
                row += 1
        n_bytes = at
    return packed


@allocating_kernel
def pack_number(packed, at, number, written):
    """Write a number, or only count its bytes; the position behind it."""
    while number >= 128:
        if written:
            packed[at] = 128 | (number & 127)
        number >>= 7
        at += 1
    if written:
        packed[at] = number
    return at + 1


@allocating_kernel
def unpack_number(packed, at):
    """The number at a position, or -1 if there is none that may be, and the position behind."""
    number, shift = 0, 0
    while at < packed.shape[0] and shift < NUMBER_BITS:
        byte = int(packed[at])
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return (number if number < 1 << NUMBER_BITS else -1), at
        shift += 7
    return -1, at


@allocating_kernel
def are_leaves(packed, n_leaves, n_leaf_rows, n_train):
    """Whether this is the stream of so many leaves and rows, with ranks below ``n_train``."""
    at, n_rows = 0, 0
    for _ in range(n_leaves):
        size, at = unpack_number(packed, at)
        n_rows += size
        if size < 1 or n_rows > n_leaf_rows:
            return False
        rank = 0
        for _ in range(size):
            step, at = unpack_number(packed, at)
            rank += step
            if step < 0 or rank >= n_train:
                return False
    return at == packed.shape[0] and n_rows == n_leaf_rows


@allocating_kernel
def unpack_leaves(packed, n_leaves, n_leaf_rows):
    """Sizes and ranks of the leaves of a stream that has been checked."""
    leaf_sizes = np.empty(n_leaves, np.int32)
    leaf_rows = np.empty(n_leaf_rows, np.int32)
    at, row = 0, 0
    for leaf in range(n_leaves):
        size, at = unpack_number(packed, at)
        leaf_sizes[leaf] = size
        rank = 0
        for _ in range(size):
            step, at = unpack_number(packed, at)
            rank += step
            leaf_rows[row] = rank
            row += 1
    return leaf_sizes, leaf_rows


@allocating_kernel
def count_splits(split_on, n_nodes, categorical):
    """Splits on numbers and on categories of trees that stand level by level, or (-1, -1).

    ``split_on`` has the feature of each node, and the number of features for a leaf. Level by
    level, a tree is whole at the node where no child is awaited any more, and nowhere before.
    """
    n_features = categorical.shape[0]
    of_numbers, of_categories = 0, 0
    node = 0
    for tree in range(n_nodes.shape[0]):
        awaited = 1
        for _ in range(n_nodes[tree]):
            if awaited == 0 or node >= split_on.shape[0]:
                return -1, -1
            awaited -= 1
            feature = np.int64(split_on[node])
            node += 1
            if feature > n_features:
                return -1, -1
            if feature < n_features:
                awaited += 2
                if categorical[feature]:
                    of_categories += 1
                else:
                    of_numbers += 1
        if awaited != 0:
            return -1, -1
    if node != split_on.shape[0]:
        return -1, -1
    return of_numbers, of_categories


@allocating_kernel
def is_permutation(order):
    """Whether each of 0 .. n - 1 is there once."""
    n = order.shape[0]
    seen = np.zeros((n >> 3) + 1, np.uint8)
    for i in range(n):
        number = np.int64(order[i])
        if number < 0 or number >= n:
            return False
        bit = np.uint8(1 << (number & 7))
        if seen[number >> 3] & bit:
            return False
        seen[number >> 3] |= bit
    return True


@allocating_kernel
def are_codes(codes, n_edges, missing):
    """Whether every code is that of a bin of its feature, or of a missing value."""
    for feature in range(codes.shape[0]):
        for i in range(codes.shape[1]):
            if codes[feature, i] > n_edges[feature] and codes[feature, i] != missing:
                return False
    return True
