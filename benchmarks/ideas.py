"""Alternatives for the innermost loops, timed against those in the library.

Nanoseconds per row (or bin, or value): best of several alternating rounds, in one thread. Each
line marked "kept" times the loop of the library; the other loops are defined here.

Run: python benchmarks/ideas.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cqrf import CensoredQuantileForest
from cqrf._forest import weights
from cqrf._forest.binning import encode, find_edges
from cqrf._forest.grower import goes_left
from cqrf._forest.histograms import MANY_ROWS, fill
from cqrf._forest.spec import LEAF, MISSING, N_BINS
from cqrf._forest.splitting import Node, best_cut
from cqrf._forest.traversal import find_leaves
from cqrf._model.queries import encode_queries
from cqrf.datasets import make_aft

ROUNDS = 15
loop = njit(nogil=True, error_model="numpy")


class Bins(NamedTuple):
    """Fields of :class:`cqrf._forest.workspace.SplitWork` that a histogram writes."""

    seen: NDArray[np.uint8]
    sums: NDArray[np.float64]


@loop
def fill_one_by_one(column, rows, labels, seen, sums):
    for i in range(rows.shape[0]):
        code = column[rows[i]]
        seen[code] = 1
        sums[code, 0] += labels[i, 0]
        sums[code, 1] += labels[i, 1]


@loop
def fill_unmarked(column, rows, labels, seen, sums):
    for i in range(rows.shape[0]):
        code = column[rows[i]]
        sums[code, 0] += labels[i, 0]
        sums[code, 1] += labels[i, 1]


@loop
def fill_row_by_row(table, feature, rows, labels, sums):
    for i in range(rows.shape[0]):
        code = table[rows[i], feature]
        sums[code, 0] += labels[i, 0]
        sums[code, 1] += labels[i, 1]


@loop
def fill_packed(column, rows, packed, sums):
    for i in range(rows.shape[0]):
        sums[column[rows[i]]] += packed[i]


@loop
def fill_library(column, rows, labels, seen, sums):
    fill(column, rows, labels, (0,), Bins(seen, sums))


@loop
def cut_in_one_loop(mass, below, score):
    best_gain, best_at = 0.0, -1
    for at in range(below.shape[0]):
        gain = score[at] / (below[at] * (mass - below[at]))
        if gain > best_gain:
            best_gain, best_at = gain, at
    return best_at, best_gain


@loop
def cut_by_products(mass, below, score):
    best_score, best_spread, best_at = 0.0, 1.0, -1
    for at in range(below.shape[0]):
        spread = below[at] * (mass - below[at])
        if score[at] * best_spread > best_score * spread:
            best_score, best_spread, best_at = score[at], spread, at
    return best_at, best_score / best_spread


@loop
def cut_library(rows, mass, below, running):
    return best_cut(below.shape[0], Node(rows, None, mass, 1.0), True, 0, below, running)


@loop
def encode_by_branches(column, edges, codes):
    for i in range(column.shape[0]):
        low, high = 0, edges.shape[0]
        while low < high:
            middle = (low + high) >> 1
            if edges[middle] < column[i]:
                low = middle + 1
            else:
                high = middle
        codes[i] = low if column[i] == column[i] else MISSING


@loop
def find_leaves_one_by_one(queries, nodes, leaves):
    for t in range(nodes.roots.shape[0]):
        for q in range(queries.shape[0]):
            node = nodes.roots[t]
            while nodes.feature[node] != LEAF:
                column = nodes.feature[node]
                node = nodes.left[node] + (
                    not goes_left(
                        nodes.categorical,
                        queries[q, column],
                        column,
                        nodes.code[node],
                        nodes.missing_left[node],
                        nodes.subsets,
                    )
                )
            leaves[q, t] = nodes.left[node]


def compare(title: str, size: int, ways: dict[str, Callable[[], Any]]) -> None:
    """Print the best time of each way to do the same, divided by ``size``."""
    repeats = max(1, 2_000_000 // size)
    best = dict.fromkeys(ways, np.inf)
    for _ in range(ROUNDS):
        for name, run in ways.items():
            began = time.perf_counter()
            for _ in range(repeats):
                run()
            best[name] = min(best[name], (time.perf_counter() - began) / repeats)
    print(f"\n{title}")
    for name, seconds in best.items():
        print(f"    {name:<58} {1e9 * seconds / size:6.2f} ns")


def compare_fills(n: int, of: int) -> None:
    random = np.random.default_rng(0)
    table = random.integers(0, 255, (of, 20)).astype(np.uint8)
    column = np.ascontiguousarray(table[:, 3])
    rows = np.sort(random.permutation(of)[:n]).astype(np.uint32)
    labels = np.column_stack([np.ones(n), random.normal(size=n)])
    single, short = labels.astype(np.float32), rows.astype(np.uint16)
    packed = (1 << 40) + (labels[:, 1] * 2**20).astype(np.int64)
    seen, sums = np.zeros(N_BINS, np.uint8), np.zeros((N_BINS, 2))
    single_sums, packed_sums = np.zeros((N_BINS, 2), np.float32), np.zeros(N_BINS, np.int64)
    marked = "marks bins" if n < MANY_ROWS else "tests bins afterwards"
    ways: dict[str, Callable[[], Any]] = {
        f"kept: four codes read ahead, {marked}": lambda: fill_library(
            column, rows, labels, seen, sums
        ),
        "one row at a time, marks bins": lambda: fill_one_by_one(column, rows, labels, seen, sums),
        "one row at a time, unmarked": lambda: fill_unmarked(column, rows, labels, seen, sums),
        "   with sums in float32": lambda: fill_unmarked(column, rows, single, seen, single_sums),
        "   with count and label packed into one integer": lambda: fill_packed(
            column, rows, packed, packed_sums
        ),
        "   with row-major codes": lambda: fill_row_by_row(table, 3, rows, labels, sums),
    }
    if of <= 2**16:
        ways["   with 16-bit row numbers"] = lambda: fill_unmarked(
            column, short, labels, seen, sums
        )
    compare(f"Histogram of {n} of {of} rows, per row", n, ways)


def compare_cuts(n_bins: int) -> None:
    random = np.random.default_rng(0)
    below = np.cumsum(random.integers(1, 5, n_bins)).astype(float)
    mass, score = below[-1] + 3, np.cumsum(random.normal(size=n_bins)) ** 2
    rows = np.empty(int(mass), np.uint32)
    running = np.stack([below, score, below, np.empty(n_bins)])
    compare(
        f"Best of {n_bins} thresholds, per threshold",
        n_bins,
        {
            "kept: all divisions, then the maximum": lambda: cut_library(
                rows, mass, below, running
            ),
            "both in one loop": lambda: cut_in_one_loop(mass, below, score),
            "compare products instead of dividing": lambda: cut_by_products(mass, below, score),
        },
    )


def compare_codes(n: int) -> None:
    X = np.random.default_rng(0).normal(size=(n, 1))
    edges = find_edges(X, 255, 0)
    codes = np.empty(n, np.uint8)
    compare(
        f"Binning of {n} numbers, per number",
        n,
        {
            "kept: branch-free binary search": lambda: encode(X, edges, 1),
            "binary search with branches": lambda: encode_by_branches(X[:, 0], edges[0], codes),
        },
    )


def compare_queries(n: int, n_trees: int, n_queries: int = 1_000) -> None:
    X, y, *_ = make_aft(n, 20, random_state=0)
    model = CensoredQuantileForest(n_estimators=n_trees, n_jobs=-1, random_state=0).fit(X, y).model_
    queries = encode_queries(model, make_aft(n_queries, 20, random_state=1).X).codes
    forest = model.forest
    leaves = np.empty((n_queries, n_trees), np.int64)
    nodes = forest.nodes
    of = f"of {n_queries} queries in {n_trees} trees of {n} rows"
    compare(
        f"Leaves {of}, per leaf",
        leaves.size,
        {
            "kept: many queries descend together": lambda: find_leaves(forest, queries),
            "one query at a time": lambda: find_leaves_one_by_one(queries, nodes, leaves),
        },
    )

    kept = weights.MANY_ROWS

    def add(many_rows: int) -> None:
        weights.MANY_ROWS = many_rows
        weights.forest_weights(find_leaves(forest, queries), forest.leaf_rows, n)

    ways = {"dense array over the training rows": n, "positions from a bitmap": 0}
    compare(
        f"Leaves and weights {of}, per row in a leaf",
        int(find_leaves(forest, queries).sizes.sum()),
        {
            f"{'kept: ' if (n <= kept) == (most > 0) else ''}{way}": partial(add, most)
            for way, most in ways.items()
        },
    )
    weights.MANY_ROWS = kept


if __name__ == "__main__":
    compare_fills(60_000, 60_000)
    compare_fills(5_000, 60_000)
    compare_fills(400, 2_000)
    compare_cuts(250)
    compare_codes(100_000)
    compare_queries(10_000, 100)
    compare_queries(1_000_000, 10)
