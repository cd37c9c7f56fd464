"""What must not change an effect: the order of rows and columns, units of the features.

Units of time and of weights, threads and names of arms stand in tests/test_effects.py; that copies
of rows in one cluster widen no interval, too. A whole weight is not the same as copies here: limits
of the forests behind an effect count rows.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cqrf import CensoredQuantileForest
from support.treated import make_data, make_forest

HORIZON = 1.5
ROWS = 300


@pytest.fixture(scope="module")
def data():
    return make_data(ROWS)


def small(**settings):
    nuisance = CensoredQuantileForest(n_estimators=40, working_model=None, **settings)
    return make_forest(24, nuisance_forest=nuisance)


def answers(forest, X):
    """Effects, curves and the average effect with its error."""
    average = forest.ate(horizon=HORIZON)
    return [
        forest.effect(X, horizon=HORIZON),
        forest.effect(X, "survival", times=[0.5, 1.0]),
        forest.predict_survival(X, [0.5, 1.0], arm=1),
        [average.estimate, average.standard_error],
    ]


def assert_close(found, expected, **tolerance):
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, **({"atol": 1e-8} | tolerance))


def test_rows_in_any_order_that_keeps_that_of_their_clusters(data):
    """Trees draw clusters, numbered as they appear in the table and in the table of each arm.

    So the second row of a cluster may stand anywhere behind the first, if both are of one arm. The
    first row stays first: its arm is arm 0.
    """
    number = np.empty(ROWS, int)
    for arm in (0, 1):
        number[data.treatment == arm] = np.arange((data.treatment == arm).sum())
    groups = 2 * (number // 2) + data.treatment
    moved = np.arange(ROWS) + np.random.default_rng(9).uniform(0, ROWS, ROWS)
    order = np.argsort(np.where(number % 2 == 0, np.arange(ROWS), moved))
    assert (order != np.arange(ROWS)).mean() > 0.9
    forest = small().fit(data.X, data.y, data.treatment, groups=groups)
    turned = small().fit(data.X[order], data.y[order], data.treatment[order], groups=groups[order])
    assert_close(answers(turned, data.X[:40]), answers(forest, data.X[:40]))
    at = {"horizon": HORIZON}
    assert_allclose(turned.effect_oob(**at), forest.effect_oob(**at)[order], atol=1e-8)


def test_columns_in_any_order(data):
    """Every split of a node of many rows sees every column; the ridge model has no order.

    Propensities are known: splits on the arm alone gain equally much in many places.
    """
    order = [3, 0, 4, 1, 2]
    limits = {"max_features": None, "min_samples_leaf": 15, "min_samples_split": 40}
    forest, turned = small(**limits), small(**limits)
    for each, X in ((forest, data.X), (turned, data.X[:, order])):
        each.set_params(min_samples_arm=20).fit(X, data.y, data.treatment, propensity=0.5)
    assert_close(answers(turned, data.X[:40, order]), answers(forest, data.X[:40]))


@pytest.mark.parametrize("change", [np.exp, np.arctan])
def test_rising_features_give_the_same_effect_trees(data, change):
    """The ridge model that corrects effects is linear in the features: only trees are the same."""
    forest, changed = (
        small().fit(X, data.y, data.treatment).model_ for X in (data.X, change(data.X))
    )
    assert_array_equal(changed.nuisances.residual, forest.nuisances.residual)
    assert_array_equal(changed.effect.forest.leaf_rows, forest.effect.forest.leaf_rows)
    assert_array_equal(changed.effect.forest.leaf_offsets, forest.effect.forest.leaf_offsets)
    assert len(forest.effect.forest.leaf_offsets) > 2 * 24


def test_features_in_any_unit(data):
    factors = np.array([10.0, 3.0, 0.25, 1.0, 7.0])
    forest = small().fit(data.X, data.y, data.treatment)
    changed = small().fit(data.X * factors + 2.0, data.y, data.treatment)
    found, expected = answers(changed, data.X * factors + 2.0), answers(forest, data.X)
    assert_close(found, expected, atol=1e-6)
