"""Fitting: the stages of a fit on a cluster, as the client sees them.

1. ``cqrf-read``: every partition is checked; its target stays on the cluster.
2. ``cqrf-count``: which rows count is known once the weights of all are.
3. ``cqrf-sample``, ``cqrf-edges``: bins, from the rows that the local forest would take.
4. ``cqrf-bin``: every partition in bytes, which stay on the cluster.
5. ``cqrf-draw``, ``cqrf-grow``: batch by batch, the rows of some trees meet and become these.
6. ``cqrf-keep``: the targets that predictions need come to the client, as the trees did.

Whatever a worker that dies has held is computed again by Dask, from the partitions themselves.
"""

from __future__ import annotations

import math
from functools import reduce
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, Future
from numpy.typing import NDArray

from cqrf import binning
from cqrf.chance import draw_without_replacement
from cqrf.dask.errands import Errands
from cqrf.dask.growing import (
    Batch,
    Drawing,
    Ground,
    Grown,
    draw_part,
    grow_batch,
    join_distinct,
)
from cqrf.dask.partitions import Partitions
from cqrf.dask.reading import (
    Counted,
    Guide,
    Kept,
    PartSummary,
    bin_part,
    count_part,
    join_kept,
    join_samples,
    keep_part,
    read_part,
    sample_part,
    try_part,
)
from cqrf.equation import BERAN
from cqrf.forest import Rows, Sampling, Trees, join_trees, power_of_two
from cqrf.model import Model, check_events, check_n_rows
from cqrf.progress import show_progress
from cqrf.quantiles import QuantileSolver
from cqrf.sample_weight import WeightSummary
from cqrf.settings import Plan
from cqrf.table import NUMBER, Columns, join_columns
from cqrf.target import check_side_of_entry, check_some_weight, first_at_risk, rank_target

# A model keeps the targets of so many rows at most, unless its G needs all; of a longer table
# only those that stand in a leaf.
MOST_KEPT_ROWS = 20_000_000
# Share of the memory of a worker's thread that the drawn rows of one batch may take: a few
# batches are on their way at a time, and rows are there twice while they are put in order.
BATCH_SHARE = 1 / 16
BATCHES_PER_THREAD = 4  # so that no thread waits long for the last one
# Unless there were more tasks then, one for each batch and partition, than a scheduler takes well.
MOST_DRAW_TASKS = 20_000
DRAWN_ROW_BYTES = 40  # beside its codes


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
    has_weights: bool


def fit_on_cluster(
    client: Client,
    partitions: Partitions,
    plan: Plan,
    solver: QuantileSolver,
    guide: Guide,
    verbose: bool,
) -> Model:
    """Grow the forest of a table that lies on a cluster."""
    with Errands(client) as errands:
        table = read_partitions(errands, partitions, plan, guide)
        solver.check_neighbors(table.n_rows)
        counted = count_rows(errands, table)
        edges = find_edges(errands, table, counted, plan)
        n_units, units = number_units(counted)
        unit = "rows" if counted[0].labels is None else "groups"
        sampling = plan.sample(np.empty(0, np.int32), n_units, unit)
        binned = bin_partitions(errands, table, edges, units)
        keep_all = table.n_rows <= MOST_KEPT_ROWS or solver.method != BERAN
        batches = grow_trees(errands, table, binned, sampling, plan, not keep_all, verbose)
        kept = keep_rows(errands, table, binned, batches, plan.censoring, keep_all)
        found_edges = edges.result()
    return join_model(table, plan, sampling, found_edges, batches, kept)


def read_partitions(errands: Errands, partitions: Partitions, plan: Plan, guide: Guide) -> Table:
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
    return Table(parts, n, columns, known, weights is not None)


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


def find_edges(errands: Errands, table: Table, counted: list[Counted], plan: Plan) -> Future:
    """Edges of the bins, from the rows that count: all of them, or those that the seed draws."""
    ends = np.cumsum([part.n_rows for part in counted])
    n = int(ends[-1])
    rows: list[NDArray[np.int64] | None] = [None] * len(counted)
    if n > binning.EDGE_SAMPLE:
        drawn = np.sort(draw_without_replacement(np.uint64(plan.seed), n, binning.EDGE_SAMPLE))
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


def grow_trees(
    errands: Errands,
    table: Table,
    binned: list[Future],
    sampling: Sampling,
    plan: Plan,
    bring_rows: bool,
    verbose: bool,
) -> list[Grown]:
    """All trees, in batches, in their order."""
    summaries = [part.summary for part in table.parts]
    furthest = max(max(abs(part.first_time), abs(part.last_time)) for part in summaries)
    ground = Ground(
        plan.growing,
        table.columns.categorical,
        plan.censoring,
        time_scale=power_of_two(furthest),
        are_late=max(part.last_entry for part in summaries)
        >= min(part.first_time for part in summaries),
    )
    drawing = Drawing(plan.seed, *sampling[1:])
    rows_per_tree = sampling.size * table.n_rows / sampling.n_units
    bytes_per_tree = rows_per_tree * (len(table.columns.kinds) + DRAWN_ROW_BYTES)
    n_threads, size = choose_batch(errands.client, bytes_per_tree, plan.n_trees, len(binned))
    batches = [
        Batch(drawing, first, min(first + size, plan.n_trees))
        for first in range(0, plan.n_trees, size)
    ]
    tasks = (
        errands.task(
            "grow",
            batch.first,
            grow_batch,
            [
                errands.task("draw", (batch.first, i), draw_part, part, batch)
                for i, part in enumerate(binned)
            ],
            *(batch, ground, bring_rows),
        )
        for batch in batches
    )
    done: Any = errands.run_few_ahead(tasks, n_threads)
    if verbose:
        done = show_progress(done, len(batches), plan.n_trees)
    grown: dict[int, Grown] = {key[1]: result for key, result in done}
    return [grown[batch.first] for batch in batches]


def choose_batch(
    client: Client, bytes_per_tree: float, n_trees: int, n_parts: int
) -> tuple[int, int]:
    """Threads of the cluster, and trees of a batch whose rows are small beside their memory."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    n_threads = max(1, sum(worker["nthreads"] for worker in workers))
    limits = [w["memory_limit"] / w["nthreads"] for w in workers if w["memory_limit"]]
    fitting = min(limits) * BATCH_SHARE / bytes_per_tree if limits else n_trees
    even = n_trees / (BATCHES_PER_THREAD * n_threads)
    few_tasks = math.ceil(n_trees * n_parts / MOST_DRAW_TASKS)
    return n_threads, max(1, int(min(fitting, max(even, few_tasks))))


def keep_rows(
    errands: Errands,
    table: Table,
    binned: list[Future],
    batches: list[Grown],
    censoring: str,
    keep_all: bool,
) -> Kept:
    """Rows that predictions need: all, or those in leaves and that with the last time."""

    def last(part: Part) -> float:
        return part.summary.last_time if censoring == "right" else -part.summary.first_time

    if keep_all:
        wanted = list(range(len(binned)))
    else:
        wanted = [int(np.argmax([last(part) for part in table.parts]))]
    kept: list[Kept] = errands.run(
        [errands.task("keep", i, keep_part, binned[i], not keep_all, censoring) for i in wanted]
    )
    in_leaves = [batch.leaf_rows for batch in batches if batch.leaf_rows is not None]
    return join_kept(kept) if keep_all else join_distinct(kept + in_leaves)


def join_model(
    table: Table,
    plan: Plan,
    sampling: Sampling,
    edges: list[NDArray[np.float64]],
    batches: list[Grown],
    kept: Kept,
) -> Model:
    """The model of all trees and the rows that it keeps."""
    ranked, order = rank_target(kept.target, plan.censoring)
    rank_of_place = np.empty(len(order), np.int32)
    rank_of_place[order] = np.arange(len(order), dtype=np.int32)
    trees = Trees(*map(np.concatenate, zip(*(batch.trees for batch in batches), strict=True)))
    place: NDArray[Any] = trees.leaf_rows
    if len(order) < table.n_rows:
        place = np.searchsorted(kept.row, place)
    categorical = table.columns.categorical
    forest = join_trees(
        trees._replace(leaf_rows=rank_of_place[place]),
        categorical,
        np.concatenate([batch.gains for batch in batches]).sum(axis=0),
    )
    rows = Rows(
        codes=np.empty((len(categorical), 0), np.uint8),
        categorical=categorical,
        time=ranked.time,
        event=ranked.event,
        weight=None if kept.weight is None else kept.weight[order],
        first_at_risk=first_at_risk(ranked),
    )
    return Model(
        columns=table.columns,
        edges=edges,
        forest=forest,
        rows=rows,
        entry=ranked.entry,
        order=order,
        sampling=sampling,
        seed=plan.seed,
        censoring=plan.censoring,
    )
