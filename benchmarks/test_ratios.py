"""Performance regression tests: our time against scikit-learn's, alternating in one run.

Seconds depend on the machine and its load; ratios hardly do. Each test fails if its ratio falls
below about half of its present value. Run: make ratios
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import pytest
from sklearn.ensemble import RandomForestRegressor

from cqrf import CensoredQuantileForest
from cqrf.datasets import make_aft

ROUNDS = 5
QUANTILES = [0.1, 0.5, 0.9]
EQUAL_WORK = {
    "criterion": "variance",
    "max_samples": 0.632,  # share of distinct rows in a bootstrap sample
    "honest": False,
    "min_child_fraction": 0.0,
    "min_samples_split": 2,
}


def forests(n_estimators: int, **ours: Any) -> tuple[Any, Any]:
    common = {"n_estimators": n_estimators, "min_samples_leaf": 20, "n_jobs": 2, "random_state": 0}
    return CensoredQuantileForest(**ours, **common), RandomForestRegressor(**common)


def check_ratio(
    benchmark: Any, ours: Callable[[], object], theirs: Callable[[], object], floor: float
) -> None:
    ours()  # compiles, or reads the cache
    their_seconds = []

    def time_scikit_learn() -> None:
        began = time.perf_counter()
        theirs()
        their_seconds.append(time.perf_counter() - began)

    benchmark.pedantic(ours, setup=time_scikit_learn, rounds=ROUNDS)
    ratio = median(their_seconds) / benchmark.stats.stats.median
    benchmark.extra_info["times as fast as scikit-learn"] = ratio
    print(f"\n{ratio:.1f} times as fast as scikit-learn; must be {floor}")
    assert ratio >= floor


@pytest.mark.parametrize(
    ("n", "trees", "settings", "floor"),
    [
        (1_000, 200, EQUAL_WORK, 6.0),
        (10_000, 20, EQUAL_WORK, 8.0),
        (10_000, 20, {**EQUAL_WORK, "criterion": "censored_quantile", "working_model": None}, 4.5),
        (10_000, 20, {"working_model": None}, 8.0),
        (10_000, 100, {}, 4.0),  # enough trees that the working model is not most of the work
    ],
    ids=["variance-1e3", "variance-1e4", "censored-quantile-1e4", "plain-1e4", "defaults-1e4"],
)
def test_fit(benchmark: Any, n: int, trees: int, settings: dict[str, Any], floor: float) -> None:
    table = make_aft(n, random_state=0)
    ours, theirs = forests(trees, **settings)
    check_ratio(
        benchmark,
        lambda: ours.fit(table.X, table.y),
        lambda: theirs.fit(table.X, table.y["time"]),
        floor,
    )


def test_predict(benchmark: Any) -> None:
    """Three quantiles of our forest against the mean of scikit-learn's."""
    table, queries = make_aft(10_000, random_state=0), make_aft(1_000, random_state=1).X
    ours, theirs = forests(100, **EQUAL_WORK)
    ours.fit(table.X, table.y)
    theirs.fit(table.X, table.y["time"])
    check_ratio(
        benchmark,
        lambda: ours.predict(queries, QUANTILES, unidentified="clip"),
        lambda: theirs.predict(queries),
        0.7,
    )
