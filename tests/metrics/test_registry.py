"""The registry: a new entry is a scorer, a value of ``evaluate`` and a label; needs are true."""

import numpy as np
import pytest

from cqrf import CensoredQuantileForest
from cqrf.datasets import make_aft
from cqrf.evaluation import evaluate, list_labels
from cqrf.metrics import SCORERS, make_scorer
from cqrf.metrics.metric import Metric, Predictions, choose_levels
from cqrf.metrics.registry import METRICS, register
from cqrf.metrics.scorers import ForestPredictions


@pytest.fixture(scope="module")
def data():
    return make_aft(120, 2, random_state=0)


@pytest.fixture(scope="module")
def forest(data):
    return CensoredQuantileForest(n_estimators=20, random_state=0).fit(data.X, data.y)


@pytest.fixture
def keep_registry(monkeypatch):
    """METRICS as it was, after the test."""
    before = dict(METRICS)
    yield
    METRICS.clear()
    METRICS.update(before)


def mean_error(predictions, *, power=1.0):
    """Mean error of the restricted mean, as if every time were that of an event."""
    return float((np.abs(predictions.mean() - predictions.y_test.time) ** power).mean())


TOY = Metric(
    name="toy",
    key="mean_error",
    label="mean error",
    description="Mean distance of the restricted mean from the observed time.",
    higher_is_better=False,
    needs=("ranking",),
    compute=mean_error,
)


def test_a_new_entry_is_a_scorer(keep_registry, data, forest):
    register(TOY)
    distance = np.abs(forest.predict_mean(data.X, beyond="extend") - data.y["time"])
    assert list(SCORERS)[-1] == "toy"
    assert SCORERS["toy"](forest, data.X, data.y) == pytest.approx(-distance.mean())
    squared = make_scorer("toy", power=2.0)(forest, data.X, data.y)
    assert squared == pytest.approx(-(distance**2).mean())
    with pytest.raises(ValueError, match="'toy' has no option 'times'; it takes power"):
        make_scorer("toy", times=[1.0])


def test_a_new_entry_is_evaluated_and_labelled(keep_registry, data, forest):
    before = evaluate(forest, data.X, data.y)
    register(TOY)
    after = evaluate(forest, data.X, data.y)
    distance = np.abs(forest.predict_mean(data.X, beyond="extend") - data.y["time"])
    assert after.pop("mean_error") == pytest.approx(distance.mean())
    assert after == before
    assert list_labels()["mean_error"] == "mean error"
    assert list(list_labels()) == list(evaluate(forest, data.X, data.y))
    assert list(list_labels()) == list(evaluate(forest))


def test_an_entry_without_a_key_is_not_evaluated(keep_registry, data, forest):
    def fail(predictions):
        raise AssertionError("computed in vain")

    before = evaluate(forest, data.X, data.y)
    register(Metric("toy", None, "toy", "", True, (), fail))
    assert evaluate(forest, data.X, data.y) == before
    assert "toy" in SCORERS


def test_an_entry_per_level_has_a_key_per_level_and_the_mean_as_score(keep_registry, data, forest):
    def share_below(predictions):
        levels = predictions.score_levels
        return (predictions.y_test.time[:, np.newaxis] < predictions.quantiles(levels)).mean(0)

    entry = Metric("below", "below_{level}", "at {level}", "", True, ("quantiles",), share_below)
    register(entry)
    predicted = forest.predict(data.X, [0.25, 0.5, 0.75], unidentified="clip")
    expected = (data.y["time"][:, np.newaxis] < predicted).mean(axis=0)
    found = evaluate(forest, data.X, data.y)
    assert [found[f"below_{level}"] for level in (0.25, 0.5, 0.75)] == expected.tolist()
    assert entry.labels()["below_0.25"] == "at 0.25"
    assert make_scorer("below")(forest, data.X, data.y) == pytest.approx(expected.mean())


def test_a_metric_that_raises_is_nan(keep_registry, data, forest):
    def refuse(predictions):
        raise ValueError("cannot be computed")

    register(Metric("toy", "toy", "toy", "", True, (), refuse))
    assert np.isnan(evaluate(forest, data.X, data.y)["toy"])


class Recorder(Predictions):
    """Predictions that note which of them are read."""

    def __init__(self, read, inner):
        object.__setattr__(self, "read", read)
        object.__setattr__(self, "inner", inner)

    def __getattribute__(self, name):
        read, inner = (object.__getattribute__(self, each) for each in ("read", "inner"))
        needs = {"quantiles": "quantiles", "survival": "survival", "mean": "ranking"}
        needs |= {"ranking": "ranking", "y_train": "training_rows"}
        if name in needs:
            read.add(needs[name])
        return getattr(inner, name)

    quantiles = survival = mean = censoring_survival = None


@pytest.fixture
def predictions(data, forest):
    model = forest.model_
    return ForestPredictions(
        y_train=model.training_target,
        y_test=model.training_target,
        censoring="right",
        train_weight=None,
        sample_weight=None,
        score_levels=model.score_levels,
        forest=forest,
        X=data.X,
    )


@pytest.mark.parametrize("name", METRICS)
def test_an_entry_says_what_it_needs(predictions, name):
    read = set()
    METRICS[name].compute(Recorder(read, predictions))
    assert read == set(METRICS[name].needs)


def test_which_direction_is_better():
    better = {name: metric.higher_is_better for name, metric in METRICS.items()}
    assert better == {
        "concordance": True,
        "uno_concordance": True,
        "auc": True,
        "brier": False,
        "crps": False,
        "quantile_loss": False,
    }


@pytest.mark.parametrize(
    ("known_share", "factor"), [(1.0, 1.0), (0.6, 0.8), (0.45, 0.6), (0.3, 0.4), (0.15, 0.2)]
)
def test_levels_that_are_scored_under_censoring(known_share, factor):
    """The largest factor with which the last level, .75, is at most the share that is known."""
    levels = [round(factor * level, 3) for level in (0.25, 0.5, 0.75)]
    assert list(choose_levels(known_share, "right")) == levels
    assert list(choose_levels(known_share, "left")) == [round(1 - x, 3) for x in levels[::-1]]
    assert choose_levels(0.0, "right") == choose_levels(0.01, "right") == (0.025, 0.05, 0.075)


def test_rows_are_ranked_by_one_of_quantile_and_cause(predictions):
    with pytest.raises(ValueError, match="give one of both"):
        predictions.ranking(0.5, 1)
    np.testing.assert_array_equal(predictions.ranking(0.5), predictions.quantiles([0.5])[:, 0])
