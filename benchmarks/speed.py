"""Fit and predict times beside scikit-learn's forest and quantile-forest, in one run.

The same work for all: p 20 features, all tried at each split, 632 rows in 1000 a tree, leaves of
at least 20 rows, trees not honest, splits on the variance. Runs alternate between the
libraries; figures are medians, and the last column the ratio to ours.

Run: python benchmarks/speed.py [--repeats 3] [--jobs 2] [--large]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from cqrf import CensoredQuantileForest
from cqrf.datasets import make_aft

QUANTILES = [0.1, 0.5, 0.9]


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--large", action="store_true", help="also n 100 000 (minutes)")
    arguments = parser.parse_args()
    sizes = [(1_000, 1_000), (10_000, 200)] + ([(100_000, 100)] if arguments.large else [])
    print(f"{'n':>8} {'trees':>6}  {'what':<28} {'seconds':>8} {'spread':>15} {'times ours':>10}")
    for n, trees in sizes:
        compare(n, trees, arguments.repeats, arguments.jobs)


def compare(n: int, trees: int, repeats: int, jobs: int) -> None:
    train, test = make_aft(n, random_state=0), make_aft(1_000, random_state=1)
    time_seen = train.y["time"]
    common = {"n_estimators": trees, "min_samples_leaf": 20, "n_jobs": jobs, "random_state": 0}
    own = {"max_samples": 0.632, "honest": False, "min_child_fraction": 0.0, "min_samples_split": 2}
    ours = CensoredQuantileForest(criterion="variance", **own, **common)
    default = CensoredQuantileForest(n_estimators=trees, n_jobs=jobs, random_state=0)
    learn = RandomForestRegressor(max_samples=0.632, **common)
    fits = {
        "fit: cqrf, variance": lambda: ours.fit(train.X, train.y),
        "fit: scikit-learn": lambda: learn.fit(train.X, time_seen),
        "fit: cqrf, its defaults": lambda: default.fit(train.X, train.y),
    }
    predicts = {
        "predict: cqrf, variance": lambda: ours.predict(test.X, QUANTILES, unidentified="clip"),
        "predict: cqrf, its defaults": lambda: default.predict(
            test.X, QUANTILES, unidentified="clip"
        ),
    }
    try:
        from quantile_forest import RandomForestQuantileRegressor
    except ImportError:
        print("quantile-forest is not installed: pip install 'cqrf[bench]'")
    else:
        peer = RandomForestQuantileRegressor(max_samples=0.632, max_samples_leaf=None, **common)
        fits["fit: quantile-forest"] = lambda: peer.fit(train.X, time_seen)
        predicts["predict: quantile-forest"] = lambda: peer.predict(test.X, quantiles=QUANTILES)
    small = make_aft(200, random_state=2)
    for forest in (ours, default):  # warm-up: compile, or read the cache
        forest.fit(small.X, small.y).predict(small.X, QUANTILES, unidentified="clip")
    for works in (fits, predicts):
        measured: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(repeats):
            for name, work in works.items():
                measured[name].append(seconds(work))
        base = float(np.median(measured[next(iter(works))]))
        for name, runs in measured.items():
            middle, spread = float(np.median(runs)), f"{min(runs):.3f} - {max(runs):.3f}"
            print(
                f"{n:>8} {trees:>6}  {name:<28} {middle:>8.3f} {spread:>15} {middle / base:>10.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
