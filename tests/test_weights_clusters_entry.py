"""Rows that are not alike: weighted, clustered, entering late."""

import numpy as np
import pandas as pd
import pytest
from lifelines import KaplanMeierFitter
from sklearn.base import clone

from cqrf import CensoredQuantileForest, censored, solve_quantiles
from cqrf._forest.sampling import derive_tree_keys, draw_subsamples, in_bag_bits
from cqrf.datasets import make_aft
from cqrf.evaluation import evaluate
from cqrf.metrics import censored_quantile_loss, quantile_loss

LEVELS = [0.1, 0.3, 0.5, 0.7, 0.9]

# Weights and entries are further kernels to compile for each criterion; one of them is a sample.
OTHER_CRITERIA = ("quantile", "variance", "logrank")
EVERY_CRITERION = pytest.mark.parametrize(
    "criterion",
    [
        "censored_quantile",
        *(pytest.param(name, marks=pytest.mark.slow) for name in OTHER_CRITERIA),
    ],
)


def small(**settings):
    few = {"n_estimators": 30, "max_samples": 0.5, "random_state": 0}
    return CensoredQuantileForest(**{**few, **settings})


@pytest.fixture(scope="module")
def data():
    return make_aft(300, 4, random_state=0)


@pytest.fixture(scope="module")
def weight():
    return np.random.default_rng(0).integers(0, 4, 300)


class TestSampleWeight:
    @pytest.mark.parametrize("method", ["beran", "knn", "km"])
    @pytest.mark.parametrize("solver", ["root", "argmin"])
    @pytest.mark.parametrize("n_neighbors", [None, 40, 0.2])
    def test_integers_are_repeated_rows_exactly(self, data, weight, method, solver, n_neighbors):
        rng = np.random.default_rng(1)
        weights = rng.uniform(size=(20, 300)) * (rng.uniform(size=(20, 300)) < 0.3)
        time, event = np.round(data.y["time"], 1), data.y["event"]
        arguments = (LEVELS, method, n_neighbors, solver)
        weighted = solve_quantiles(
            weights, time, event, *arguments, sample_weight=weight, unidentified="nan"
        )
        repeated = solve_quantiles(
            weights.repeat(weight, axis=1),
            time.repeat(weight),
            event.repeat(weight),
            *arguments,
            unidentified="nan",
        )
        np.testing.assert_allclose(weighted, repeated, rtol=0, atol=1e-12)

    @EVERY_CRITERION
    def test_integers_are_repeated_rows_statistically(self, criterion):
        """Weights and repetitions say the same of a population; ignoring them does not."""
        train, test = make_aft(800, 3, random_state=1), make_aft(500, 3, random_state=2)
        late = train.latent > train.quantile(train.X, 0.5)
        weight = np.where(late, 4, 1)
        settings = {"criterion": criterion, "n_estimators": 150}
        weighted = small(**settings).fit(train.X, train.y, sample_weight=weight)
        groups = np.arange(800).repeat(weight)
        repeated = small(**settings).fit(
            train.X.repeat(weight, axis=0), train.y.repeat(weight), groups=groups
        )
        ignored = small(**settings).fit(train.X, train.y)
        a, b, c = (
            forest.predict(test.X, [0.25, 0.5], unidentified="clip")
            for forest in (weighted, repeated, ignored)
        )
        assert np.abs(a - b).mean() < 0.35 * np.abs(a - c).mean()

    def test_zero_weight_rows_have_no_influence(self, data, weight):
        forest = small().fit(data.X, data.y, sample_weight=weight)
        X, y = data.X.copy(), data.y.copy()
        X[weight == 0] = 1e6
        y["time"][weight == 0] = 1e6
        other = small().fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(
            forest.predict(data.X, LEVELS, unidentified="nan"),
            other.predict(data.X, LEVELS, unidentified="nan"),
        )
        assert forest.weights(data.X)[:, weight == 0].nnz == 0
        assert forest.weights(data.X).shape == (300, 300)
        kept = weight > 0
        dropped = small().fit(data.X[kept], data.y[kept], sample_weight=weight[kept])
        np.testing.assert_array_equal(
            forest.predict(data.X, LEVELS, unidentified="nan"),
            dropped.predict(data.X, LEVELS, unidentified="nan"),
        )
        np.testing.assert_array_equal(forest.predict_mean(data.X), dropped.predict_mean(data.X))
        np.testing.assert_array_equal(forest.predict_mean(data.X), other.predict_mean(data.X))
        assert evaluate(other)["concordance"] == evaluate(dropped)["concordance"]
        np.testing.assert_array_equal(forest.predict_oob(0.3)[kept], dropped.predict_oob(0.3))
        assert np.isfinite(forest.predict_oob(0.3)[~kept]).all()

    @EVERY_CRITERION
    def test_rows_that_weigh_next_to_nothing_make_no_gain(self, criterion, tmp_path):
        x = np.arange(400.0)[:, np.newaxis]
        y = np.random.default_rng(0).exponential(size=400)
        for light in (x[:, 0] >= 200, x[:, 0] < 200):
            forest = small(criterion=criterion)
            forest.fit(x, y, sample_weight=np.where(light, 1e-20, 1.0))
            assert forest.feature_importances_.tolist() == [1.0]
            forest.save(tmp_path / "m.cqrf")
            CensoredQuantileForest.load(tmp_path / "m.cqrf")

    def test_a_far_row_without_weight_does_not_scale_the_others(self, data, weight):
        y = data.y.copy()
        y["time"][np.flatnonzero(weight == 0)[0]] = 1e200
        found, expected = (
            small(criterion="variance").fit(data.X, target, sample_weight=weight)
            for target in (y, data.y)
        )
        assert found.model_.forest.feature.tolist() == expected.model_.forest.feature.tolist()
        assert (found.model_.forest.feature >= 0).any()

    def test_more_neighbours_than_rows_with_weight_are_all_of_them(self, data):
        weight = np.where(np.arange(300) % 3, 0.0, 1.7)
        many = small(censoring_survival="knn", n_neighbors=250).fit(data.X, data.y, weight)
        every = small(censoring_survival="knn", n_neighbors=1.0).fit(data.X, data.y, weight)
        np.testing.assert_array_equal(
            many.predict(data.X, LEVELS, unidentified="clip"),
            every.predict(data.X, LEVELS, unidentified="clip"),
        )

    @pytest.mark.parametrize("factor", [2.0, 3.7, 1e-9, 1e9])
    def test_only_ratios_matter(self, data, weight, factor):
        forest = small().fit(data.X, data.y, sample_weight=weight)
        scaled = small().fit(data.X, data.y, sample_weight=weight * factor)
        np.testing.assert_allclose(
            forest.weights(data.X).toarray(), scaled.weights(data.X).toarray(), atol=1e-12
        )
        assert forest.score(data.X, data.y, weight) == pytest.approx(
            scaled.score(data.X, data.y, weight * factor), abs=1e-12
        )

    def test_weights_beyond_single_precision(self, data):
        """What is nothing beside the others is zero; huge weights are as good as any."""
        weight = np.ones(300)
        weight[:50] = 1e-46
        for working_model, rtol in ((None, 0), ("auto", 1e-9)):  # its weights round differently
            forest = small(working_model=working_model)
            tiny = clone(forest).fit(data.X, data.y, sample_weight=weight)
            none = clone(forest).fit(data.X, data.y, sample_weight=weight > 0.5)
            np.testing.assert_allclose(tiny.predict(data.X), none.predict(data.X), rtol=rtol)
        weight = np.where(np.arange(300) % 2, 1e308, 5e307)
        huge = small().fit(data.X, data.y, sample_weight=weight)
        np.testing.assert_allclose(huge.weights(data.X).sum(axis=1), 1.0)

    def test_equal_weights_are_no_weights(self, data):
        plain, weighted = small().fit(data.X, data.y), small()
        weighted.fit(data.X, data.y, sample_weight=np.full(300, 0.7))
        np.testing.assert_array_equal(plain.predict(data.X), weighted.predict(data.X))

    def test_leaf_weights_are_in_proportion(self, data, weight):
        forest = small(n_estimators=1, max_depth=1, honest=False, max_samples=None)
        forest.fit(data.X, data.y, sample_weight=weight + 1)
        row = forest.weights(data.X[:1]).toarray()[0]
        inside = row > 0
        expected = (weight + 1)[inside] / (weight + 1)[inside].sum()
        np.testing.assert_allclose(row[inside], expected, rtol=1e-6)

    @pytest.mark.parametrize(
        ("bad", "words"),
        [
            (np.ones(299), "shape"),
            (np.full(300, -1.0), "negative"),
            (np.full(300, np.nan), "finite"),
            (np.zeros(300), "zero in every row"),
        ],
    )
    def test_errors(self, data, bad, words):
        with pytest.raises(ValueError, match=words):
            small().fit(data.X, data.y, sample_weight=bad)

    def test_weight_only_on_censored_rows_is_an_error(self, data):
        with pytest.raises(ValueError, match="every row is censored"):
            small().fit(data.X, data.y, sample_weight=~data.y["event"])


class TestGroups:
    @pytest.mark.parametrize("bootstrap", [False, True])
    def test_a_cluster_is_never_in_both_halves(self, data, bootstrap):
        groups = np.random.default_rng(0).integers(0, 40, 300)
        forest = small(bootstrap=bootstrap).fit(data.X, data.y, groups=groups)
        sampling = forest.model_.sampling
        by_rank = groups[forest.model_.order]
        samples = draw_subsamples(sampling, derive_tree_keys(sampling, 0, range(0, 20)))
        ranks, starts = samples.ranks, samples.starts
        for k in range(20):
            split, leaf = (
                ranks[starts[2 * k + part] : starts[2 * k + part + 1]] for part in range(2)
            )
            assert len(split)
            assert len(leaf)
            assert not set(by_rank[split]) & set(by_rank[leaf])
            drawn = np.concatenate([split, leaf])
            whole = np.flatnonzero(np.isin(by_rank, by_rank[drawn]))
            assert set(drawn.tolist()) == set(whole.tolist())

    def test_out_of_bag_means_the_cluster_is_out(self, data):
        groups = np.random.default_rng(0).integers(0, 40, 300)
        forest = small().fit(data.X, data.y, groups=groups)
        weights = forest.weights_oob().toarray()
        same = groups[:, None] == groups[None, :]
        assert weights[same].sum() == 0
        drawn = in_bag_bits(forest.model_.sampling, range(30), forest.model_.seed)
        assert drawn.shape == (40, 4)

    def test_a_row_without_weight_is_out_of_bag_with_its_cluster(self, data, tmp_path):
        groups = np.random.default_rng(0).integers(0, 40, 300)
        alone = groups == 7
        weight = np.where(alone | (np.arange(300) % 3 == 0), 0.0, 1.0)
        forest = small().fit(data.X, data.y, sample_weight=weight, groups=groups)
        forest.save(tmp_path / "m.cqrf")
        for each in (forest, CensoredQuantileForest.load(tmp_path / "m.cqrf")):
            weights = each.weights_oob().toarray()
            assert weights[groups[:, None] == groups[None, :]].sum() == 0
            assert np.isfinite(each.predict_oob(0.3)[alone]).all()
            assert each.weights_oob()[alone].nnz == each.weights(data.X)[alone].nnz

    def test_copies_do_not_flatter_out_of_bag(self):
        """Each row five times: without groups its copies leak into its own prediction."""
        data = make_aft(100, 10, random_state=3)
        X, y = data.X.repeat(5, axis=0), data.y.repeat(5)
        fresh = make_aft(1000, 10, random_state=4)
        settings = {"min_samples_leaf": 1, "min_samples_split": 2, "n_estimators": 100}
        leaking = small(**settings).fit(X, y)
        grouped = small(**settings).fit(X, y, groups=np.arange(100).repeat(5))
        assert leaking.score_oob() > leaking.score(fresh.X, fresh.y) + 0.15
        assert grouped.score_oob() < grouped.score(fresh.X, fresh.y) + 0.1

    def test_any_labels_in_any_order(self, data):
        groups = np.random.default_rng(0).integers(0, 40, 300)
        names = np.array([f"clinic {(7 * g) % 40}" for g in groups])
        a = small().fit(data.X, data.y, groups=groups).predict(data.X)
        np.testing.assert_array_equal(small().fit(data.X, data.y, groups=names).predict(data.X), a)

    def test_errors(self, data):
        with pytest.raises(ValueError, match="groups has shape"):
            small().fit(data.X, data.y, groups=[1, 2])
        with pytest.raises(ValueError, match="NaN"):
            small().fit(data.X, data.y, groups=np.full(300, np.nan))
        with pytest.raises(ValueError, match="None or NaN"):
            small().fit(data.X, data.y, groups=[None] + ["a"] * 299)
        for dtype in ("string", "Int64"):
            groups = pd.Series([pd.NA] + [1] * 299, dtype=dtype)
            with pytest.raises(ValueError, match="None or NaN"):
                small().fit(data.X, data.y, groups=groups)
        with pytest.raises(ValueError, match="40 training groups"):
            small(max_samples=41).fit(data.X, data.y, groups=np.arange(300) % 40)


def truncated(n, seed):
    """Rows of an exponential time that entered before it and are seen only then."""
    rng = np.random.default_rng(seed)
    time, entry = rng.exponential(1.0, 20 * n), rng.uniform(0, 1.5, 20 * n)
    censoring = entry + rng.exponential(2.0, 20 * n)
    there = np.flatnonzero(entry < time)[:n]
    seen = np.minimum(time, censoring)[there]
    return np.round(seen, 2) + 0.01, (time <= censoring)[there], np.round(entry[there], 2)


class TestDelayedEntry:
    def test_quantiles_against_plain_loops(self):
        time, event, entry = truncated(60, 0)
        rng = np.random.default_rng(1)
        weights = rng.uniform(size=(30, 60)) * (rng.uniform(size=(30, 60)) < 0.7)
        solved = solve_quantiles(weights, time, event, LEVELS, entry=entry, unidentified="nan")
        for w, row in zip(weights, solved, strict=True):
            survival, curve = 1.0, []
            for t in np.unique(time[event & (w > 0)]):
                at_risk = sum(w[j] for j in range(60) if entry[j] < t <= time[j])
                died = sum(w[j] for j in range(60) if time[j] == t and event[j])
                survival *= 1 - died / at_risk
                curve.append((t, survival))
            for level, q in zip(LEVELS, row, strict=True):
                reached = [t for t, s in curve if s <= 1 - level + 1e-12]
                assert q == reached[0] if reached else np.isnan(q)

    def test_curve_against_lifelines(self):
        time, event, entry = truncated(300, 2)
        peer = KaplanMeierFitter().fit(time, event, entry=entry)
        ones = np.ones((300, 1))
        forest = small(max_samples=None, honest=False, n_estimators=1)
        forest.fit(ones, censored(time, event, entry))
        grid = np.linspace(0.05, 3.0, 60) + 0.001
        np.testing.assert_allclose(
            forest.predict_survival(ones[:1], grid)[0], peer.predict(grid), atol=1e-12
        )

    @EVERY_CRITERION
    def test_truncation_bias_is_removed(self, criterion):
        """Short times are missing from the table; entry times put them back."""
        time, event, entry = truncated(4000, 3)
        X = np.random.default_rng(0).uniform(size=(4000, 2))
        settings = {"criterion": criterion, "min_samples_split": 500}
        truth = -np.log1p(-0.3)
        right = small(**settings).fit(X, censored(time, event, entry)).predict(X, 0.3)
        wrong = small(**settings).fit(X, censored(time, event)).predict(X, 0.3)
        assert abs(np.median(right) - truth) < 0.06
        assert np.median(wrong) > truth + 0.2

    def test_node_curves_use_entries(self):
        """Two groups alike but for when they enter: only entries tell that they are alike."""
        rng = np.random.default_rng(5)
        time, event, entry = truncated(3000, 4)
        late = entry > 0.7
        X = np.column_stack([late, rng.uniform(size=3000)])
        gains = []
        for y in (censored(time, event), censored(time, event, entry)):
            forest = small(max_depth=1, honest=False, max_samples=None, n_estimators=1)
            forest.fit(X, y)
            gains.append(forest.model_.forest.importance[0])
        assert gains[1] < 0.5 * gains[0]

    def test_out_of_bag_and_score(self):
        time, event, entry = truncated(300, 6)
        X = np.random.default_rng(0).uniform(size=(300, 2))
        forest = small(working_model=None).fit(X, censored(time, event, entry))
        weights = forest.weights_oob()
        solved = solve_quantiles(weights, time, event, 0.3, entry=entry)
        np.testing.assert_array_equal(forest.predict_oob(0.3), solved)
        assert np.isfinite(forest.score_oob())

    def test_a_row_alone_at_first_does_not_end_what_is_asked(self):
        """At risk alone and censored, it would take G to 0 before anything has happened."""
        rng = np.random.default_rng(0)
        time = np.append(1.0, 10 + rng.exponential(20, 200))
        event, entry = (
            np.append(False, rng.uniform(size=200) < 0.8),
            np.append(0.0, np.full(200, 5)),
        )
        X = np.append(20.0, time[1:] * rng.uniform(0.5, 2, 200))[:, np.newaxis]
        late, whole = censored(time, event, entry), censored(time, event)
        predicted = np.full((201, 1), 25.0)
        loss = censored_quantile_loss(late, late, predicted, [0.5])
        assert loss == censored_quantile_loss(whole, whole, predicted, [0.5])
        assert loss > 5
        forest = small().fit(X, late)
        assert forest.score_oob() > 0.1
        assert evaluate(forest)["crps"] > 1

    def test_no_entry_is_entry_from_the_start(self, data):
        early = censored(data.y["time"], data.y["event"], np.full(300, -np.inf))
        np.testing.assert_array_equal(
            small().fit(data.X, early).predict(data.X, LEVELS, unidentified="nan"),
            small().fit(data.X, data.y).predict(data.X, LEVELS, unidentified="nan"),
        )

    def test_errors(self, data):
        with pytest.raises(ValueError, match="entry is 5 and time 2 in row 1"):
            censored([1.0, 2.0], [1, 1], [0.0, 5.0])
        with pytest.raises(ValueError, match="entry has shape"):
            censored([1.0, 2.0], [1, 1], [0.0])
        y = censored(data.y["time"], data.y["event"], np.zeros(300) - 1)
        with pytest.raises(ValueError, match="right censoring only"):
            small(censoring="left").fit(data.X, y)


def test_everything_together():
    """Gaps, weights, clusters and late entries in one fit, out of bag too."""
    rng = np.random.default_rng(0)
    time, event, entry = truncated(400, 7)
    X = rng.uniform(size=(400, 3))
    time = time * (1 + (X[:, 0] > 0.5))
    entry = np.minimum(entry, time * 0.9)
    X[rng.uniform(size=X.shape) < 0.2] = np.nan
    forest = small(n_estimators=60).fit(
        X,
        censored(time, event, entry),
        sample_weight=rng.integers(0, 3, 400),
        groups=rng.integers(0, 80, 400),
    )
    quantiles = forest.predict_oob(LEVELS, unidentified="clip")
    assert np.isfinite(quantiles).all()
    assert (np.diff(quantiles, axis=1) >= 0).all()
    assert np.argmax(forest.feature_importances_) == 0
    loss = quantile_loss(time[:, None], quantiles, LEVELS)
    assert np.isfinite(loss).all()


def test_scikit_learn_inspection_works():
    from matplotlib import pyplot as plt
    from sklearn.inspection import PartialDependenceDisplay, permutation_importance

    data = make_aft(300, 3, random_state=0)
    forest = small().fit(data.X, data.y)
    importance = permutation_importance(
        forest, data.X, data.y, n_repeats=2, random_state=0
    ).importances_mean
    assert importance[0] > 0.3 > 0.05 > np.abs(importance[1:]).max()
    display = PartialDependenceDisplay.from_estimator(forest, data.X, [0])
    averages = display.pd_results[0]["average"][0]
    assert averages[-1] > 3 * averages[0]
    plt.close("all")
    assert forest.feature_importances_.sum() == pytest.approx(1.0)
    assert forest.feature_importances_[0] > 0.8
