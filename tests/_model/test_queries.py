"""Rows to predict: encoded, and out of bag."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from cqrf import CensoredQuantileForest
from cqrf._input.features import read_features
from cqrf._model.queries import (
    Queries,
    encode_all,
    encode_queries,
    has_tree,
    training_codes,
    training_queries,
)
from cqrf._model.settings import read_solver
from cqrf._readers.curves import SurvivalCurves
from cqrf._readers.quantiles import MaxLevel, Quantiles
from cqrf._readers.reader import read_one, read_weights
from cqrf._readers.weight_rows import WeightRows
from cqrf.datasets import make_aft

LEVELS = np.array([0.005, 0.25, 0.5, 0.995])


@pytest.fixture(scope="module")
def data():
    return make_aft(200, 4, random_state=0)


@pytest.fixture(scope="module")
def lazy():
    """A forest that ignores most of its features, one of them a category."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(300, 5)), columns=list("abcde"))
    X["f"] = rng.choice(["x", "y"], 300)
    forest = CensoredQuantileForest(
        n_estimators=10, max_depth=1, random_state=0, working_model=None
    )
    return forest.fit(X, np.exp(3 * X["c"].to_numpy())), X


def test_only_features_that_are_split_on_are_encoded(lazy):
    forest, X = lazy
    model = forest.model_
    matrix, _ = read_features(forest, X, forest.model_.columns)
    used = model.forest.split_features
    assert used.tolist() == sorted(set(model.forest.feature.tolist()) - {-1})
    assert 0 < len(used) < 6
    codes, everything = encode_queries(model, matrix).codes, encode_all(model, matrix)
    assert codes.shape == everything.shape == (300, 6)
    assert_array_equal(codes[:, used], everything[:, used])
    others = np.setdiff1d(np.arange(6), used)
    assert not codes[:, others].any()
    assert everything[:, others].any()
    assert_array_equal(everything, training_codes(model))
    full = read_one(model, Queries(everything), WeightRows())
    weights = read_one(model, Queries(codes), WeightRows())
    for part in ("indptr", "indices", "data"):
        assert_array_equal(getattr(weights, part), getattr(full, part))


def test_training_queries_leave_out_the_trees_that_drew_the_row(data):
    forest = CensoredQuantileForest(n_estimators=11, random_state=0, max_samples=0.5)
    groups = np.arange(200) // 2
    weight = np.ones(200)
    weight[1] = 0  # never drawn, but of the cluster of row 0
    model = forest.fit(data.X, data.y, sample_weight=weight, groups=groups).model_
    queries = training_queries(model)
    assert_array_equal(queries.codes, training_codes(model))
    bits = np.unpackbits(queries.in_bag, axis=1, bitorder="little")[:, :11]
    assert_array_equal(bits[::2], bits[1::2])
    assert 0.3 < bits.mean() < 0.7
    weights = read_one(model, queries, WeightRows())
    used = np.array([[weights[i, j] > 0 for j in (i, i ^ 1)] for i in range(200)])
    assert not used.any()  # neither a row nor its cluster predicts itself
    rows = np.array([7, 1, 199])
    some, expected = training_queries(model, rows, 2), queries.take(rows)
    assert_array_equal(some.codes, expected.codes)
    assert_array_equal(some.in_bag, expected.in_bag)


def test_queries_without_a_tree_are_known(data):
    forest = CensoredQuantileForest(n_estimators=1, random_state=0).fit(data.X, data.y)
    model = forest.model_
    queries = training_queries(model)
    there = has_tree(model, queries)
    assert there.tolist() == [not bits & 1 for bits in queries.in_bag[:, 0]]
    assert 0 < there.sum() < 200
    assert has_tree(model, Queries(queries.codes)).all()
    solver = read_solver(forest, "right")
    solution, limits, survival = read_weights(
        model, queries, [Quantiles(solver, LEVELS), MaxLevel(solver), SurvivalCurves()]
    )
    assert_array_equal(np.isnan(solution.values).all(axis=1), ~there)
    assert_array_equal(np.isnan(limits), ~there)
    assert_array_equal(np.diff(survival.offsets) == 0, ~there)


def test_queries_are_taken_with_their_trees():
    queries = Queries(np.arange(6, dtype=np.uint8).reshape(3, 2), np.array([[1], [2], [3]], "u1"))
    taken = queries.take(np.array([2, 0]))
    assert taken.codes.tolist() == [[4, 5], [0, 1]]
    assert taken.in_bag.tolist() == [[3], [1]]
    assert Queries(queries.codes).take(slice(1, 2)).in_bag is None
