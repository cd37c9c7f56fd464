"""A million rows against a forest of a hundred thousand: time, memory, and the model file.

Memory is what each step takes at most beyond what the process held before it, from /proc (Linux).

Run: python benchmarks/load.py [--trees 500]
"""

from __future__ import annotations

import argparse
import pickle
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cqrf import CensoredQuantileForest

N_TRAIN, N_QUERIES, N_FEATURES = 100_000, 1_000_000, 20
LEVELS = [0.1, 0.5, 0.9]


def memory(name: str) -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if name in line)


def measure(title: str, work: Callable[[], Any]) -> Any:
    """Do the work, print its seconds and the most memory it took, and return what it gave."""
    Path("/proc/self/clear_refs").write_text("5")
    before, began = memory("VmRSS"), time.perf_counter()
    result = work()
    seconds = time.perf_counter() - began
    print(f"| {title} | {seconds:.2f} | {(memory('VmHWM') - before) / 1e6:.0f} |", flush=True)
    return result


def make_table(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.random((n, N_FEATURES))
    time_of_event, time_of_censoring = rng.exponential(np.exp(X[:, 0])), rng.exponential(4, n)
    seen = np.minimum(time_of_event, time_of_censoring)
    return X, np.column_stack([seen, time_of_event <= time_of_censoring])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", type=int, default=500)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    forest = CensoredQuantileForest(n_estimators=3, random_state=0, n_jobs=2)
    forest.fit(*make_table(rng, 300)).predict(make_table(rng, 10)[0])
    X, y = make_table(rng, N_TRAIN)
    queries = make_table(rng, N_QUERIES)[0]
    forest.set_params(n_estimators=options.trees)
    told = forest.estimate_memory(N_TRAIN, N_FEATURES)
    print("| step | seconds | MB |\n|---|---|---|")
    print(f"| estimate_memory: fit, model | | {told.fit / 1e6:.0f}, {told.model / 1e6:.0f} |")
    measure("fit", lambda: forest.fit(X, y))
    measure("predict three quantiles", lambda: forest.predict(queries, LEVELS, unidentified="nan"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.cqrf"
        measure("save", lambda: forest.save(path))
        measure("load", lambda: CensoredQuantileForest.load(path))
        size, pickled = path.stat().st_size, len(pickle.dumps(forest))
        print(f"| model file, pickle | | {size / 1e6:.0f}, {pickled / 1e6:.0f} |")


if __name__ == "__main__":
    main()
