"""Scratch: the room a tree is grown in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.histograms import N_BINS

# A node of at most this many rows is copied together with its codes, so that it and all
# nodes below it read from the processor's cache; unless features are so many and so few of
# them tried at a node that copying them all costs more than it saves.
BLOCK_ROWS = 2048
COPIED_PER_CANDIDATE = 4
# Bytes in a line of the cache. Copies of features stand that much further apart than they need
# to: at a distance of a power of two they would compete for the same few places.
LINE = 64


class Scratch(NamedTuple):
    """Room to grow trees in, one after the other.

    While they grow nothing else is allocated, but for rows that enter late.
    """

    # Of all trees.
    nodes: NDArray[np.int32]
    subsets: NDArray[np.uint64]
    # The rows of the tree, by node; what is on the right side while a node is split.
    rows: NDArray[np.uint32]
    buffer: NDArray[np.uint32]
    features: NDArray[np.int32]
    # The table's rows that the tree has drawn, and those of a block: see BLOCK_ROWS.
    tree_codes: NDArray[np.uint8]
    tree_time: NDArray[np.float64]
    tree_event: NDArray[np.bool_]
    tree_weight: NDArray[np.float32] | None
    own_rows: NDArray[np.uint32]
    own_codes: NDArray[np.uint8]
    own_time: NDArray[np.float64]
    own_event: NDArray[np.bool_]
    own_weight: NDArray[np.float32] | None
    # For label_node.
    labels: NDArray[np.float64]
    at_risk: NDArray[np.float64]
    value: NDArray[np.float64]
    ends: NDArray[np.int32]
    cuts: NDArray[np.float64]
    direction: NDArray[np.float64]
    # For find_split.
    seen: NDArray[np.uint8]
    sums: NDArray[np.float64]
    bins: NDArray[np.uint64]
    running: NDArray[np.float64]
    start: NDArray[np.float64]


def make_scratch(
    n_trees: int,
    n_rows: int,
    n_features: int,
    width: int,
    n_candidates: int,
    min_samples_leaf: int,
    weighted: bool,
) -> Scratch:
    """Room for so many trees of at most so many rows, with ``width`` numbers in a row of labels."""
    capacity = 2 * (n_rows // max(1, min_samples_leaf)) + 1
    n_copied = 0
    if n_features <= COPIED_PER_CANDIDATE * n_candidates:
        n_copied = min(BLOCK_ROWS, n_rows)
    return Scratch(
        nodes=np.empty((n_trees * capacity, 8), np.int32),
        subsets=np.empty((n_trees * (capacity // 2), 4), np.uint64),
        rows=np.empty(n_rows, np.uint32),
        buffer=np.empty(n_rows, np.uint32),
        features=np.empty(n_features, np.int32),
        tree_codes=np.empty((n_features, n_rows), np.uint8),
        tree_time=np.empty(n_rows),
        tree_event=np.empty(n_rows, np.bool_),
        tree_weight=np.empty(n_rows, np.float32) if weighted else None,
        own_rows=np.empty(n_copied, np.uint32),
        own_codes=np.empty((n_features, n_copied + LINE), np.uint8),
        own_time=np.empty(n_copied),
        own_event=np.empty(n_copied, np.bool_),
        own_weight=np.empty(n_copied, np.float32) if weighted else None,
        labels=_aligned_zeros(n_rows, width),
        at_risk=np.empty(n_rows),
        value=np.empty(n_rows),
        ends=np.empty(width, np.int32),
        cuts=np.empty((4, width)),
        direction=np.zeros(width),
        seen=np.zeros(N_BINS, np.uint8),
        sums=_aligned_zeros(N_BINS, width),
        bins=np.empty(N_BINS + 1, np.uint64),
        running=np.empty((4, N_BINS)),
        start=np.empty(width),
    )


def _aligned_zeros(n_rows: int, width: int) -> NDArray[np.float64]:
    """A table that starts with a line of the cache: four numbers of a row lie in one."""
    numbers = np.zeros(n_rows * width + LINE // 8)
    first = -numbers.ctypes.data % LINE // 8
    return numbers[first : first + n_rows * width].reshape(n_rows, width)
