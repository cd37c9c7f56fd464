"""Forests and queries for tests of traversal and weights."""

from typing import NamedTuple

import numpy as np

from cqrf._forest.rows import Rows
from cqrf._forest.spec import LEAF, MISSING, Forest, Sampling
from cqrf._forest.training import grow_forest
from support.forests import make_growing

N_TRAIN, N_TREES, SEED = 130, 21, 5


class Case(NamedTuple):
    """A forest, queries, and the training rows as queries in the order of the table."""

    forest: Forest
    queries: np.ndarray
    sampling: Sampling
    train_queries: np.ndarray


def make_case(bootstrap=False, honest=True):
    """A forest with a category and missing values, and queries with codes of all kinds."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 12, (4, N_TRAIN)).astype(np.uint8)
    time = np.sort(rng.exponential(size=N_TRAIN))
    event = rng.random(N_TRAIN) < 0.7
    codes[0] = np.clip(codes[0] // 3 + 3 * time, 0, 11)
    codes[rng.random(codes.shape) < 0.08] = MISSING
    rows = Rows(codes, np.array([False, True, False, False]), time, event)
    order = rng.permutation(N_TRAIN).astype(np.int32)
    sampling = Sampling(order, N_TRAIN, 70, bootstrap, honest)
    forest = grow_forest(rows, sampling, make_growing(), N_TREES, SEED, 1)
    queries = rng.integers(0, 14, (30, 4)).astype(np.uint8)
    queries[rng.random(queries.shape) < 0.1] = MISSING
    train_queries = np.empty((N_TRAIN, 4), np.uint8)
    train_queries[order] = codes.T
    return Case(forest, queries, sampling, train_queries)


def make_leaves_only(offsets, rows):
    """A forest of trees that are single leaves."""
    n = len(offsets) - 1
    return Forest(
        roots=np.arange(n),
        feature=np.full(n, LEAF, np.int32),
        code=np.zeros(n, np.int32),
        missing_left=np.zeros(n, bool),
        left=np.arange(n),
        subsets=np.empty((0, 4), np.uint64),
        categorical=np.zeros(1, bool),
        leaf_offsets=np.array(offsets),
        leaf_rows=np.array(rows, np.int32),
        importance=np.zeros(1),
    )
