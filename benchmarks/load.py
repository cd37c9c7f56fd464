"""Predict a million rows with a forest fitted to 100 000: time, memory and model size.

Memory is the peak of each step minus the memory before it, from /proc (Linux).

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
    """Run a step, print its seconds and peak memory, and return its result."""
    Path("/proc/self/clear_refs").write_text("5")
    before, began = memory("VmRSS"), time.perf_counter()
    result = work()
    seconds = time.perf_counter() - began
    print(f"| {title} | {seconds:.2f} | {(memory('VmHWM') - before) / 1e6:.0f} |", flush=True)
    return result


def make_table(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.random((n, N_FEATURES))
    latent, censoring = rng.exponential(np.exp(X[:, 0])), rng.exponential(4, n)
    return X, np.column_stack([np.minimum(latent, censoring), latent <= censoring])


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
    estimate = forest.estimate_memory(N_TRAIN, N_FEATURES)
    print("| step | seconds | MB |\n|---|---|---|")
    print(
        f"| estimate_memory: fit, model | | {estimate.fit / 1e6:.0f}, {estimate.model / 1e6:.0f} |"
    )
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
