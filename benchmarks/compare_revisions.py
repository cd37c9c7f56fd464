"""Whether the working tree gives the same results as an earlier revision, bit for bit.

The revision is checked out into a temporary folder. One process for each of the two trees runs
``revision_worker.py``, with a cache of compiled kernels of its own: it fits the same forests to the
same tables and prints the SHA-256 digest of every result. Here the combinations of settings and
tables are chosen and the digests compared. Of what is refused, the type of the error is compared.

Prints the number of combinations and of results and the results that differ. The exit status is 1
if any differs, or if anything failed with another error than ValueError.

Run: python benchmarks/compare_revisions.py REVISION [--quick] [--only TEXT]
(with pip install '.[test]'; up to five minutes of a core for each tree, most of them to compile)
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
WORKER = Path(__file__).with_name("revision_worker.py")
MODELS = ROOT / "tests" / "data" / "models"

# Values of each setting of the forest and each property of the table; the first is the default.
CRITERIA = ("censored_quantile", "quantile", "variance", "logrank")
FRAMES = ("pandas", "polars", "pyarrow")
SETTINGS: dict[str, tuple[Any, ...]] = {
    "n_estimators": (16, 10, 33, 40),
    "criterion": CRITERIA,
    "split_quantiles": (None, [0.25, 0.5, 0.75], [0.4]),
    "honest": (True, False),
    "max_samples": ("auto", 0.5, None, 25, 0.9),
    "bootstrap": (False, True),
    "max_features": (None, 0.5, 2, "sqrt", "log2"),
    "min_samples_leaf": (5, 1, 12),
    "min_samples_split": (11, 2, 30),
    "min_child_fraction": (0.05, 0.0, 0.3),
    "max_depth": (None, 1, 3),
    "max_bins": (255, 16, 2),
    "censoring": ("right", "left"),
    "censoring_survival": ("beran", "knn", "km"),
    "n_neighbors": (0.1, 12, 1.0),
    "solver": ("root", "argmin"),
    "bag_size": (1, 2, 4),
    "n_jobs": (1, 2),
    "random_state": (0, 1),
}
TABLE: dict[str, tuple[Any, ...]] = {
    "n_rows": (150, 30, 80, 300),
    "n_features": (5, 1, 12, 100),
    "form": ("array", "float32", *FRAMES),
    "categories": (False, True),
    "missing": (False, True),
    "times": ("continuous", "tied", "logarithms"),
    "censored": (0.3, 0.0, 0.85),
    "target": ("structured", "columns", "frame"),
    "weights": ("none", "positive", "counts", "zeros"),
    "groups": ("none", "numbers", "texts"),
    "entry": (False, True),
}
DEFAULTS = {name: values[0] for name, values in (SETTINGS | TABLE).items()}

# Pairs and triples of settings of which every combination is run.
CROSSED: list[dict[str, tuple[Any, ...]]] = [
    {
        "criterion": CRITERIA,
        "honest": (True, False),
        "bootstrap": (False, True),
        "max_samples": ("auto", None),
    },
    {"criterion": CRITERIA, "honest": (True, False), "bag_size": (2, 4)},
    {
        "censoring": ("right", "left"),
        "censoring_survival": SETTINGS["censoring_survival"],
        "solver": SETTINGS["solver"],
        "weights": ("none", "zeros"),
    },
    {
        "censoring_survival": SETTINGS["censoring_survival"],
        "solver": SETTINGS["solver"],
        "entry": (True,),
    },
    {
        "groups": ("numbers", "texts"),
        "weights": ("positive", "zeros"),
        "honest": (True, False),
        "bag_size": (1, 2),
    },
    {
        "n_rows": (30,),
        "n_features": (1, 5, 100),
        "criterion": CRITERIA,
        "min_samples_leaf": (1,),
        "min_samples_split": (2,),
    },
    {
        "times": ("tied",),
        "censored": (0.85,),
        "criterion": CRITERIA,
        "censoring": ("right", "left"),
    },
    {"form": FRAMES, "missing": (False, True), "categories": (True,)},
    # Nodes of so many rows have histograms of their own kind, queries come in several chunks.
    {"n_rows": (5000,), "criterion": CRITERIA, "honest": (True, False), "n_jobs": (2,)},
    {
        "n_rows": (5000,),
        "max_samples": (None,),
        "bootstrap": (True,),
        "weights": ("none", "zeros"),
        "entry": (False, True),
        "categories": (False, True),
    },
]

# Kernels are compiled once for each of these: criterion, whether rows have weights, entry times
# and categories, and the levels of a split. Of two criteria half of the combinations is enough for
# every pair to appear.
FLAGS = list(product((False, True), repeat=3))
HALF_OF_FLAGS = [flags for flags in FLAGS if sum(flags) % 2 == 0]
VARIANTS = [
    *(("censored_quantile", *flags, None) for flags in FLAGS),
    *(("logrank", *flags, None) for flags in FLAGS),
    *(("quantile", *flags, None) for flags in HALF_OF_FLAGS),
    *(("variance", *flags, None) for flags in HALF_OF_FLAGS),
    ("censored_quantile", False, False, False, [0.25, 0.5, 0.75]),
    ("quantile", False, False, False, [0.4]),
]
QUICK_VARIANTS = [
    *((criterion, False, False, False, None) for criterion in CRITERIA),
    ("censored_quantile", True, True, True, None),
]
N_DRAWN = 120
N_QUICK = 20

REFUSED: list[dict[str, Any]] = [
    {"censoring": "left", "entry": True},
    {"bag_size": 2, "max_samples": None},
    {"bag_size": 4, "max_samples": 100},
    {"max_samples": 500},
    {"max_samples": 100, "groups": "numbers"},
    {"max_features": 9},
    {"criterion": "unknown"},
    {"split_quantiles": [1.5]},
    {"max_bins": 256},
    {"n_neighbors": 1000},
]
# Forests that the other parts of the library are given.
EXAMPLES: dict[str, dict[str, Any]] = {
    "right": {},
    "left": {"censoring": "left"},
    "weights": {"weights": "zeros", "groups": "numbers"},
    "entry": {"entry": True},
    "categories": {"form": "pandas", "categories": True, "missing": True},
    "tied": {"times": "tied", "censored": 0.85},
    "not censored": {"censored": 0.0},
}
ON_DASK: list[dict[str, Any]] = [
    {"n_rows": 300},
    {"n_rows": 300, "weights": "zeros", "groups": "numbers"},
    {"n_rows": 300, "entry": True, "criterion": "logrank"},
    {"n_rows": 300, "form": "pandas", "categories": True, "missing": True, "weights": "positive"},
    {"n_rows": 300, "form": "pandas", "bootstrap": True, "max_samples": None, "honest": False},
    {"n_rows": 300, "bag_size": 2, "groups": "numbers", "criterion": "variance"},
    {"n_rows": 300, "censoring": "left", "censoring_survival": "knn", "times": "tied"},
]


def resolve_conflicts(chosen: dict[str, Any]) -> dict[str, Any]:
    """The combination, with what would be refused beside the rest replaced."""
    valid = dict(chosen)
    if valid["entry"]:
        valid["censoring"] = "right"
        if valid["target"] == "columns":
            valid["target"] = "structured"
    if valid["categories"] and valid["form"] not in FRAMES:
        valid["form"] = "pandas"
    if valid["max_features"] == 2 and valid["n_features"] == 1:
        valid["max_features"] = None
    if valid["max_samples"] == 25 and (valid["n_rows"] < 80 or valid["groups"] != "none"):
        valid["max_samples"] = 0.5
    if valid["bag_size"] > 1 and valid["max_samples"] not in ("auto", 0.5, 25):
        valid["max_samples"] = "auto"
    return valid


def vary_each() -> Iterator[dict[str, Any]]:
    """The defaults, and every other value of every setting with all else at its default."""
    yield DEFAULTS
    for name, values in (SETTINGS | TABLE).items():
        for value in values[1:]:
            yield DEFAULTS | {name: value}


def cross_some() -> Iterator[dict[str, Any]]:
    """Every combination of the values that are crossed."""
    for factors in CROSSED:
        for values in product(*factors.values()):
            yield DEFAULTS | dict(zip(factors, values))


def draw_some() -> Iterator[dict[str, Any]]:
    """Seeded draws of all settings at once, each variant of the kernels in turn."""
    rng = np.random.default_rng(0)
    for number in range(N_DRAWN):
        drawn = {
            name: values[rng.integers(len(values))] if rng.random() < 0.5 else values[0]
            for name, values in (SETTINGS | TABLE).items()
        }
        criterion, weighted, entry, categories, levels = VARIANTS[number % len(VARIANTS)]
        drawn |= {"criterion": criterion, "entry": entry, "categories": categories}
        drawn["split_quantiles"] = levels
        drawn["weights"] = TABLE["weights"][rng.integers(1, 4)] if weighted else "none"
        yield drawn


def variant_of(chosen: dict[str, Any]) -> tuple[Any, ...]:
    """What decides which kernels a combination needs."""
    weighted = chosen["weights"] != "none"
    flags = chosen["entry"], chosen["categories"]
    return (chosen["criterion"], weighted, *flags, chosen["split_quantiles"])


def describe(chosen: dict[str, Any]) -> str:
    """What differs from the defaults."""
    changes = [f"{name}={value}" for name, value in chosen.items() if value != DEFAULTS[name]]
    return ", ".join(changes) or "defaults"


def as_order(chosen: dict[str, Any]) -> dict[str, Any]:
    """A combination as the worker reads it."""
    return {
        "settings": {name: chosen[name] for name in SETTINGS},
        "table": {name: chosen[name] for name in TABLE},
    }


def choose_combinations(quick: bool) -> list[dict[str, Any]]:
    """All combinations, or a few that need few kernels."""
    chosen = [
        resolve_conflicts(each)
        for part in (vary_each(), cross_some(), draw_some())
        for each in part
    ]
    chosen = list({describe(each): each for each in chosen}.values())
    if quick:
        chosen = [each for each in chosen if variant_of(each) in QUICK_VARIANTS]
        places = np.linspace(0, len(chosen) - 1, N_QUICK).round().astype(int)
        chosen = [chosen[place] for place in places]
    return [*chosen, *(DEFAULTS | changes for changes in REFUSED)]


def make_orders(quick: bool, only: str) -> dict[str, Any]:
    """What a worker is to do."""
    examples = {"right": EXAMPLES["right"]} if quick else EXAMPLES
    on_dask = [] if quick else [DEFAULTS | changes for changes in ON_DASK]
    orders = {
        "forests": {describe(each): as_order(each) for each in choose_combinations(quick)},
        "examples": {name: as_order(DEFAULTS | each) for name, each in examples.items()},
        "dask": {f"Dask: {describe(each)}": as_order(each) for each in on_dask},
    }
    for name in ("forests", "dask"):
        orders[name] = {case: order for case, order in orders[name].items() if only in case}
    return orders | {"models": str(MODELS), "quick": quick, "only": only}


def run_worker(source: Path, cache: Path, orders: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Digests of all results of one tree: {case: {result: digest}}."""
    environment = {**os.environ, "PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-P", str(WORKER)],
        input=json.dumps(orders | {"source": str(source)}),
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def run_both(revision: str, orders: dict[str, Any]) -> list[dict[str, dict[str, str]]]:
    """Digests of the revision and of the working tree, from two processes side by side."""
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(before), revision], check=True)
        try:
            sources = [before / "src", ROOT / "src"]
            caches = [Path(folder) / "cache-before", Path(folder) / "cache-now"]
            with ThreadPoolExecutor(2) as pool:
                return list(pool.map(run_worker, sources, caches, [orders] * 2))
        finally:
            subprocess.run([*git, "remove", "--force", str(before)], check=True)


def find_differences(
    before: dict[str, dict[str, str]], now: dict[str, dict[str, str]]
) -> dict[str, list[str]]:
    """Names of the results that differ, or that one of the two lacks, by case."""
    differing = {}
    for case in dict.fromkeys([*before, *now]):
        ours, theirs = before.get(case, {}), now.get(case, {})
        names = [
            name for name in dict.fromkeys([*ours, *theirs]) if ours.get(name) != theirs.get(name)
        ]
        if names:
            differing[case] = names
    return differing


def count_errors(digests: dict[str, dict[str, str]]) -> Counter[str]:
    """How many results were refused, by the type of the error."""
    values = [value for results in digests.values() for value in results.values()]
    return Counter(value.split()[1] for value in values if value.startswith("error "))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revision")
    parser.add_argument("--quick", action="store_true", help=f"{N_QUICK} combinations only")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases with this in their name")
    arguments = parser.parse_args()
    orders = make_orders(arguments.quick, arguments.only)
    began = time.perf_counter()
    before, now = run_both(arguments.revision, orders)
    if not before:
        parser.error(f"no case has {arguments.only!r} in its name")
    differing = find_differences(before, now)
    errors = [count_errors(digests) for digests in (before, now)]
    n_results = sum(len(results) for results in before.values())
    n_different = sum(len(names) for names in differing.values())
    for case, names in differing.items():
        print(f"{case}: {', '.join(names)}")
    by_name = Counter(name for names in differing.values() for name in names)
    if by_name:
        counted = ", ".join(f"{name} ({count})" for name, count in by_name.most_common())
        print(f"differing results by name: {counted}")
    print(
        f"{len(orders['forests'])} combinations of settings and {len(before)} cases in all, "
        f"{n_results} results, {n_different} of them different, in "
        f"{time.perf_counter() - began:.0f} s"
    )
    for tree, counts in zip((arguments.revision, "working tree"), errors):
        print(f"refused, {tree}: {dict(counts) or 'nothing'}")
    sys.exit(n_different > 0 or any(set(counts) - {"ValueError"} for counts in errors))


if __name__ == "__main__":
    main()
