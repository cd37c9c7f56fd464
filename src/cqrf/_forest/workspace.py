"""Work arrays that trees are grown in, one after the other.

They are allocated once for a batch of trees: kernels allocate nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.rows import Rows, empty_rows
from cqrf._forest.spec import N_BINS, N_STRATA, Limits

# A node of at most this many rows is copied together with its codes: it and all nodes below it then
# read from the processor's cache. Not if so few of so many features are tried at a node that
# copying all of them costs more than it saves.
BLOCK_ROWS = 2048
COPIED_PER_CANDIDATE = 4
# Bytes of a cache line. Copied columns are padded by as much: at a distance of a power of two they
# would compete for the same few cache sets.
LINE = 64


class LabelWork(NamedTuple):
    """What a criterion writes.

    Attributes
    ----------
    labels : (n_rows, width) float64, rows aligned to a cache line
        Weight, then weight times each label, then zeros up to an even number.
    direction : (width,) float64
        Factors of the columns of ``labels`` that order the levels of a category.
    pairs : tuple
        One entry for each two columns of ``labels``: the compiler knows its length.
    at_risk, value : (n_rows,) float64
    absent : (n_rows + 1,) float64, or None without delayed entry
    ends : (width,) int32
    cuts : (4, width) float64
    curve : (4, n_cells + 1) float64, or None without interval censoring
    """

    labels: NDArray[np.float64]
    direction: NDArray[np.float64]
    pairs: tuple[int, ...]
    at_risk: NDArray[np.float64]
    value: NDArray[np.float64]
    absent: NDArray[np.float64] | None
    ends: NDArray[np.int32]
    cuts: NDArray[np.float64]
    curve: NDArray[np.float64] | None


class StrataWork(NamedTuple):
    """Rows of each stratum: ``counts`` per bin, zero between uses, and ``below``, up to each bin.

    Both are (N_BINS, N_STRATA) int32.
    """

    counts: NDArray[np.int32]
    below: NDArray[np.int32]


class SplitWork(NamedTuple):
    """What the search for a split writes.

    Attributes
    ----------
    features : (n_features,) int32
        A permutation of the features.
    seen : (N_BINS,) uint8
        Bins of the current histogram; zero between uses.
    sums : (N_BINS, width) float64
        Labels summed per bin; zero between uses.
    counts : (N_BINS,) int32, or None
        Rows per bin, if rows have weights; otherwise the summed weights count them.
    strata : StrataWork, or None
    bins : (N_BINS + 1,) uint64
        Bins in the order in which they are cut.
    running : (4, N_BINS) float64
        Weight, squared label sums and rows up to each bin, and the gain of a cut behind it.
    start : (width,) float64
        Where the running sums start: the missing values, or zero.
    """

    features: NDArray[np.int32]
    seen: NDArray[np.uint8]
    sums: NDArray[np.float64]
    counts: NDArray[np.int32] | None
    strata: StrataWork | None
    bins: NDArray[np.uint64]
    running: NDArray[np.float64]
    start: NDArray[np.float64]


class Workspace(NamedTuple):
    """All work arrays of a batch of trees.

    Attributes
    ----------
    nodes, subsets
        Grown trees, concatenated: see :mod:`cqrf._forest.grower`.
    here, buffer : (n_rows,) uint32
        Rows of a tree, by node; and rows of the right child during a partition.
    tree : Rows
        Copy of the rows that the tree has drawn.
    block : Rows
        Copy of the rows of a node of at most BLOCK_ROWS rows.
    block_rows : (n_copied,) uint32
        Indices of these in ``tree``.
    label, split
        Work arrays of a node.
    """

    nodes: NDArray[np.int32]
    subsets: NDArray[np.uint64]
    here: NDArray[np.uint32]
    buffer: NDArray[np.uint32]
    tree: Rows
    block: Rows
    block_rows: NDArray[np.uint32]
    label: LabelWork
    split: SplitWork


def make_workspace(
    n_trees: int, n_rows: int, rows: Rows, n_labels: int, limits: Limits
) -> Workspace:
    """Work arrays for some trees of at most ``n_rows`` rows, like those of ``rows``."""
    n_features = len(rows.codes)
    weighted = rows.weight is not None or rows.scores is not None
    pairs = (0,) * (n_labels // 2 + 1)
    width = 2 * len(pairs)
    capacity = 2 * (n_rows // max(1, limits.min_samples_leaf)) + 1
    n_copied = 0
    if n_features <= COPIED_PER_CANDIDATE * limits.n_candidates:
        n_copied = min(BLOCK_ROWS, n_rows)
    return Workspace(
        nodes=np.empty((n_trees * capacity, 8), np.int32),
        subsets=np.empty((n_trees * (capacity // 2), 4), np.uint64),
        here=np.empty(n_rows, np.uint32),
        buffer=np.empty(n_rows, np.uint32),
        tree=empty_rows(rows, n_rows, 0),
        block=empty_rows(rows, n_copied, LINE),
        block_rows=np.empty(n_copied, np.uint32),
        label=LabelWork(
            labels=_aligned_zeros(n_rows, width),
            direction=np.zeros(width),
            pairs=pairs,
            at_risk=np.empty(n_rows),
            value=np.empty(n_rows),
            absent=None if rows.first_at_risk is None else np.empty(n_rows + 1),
            ends=np.empty(width, np.int32),
            cuts=np.empty((4, width)),
            curve=None if rows.bounds is None else np.empty((4, _count_cells(rows.bounds) + 1)),
        ),
        split=SplitWork(
            features=np.empty(n_features, np.int32),
            seen=np.zeros(N_BINS, np.uint8),
            sums=_aligned_zeros(N_BINS, width),
            counts=np.zeros(N_BINS, np.int32) if weighted else None,
            strata=None if rows.stratum is None else _make_strata(),
            bins=np.empty(N_BINS + 1, np.uint64),
            running=np.empty((4, N_BINS)),
            start=np.empty(width),
        ),
    )


def _count_cells(bounds: NDArray[np.float64]) -> int:
    """Cells of the time scale: some row ends behind the last of them."""
    return int(np.ceil(bounds.max(initial=1.0)))


def _make_strata() -> StrataWork:
    shape = (N_BINS, N_STRATA)
    return StrataWork(np.zeros(shape, np.int32), np.empty(shape, np.int32))


def _aligned_zeros(n_rows: int, width: int) -> NDArray[np.float64]:
    """A table that starts at a cache line, so that four numbers of a row lie in one."""
    numbers = np.zeros(n_rows * width + LINE // 8)
    first = -numbers.ctypes.data % LINE // 8
    return numbers[first : first + n_rows * width].reshape(n_rows, width)
