"""Metrics of each cause, as scorers and as values of ``evaluate``."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score

from cqrf import CensoredQuantileForest, censored
from cqrf.datasets import make_aft, make_competing_risks
from cqrf.evaluation import evaluate, list_labels
from cqrf.metrics import (
    concordance_index,
    incidence_calibration,
    integrated_brier_score_incidence,
    make_scorer,
)

NAMES = np.array(["", "death", "relapse"])


@pytest.fixture(scope="module")
def data():
    tables = []
    for seed in (0, 1):
        X, y, *_ = make_competing_risks(250, 4, random_state=seed)
        tables.append((X, censored(y["time"], NAMES[y["cause"]], censored="")))
    return tables


@pytest.fixture(scope="module")
def forest(data):
    return CensoredQuantileForest(n_estimators=40, random_state=0).fit(*data[0])


@pytest.mark.parametrize("cause", ["death", "relapse"])
def test_scorers_take_a_cause(data, forest, cause):
    (_, train), (X, y) = data
    curves = forest.predict_incidence(X, cause=cause)
    expected = integrated_brier_score_incidence(train, y, curves, cause=cause)
    assert make_scorer("brier", cause=cause)(forest, X, y) == pytest.approx(-expected, abs=1e-12)
    times = [1.0, 2.0, 3.0]
    expected = integrated_brier_score_incidence(train, y, curves, times, cause=cause)
    found = make_scorer("brier", cause=cause, times=times)(forest, X, y)
    assert found == pytest.approx(-expected, abs=1e-12)
    own = forest.predict_censoring(X)
    expected = integrated_brier_score_incidence(
        train, y, curves, cause=cause, censoring_survival=own
    )
    found = make_scorer("brier", cause=cause, forest_censoring=True)(forest, X, y)
    assert found == pytest.approx(-expected, abs=1e-12)
    lost = forest.predict_mean(X, cause=cause, beyond="extend")
    expected = concordance_index(y, -lost, cause=cause)
    assert make_scorer("concordance", cause=cause)(forest, X, y) == expected
    expected = concordance_index(y, -lost, y_train=train, cause=cause)
    assert make_scorer("uno_concordance", cause=cause)(forest, X, y) == pytest.approx(expected)
    assert make_scorer("brier")(forest, X, y) != make_scorer("brier", cause=cause)(forest, X, y)


def test_a_scorer_of_a_cause_in_cross_validation(data):
    forest = CensoredQuantileForest(n_estimators=20, random_state=0)
    scores = cross_val_score(
        forest, *data[0], cv=3, scoring=make_scorer("concordance", cause="death")
    )
    assert (scores > 0.55).all()


def test_scorers_name_their_mistakes(data, forest):
    X, y = data[1]
    with pytest.raises(ValueError, match="'none' is no cause of this forest"):
        make_scorer("brier", cause="none")(forest, X, y)
    with pytest.raises(ValueError, match="by a quantile or for a cause"):
        make_scorer("concordance", cause="death", quantile=0.5)(forest, X, y)
    with pytest.raises(ValueError, match="'crps' has no option 'cause'"):
        make_scorer("crps", cause="death")
    aft = make_aft(60, 2, random_state=0)
    plain = CensoredQuantileForest(n_estimators=5, random_state=0).fit(aft.X, aft.y)
    with pytest.raises(ValueError, match="one kind of event"):
        make_scorer("brier", cause=1)(plain, aft.X, aft.y)


def test_evaluate_gives_each_cause_beside_all_of_them(data, forest):
    X, y = data[1]
    values = evaluate(forest, X, y)
    labels = list_labels(forest.model_.score_levels, causes=forest.causes_)
    assert list(values) == list(labels)
    assert labels["integrated_brier_score_cause_death"] == "integrated Brier score, cause death"
    assert labels["concordance_cause_death"] == "concordance (Wolbers' C), cause death"
    for cause in forest.causes_:
        curves = forest.predict_incidence(X, cause=cause)
        lost = forest.predict_mean(X, cause=cause, beyond="extend")
        brier = integrated_brier_score_incidence(y, y, curves, cause=cause)
        assert values[f"integrated_brier_score_cause_{cause}"] == pytest.approx(brier, abs=1e-12)
        assert values[f"concordance_cause_{cause}"] == concordance_index(y, -lost, cause=cause)
        at = float(np.median(y["time"]))
        distance = incidence_calibration(y, curves, at, cause=cause).distance
        assert values[f"calibration_distance_cause_{cause}"] == pytest.approx(distance, abs=1e-12)
    plain = CensoredQuantileForest(n_estimators=40, random_state=0)
    plain.fit(data[0][0], data[0][1][["event", "time"]])
    assert list(evaluate(plain, X, y)) == list(list_labels(plain.model_.score_levels))


def test_evaluate_out_of_bag(data, forest):
    values = evaluate(forest)
    y = data[0][1]
    curves = forest.predict_incidence_oob(cause="relapse")
    brier = integrated_brier_score_incidence(y, y, curves, cause="relapse")
    assert values["integrated_brier_score_cause_relapse"] == pytest.approx(brier, abs=1e-12)
    assert list(values) == list(list_labels(forest.model_.score_levels, causes=forest.causes_))


def test_a_cause_that_no_test_row_has_is_not_known(data, forest):
    X, y = data[1]
    kept = y["cause"] != "relapse"
    values = evaluate(forest, X[kept], y[kept])
    assert np.isnan(values["concordance_cause_relapse"])
    assert values["calibration_distance_cause_relapse"] > 0
    assert values["concordance_cause_death"] > 0.5


def test_evaluate_refuses_causes_that_the_forest_does_not_know(data, forest):
    X, y = data[1]
    codes = censored(y["time"], np.select([y["cause"] == "death", y["event"]], [1, 2], 0))
    with pytest.raises(ValueError, match="causes 1, 2, but the forest has 'death', 'relapse'"):
        evaluate(forest, X, codes)
    with pytest.raises(ValueError, match="events without a cause, but the forest has the causes"):
        evaluate(forest, X, y[["event", "time"]])


def test_test_rows_that_all_have_one_cause(data, forest):
    X, y = data[1]
    is_other = y["cause"] == "relapse"
    X, time, cause = X[~is_other], y["time"][~is_other], y["cause"][~is_other]
    lost = forest.predict_mean(X, cause="death", beyond="extend")
    with pytest.raises(ValueError, match="pass a frame with the columns time and cause"):
        concordance_index(censored(time, cause, censored=""), -lost, cause="death")
    named = pd.DataFrame({"time": time, "cause": cause})
    assert concordance_index(named, -lost, cause="death") > 0.5
