"""Growing: what a worker does for a batch of trees.

The subsample of a tree depends on (seed, tree) alone. So every partition finds by itself which of
its rows are in the subsample, and one task collects them and grows the tree.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.layout import renumber_leaf_rows
from cqrf._forest.rows import Rows
from cqrf._forest.sampling import growth_seed, subsample_units
from cqrf._forest.spec import Growing, Sampling, Subsamples, Trees
from cqrf._forest.training import concatenate_batches, grow_from
from cqrf._input.target import Target, rank_target
from cqrf._working_model.transform import WorkingModel
from cqrf.dask.reading import BinnedPartition, TargetRows, concatenate_rows
from cqrf.dask.working import rank_by_residual


class UnitSampling(NamedTuple):
    """How trees draw units: the forest's seed, and ``Sampling`` without its array of rows.

    It is hashable, so that the units of a batch are drawn once per worker.
    """

    seed: int
    n_units: int
    size: int
    bootstrap: bool
    honest: bool
    bag_size: int

    @property
    def sampling(self) -> Sampling:
        """The same without the seed, for a process that has no rows."""
        return Sampling(
            unit_of_row=np.empty(0, np.int32),
            n_units=self.n_units,
            size=self.size,
            bootstrap=self.bootstrap,
            honest=self.honest,
            bag_size=self.bag_size,
        )


class TreeBatch(NamedTuple):
    """Some trees of the forest, all direct or all residual, by their numbers."""

    sampling: UnitSampling
    numbers: tuple[int, ...]


class GrowthSpec(NamedTuple):
    """How to grow a tree from its rows.

    ``working`` is the working model for residual trees, None for direct ones. ``has_late_entry``
    says whether any row of the table enters after its first time, or first residual.
    """

    growing: Growing
    categorical: NDArray[np.bool_]
    censoring: str
    honest: bool
    has_late_entry: bool
    working: WorkingModel | None = None


class TreeRows(NamedTuple):
    """Rows in the subsample of one tree.

    ``draws`` has how often each is drawn: positive for rows that choose splits, negative for rows
    that only fill leaves (honest trees).
    """

    rows: TargetRows
    codes: NDArray[np.uint8]
    draws: NDArray[np.int32]

    def take(self, positions: NDArray[Any]) -> TreeRows:
        """The rows at these positions."""
        return TreeRows(self.rows.take(positions), self.codes[positions], self.draws[positions])


class BatchRows(NamedTuple):
    """Rows of one partition in the subsamples of a batch: those of tree k end at ``ends[k]``."""

    ends: NDArray[np.int64]
    rows: TreeRows

    def of_tree(self, k: int) -> TreeRows:
        """Rows in the subsample of the k-th tree of the batch."""
        return self.rows.take(np.arange(self.ends[k - 1] if k else 0, self.ends[k]))


class GrownBatch(NamedTuple):
    """The trees of a batch, with rows of the whole table in their leaves.

    ``gains`` has shape (n_trees, n_features). ``leaf_rows`` are the rows of all leaves, or None.
    """

    trees: Trees
    gains: NDArray[np.float64]
    leaf_rows: TargetRows | None


@lru_cache(maxsize=2)
def draw_units(batch: TreeBatch) -> list[tuple[NDArray[np.int64], NDArray[np.int32]]]:
    """Units that each tree of a batch draws, ascending, and their draws (see ``TreeRows``)."""
    sampling, seed = batch.sampling.sampling, batch.sampling.seed
    return [subsample_units(sampling, seed, tree) for tree in batch.numbers]


def select_rows(partition: BinnedPartition, batch: TreeBatch) -> BatchRows:
    """Rows of a partition in the subsamples of a batch."""
    selected = [_rows_of_units(partition, units, draws) for units, draws in draw_units(batch)]
    rows = np.concatenate([rows for rows, _ in selected])
    draws = np.concatenate([draws for _, draws in selected])
    return BatchRows(
        ends=np.cumsum([len(rows) for rows, _ in selected]),
        rows=TreeRows(partition.take(rows), partition.codes[rows], draws),
    )


def _rows_of_units(
    partition: BinnedPartition, units: NDArray[np.int64], draws: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Rows of this partition that belong to the units, ascending, and their draws."""
    if len(partition.unit) == 0:
        return partition.row_of_unit, np.empty(0, np.int32)
    first_unit, last_unit = partition.unit[0], np.int64(partition.unit[-1])
    here = slice(*np.searchsorted(units, (first_unit, last_unit + 1)))
    wanted = units[here].astype(np.int32)
    begin = np.searchsorted(partition.unit, wanted)
    size = np.searchsorted(partition.unit, wanted, side="right") - begin
    steps = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    rows = partition.row_of_unit[np.repeat(begin, size) + steps]
    order = np.argsort(rows, kind="stable")
    return rows[order], np.repeat(draws[here], size)[order]


def grow_batch(
    parts: list[BatchRows], batch: TreeBatch, spec: GrowthSpec, return_rows: bool
) -> GrownBatch:
    """Grow the trees of a batch; with ``return_rows``, return the rows of their leaves too."""
    grown, leaf_rows = [], []
    for k, tree in enumerate(batch.numbers):
        tree_rows = _concatenate_tree_rows([part.of_tree(k) for part in parts])
        target, order = rank_target(tree_rows.rows.target, spec.censoring)
        tree_rows = tree_rows.take(order)
        if spec.working is None:
            trees, gains = _grow_tree(tree_rows, target, batch.sampling, tree, spec)
        else:
            target, order = rank_by_residual(tree_rows.rows, target, spec.working)
            trees, gains = _grow_tree(tree_rows.take(order), target, batch.sampling, tree, spec)
            trees = renumber_leaf_rows(trees, order)
        row_numbers: NDArray[Any] = tree_rows.rows.row
        grown.append((trees._replace(leaf_rows=row_numbers[trees.leaf_rows]), gains))
        if return_rows:
            leaf_rows.append(tree_rows.rows.take(np.unique(trees.leaf_rows)))
    trees, gains = concatenate_batches(grown)
    return GrownBatch(trees, gains, concatenate_distinct_rows(leaf_rows) if return_rows else None)


def concatenate_distinct_rows(parts: list[TargetRows]) -> TargetRows:
    """Rows of several parts, each once, in the order of the table."""
    rows = concatenate_rows(parts)
    return rows.take(np.unique(rows.row, return_index=True)[1])


def _concatenate_tree_rows(parts: list[TreeRows]) -> TreeRows:
    return TreeRows(
        concatenate_rows([part.rows for part in parts]),
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.draws for part in parts]),
    )


def _grow_tree(
    tree_rows: TreeRows, target: Target, sampling: UnitSampling, tree: int, spec: GrowthSpec
) -> tuple[Trees, NDArray[np.float64]]:
    """Grow a tree from its rows in order of the target; its leaves hold positions among them.

    target : times or residuals of the rows, ascending, oriented to the right
    """
    first_at_risk = None
    if spec.has_late_entry and target.entry is not None:
        first_at_risk = np.searchsorted(target.time, target.entry, side="right").astype(np.int32)
    rows = Rows(
        codes=np.ascontiguousarray(tree_rows.codes.T),
        categorical=spec.categorical,
        time=target.time,
        event=target.event,
        weight=tree_rows.rows.weight,
        first_at_risk=first_at_risk,
        cause=target.drop_single_cause().cause,
    )
    draws = tree_rows.draws
    positions = np.arange(len(draws), dtype=np.uint32)
    split_half, leaf_half = (np.repeat(positions, np.maximum(s * draws, 0)) for s in (1, -1))
    samples = Subsamples(
        ranks=np.concatenate([split_half, leaf_half]),
        starts=np.array([0, len(split_half), len(split_half) + len(leaf_half)]),
        seeds=growth_seed(sampling.seed, tree),
    )
    return grow_from(rows, spec.growing, sampling.honest, samples)
