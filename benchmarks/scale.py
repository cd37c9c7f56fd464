"""Measure the forest on Dask at growing n, and carry what was measured to clusters we do not have.

``python benchmarks/scale.py`` takes some minutes and prints the tables of ``docs/scale.md``;
``--quick`` stops at a million rows.
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
# The cluster and the forest that the model is carried to.
FAR_ROWS, FAR_WORKERS, FAR_TREES, FAR_ROWS_PER_BLOCK = 10**9, 1000, 500, 10**6
NETWORK = 1e9  # bytes a second, of one machine: 10 Gbit/s


class Run(NamedTuple):
    """What one fit cost."""

    n: int
    workers: int
    prepare: float
    """Seconds until all rows are bytes."""
    prepare_work: float
    """The same in seconds of the workers' processors, which do not count what else is running."""
    grow: float
    """Seconds until all trees are there."""
    grow_work: float
    moved: int
    """Bytes that left a worker: rows of trees, trees, and targets for the client."""
    peak: int
    """Memory of the largest worker."""
    model: int
    """Bytes of the pickled forest, without the targets of the training rows."""
    predict: float
    """Seconds of a processor a query."""


def make_block(columns: bool, block_info: Any = None) -> np.ndarray:
    """A block of the table, or of its target, made where and whenever it is read."""
    first, end = block_info[None]["array-location"][0]
    rng = np.random.default_rng(first)
    X = rng.normal(size=(end - first, N_COLUMNS))
    if columns:
        return X
    latent = rng.exponential(np.exp(X[:, 0] + X[:, 1] * X[:, 2]))
    censored = rng.exponential(3.0, len(X))
    return np.column_stack([np.minimum(latent, censored), latent <= censored])


def lay_out(n: int) -> tuple[da.Array, da.Array]:
    """X and y that nobody holds."""
    size = min(ROWS_PER_BLOCK, n // 4)
    rows = (size,) * (n // size)
    return tuple(
        da.map_blocks(
            make_block, columns, chunks=(rows, (width,)), dtype=float, meta=np.empty((0, 0))
        )
        for columns, width in ((True, N_COLUMNS), (False, 2))
    )


def measure(n: int, n_workers: int) -> Run:
    """Fit on a fresh cluster of processes of one thread each."""
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
        forest.set_params(n_estimators=2 * n_workers).fit(*lay_out(100_000))  # loads the kernels
        forest.set_params(n_estimators=N_TREES, max_samples=ROWS_PER_TREE)
        before = moved_bytes(client)
        X, y = lay_out(n)
        grow_trees, clocks = fitting.grow_trees, []

        def timed(errands: Any, table: Any, binned: Any, *rest: Any) -> Any:
            client.gather(client.map(type, binned))  # all are there
            clocks.append(read_clocks(client))
            trees = grow_trees(errands, table, binned, *rest)
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
        _, asked = read_clocks(client)
        lazy.compute()
        predict = (read_clocks(client)[1] - asked) / QUERIES
        model = len(pickle.dumps(forest.model_.forest))
        return Run(
            n, n_workers, prepare, prepare_work, grow, grow_work, moved, peak, model, predict
        )


def read_clocks(client: Client) -> tuple[float, float]:
    """Seconds by the clock, and of the workers' processors together."""
    return time.perf_counter(), sum(client.run(time.process_time).values())


def moved_bytes(client: Client) -> int:
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def measure_task_cost(n_tasks: int = 4000) -> float:
    """Seconds of a processor that client and scheduler take for one task that does nothing."""
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


def print_model(runs: list[Run], task_cost: float) -> None:
    """The cost of each stage by what it grows with, and what that makes of a far cluster."""
    work = np.array([run.n * N_COLUMNS for run in runs])
    A = np.column_stack([np.ones(len(runs)), work])
    prepare = np.array([run.prepare_work for run in runs])
    # Relative errors count, or the largest run would be all that is seen.
    (fixed, per_value), *_ = np.linalg.lstsq(A / prepare[:, None], np.ones(len(runs)), rcond=None)
    off = np.abs(A @ (fixed, per_value) / prepare - 1).max()
    large = [run for run in runs if run.n >= 2 * ROWS_PER_TREE]
    tree = float(np.mean([run.grow_work / N_TREES for run in large]))
    row_bytes = N_COLUMNS + 8 + 1 + 8 + 4
    model = float(np.mean([run.model / N_TREES for run in large]))
    query = float(np.mean([run.predict / N_TREES for run in large]))
    moved_row = max(run.moved / run.n for run in runs if run.n == max(run.n for run in runs))
    print(
        f"\nprepare   {fixed:.1f} s + {per_value * 1e9:.0f} ns a value (off by at most {off:.0%})"
    )
    print(f"moved     {moved_row:.0f} bytes a row: targets, and partitions that Dask copied")
    print(f"a tree    {tree:.2f} s; {ROWS_PER_TREE * row_bytes / 1e6:.1f} MB moved")
    print(f"model     {model / 1e6:.2f} MB a tree of {ROWS_PER_TREE:,} rows")
    print(f"a query   {query * 1e6:.1f} µs a tree")
    print(f"a task    {task_cost * 1e3:.2f} ms of client and scheduler")

    blocks = FAR_ROWS // FAR_ROWS_PER_BLOCK
    batch = -(-FAR_TREES * blocks // fitting.MOST_DRAW_TASKS)
    batches = -(-FAR_TREES // batch)
    tasks = 5 * blocks + batches * (blocks + 1)
    binned = FAR_ROWS * (N_COLUMNS + 8 + 1 + 8)
    moved = FAR_ROWS * moved_row + FAR_TREES * ROWS_PER_TREE * row_bytes
    print(
        f"\n{FAR_ROWS:.0e} rows of {N_COLUMNS} columns, {FAR_WORKERS} workers, {FAR_TREES} trees, "
        f"{blocks} partitions:\n"
    )
    print("| | |")
    print("|---|---|")
    print(
        f"| table | {FAR_ROWS * N_COLUMNS * 8 / 1e9:.0f} GB, "
        f"{FAR_ROWS * N_COLUMNS * 8 / 1e9 / FAR_WORKERS:.2f} GB a worker |"
    )
    print(
        f"| in bytes, with targets | {binned / 1e9:.0f} GB, "
        f"{binned / 1e6 / FAR_WORKERS:.0f} MB a worker |"
    )
    print(f"| prepare | {fixed + per_value * FAR_ROWS * N_COLUMNS / FAR_WORKERS:.1f} s |")
    print(f"| grow | {tree * batch:.1f} s: {batches} batches of {batch} trees |")
    print(f"| tasks | {tasks:,}: {tasks * task_cost:,.0f} s of client and scheduler |")
    print(
        f"| moved | {moved / 1e9:.1f} GB, "
        f"{moved / FAR_WORKERS / NETWORK:.2f} s of each machine's network |"
    )
    print(
        f"| model | {model * FAR_TREES / 1e6:,.0f} MB of trees, in "
        f"{-(-int(model * FAR_TREES) // PIECE_BYTES)} pieces to the scheduler |"
    )
    print(f"| predict all rows | {query * FAR_TREES * FAR_ROWS / FAR_WORKERS:,.0f} s |")


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
    print_model(runs, measure_task_cost())


if __name__ == "__main__":
    main()
