"""Forests with a working model, from outside: settings, invariances, readers, accuracy."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from cqrf import CensoredQuantileForest, censored
from cqrf._model.queries import training_queries
from cqrf.datasets import make_aft, make_dependent_censoring, make_heteroscedastic
from support.forests import list_nodes, rows_of_leaf

LEVELS = [0.1, 0.25, 0.5, 0.75]


def make_forest(**settings):
    few = {"n_estimators": 30, "working_model": "cox", "random_state": 0}
    return CensoredQuantileForest(**{**few, **settings})


@pytest.fixture(scope="module")
def data():
    return make_aft(200, 4, random_state=0)


def quantiles(forest, X):
    return forest.predict(X, LEVELS, unidentified="nan")


def describe_trees(model):
    """Splits and leaf rows of each tree."""
    forest = model.forest
    trees = []
    for root in forest.roots:
        nodes = []
        for node in sorted(list_nodes(forest, root)):
            is_leaf = forest.feature[node] < 0
            own = rows_of_leaf(forest, node).tolist() if is_leaf else int(forest.code[node])
            nodes.append((int(forest.feature[node]), own))
        trees.append(nodes)
    return trees


class TestSettings:
    def test_direct_trees_are_the_even_trees_of_the_plain_forest(self, data):
        plain = describe_trees(make_forest(working_model=None).fit(data.X, data.y).model_)
        mixed = describe_trees(make_forest().fit(data.X, data.y).model_)
        assert mixed[:15] == plain[::2]
        assert mixed[15:] != plain[1::2]

    @pytest.mark.parametrize("settings", [{}, {"bag_size": 3}, {"bootstrap": True}])
    def test_none_is_the_plain_forest(self, data, settings):
        forest = make_forest(working_model=None, **settings).fit(data.X, data.y)
        assert forest.model_.working is None
        assert forest.model_.residual_trees is None
        assert forest.model_.sampling.bag_size == settings.get("bag_size", 1)

    def test_what_is_too_little_gets_no_working_model(self, data):
        def has_model(X, y, **settings):
            return make_forest(**settings).fit(X, y).model_.working is not None

        few_events = censored(data.y["time"], data.y["event"] & (np.cumsum(data.y["event"]) < 10))
        assert not has_model(data.X, few_events)
        enough = censored(data.y["time"], data.y["event"] & (np.cumsum(data.y["event"]) <= 10))
        assert has_model(data.X, enough)
        assert not has_model(data.X[:49], data.y[:49])
        assert has_model(data.X[:50], data.y[:50])
        assert not has_model(data.X, data.y, n_estimators=1)
        assert has_model(data.X, data.y, n_estimators=2)

    def test_rows_without_weight_do_not_count_as_rows(self, data):
        weight = np.arange(200) < 49
        assert make_forest().fit(data.X, data.y, sample_weight=weight).model_.working is None

    @pytest.mark.parametrize(
        "settings",
        [{"solver": "argmin"}, {"censoring_survival": "knn"}, {"censoring_survival": "km"}],
    )
    def test_other_solvers_are_refused(self, data, settings):
        with pytest.raises(ValueError, match=r"working model.*must be \"beran\".*\"root\""):
            make_forest(**settings).fit(data.X, data.y)
        forest = make_forest().fit(data.X, data.y).set_params(**settings)
        with pytest.raises(ValueError, match="working_model=None"):
            forest.predict(data.X)
        with pytest.raises(ValueError, match="working_model=None"):
            forest.predict_oob()
        automatic = make_forest(working_model="auto", **settings).fit(data.X, data.y)
        assert automatic.model_.working is None

    @pytest.mark.parametrize("criterion", ["quantile", "variance", "logrank"])
    def test_auto_leaves_published_criteria_alone(self, data, criterion):
        forest = make_forest(working_model="auto", criterion=criterion).fit(data.X, data.y)
        assert forest.model_.working is None
        assert make_forest(criterion=criterion).fit(data.X, data.y).model_.working is not None

    def test_auto_is_cox_for_the_default_criterion(self, data):
        automatic = make_forest(working_model="auto").fit(data.X, data.y)
        expected = make_forest().fit(data.X, data.y)
        np.testing.assert_array_equal(quantiles(automatic, data.X), quantiles(expected, data.X))

    @pytest.mark.parametrize("wrong", ["weibull", "Cox", True, 1, ""])
    def test_other_values_are_refused(self, data, wrong):
        with pytest.raises(ValueError, match="working_model"):
            make_forest(working_model=wrong).fit(data.X, data.y)

    def test_cloned_and_pickled(self, data):
        forest = make_forest().fit(data.X, data.y)
        assert forest.get_params()["working_model"] == "cox"
        again = clone(forest).fit(data.X, data.y)
        loaded = pickle.loads(pickle.dumps(forest))
        for other in (again, loaded):
            np.testing.assert_array_equal(quantiles(other, data.X), quantiles(forest, data.X))


class TestWideTables:
    """From one feature per five rows on, direct trees are not honest."""

    @staticmethod
    def fit(n_features=20, **settings):
        data = make_aft(100, n_features, random_state=0)
        extra = {name: settings.pop(name, None) for name in ("sample_weight", "groups")}
        return make_forest(**settings).fit(data.X, data.y, **extra)

    @staticmethod
    def rows_in_trees(forest):
        """Rows in the leaves of each direct and of each residual tree."""
        trees = describe_trees(forest.model_)
        counts = [sum(len(own) for feature, own in tree if feature < 0) for tree in trees]
        return set(counts[:15]), set(counts[15:])

    @pytest.mark.parametrize(
        ("n_features", "settings", "expected"),
        [
            (20, {}, ({80}, {40})),
            (19, {}, ({40}, {40})),
            (20, {"honest": True}, ({40}, {40})),
            (20, {"honest": False}, ({80}, {80})),
            (20, {"bag_size": 2}, ({25}, {25})),
            (20, {"working_model": None}, ({40}, {40})),
        ],
    )
    def test_rows_in_leaves(self, n_features, settings, expected):
        assert self.rows_in_trees(self.fit(n_features, **settings)) == expected

    def test_rows_without_weight_do_not_count(self):
        weight = np.arange(100) < 95
        assert self.rows_in_trees(self.fit(19, sample_weight=weight)) == ({76}, {38})
        assert self.rows_in_trees(self.fit(18, sample_weight=weight)) == ({38}, {38})

    def test_the_rows_of_few_clusters_are_counted(self):
        """Not the clusters: a tree that is not honest would learn them by heart."""
        narrow = self.rows_in_trees(self.fit(19, groups=np.arange(100) // 2))
        assert narrow == ({40}, {40})
        wide = self.rows_in_trees(self.fit(20, groups=np.arange(100) // 2))
        assert wide == ({80}, {40})

    def test_residual_trees_and_rows_out_of_bag_are_the_same(self):
        wide, honest = self.fit(), self.fit(honest=True)
        assert describe_trees(wide.model_)[15:] == describe_trees(honest.model_)[15:]
        drawn, expected = (training_queries(each.model_).in_bag for each in (wide, honest))
        np.testing.assert_array_equal(drawn, expected)

    def test_the_model_file_gives_the_same_forest(self, tmp_path):
        forest = self.fit()
        forest.save(tmp_path / "wide.cqrf")
        loaded = CensoredQuantileForest.load(tmp_path / "wide.cqrf")
        assert loaded.honest == "auto"
        assert describe_trees(loaded.model_) == describe_trees(forest.model_)
        found, expected = (each.predict_oob(0.5, unidentified="nan") for each in (loaded, forest))
        np.testing.assert_array_equal(found, expected)


class TestInvariances:
    def test_rows_without_weight_have_no_influence(self, data):
        rng = np.random.default_rng(0)
        order = rng.permutation(260)
        X = np.vstack([data.X, 50 * rng.normal(size=(60, 4))])[order]
        time = np.append(data.y["time"], rng.exponential(100.0, 60))[order]
        event, weight = np.append(data.y["event"], np.full(60, True))[order], order < 200
        full = make_forest().fit(X, censored(time, event), sample_weight=weight)
        kept = make_forest().fit(X[weight], censored(time[weight], event[weight]))
        np.testing.assert_array_equal(quantiles(full, data.X), quantiles(kept, data.X))
        oob = full.predict_oob(LEVELS, unidentified="nan")
        np.testing.assert_array_equal(oob[weight], kept.predict_oob(LEVELS, unidentified="nan"))

    def test_equal_weights_are_no_weights(self, data):
        weighted = make_forest().fit(data.X, data.y, sample_weight=np.full(200, 3.0))
        plain = make_forest().fit(data.X, data.y)
        np.testing.assert_allclose(quantiles(weighted, data.X), quantiles(plain, data.X))

    def test_doubled_times_double_predictions(self, data):
        one = make_forest().fit(data.X, data.y)
        two = make_forest().fit(data.X, censored(2 * data.y["time"], data.y["event"]))
        np.testing.assert_array_equal(quantiles(two, data.X), 2 * quantiles(one, data.X))
        np.testing.assert_array_equal(two.max_quantile(data.X), one.max_quantile(data.X))

    @pytest.mark.parametrize(("scale", "shift"), [(365.25, 0.0), (1.0, 10.0), (0.1, 3.0)])
    def test_scaled_and_shifted_times_move_predictions(self, data, scale, shift):
        one = make_forest().fit(data.X, data.y)
        y = censored(scale * data.y["time"] + shift, data.y["event"])
        other = make_forest().fit(data.X, y)
        np.testing.assert_allclose(
            quantiles(other, data.X), scale * quantiles(one, data.X) + shift, rtol=1e-9
        )

    def test_scaled_features_change_nothing(self, data):
        one = make_forest().fit(data.X, data.y)
        scaled = data.X * [1024.0, 2.0, 0.5, 1.0]
        other = make_forest().fit(scaled, data.y)
        np.testing.assert_allclose(quantiles(other, scaled), quantiles(one, data.X), rtol=1e-9)

    def test_n_jobs_changes_nothing(self, data):
        one, two, many = (make_forest(n_jobs=n).fit(data.X, data.y) for n in (1, 2, 5))
        for other in (two, many):
            np.testing.assert_array_equal(quantiles(other, data.X), quantiles(one, data.X))
            np.testing.assert_array_equal(
                other.predict_oob(unidentified="nan"), one.predict_oob(unidentified="nan")
            )

    def test_chunks_change_nothing(self, data, monkeypatch):
        forest = make_forest().fit(data.X, data.y)
        expected = quantiles(forest, data.X)
        monkeypatch.setattr("cqrf._forest.weights.CHUNK_WEIGHTS", 1000)
        np.testing.assert_array_equal(quantiles(forest, data.X), expected)

    def test_a_table_that_is_sampled(self, data, monkeypatch):
        monkeypatch.setattr("cqrf._working_model.fit.MOST_ROWS", 60)
        forest = make_forest(n_estimators=60).fit(data.X, data.y)
        assert len(forest.model_.working.knots) <= 61
        errors = []  # of forests with and without it, on six tables
        for seed in range(6):
            train = make_aft(200, 4, random_state=seed)
            truth = train.quantile(train.X, 0.5)
            for model in ("cox", None):
                fitted = make_forest(n_estimators=60, working_model=model).fit(train.X, train.y)
                found = fitted.predict(train.X, unidentified="clip")
                errors.append(np.abs(found - truth).mean())
        assert np.mean(errors[::2]) < 0.95 * np.mean(errors[1::2])
        assert_consistent(forest, data.X)


def assert_consistent(forest, X):
    """Quantiles, curves, levels and means of the same rows say the same."""
    curves, found = forest.predict_survival(X), quantiles(forest, X)
    limit = forest.max_quantile(X)
    for row, curve in enumerate(curves):
        assert (np.diff(curve.values) <= 1e-12).all()
        assert ((curve.values > -1e-12) & (curve.values <= 1)).all()
        for level, q in zip(LEVELS, found[row]):
            if np.isnan(q):
                assert level > limit[row] - 1e-9
            else:
                at = np.array([q * (1 - 1e-9), q * (1 + 1e-9)])
                before, after = curve(at, "extend")
                assert after <= 1 - level + 1e-9 <= before + 2e-9
        end = min(curve.end, 6.0)
        edges = np.concatenate([[0.0], curve.times[curve.times < end], [end]])
        heights = np.concatenate([[1.0], curve.values[curve.times < end]])
        area = (np.diff(edges) * heights).sum()
        assert forest.predict_mean(X[row : row + 1], end)[0] == pytest.approx(area)


@pytest.mark.parametrize("kind", ["groups", "entries", "missing", "categories", "weights"])
def test_every_reader_reads_every_kind_of_table(data, kind):
    rng = np.random.default_rng(0)
    X, y, fit = pd.DataFrame(data.X, columns=list("abcd")), data.y, {}
    if kind == "groups":
        fit["groups"] = np.arange(200) // 4
    if kind == "weights":
        fit["sample_weight"] = rng.integers(0, 4, 200)
    if kind == "entries":
        entry = np.where(rng.random(200) < 0.3, 0.5 * y["time"] * rng.random(200), 0.0)
        y = censored(y["time"], y["event"], entry=entry)
    if kind == "missing":
        X = X.mask(rng.random(X.shape) < 0.2)
    if kind == "categories":
        X["a"] = pd.cut(X["a"], 5, labels=list("pqrst")).astype(str).mask(rng.random(200) < 0.1)
    forest = make_forest(n_estimators=60).fit(X, y, **fit)
    assert forest.model_.working is not None
    assert_consistent(forest, X.head(20))
    assert forest.score_oob() > 0.25
    np.testing.assert_allclose(forest.weights(X).sum(axis=1), 1.0)
    remaining = forest.predict(X.head(20), 0.5, given=1.0, unidentified="nan")
    assert (remaining[~np.isnan(remaining)] >= 0).all()
    assert forest.predict_survival_oob().end.shape == (200,)
    assert forest.predict_interval(X, unidentified="clip").shape == (200, 2)
    assert np.isfinite(forest.predict_oob(0.5, unidentified="clip")).all()
    assert forest.feature_importances_[0] == forest.feature_importances_.max()


def test_clusters_stay_together_in_folds(data):
    """Copies of a row in one cluster: none of them helps to predict the others out of bag."""
    rng = np.random.default_rng(1)
    X, time = rng.normal(size=(60, 3)), rng.exponential(size=60)
    copies = np.repeat(np.arange(60), 4)
    y = censored(time[copies], np.full(240, True))
    forest = make_forest().fit(X[copies], y, groups=copies)
    predictor = forest.model_.working.linear_predictor[forest.model_.ranks].reshape(60, 4)
    np.testing.assert_array_equal(predictor, np.tile(predictor[:, :1], 4))
    assert forest.score_oob() < 0.1


def test_tables_of_few_clusters(data):
    for n_groups in (1, 2, 3):
        forest = make_forest().fit(data.X, data.y, groups=np.arange(200) % n_groups)
        assert np.isfinite(forest.predict(data.X, 0.2)).all()


@pytest.mark.parametrize("make", [make_aft, make_dependent_censoring])
def test_it_is_closer_to_the_true_quantiles(make):
    errors = np.zeros(2)
    for seed in range(3):
        data, new = make(300, 5, random_state=seed), make(1000, 5, random_state=100 + seed)
        for k, working_model in enumerate(("cox", None)):
            forest = make_forest(n_estimators=100, working_model=working_model)
            forest.fit(data.X, data.y)
            for level in (0.25, 0.5, 0.75):
                predicted = forest.predict(new.X, level, unidentified="clip")
                errors[k] += np.sqrt(np.mean((predicted - data.quantile(new.X, level)) ** 2))
    assert errors[0] <= 0.85 * errors[1]


def test_it_costs_little_where_the_model_is_wrong():
    errors = np.zeros(2)
    for seed in range(3):
        data = make_heteroscedastic(600, 5, random_state=seed)
        for k, working_model in enumerate(("cox", None)):
            forest = make_forest(n_estimators=100, working_model=working_model)
            forest.fit(data.X, data.y)
            for level in (0.25, 0.5, 0.75):
                predicted = forest.predict(data.X, level, unidentified="clip")
                errors[k] += np.sqrt(np.mean((predicted - data.quantile(data.X, level)) ** 2))
    assert errors[0] <= 1.1 * errors[1]
