"""The estimator's arguments become the numbers that growing needs, or errors that name them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cqrf import CensoredQuantileForest
from cqrf._forest.criteria import CRITERIA
from cqrf._input.units import Units
from cqrf._model.settings import (
    draw_seed,
    plain_settings,
    read_bins,
    read_growing,
    read_sample_size,
    read_settings,
    read_solver,
)

DEFAULTS = {"min_samples_split": 2, "min_samples_leaf": 1}


def grow(n_features=20, **changes):
    return read_growing(CensoredQuantileForest(**{**DEFAULTS, **changes}), n_features)


def refuse(message, **changes):
    """Growing must raise, and say the argument's name with what it found."""
    ((name, value),) = changes.items()
    with pytest.raises(ValueError, match=re.escape(f"{name}={value!r}")) as caught:
        grow(**changes)
    assert message in str(caught.value)


# Criterion and its levels


@pytest.mark.parametrize("criterion", CRITERIA)
def test_each_criterion_has_parameters_of_its_own_class(criterion):
    assert type(grow(criterion=criterion).criterion) is CRITERIA[criterion].parameters
    assert [entry.parameters for entry in CRITERIA.values()].count(
        CRITERIA[criterion].parameters
    ) == 1


@pytest.mark.parametrize("criterion", ["gini", "Quantile", None, 0, ["quantile"]])
def test_an_unknown_criterion_is_told_the_known_ones(criterion):
    refuse("choose one of censored_quantile, quantile, variance, logrank", criterion=criterion)


def levels_of(**changes):
    return grow(**changes).criterion.levels.tolist()


def test_a_split_looks_at_five_levels_or_at_the_three_classes_of_the_paper():
    assert levels_of() == [0.1, 0.3, 0.5, 0.7, 0.9]
    assert levels_of(criterion="quantile") == [0.1, 0.5, 0.9]


@pytest.mark.parametrize("criterion", ["censored_quantile", "quantile"])
def test_split_quantiles_are_sorted_and_each_is_there_once(criterion):
    found = levels_of(criterion=criterion, split_quantiles=[0.9, 0.2, 0.9, 0.5])
    assert found == [0.2, 0.5, 0.9]
    assert levels_of(criterion=criterion, split_quantiles=np.array([0.5])) == [0.5]


@pytest.mark.parametrize("criterion", ["variance", "logrank"])
def test_split_quantiles_do_not_concern_the_other_criteria(criterion):
    assert grow(criterion=criterion) == grow(criterion=criterion, split_quantiles=[0.2, 0.4])


@pytest.mark.parametrize(
    "split_quantiles", [[], [0.0, 0.5], [0.5, 1.0], [-0.1], [1.5], [0.5, np.nan]]
)
def test_split_quantiles_lie_strictly_between_zero_and_one(split_quantiles):
    refuse("must be levels strictly between 0 and 1", split_quantiles=split_quantiles)


# Features


@pytest.mark.parametrize(
    ("max_features", "n_features", "n_candidates"),
    [
        (None, 20, 20),
        ("sqrt", 20, 4),
        ("sqrt", 25, 5),
        ("sqrt", 1, 1),
        ("log2", 20, 4),
        ("log2", 16, 4),
        ("log2", 1, 1),
        (1, 20, 1),
        (20, 20, 20),
        (np.int64(7), 20, 7),
        (1.0, 20, 20),
        (0.5, 20, 10),
        (0.5, 7, 4),
        (0.29, 100, 29),
        (0.01, 20, 1),
        (np.float32(0.25), 20, 5),
    ],
)
def test_max_features_is_a_number_of_candidates(max_features, n_features, n_candidates):
    limits = grow(max_features=max_features, n_features=n_features).limits
    assert limits.n_candidates == n_candidates
    assert type(limits.n_candidates) is int


@pytest.mark.parametrize("max_features", [0, -1, 21])
def test_a_count_of_features_lies_between_one_and_all(max_features):
    refuse("must lie between 1 and the 20 features", max_features=max_features)


@pytest.mark.parametrize("max_features", [1.01, 0.0, -0.1, np.nan, True, [3]])
def test_a_share_of_features_lies_between_zero_and_one(max_features):
    refuse("must be a number above 0 and at most 1", max_features=max_features)


def test_an_unknown_name_for_max_features_is_told_the_known_ones():
    refuse("choose one of sqrt, log2", max_features="auto")


# Stopping


def test_no_depth_is_no_limit():
    assert grow().limits.max_depth > 10**9
    assert grow(max_depth=1).limits.max_depth == 1
    assert grow(max_depth=np.int64(7)).limits.max_depth == 7


@pytest.mark.parametrize(
    ("name", "least"), [("max_depth", 1), ("min_samples_split", 2), ("min_samples_leaf", 1)]
)
def test_counts_are_accepted_from_their_least_on(name, least):
    assert getattr(grow(**{name: least}).limits, name) == least
    for value in (least - 1, -1, float(least), True, "3"):
        refuse(f"must be a whole number of at least {least}", **{name: value})


@pytest.mark.parametrize("name", ["min_samples_split", "min_samples_leaf", "min_child_fraction"])
def test_a_limit_cannot_be_left_out(name):
    refuse("must be a", **{name: None})


def test_a_child_keeps_at_most_half_of_its_parent():
    assert grow(min_child_fraction=0.0).limits.min_child_fraction == 0.0
    assert grow(min_child_fraction=0.5).limits.min_child_fraction == 0.5
    for value in (-0.01, 0.51, np.nan, True, "0.1"):
        refuse("must be a number from 0 to 0.5", min_child_fraction=value)


def test_all_settings_arrive_where_they_belong():
    forest = CensoredQuantileForest(
        n_estimators=7,
        criterion="quantile",
        split_quantiles=[0.25, 0.75],
        honest=False,
        max_samples=0.4,
        bootstrap=True,
        max_features=3,
        min_samples_leaf=6,
        min_samples_split=5,
        min_child_fraction=0.125,
        max_depth=4,
        max_bins=8,
        censoring="left",
        censoring_survival="knn",
        n_neighbors=0.3,
        solver="argmin",
        bag_size=2,
    )
    settings = read_settings(forest, 20, seed=11)
    limits = settings.growing.limits
    assert (limits.n_candidates, limits.max_depth, limits.min_child_fraction) == (3, 4, 0.125)
    assert (limits.min_samples_split, limits.min_samples_leaf) == (5, 6)
    assert settings.growing.criterion.levels.tolist() == [0.25, 0.75]
    assert (settings.n_trees, settings.max_bins, settings.seed) == (7, 8, 11)
    assert settings.censoring == "left"
    solver = settings.solver
    assert vars(solver) == vars(read_solver(forest, "left"))
    assert vars(solver) != vars(read_solver(forest.set_params(solver="root"), "left"))
    codes = np.arange(100, dtype=np.int32)
    sampling = settings.sample(Units(codes, 100, "rows"))
    assert sampling.unit_of_row is codes
    assert sampling[1:] == (100, 40, True, False, 2)


@pytest.mark.parametrize(
    ("settings", "n_rows", "n_features", "expected"),
    [
        ({}, 101, 20, (True, 11, 5)),
        ({}, 100, 20, (False, 22, 10)),
        ({"min_samples_split": 7, "min_samples_leaf": 2}, 100, 20, (False, 14, 4)),
        ({"honest": True}, 100, 20, (True, 11, 5)),
        ({"honest": False}, 100, 20, (False, 11, 5)),
        ({"bag_size": 2}, 100, 20, (True, 11, 5)),
    ],
)
def test_direct_trees_of_wide_tables_are_not_honest(settings, n_rows, n_features, expected):
    found = read_settings(CensoredQuantileForest(**settings), n_features, seed=0)
    given = found.sample(Units(np.arange(7, dtype=np.int32), 7, "groups"))
    sampling, growing = found.grow_direct(given, n_rows, n_features)
    assert (
        sampling.honest,
        growing.limits.min_samples_split,
        growing.limits.min_samples_leaf,
    ) == expected
    assert sampling._replace(honest=given.honest) == given
    assert growing.criterion is found.growing.criterion


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_estimators", 0),
        ("honest", 1),
        ("honest", "no"),
        ("bootstrap", "no"),
        ("bag_size", 0),
        ("max_bins", 1),
        ("censoring", "both"),
        ("censoring_survival", "cox"),
        ("solver", "newton"),
        ("criterion", "gini"),
        ("max_features", 0),
    ],
)
def test_every_setting_is_checked_and_named(name, value):
    with pytest.raises(ValueError, match=f"{name}={value!r}"):
        read_settings(CensoredQuantileForest(**{name: value}), 20, seed=0)


def test_a_seed_gives_a_seed_and_a_generator_goes_on():
    assert draw_seed(3) == draw_seed(3) == draw_seed(np.random.RandomState(3))
    generator = np.random.RandomState(3)
    assert draw_seed(generator) == draw_seed(3)
    assert draw_seed(generator) != draw_seed(3)


def test_memory_is_estimated_without_a_draw_from_the_generator():
    generator = np.random.RandomState(3)
    CensoredQuantileForest(random_state=generator).estimate_memory(100, 5)
    assert draw_seed(generator) == draw_seed(3)


def test_plain_settings_are_what_json_can_hold():
    forest = CensoredQuantileForest(
        n_estimators=np.int64(5),
        split_quantiles=np.array([0.2, 0.5]),
        random_state=np.random.RandomState(0),
    )
    plain = plain_settings(forest)
    assert plain.keys() == forest.get_params().keys()
    assert (plain["n_estimators"], plain["split_quantiles"]) == (5, [0.2, 0.5])
    assert type(plain["n_estimators"]) is int
    assert plain["random_state"] is None
    with pytest.raises(ValueError, match=r"n_jobs=.* cannot be kept in a model file"):
        plain_settings(CensoredQuantileForest(n_jobs=object()))


# Samples


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize(
    ("max_samples", "size"),
    [(None, 200), (1, 1), (200, 200), (np.int64(7), 7), (0.5, 100), (1.0, 200), (1e-9, 1)],
)
def test_a_tree_draws_all_a_count_or_a_share(max_samples, size, bootstrap):
    found = read_sample_size(max_samples, 200, bootstrap)
    assert found == size
    assert type(found) is int


@pytest.mark.parametrize(
    ("n", "size"),
    [
        (1, 1),
        (2, 1),
        (49, 24),
        (50, 40),
        (418, 334),
        (1000, 800),
        (1500, 800),
        (1602, 801),
        (10**6, 500_000),
    ],
)
def test_by_default_a_tree_draws_most_rows_of_a_small_table_and_half_of_a_large_one(n, size):
    auto = CensoredQuantileForest().max_samples
    assert read_sample_size(auto, n, bootstrap=False) == size
    if n > 1:
        assert read_sample_size(auto, n, bootstrap=False, bag_size=2) == n // 2


def test_only_the_bootstrap_may_draw_more_than_there_are():
    assert read_sample_size(201, 200, bootstrap=True) == 201
    with pytest.raises(ValueError, match="max_samples=201 is more than the 200 training rows"):
        read_sample_size(201, 200, bootstrap=False)
    with pytest.raises(ValueError, match="max_samples=9 is more than the 8 training clusters"):
        read_sample_size(9, 8, bootstrap=False, noun="clusters")


@pytest.mark.parametrize("max_samples", [0, -1])
def test_a_tree_draws_at_least_one(max_samples):
    with pytest.raises(ValueError, match=f"max_samples={max_samples} must be a whole number"):
        read_sample_size(max_samples, 200, bootstrap=True)


@pytest.mark.parametrize("max_samples", [1.01, 0.0, -0.1, np.nan, True, "half", [3]])
def test_a_share_of_samples_lies_between_zero_and_one(max_samples):
    message = re.escape(f"max_samples={max_samples!r} must be a number above 0 and at most 1")
    with pytest.raises(ValueError, match=message):
        read_sample_size(max_samples, 200, bootstrap=True)


# Bins


@pytest.mark.parametrize("max_bins", [2, 16, 255, np.int64(100)])
def test_bins_fit_into_a_byte_with_one_code_to_spare(max_bins):
    assert read_bins(max_bins) == max_bins


@pytest.mark.parametrize("max_bins", [1, 0, 256, 1000, 16.0, None, True, "16"])
def test_other_numbers_of_bins_are_refused(max_bins):
    with pytest.raises(ValueError, match=re.escape(f"max_bins={max_bins!r} must be")):
        read_bins(max_bins)
