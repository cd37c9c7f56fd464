"""Times of this working tree and of an earlier revision, alternating in one run.

The earlier revision is checked out into a temporary folder. Each round runs both in separate
processes with a warm compile cache. Reported is the median over rounds of the ratio now / before:
above 1 is slower than before.

Run: python benchmarks/before_after.py REVISION [--rounds 9]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]

WORK = """
import json, time
import numpy as np
from cqrf import CensoredQuantileForest

def data(n):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 2, (n, 20))
    latent, censoring = np.exp(X[:, 0] + 0.3 * rng.normal(size=n)), rng.exponential(12.5, n)
    return X, np.column_stack([np.minimum(latent, censoring), latent <= censoring])

def settings(criterion):
    nodes = dict(min_samples_leaf=5, min_samples_split=11)
    return dict(criterion=criterion, max_samples=0.5, random_state=0, **nodes)

times = {}
for n, trees in ((1000, 300), (20000, 20)):
    X, y = data(n)
    for criterion in ("censored_quantile", "variance"):
        forest = CensoredQuantileForest(n_estimators=trees, n_jobs=2, **settings(criterion))
        forest.fit(X[:200], y[:200]).predict(X[:50], [0.1, 0.5])
        runs = {"fit": [], "predict": []}
        for _ in range(3):
            began = time.perf_counter()
            forest.fit(X, y)
            fitted = time.perf_counter()
            forest.predict(X[:1000], [0.1, 0.5])
            runs["fit"].append(fitted - began)
            runs["predict"].append(time.perf_counter() - fitted)
        for step, seconds in runs.items():
            times[f"{step} {criterion} n={n}"] = min(seconds)
print(json.dumps(times))
"""


def time_source(source: Path, cache: Path) -> dict[str, float]:
    """Run WORK with the package at ``source``; seconds by step."""
    environment = {**os.environ, "PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", WORK], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revision")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(before), arguments.revision], check=True)
        try:
            sources = {"before": before / "src", "now": ROOT / "src"}
            rounds: list[dict[str, dict[str, float]]] = []
            for number in range(arguments.rounds + 1):
                times = {
                    name: time_source(source, Path(folder) / f"cache-{name}")
                    for name, source in sources.items()
                }
                if number > 0:  # the first round compiles
                    rounds.append(times)
        finally:
            subprocess.run([*git, "remove", "--force", str(before)], check=True)
    print(f"{'':<34} {'before':>8} {'now':>8} {'ratio':>7}")
    for step in rounds[0]["now"]:
        ratio = np.median([times["now"][step] / times["before"][step] for times in rounds])
        medians = [np.median([times[name][step] for times in rounds]) for name in sources]
        print(f"{step:<34} {medians[0]:>8.3f} {medians[1]:>8.3f} {ratio:>7.3f}")


if __name__ == "__main__":
    main()
