"""Scorers: the metrics as scikit-learn's cross-validation and searches take them."""

import pickle

import numpy as np
import pytest
from sklearn import clone, config_context
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sksurv.metrics import concordance_index_censored, concordance_index_ipcw
from sksurv.util import Surv

from cqrf import CensoredQuantileForest, censored
from cqrf._input.target import read_target
from cqrf.datasets import make_aft
from cqrf.metrics import (
    FLOOR,
    SCORERS,
    censored_quantile_loss,
    concordance_index,
    crps,
    make_scorer,
)
from cqrf.metrics.ipcw import estimate_censoring_survival


def surv(y):
    return Surv.from_arrays(y["event"], y["time"])


@pytest.fixture(scope="module")
def data():
    return make_aft(300, 3, random_state=0), make_aft(200, 3, random_state=1)


@pytest.fixture(scope="module")
def forest(data):
    return CensoredQuantileForest(n_estimators=50, random_state=0).fit(data[0].X, data[0].y)


def test_test_times_that_all_lie_beyond_the_horizon_are_no_error(data, forest):
    train, test = data
    y = censored(train.y["time"].max() + 1 + test.y["time"], test.y["event"])
    curve = estimate_censoring_survival(read_target(train.y))
    horizon = curve.times[curve.values < FLOOR][0]
    # All rows wait at the horizon: nothing is lost before it but what was predicted there.
    missed = horizon - np.minimum(forest.predict(test.X, 0.5, unidentified="clip"), horizon)
    scorer = make_scorer("quantile_loss", quantiles=0.5)
    assert scorer(forest, test.X, y) == pytest.approx(-missed.mean() / 2)
    assert np.isfinite(make_scorer("crps")(forest, test.X, y))
    assert 0 < make_scorer("concordance")(forest, test.X, y) < 1
    with pytest.warns(
        UserWarning, match="no event that could start a pair comes before the horizon"
    ):
        assert np.isnan(make_scorer("uno_concordance")(forest, test.X, y))
    for times in (None, [horizon, horizon + 1], [horizon / 2, horizon]):
        with pytest.warns(UserWarning, match="times lie beyond the horizon .* is NaN"):
            assert np.isnan(make_scorer("brier", times=times)(forest, test.X, y))


@pytest.mark.parametrize("metric", SCORERS)
def test_scorers_work_in_cross_validation(data, metric):
    train, _ = data
    forest = CensoredQuantileForest(n_estimators=20, random_state=0)
    scores = cross_val_score(forest, train.X, train.y, cv=3, scoring=make_scorer(metric))
    plain = clone(forest).set_params(working_model=None)
    constant = clone(plain).set_params(min_samples_split=1000)
    blind = cross_val_score(constant, train.X, train.y, cv=3, scoring=make_scorer(metric))
    assert (scores > blind).all()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), plain),
        {"censoredquantileforest__min_samples_leaf": [5, 60]},
        scoring=make_scorer(metric),
        cv=2,
    ).fit(train.X, train.y)
    assert search.best_params_ == {"censoredquantileforest__min_samples_leaf": 5}


@pytest.fixture(scope="module")
def study():
    """A forest, X and y where a study ends before 15 % of rows have had their event."""
    X, y, latent, _ = make_aft(600, 2, censoring_rate=0.0, random_state=0)
    end = np.quantile(latent, 0.15)
    y = censored(np.minimum(latent, end), latent < end)
    forest = CensoredQuantileForest(n_estimators=40, random_state=0).fit(X[:300], y[:300])
    return forest, X, y


def test_concordance_scorers_rank_by_the_mean_where_the_median_is_hidden(study):
    forest, X, y = study
    train, X, y = y[:300], X[300:], y[300:]
    mean = forest.predict_mean(X)
    found = make_scorer("concordance")(forest, X, y)
    theirs = concordance_index_censored(y["event"], y["time"], -mean, tied_tol=0)[0]
    assert found == pytest.approx(theirs, abs=1e-12)
    end = y["time"].max()
    uno = make_scorer("uno_concordance")(forest, X, y)
    theirs = concordance_index_ipcw(surv(train), surv(y), -mean, tau=end, tied_tol=0)[0]
    assert uno == pytest.approx(theirs, abs=1e-10)
    median = forest.predict(X, 0.5, unidentified="clip")
    by_median = make_scorer("concordance", quantile=0.5)(forest, X, y)
    assert by_median == concordance_index(y, median)
    assert found > by_median + 0.1


def test_the_brier_scorer_takes_distinct_times_where_most_rows_end_with_the_study(study):
    forest, X, y = study
    time, end = y["time"][300:], y["time"].max()
    few = np.r_[np.flatnonzero(time < end)[:3], np.flatnonzero(time == end)]
    X, y, time = X[300:][few], y[300:][few], time[few]
    times = np.linspace(*np.quantile([*np.sort(time)[:3], end], [0.1, 0.9]), 50)
    squared = ((time[:, np.newaxis] > times) - forest.predict_survival(X, times)) ** 2
    expected = np.trapezoid(squared.mean(axis=0), times) / np.ptp(times)
    assert make_scorer("brier")(forest, X, y) == pytest.approx(-expected)
    with pytest.warns(UserWarning, match="1 of 1 times lie beyond the horizon"):
        assert np.isnan(make_scorer("brier")(forest, X[3:], y[3:]))
    with pytest.warns(UserWarning, match="the test times are all 0.5: with no range"):
        assert np.isnan(make_scorer("brier")(forest, X[:2], censored([0.5, 0.5], [1, 0])))


def weigh(train):
    """Weights that make the fit, or the score, another one."""
    return np.where(train.X[:, 0] > 1, 3.0, 0.5)


def test_weights_are_routed_to_the_scorers_that_ask_for_them(data):
    train, _ = data
    weight, folds = weigh(train), KFold(3)
    forest = CensoredQuantileForest(n_estimators=10, random_state=0)
    expected = {"weighted": [], "plain": []}
    for rows, held in folds.split(train.X):
        curves = forest.fit(train.X[rows], train.y[rows]).predict_survival(train.X[held])
        for name, w in (("weighted", weight[held]), ("plain", None)):
            score = -crps(train.y[rows], train.y[held], curves, sample_weight=w)
            expected[name].append(score)
    assert not np.allclose(expected["weighted"], expected["plain"])
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(MinMaxScaler(), forest.set_fit_request(sample_weight=False))
        asks = make_scorer("crps").set_score_request(sample_weight=True)
        scorers = {
            "weighted": pickle.loads(pickle.dumps(clone(asks))),
            "plain": make_scorer("crps").set_score_request(sample_weight=False),
        }
        given = {"cv": folds, "params": {"sample_weight": weight}}
        for estimator in (forest, pipeline):
            found = cross_validate(estimator, train.X, train.y, scoring=scorers, **given)
            for name in scorers:
                np.testing.assert_allclose(found[f"test_{name}"], expected[name], rtol=1e-9)
        search = GridSearchCV(forest, {"min_samples_leaf": [5]}, scoring=asks, cv=folds)
        found = clone(search).fit(train.X, train.y, sample_weight=weight).cv_results_
        assert found["mean_test_score"] == pytest.approx(np.mean(expected["weighted"]), rel=1e-9)
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            cross_val_score(forest, train.X, train.y, scoring=make_scorer("crps"), **given)


def test_a_search_by_several_scorers_takes_weights_without_routing(data):
    train, _ = data
    search = GridSearchCV(
        CensoredQuantileForest(n_estimators=10, random_state=0),
        {"min_samples_leaf": [5]},
        scoring={metric: make_scorer(metric) for metric in ("crps", "concordance")},
        refit="crps",
        cv=2,
        error_score="raise",
    )
    weighted = search.fit(train.X, train.y, sample_weight=weigh(train)).cv_results_
    plain = clone(search).fit(train.X, train.y).cv_results_
    for name in ("mean_test_crps", "mean_test_concordance"):
        assert weighted[name] != plain[name]


def test_scorers_take_options_and_name_what_they_do_not_know(data, forest):
    train, test = data
    predicted = forest.predict(test.X, [0.9], unidentified="clip")
    expected = -censored_quantile_loss(train.y, test.y, predicted, [0.9])[0]
    found = make_scorer("quantile_loss", quantiles=0.9)(forest, test.X, test.y)
    assert found == pytest.approx(expected, abs=1e-12)
    own = make_scorer("crps", forest_censoring=True)(forest, test.X, test.y)
    assert own == pytest.approx(
        -crps(
            train.y,
            test.y,
            forest.predict_survival(test.X),
            censoring_survival=forest.predict_censoring(test.X),
        )
    )
    assert own != make_scorer("crps")(forest, test.X, test.y)
    with pytest.raises(ValueError, match="metric='r2' is unknown; choose one of concordance"):
        make_scorer("r2")


@pytest.mark.parametrize("metric", SCORERS)
def test_scorers_are_those_of_the_table(data, forest, metric):
    """A function per metric, called as a scorer is."""
    _, test = data
    weight = np.arange(200.0)
    found = SCORERS[metric](forest, test.X, test.y, weight)
    assert found == make_scorer(metric)(forest, test.X, test.y, weight)
    assert found != SCORERS[metric](forest, test.X, test.y)


def test_losses_are_negated_and_concordances_are_not(data, forest):
    _, test = data
    signs = {name: np.sign(score(forest, test.X, test.y)) for name, score in SCORERS.items()}
    assert signs == {
        "concordance": 1,
        "uno_concordance": 1,
        "auc": 1,
        "brier": -1,
        "crps": -1,
        "quantile_loss": -1,
    }


def test_the_forest_is_found_in_a_pipeline_and_in_a_search(data, forest):
    train, test = data
    expected = make_scorer("crps")(forest, test.X, test.y)
    pipeline = make_pipeline(forest)
    search = GridSearchCV(clone(forest), {"n_estimators": [50]}, cv=2).fit(train.X, train.y)
    for estimator in (pipeline, search, make_pipeline(search)):
        assert make_scorer("crps")(estimator, test.X, test.y) == expected


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: make_scorer("crps", quantile=0.5), "'crps' has no option 'quantile'"),
        (lambda: make_scorer("concordance", times=[1]), "it takes quantile"),
        (lambda: make_scorer(["crps"]), r"metric=\['crps'\] is unknown"),
        (
            lambda: make_scorer("crps")(StandardScaler().fit([[1.0]]), [[1.0]], [1.0]),
            "need a CensoredQuantileForest; found StandardScaler",
        ),
    ],
)
def test_mistakes_are_named(call, said):
    with pytest.raises(ValueError, match=said):
        call()
