"""The estimator: its surface, its promises, and what it says when input is wrong."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from cqrf import (
    CensoredQuantileForest,
    StepCurves,
    UnidentifiedQuantileWarning,
    censored,
    solve_quantiles,
)
from cqrf.datasets import make_aft, make_heteroscedastic

LEVELS = [0.1, 0.3, 0.5, 0.7, 0.9]


@pytest.fixture(scope="module")
def data():
    return make_aft(300, 5, random_state=0)


@pytest.fixture(scope="module")
def heavy():
    """Two thirds censored: high quantiles cannot be estimated."""
    return make_aft(300, 5, censoring_rate=0.5, random_state=1)


@pytest.fixture(scope="module")
def forest(data):
    return CensoredQuantileForest(n_estimators=60, random_state=0).fit(data.X, data.y)


def small(**settings):
    few = {"n_estimators": 20, "max_samples": 0.5, "random_state": 0}
    return CensoredQuantileForest(**{**few, **settings})


@parametrize_with_checks([CensoredQuantileForest(working_model=m) for m in (None, "auto")])
def test_scikit_learn_compatible(estimator, check):
    check(estimator)


class TestSurface:
    def test_shapes(self, forest, data):
        X = data.X[:7]
        assert forest.predict(X).shape == (7,)
        assert forest.predict(X, quantiles=[0.5]).shape == (7, 1)
        assert forest.predict(X, quantiles=LEVELS).shape == (7, 5)
        assert forest.predict_interval(X, coverage=0.8).shape == (7, 2)
        assert forest.predict_mean(X).shape == (7,)
        assert forest.max_quantile(X).shape == (7,)
        assert forest.predict_survival(X, times=[1.0, 2.0]).shape == (7, 2)
        assert forest.predict_censoring(X, times=[1.0]).shape == (7, 1)
        assert isinstance(forest.predict_survival(X), StepCurves)
        assert forest.predict_oob().shape == (300,)
        assert forest.feature_importances_.shape == (5,)

    def test_levels_come_back_in_the_order_asked(self, forest, data):
        straight = forest.predict(data.X, [0.1, 0.5, 0.9])
        np.testing.assert_array_equal(
            forest.predict(data.X, [0.9, 0.1, 0.5]), straight[:, [2, 0, 1]]
        )
        np.testing.assert_array_equal(forest.predict(data.X), straight[:, 1])

    def test_interval_is_two_quantiles(self, forest, data):
        np.testing.assert_array_equal(
            forest.predict_interval(data.X, coverage=0.8, unidentified="nan"),
            forest.predict(data.X, [0.1, 0.9], unidentified="nan"),
        )

    def test_weights_are_the_seam(self, data):
        forest = small(working_model=None).fit(data.X, data.y)
        weights = forest.weights(data.X[:20])
        assert sparse.issparse(weights)
        assert weights.shape == (20, 300)
        np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-12)
        solved = solve_quantiles(weights, data.y["time"], data.y["event"], LEVELS)
        np.testing.assert_array_equal(
            forest.predict(data.X[:20], LEVELS, unidentified="nan"),
            np.where(np.isinf(solved), np.nan, solved),
        )

    def test_curves_quantiles_and_mean_agree(self, forest, data):
        X = data.X[:20]
        quantiles = forest.predict(X, LEVELS, unidentified="nan")
        for i, curve in enumerate(forest.predict_survival(X)):
            for level, q in zip(LEVELS, quantiles[i], strict=True):
                if np.isnan(q):
                    assert curve.values[-1] > 1 - level
                else:
                    assert curve(q) <= 1 - level + 1e-12 < curve(np.nextafter(q, 0)) + 2e-12
            end = data.y["time"].max()
            edges = np.concatenate([[0.0], curve.times, [end]])
            heights = np.concatenate([[1.0], curve.values])
            area = (np.diff(edges) * heights).sum()
            mean = forest.predict_mean(X[[i]], end, beyond="extend")
            assert mean == pytest.approx(area)

    def test_max_quantile_is_the_limit(self, heavy):
        forest = small().fit(heavy.X, heavy.y)
        limit = forest.max_quantile(heavy.X[:50])
        assert (limit < 1).any()
        for x, level in zip(heavy.X[:50], limit, strict=True):
            assert np.isfinite(forest.predict([x], level - 1e-9)[0])
            if level < 1 - 1e-6:
                assert np.isnan(forest.predict([x], level + 1e-6, unidentified="nan")[0])

    def test_pickled_and_cloned(self, forest, data):
        again = pickle.loads(pickle.dumps(forest))
        np.testing.assert_array_equal(again.predict(data.X), forest.predict(data.X))
        refitted = clone(forest).fit(data.X, data.y)
        np.testing.assert_array_equal(refitted.predict(data.X), forest.predict(data.X))

    def test_searches_and_pipelines(self, data):
        search = GridSearchCV(small(), {"min_samples_split": [11, 150]}, cv=3)
        search.fit(data.X, data.y)
        assert search.best_params_ == {"min_samples_split": 11}
        scores = cross_val_score(make_pipeline(StandardScaler(), small()), data.X, data.y, cv=3)
        assert (scores > 0.2).all()


class TestPromises:
    @pytest.mark.parametrize("criterion", ["censored_quantile", "quantile", "variance", "logrank"])
    @pytest.mark.parametrize("honest", [True, False])
    @pytest.mark.parametrize("bootstrap", [True, False])
    def test_every_criterion_with_every_sampling(self, data, criterion, honest, bootstrap):
        forest = small(criterion=criterion, honest=honest, bootstrap=bootstrap)
        forest.fit(data.X, data.y)
        median = forest.predict(data.X, unidentified="clip")
        truth = data.quantile(data.X, 0.5)
        assert np.corrcoef(median, truth)[0, 1] > 0.85
        assert forest.score(data.X, data.y) > 0.3
        assert np.argmax(forest.feature_importances_) == 0

    def test_same_bits_for_every_n_jobs(self, data):
        one, two, many = (small(n_jobs=n).fit(data.X, data.y) for n in (1, 2, 5))
        expected = one.predict(data.X, LEVELS, unidentified="nan")
        for other in (two, many):
            np.testing.assert_array_equal(
                other.predict(data.X, LEVELS, unidentified="nan"), expected
            )
            np.testing.assert_array_equal(other.predict_oob(), one.predict_oob())

    def test_one_row_or_many(self, forest, data):
        alone = np.concatenate([forest.predict(data.X[[i]]) for i in range(30)])
        np.testing.assert_array_equal(alone, forest.predict(data.X)[:30])

    def test_seed_decides(self, data):
        first, second = (small(random_state=s).fit(data.X, data.y) for s in (1, 2))
        assert not np.array_equal(first.predict(data.X), second.predict(data.X))

    def test_quantiles_never_cross(self, heavy):
        for method in ("beran", "knn", "km"):
            forest = small(censoring_survival=method).fit(heavy.X, heavy.y)
            quantiles = forest.predict(heavy.X, np.linspace(0.02, 0.98, 49), unidentified="clip")
            assert (np.diff(quantiles, axis=1) >= 0).all()

    def test_left_censoring_mirrors_right_exactly(self, data):
        right = small().fit(data.X, data.y)
        left = small(censoring="left").fit(data.X, censored(-data.y["time"], data.y["event"]))
        X = data.X[:50]
        np.testing.assert_array_equal(
            left.predict(X, LEVELS, unidentified="nan"),
            -right.predict(X, LEVELS[::-1], unidentified="nan"),
        )
        np.testing.assert_array_equal(left.max_quantile(X), 1 - right.max_quantile(X))
        np.testing.assert_allclose(
            left.predict_mean(X, beyond="extend"), -right.predict_mean(X, beyond="extend")
        )
        times = np.array([0.5, 2.0, 7.5])  # not among the times: no difference in < and <=
        np.testing.assert_allclose(
            left.predict_survival(X, -times, beyond="extend"),
            1 - right.predict_survival(X, times, beyond="extend"),
        )
        np.testing.assert_allclose(
            left.predict_censoring(X, -times, beyond="extend"),
            1 - right.predict_censoring(X, times, beyond="extend"),
        )
        assert left.score(data.X, censored(-data.y["time"], data.y["event"])) == pytest.approx(
            right.score(data.X, data.y)
        )
        np.testing.assert_array_equal(
            left.predict_oob(0.2, unidentified="nan"), -right.predict_oob(0.8, unidentified="nan")
        )

    def test_left_unidentified_is_minus_infinity(self, heavy):
        y = censored(-heavy.y["time"], heavy.y["event"])
        forest = small(censoring="left").fit(heavy.X, y)
        with pytest.warns(UnidentifiedQuantileWarning):
            low = forest.predict(heavy.X, 0.01)
        assert np.isneginf(low).any()

    @pytest.mark.parametrize("working_model", [None, "auto"])
    def test_unidentified_is_said_once(self, heavy, working_model):
        forest = small(working_model=working_model).fit(heavy.X, heavy.y)
        with pytest.warns(UnidentifiedQuantileWarning) as said:
            quantiles = forest.predict(heavy.X, [0.5, 0.99])
        hidden = np.isinf(quantiles)
        assert hidden.any()
        assert len(said) == 1
        assert said[0].filename == __file__
        clipped = forest.predict(heavy.X, [0.5, 0.99], unidentified="clip")
        weights, curves = forest.weights(heavy.X), forest.predict_survival(heavy.X)
        for i, j in np.argwhere(hidden):
            assert clipped[i, j] == curves[int(i)].end
            if working_model is None:
                neighbours = weights[[i]].nonzero()[1]
                assert clipped[i, j] == heavy.y["time"][neighbours].max()
        assert (clipped[hidden] <= heavy.y["time"].max()).all()

    @pytest.mark.parametrize("working_model", [None, "auto"])
    def test_oob_leaves_out_the_trees_that_drew_a_row(self, data, working_model):
        forest = small(n_estimators=12, working_model=working_model).fit(data.X, data.y)
        weights = forest.weights_oob().toarray()
        assert (np.diag(weights) == 0).all()
        np.testing.assert_allclose(weights.sum(axis=1), 1.0)
        if working_model is None:
            solved = solve_quantiles(weights, data.y["time"], data.y["event"], 0.3)
            np.testing.assert_array_equal(forest.predict_oob(0.3), solved)
        # Out of bag is honest about accuracy, in bag flatters.
        greedy = small(
            n_estimators=100, honest=False, min_samples_leaf=1, working_model=working_model
        ).fit(data.X, data.y)
        fresh = make_aft(300, 5, random_state=9)
        held_out = greedy.score(fresh.X, fresh.y)
        assert greedy.score(data.X, data.y) > held_out + 0.1
        assert greedy.score_oob() == pytest.approx(held_out, abs=0.08)

    def test_oob_row_that_never_was_is_nan(self, data):
        forest = small(max_samples=None, n_estimators=3).fit(data.X, data.y)
        assert np.isnan(forest.predict_oob()).all()

    @pytest.mark.parametrize("working_model", [None, "auto"])
    def test_tree_is_the_same_in_a_larger_forest(self, data, working_model):
        def split_features(n_trees):
            """Feature of each node, by the number of the tree."""
            forest = small(n_estimators=n_trees, working_model=working_model)
            model = forest.fit(data.X, data.y).model_
            by_tree = np.split(model.forest.feature, model.forest.roots[1:])
            return dict(zip(model.tree_numbers.tolist(), by_tree, strict=True))

        few, more = split_features(3), split_features(6)
        assert sorted(few) == [0, 1, 2]
        for number, features in few.items():
            np.testing.assert_array_equal(more[number], features)

    def test_nothing_censored_is_an_ordinary_quantile_forest(self, data):
        forest = small(working_model=None).fit(data.X, data.latent)
        weights = forest.weights(data.X[:20]).toarray()
        order = np.argsort(data.latent)
        below = np.cumsum(weights[:, order], axis=1)
        for k, level in enumerate(LEVELS):
            expected = data.latent[order][np.argmax(below >= level - 1e-12, axis=1)]
            np.testing.assert_array_equal(forest.predict(data.X[:20], LEVELS)[:, k], expected)

    def test_default_sees_what_variance_cannot(self):
        """A change of spread, not of location: the reason for the default criterion."""
        train, test = (make_heteroscedastic(1500, 20, random_state=s) for s in (0, 1))
        errors = {}
        for criterion in ("censored_quantile", "variance"):
            forest = small(criterion=criterion, n_estimators=100).fit(train.X, train.y)
            predicted = forest.predict(test.X, LEVELS, unidentified="clip")
            errors[criterion] = np.abs(predicted - test.quantile(test.X, LEVELS)).mean()
        assert errors["censored_quantile"] < 0.6 * errors["variance"]

    def test_knn_and_km_estimate_the_same_thing(self, data):
        truth = data.quantile(data.X, LEVELS)
        for method in ("beran", "knn", "km"):
            for solver in ("root", "argmin"):
                forest = small(censoring_survival=method, solver=solver, n_estimators=100)
                predicted = forest.fit(data.X, data.y).predict(data.X, LEVELS, unidentified="clip")
                assert np.abs(predicted - truth).mean() < 0.5

    @pytest.mark.filterwarnings("ignore::cqrf.NegativeTimeWarning")
    def test_negative_times_are_fine(self, data):
        shifted = small().fit(data.X, censored(data.y["time"] - 100, data.y["event"]))
        plain = small().fit(data.X, data.y)
        np.testing.assert_allclose(
            shifted.predict(data.X, unidentified="clip") + 100,
            plain.predict(data.X, unidentified="clip"),
        )
        np.testing.assert_allclose(
            shifted.predict_mean(data.X, beyond="extend") + 100,
            plain.predict_mean(data.X, beyond="extend"),
            rtol=1e-9,
        )

    @pytest.mark.parametrize("criterion", ["censored_quantile", "quantile", "variance", "logrank"])
    @pytest.mark.parametrize("factor", [2.0**-900, 2.0**900])
    def test_the_unit_of_time_changes_nothing(self, data, criterion, factor):
        plain = small(criterion=criterion).fit(data.X, data.y)
        scaled = small(criterion=criterion)
        scaled.fit(data.X, censored(data.y["time"] * factor, data.y["event"]))
        np.testing.assert_array_equal(
            scaled.predict(data.X, 0.3), plain.predict(data.X, 0.3) * factor
        )
        np.testing.assert_array_equal(scaled.feature_importances_, plain.feature_importances_)

    def test_all_times_alike_score_nothing(self, data):
        assert small().fit(data.X, np.ones(300)).score(data.X, np.ones(300)) == 0.0

    def test_verbose_shows_progress_and_changes_nothing(self, data, capsys):
        loud = small(verbose=1).fit(data.X, data.y)
        shown = capsys.readouterr().err
        assert shown.splitlines()[-1].split("\r")[-1].startswith(f"[{'#' * 30}] 20/20 trees")
        assert shown.endswith("\n")
        np.testing.assert_array_equal(
            loud.predict(data.X), small().fit(data.X, data.y).predict(data.X)
        )

    def test_compiling_is_announced_once_and_reading_the_cache_is_not(self, tmp_path):
        program = (
            "from cqrf import CensoredQuantileForest; import numpy as np;"
            "X = np.arange(40.0)[:, None];"
            "CensoredQuantileForest(n_estimators=2).fit(X, X[:, 0])"
        )
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        said = []
        for _ in range(2):
            run = subprocess.run(
                [sys.executable, "-c", program], env=environment, capture_output=True, text=True
            )
            assert run.returncode == 0, run.stderr
            said.append(run.stderr.splitlines())
        first, second = said
        assert len(first) == 1
        assert first[0].startswith("cqrf is compiling its kernels. This is done once")
        assert second == []


class TestBadInput:
    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"criterion": "gini"}, "criterion='gini'"),
            ({"n_estimators": 0}, "n_estimators=0"),
            ({"n_estimators": 2.5}, "n_estimators=2.5"),
            ({"max_features": 6}, "max_features=6"),
            ({"max_features": "all"}, "max_features='all'"),
            ({"max_samples": 301}, "max_samples=301"),
            ({"max_samples": 1.5}, "max_samples=1.5"),
            ({"min_samples_leaf": 0}, "min_samples_leaf=0"),
            ({"min_samples_split": 1}, "min_samples_split=1"),
            ({"min_child_fraction": 0.6}, "min_child_fraction=0.6"),
            ({"max_depth": 0}, "max_depth=0"),
            ({"max_bins": 256}, "max_bins=256"),
            ({"split_quantiles": [0.0, 0.5]}, "split_quantiles="),
            ({"censoring": "both"}, "censoring='both'"),
            ({"censoring_survival": "cox"}, "censoring_survival='cox'"),
            ({"solver": "newton"}, "solver='newton'"),
            ({"n_neighbors": 301}, "n_neighbors=301"),
            ({"honest": "yes"}, "honest='yes'"),
            ({"bootstrap": 1}, "bootstrap=1"),
        ],
    )
    def test_settings(self, data, settings, words):
        with pytest.raises(ValueError, match=words):
            small(**settings).fit(data.X, data.y)

    @pytest.mark.parametrize(
        ("X", "y", "words"),
        [
            (np.ones((3, 2)), [1.0, np.nan, 2.0], "row 1"),
            (np.ones((3, 2)), [1.0, np.inf, 2.0], "row 1"),
            (np.ones((3, 2)), [[1.0, 1], [2.0, 2], [3.0, 1]], "found 2.0 in row 1"),
            (np.ones((3, 2)), [[1.0, 0], [2.0, 0], [3.0, 0]], "every row is censored"),
            (np.ones((0, 2)), [], "0 sample"),
            (np.ones((3, 0)), [1.0, 2.0, 3.0], r"0 feature"),
            (np.ones((3, 2)), [1.0, 2.0], "inconsistent numbers of samples"),
            (np.full((3, 2), np.inf), [1.0, 2.0, 3.0], "infinity"),
        ],
    )
    def test_data(self, X, y, words):
        with pytest.raises(ValueError, match=words):
            small().fit(X, y)

    def test_predict(self, forest, data):
        with pytest.raises(NotFittedError):
            small().predict(data.X)
        with pytest.raises(ValueError, match="4 features"):
            forest.predict(data.X[:, :4])
        for levels in (0.0, 1.0, [0.5, 1.2], [], "half", [[0.5]]):
            with pytest.raises(ValueError, match="quantiles"):
                forest.predict(data.X, levels)
        with pytest.raises(ValueError, match="unidentified='zero'"):
            forest.predict(data.X, unidentified="zero")
        with pytest.raises(ValueError, match="coverage"):
            forest.predict_interval(data.X, coverage=1.0)
        with pytest.raises(ValueError, match="times"):
            forest.predict_survival(data.X, times=[np.nan])
        with pytest.raises(ValueError, match="horizon"):
            forest.predict_mean(data.X, horizon=np.inf)

    @pytest.mark.parametrize(
        "method",
        [
            "predict",
            "predict_interval",
            "predict_survival",
            "predict_censoring",
            "predict_mean",
            "max_quantile",
            "quantile_confidence_interval",
            "weights",
            "predict_oob",
            "predict_survival_oob",
            "weights_oob",
            "score_oob",
        ],
    )
    def test_every_method_of_an_unfitted_forest_says_so(self, data, method):
        arguments = () if method.endswith("oob") else (data.X,)
        with pytest.raises(NotFittedError):
            getattr(small(), method)(*arguments)

    def test_what_only_a_person_would_mistake(self, forest, data):
        with pytest.raises(ValueError, match="events without times"):
            small().fit(data.X, data.y["event"])
        with pytest.raises(ValueError, match=r"event is missing in row 0.*fill it with 0; else"):
            small().fit(data.X, np.column_stack([data.y["time"], np.full(300, np.nan)]))
        with pytest.raises(ValueError, match="horizon='year'"):
            forest.predict_mean(data.X, horizon="year")
        with pytest.raises(ValueError, match="no row is out of bag"):
            small(max_samples=None).fit(data.X, data.y).score_oob()

    def test_changing_the_side_after_fit_changes_nothing(self, data):
        forest = small().fit(data.X, data.y)
        before = forest.predict(data.X, 0.1)
        forest.set_params(censoring="left")
        np.testing.assert_array_equal(forest.predict(data.X, 0.1), before)

    def test_a_failed_fit_leaves_the_forest_as_it_was(self, data):
        forest = small().fit(data.X, data.y)
        before = forest.predict(data.X)
        with pytest.raises(ValueError, match="every row is censored"):
            forest.fit(data.X[:, :3], censored(data.y["time"], np.zeros(300)))
        assert forest.n_features_in_ == 5
        np.testing.assert_array_equal(forest.predict(data.X), before)
        fresh = small()
        with pytest.raises(ValueError, match="row 0"):
            fresh.fit(data.X, np.full(300, np.nan))
        assert not [name for name in vars(fresh) if name.endswith("_")]

    def test_the_callers_arrays_are_untouched(self, data):
        X, y = data.X.copy(), data.y.copy()
        small().fit(X, y).predict(X)
        np.testing.assert_array_equal(X, data.X)
        np.testing.assert_array_equal(y, data.y)
