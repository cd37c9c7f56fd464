"""The forest: many trees in flat arrays, grown in threads, read by leaf.

Training rows are numbered by *rank*: their place in time order, events before censorings
at a tied time, then by row number. A leaf lists the ranks of its rows in ascending order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from cqrf.chance import derive
from cqrf.growing.labels import VARIANCE
from cqrf.growing.sampling import draw_for_tree, rows_drawn
from cqrf.growing.tree import (
    LEAF,
    find_nodes,
    grow_nodes,
    list_leaves,
    prune_empty,
    take,
    take_columns,
    take_first_at_risk,
)
from cqrf.kernel import interruptible, kernel

# Trees are grown in batches of about this many row visits (rows times features): long
# enough to hide the cost of a task, short enough to stop soon when interrupted.
BATCH_WORK = 400_000


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


@dataclass(frozen=True)
class Forest:
    """All trees: arrays with one entry per node, and the rows of every leaf.

    The node arrays are those of :mod:`cqrf.growing.tree`, with children, leaves and
    subsets numbered through the whole forest. Tree t starts at node ``roots[t]``.
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
        rows = rows._replace(time=rows.time / power_of_two(np.abs(rows.time).max()))
    size = max(1, (sampling.size * len(rows.categorical)))
    batch = max(1, min(BATCH_WORK // size, n_trees // 16))
    starts = range(0, n_trees, batch)
    tasks = (
        delayed(_grow_batch)(rows, sampling, growing, seed, t, min(t + batch, n_trees))
        for t in starts
    )
    batches = Parallel(n_jobs, prefer="threads", return_as="generator")(tasks)
    if progress is not None:
        batches = progress(batches, len(starts))
    with interruptible():
        return _join([tree for trees in batches for tree in trees], rows.categorical)


def power_of_two(x: float) -> float:
    """Power of two close to x, by which times are divided so that their squares are finite."""
    return float(np.ldexp(1.0, int(np.frexp(x)[1]) - 1)) if x > 0 else 1.0


def in_bag_bits(sampling: Sampling, n_trees: int, seed: int) -> NDArray[np.uint8]:
    """Which units each tree has drawn: bits of shape (n_units, n_trees / 8, rounded up)."""
    return _in_bag_bits(
        np.uint64(seed),
        n_trees,
        sampling.n_units,
        sampling.size,
        sampling.bootstrap,
        sampling.bag_size,
    )


def _grow_batch(
    rows: Rows, sampling: Sampling, growing: Growing, seed: int, first: int, end: int
) -> list[tuple[NDArray[Any], ...]]:
    return [grow_tree(rows, sampling, growing, seed, number) for number in range(first, end)]


def grow_tree(
    rows: Rows, sampling: Sampling, growing: Growing, seed: int, number: int
) -> tuple[NDArray[Any], ...]:
    """Tree ``number``: its nodes, the ranks in its leaves, and the gain of each feature.

    Three kernels rather than one: what a kernel calls is compiled with it, each time anew.
    """
    tree_seed = np.uint64(derive(np.uint64(seed), number))
    split_ranks, leaf_ranks, *drawn = draw_rows(*rows, *sampling, np.uint64(seed), number)
    *nodes, node_of_row, importance = grow_nodes(*drawn, *growing, np.uint64(derive(tree_seed, 1)))
    leaves = settle_rows(
        rows.codes, rows.categorical, *nodes, node_of_row, split_ranks, leaf_ranks, sampling.honest
    )
    return *nodes, *leaves, importance


@kernel
def draw_rows(
    codes,
    categorical,
    time,
    event,
    weight,
    first_at_risk,
    unit_of_row,
    n_units,
    size,
    bootstrap,
    honest,
    bag_size,
    seed,
    number,
):
    """Ranks that choose a tree's splits and that fill its leaves, and what the first need."""
    draws = draw_for_tree(seed, number, n_units, size, bootstrap, honest, bag_size)
    split_ranks = rows_drawn(draws, unit_of_row, 1)
    leaf_ranks = rows_drawn(draws, unit_of_row, -1) if honest else split_ranks
    return (
        split_ranks,
        leaf_ranks,
        take_columns(codes, split_ranks),
        categorical,
        take(time, split_ranks),
        take(event, split_ranks),
        take(weight, split_ranks),
        take_first_at_risk(first_at_risk, split_ranks),
    )


@kernel
def settle_rows(
    codes,
    categorical,
    feature,
    code,
    missing_left,
    left,
    subsets,
    node_of_row,
    split_ranks,
    leaf_ranks,
    honest,
):
    """Fill the leaves; an honest tree loses the nodes of which one side stays empty."""
    if honest:
        node_of_row = find_nodes(
            codes, leaf_ranks, categorical, feature, code, missing_left, left, subsets
        )
        prune_empty(feature, code, missing_left, left, node_of_row)
    leaf_offsets, members = list_leaves(feature, left, node_of_row)
    return leaf_offsets, take(leaf_ranks, members)


@kernel
def _in_bag_bits(seed, n_trees, n_units, size, bootstrap, bag_size):
    bits = np.zeros((n_units, (n_trees + 7) // 8), np.uint8)
    for t in range(n_trees):
        # Honest halves share the draws out; who is drawn at all does not depend on them.
        draws = draw_for_tree(seed, t, n_units, size, bootstrap, False, bag_size)
        for unit in range(n_units):
            if draws[unit] != 0:
                bits[unit, t >> 3] |= np.uint8(1 << (t & 7))
    return bits


def _join(trees: list[tuple[NDArray[Any], ...]], categorical: NDArray[np.bool_]) -> Forest:
    features, codes, missing_left, lefts, subsets, offsets, ranks, importance = zip(
        *trees, strict=True
    )
    tree_of_node = np.repeat(np.arange(len(trees)), [len(f) for f in features])
    first_node = _starts(features)
    first_leaf = _starts([o[1:] for o in offsets])
    feature, code, left = np.concatenate(features), np.concatenate(codes), np.concatenate(lefts)
    is_leaf = feature == LEAF
    left = left + np.where(is_leaf, first_leaf[tree_of_node], first_node[tree_of_node])
    if categorical.any():
        is_category = ~is_leaf & categorical[feature]
        code[is_category] += _starts(subsets)[tree_of_node[is_category]].astype(np.int32)
    # Offsets start anew with each tree: what lies between two trees is no leaf.
    leaf_sizes = np.delete(np.diff(np.concatenate(offsets)), _starts(offsets)[1:-1] - 1)
    return Forest(
        roots=first_node[:-1],
        feature=feature,
        code=code,
        missing_left=np.concatenate(missing_left),
        left=left,
        subsets=np.concatenate(subsets),
        categorical=categorical,
        leaf_offsets=np.concatenate([[0], np.cumsum(leaf_sizes)]).astype(np.int64),
        leaf_rows=np.concatenate(ranks),
        importance=np.sum(importance, axis=0),
    )


def _starts(parts: Iterable[Any]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
