"""The linear model of effects: wide tables, features without values, rows one by one."""

import numpy as np
import pytest

from cqrf import censored
from cqrf._effects.linear import SHARE, _middles
from cqrf._model.queries import encode_all
from cqrf._working_model.design import MOST_COLUMNS
from oracles import effects as oracle
from support.treated import make_forest


def fit_wide(n_features, seed=0, n=120):
    """Effects that rise with the first feature; the second is constant, the third is 0 or 1."""
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(n, n_features)), rng.integers(0, 2, n)
    X[:, 1], X[:, 2] = 1.0, X[:, 2] > 0
    time = np.exp(0.3 * rng.normal(size=n) + w * X[:, 0])
    forest = make_forest().fit(X, censored(time, np.full(n, True)), w, propensity=0.5)
    return X, forest.model_


@pytest.mark.parametrize("n_features", [4, MOST_COLUMNS + 10])
def test_coefficients_predict_what_the_basis_of_the_rows_does(n_features):
    X, model = fit_wide(n_features)
    linear = model.linear
    assert (linear.directions is None) == (n_features == 4)
    assert (linear.factor > 0) == (n_features == 4)  # among so many features it finds no signal
    linear.factor = 0.5
    response = np.random.default_rng(1).normal(size=(120, 2)) * linear.treatment[:, np.newaxis]
    coefficients, at_rows = linear.fit(response)
    assert at_rows.shape == (120, 2)
    for k in range(2):
        slopes = oracle.ridge_slopes(
            linear.basis, linear.treatment, response[:, k], linear.weight, linear.penalty
        )
        expected = SHARE * 0.5 * linear.basis @ slopes
        found = linear.predict(encode_all(model.effect, X), coefficients)[:, k]
        np.testing.assert_allclose(found[model.effect.order], expected, atol=1e-9)


def test_without_features_that_vary_nothing_is_added():
    rng = np.random.default_rng(2)
    X, w = np.ones((80, 2)), np.arange(80) % 2
    y = censored(rng.exponential(size=80), np.full(80, True))
    model = make_forest().fit(X, y, w, propensity=0.5).model_
    assert model.linear.factor == 0.0
    coefficients, at_rows = model.linear.fit(rng.normal(size=(80, 1)))
    assert not coefficients.any()
    assert not at_rows.any()


def test_a_bin_is_taken_for_its_middle():
    assert _middles(np.array([1.0, 3.0, 4.0])).tolist() == [0.0, 2.0, 3.5, 4.5]
    assert _middles(np.array([0.5])).tolist() == [0.0, 1.0]
    assert _middles(np.array([])).tolist() == [0.0]
