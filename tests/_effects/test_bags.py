"""Little bags of effects: variances of psi against loops over trees and rows."""

import numpy as np
import pytest

from cqrf._effects.bags import Moves, bag_variances
from cqrf._forest.traversal import Leaves
from oracles import effects as oracle


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bag_size", [2, 3])
def test_variances_equal_loops_over_trees(weighted, bag_size):
    rng = np.random.default_rng([weighted, bag_size])
    n, n_queries, n_bags, n_outputs = 30, 4, 5, 3
    n_trees = n_bags * bag_size
    # Leaves of each tree are stretches of a list of rows.
    sizes = rng.integers(1, 6, (n_queries, n_trees))
    starts = rng.integers(0, 90, (n_queries, n_trees))
    leaf_rows = rng.integers(0, n, 100).astype(np.int32)
    weight = rng.integers(1, 9, n).astype(np.float32) / 4 if weighted else None
    moves = Moves(
        table=rng.normal(size=(n, 6)),
        columns=rng.integers(0, 6, (n_queries, n_outputs, 2)),
        factors=rng.normal(size=(n_queries, n_outputs, 2)),
    )
    found = bag_variances(Leaves(starts, sizes), leaf_rows, weight, moves, bag_size)
    w = np.ones(n) if weight is None else weight.astype(float)
    for q in range(n_queries):
        for k in range(n_outputs):
            psi = []
            for t in range(n_trees):
                rows = leaf_rows[starts[q, t] : starts[q, t] + sizes[q, t]]
                terms = zip(moves.columns[q, k], moves.factors[q, k], strict=True)
                psi.append(
                    sum(f * (w[rows] @ moves.table[rows, c]) / w[rows].sum() for c, f in terms)
                )
            between, within = oracle.bag_variances(psi, bag_size)
            assert found.between[q, k] == pytest.approx(between, rel=1e-10)
            assert found.within[q, k] == pytest.approx(within, rel=1e-10)


def test_trees_that_agree_have_no_variance():
    leaves = Leaves(np.zeros((1, 8), np.int64), np.full((1, 8), 3))
    moves = Moves(np.arange(6.0).reshape(3, 2), np.zeros((1, 1, 1), np.int64), np.ones((1, 1, 1)))
    found = bag_variances(leaves, np.arange(3, dtype=np.int32), None, moves, 4)
    assert (found.between[0, 0], found.within[0, 0]) == (0.0, 0.0)
