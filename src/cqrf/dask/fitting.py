"""Fitting: grow a forest on a cluster, as the client runs it.

After :mod:`cqrf.dask.preparing`, each batch of trees collects its rows and is grown
(``cqrf-draw``, ``cqrf-grow``). The trees come to the client, with the targets that predictions
need (``cqrf-keep``). With a working model, half of the trees are grown on residuals, whose range is
found first (``cqrf-residuals``), and some rows are fetched to choose the share of the root
(``cqrf-score``). If a worker dies, Dask computes its results again from the partitions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from distributed import Client, Future
from numpy.typing import NDArray

from cqrf._forest.layout import join_trees
from cqrf._forest.rows import Rows
from cqrf._forest.sampling import in_bag_bits, number_trees
from cqrf._forest.spec import Sampling
from cqrf._forest.training import concatenate_batches, scale_criterion
from cqrf._input.risk_sets import first_at_risk
from cqrf._input.target import rank_target
from cqrf._input.units import Units
from cqrf._model.fit import rows_to_score, set_root_share
from cqrf._model.fitted import Model
from cqrf._model.queries import Queries
from cqrf._model.residual import count_direct, residual_growing
from cqrf._model.settings import Settings, read_settings
from cqrf._model.share import can_have_root
from cqrf._runtime.progress import show_progress
from cqrf._survival.equation import BERAN
from cqrf._working_model.fit import CrossFit
from cqrf._working_model.transform import WorkingModel
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
    Preprocessing,
    Table,
    bin_partitions,
    compute_preprocessing,
    find_positive_rows,
    number_units,
    read_partitions,
)
from cqrf.dask.reading import (
    ReadingContext,
    TargetRows,
    concatenate_rows,
    take_all_rows,
    take_last_row,
)
from cqrf.dask.tasks import ClusterTasks
from cqrf.dask.working import (
    ResidualSummary,
    ScoredRows,
    concatenate_scored_rows,
    summarise_residuals,
    take_scored_rows,
)

# The model keeps the targets of all rows up to this many, or if its estimate of G or the share of
# the root needs all. Of a longer table it keeps only the rows that are in a leaf.
MAX_KEPT_ROWS = 20_000_000
# Share of the memory per worker thread that the rows of one batch may take: a few batches are
# submitted at a time, and sorting the rows needs a second copy.
BATCH_MEMORY_SHARE = 1 / 16
BATCHES_PER_THREAD = 4  # so that threads finish at about the same time
# There is one task per batch and partition; with more of them the scheduler becomes slow.
MAX_DRAW_TASKS = 20_000
BYTES_PER_ROW = 48  # of a subsample, without its codes


def fit_on_cluster(
    client: Client,
    partitions: list[Partition],
    settings: Settings,
    context: ReadingContext,
    verbose: bool,
) -> Model:
    """Fit the model of a table that lies on a cluster.

    The settings are read again once the causes of events are known.
    """
    with ClusterTasks(client) as tasks:
        table = read_partitions(tasks, partitions, settings, context)
        n_features = len(table.columns.kinds)
        settings = read_settings(context.estimator, n_features, settings.seed, table.causes)
        settings.solver.check_neighbors(table.n_rows)
        positive_rows = find_positive_rows(tasks, table)
        n_units, units = number_units(positive_rows)
        preprocessing = compute_preprocessing(tasks, table, positive_rows, units, settings)
        unit_name = "rows" if positive_rows[0].groups is None else "groups"
        sampling = settings.sample(
            Units(np.empty(0, np.int32), n_units, unit_name), preprocessing.working is not None
        )
        parts = bin_partitions(tasks, table, preprocessing, units)
        binned = BinnedTable(table, positive_rows, parts)
        working = fetch_working_model(preprocessing)
        has_root = working is not None and can_have_root(sampling)
        keep_all = has_root or table.n_rows <= MAX_KEPT_ROWS or settings.solver.method != BERAN
        specs = make_growth_specs(tasks, binned, settings, working, sampling)
        batches = grow_trees(
            tasks, binned, sampling, settings, specs, return_rows=not keep_all, verbose=verbose
        )
        if keep_all:
            kept = fetch_all_rows(tasks, binned.partitions)
        else:
            kept = concatenate_distinct_rows(
                [batch.leaf_rows for batch in batches if batch.leaf_rows is not None]
                + ([] if working is None else fetch_last_row(tasks, binned, settings.censoring))
            )
        scored = fetch_scored_rows(tasks, binned, kept) if has_root else None
        edges = preprocessing.edges.result()
    model = assemble_model(table, settings, sampling, edges, working, batches, kept)
    return model if scored is None else add_root_share(model, *scored)


def fetch_working_model(preprocessing: Preprocessing) -> WorkingModel | None:
    """The working model, without linear predictors of its own."""
    if preprocessing.working is None:
        return None
    fitted: CrossFit = preprocessing.working.result()
    return fitted.model


def grow_trees(
    tasks: ClusterTasks,
    binned: BinnedTable,
    sampling: Sampling,
    settings: Settings,
    specs: list[GrowthSpec],
    *,
    return_rows: bool,
    verbose: bool,
) -> list[GrownBatch]:
    """Grow all trees in batches, and return the batches in order; a spec for each kind of tree."""
    table = binned.table
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
    batches: list[tuple[TreeBatch, Future]] = []
    for numbers, spec in zip(number_kinds(settings.n_trees, len(specs)), specs, strict=True):
        shared, drawn = tasks.share(spec), unit_sampling._replace(honest=spec.honest)
        for first in range(0, len(numbers), size):
            batches.append((TreeBatch(drawn, numbers[first : first + size]), shared))

    def make_task(number: int) -> Any:
        batch, spec = batches[number]
        rows = [
            tasks.task("draw", (number, i), select_rows, partition, batch)
            for i, partition in enumerate(binned.partitions)
        ]
        return tasks.task("grow", number, grow_batch, rows, batch, spec, return_rows)

    results: Any = tasks.run_bounded(map(make_task, range(len(batches))), n_threads)
    if verbose:
        results = show_progress(results, len(batches), settings.n_trees)
    grown: dict[int, GrownBatch] = {key[1]: result for key, result in results}
    return [grown[number] for number in range(len(batches))]


def number_kinds(n_trees: int, n_kinds: int) -> list[tuple[int, ...]]:
    """Numbers of the direct trees and, if there are two kinds, of the residual trees."""
    numbers = tuple(number_trees(n_trees, n_kinds > 1).tolist())
    if n_kinds == 1:
        return [numbers]
    n_direct = count_direct(n_trees)
    return [numbers[:n_direct], numbers[n_direct:]]


def make_growth_specs(
    tasks: ClusterTasks,
    binned: BinnedTable,
    settings: Settings,
    working: WorkingModel | None,
    sampling: Sampling,
) -> list[GrowthSpec]:
    """How direct trees are grown and, with a working model, how residual trees are."""
    summaries = [part.summary for part in binned.table.parts]
    largest_time = max(
        max(abs(part.first_time), abs(part.last_time))
        for part in binned.positive_rows
        if part.n_rows
    )
    last_entry = max(summary.last_entry for summary in summaries)
    n_rows = sum(part.n_rows for part in binned.positive_rows)
    categorical = binned.table.columns.categorical
    growing = settings.growing
    direct_sampling = sampling
    if working is not None:
        direct_sampling, growing = settings.grow_direct(sampling, n_rows, len(categorical))
    direct = GrowthSpec(
        scale_criterion(growing, largest_time),
        categorical,
        settings.censoring,
        direct_sampling.honest,
        has_late_entry=last_entry >= min(summary.first_time for summary in summaries),
    )
    if working is None:
        return [direct]
    shared = tasks.share(working)
    residuals: list[ResidualSummary] = tasks.run(
        [
            tasks.task("residuals", i, summarise_residuals, part, shared, settings.censoring)
            for i, part in enumerate(binned.partitions)
        ]
    )
    last_entry = max(part.last_entry for part in residuals)
    growing = residual_growing(settings.growing, sampling.n_units)
    residual = direct._replace(
        growing=scale_criterion(growing, max(part.largest for part in residuals)),
        honest=sampling.honest,
        has_late_entry=last_entry >= min(part.first for part in residuals),
        working=working,
    )
    return [direct, residual]


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


def fetch_last_row(tasks: ClusterTasks, binned: BinnedTable, censoring: str) -> list[TargetRows]:
    """A row with the last time: up to there the baseline hazard of a working model is known."""
    summaries = [part.summary for part in binned.table.parts]
    last_times = [
        part.last_time if censoring == "right" else -part.first_time for part in summaries
    ]
    last = int(np.argmax(last_times))
    return tasks.run([tasks.task("keep", last, take_last_row, binned.partitions[last], censoring)])


def fetch_scored_rows(
    tasks: ClusterTasks, binned: BinnedTable, kept: TargetRows
) -> tuple[NDArray[np.intp], ScoredRows]:
    """Rows of the table that choose the share of the root, with their bins and units."""
    weight = np.ones(len(kept.row)) if kept.weight is None else kept.weight
    rows = rows_to_score(weight)
    ends = np.cumsum([part.summary.n_rows for part in binned.table.parts])
    pieces = np.split(rows, np.searchsorted(rows, ends[:-1]))
    starts = [0, *ends[:-1].tolist()]
    parts = tasks.run(
        [
            tasks.task("score", i, take_scored_rows, partition, piece - start)
            for i, (partition, piece, start) in enumerate(
                zip(binned.partitions, pieces, starts, strict=True)
            )
            if len(piece)
        ]
    )
    return rows, concatenate_scored_rows(parts)


def add_root_share(model: Model, rows: NDArray[np.intp], scored: ScoredRows) -> Model:
    """The model with the share of the root that these rows choose out of bag."""
    assert model.working is not None
    drawn = in_bag_bits(model.sampling, model.tree_numbers, model.seed)
    linear_predictor = model.working.linear_predictor[model.ranks[rows]]
    queries = Queries(scored.codes, drawn[scored.unit], linear_predictor=linear_predictor)
    return set_root_share(model, rows, queries)


def assemble_model(
    table: Table,
    settings: Settings,
    sampling: Sampling,
    edges: list[NDArray[np.float64]],
    working: WorkingModel | None,
    batches: list[GrownBatch],
    kept: TargetRows,
) -> Model:
    """The model from all trees and the targets that it keeps."""
    ranked, order = rank_target(kept.target.drop_single_cause(), settings.censoring)
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
        gains[: len(gains) if working is None else count_direct(settings.n_trees)].sum(axis=0),
    )
    if working is not None:
        assert kept.linear_predictor is not None
        working = working._replace(linear_predictor=kept.linear_predictor[order])
    rows = Rows(
        codes=np.empty((len(categorical), 0), np.uint8),
        categorical=categorical,
        time=ranked.time,
        event=ranked.event,
        weight=None if kept.weight is None else kept.weight[order],
        first_at_risk=first_at_risk(ranked),
        cause=ranked.cause,
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
        working=working,
        causes=ranked.causes,
    )
