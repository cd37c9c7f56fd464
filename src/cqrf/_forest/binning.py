"""Binning: each feature becomes one byte per row, once, before any tree is grown.

Edges are midpoints between adjacent training values, so that a split between two bins is the split
between two values. The code of x is the number of edges below x: x <= edges[b] exactly where
code <= b. A feature with more distinct values than bins has edges at even quantiles. MISSING is the
code of a missing value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.spec import MAX_BINS, MISSING
from cqrf._runtime.compiling import kernel
from cqrf._runtime.random import draw_without_replacement
from cqrf._runtime.threads import thread_map

# Edges come from at most this many rows: the error of their quantiles, about 1/sqrt(rows), is then
# below the width of a bin, and the sort stays cheap at any n.
EDGE_SAMPLE = 200_000
# A table of fewer values is encoded faster than threads are started.
SERIAL_SIZE = 1_000_000
# Columns are encoded in groups of about so many values: a task costs as much as a thousand of them.
TASK_SIZE = 200_000


def find_edges(
    X: NDArray[np.float64],
    max_bins: int,
    seed: int,
    n_jobs: int | None = None,
) -> list[NDArray[np.float64]]:
    """Edges of every column of X, from all rows or a seeded sample of them."""
    if len(X) > EDGE_SAMPLE:
        X = X[np.sort(draw_without_replacement(np.uint64(seed), len(X), EDGE_SAMPLE))]
    tasks = [(column, max_bins) for column in X.T]
    return list(thread_map(column_edges, tasks, 1 if X.size < SERIAL_SIZE else n_jobs))


def level_edges(n_levels: int) -> NDArray[np.float64]:
    """Edges that give each level of a category its own bin."""
    return np.arange(0.5, max(0, n_levels - 1))


def column_edges(column: NDArray[np.float64], max_bins: int) -> NDArray[np.float64]:
    """At most ``max_bins - 1`` edges between the values of one column."""
    values = np.sort(column)
    values = values[: np.searchsorted(values, np.nan)]
    last_of_value = np.flatnonzero(values[1:] != values[:-1])
    if len(last_of_value) >= max_bins:
        targets = np.arange(1, max_bins) * (len(values) / max_bins)
        reached = np.ceil(targets).astype(np.int64) - 1  # index of the row with this many up to it
        below = np.searchsorted(last_of_value, reached)
        last_of_value = last_of_value[np.unique(np.minimum(below, len(last_of_value) - 1))]
    low, high = values[last_of_value], values[last_of_value + 1]
    middle = low / 2 + high / 2
    # Between two adjacent floats there is no midpoint: the edge is then the lower one.
    return np.where((middle < low) | (middle >= high), low, middle)


def encode(
    X: NDArray[np.float64], edges: Sequence[NDArray[np.float64]], n_jobs: int | None = None
) -> NDArray[np.uint8]:
    """Codes of X, shape (n_features, n_rows): one contiguous run of bytes per feature."""
    columns = np.arange(X.shape[1])
    return encode_columns(X, columns, pad_edges(edges, columns), n_jobs)


def pad_edges(
    edges: Sequence[NDArray[np.float64]], columns: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Edges of some columns, shape (n_columns, MAX_BINS): infinite where there are fewer."""
    padded = np.full((len(columns), MAX_BINS), np.inf)
    for row, column in zip(padded, columns.tolist(), strict=True):
        its_edges = edges[column]
        row[: len(its_edges)] = its_edges
    return padded


def encode_columns(
    X: NDArray[np.float64],
    columns: NDArray[np.intp],
    padded: NDArray[np.float64],
    n_jobs: int | None = None,
) -> NDArray[np.uint8]:
    """Codes of some columns of X by their padded edges, as of :func:`encode`; others are 0."""
    codes = np.zeros((X.shape[1], X.shape[0]), dtype=np.uint8)
    step = max(1, TASK_SIZE // max(1, len(X)))
    groups = [slice(first, first + step) for first in range(0, len(columns), step)]
    tasks = [(X.T, columns[group], padded[group], codes) for group in groups]
    list(thread_map(_encode_columns, tasks, 1 if X.size < SERIAL_SIZE else n_jobs))
    return codes


@kernel
def _encode_columns(values, columns, edges, codes):
    """Write the code of each value of some columns: the number of edges below it, or MISSING.

    values : (n_features, n) float64; columns : (n_columns,) intp
    edges : (n_columns, MAX_BINS) float64, ascending, infinite where there are fewer
    codes : (n_features, n) uint8, written
    """
    for j in range(columns.shape[0]):
        column, its_edges = values[columns[j]], edges[j]
        its_codes = codes[columns[j]]
        for i in range(column.shape[0]):
            x = column[i]
            # Binary search in eight steps, without a branch to mispredict.
            n_below = np.uint64(0)
            for step in (128, 64, 32, 16, 8, 4, 2, 1):
                n_below += np.uint64(step * (its_edges[n_below + np.uint64(step - 1)] < x))
            its_codes[i] = MISSING if np.isnan(x) else n_below
