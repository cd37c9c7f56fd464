"""Records that the stages of growing a forest pass on to each other, with dtypes and shapes.

Training rows are numbered by *rank*: their place in time order, events before censorings at a tied
time, then by row number. Ranks are 32-bit, offsets into arrays of all trees 64-bit. Kernels take
these records as they are; a field that is absent is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# A feature value is one byte: the number of its bin, or MISSING.
N_BINS = 256
MISSING = 255
MAX_BINS = 255

N_STRATA = 3  # bits of ``Rows.stratum``

LEAF = -1  # feature of a node that is not split


class Sampling(NamedTuple):
    """How a tree draws its subsample: from units, which are rows or clusters of rows.

    Attributes
    ----------
    unit_of_row : (n,) int32
        Unit of each rank; below 0 for rows that are never drawn (see ``_input/units.py``).
    n_units : int
    size : int
        Units that a tree draws.
    bootstrap : bool
        Whether units are drawn with replacement.
    honest : bool
        Whether one half of the drawn units chooses the splits and the other fills the leaves.
    bag_size : int
        Consecutive trees that draw from the same half of the units; 1: each draws from all.
    """

    unit_of_row: NDArray[np.int32]
    n_units: int
    size: int
    bootstrap: bool
    honest: bool
    bag_size: int = 1


class Limits(NamedTuple):
    """Which nodes may be split, and how many features are tried at each."""

    n_candidates: int
    max_depth: int
    min_samples_split: int
    min_samples_leaf: int
    min_child_fraction: float
    min_samples_stratum: int = 0


class Growing(NamedTuple):
    """How a tree chooses its splits: a record of :mod:`cqrf._forest.criteria`, and the limits."""

    criterion: Any
    limits: Limits


class Subsamples(NamedTuple):
    """Rows that some trees have drawn.

    Attributes
    ----------
    ranks : (n_drawn,) uint32
        Ascending within each part.
    starts : (2 * n_trees + 1,) int64
        Those that choose the splits of tree k are ``ranks[starts[2 * k] : starts[2 * k + 1]]``,
        those that only fill its leaves ``ranks[starts[2 * k + 1] : starts[2 * k + 2]]``. A tree
        that is not honest has only the first part.
    seeds : (n_trees,) uint64
        Seeds of the candidate features.
    """

    ranks: NDArray[np.uint32]
    starts: NDArray[np.int64]
    seeds: NDArray[np.uint64]


class Trees(NamedTuple):
    """Finished trees, concatenated; the form in which batches, Dask tasks and files hold them.

    The nodes of a tree stand in level order, so children need no pointers: see
    :func:`cqrf._forest.layout.link_nodes`. The k-th node that splits on a category has the k-th
    row of ``subsets``; its ``code`` has no meaning.
    """

    n_nodes: NDArray[np.int32]
    feature: NDArray[np.int32]
    code: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    subsets: NDArray[np.uint64]
    leaf_sizes: NDArray[np.int32]
    leaf_rows: NDArray[np.int32]


class Nodes(NamedTuple):
    """What sending a query down the trees reads; fields as in :class:`Forest`."""

    roots: NDArray[np.int64]
    feature: NDArray[np.int32]
    code: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int64]
    subsets: NDArray[np.uint64]
    categorical: NDArray[np.bool_] | None
    leaf_offsets: NDArray[np.int64]


@dataclass(frozen=True)
class Forest:
    """All trees: arrays with one entry per node, and the rows of every leaf.

    Attributes
    ----------
    roots : (n_trees,) int64
        First node of each tree.
    feature : (n_nodes,) int32
        Feature that a node splits on, or LEAF.
    code : (n_nodes,) int32
        Numeric features: codes up to this one go left. Categories: the row of ``subsets``.
    missing_left : (n_nodes,) bool
        Whether missing values go left.
    left : (n_nodes,) int64
        Left child, with the right one behind it; for a leaf its number among all leaves.
    subsets : (n_category_splits, 4) uint64
        One bit for each code that goes left.
    categorical : (n_features,) bool
    leaf_offsets : (n_leaves + 1,) int64
        Leaf l holds the ranks ``leaf_rows[leaf_offsets[l] : leaf_offsets[l + 1]]``, ascending.
    leaf_rows : int32
    importance : (n_features,) float64
        Gain of all splits on each feature.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int32]
    code: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int64]
    subsets: NDArray[np.uint64]
    categorical: NDArray[np.bool_]
    leaf_offsets: NDArray[np.int64]
    leaf_rows: NDArray[np.int32]
    importance: NDArray[np.float64]

    @cached_property
    def nodes(self) -> Nodes:
        """The nodes, for a kernel."""
        return Nodes(
            roots=self.roots,
            feature=self.feature,
            code=self.code,
            missing_left=self.missing_left,
            left=self.left,
            subsets=self.subsets,
            categorical=self.categorical if self.categorical.any() else None,
            leaf_offsets=self.leaf_offsets,
        )

    @cached_property
    def split_features(self) -> NDArray[np.intp]:
        """Features that some node splits on, ascending."""
        used = np.zeros(len(self.categorical) + 1, dtype=bool)
        used[self.feature] = True  # LEAF marks the last entry
        return np.flatnonzero(used[:-1])


def _no_trees() -> Forest:
    empty = np.empty(0, np.int64)
    return Forest(
        roots=empty,
        feature=empty.astype(np.int32),
        code=empty.astype(np.int32),
        missing_left=empty.astype(bool),
        left=empty,
        subsets=np.empty((0, 4), np.uint64),
        categorical=empty.astype(bool),
        leaf_offsets=np.zeros(1, np.int64),
        leaf_rows=empty.astype(np.int32),
        importance=np.empty(0),
    )


NO_TREES = _no_trees()  # of a model whose trees are still to be grown
