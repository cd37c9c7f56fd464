"""Measurements of our forest alone that the goals need: scaling, memory, first use."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from benchmarks.peers.libraries import NOT_HONEST, Library, python_command
from benchmarks.peers.process import Worker, WorkerError

P = 20
ROUNDS = 3
THREAD_ROUNDS = 9  # a fit takes half a second, and the speed of the machine varies

IMPORT = """
import time
began = time.perf_counter()
{statement}
print(time.perf_counter() - began)
"""
FIRST_USE = """
import time, warnings
from cqrf import CensoredQuantileForest
from cqrf.datasets import make_aft
warnings.simplefilter("ignore")
table = make_aft(200, random_state=0)
began = time.perf_counter()
CensoredQuantileForest(random_state=0).fit(table.X, table.y).predict(table.X, [0.5])
print(time.perf_counter() - began)
"""


class OwnFigures:
    def __init__(self, tables: Path, shrink: int, log: Callable[[str], None]) -> None:
        self.tables, self.shrink, self.log = tables, shrink, log

    def measure(self, libraries: Sequence[Library], *, quick: bool) -> dict[str, float]:
        kinds = [self.first_use, self.gain_of_threads]
        if not quick:
            kinds += [self.growth_of_fit, self.growth_of_predict, self.million_rows]
            kinds += [partial(self.model_size_ratio, libraries)]
        figures: dict[str, float] = {}
        for measure_kind in kinds:
            try:
                figures.update(measure_kind())
            except (WorkerError, subprocess.CalledProcessError) as problem:
                self.log(f"skipped: {problem}")
        return figures

    def first_use(self) -> dict[str, float]:
        """Seconds to import, and to fit and predict with an empty compile cache."""
        self.log("measuring first use ...")
        return {
            "import": time_import("import cqrf"),
            "import forest": time_import("from cqrf import CensoredQuantileForest"),
            "compile": median(time_first_use() for _ in range(ROUNDS)),
        }

    def gain_of_threads(self) -> dict[str, float]:
        """Time with one thread over time with two."""
        self.log("measuring one thread and two ...")
        gains = {}
        for n, trees in ((10_000, 200), (100_000, 50)):
            with ExitStack() as stack:
                workers = [stack.enter_context(self._ours("variance", threads=k)) for k in (1, 2)]
                for worker in workers:
                    worker.load(self._rows(n), P)
                fits = [
                    [worker.fit(self._less(trees)) for worker in workers]
                    for _ in range(THREAD_ROUNDS)
                ]
            one, two = np.median(fits, axis=0)
            gains[f"gain of two threads, n {n}"] = one / two
        return gains

    def growth_of_fit(self) -> dict[str, float]:
        """Slope of log fit time on log n, for 10 trees with subsamples of 0.632 n."""
        self.log("measuring how fit time grows with n ...")
        sizes = [self._rows(n) for n in (10_000, 30_000, 100_000, 300_000, 1_000_000)]
        slopes = {}
        for criterion in ("variance", "censored_quantile"):
            rounds: list[list[float]] = []
            with self._ours(criterion) as worker:
                for _ in range(ROUNDS):
                    rounds.append([])
                    for n in sizes:
                        worker.load(n, P)
                        rounds[-1].append(worker.fit(10))
            seconds = np.median(rounds, axis=0)
            slopes[f"exponent, {criterion}"] = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        return slopes

    def growth_of_predict(self) -> dict[str, float]:
        """Time per query row at n 1e6 over that at 1e5.

        Both have 100 trees of 10 000 rows each, so a query has the same number of neighbours.
        Other settings are the defaults.
        """
        self.log("measuring how predict time grows with n ...")
        with ExitStack() as stack:
            workers = []
            for n in (100_000, 1_000_000):
                worker = stack.enter_context(self._default(self._rows(10_000)))
                worker.load(self._rows(n), P, n_queries=10_000)
                worker.fit(100)
                worker.predict()
                workers.append(worker)
            rounds = [[worker.predict() for worker in workers] for _ in range(5)]
        small, large = np.median(rounds, axis=0)
        return {"predict growth": large / small}

    def million_rows(self) -> dict[str, float]:
        """Memory of 100 trees and time of 500 trees of 100 000 rows each, for a million rows.

        Memory is the peak of the fit beyond the caller's float64 table, as a multiple of the size
        of the table in float32. Other settings are the defaults.
        """
        self.log("measuring a million rows ...")
        n = self._rows(1_000_000)
        with self._default(self._rows(100_000)) as worker:
            worker.load(n, P)
            memory = worker.fit_with_memory(self._less(100))[1]
            figures = {"million rows": worker.fit(self._less(500))}
        if memory is not None:
            figures["memory"] = memory / (4 * n * P)
        return figures

    def model_size_ratio(self, libraries: Sequence[Library]) -> dict[str, float]:
        """Size of our model over quantile-forest's pickle: n 1e5, 500 trees, equal leaves.

        The pickle grows linearly in the number of trees: it is measured at 10 and 20 trees.
        """
        peers = [library for library in libraries if library.name == "quantile-forest"]
        if not peers:
            return {}
        self.log("measuring model files ...")
        n, trees = self._rows(100_000), self._less(500)
        with self._ours("variance") as worker:
            worker.load(n, P)
            worker.fit(trees)
            size = worker.measure_model()
        with Worker(peers[0].command, self.tables) as worker:
            worker.load(n, P)
            worker.fit(10)
            small = worker.measure_model()
            worker.fit(20)
            large = worker.measure_model()
        if size is None or small is None or large is None:
            return {}
        return {"model": size / (small + (trees - 10) * (large - small) / 10)}

    def _ours(self, criterion: str, threads: int = 2) -> Worker:
        return self._warm(python_command("Cqrf", criterion=criterion, **NOT_HONEST), threads)

    def _default(self, rows_per_tree: int) -> Worker:
        return self._warm(python_command("Cqrf", rows_per_tree=rows_per_tree), 2)

    def _warm(self, command: list[str], threads: int) -> Worker:
        worker = Worker(command, self.tables, threads)
        try:
            worker.warm_up()
        except WorkerError:
            worker.end()
            raise
        return worker

    def _less(self, trees: int) -> int:
        return max(2, trees // self.shrink)

    def _rows(self, n: int) -> int:
        return max(100, n // self.shrink)


def time_import(statement: str) -> float:
    return median(run_timed(IMPORT.format(statement=statement)) for _ in range(5))


def time_first_use() -> float:
    with tempfile.TemporaryDirectory() as folder:
        return run_timed(FIRST_USE, NUMBA_CACHE_DIR=folder)


def run_timed(code: str, **environment: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)
