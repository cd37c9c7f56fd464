"""The forest: many trees in flat arrays, grown in threads, read by leaf.

Training rows are numbered by *rank*: their place in time order, events before censorings
at a tied time, then by row number. A leaf lists the ranks of its rows in ascending order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.grower import CODE, FEATURE, LEAF, MISSING_LEFT, grow_nodes
from cqrf._forest.histograms import N_BINS
from cqrf._forest.labels import VARIANCE, read_labelling
from cqrf._forest.layout import settle_rows
from cqrf._forest.sampling import Lots, cast_lots, draw_rows, draw_units
from cqrf._forest.workspace import make_scratch
from cqrf._runtime.compiling import kernel
from cqrf._runtime.threads import parallel_map

# Trees are grown in batches of about this many row visits (rows times features): long
# enough to hide the cost of a task, short enough to stop soon when interrupted.
BATCH_WORK = 400_000
# But in so many batches at least, so that threads end at the same time; each costs some Python.
MIN_BATCHES = 8


class Sampling(NamedTuple):
    """How a tree draws its rows: from units, rows themselves or clusters of them."""

    unit_of_row: NDArray[np.int32]
    n_units: int
    size: int
    bootstrap: bool
    honest: bool
    bag_size: int = 1
    """Trees that draw from the same half of the units; 1: each draws from all."""


class Growing(NamedTuple):
    """How a tree chooses splits and when it stops."""

    criterion: int
    levels: tuple[float, ...]
    n_candidates: int
    max_depth: int
    min_samples_split: int
    min_samples_leaf: int
    min_child_fraction: float


class Rows(NamedTuple):
    """Training rows by rank; codes of shape (n_features, n), one byte each."""

    codes: NDArray[np.uint8]
    categorical: NDArray[np.bool_]
    time: NDArray[np.float64]
    event: NDArray[np.bool_]
    weight: NDArray[np.float32] | None = None
    first_at_risk: NDArray[np.int32] | None = None


class Trees(NamedTuple):
    """Some trees, one behind the other, as they come from the kernels.

    The nodes of a tree stand level by level, so that ``left`` need not be kept: see
    :func:`number_nodes`. ``code`` of a category is 0; its subset is the next of ``subsets``.
    """

    n_nodes: NDArray[np.int32]
    feature: NDArray[np.int32]
    code: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    subsets: NDArray[np.uint64]
    leaf_sizes: NDArray[np.int32]
    leaf_rows: NDArray[np.int32]


@dataclass(frozen=True)
class Forest:
    """All trees: arrays with one entry per node, and the rows of every leaf.

    The node arrays are those of :mod:`cqrf._forest.grower`, each tree level by level, with
    children and subsets numbered through the whole forest; ``left`` of a leaf is its number
    among all leaves. Tree t starts at node ``roots[t]``.
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


def grow_forest(
    rows: Rows,
    sampling: Sampling,
    growing: Growing,
    n_trees: int,
    seed: int,
    n_jobs: int | None = None,
    progress: Callable[[Iterator[Any], int], Iterable[Any]] | None = None,
) -> Forest:
    """Grow trees 0 .. n_trees - 1 of the forest that hangs on ``seed``.

    ``progress`` wraps the iterator over finished batches, with the number of batches.
    """
    if growing.criterion == VARIANCE:
        counted = rows.time if rows.weight is None else rows.time[rows.weight > 0]
        rows = rows._replace(time=rows.time / power_of_two(np.abs(counted).max()))
    rows_per_tree = sampling.size * len(rows.time) // sampling.n_units
    size = max(1, rows_per_tree * len(rows.categorical))
    batch = max(1, min(BATCH_WORK // size, n_trees // MIN_BATCHES))
    lots = draw_lots(sampling, seed, 0, n_trees)
    tasks = [
        (rows, sampling, growing, lots.of(slice(first, first + batch)))
        for first in range(0, n_trees, batch)
    ]
    batches: Iterable[Any] = parallel_map(grow_trees, tasks, n_jobs)
    if progress is not None:
        batches = progress(iter(batches), len(tasks))
    fields: list[list[NDArray[Any]]] = [[] for _ in range(len(Trees._fields) + 1)]
    for part, gains in batches:
        for field, array in zip(fields, (*part, gains), strict=True):
            field.append(array)
    # From the back, so that no field is held twice for longer than it takes to join it.
    *trees, gains = reversed([np.concatenate(fields.pop()) for _ in range(len(fields))])
    return join_trees(Trees(*trees), rows.categorical, gains.sum(axis=0))


def power_of_two(x: float) -> float:
    """Power of two close to x, by which times are divided so that their squares are finite."""
    return float(np.ldexp(1.0, int(np.frexp(x)[1]) - 1)) if x > 0 else 1.0


def in_bag_bits(sampling: Sampling, n_trees: int, seed: int) -> NDArray[np.uint8]:
    """Which units each tree has drawn: bits of shape (n_units, n_trees / 8, rounded up)."""
    n_units = sampling.n_units
    *lots, _ = draw_lots(sampling, seed, 0, n_trees)
    bits = np.zeros((n_units, (n_trees + 7) // 8), np.uint8)
    _in_bag_bits(*lots, sampling.size, np.empty(n_units, np.int32), bits)
    return bits


def draw_lots(sampling: Sampling, seed: int, first: int, end: int) -> Lots:
    """What trees ``first`` to ``end - 1`` of the forest that hangs on ``seed`` draw by."""
    return cast_lots(seed, first, end, sampling.n_units, sampling.bootstrap, sampling.bag_size)


def grow_trees(
    rows: Rows, sampling: Sampling, growing: Growing, lots: Lots
) -> tuple[Trees, NDArray[np.float64]]:
    """The trees that draw by these lots, and the gain of each feature in each of them."""
    ranks, starts = draw_ranks(sampling, lots)
    return grow_drawn(rows, growing, sampling.honest, ranks, starts, lots.tree_seeds)


def draw_ranks(sampling: Sampling, lots: Lots) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Ranks that trees draw by these lots and where they start: see ``draw_rows``."""
    n_trees = len(lots.tree_seeds)
    how = sampling.size, sampling.honest, sampling.unit_of_row
    draws = np.empty(sampling.n_units, np.int32)
    starts = np.empty(2 * n_trees + 1, np.int64)

    def draw(room: int) -> tuple[NDArray[np.uint32], int]:
        ranks, late = np.empty((2, room + 1), np.uint32)
        return ranks, draw_rows(*lots[:-1], *how, draws, starts, ranks, late)

    room = n_trees * sampling.size
    ranks, n_drawn = draw(room)
    if n_drawn > room:  # clusters of many rows
        ranks, n_drawn = draw(n_drawn)
    return ranks[:n_drawn], starts


def grow_drawn(
    rows: Rows,
    growing: Growing,
    honest: bool,
    ranks: NDArray[np.uint32],
    starts: NDArray[np.int64],
    seeds: NDArray[np.uint64],
) -> tuple[Trees, NDArray[np.float64]]:
    """A tree for each seed, from the ranks that :func:`draw_rows` gave it.

    Each kernel serves all trees in one call: on a small table the way between Python and a kernel
    costs more than a tree. Not one kernel for everything: what a kernel calls is compiled with it,
    each time anew.
    """
    n_features = len(rows.codes)
    criterion, levels, *limits = growing
    labelling = read_labelling(criterion, levels)
    categorical = none_unless_any(rows.categorical)
    counts = None if rows.weight is None else np.zeros(N_BINS, np.int32)
    scratch = make_scratch(
        len(seeds),
        np.diff(starts)[::2].max(),
        n_features,
        2 * len(labelling.pairs),
        growing.n_candidates,
        growing.min_samples_leaf,
        rows.weight is not None,
    )
    first_node, first_subset = np.empty((2, len(seeds) + 1), np.int64)
    gains = np.zeros((len(seeds), n_features))
    grow_nodes(
        ranks,
        starts,
        rows.codes,
        categorical,
        *rows[2:],
        *labelling,
        *limits,
        seeds,
        counts,
        tuple(scratch),
        first_node,
        first_subset,
        gains,
    )
    nodes = scratch.nodes[: first_node[-1]]
    subsets = scratch.subsets[: first_subset[-1]].copy()  # a part would keep the whole
    return settle_trees(
        rows, honest, ranks, starts, nodes, first_node, subsets, first_subset
    ), gains


def none_unless_any(categorical: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """For kernels: what is None is not compiled."""
    return categorical if categorical.any() else None


def settle_trees(
    rows: Rows,
    honest: bool,
    ranks: NDArray[np.uint32],
    starts: NDArray[np.int64],
    nodes: NDArray[np.int32],
    first_node: NDArray[np.int64],
    subsets: NDArray[np.uint64],
    first_subset: NDArray[np.int64],
) -> Trees:
    """The trees that :func:`grow_nodes` wrote, their leaves filled: see :func:`settle_rows`."""
    n_trees = len(first_node) - 1
    categorical = none_unless_any(rows.categorical)
    if categorical is not None:
        is_category = _is_category(nodes[:, FEATURE], categorical)
        before = np.repeat(first_subset[:-1], np.diff(first_node))
        nodes[is_category, CODE] += before[is_category]
    n_nodes = np.empty(n_trees, np.int32)
    listed = np.empty(len(nodes), np.int32)
    leaf_sizes = np.empty((len(nodes) + n_trees) // 2, np.int32)
    leaf_rows = np.empty(starts[-1], np.int32)
    n_listed, n_leaves, n_rows = settle_rows(
        rows.codes,
        categorical,
        honest,
        ranks,
        starts,
        nodes,
        first_node,
        subsets,
        np.empty(np.diff(starts).max(), np.uint32),
        n_nodes,
        listed,
        leaf_sizes,
        leaf_rows,
    )
    listed = listed[:n_listed]
    feature, code = nodes[listed, FEATURE], nodes[listed, CODE]
    if categorical is not None:
        is_category = _is_category(feature, categorical)
        subsets = subsets[code[is_category]]
        code[is_category] = 0
    return Trees(
        n_nodes,
        feature,
        code,
        nodes[listed, MISSING_LEFT] != 0,
        subsets,
        leaf_sizes[:n_leaves],
        leaf_rows[:n_rows],
    )


def _is_category(feature: NDArray[np.int32], categorical: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which nodes split on a category."""
    return (feature != LEAF) & categorical[feature]


@kernel
def _in_bag_bits(keys, bag_keys, seeds, size, draws, bits):
    for t in range(keys.shape[0]):
        # Honest halves share the draws out; who is drawn at all does not depend on them.
        draw_units(keys, bag_keys, seeds, t, size, False, draws)
        for unit in range(draws.shape[0]):
            if draws[unit] != 0:
                bits[unit, t >> 3] |= np.uint8(1 << (t & 7))


def join_trees(
    trees: Trees, categorical: NDArray[np.bool_], importance: NDArray[np.float64]
) -> Forest:
    """The forest of these trees."""
    feature = trees.feature
    code = trees.code
    if categorical.any():
        is_category = _is_category(feature, categorical)
        code = np.where(is_category, np.cumsum(is_category, dtype=np.int32) - 1, code)
    left = np.empty(len(feature), np.int64)
    number_nodes(feature, trees.n_nodes, left)
    return Forest(
        roots=_starts(trees.n_nodes)[:-1],
        feature=feature,
        code=code,
        missing_left=trees.missing_left,
        left=left,
        subsets=trees.subsets,
        categorical=categorical,
        leaf_offsets=_starts(trees.leaf_sizes),
        leaf_rows=trees.leaf_rows,
        importance=importance,
    )


@kernel
def number_nodes(feature, n_nodes, left):
    """Write the left child of each node, of a leaf its number; trees stand level by level.

    In such a tree the i-th node that is split has its children at 1 + 2 i and 2 + 2 i. The trees
    before the t-th have s splits together and thus t + 2 s nodes: the k-th split of the whole
    forest, in tree t, has its left child at t + 2 k + 1.
    """
    node, n_splits, n_leaves = 0, 0, 0
    for tree in range(n_nodes.shape[0]):
        for _ in range(n_nodes[tree]):
            if feature[node] == LEAF:
                left[node] = n_leaves
                n_leaves += 1
            else:
                left[node] = tree + 2 * n_splits + 1
                n_splits += 1
            node += 1


def _starts(sizes: NDArray[Any]) -> NDArray[np.int64]:
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts
