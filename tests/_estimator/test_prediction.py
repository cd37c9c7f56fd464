"""Predictions: beyond the follow-up, after a time survived, and for tools that call predict."""

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from lifelines.datasets import load_rossi
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from sklearn.base import clone
from sklearn.inspection import PartialDependenceDisplay, permutation_importance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv import metrics as sksurv_metrics
from sksurv.datasets import load_aids

import cqrf
from cqrf import (
    BeyondFollowUpWarning,
    CensoredQuantileForest,
    UnidentifiedQuantileWarning,
    censored,
)
from cqrf.datasets import load_pbc


@pytest.fixture(scope="module")
def pbc():
    return load_pbc(as_frame=True)


@pytest.fixture(scope="module")
def forest(pbc):
    return CensoredQuantileForest(n_estimators=100, bag_size=2, random_state=0).fit(pbc.X, pbc.y)


@pytest.fixture(scope="module")
def rossi():
    """Three quarters are censored, all at week 52."""
    table = load_rossi()
    X = table.drop(columns=["week", "arrest"]).astype(float)
    return X, censored(table["week"], table["arrest"])


def fit_rossi(rossi, **settings):
    return CensoredQuantileForest(n_estimators=50, random_state=0, **settings).fit(*rossi)


class TestBeyondFollowUp:
    def test_survival_is_nan_with_one_warning_that_says_how_far_the_data_reach(self, forest, pbc):
        ends = forest.predict_survival(pbc.X[:3]).end
        assert (ends.min(), ends.max()) == (4256, 4795)
        with pytest.warns(BeyondFollowUpWarning, match=r"known up to 4256 to 4795\.") as caught:
            survival = forest.predict_survival(pbc.X[:3], [365, 36500, 99999])
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert_array_equal(np.isnan(survival), [[False, True, True]] * 3)

    def test_extend_gives_the_flat_line_without_a_warning(self, forest, pbc):
        survival = forest.predict_survival(pbc.X[:3], [4795, 36500], beyond="extend")
        assert_array_equal(survival[:, 0], survival[:, 1])

    def test_within_the_follow_up_nothing_is_said(self, forest, pbc):
        assert not np.isnan(forest.predict_survival(pbc.X, [0, 365, 2000])).any()

    def test_intervals_and_errors_are_nan_as_well(self, forest, pbc):
        with pytest.warns(BeyondFollowUpWarning):
            band = forest.survival_confidence_interval(pbc.X[:2], [365, 36500])
        assert_array_equal(np.isnan(band[:, :, 0]), [[False, True]] * 2)
        with pytest.warns(BeyondFollowUpWarning):
            errors = forest.survival_standard_error(pbc.X[:2], [365, 36500])
        assert_array_equal(np.isnan(errors), [[False, True]] * 2)

    def test_means_are_nan_restricted_or_extended(self, forest, pbc):
        with pytest.warns(BeyondFollowUpWarning, match="beyond='restrict' gives the") as caught:
            means = forest.predict_mean(pbc.X[:3], 36500)
        assert caught[0].filename == __file__
        assert np.isnan(means).all()
        restricted = forest.predict_mean(pbc.X[:3], 36500, beyond="restrict")
        ends = forest.predict_survival(pbc.X[:3]).end
        expected = [forest.predict_mean(pbc.X[i : i + 1], ends[i])[0] for i in range(3)]
        assert_allclose(restricted, expected)
        assert (forest.predict_mean(pbc.X[:3], 36500, beyond="extend") > restricted).all()

    def test_the_default_horizon_has_a_tenth_of_the_rows_at_risk(self, forest, pbc):
        horizon = forest.model_.follow_up
        assert np.mean(pbc.y["time"] >= horizon) >= 0.1 > np.mean(pbc.y["time"] > horizon)
        assert_array_equal(forest.predict_mean(pbc.X[:5]), forest.predict_mean(pbc.X[:5], horizon))

    def test_left_censored_curves_are_not_known_before_the_first_time(self, pbc):
        y = censored(-pbc.y["time"], pbc.y["event"])
        mirrored = CensoredQuantileForest(n_estimators=50, censoring="left", random_state=0)
        mirrored.fit(pbc.X, y)
        with pytest.warns(BeyondFollowUpWarning, match="known from -4795"):
            survival = mirrored.predict_survival(pbc.X[:2], [-36500, -365])
        assert_array_equal(np.isnan(survival), [[True, False]] * 2)


class TestGiven:
    def test_quantiles_are_those_of_the_conditional_curve_less_the_time_survived(self, forest, pbc):
        X, levels = pbc.X[:20], [0.2, 0.5, 0.8]
        survived = np.linspace(0, 3000, 20)
        found = forest.predict(X, levels, given=survived, unidentified="nan")
        for i, curve in enumerate(forest.predict_survival(X)):
            start = curve(survived[i])
            for k, level in enumerate(levels):
                later = curve.values <= (1 - level) * start + 1e-12
                times = curve.times[later & (curve.times > survived[i])]
                expected = times[0] - survived[i] if len(times) else np.nan
                assert_allclose(found[i, k], expected)

    def test_survival_is_measured_from_the_time_survived_on(self, forest, pbc):
        X = pbc.X[:5]
        whole = forest.predict_survival(X, [730, 730 + 365])
        rest = forest.predict_survival(X, [365], given=730)
        assert_allclose(rest[:, 0], whole[:, 1] / whole[:, 0])

    def test_the_mean_is_an_area_under_the_conditional_curve(self, forest, pbc):
        X = pbc.X[:5]
        areas = []
        for curve in forest.predict_survival(X, given=730):
            edges = np.unique([0.0, *curve.times[curve.times < 1000], 1000.0])
            areas.append(curve(edges[:-1]) @ np.diff(edges))
        assert_allclose(forest.predict_mean(X, 1000, given=730), areas)

    def test_no_time_survived_changes_nothing(self, forest, pbc):
        X = pbc.X[:50]
        assert_array_equal(
            forest.predict(X, [0.1, 0.3], given=0, unidentified="clip"),
            forest.predict(X, [0.1, 0.3], unidentified="clip"),
        )
        assert_allclose(forest.predict_mean(X, given=0), forest.predict_mean(X))
        assert_allclose(forest.max_quantile(X, given=0), forest.max_quantile(X))

    def test_a_row_that_outlived_the_training_rows_is_nan_with_one_warning(self, forest, pbc):
        X = pbc.X[:2]
        mean = clone(forest).set_params(prediction="mean", n_estimators=10).fit(pbc.X, pbc.y)
        for call in (
            lambda: forest.predict(X, given=[100, 9999], unidentified="nan"),
            lambda: forest.predict_interval(X, 0.2, given=[100, 9999], unidentified="nan"),
            lambda: mean.predict(X, given=[100, 9999]),
        ):
            with pytest.warns(BeyondFollowUpWarning, match="given: no training row") as caught:
                found = call()
            assert len(caught) == 1
            assert caught[0].filename == __file__
            assert np.isnan(found[1]).all()
        for nothing in (
            lambda: forest.predict_survival(X, [1], given=9999),
            lambda: forest.predict_mean(X, given=9999),
        ):
            with pytest.warns(BeyondFollowUpWarning, match="given: no training row") as caught:
                assert np.isnan(nothing()).all()
            assert caught[0].filename == __file__

    def test_bad_values_are_named(self, forest, pbc):
        with pytest.raises(ValueError, match="given must be one finite time, or one for each of"):
            forest.predict(pbc.X[:3], given=[1, 2])
        with pytest.raises(ValueError, match="not finite"):
            forest.predict(pbc.X[:3], given=[1, 2, np.nan])
        left = CensoredQuantileForest(n_estimators=5, censoring="left").fit(pbc.X, pbc.y)
        with pytest.raises(ValueError, match="given is for right-censored"):
            left.predict(pbc.X[:3], given=1)


class TestPredictionForTools:
    def test_predict_says_what_to_set(self, rossi):
        forest = fit_rossi(rossi)
        with pytest.warns(UnidentifiedQuantileWarning, match="prediction='mean'.*='risk'"):
            assert np.isinf(forest.predict(rossi[0])).mean() > 0.5

    def test_the_warning_is_the_same_for_any_rows_so_that_a_filter_holds_it_back(self, rossi):
        forest = fit_rossi(rossi)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for n in (10, 20, 30):
                forest.predict(rossi[0][:n])
        assert len(caught) == 3
        assert len({str(each.message) for each in caught}) == 1

    def test_the_mean_is_finite_and_the_risk_is_minus_it(self, rossi):
        mean = fit_rossi(rossi, prediction="mean").predict(rossi[0])
        assert np.isfinite(mean).all()
        assert_array_equal(fit_rossi(rossi, prediction="risk").predict(rossi[0]), -mean)

    def test_settings_are_checked_in_fit(self, rossi):
        with pytest.raises(ValueError, match="prediction='average'"):
            fit_rossi(rossi, prediction="average")
        with pytest.raises(ValueError, match="unidentified='none'"):
            fit_rossi(rossi, unidentified="none")
        with pytest.raises(ValueError, match="time_unit=3 must be text"):
            fit_rossi(rossi, time_unit=3)

    def test_the_setting_for_unidentified_is_the_default_of_every_quantile(self, rossi):
        forest = fit_rossi(rossi, unidentified="clip")
        assert np.isfinite(forest.predict(rossi[0])).all()
        assert np.isfinite(forest.predict_interval(rossi[0])).all()
        assert np.isnan(forest.predict(rossi[0], unidentified="nan")).any()

    def test_partial_dependence_and_permutation_importance(self, rossi):
        forest = fit_rossi(rossi, prediction="mean")
        display = PartialDependenceDisplay.from_estimator(forest, rossi[0], ["prio"])
        assert np.isfinite(display.pd_results[0]["average"]).all()
        found = permutation_importance(forest, *rossi, n_repeats=2, random_state=0)
        assert np.isfinite(found.importances).all()

    def test_shap_explains_the_mean(self, rossi):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of matplotlib, about what shap imports
            import shap

        X = rossi[0].to_numpy()
        forest = fit_rossi((X, rossi[1]), prediction="mean")
        explain = shap.Explainer(forest.predict, X[:20], algorithm="permutation", seed=0)
        values = explain(X[:3])
        assert np.isfinite(values.values).all()
        total = values.base_values + values.values.sum(axis=1)
        assert_allclose(total, forest.predict(X[:3]))

    def test_scikit_survival_scores_the_forest_as_it_is(self, pbc):
        times = [365.0, 1000.0, 2000.0]
        risk = CensoredQuantileForest(n_estimators=50, random_state=0, prediction="risk")
        plain = CensoredQuantileForest(n_estimators=50, random_state=0)
        scored = [
            sksurv_metrics.as_concordance_index_ipcw_scorer(risk, tau=3000),
            sksurv_metrics.as_cumulative_dynamic_auc_scorer(risk, times),
            sksurv_metrics.as_integrated_brier_score_scorer(plain, times),
        ]
        train, test = slice(0, None, 2), slice(1, None, 2)
        concordance, auc, brier = (
            scorer.fit(pbc.X[train], pbc.y[train]).score(pbc.X[test], pbc.y[test])
            for scorer in scored
        )
        assert concordance > 0.75
        assert auc > 0.75
        assert -0.2 < brier < 0

    def test_scikit_survival_scores_it_where_nine_in_ten_are_censored(self):
        X, y = load_aids()
        X = X[["age", "cd4", "priorzdv"]]
        assert y["censor"].mean() < 0.1
        times = [100.0, 200.0, 300.0]
        risk = CensoredQuantileForest(n_estimators=50, random_state=0, prediction="risk")
        train, test = slice(0, None, 2), slice(1, None, 2)
        concordance, auc, brier = (
            scorer.fit(X[train], y[train]).score(X[test], y[test])
            for scorer in (
                sksurv_metrics.as_concordance_index_ipcw_scorer(risk, tau=300),
                sksurv_metrics.as_cumulative_dynamic_auc_scorer(risk, times),
                sksurv_metrics.as_integrated_brier_score_scorer(risk, times),
            )
        )
        assert concordance > 0.65
        assert auc > 0.65
        assert -0.1 < brier < 0

    def test_step_functions_have_scikit_survivals_form(self, forest, pbc):
        X = pbc.X[:4]
        functions = forest.predict_survival_function(X)
        array = forest.predict_survival_function(X, return_array=True)
        times = forest.unique_times_
        assert array.shape == (4, len(times))
        for function, row in zip(functions, array, strict=True):
            assert_array_equal(function.x, times)
            assert_array_equal(function.y, row)
            assert_array_equal(function(times), row)
            assert function.domain == (0.0, times[-1])
        assert_array_equal(array, forest.predict_survival(X)(times, beyond="extend"))
        hazards = forest.predict_cumulative_hazard_function(X, return_array=True)
        for curve, hazard in zip(forest.predict_survival(X), hazards, strict=True):
            before = np.append(1.0, curve.values[:-1])  # some steps are between these times
            drops = (before - curve.values)[before > 0] / before[before > 0]
            is_past = curve.times[before > 0] <= times[:, np.newaxis]
            assert_allclose(hazard, is_past @ drops, atol=1e-12)

    def test_a_pipeline_gives_its_curves_by_its_last_step(self, pbc):
        numbers = pbc.X.select_dtypes("number").fillna(0)
        pipe = make_pipeline(
            StandardScaler(), CensoredQuantileForest(n_estimators=20, random_state=0)
        ).fit(numbers, pbc.y)
        curves = pipe[-1].predict_survival(pipe[:-1].transform(numbers[:3]))
        assert len(curves) == 3


class TestFrames:
    def test_curves_keep_the_index_of_a_pandas_frame(self, forest, pbc):
        X = pbc.X[5:8]
        frame = forest.predict_survival(X).to_frame([365])
        assert_array_equal(frame.index, X.index)

    def test_what_reads_a_forest_does_not_depend_on_set_output(self, pbc):
        forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(pbc.X, pbc.y)
        scorer = cqrf.metrics.make_scorer("quantile_loss")

        def read_all():
            ax = cqrf.plots.plot_survival(forest, pbc.X[:3], quantiles=[0.1])
            marks = [np.asarray(line.get_xdata()) for line in ax.lines]
            found = forest.score(pbc.X, pbc.y), scorer(forest, pbc.X, pbc.y), marks
            plt.close(ax.figure)
            return found

        plain = read_all()
        for output in ("pandas", "polars"):
            forest.set_output(transform=output)
            assert_equal(read_all(), plain)

    def test_set_output_gives_frames_with_the_index_and_names(self, pbc):
        forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(pbc.X, pbc.y)
        X, plain = pbc.X[5:8], forest.predict(pbc.X[5:8], [0.1, 0.2])
        assert type(plain) is np.ndarray
        assert forest.set_output(transform="pandas") is forest
        found = forest.predict(X, [0.1, 0.2])
        assert_array_equal(found.index, X.index)
        assert found.columns.tolist() == ["q0.1", "q0.2"]
        assert_array_equal(found, plain)
        median = forest.predict(X, unidentified="nan")
        assert isinstance(median, pd.Series)
        assert median.name == "q0.5"
        assert forest.predict_interval(X, unidentified="nan").columns.tolist() == ["lower", "upper"]
        assert forest.predict_survival(X, [365]).columns.tolist() == ["survival365"]
        assert forest.predict_mean(X).name == "mean"
        forest.set_output(transform="polars")
        assert isinstance(forest.predict(X, [0.1, 0.2]), pl.DataFrame)
        assert isinstance(forest.predict_mean(X), pl.Series)
        forest.set_output(transform="default")
        assert type(forest.predict(X, 0.1)) is np.ndarray
        with pytest.raises(ValueError, match="transform='xarray'"):
            forest.set_output(transform="xarray")


class TestPackage:
    def test_submodules_load_on_access(self):
        assert cqrf.plots.plot_survival
        assert cqrf.metrics.brier_score

    def test_a_typing_error_is_told_the_nearest_public_name(self):
        program = "import cqrf; cqrf.CensoredQuantileForrest"
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert run.returncode == 1
        assert run.stderr.rstrip().endswith("Did you mean: 'CensoredQuantileForest'?")

    def test_dir_shows_public_names_alone(self):
        names = dir(cqrf)
        assert {"CensoredQuantileForest", "plots", "censored"} <= set(names)
        assert not {"Any", "import_module", "sys", "TYPE_CHECKING", "annotations"} & set(names)
