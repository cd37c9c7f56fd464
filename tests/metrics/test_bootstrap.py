"""Bootstrap intervals: resamples are rows drawn with replacement; and the skill as a metric."""

import numpy as np
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf.datasets import make_aft
from cqrf.metrics import (
    Interval,
    bootstrap_interval,
    censored_quantile_loss,
    concordance_index,
    crps,
    quantile_skill,
)

LEVELS = (0.25, 0.5, 0.75)


@pytest.fixture(scope="module")
def data():
    return make_aft(200, 3, random_state=0), make_aft(150, 3, random_state=1)


@pytest.fixture(scope="module")
def forest(data):
    return CensoredQuantileForest(n_estimators=30, random_state=0).fit(data[0].X, data[0].y)


@pytest.fixture(scope="module")
def predicted(data, forest):
    return forest.predict(data[1].X, LEVELS, unidentified="clip")


def draw_rows(n, n_boot, seed, groups=None):
    """Rows of each resample, group by group, as the random state gives them."""
    rng = np.random.RandomState(seed)
    groups = np.arange(n) if groups is None else np.asarray(groups)
    labels = list(dict.fromkeys(groups.tolist()))
    for _ in range(n_boot):
        drawn = [labels[i] for i in rng.randint(len(labels), size=len(labels))]
        yield np.concatenate([np.flatnonzero(groups == label) for label in drawn])


@pytest.mark.parametrize("grouped", [False, True], ids=["rows", "groups"])
def test_a_resample_is_a_table_of_rows_drawn_with_replacement(data, forest, grouped):
    y, mean = data[1].y, forest.predict_mean(data[1].X, beyond="extend")
    groups = np.random.default_rng(0).integers(0, 40, 150) if grouped else None
    found = bootstrap_interval(
        concordance_index, y, mean, groups=groups, n_boot=60, confidence=0.8, random_state=4
    )
    values = [concordance_index(y[rows], mean[rows]) for rows in draw_rows(150, 60, 4, groups)]
    assert found.estimate == concordance_index(y, mean)
    np.testing.assert_allclose(found[1:], np.quantile(values, [0.1, 0.9]), atol=1e-12)


def test_metrics_of_several_levels_have_an_interval_each(data, predicted):
    train, test = data
    found = bootstrap_interval(
        censored_quantile_loss, train.y, test.y, predicted, LEVELS, n_boot=50, random_state=0
    )
    values = [
        censored_quantile_loss(train.y, test.y[rows], predicted[rows], LEVELS)
        for rows in draw_rows(150, 50, 0)
    ]
    ends = np.quantile(values, [0.025, 0.975], axis=0)
    np.testing.assert_allclose([found.lower, found.upper], ends, rtol=1e-10)
    assert found.estimate.shape == (3,)


def test_options_reach_the_metric(data, forest):
    _, test = data
    y = censored(-test.y["time"], test.y["event"])
    mean = forest.predict_mean(test.X, beyond="extend")
    right = bootstrap_interval(concordance_index, test.y, mean, n_boot=20, random_state=0)
    left = bootstrap_interval(
        concordance_index, y, -mean, censoring="left", n_boot=20, random_state=0
    )
    assert left == pytest.approx(right)
    train = data[0].y
    named = bootstrap_interval(
        crps, y_train=train, y_test=test.y, survival=forest.predict_survival(test.X), n_boot=3
    )
    assert named.estimate == crps(train, test.y, forest.predict_survival(test.X))


def test_rows_of_no_weight_are_not_drawn(data, forest):
    y, mean = data[1].y, forest.predict_mean(data[1].X, beyond="extend")
    weight = np.r_[np.ones(100), np.zeros(50)]
    some = bootstrap_interval(concordance_index, y, mean, sample_weight=weight, random_state=0)
    fewer = bootstrap_interval(concordance_index, y[:100], mean[:100], random_state=0)
    assert some == pytest.approx(fewer)


def test_a_seed_repeats_the_interval(data, forest):
    y, mean = data[1].y, forest.predict_mean(data[1].X, beyond="extend")
    one, two, other = (
        bootstrap_interval(concordance_index, y, mean, n_boot=50, random_state=seed)
        for seed in (1, np.random.RandomState(1), 2)
    )
    assert one == two
    assert one[1:] != other[1:]
    assert isinstance(one, Interval)


def test_too_few_determined_resamples_give_no_interval():
    """With one event of three rows, more than a tenth of the resamples have no pair."""
    y = censored([1.0, 2.0, 3.0], [True, False, False])
    found = bootstrap_interval(concordance_index, y, [1.0, 2.0, 3.0], random_state=0)
    assert found.estimate == 1
    assert np.isnan(found[1:]).all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"confidence": 95}, "confidence=95 must be a number between 0 and 1"),
        ({"n_boot": 0}, "n_boot=0 must be a whole number of at least 1"),
        ({"groups": [1, 1, 1]}, "at least two groups; found 1"),
        ({"groups": [1, 1]}, r"groups has shape \(2,\)"),
        ({"sample_weight": [1, 0, 0]}, "at least two rows; found 1"),
    ],
)
def test_mistakes_are_named(options, said):
    y = censored([1.0, 2.0, 3.0], [True, True, True])
    with pytest.raises(ValueError, match=said):
        bootstrap_interval(concordance_index, y, [1.0, 2.0, 3.0], **options)


def test_two_groups_are_enough():
    y = censored(np.arange(1.0, 7.0), np.ones(6, dtype=bool))
    found = bootstrap_interval(
        concordance_index, y, np.arange(6.0), groups=[0, 0, 0, 1, 1, 1], random_state=0
    )
    assert found == Interval(1.0, 1.0, 1.0)


def test_a_metric_without_rows_is_named():
    def nothing(*, sample_weight=None):
        return 0.0

    with pytest.raises(ValueError, match="nothing must have an argument y_test or y"):
        bootstrap_interval(nothing)


def test_a_metric_that_cannot_be_resampled_is_named():
    def plain(y):
        return 0.0

    with pytest.raises(ValueError, match="plain must have an argument sample_weight"):
        bootstrap_interval(plain, [1.0, 2.0])
    with pytest.raises(ValueError, match="metric='crps' must be a function"):
        bootstrap_interval("crps", [1.0, 2.0])


@pytest.mark.parametrize("side", ["right", "left"])
def test_skill_is_that_of_the_forest(data, side):
    train, test = data
    sign = 1 if side == "right" else -1
    y, y_test = (censored(sign * each.y["time"], each.y["event"]) for each in (train, test))
    weight = np.random.default_rng(0).uniform(0.5, 2, 200).astype(np.float32)
    forest = CensoredQuantileForest(n_estimators=30, censoring=side, random_state=0)
    forest.fit(train.X, y, weight)
    levels = forest.model_.score_levels
    predicted = forest.predict(test.X, levels, unidentified="clip")
    found = quantile_skill(y, y_test, predicted, levels, censoring=side, train_weight=weight)
    assert found == pytest.approx(forest.score(test.X, y_test), rel=1e-6)


def test_skill_with_entry_times_and_a_single_level():
    X, y, _, _ = make_aft(200, 3, random_state=0)
    late = censored(y["time"], y["event"], np.linspace(0, 0.5, 200) * y["time"])
    forest = CensoredQuantileForest(n_estimators=30, random_state=0).fit(X, late)
    levels = forest.model_.score_levels
    predicted = forest.predict(X, levels, unidentified="clip")
    assert quantile_skill(late, late, predicted, levels) == pytest.approx(forest.score(X, late))
    predicted = forest.predict(X, 0.5, unidentified="clip")
    found = quantile_skill(late, y, predicted, 0.5)
    column = quantile_skill(late, y, predicted[:, np.newaxis], [0.5])
    assert found == column
    given = quantile_skill(late, y, predicted, 0.5, baseline=[np.median(y["time"])])
    assert found != given
    with pytest.raises(ValueError, match=r"baseline has shape \(2,\); expected one time"):
        quantile_skill(late, y, predicted, 0.5, baseline=[1.0, 2.0])


def test_where_the_baseline_is_perfect_the_skill_is_zero_or_nothing():
    y = censored([2.0, 2.0], [True, True])
    assert quantile_skill(y, y, [2.0, 2.0], 0.5) == 0
    assert quantile_skill(y, y, [2.0, 3.0], 0.5) == -np.inf
