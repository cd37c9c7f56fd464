"""Direct and residual trees side by side: curves, out of bag, and errors, by plain loops."""

from dataclasses import replace

import numpy as np
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf._forest.sampling import subsample_units
from cqrf._forest.traversal import find_leaves
from cqrf._model.kinds import split_kinds
from cqrf._model.queries import encode_queries, training_queries
from cqrf._survival.little_bags import MAX_BLOCK, follow_survival, remove_noise, write_influence
from cqrf.datasets import make_aft
from oracles.two_kinds import TwoKinds

N = 80


def make_case(case):
    """X, time, event, entry and what else fit takes; times oriented to the right."""
    data, rng = make_aft(N, 3, random_state=0), np.random.default_rng(0)
    X, time, event = data.X.copy(), data.y["time"].copy(), data.y["event"]
    entry, fit = None, {}
    if case == "entries":
        entry = np.where(rng.random(N) < 0.4, 0.6 * time * rng.random(N), 0.0)
    if case == "missing":
        X[rng.random(X.shape) < 0.15] = np.nan
    if case == "weights":
        fit["sample_weight"] = rng.integers(1, 5, N)
    if case == "groups":
        fit["groups"] = np.arange(N) // 2
    return X, time, event, entry, fit


def fit_case(case, root_share=0.25, **settings):
    """A forest with this share of the root, its rows, and its answers in plain loops."""
    X, time, event, entry, fit = make_case(case)
    is_left = settings.get("censoring") == "left"
    y = censored(-time if is_left else time, event, entry=entry)
    forest = CensoredQuantileForest(
        **{"n_estimators": 15, "working_model": "cox", "random_state": 0} | settings
    ).fit(X, y, **fit)
    model = forest.model_
    working = model.working._replace(root_share=root_share)
    forest.model_ = replace(model, working=working)
    return forest, X, TwoKinds(forest.model_, time, event, entry)


def trees_without(model, row):
    """Places of the trees that have not drawn the unit of a row of the table."""
    unit = model.sampling.unit_of_row[model.ranks[row]]
    drawn = (
        unit in subsample_units(model.sampling, model.seed, number)[0].tolist()
        for number in model.tree_numbers.tolist()
    )
    return [tree for tree, is_drawn in enumerate(drawn) if not is_drawn]


TIMES = np.random.default_rng(5).uniform(0.3, 9.0, 12)
CASES = ["plain", "weights", "groups", "entries", "missing"]


@pytest.mark.parametrize("root_share", [0.0, 0.25])
@pytest.mark.parametrize("case", CASES)
def test_survival_is_that_of_plain_loops(case, root_share):
    forest, X, oracle = fit_case(case, root_share)
    working = forest.model_.working
    found = forest.predict_survival(X[:6])(TIMES, "nan")
    for row, curve in zip(X[:6], found):
        codes = encode_queries(forest.model_, row[np.newaxis]).codes
        predictor = float(sum(working.scores[f, code] for f, code in enumerate(codes[0])))
        expected = [oracle.survival(row, range(15), predictor, t) for t in TIMES]
        np.testing.assert_allclose(curve, expected, atol=1e-9)
    assert not np.isnan(found[:, TIMES < 3]).all()


@pytest.mark.parametrize("case", CASES)
def test_out_of_bag_is_the_forest_of_the_trees_that_left_the_row_out(case):
    forest, X, oracle = fit_case(case)
    found = forest.predict_survival_oob()(TIMES, "nan")
    for row in range(0, N, 9):
        trees = trees_without(forest.model_, row)
        assert 0 < len(trees) < 15
        expected = [oracle.survival(X[row], trees, oracle.predictor[row], t) for t in TIMES]
        np.testing.assert_allclose(found[row], expected, atol=1e-9)


def test_out_of_bag_uses_cross_fitted_predictors():
    forest, X, _ = fit_case("plain")
    model = forest.model_
    queries = training_queries(model)
    np.testing.assert_array_equal(
        queries.linear_predictor, model.working.linear_predictor[model.ranks]
    )
    whole = model.working.predict(encode_queries(model, X).codes)
    assert np.abs(queries.linear_predictor - whole).max() > 0.01


@pytest.mark.parametrize("n_trees", [2, 3, 4])
def test_rows_without_trees_of_a_kind_out_of_bag(n_trees):
    forest, X, oracle = fit_case("plain", n_estimators=n_trees)
    found = forest.predict_survival_oob()(TIMES, "nan")
    median = forest.predict_oob(0.3, unidentified="nan")
    n_direct, kinds = (n_trees + 1) // 2, set()
    for row in range(N):
        trees = trees_without(forest.model_, row)
        kinds.add((any(t < n_direct for t in trees), any(t >= n_direct for t in trees)))
        if not trees:
            assert np.isnan(found[row]).all()
            assert np.isnan(median[row])
            continue
        expected = [oracle.survival(X[row], trees, oracle.predictor[row], t) for t in TIMES]
        np.testing.assert_allclose(found[row], expected, atol=1e-9)
    assert len(kinds) == 4


def test_left_censoring_is_the_mirrored_problem():
    right, X, _ = fit_case("plain")
    left, _, _ = fit_case("plain", censoring="left")
    levels = np.array([0.2, 0.5, 0.8])
    np.testing.assert_array_equal(
        left.predict(X, levels, unidentified="nan"),
        -right.predict(X, 1 - levels, unidentified="nan"),
    )
    np.testing.assert_allclose(
        left.predict_survival(X)(-TIMES, "nan"),
        1 - right.predict_survival(X)(TIMES, "nan"),
    )
    np.testing.assert_array_equal(left.max_quantile(X), 1 - right.max_quantile(X))


@pytest.mark.parametrize("case", CASES)
def test_quantiles_are_read_off_the_curves(case):
    forest, X, _ = fit_case(case, n_estimators=40)
    levels = np.linspace(0.05, 0.95, 19)
    found = forest.predict(X, levels, unidentified="nan")
    curves = forest.predict_survival(X)
    for quantiles, curve in zip(found, curves):
        for level, q in zip(levels, quantiles):
            below = curve.times[curve.values <= 1 - level + 1e-12]
            expected = below[0] if len(below) else np.nan
            np.testing.assert_allclose(q, expected, rtol=1e-9)
    limit = forest.max_quantile(X)
    lowest = np.array([curve.values[-1] for curve in curves])
    np.testing.assert_allclose(limit, 1 - lowest, atol=1e-9)
    assert (np.diff(found, axis=1)[~np.isnan(found[:, 1:])] >= 0).all()


def test_shares_add_up_to_one():
    forest, X, _ = fit_case("plain")
    model = forest.model_
    queries = encode_queries(model, X[:3])
    kinds = split_kinds(model, queries, find_leaves(model.forest, queries.codes))
    direct, residual, root = kinds.shares
    assert direct == residual
    assert direct + residual + root == pytest.approx(1.0)
    assert root == 0.25
    for weights in (kinds.direct_weights, kinds.residual_weights):
        np.testing.assert_allclose(np.add.reduceat(weights.values, weights.offsets[:-1]), 1.0)
    both = forest.weights(X[:3]).toarray()
    np.testing.assert_allclose(both.sum(axis=1), 1.0)


@pytest.mark.parametrize("case", ["plain", "weights"])
@pytest.mark.parametrize("n_trees", [24, 27])
def test_standard_errors_are_those_of_loops_over_bags(case, n_trees):
    """A bag has 2 trees of either kind; trees behind the last whole bag do not count."""
    forest, X, oracle = fit_case(case, n_estimators=n_trees, bag_size=2)
    model, t, n_bags = forest.model_, 2.5, n_trees // 4
    working = model.working
    n_direct = (n_trees + 1) // 2
    for row in X[:4]:
        codes = encode_queries(model, row[np.newaxis]).codes
        predictor = float(working.predict(codes)[0])
        bags, within = np.zeros((n_bags, 2)), np.zeros(2)
        for kind, first in enumerate((0, n_direct)):
            last = n_direct if kind == 0 else n_trees
            place = np.array(oracle.time if kind == 0 else oracle.residual)
            at = t if kind == 0 else oracle.place(t, predictor)
            order = np.lexsort((~np.array(oracle.event), place))
            whole = np.array(oracle.walker.weights(row, list(range(first, last))))[order]
            ranks = np.flatnonzero(whole > 0).astype(np.int32)
            influence = np.zeros((N, 1))
            path = follow_survival(ranks, whole[ranks], np.array(oracle.event)[order])
            write_influence(ranks, path, place[order], np.array([at]), influence)
            moves = [
                np.array(oracle.walker.weights(row, [tree]))[order] @ influence[:, 0]
                for tree in range(first, first + 2 * n_bags)
            ]
            moves = np.reshape(moves, (n_bags, 2))
            bags[:, kind] = moves.mean(axis=1)
            within[kind] = (moves.var(axis=1, ddof=1) / 2).mean()
        share = (1 - working.root_share) / 2
        between = ((share * bags.sum(axis=1)) ** 2).mean()
        expected = np.sqrt(remove_noise(between, share**2 * within.sum(), n_bags))
        found = forest.survival_standard_error(row[np.newaxis], [t])[0, 0]
        assert found == pytest.approx(float(expected), rel=1e-9)


def test_errors_at_many_times_are_those_of_each_time():
    forest, X, _ = fit_case("plain", n_estimators=24, bag_size=2)
    times = np.linspace(0.5, 6.0, 2 * MAX_BLOCK + 3)  # blocks of which the last is not full
    together = forest.survival_standard_error(X[:4], times, beyond="extend")
    for k in (0, MAX_BLOCK, len(times) - 1):
        alone = forest.survival_standard_error(X[:4], times[[k]], beyond="extend")[:, 0]
        np.testing.assert_array_equal(together[:, k], alone)
    assert (together > 0).any(axis=0).all()


def test_trees_of_a_bag_draw_from_the_same_half():
    forest, _, _ = fit_case("plain", n_estimators=24, bag_size=2)
    model = forest.model_
    assert model.sampling.bag_size == 4
    numbers = model.tree_numbers
    assert numbers.tolist() == [*range(0, 24, 2), *range(1, 24, 2)]
    for bag in range(6):
        places = np.flatnonzero(numbers // 4 == bag)
        assert (places < 12).sum() == 2
        drawn = [subsample_units(model.sampling, model.seed, n)[0] for n in numbers[places]]
        assert len(np.unique(np.concatenate(drawn))) <= N // 2


def test_models_without_a_working_model_have_one_kind():
    data = make_aft(N, 3, random_state=0)
    model = CensoredQuantileForest(n_estimators=4, working_model=None).fit(data.X, data.y).model_
    queries = encode_queries(model, data.X[:2])
    assert split_kinds(model, queries, find_leaves(model.forest, queries.codes)) is None
