"""Means over leaves against the forest's weights."""

import numpy as np
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf._effects.leaf_means import average, find_wanted
from cqrf._model.queries import Queries, training_codes, training_queries
from cqrf._readers.reader import read_one
from cqrf._readers.weight_rows import WeightRows


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("out_of_bag", [False, True])
def test_averages_are_those_with_the_weights(weighted, out_of_bag):
    rng = np.random.default_rng(0)
    X, time = rng.normal(size=(120, 3)), rng.exponential(size=120)
    weight = rng.integers(0, 4, 120) if weighted else None
    forest = CensoredQuantileForest(n_estimators=30, working_model=None, random_state=0)
    model = forest.fit(X, censored(time, rng.random(120) < 0.7), weight).model_
    queries = training_queries(model) if out_of_bag else Queries(training_codes(model))
    table = rng.normal(size=(120, 5))
    by_row = read_one(model, queries, WeightRows()) @ table[model.ranks]
    assert average(model, queries, table, 2) == pytest.approx(by_row, rel=1e-12, abs=1e-14)


def test_few_queries_need_the_means_of_their_own_leaves_only():
    rng = np.random.default_rng(1)
    X, time = rng.normal(size=(400, 3)), rng.exponential(size=400)
    forest = CensoredQuantileForest(n_estimators=30, working_model=None, random_state=0)
    model = forest.fit(X, time).model_
    table, queries = rng.normal(size=(400, 5)), training_queries(model)
    together = average(model, queries, table, None)
    for rows in ([0], [7, 90]):
        few = queries.take(np.array(rows))
        wanted = find_wanted(model, few, None)
        assert 0 < wanted.sum() <= 30 * len(rows) < len(wanted)
        assert np.array_equal(average(model, few, table, None), together[rows])
    assert find_wanted(model, queries, None) is None


def test_a_row_that_every_tree_has_drawn_has_no_average():
    X, time = np.arange(60.0)[:, np.newaxis], np.arange(1.0, 61.0)
    forest = CensoredQuantileForest(n_estimators=1, random_state=0).fit(X, time)
    model = forest.model_
    drawn = np.diff(forest.weights_oob().indptr) == 0
    means = average(model, training_queries(model), np.ones((60, 1)), None)[:, 0]
    assert drawn.any()
    assert np.isnan(means[drawn]).all()
    assert means[~drawn] == pytest.approx(1.0)
