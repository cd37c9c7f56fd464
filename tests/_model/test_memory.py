"""The memory that a fit is said to need."""

import pickle

import numpy as np
import pytest

from cqrf import CensoredQuantileForest
from cqrf.datasets import make_aft


def estimate(n=10_000, p=20, **settings):
    settings = {"n_jobs": 1, "working_model": None, **settings}
    return CensoredQuantileForest(**settings).estimate_memory(n, p)


@pytest.mark.parametrize(
    "settings",
    [{}, {"honest": False}, {"min_samples_split": 40}, {"max_depth": 3}, {"max_samples": 0.3}],
    ids=str,
)
def test_the_model_is_about_as_large_as_it_is_said_to_be(settings):
    data = make_aft(1500, 6, random_state=0)
    settings = {"n_estimators": 60, "random_state": 0, "working_model": None, **settings}
    forest = CensoredQuantileForest(**settings).fit(data.X, data.y)
    said = forest.estimate_memory(1500, 6).model
    assert said == pytest.approx(len(pickle.dumps(forest.model_)), rel=0.25)


@pytest.mark.parametrize("settings", [{}, {"n_estimators": 7}, {"bag_size": 2}], ids=str)
def test_with_a_working_model_it_is_as_large_as_after_the_first_prediction(settings):
    data = make_aft(1500, 6, random_state=0)
    settings = {"n_estimators": 60, "random_state": 0, "working_model": "cox", **settings}
    forest = CensoredQuantileForest(**settings).fit(data.X, data.y)
    forest.predict(data.X[:1])
    said = forest.estimate_memory(1500, 6).model
    kept = len(pickle.dumps((forest.model_, forest.model_.residual_trees)))
    assert said == pytest.approx(kept, rel=0.25)


def test_direct_trees_of_a_wide_table_hold_more_rows():
    data = make_aft(400, 80, random_state=0)
    sizes = []
    for honest in ("auto", True):
        forest = CensoredQuantileForest(
            n_estimators=500, honest=honest, working_model="cox", random_state=0
        )
        forest.fit(data.X, data.y).predict(data.X[:1])
        kept = len(pickle.dumps((forest.model_, forest.model_.residual_trees)))
        said = forest.estimate_memory(400, 80).model
        assert said == pytest.approx(kept, rel=0.25)
        sizes.append(said)
    assert sizes[0] > sizes[1] + 250 * 160 * 4


@pytest.mark.parametrize("p", [20, 1000])
def test_a_working_model_needs_more(p):
    without, found = estimate(p=p), estimate(p=p, working_model="cox")
    assert found.model > without.model + 10_000 * 8 + p * 256 * 8
    assert found.fit > without.fit + 10_000 * p
    single = {"n_estimators": 1, "p": p}
    assert estimate(**single, working_model="cox") == estimate(**single)


def test_more_of_anything_needs_more():
    base = estimate()
    more = [{"n": 20_000}, {"p": 40}, {"n_estimators": 1000}, {"max_samples": 0.9}]
    for changes in (*more, {"min_samples_leaf": 1, "min_samples_split": 2}):
        found = estimate(**changes)
        assert found.fit > base.fit
        assert found.model >= base.model
    assert estimate(n_jobs=8).fit > base.fit
    assert estimate(n_jobs=8).model == base.model


@pytest.mark.parametrize("changes", [{"n": 20_000}, {"p": 40}, {"n_estimators": 1000}], ids=str)
def test_more_of_anything_needs_more_with_a_working_model(changes):
    base, found = estimate(working_model="cox"), estimate(**changes, working_model="cox")
    assert found.fit > base.fit
    assert found.model > base.model


def test_limits_of_depth_and_bins_make_trees_smaller():
    base = estimate(p=1)
    assert estimate(p=1, max_depth=2).model < base.model
    assert estimate(p=1, max_bins=3).model < base.model


def test_a_fit_needs_more_than_the_model():
    found = estimate()
    assert found.fit > found.model > 10_000 * 20
    assert all(isinstance(number, int) for number in found)


@pytest.mark.parametrize(("n", "p"), [(0, 5), (5, 0), (1.5, 2), (True, 2)])
def test_sizes_are_counts(n, p):
    with pytest.raises(ValueError, match="must be a whole number of at least 1"):
        estimate(n, p)


def test_settings_are_checked_and_the_generator_is_left_alone():
    with pytest.raises(ValueError, match="max_features=30 must lie between 1 and the 20 features"):
        estimate(max_features=30)
    with pytest.raises(ValueError, match="max_samples=101 is more than the 100 training rows"):
        estimate(100, 20, max_samples=101)
    generator = np.random.RandomState(0)
    estimate(random_state=generator)
    assert generator.randint(10**6) == np.random.RandomState(0).randint(10**6)
