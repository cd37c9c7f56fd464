"""Preparing: the stages of a fit before the first tree, as the client runs them.

1. ``cqrf-read``: check every partition; its target stays on the cluster.
2. ``cqrf-count``: find the rows with positive weight, now that all weights are known.
3. ``cqrf-sample``, ``cqrf-edges``: bin edges, from the rows that the local forest would use.
4. ``cqrf-bin``: encode every partition; the codes stay on the cluster.
"""

from __future__ import annotations

from functools import reduce
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from cqrf._forest import binning
from cqrf._input.columns import NUMBER, Columns, join_columns
from cqrf._input.sample_weight import WeightSummary, check_some_weight
from cqrf._input.target import check_side_of_entry
from cqrf._model.fit import check_events, check_n_rows
from cqrf._model.settings import Settings
from cqrf._runtime.random import draw_without_replacement
from cqrf.dask.partitions import Partition
from cqrf.dask.reading import (
    PartitionSummary,
    PositiveRows,
    ReadingContext,
    bin_partition,
    find_edges,
    read_partition,
    sample_features,
    summarise_positive_rows,
    try_read_partition,
)
from cqrf.dask.tasks import ClusterTasks


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
    check_events(any(part.has_event for part in positive_rows))
    return positive_rows


def compute_edges(
    tasks: ClusterTasks, table: Table, positive_rows: list[PositiveRows], settings: Settings
) -> Future:
    """Bin edges, from all rows with positive weight or from a random sample of them."""
    ends = np.cumsum([part.n_rows for part in positive_rows])
    n = int(ends[-1])
    rows: list[NDArray[np.int64] | None] = [None] * len(positive_rows)
    if n > binning.EDGE_SAMPLE:
        drawn = np.sort(draw_without_replacement(settings.seed, n, binning.EDGE_SAMPLE))
        pieces = np.split(drawn, np.searchsorted(drawn, ends[:-1]))
        starts = ends - [part.n_rows for part in positive_rows]
        rows = [piece - start for piece, start in zip(pieces, starts, strict=True)]
    samples = [
        tasks.task(
            "sample",
            part.number,
            sample_features,
            part.number,
            table.context,
            part.X,
            part.target,
            sampled,
        )
        for part, sampled in zip(table.parts, rows, strict=True)
    ]
    (edges,) = tasks.submit([tasks.task("edges", 0, find_edges, samples, table.context, settings)])
    return edges


def number_units(
    positive_rows: list[PositiveRows],
) -> tuple[int, list[int] | list[NDArray[np.int32]]]:
    """Number of sampling units, and the units of each part as ``bin_partition`` takes them."""
    if positive_rows[0].groups is None:
        ends = np.cumsum([0, *(part.n_rows for part in positive_rows)]).tolist()
        return ends[-1], ends[:-1]
    numbers: dict[Any, int] = {}
    units = [
        np.array([numbers.setdefault(group, len(numbers)) for group in part.groups or ()], np.int32)
        for part in positive_rows
    ]
    return len(numbers), units


def bin_partitions(
    tasks: ClusterTasks, table: Table, edges: Future, units: list[Any]
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
                edges,
                first_row,
                part_units,
            )
            for part, first_row, part_units in zip(table.parts, first_rows, units)
        ]
    )
    tasks.release([part.target for part in table.parts])
    return binned
