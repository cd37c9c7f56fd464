"""Preparing: the stages of a fit before the first tree, as the client runs them.

1. ``cqrf-read``: check every partition; its target stays on the cluster.
2. ``cqrf-count``: find the rows with positive weight, now that all weights are known.
3. ``cqrf-sample``, ``cqrf-edges``, ``cqrf-working``: bin edges and the working model, from the
   rows that the local forest would use.
4. ``cqrf-bin``: encode every partition, predict its rows with the working model; both stay on the
   cluster.
"""

from __future__ import annotations

from functools import reduce
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from cqrf._forest import binning
from cqrf._input.causes import Cause
from cqrf._input.columns import NUMBER, Columns, join_columns
from cqrf._input.sample_weight import WeightSummary, check_some_weight
from cqrf._input.target import check_side_of_entry
from cqrf._input.units import NO_UNIT
from cqrf._model.fit import check_events, check_n_rows
from cqrf._model.settings import Settings
from cqrf._runtime.random import draw_without_replacement
from cqrf._working_model.fit import has_enough, sample_rows
from cqrf.dask.partitions import Partition
from cqrf.dask.reading import (
    PartitionSummary,
    PositiveRows,
    ReadingContext,
    SampledRows,
    bin_partition,
    find_edges,
    read_partition,
    sample_partition,
    summarise_positive_rows,
    try_read_partition,
)
from cqrf.dask.tasks import ClusterTasks
from cqrf.dask.working import fit_to_samples


class TablePart(NamedTuple):
    """A partition that has rows; ``target`` is its ``PartitionTarget`` on the cluster."""

    number: int
    X: Any
    target: Future
    summary: PartitionSummary


class Table(NamedTuple):
    """The partitions that have rows, and what is known of all of them together."""

    parts: list[TablePart]
    n_rows: int
    columns: Columns
    context: Future

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Causes of all partitions, ascending; empty if there is one kind of event."""
        causes = sorted({cause for part in self.parts for cause in part.summary.causes})
        return tuple(causes) if len(causes) > 1 else ()


class Preprocessing(NamedTuple):
    """On the cluster: bin edges, and the ``CrossFit`` of the working model if there is one."""

    edges: Future
    working: Future | None


class BinnedTable(NamedTuple):
    """The table in bins; ``partitions`` are ``BinnedPartition`` on the cluster, by part."""

    table: Table
    positive_rows: list[PositiveRows]
    partitions: list[Future]


def read_partitions(
    tasks: ClusterTasks, partitions: list[Partition], settings: Settings, context: ReadingContext
) -> Table:
    """Check every partition, then all of them together."""
    shared = tasks.share(context)
    targets = tasks.submit(
        [tasks.task("read", part.number, try_read_partition, shared, part) for part in partitions]
    )
    summaries: list[PartitionSummary] = tasks.run(
        [
            tasks.task("summary", i, attrgetter("summary"), target)
            for i, target in enumerate(targets)
        ]
    )
    _raise_first_error(tasks, shared, partitions, summaries)
    parts = [
        TablePart(partition.number, partition.X, target, summary)
        for partition, target, summary in zip(partitions, targets, summaries, strict=True)
        if summary.n_rows
    ]
    n = sum(part.summary.n_rows for part in parts)
    if n == 0:
        raise ValueError("X has no rows in any of its partitions: there is nothing to fit.")
    check_n_rows(n)
    check_entries(parts, settings.censoring)
    columns = join_part_columns(parts, context)
    completed = context._replace(columns=columns, weights=join_weights(parts))
    return Table(parts, n, columns, tasks.share(completed))


def _raise_first_error(
    tasks: ClusterTasks,
    context: Future,
    partitions: list[Partition],
    summaries: list[PartitionSummary],
) -> None:
    """Read the first invalid partition again, with the number of its first row in the table."""
    first_row = 0
    for partition, summary in zip(partitions, summaries, strict=True):
        if summary.is_invalid:
            tasks.run(
                [
                    tasks.task(
                        "error", partition.number, read_partition, context, partition, first_row
                    )
                ]
            )
        first_row += summary.n_rows


def join_part_columns(parts: list[TablePart], context: ReadingContext) -> Columns:
    """Kinds and levels of the columns over all partitions."""
    surveys = [part.summary.columns for part in parts if part.summary.columns is not None]
    if surveys:
        return join_columns(surveys, [part.number for part in parts])
    n_columns = context.estimator.n_features_in_
    return Columns((NUMBER,) * n_columns, (None,) * n_columns)


def join_weights(parts: list[TablePart]) -> WeightSummary | None:
    """Summary of the sample weights over all partitions, if there are any."""
    summaries = [part.summary.weights for part in parts if part.summary.weights is not None]
    if not summaries:
        return None
    joined = reduce(WeightSummary.join, summaries)
    check_some_weight(joined.largest > 0)
    return joined


def check_entries(parts: list[TablePart], censoring: str) -> None:
    """Raise an error if only some partitions have entry times, or with left censoring."""
    numbers: dict[bool, int] = {}
    for part in parts:
        numbers.setdefault(part.summary.has_entry, part.number)
    check_side_of_entry(True in numbers, censoring)
    if len(numbers) > 1:
        raise ValueError(
            f"y has entry times in partition {numbers[True]} but none in partition "
            f"{numbers[False]}: give all or none (-inf for a row at risk from the start)."
        )


def find_positive_rows(tasks: ClusterTasks, table: Table) -> list[PositiveRows]:
    """Summary of the rows with positive weight of each part."""
    positive_rows: list[PositiveRows] = tasks.run(
        [
            tasks.task("count", part.number, summarise_positive_rows, table.context, part.target)
            for part in table.parts
        ]
    )
    check_events(any(part.n_events for part in positive_rows))
    return positive_rows


def compute_preprocessing(
    tasks: ClusterTasks,
    table: Table,
    positive_rows: list[PositiveRows],
    units: list[Any],
    settings: Settings,
) -> Preprocessing:
    """Bin edges and the working model, from rows with positive weight or random samples of them."""
    has_working = settings.working_model is not None and has_enough(
        sum(part.n_rows for part in positive_rows), sum(part.n_events for part in positive_rows)
    )
    samples = [
        tasks.task(
            "sample",
            part.number,
            sample_partition,
            part.number,
            table.context,
            part.X,
            part.target,
            rows,
            part_units,
            settings.censoring,
        )
        for part, rows, part_units in zip(
            table.parts, choose_samples(positive_rows, settings.seed, has_working), units
        )
    ]
    edges = tasks.task("edges", 0, find_edges, samples, table.context, settings)
    if not has_working:
        return Preprocessing(tasks.submit([edges])[0], None)
    fitted_to = [
        tasks.task("working-sample", i, attrgetter("working"), sample)
        for i, sample in enumerate(samples)
    ]
    working = tasks.task(
        "working", 0, fit_to_samples, fitted_to, edges, table.columns, settings.seed
    )
    return Preprocessing(*tasks.submit([edges, working]))


def choose_samples(
    positive_rows: list[PositiveRows], seed: int, has_working: bool
) -> list[SampledRows]:
    """Rows of each part that bin edges and working model are computed from."""
    n = sum(part.n_rows for part in positive_rows)
    drawn = None
    if n > binning.EDGE_SAMPLE:
        drawn = np.sort(draw_without_replacement(seed, n, binning.EDGE_SAMPLE))
    for_edges = _split_rows(drawn, positive_rows)
    if not has_working:
        return [SampledRows(rows, None) for rows in for_edges]
    for_working = _split_rows(sample_rows(n, seed), positive_rows)
    return [
        SampledRows(edges, working) for edges, working in zip(for_edges, for_working, strict=True)
    ]


def _split_rows(
    rows: NDArray[np.int64] | None, positive_rows: list[PositiveRows]
) -> list[slice | NDArray[np.int64]]:
    """Sampled rows of each part, from ascending rows of the table; None for all."""
    if rows is None:
        return [slice(None)] * len(positive_rows)
    ends = np.cumsum([part.n_rows for part in positive_rows])
    pieces = np.split(rows, np.searchsorted(rows, ends[:-1]))
    starts = ends - [part.n_rows for part in positive_rows]
    return [piece - start for piece, start in zip(pieces, starts, strict=True)]


def number_units(
    positive_rows: list[PositiveRows],
) -> tuple[int, list[int] | list[NDArray[np.int32]]]:
    """Number of sampling units, and the units of each part as ``bin_partition`` takes them."""
    if positive_rows[0].groups is None:
        ends = np.cumsum([0, *(part.n_rows for part in positive_rows)]).tolist()
        return ends[-1], ends[:-1]
    numbers: dict[Any, int] = {}
    for part in positive_rows:
        for group in (part.groups or ())[: part.n_groups]:
            numbers.setdefault(group, len(numbers))
    units = [
        np.array([numbers.get(group, NO_UNIT) for group in part.groups or ()], np.int32)
        for part in positive_rows
    ]
    return len(numbers), units


def bin_partitions(
    tasks: ClusterTasks, table: Table, preprocessing: Preprocessing, units: list[Any]
) -> list[Future]:
    """Encode every partition, and release the targets that were read before."""
    first_rows = np.cumsum([0, *(part.summary.n_rows for part in table.parts)]).tolist()
    binned = tasks.submit(
        [
            tasks.task(
                "bin",
                part.number,
                bin_partition,
                part.number,
                table.context,
                part.X,
                part.target,
                preprocessing.edges,
                first_row,
                part_units,
                preprocessing.working,
            )
            for part, first_row, part_units in zip(table.parts, first_rows, units)
        ]
    )
    tasks.release([part.target for part in table.parts])
    return binned
