"""Little bags of effects: variances of psi against loops over trees and rows."""

import numpy as np
import pytest

from cqrf._effects.bags import Moves, bag_variances
from oracles import effects as oracle


@pytest.mark.parametrize("bag_size", [2, 3])
def test_variances_equal_loops_over_trees(bag_size):
    rng = np.random.default_rng(bag_size)
    n_queries, n_bags, n_outputs = 4, 5, 3
    n_trees = n_bags * bag_size
    numbers = rng.integers(0, 20, (n_queries, n_trees))
    moves = Moves(
        means=rng.normal(size=(20, 6)),
        columns=rng.integers(0, 6, (n_queries, n_outputs, 2)),
        factors=rng.normal(size=(n_queries, n_outputs, 2)),
    )
    found = bag_variances(numbers, moves, bag_size)
    for q in range(n_queries):
        for k in range(n_outputs):
            terms = list(zip(moves.columns[q, k], moves.factors[q, k], strict=True))
            psi = [sum(f * moves.means[leaf, c] for c, f in terms) for leaf in numbers[q]]
            between, within = oracle.bag_variances(psi, bag_size)
            assert found.between[q, k] == pytest.approx(between, rel=1e-10)
            assert found.within[q, k] == pytest.approx(within, rel=1e-10)


def test_trees_that_agree_have_no_variance():
    moves = Moves(np.arange(6.0).reshape(3, 2), np.zeros((1, 1, 1), np.int64), np.ones((1, 1, 1)))
    found = bag_variances(np.full((1, 8), 2), moves, 4)
    assert (found.between[0, 0], found.within[0, 0]) == (0.0, 0.0)
