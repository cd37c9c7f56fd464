"""The estimator's arguments become the numbers that growing needs, or errors that name them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cqrf import CensoredQuantileForest
from cqrf._forest.labels import CENSORED_QUANTILE, LOGRANK, QUANTILE, VARIANCE
from cqrf._model.settings import read_bins, read_growing, read_sample_size

DEFAULTS = {
    "criterion": "censored_quantile",
    "split_quantiles": None,
    "max_features": None,
    "max_depth": None,
    "min_samples_split": 2,
    "min_samples_leaf": 1,
    "min_child_fraction": 0.05,
    "n_features": 20,
}


def grow(**changes):
    return read_growing(**{**DEFAULTS, **changes})


def refuse(message, **changes):
    """Growing must raise, and say the argument's name with what it found."""
    ((name, value),) = changes.items()
    with pytest.raises(ValueError, match=re.escape(f"{name}={value!r}")) as caught:
        grow(**changes)
    assert message in str(caught.value)


# Criterion and its levels


@pytest.mark.parametrize(
    ("criterion", "code"),
    [
        ("censored_quantile", CENSORED_QUANTILE),
        ("quantile", QUANTILE),
        ("variance", VARIANCE),
        ("logrank", LOGRANK),
    ],
)
def test_each_criterion_has_its_own_code(criterion, code):
    assert grow(criterion=criterion).criterion == code


def test_the_codes_of_the_criteria_differ():
    assert len({CENSORED_QUANTILE, QUANTILE, VARIANCE, LOGRANK}) == 4


@pytest.mark.parametrize("criterion", ["gini", "Quantile", None, 0, ["quantile"]])
def test_an_unknown_criterion_is_told_the_known_ones(criterion):
    refuse("choose one of censored_quantile, quantile, variance, logrank", criterion=criterion)


def test_a_split_looks_at_five_levels_or_at_the_three_classes_of_the_paper():
    assert grow().levels == (0.1, 0.3, 0.5, 0.7, 0.9)
    assert grow(criterion="quantile").levels == (0.1, 0.5, 0.9)


@pytest.mark.parametrize("criterion", ["censored_quantile", "quantile"])
def test_split_quantiles_are_sorted_and_each_is_there_once(criterion):
    levels = grow(criterion=criterion, split_quantiles=[0.9, 0.2, 0.9, 0.5]).levels
    assert levels == (0.2, 0.5, 0.9)
    assert all(type(level) is float for level in levels)
    assert grow(criterion=criterion, split_quantiles=np.array([0.5])).levels == (0.5,)


@pytest.mark.parametrize("criterion", ["variance", "logrank"])
def test_split_quantiles_do_not_concern_the_other_criteria(criterion):
    assert (
        grow(criterion=criterion).levels
        == grow(criterion=criterion, split_quantiles=[0.2, 0.4]).levels
    )


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
    growing = grow(max_features=max_features, n_features=n_features)
    assert growing.n_candidates == n_candidates
    assert type(growing.n_candidates) is int


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
    assert grow().max_depth > 10**9
    assert grow(max_depth=1).max_depth == 1
    assert grow(max_depth=np.int64(7)).max_depth == 7


@pytest.mark.parametrize(
    ("name", "least"), [("max_depth", 1), ("min_samples_split", 2), ("min_samples_leaf", 1)]
)
def test_counts_are_accepted_from_their_least_on(name, least):
    assert getattr(grow(**{name: least}), name) == least
    for value in (least - 1, -1, float(least), True, "3"):
        refuse(f"must be a whole number of at least {least}", **{name: value})


@pytest.mark.parametrize("name", ["min_samples_split", "min_samples_leaf", "min_child_fraction"])
def test_a_limit_cannot_be_left_out(name):
    refuse("must be a", **{name: None})


def test_a_child_keeps_at_most_half_of_its_parent():
    assert grow(min_child_fraction=0.0).min_child_fraction == 0.0
    assert grow(min_child_fraction=0.5).min_child_fraction == 0.5
    for value in (-0.01, 0.51, np.nan, True, "0.1"):
        refuse("must be a number from 0 to 0.5", min_child_fraction=value)


def test_all_settings_arrive_where_they_belong():
    growing = grow(
        criterion="quantile",
        split_quantiles=[0.25, 0.75],
        max_features=3,
        max_depth=4,
        min_samples_split=5,
        min_samples_leaf=6,
        min_child_fraction=0.125,
    )
    assert growing == (QUANTILE, (0.25, 0.75), 3, 4, 5, 6, 0.125)


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
        read_sample_size(9, 8, bootstrap=False, unit="clusters")


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
