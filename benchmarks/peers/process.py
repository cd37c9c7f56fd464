"""A forest in its own process, controlled through a pipe."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from benchmarks.peers.tables import N_QUERIES, write_tables

ROOT = Path(__file__).resolve().parents[2]
WARM_UP_ROWS, WARM_UP_TREES = 200, 5


class WorkerError(Exception):
    """The process failed, or took too long and was stopped."""


class Worker:
    """One forest; commands run one at a time and return the seconds they took."""

    def __init__(self, command: Sequence[str], tables: Path, threads: int = 2) -> None:
        self.tables, self.threads = tables, threads
        self.log = tables / f"{time.monotonic_ns()}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=ROOT,
                env={**os.environ, "NUMBA_CACHE_DIR": str(tables / "numba")},
            )

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def warm_up(self) -> None:
        self.load(WARM_UP_ROWS, 20)
        self.fit(WARM_UP_TREES)
        self.predict()

    def load(self, n: int, p: int, n_queries: int = N_QUERIES) -> None:
        self._send("load", write_tables(self.tables, n, p, n_queries), n, p, n_queries)

    def fit(self, trees: int, limit: float | None = None) -> float:
        return self._send("fit", trees, self.threads, limit=limit)

    def fit_with_memory(self, trees: int, limit: float | None = None) -> tuple[float, int | None]:
        """Seconds of the fit, and its peak memory minus the memory before, in bytes."""
        before = self._reset_peak_memory()
        seconds = self.fit(trees, limit)
        return seconds, None if before is None else self._read_memory("VmHWM") - before

    def predict(self) -> float:
        return self._send("predict")

    def measure_model(self) -> int | None:
        """Bytes of the saved model, or None if the library cannot save one."""
        path = self.tables / "model"
        path.unlink(missing_ok=True)
        try:
            self._send("save", path)
            return path.stat().st_size
        except WorkerError:
            return None
        finally:
            path.unlink(missing_ok=True)

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _send(self, *words: object, limit: float | None = None) -> float:
        assert self.process.stdin
        assert self.process.stdout
        try:
            print(*words, sep="\t", file=self.process.stdin, flush=True)
        except BrokenPipeError:
            raise WorkerError(self._last_log_line()) from None
        if not select.select([self.process.stdout], [], [], limit)[0]:
            self.process.kill()
            raise WorkerError(f"{words[0]} was stopped after {limit:.0f} s")
        verdict, _, rest = self.process.stdout.readline().rstrip("\n").partition(" ")
        if verdict != "ok":
            raise WorkerError(rest or self._last_log_line())
        return float(rest)

    def _last_log_line(self) -> str:
        return (self.log.read_text().strip().splitlines() or ["it died without a message"])[-1]

    def _reset_peak_memory(self) -> int | None:
        try:
            Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        except OSError:  # not Linux, or not allowed
            return None
        return self._read_memory("VmRSS")

    def _read_memory(self, name: str) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(name))
