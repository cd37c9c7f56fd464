"""Fitting: grow a forest on a cluster, as the client runs it.

After :mod:`cqrf.dask.preparing`, each batch of trees collects its rows and is grown
(``cqrf-draw``, ``cqrf-grow``). The trees come to the client, with the targets that predictions
need (``cqrf-keep``). If a worker dies, Dask computes its results again from the partitions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from distributed import Client, Future
from numpy.typing import NDArray

from cqrf._forest.layout import join_trees
from cqrf._forest.rows import Rows
from cqrf._forest.spec import Sampling
from cqrf._forest.training import concatenate_batches, scale_criterion
from cqrf._input.risk_sets import first_at_risk
from cqrf._input.target import rank_target
from cqrf._input.units import Units
from cqrf._model.fitted import Model
from cqrf._model.settings import Settings
from cqrf._runtime.progress import show_progress
from cqrf._survival.equation import BERAN
from cqrf.dask.growing import (
    GrownBatch,
    GrowthSpec,
    TreeBatch,
    UnitSampling,
    concatenate_distinct_rows,
    grow_batch,
    select_rows,
)
from cqrf.dask.partitions import Partition
from cqrf.dask.preparing import (
    BinnedTable,
    Table,
    bin_partitions,
    compute_edges,
    find_positive_rows,
    number_units,
    read_partitions,
)
from cqrf.dask.reading import (
    ReadingContext,
    TargetRows,
    concatenate_rows,
    take_all_rows,
)
from cqrf.dask.tasks import ClusterTasks

# The model keeps the targets of all rows up to this many, or if its estimate of G needs all. Of a
# longer table it keeps only the rows that are in a leaf.
MAX_KEPT_ROWS = 20_000_000
# Share of the memory per worker thread that the rows of one batch may take: a few batches are
# submitted at a time, and sorting the rows needs a second copy.
BATCH_MEMORY_SHARE = 1 / 16
BATCHES_PER_THREAD = 4  # so that threads finish at about the same time
# There is one task per batch and partition; with more of them the scheduler becomes slow.
MAX_DRAW_TASKS = 20_000
BYTES_PER_ROW = 40  # of a subsample, without its codes


def fit_on_cluster(
    client: Client,
    partitions: list[Partition],
    settings: Settings,
    context: ReadingContext,
    verbose: bool,
) -> Model:
    """Fit the model of a table that lies on a cluster."""
    with ClusterTasks(client) as tasks:
        table = read_partitions(tasks, partitions, settings, context)
        settings.solver.check_neighbors(table.n_rows)
        positive_rows = find_positive_rows(tasks, table)
        edges = compute_edges(tasks, table, positive_rows, settings)
        n_units, units = number_units(positive_rows)
        unit_name = "rows" if positive_rows[0].groups is None else "groups"
        sampling = settings.sample(Units(np.empty(0, np.int32), n_units, unit_name))
        binned = BinnedTable(table, positive_rows, bin_partitions(tasks, table, edges, units))
        keep_all = table.n_rows <= MAX_KEPT_ROWS or settings.solver.method != BERAN
        batches = grow_trees(
            tasks, binned, sampling, settings, return_rows=not keep_all, verbose=verbose
        )
        if keep_all:
            kept = fetch_all_rows(tasks, binned.partitions)
        else:
            kept = concatenate_distinct_rows(
                [batch.leaf_rows for batch in batches if batch.leaf_rows is not None]
            )
        fetched_edges = edges.result()
    return assemble_model(table, settings, sampling, fetched_edges, batches, kept)


def grow_trees(
    tasks: ClusterTasks,
    binned: BinnedTable,
    sampling: Sampling,
    settings: Settings,
    *,
    return_rows: bool,
    verbose: bool,
) -> list[GrownBatch]:
    """Grow all trees in batches, and return the batches in order."""
    table = binned.table
    spec = make_growth_spec(binned, settings)
    rows_per_tree = sampling.size * table.n_rows / sampling.n_units
    bytes_per_tree = rows_per_tree * (len(table.columns.kinds) + BYTES_PER_ROW)
    n_parts = len(binned.partitions)
    n_threads, size = choose_batch_size(tasks.client, bytes_per_tree, settings.n_trees, n_parts)
    unit_sampling = UnitSampling(
        seed=settings.seed,
        n_units=sampling.n_units,
        size=sampling.size,
        bootstrap=sampling.bootstrap,
        honest=sampling.honest,
        bag_size=sampling.bag_size,
    )
    batches = [
        TreeBatch(unit_sampling, first, min(first + size, settings.n_trees))
        for first in range(0, settings.n_trees, size)
    ]

    def make_task(batch: TreeBatch) -> Any:
        rows = [
            tasks.task("draw", (batch.first, i), select_rows, partition, batch)
            for i, partition in enumerate(binned.partitions)
        ]
        return tasks.task("grow", batch.first, grow_batch, rows, batch, spec, return_rows)

    results: Any = tasks.run_bounded(map(make_task, batches), n_threads)
    if verbose:
        results = show_progress(results, len(batches), settings.n_trees)
    grown: dict[int, GrownBatch] = {key[1]: result for key, result in results}
    return [grown[batch.first] for batch in batches]


def make_growth_spec(binned: BinnedTable, settings: Settings) -> GrowthSpec:
    """How the trees of this table are grown."""
    summaries = [part.summary for part in binned.table.parts]
    largest_time = max(
        max(abs(part.first_time), abs(part.last_time))
        for part in binned.positive_rows
        if part.n_rows
    )
    last_entry = max(summary.last_entry for summary in summaries)
    return GrowthSpec(
        scale_criterion(settings.growing, largest_time),
        binned.table.columns.categorical,
        settings.censoring,
        has_late_entry=last_entry >= min(summary.first_time for summary in summaries),
    )


def choose_batch_size(
    client: Client, bytes_per_tree: float, n_trees: int, n_parts: int
) -> tuple[int, int]:
    """Number of threads of the cluster, and number of trees per batch that fits its memory."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    n_threads = max(1, sum(worker["nthreads"] for worker in workers))
    limits = [w["memory_limit"] / w["nthreads"] for w in workers if w["memory_limit"]]
    by_memory = min(limits) * BATCH_MEMORY_SHARE / bytes_per_tree if limits else n_trees
    by_threads = n_trees / (BATCHES_PER_THREAD * n_threads)
    by_tasks = math.ceil(n_trees * n_parts / MAX_DRAW_TASKS)
    return n_threads, max(1, int(min(by_memory, max(by_threads, by_tasks))))


def fetch_all_rows(tasks: ClusterTasks, partitions: list[Future]) -> TargetRows:
    """Targets of all rows of the table."""
    return concatenate_rows(
        tasks.run([tasks.task("keep", i, take_all_rows, part) for i, part in enumerate(partitions)])
    )


def assemble_model(
    table: Table,
    settings: Settings,
    sampling: Sampling,
    edges: list[NDArray[np.float64]],
    batches: list[GrownBatch],
    kept: TargetRows,
) -> Model:
    """The model from all trees and the targets that it keeps."""
    ranked, order = rank_target(kept.target, settings.censoring)
    rank_of_position = np.empty(len(order), np.int32)
    rank_of_position[order] = np.arange(len(order), dtype=np.int32)
    trees, gains = concatenate_batches((batch.trees, batch.gains) for batch in batches)
    position: NDArray[Any] = trees.leaf_rows
    if len(order) < table.n_rows:
        position = np.searchsorted(kept.row, position)
    categorical = table.columns.categorical
    forest = join_trees(
        trees._replace(leaf_rows=rank_of_position[position]),
        categorical,
        gains.sum(axis=0),
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
        seed=settings.seed,
        censoring=settings.censoring,
    )
