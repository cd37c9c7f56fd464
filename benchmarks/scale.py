"""Measure the forest on Dask for several n, and extrapolate to a large cluster.

``python benchmarks/scale.py`` takes some minutes and prints the tables of
``docs/background/scale.md``; ``--quick`` stops at a million rows.
"""

from __future__ import annotations

import argparse
import os
import pickle
import resource
import time
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from cqrf.dask import DaskCensoredQuantileForest, fitting
from cqrf.dask.predicting import PIECE_BYTES

N_COLUMNS = 20
N_TREES = 16
ROWS_PER_TREE = 100_000
MEMORY_LIMIT = 1_200_000_000  # of a worker; the table of 1e7 rows takes 1.6 GB
ROWS_PER_BLOCK = 250_000
QUERIES = 20_000
# The large cluster and forest of the extrapolation.
FAR_ROWS, FAR_WORKERS, FAR_TREES, FAR_ROWS_PER_BLOCK = 10**9, 1000, 500, 10**6
NETWORK = 1e9  # bytes a second, of one machine: 10 Gbit/s


class Run(NamedTuple):
    """Time, memory and network traffic of one fit."""

    n: int
    workers: int
    prepare: float
    """Seconds until all rows are binned."""
    prepare_work: float
    """The same in CPU seconds of all workers, which exclude other processes of the machine."""
    grow: float
    """Seconds to grow all trees."""
    grow_work: float
    moved: int
    """Bytes sent by workers: rows of trees, trees, and targets for the client."""
    peak: int
    """Peak memory of the largest worker."""
    model: int
    """Bytes of the pickled forest, without the targets of the training rows."""
    predict: float
    """CPU seconds per query."""


def make_block(columns: bool, block_info: Any = None) -> np.ndarray:
    """A block of the table or of its target, generated whenever it is read."""
    first, end = block_info[None]["array-location"][0]
    rng = np.random.default_rng(first)
    X = rng.normal(size=(end - first, N_COLUMNS))
    if columns:
        return X
    latent = rng.exponential(np.exp(X[:, 0] + X[:, 1] * X[:, 2]))
    censored = rng.exponential(3.0, len(X))
    return np.column_stack([np.minimum(latent, censored), latent <= censored])


def make_table(n: int) -> tuple[da.Array, da.Array]:
    """X and y as lazy arrays, which are not held in memory."""
    size = min(ROWS_PER_BLOCK, n // 4)
    rows = (size,) * (n // size)
    return tuple(
        da.map_blocks(
            make_block, columns, chunks=(rows, (width,)), dtype=float, meta=np.empty((0, 0))
        )
        for columns, width in ((True, N_COLUMNS), (False, 2))
    )


def measure(n: int, n_workers: int) -> Run:
    """Fit on a new cluster of single-threaded processes."""
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            memory_limit=MEMORY_LIMIT,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):
        forest = DaskCensoredQuantileForest(
            n_estimators=N_TREES, max_samples=ROWS_PER_TREE // 2, random_state=0
        )
        forest.set_params(n_estimators=2 * n_workers).fit(*make_table(100_000))  # loads the kernels
        forest.set_params(n_estimators=N_TREES, max_samples=ROWS_PER_TREE)
        before = moved_bytes(client)
        X, y = make_table(n)
        grow_trees, clocks = fitting.grow_trees, []

        def timed(tasks: Any, binned: Any, *args: Any, **settings: Any) -> Any:
            client.gather(client.map(type, binned.partitions))  # waits until all are binned
            clocks.append(read_clocks(client))
            trees = grow_trees(tasks, binned, *args, **settings)
            clocks.append(read_clocks(client))
            return trees

        fitting.grow_trees = timed
        clocks.append(read_clocks(client))
        forest.fit(X, y)
        fitting.grow_trees = grow_trees
        (prepare, prepare_work), (grow, grow_work) = np.diff(clocks, axis=0)
        moved = moved_bytes(client) - before
        peak = max(
            client.run(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024).values()
        )
        queries = da.concatenate([X[: QUERIES // 2], X[-QUERIES // 2 :]]).rechunk(
            (QUERIES // 4, -1)
        )
        lazy = forest.predict(queries.persist(), [0.25, 0.5, 0.75], unidentified="clip")
        lazy[:1].compute()
        _, before_predict = read_clocks(client)
        lazy.compute()
        predict = (read_clocks(client)[1] - before_predict) / QUERIES
        model = len(pickle.dumps(forest.model_.forest))
        return Run(
            n, n_workers, prepare, prepare_work, grow, grow_work, moved, peak, model, predict
        )


def read_clocks(client: Client) -> tuple[float, float]:
    """Wall-clock seconds, and CPU seconds of all workers together."""
    return time.perf_counter(), sum(client.run(time.process_time).values())


def moved_bytes(client: Client) -> int:
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def measure_task_cost(n_tasks: int = 4000) -> float:
    """CPU seconds of client and scheduler per empty task."""
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.gather(client.map(abs, range(100)))
        began = time.process_time()
        client.gather(client.submit(sum, client.map(abs, range(-n_tasks, 0))))
        return (time.process_time() - began) / n_tasks


def print_runs(runs: list[Run]) -> None:
    titles = ("rows", "table", "workers", "prepare", "a tree", "moved", "largest worker", "a query")
    print("| " + " | ".join(titles) + " |")
    print("|---" * len(titles) + "|")
    for run in runs:
        print(
            f"| {run.n:.0e} | {run.n * N_COLUMNS * 8 / 1e6:,.0f} MB | {run.workers} "
            f"| {run.prepare:.1f} s ({run.prepare_work:.1f} s) "
            f"| {run.grow / N_TREES:.2f} s ({run.grow_work / N_TREES:.2f} s) "
            f"| {run.moved / 1e6:,.0f} MB | {run.peak / 1e6:,.0f} MB "
            f"| {run.predict * 1e6:.0f} µs |"
        )


class CostModel(NamedTuple):
    """Cost of each stage, in seconds and bytes."""

    fixed: float
    per_value: float
    largest_error: float
    tree: float
    row_bytes: int
    moved_row: float
    model: float
    query: float
    task: float


def fit_cost_model(runs: list[Run], task_cost: float) -> CostModel:
    """Cost model of each stage from the measured runs."""
    work = np.array([run.n * N_COLUMNS for run in runs])
    A = np.column_stack([np.ones(len(runs)), work])
    prepare = np.array([run.prepare_work for run in runs])
    # Least squares on relative errors; otherwise the largest run would dominate.
    (fixed, per_value), *_ = np.linalg.lstsq(A / prepare[:, None], np.ones(len(runs)), rcond=None)
    large = [run for run in runs if run.n >= 2 * ROWS_PER_TREE]
    return CostModel(
        fixed=fixed,
        per_value=per_value,
        largest_error=np.abs(A @ (fixed, per_value) / prepare - 1).max(),
        tree=float(np.mean([run.grow_work / N_TREES for run in large])),
        row_bytes=N_COLUMNS + 8 + 1 + 8 + 4,
        moved_row=max(run.moved / run.n for run in runs if run.n == max(run.n for run in runs)),
        model=float(np.mean([run.model / N_TREES for run in large])),
        query=float(np.mean([run.predict / N_TREES for run in large])),
        task=task_cost,
    )


def print_cost_model(cost: CostModel) -> None:
    print(
        f"\nprepare   {cost.fixed:.1f} s + {cost.per_value * 1e9:.0f} ns a value "
        f"(off by at most {cost.largest_error:.0%})"
    )
    print(f"moved     {cost.moved_row:.0f} bytes a row: targets, and partitions that Dask copied")
    print(f"a tree    {cost.tree:.2f} s; {ROWS_PER_TREE * cost.row_bytes / 1e6:.1f} MB moved")
    print(f"model     {cost.model / 1e6:.2f} MB a tree of {ROWS_PER_TREE:,} rows")
    print(f"a query   {cost.query * 1e6:.1f} µs a tree")
    print(f"a task    {cost.task * 1e3:.2f} ms of client and scheduler")


def print_extrapolation(cost: CostModel) -> None:
    """Cost of the large forest on the large cluster."""
    blocks = FAR_ROWS // FAR_ROWS_PER_BLOCK
    batch = -(-FAR_TREES * blocks // fitting.MAX_DRAW_TASKS)
    batches = -(-FAR_TREES // batch)
    tasks = 5 * blocks + batches * (blocks + 1)
    binned = FAR_ROWS * (N_COLUMNS + 8 + 1 + 8)
    moved = FAR_ROWS * cost.moved_row + FAR_TREES * ROWS_PER_TREE * cost.row_bytes
    table_gb = FAR_ROWS * N_COLUMNS * 8 / 1e9
    prepare = cost.fixed + cost.per_value * FAR_ROWS * N_COLUMNS / FAR_WORKERS
    pieces = -(-int(cost.model * FAR_TREES) // PIECE_BYTES)
    lines = {
        "table": f"{table_gb:.0f} GB, {table_gb / FAR_WORKERS:.2f} GB a worker",
        "in bytes, with targets": f"{binned / 1e9:.0f} GB, "
        f"{binned / 1e6 / FAR_WORKERS:.0f} MB a worker",
        "prepare": f"{prepare:.1f} s",
        "grow": f"{cost.tree * batch:.1f} s: {batches} batches of {batch} trees",
        "tasks": f"{tasks:,}: {tasks * cost.task:,.0f} s of client and scheduler",
        "moved": f"{moved / 1e9:.1f} GB, "
        f"{moved / FAR_WORKERS / NETWORK:.2f} s of each machine's network",
        "model": f"{cost.model * FAR_TREES / 1e6:,.0f} MB of trees, in {pieces} pieces to the "
        "scheduler",
        "predict all rows": f"{cost.query * FAR_TREES * FAR_ROWS / FAR_WORKERS:,.0f} s",
    }
    print(
        f"\n{FAR_ROWS:.0e} rows of {N_COLUMNS} columns, {FAR_WORKERS} workers, {FAR_TREES} trees, "
        f"{blocks} partitions:\n\n| | |\n|---|---|"
    )
    for name, text in lines.items():
        print(f"| {name} | {text} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="stop at a million rows")
    sizes = (10**5, 10**6) if parser.parse_args().quick else (10**5, 10**6, 10**7)
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {N_TREES} trees on "
        f"{ROWS_PER_TREE:,} rows, {MEMORY_LIMIT / 1e6:,.0f} MB a worker\n"
    )
    runs = [measure(n, workers) for n in sizes for workers in (1, 2)]
    print_runs(runs)
    cost = fit_cost_model(runs, measure_task_cost())
    print_cost_model(cost)
    print_extrapolation(cost)


if __name__ == "__main__":
    main()
