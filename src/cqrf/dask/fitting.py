"""Fitting: a forest from a table on a cluster, as the client sees it.

After what :mod:`cqrf.dask.preparing` does, batch by batch, the rows of some trees meet and become
these (``cqrf-draw``, ``cqrf-grow``). The trees come to the client, and with them the targets that
predictions need (``cqrf-keep``). Whatever a worker that dies has held is computed again by Dask,
from the partitions themselves.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from distributed import Client, Future
from numpy.typing import NDArray

from cqrf._forest.layout import join_trees
from cqrf._forest.rows import Rows
from cqrf._forest.spec import Sampling, Trees
from cqrf._forest.training import scale_criterion
from cqrf._input.risk_sets import first_at_risk
from cqrf._input.target import rank_target
from cqrf._input.units import Units
from cqrf._model.fitted import Model
from cqrf._model.settings import Settings
from cqrf._runtime.progress import show_progress
from cqrf._survival.equation import BERAN
from cqrf._survival.quantiles import QuantileSolver
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
from cqrf.dask.preparing import (
    Table,
    bin_partitions,
    count_rows,
    find_edges,
    number_units,
    read_partitions,
)
from cqrf.dask.reading import Counted, Guide, Kept, join_kept, keep_part

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


def fit_on_cluster(
    client: Client,
    partitions: Partitions,
    plan: Settings,
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
        sampling = plan.sample(Units(np.empty(0, np.int32), n_units, unit))
        binned = bin_partitions(errands, table, edges, units)
        keep_all = table.n_rows <= MOST_KEPT_ROWS or solver.method != BERAN
        batches = grow_trees(errands, table, counted, binned, sampling, plan, not keep_all, verbose)
        kept = keep_rows(errands, counted, binned, batches, plan.censoring, keep_all)
        found_edges = edges.result()
    return join_model(table, plan, sampling, found_edges, batches, kept)


def grow_trees(
    errands: Errands,
    table: Table,
    counted: list[Counted],
    binned: list[Future],
    sampling: Sampling,
    plan: Settings,
    bring_rows: bool,
    verbose: bool,
) -> list[Grown]:
    """All trees, in batches, in their order."""
    summaries = [part.summary for part in table.parts]
    furthest = max(max(abs(p.first_time), abs(p.last_time)) for p in counted if p.n_rows)
    ground = Ground(
        scale_criterion(plan.growing, furthest),
        table.columns.categorical,
        plan.censoring,
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
    counted: list[Counted],
    binned: list[Future],
    batches: list[Grown],
    censoring: str,
    keep_all: bool,
) -> Kept:
    """Rows that predictions need: all, or those in leaves and the last one that counts."""

    def last(part: Counted) -> float:
        return part.last_time if censoring == "right" else -part.first_time

    if keep_all:
        wanted = list(range(len(binned)))
    else:
        wanted = [int(np.argmax([last(part) for part in counted]))]
    kept: list[Kept] = errands.run(
        [errands.task("keep", i, keep_part, binned[i], not keep_all, censoring) for i in wanted]
    )
    in_leaves = [batch.leaf_rows for batch in batches if batch.leaf_rows is not None]
    return join_kept(kept) if keep_all else join_distinct(kept + in_leaves)


def join_model(
    table: Table,
    plan: Settings,
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
