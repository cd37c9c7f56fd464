"""What must not change an answer: the order of rows and columns, units of time and weight, copies.

The same tables with the outcomes of every kind: right-censored times with a working model,
competing risks, and intervals; treatment effects stand in tests/test_effect_properties.py.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cqrf import CensoredQuantileForest, censored, interval

N, P = 150, 3
LEVELS = [0.2, 0.5]
# Every tree sees every row and every column: nothing is drawn.
WHOLE = {"max_samples": None, "honest": False, "max_features": None}
# Far from ties of gains, which columns in another order break in another way.
LARGE_LEAVES = {"min_samples_leaf": 12, "min_samples_split": 30}
KINDS = ("working model", "causes", "intervals")
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def make_rows(seed=0, n=N):
    """Features without ties, latent times and what is seen of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, P))
    time = np.exp(0.7 * X[:, 0] + 0.5 * rng.normal(size=n))
    end = rng.exponential(4.0, n)
    return X, time, end, rng


def make_outcome(kind, scale=1.0, shift=0.0):
    """The target of a kind; its times are scaled, then shifted."""
    _, time, end, rng = make_rows()
    if kind == "intervals":
        visits = np.sort(rng.uniform(0, 5, (N, 6)), axis=1)
        visits = np.column_stack([np.full(N, -np.inf), visits, np.full(N, np.inf)])
        behind = (visits < time[:, np.newaxis]).sum(axis=1)
        lower, upper = visits[np.arange(N), behind - 1], visits[np.arange(N), behind]
        exact = rng.random(N) < 0.2
        lower[exact] = upper[exact] = time[exact]
        return interval(scale * lower + shift, scale * upper + shift)
    event = time <= end
    if kind == "causes":
        event = np.where(event, 1 + (rng.random(N) < 0.5), 0)
    return censored(scale * np.minimum(time, end) + shift, event)


def fit(kind, X, y, *, given=None, **settings):
    """A small forest of this kind."""
    settings = {"n_estimators": 12, "random_state": 1, **settings}
    if kind == "working model":
        settings = {"working_model": "cox", **settings}
    elif kind == "intervals":
        settings = {"working_model": None, **settings}
    forest = CensoredQuantileForest(**settings).fit(X, y, **(given or {}))
    assert (forest.model_.working is not None) == (settings.get("working_model") == "cox")
    assert bool(forest.model_.causes) == (kind == "causes")
    assert (forest.model_.lower is not None) == (kind == "intervals")
    return forest


def answers(forest, X, scale=1.0, shift=0.0):
    """Times and probabilities of new rows and out of bag, in the unit of the plain table."""
    at = scale * np.array([0.5, 1.5]) + shift
    clip = {"unidentified": "clip"}
    times = [forest.predict(X, LEVELS, **clip), forest.predict_oob(LEVELS, **clip)]
    shares = [forest.predict_survival(X, at, beyond="extend")]
    if forest.model_.causes:
        times.append(forest.predict(X, 0.1, cause=2, unidentified="nan"))
        shares += [
            forest.predict_incidence(X, at, beyond="extend"),
            forest.predict_incidence_oob(at, beyond="extend"),
        ]
    if forest.model_.lower is not None:
        times.append(forest.predict_quantile_bounds(X, LEVELS, **clip)[..., 1])
        shares.append(forest.predict_survival_bounds(X, at, beyond="extend"))
    return [(each - shift) / scale for each in times] + shares


def assert_equal(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert_array_equal(one, other)


def assert_close(found, expected, **tolerance):
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, **({"rtol": 1e-7, "atol": 1e-9} | tolerance))


def take_rows(y, order):
    return tuple(each[order] for each in y) if isinstance(y, tuple) else y[order]


@pytest.mark.parametrize("kind", ["causes", "intervals"])
def test_rows_in_any_order_that_every_tree_sees(kind):
    """Which rows a tree draws goes by the number of a row: here it draws all of them."""
    X, y = make_rows()[0], make_outcome(kind)
    order = np.random.default_rng(9).permutation(N)
    settings = WHOLE | LARGE_LEAVES
    forest, turned = (
        fit(kind, X, y, **settings),
        fit(kind, X[order], take_rows(y, order), **settings),
    )
    asked = make_rows(seed=5, n=30)[0]
    weights, of_turned = forest.weights(asked).toarray(), turned.weights(asked).toarray()
    assert_allclose(of_turned, weights[:, order], rtol=1e-12)
    no_oob = [0, *range(2, 4)] if kind == "causes" else [0, *range(2, 5)]
    found, expected = answers(turned, asked), answers(forest, asked)
    assert_close([found[k] for k in no_oob], [expected[k] for k in no_oob])


@EVERY_KIND
def test_rows_in_any_order_that_keeps_that_of_their_clusters(kind):
    """Trees draw clusters, and folds of the working model hold clusters, numbered as they appear.

    So the second row of each cluster may stand anywhere behind the first.
    """
    X, y = make_rows()[0], make_outcome(kind)
    groups = np.arange(N) // 2
    rng = np.random.default_rng(9)
    place = np.where(np.arange(N) % 2 == 0, np.arange(N), np.arange(N) + rng.uniform(0, N, N))
    order = np.argsort(place)
    assert (order != np.arange(N)).mean() > 0.9
    forest = fit(kind, X, y, given={"groups": groups})
    turned = fit(kind, X[order], take_rows(y, order), given={"groups": groups[order]})
    asked = make_rows(seed=5, n=30)[0]
    found, expected = answers(turned, asked), answers(forest, asked)
    expected[1] = expected[1][order]  # out of bag
    if kind == "causes":
        expected[-1] = expected[-1][order]
    assert_close(found, expected)


@EVERY_KIND
def test_columns_in_any_order(kind):
    """Every split sees every column; only which of some columns it sees goes by their numbers."""
    X, y = make_rows()[0], make_outcome(kind)
    order = [2, 0, 1]
    settings = LARGE_LEAVES | {"max_features": None}
    forest, turned = fit(kind, X, y, **settings), fit(kind, X[:, order], y, **settings)
    asked = make_rows(seed=5, n=30)[0]
    assert_close(answers(turned, asked[:, order]), answers(forest, asked))
    assert_allclose(turned.feature_importances_, forest.feature_importances_[order], rtol=1e-6)


@EVERY_KIND
def test_a_unit_of_time_scales_times(kind):
    """A factor of two is exact; the working model's own equations are solved in the other unit."""
    X, asked = make_rows()[0], make_rows(seed=5, n=30)[0]
    forest, scaled = (fit(kind, X, make_outcome(kind, scale)) for scale in (1.0, 8.0))
    same = assert_close if kind == "working model" else assert_equal
    same(answers(scaled, asked, 8.0), answers(forest, asked))
    days = fit(kind, X, make_outcome(kind, 365.25))
    assert_close(answers(days, asked, 365.25), answers(forest, asked))


@EVERY_KIND
def test_another_start_of_time_shifts_times(kind):
    X, asked = make_rows()[0], make_rows(seed=5, n=30)[0]
    forest, moved = (fit(kind, X, make_outcome(kind, shift=shift)) for shift in (0.0, 16.0))
    assert_close(answers(moved, asked, shift=16.0), answers(forest, asked), atol=1e-7)


@EVERY_KIND
@pytest.mark.parametrize("factor", [4.0, 0.3])
def test_weights_that_differ_by_a_factor(kind, factor):
    X, y, asked = make_rows()[0], make_outcome(kind), make_rows(seed=5, n=30)[0]
    weight = np.random.default_rng(3).integers(0, 4, N).astype(float)
    forest, scaled = (
        fit(kind, X, y, given={"sample_weight": each}) for each in (weight, factor * weight)
    )
    assert_close(answers(scaled, asked), answers(forest, asked))


@EVERY_KIND
def test_a_whole_weight_counts_as_copies_of_the_row(kind):
    """Copies are one cluster, as the row is: what is drawn, and folds, are then the same.

    Limits of nodes count rows, not weights, so that only the depth of the trees is limited. Weights
    are kept in single precision.
    """
    X, y, asked = make_rows()[0], make_outcome(kind), make_rows(seed=5, n=30)[0]
    copies = np.random.default_rng(3).integers(1, 4, N)
    settings = {"max_depth": 2, "min_samples_leaf": 1, "min_child_fraction": 0.0}
    settings |= {"min_samples_split": 2, "max_features": None}
    weighted = fit(kind, X, y, given={"sample_weight": copies}, **settings)
    row = np.repeat(np.arange(N), copies)
    repeated = fit(kind, X[row], take_rows(y, row), given={"groups": row}, **settings)
    weights = repeated.weights(asked).toarray()
    of_row = np.zeros((len(asked), N))
    np.add.at(of_row.T, row, weights.T)
    assert_allclose(of_row, weighted.weights(asked).toarray(), atol=1e-6)
    at = [0.5, 1.5]
    found, expected = (
        each.predict_survival(asked, at, beyond="extend") for each in (repeated, weighted)
    )
    assert_allclose(found, expected, atol=1e-5)
    if kind == "causes":
        found, expected = (each.predict_incidence(asked, at, 2) for each in (repeated, weighted))
        assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["causes", "intervals"])
@pytest.mark.parametrize("change", [np.exp, np.arctan])
def test_rising_features_give_the_same_neighbours_of_training_rows(kind, change):
    """A bin holds the same rows; between two of them its edge lies elsewhere."""
    X, y = make_rows()[0], make_outcome(kind)
    forest, changed = fit(kind, X, y), fit(kind, change(X), y)
    assert_equal(answers(changed, change(X)), answers(forest, X))


@EVERY_KIND
def test_features_turned_round_that_every_tree_sees(kind):
    """A split lies just above the rows on its left: rows that a tree has not drawn may lie there.

    So what holds when features are turned round holds of trees that have drawn every row.
    """
    X, y = make_rows()[0], make_outcome(kind)
    factors = [-1.0, -4.0, 1.0]
    settings = WHOLE | LARGE_LEAVES | {"n_estimators": 2}
    forest, turned = fit(kind, X, y, **settings), fit(kind, X * factors, y, **settings)
    found, expected = turned.weights(X * factors).toarray(), forest.weights(X).toarray()
    assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    at = [0.5, 1.5]
    found, expected = (
        turned.predict_survival(X * factors, at, beyond="extend"),
        forest.predict_survival(X, at, beyond="extend"),
    )
    assert_allclose(found, expected, atol=1e-9)


def test_monotone_features_give_the_same_direct_trees_beside_a_working_model():
    """The model is linear in the features, so that residual trees differ; direct trees do not."""
    X, y = make_rows()[0], make_outcome("working model")
    leaves = []
    for features in (X, np.exp(X)):
        model = fit("working model", features, y).model_
        leaves.append(model.forest.leaf_rows[: model.residual_trees.first_leaf_row])
    assert_array_equal(*leaves)


def test_a_working_model_reads_features_in_any_unit():
    """What is linear in the features is linear in other units of them, from another start."""
    X, y, asked = make_rows()[0], make_outcome("working model"), make_rows(seed=5, n=30)[0]
    factors = [10.0, 3.0, 0.25]
    forest = fit("working model", X, y, **LARGE_LEAVES)
    changed = fit("working model", X * factors + 2.0, y, **LARGE_LEAVES)
    assert_close(answers(changed, asked * factors + 2.0), answers(forest, asked), rtol=1e-6)


def test_names_of_causes_do_not_matter():
    """Causes in another order of their numbers: the same incidences, each at its own place."""
    X, y, asked = make_rows()[0], make_outcome("causes"), make_rows(seed=5, n=30)[0]
    turned = censored(y["time"], np.array([0, 2, 1])[y["cause"]])
    forest, other = fit("causes", X, y), fit("causes", X, turned)
    found = other.predict_incidence(asked, [0.5, 1.5], beyond="extend")[:, ::-1]
    assert_close([found], [forest.predict_incidence(asked, [0.5, 1.5], beyond="extend")])


def test_out_of_bag_curves_of_intervals_are_those_of_the_other_trees():
    """A forest of the trees that left a row out gives the row's curve; so do all answers."""
    from dataclasses import replace

    from cqrf._model.queries import training_queries
    from oracles.forest import Walker

    X, y = make_rows()[0], make_outcome("intervals")
    forest = fit("intervals", X, y, n_estimators=20, max_samples=0.5)
    bits = np.unpackbits(training_queries(forest.model_).in_bag, axis=1, bitorder="little")
    drawn, walker = bits[:, :20].astype(bool), Walker(forest.model_)
    found = forest.weights_oob().toarray()
    at = [0.5, 1.0, 2.0]
    curves = forest.predict_survival_oob(at, beyond="extend")
    alone = CensoredQuantileForest(**forest.get_params())
    alone.n_features_in_ = P
    for row in range(0, N, 15):
        others = np.flatnonzero(~drawn[row])
        assert 0 < len(others) < 20
        assert_allclose(found[row], walker.weights(X[row].tolist(), others.tolist()), atol=1e-12)
        assert found[row, row] == 0
        kept = replace(forest.model_.forest, roots=forest.model_.forest.roots[others])
        alone.model_ = replace(forest.model_, forest=kept)
        expected = alone.predict_survival(X[[row]], at, beyond="extend")[0]
        assert_allclose(curves[row], expected, atol=1e-9)
