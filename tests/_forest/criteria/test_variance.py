"""Variance: times are scaled by a power of two, so that their squares are finite."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf import CensoredQuantileForest
from cqrf._forest.criteria.variance import Variance
from support.labelling import make_rows, write_labels

positive = st.floats(0, allow_nan=False, allow_infinity=False, exclude_min=True)


@given(positive)
def test_the_scale_is_the_largest_power_of_two_up_to_the_largest_time(largest):
    scale = Variance().scaled_to(largest).scale
    assert math.frexp(scale)[0] == 0.5
    assert scale <= largest < 2 * scale


def test_times_of_zero_are_not_scaled():
    assert Variance(scale=8.0).scaled_to(0.0) == Variance(scale=1.0)


@pytest.mark.parametrize("scale", [2.0**-300, 0.25, 2.0**900])
def test_labels_are_divided_by_the_scale_exactly(scale):
    rng = np.random.default_rng(0)
    time = np.sort(rng.exponential(size=40))
    rows = make_rows(time, np.ones(40, bool))
    plain = write_labels(Variance(), rows)
    scaled = write_labels(Variance(scale=scale), rows._replace(time=scale * time))
    assert np.array_equal(plain.labels, scaled.labels)


@pytest.mark.parametrize("unit", [2.0**996, 2.0**-996])
def test_the_forest_does_not_depend_on_the_unit_of_time(unit):
    # The squares of these times, about 1e300 and 1e-300, are not finite or not above zero.
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 2))
    time = np.exp(X[:, 0]) * rng.uniform(1, 2, 120)
    settings = {"criterion": "variance", "n_estimators": 4, "random_state": 0, "n_jobs": 1}
    plain = CensoredQuantileForest(**settings).fit(X, time)
    scaled = CensoredQuantileForest(**settings).fit(X, unit * time)
    assert (plain.model_.forest.feature >= 0).sum() > 10
    assert np.array_equal(plain.model_.forest.leaf_rows, scaled.model_.forest.leaf_rows)
    assert np.array_equal(unit * plain.predict(X), scaled.predict(X))


def test_times_of_1e300_are_split():
    time = np.where(np.arange(40) < 20, 1e300, 1.7e300)
    X = (np.arange(40) >= 20).astype(float)[:, np.newaxis]
    forest = CensoredQuantileForest(
        criterion="variance", n_estimators=3, honest=False, max_samples=None, random_state=0
    ).fit(X, time)
    assert forest.predict([[0.0], [1.0]]).tolist() == [1e300, 1.7e300]
