"""Each method has the criterion and the estimator of the paper."""

import numpy as np
import pytest
from sksurv.ensemble import RandomSurvivalForest
from sksurv.util import Surv

from cqrf import CensoredQuantileForest
from cqrf.datasets import make_aft
from cqrf.study.methods import METHODS, Sample, Study, build_forest, predict_all
from cqrf.study.paper_quantiles import last_above

LEVELS = (0.1, 0.5, 0.9)
SETTINGS = {"node_size": 20, "n_estimators": 30, "seed": 3}


@pytest.fixture(scope="module")
def data():
    return make_aft(250, 6, censoring_rate=0.2, random_state=0)


@pytest.fixture(scope="module")
def queries():
    return make_aft(40, 6, random_state=1).X


def predict(names, train, X, **study):
    return predict_all(names, train, X, LEVELS, study=Study(n_jobs=1, **study), **SETTINGS)


def as_grf(criterion, **settings):
    return CensoredQuantileForest(
        criterion=criterion,
        n_estimators=30,
        random_state=3,
        max_samples=0.5,
        min_samples_leaf=1,
        min_samples_split=21,
        **settings,
    )


@pytest.mark.parametrize(
    ("name", "criterion", "uses", "solver"),
    [
        ("crf-generalized", "quantile", "censored", "argmin"),
        ("crf-generalized, root", "quantile", "censored", "root"),
        ("crf-quantile", "variance", "censored", "argmin"),
        ("grf", "quantile", "observed", "root"),
        ("qrf", "variance", "observed", "root"),
        ("grf-oracle", "quantile", "latent", "root"),
        ("qrf-oracle", "variance", "latent", "root"),
    ],
)
def test_methods_of_grf(data, queries, name, criterion, uses, solver):
    """Each method equals a forest fitted separately, without shared weights."""
    y = {"censored": data.y, "observed": data.y["time"], "latent": data.latent}[uses]
    expected = (
        as_grf(criterion, solver=solver)
        .fit(data.X, y)
        .predict(queries, LEVELS, unidentified="clip")
    )
    together = predict(list(METHODS), Sample.of(data), queries)
    np.testing.assert_allclose(together[name], expected, rtol=1e-12)
    np.testing.assert_array_equal(predict([name], Sample.of(data), queries)[name], together[name])


def test_the_default_is_the_library_s_without_a_working_model(data, queries):
    forest = CensoredQuantileForest(
        n_estimators=30, random_state=3, min_samples_split=21, working_model=None
    )
    expected = forest.fit(data.X, data.y).predict(queries, LEVELS, unidentified="clip")
    found = predict(["censored-quantile"], Sample.of(data), queries)["censored-quantile"]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_out_of_bag(data):
    forest = as_grf("quantile", solver="argmin").fit(data.X, data.y)
    found = predict(["crf-generalized"], Sample.of(data), None)["crf-generalized"]
    expected = forest.predict_oob(LEVELS, unidentified="clip")
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_rsf_is_a_survival_forest_with_quantiles_of_its_curve(data, queries):
    forest = build_forest("logrank", 6, n_jobs=1, **SETTINGS)
    assert (forest.honest, forest.max_features, forest.max_samples) == (False, 3, 0.632)
    found = predict(["rsf"], Sample.of(data), queries)["rsf"]
    for i, curve in enumerate(forest.fit(data.X, data.y).predict_survival(queries)):
        for k, tau in enumerate(LEVELS):
            above = [t for t, s in zip(curve.times, curve.values) if s >= 1 - tau]
            assert found[i, k] == (above[-1] if above else curve.times[0])


def test_quantiles_of_a_curve():
    times, survival = np.array([1.0, 2.0, 3.0]), np.array([0.9, 0.5, 0.2])
    assert last_above(times, survival, [0.05, 0.1, 0.4, 0.5, 0.7, 0.9]).tolist() == [
        1, 1, 1, 2, 2, 3,
    ]  # fmt: skip


def test_an_oracle_uses_only_latent_times(data, queries):
    reversed_y = Sample(data.X, data.y[::-1].copy(), data.latent)
    names = ["grf-oracle", "qrf-oracle"]
    expected = predict(names, Sample.of(data), queries)
    for name, found in predict(names, reversed_y, queries).items():
        np.testing.assert_array_equal(found, expected[name])


def test_peers_replace_qrf_and_rsf(data, queries):
    from quantile_forest import RandomForestQuantileRegressor

    names = ["qrf", "qrf-oracle", "rsf", "grf", "crf-quantile"]
    own = predict(names, Sample.of(data), queries)
    found = predict(names, Sample.of(data), queries, with_peers=True)
    for name in ("grf", "crf-quantile"):
        np.testing.assert_array_equal(found[name], own[name])
    for name, time in (("qrf", data.y["time"]), ("qrf-oracle", data.latent)):
        theirs = RandomForestQuantileRegressor(
            n_estimators=30, min_samples_split=21, max_samples_leaf=None, random_state=3
        ).fit(data.X, time)
        np.testing.assert_array_equal(found[name], theirs.predict(queries, quantiles=list(LEVELS)))
    forest = RandomSurvivalForest(
        n_estimators=30,
        min_samples_leaf=20,
        min_samples_split=40,
        max_features="sqrt",
        random_state=3,
    ).fit(data.X, Surv.from_arrays(data.y["event"], data.y["time"]))
    curves = forest.predict_survival_function(queries, return_array=True)
    for i, curve in enumerate(curves):
        above = [t for t, s in zip(forest.unique_times_, curve) if s >= 0.5]
        assert found["rsf"][i, 1] == (above[-1] if above else forest.unique_times_[0])
