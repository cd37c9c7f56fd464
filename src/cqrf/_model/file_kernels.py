"""Checks of a model file that read every number: kernels that allocate next to nothing."""

from __future__ import annotations

import numpy as np

from cqrf._runtime.compiling import allocating_kernel, kernel


@kernel
def count_splits(split_on, n_nodes, categorical):
    """Splits on numbers and on categories of trees stored level by level, or (-1, -1).

    split_on : (n,) unsigned, the feature of each node, n_features for a leaf
    n_nodes : (n_trees,) unsigned; categorical : (n_features,) bool

    Level by level, a tree is complete at the node where no child is expected any more, and
    nowhere before.
    """
    n_features = categorical.shape[0]
    of_numbers, of_categories = 0, 0
    node = 0
    for tree in range(n_nodes.shape[0]):
        n_expected = 1
        for _ in range(n_nodes[tree]):
            if n_expected == 0 or node >= split_on.shape[0]:
                return -1, -1
            n_expected -= 1
            feature = np.int64(split_on[node])
            node += 1
            if feature > n_features:
                return -1, -1
            if feature < n_features:
                n_expected += 2
                if categorical[feature]:
                    of_categories += 1
                else:
                    of_numbers += 1
        if n_expected != 0:
            return -1, -1
    if node != split_on.shape[0]:
        return -1, -1
    return of_numbers, of_categories


@allocating_kernel
def is_permutation(order):
    """Whether each of 0 .. n - 1 is there once; order : (n,) int32."""
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


@kernel
def are_codes(codes, most, missing):
    """Whether every code is at most that of the last bin of its feature, or that of missing.

    codes : (n_features, n) uint8; most : (n_features,) integers; missing : int
    """
    for feature in range(codes.shape[0]):
        for i in range(codes.shape[1]):
            if codes[feature, i] > most[feature] and codes[feature, i] != missing:
                return False
    return True
