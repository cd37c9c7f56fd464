"""Preparing: the stages of a fit before the first tree.

1. ``cqrf-read``: every partition is checked; its target stays on the cluster.
2. ``cqrf-count``: which rows count is known once the weights of all are.
3. ``cqrf-sample``, ``cqrf-edges``: bins, from the rows that the local forest would take.
4. ``cqrf-bin``: every partition in bytes, which stay on the cluster.
"""

from __future__ import annotations

from functools import reduce
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from cqrf._forest import binning
from cqrf._input.features import NUMBER, Columns, join_columns
from cqrf._input.sample_weight import WeightSummary, check_some_weight
from cqrf._input.target import check_side_of_entry
from cqrf._model.fit import check_events, check_n_rows
from cqrf._model.settings import Settings
from cqrf._runtime.random import draw_without_replacement
from cqrf.dask.errands import Errands
from cqrf.dask.partitions import Partitions
from cqrf.dask.reading import (
    Counted,
    Guide,
    PartSummary,
    bin_part,
    count_part,
    join_samples,
    read_part,
    sample_part,
    try_part,
)


class Part(NamedTuple):
    """A partition that has rows, and what reading it gave, there and here."""

    number: int
    X: Any
    read: Future
    summary: PartSummary


class Table(NamedTuple):
    """The partitions that have rows, and what is known of them together."""

    parts: list[Part]
    n_rows: int
    columns: Columns
    guide: Future


def read_partitions(
    errands: Errands, partitions: Partitions, plan: Settings, guide: Guide
) -> Table:
    """Check every partition, then what they are together."""
    inputs = list(zip(*partitions, strict=True))
    sent = errands.send(guide)
    read = errands.start(
        [
            errands.task("read", number, try_part, number, sent, *brought)
            for number, brought in enumerate(inputs)
        ]
    )
    summaries: list[PartSummary] = errands.run(
        [errands.task("look", i, attrgetter("summary"), future) for i, future in enumerate(read)]
    )
    for number, summary in enumerate(summaries):
        if summary.is_wrong:
            first_row = sum(before.n_rows for before in summaries[:number])
            again = (number, sent, *inputs[number], first_row)
            errands.run([errands.task("explain", number, read_part, *again)])
    parts = [
        Part(number, *part)
        for number, part in enumerate(zip(partitions.X, read, summaries, strict=True))
        if part[-1].n_rows
    ]
    n = sum(part.summary.n_rows for part in parts)
    if n == 0:
        raise ValueError("X has no rows in any of its partitions: nothing can be learnt.")
    check_n_rows(n)
    check_entries(parts, plan.censoring)
    weights = join_weights(parts)
    columns = learn_columns(parts, guide)
    known = errands.send(guide._replace(columns=columns, weights=weights))
    return Table(parts, n, columns, known)


def learn_columns(parts: list[Part], guide: Guide) -> Columns:
    """Kinds and levels of the columns of all partitions."""
    surveys = [part.summary.columns for part in parts if part.summary.columns is not None]
    if surveys:
        return join_columns(surveys, [part.number for part in parts])
    n_columns = guide.reader.n_features_in_
    return Columns((NUMBER,) * n_columns, (None,) * n_columns)


def join_weights(parts: list[Part]) -> WeightSummary | None:
    """What is to be known of the weights of all partitions, if there are any."""
    summaries = [part.summary.weights for part in parts if part.summary.weights is not None]
    if not summaries:
        return None
    joined = reduce(WeightSummary.join, summaries)
    check_some_weight(joined.largest > 0)
    return joined


def check_entries(parts: list[Part], censoring: str) -> None:
    """Refuse entry times that only some partitions have, or that go with left censoring."""
    numbers: dict[bool, int] = {}
    for part in parts:
        numbers.setdefault(part.summary.has_entry, part.number)
    check_side_of_entry(True in numbers, censoring)
    if len(numbers) > 1:
        raise ValueError(
            f"y has entry times in partition {numbers[True]} but none in partition "
            f"{numbers[False]}: give all or none (-inf for a row that was there from the start)."
        )


def count_rows(errands: Errands, table: Table) -> list[Counted]:
    """Rows that count, partition by partition."""
    counted: list[Counted] = errands.run(
        [
            errands.task("count", part.number, count_part, table.guide, part.read)
            for part in table.parts
        ]
    )
    check_events(any(part.has_event for part in counted))
    return counted


def find_edges(errands: Errands, table: Table, counted: list[Counted], plan: Settings) -> Future:
    """Edges of the bins, from the rows that count: all of them, or those that the seed draws."""
    ends = np.cumsum([part.n_rows for part in counted])
    n = int(ends[-1])
    rows: list[NDArray[np.int64] | None] = [None] * len(counted)
    if n > binning.EDGE_SAMPLE:
        drawn = np.sort(draw_without_replacement(plan.seed, n, binning.EDGE_SAMPLE))
        pieces = np.split(drawn, np.searchsorted(drawn, ends[:-1]))
        starts = ends - [part.n_rows for part in counted]
        rows = [piece - start for piece, start in zip(pieces, starts, strict=True)]
    samples = [
        errands.task(
            "sample", part.number, sample_part, part.number, table.guide, part.X, part.read, wanted
        )
        for part, wanted in zip(table.parts, rows, strict=True)
    ]
    (edges,) = errands.start([errands.task("edges", 0, join_samples, samples, table.guide, plan)])
    return edges


def number_units(counted: list[Counted]) -> tuple[int, list[Any]]:
    """How many units there are, and of each partition the first one, or that of each group."""
    if counted[0].labels is None:
        ends = np.cumsum([0, *(part.n_rows for part in counted)]).tolist()
        return ends[-1], ends[:-1]
    numbers: dict[Any, int] = {}
    units = [
        np.array([numbers.setdefault(label, len(numbers)) for label in part.labels or ()], np.int32)
        for part in counted
    ]
    return len(numbers), units


def bin_partitions(errands: Errands, table: Table, edges: Future, units: list[Any]) -> list[Future]:
    """Every partition in bytes; of what was read before nothing stays."""
    first_rows = np.cumsum([0, *(part.summary.n_rows for part in table.parts)]).tolist()
    binned = errands.start(
        [
            errands.task(
                "bin",
                part.number,
                bin_part,
                *(part.number, table.guide, part.X, part.read, edges, first_row, its_units),
            )
            for part, first_row, its_units in zip(table.parts, first_rows, units)
        ]
    )
    errands.release([part.read for part in table.parts])
    return binned
