"""Effects, their errors and the curves of the arms, from forest weights by plain loops."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from cqrf import censored
from cqrf._effects import predict
from cqrf._effects.forest import level_residuals
from cqrf._effects.linear import PENALTIES, SHARE
from cqrf._effects.nuisances import curves_on_grid, estimate_propensity
from cqrf._effects.predict import (
    BIAS_SHARE,
    QUANTILE_FACTOR,
    arm_curves,
    densities,
    known_curves,
    quantile_columns,
)
from cqrf._effects.response import Grid
from cqrf._forest.sampling import in_bag_bits
from cqrf._forest.traversal import find_leaves
from cqrf._model.queries import Queries, encode_all
from cqrf._readers.reader import read_one
from cqrf._readers.weight_rows import WeightRows
from cqrf._survival.little_bags import BagVariances, standard_errors
from oracles import effects as oracle
from support.treated import fit_small, make_data

TIMES, HORIZON = [0.05, 0.3, 1.0], 1.5


def uncensored(data):
    return replace(data, y=censored(data.y["time"], np.full(len(data.y), True)))


class Rows:
    """What a fitted forest knows about its training rows, in the order of the table."""

    def __init__(self, data, forest):
        self.model = model = forest.model_
        ranks = model.effect.ranks
        self.residual = data.treatment - forest.overlap().propensity
        self.grid = model.grid.times
        self.curves = model.nuisances.pooled[ranks, 1:]
        self.time = data.y["time"]
        self.weight = model.weight[ranks]

    def residual_response(self, horizon=None, time=None):
        """Y* - m without censoring."""
        if horizon is not None:
            means = [oracle.step_mean(self.grid, curve, horizon) for curve in self.curves]
            return np.minimum(self.time, horizon) - means
        before = (self.grid <= time).sum()
        mean = np.ones(len(self.time)) if before == 0 else self.curves[:, before - 1]
        return (self.time > time) - mean

    def weights(self, X):
        queries = Queries(encode_all(self.model.effect, X))
        return read_one(self.model.effect, queries, WeightRows(), None).toarray()


@pytest.fixture(scope="module", params=["equal", "weighted", "known", "swapped"])
def case(request):
    data = uncensored(make_data())
    fit = {}
    if request.param == "weighted":
        fit["sample_weight"] = np.random.default_rng(0).integers(1, 5, 300) / 2
    if request.param == "known":
        fit["propensity"] = data.propensity
    if request.param == "swapped":  # arm 0, that of the first row, is the treatment here
        data = replace(data, treatment=1 - data.treatment)
        assert data.treatment[0] != make_data().treatment[0]
    forest = fit_small(data, **fit)
    return data, forest, Rows(data, forest)


@pytest.fixture
def uncorrected(case):
    """The same without the linear correction."""
    linear = case[1].model_.linear
    factor, linear.factor = linear.factor, 0.0
    yield case
    linear.factor = factor


def test_effects_without_censoring_equal_loops_over_the_weights(uncorrected):
    data, forest, rows = uncorrected
    X = data.X[:12]
    weights = rows.weights(X)
    assert weights.sum(axis=1) == pytest.approx(1.0)
    expected = [
        [oracle.residual_effect(a, rows.residual, rows.residual_response(time=t)) for t in TIMES]
        for a in weights
    ]
    found = forest.effect(X, "survival", times=TIMES)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    response = rows.residual_response(horizon=HORIZON)
    expected = [oracle.residual_effect(a, rows.residual, response) for a in weights]
    np.testing.assert_allclose(forest.effect(X, horizon=HORIZON), expected, rtol=0, atol=1e-12)


def test_out_of_bag_effects_come_from_trees_that_did_not_draw_the_row(uncorrected):
    data, forest, rows = uncorrected
    model = forest.model_
    bits = in_bag_bits(model.effect.sampling, model.effect.tree_numbers, model.effect.seed)
    drawn = np.unpackbits(bits, axis=1, bitorder="little")[:, :80].astype(bool)
    leaves = find_leaves(model.effect.forest, encode_all(model.effect, data.X))
    response = rows.residual_response(horizon=HORIZON)
    found = forest.effect_oob(horizon=HORIZON)
    for row in range(0, 300, 25):
        weights = np.zeros(300)
        for tree in np.flatnonzero(~drawn[row]):
            start, size = leaves.starts[row, tree], leaves.sizes[row, tree]
            inside = model.effect.order[model.effect.forest.leaf_rows[start : start + size]]
            assert row not in inside
            weights[inside] += rows.weight[inside] / rows.weight[inside].sum()
        expected = oracle.residual_effect(weights, rows.residual, response)
        assert found[row] == pytest.approx(expected, abs=1e-10)


def test_the_linear_model_is_taken_from_the_response_and_added_again(case):
    data, forest, rows = case
    linear, order = forest.model_.linear, forest.model_.effect.order
    factor, linear.factor = linear.factor, 0.7
    try:
        found = forest.effect(data.X[:12], horizon=HORIZON)
        found_oob = forest.effect_oob(horizon=HORIZON)
        linear.factor = 0.0
        plain_oob = forest.effect_oob(horizon=HORIZON)
    finally:
        linear.factor = factor
    basis = np.empty_like(linear.basis)
    basis[order] = linear.basis
    fold = np.empty_like(linear.fold)
    fold[order] = linear.fold
    response = rows.residual_response(horizon=HORIZON)
    at_rows = np.empty(300)
    for number in np.unique(fold):
        kept = fold != number
        slopes = oracle.ridge_slopes(
            basis[kept], rows.residual[kept], response[kept], rows.weight[kept], linear.penalty
        )
        at_rows[~kept] = basis[~kept] @ slopes
    slopes = oracle.ridge_slopes(basis, rows.residual, response, rows.weight, linear.penalty)
    share = SHARE * 0.7
    left = response - rows.residual * share * at_rows
    expected = [
        share * basis[q] @ slopes + oracle.residual_effect(a, rows.residual, left)
        for q, a in enumerate(rows.weights(data.X[:12]))
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    assert np.abs(found_oob - plain_oob).max() > 1e-4


def test_penalty_and_factor_are_those_with_the_least_error_of_rows_left_out(case):
    linear = case[1].model_.linear
    at_levels = level_residuals(case[1].model_.nuisances, linear.weight)
    d, w = linear.treatment, linear.weight
    losses = {}
    for multiple in PENALTIES:
        penalty = multiple * w.sum()
        effects = np.empty_like(at_levels)
        for number in np.unique(linear.fold):
            kept = linear.fold != number
            for k, column in enumerate(at_levels.T):
                slopes = oracle.ridge_slopes(
                    linear.basis[kept], d[kept], column[kept], w[kept], penalty
                )
                effects[~kept, k] = linear.basis[~kept] @ slopes
        base, predicted = np.empty_like(at_levels), np.empty_like(at_levels)
        for k, column in enumerate(at_levels.T):
            base[:, k] = column - d * oracle.residual_effect(w, d, column)
            centre = oracle.residual_effect(w, d, d * effects[:, k])
            predicted[:, k] = d * (effects[:, k] - centre)
        for factor in np.linspace(0, 1, 201):
            losses[penalty, factor] = (w[:, None] * (base - factor * predicted) ** 2).sum()
    best = min(losses, key=losses.get)
    assert linear.factor == pytest.approx(best[1], abs=0.0051)
    if best[1] > 0:
        assert linear.penalty == best[0]


def test_errors_are_those_of_little_bags(case):
    data, forest, rows = case
    model = forest.model_
    X = data.X[:6]
    effect_forest, order = model.effect.forest, model.effect.order
    leaves = find_leaves(effect_forest, encode_all(model.effect, X))
    found = forest.effect_interval(X, horizon=HORIZON, confidence=0.6826894921370859)
    half_width = (found[:, 1] - found[:, 0]) / 2
    np.testing.assert_allclose(found.mean(axis=1), forest.effect(X, horizon=HORIZON), atol=1e-12)
    linear = model.linear
    response = rows.residual_response(horizon=HORIZON)
    _, at_rows = linear.fit(response[order][:, np.newaxis])
    at_row = np.empty(300)
    at_row[order] = at_rows[:, 0]
    # In units of arm 1, whichever arm that is: errors do not depend on the sign.
    residual = rows.residual * model.sign
    left = response - residual * at_row
    loss = model.smoothing
    queries = Queries(encode_all(model.effect, X))
    lost = loss.sizes(model.effect, queries, loss.grid.widths(HORIZON)[:, np.newaxis], None)[:, 0]
    assert (lost > 0).all()
    for q, weights in enumerate(rows.weights(X)):
        mass = weights @ residual**2
        ratio = weights @ (residual * left) / mass
        psi = []
        for t in range(leaves.starts.shape[1]):
            inside = order[effect_forest.leaf_rows[leaves.starts[q, t] :][: leaves.sizes[q, t]]]
            v = rows.weight[inside] / rows.weight[inside].sum()
            moved = residual[inside] * left[inside] - ratio * residual[inside] ** 2
            psi.append(v @ moved / mass)
        variances = BagVariances(*np.array([oracle.bag_variances(psi, 4)]).T)
        of_bags = float(standard_errors(variances, 20)[0])
        expected = np.hypot(of_bags, BIAS_SHARE * lost[q])
        assert half_width[q] == pytest.approx(expected, rel=1e-7)


def test_curves_of_the_arms_are_the_mean_of_three_estimates(case):
    data, forest, rows = case
    model = forest.model_
    X = data.X[:8]
    queries, order = Queries(encode_all(model.effect, X)), model.effect.order
    grid, treated = model.grid.times, model.treated
    effect = forest.effect(X, "survival", times=grid)
    pooled = curves_on_grid(model.forests.pooled, queries, model.grid, None)[:, 1:]
    if model.forests.propensity is None:
        propensity = rows.weights(X) @ data.propensity
    else:
        target = model.nuisances.arm_target
        both = estimate_propensity(model.forests.propensity, target, queries, None)
        propensity = both[:, treated]
    survival = np.empty_like(model.nuisances.survival[:, :, 1:])
    survival[:, order] = model.nuisances.survival[:, :, 1:]
    e = forest.overlap().propensity
    for arm in (0, 1):
        number = treated if arm == 1 else 1 - treated
        moved = pooled + (arm - propensity)[:, np.newaxis] * effect
        own = curves_on_grid(model.forests.arms[number], queries, model.grid, None)[:, 1:]
        scores = survival[number].copy()
        for i in range(300):
            if data.treatment[i] == arm:
                shown = rows.time[i] > grid
                scores[i] += (shown - scores[i]) / (e[i] if arm == 1 else 1 - e[i])
        averaged = rows.weights(X) @ scores
        expected = np.minimum.accumulate(np.clip((moved + averaged + own) / 3, 0, 1), axis=1)
        # All rows are events: nobody is left after the last one of the arm.
        expected[:, grid >= rows.time[data.treatment == arm].max()] = 0
        found = forest.predict_survival(X, grid, arm=arm)
        np.testing.assert_allclose(found, expected, atol=1e-10)
        assert np.array_equal(arm_curves(model, queries, None)[number][:, 1:], found)


def test_quantiles_are_where_the_curve_of_an_arm_has_fallen_to_one_less_their_level(case):
    data, forest, _ = case
    X, levels = data.X[:20], [0.1, 0.5, 0.9]
    grid = forest.model_.grid.times
    of_arm = []
    for arm in (0, 1):
        curves = forest.predict_survival(X, grid, arm=arm)
        expected = [
            [next((t for t, s in zip(grid, c) if s <= 1 - q + 1e-9), np.inf) for q in levels]
            for c in curves
        ]
        of_arm.append(np.array(expected))
        assert np.array_equal(forest.predict(X, levels, arm=arm), expected)
        assert np.array_equal(forest.predict(X, 0.5, arm=arm), of_arm[arm][:, 1])
    with np.errstate(invalid="ignore"):
        difference = of_arm[1] - of_arm[0]
    assert np.array_equal(forest.effect(X, "quantile", quantiles=levels), difference)


def make_model(times, ends=(np.inf, np.inf), falls=(np.inf, np.inf)):
    """As much of a fitted model as curves need."""
    return SimpleNamespace(
        grid=Grid(0.0, np.array(times)), ends=np.array(ends), falls=np.array(falls)
    )


def test_no_quantile_is_found_after_the_last_time_at_which_an_arm_is_known():
    model = make_model([1.0, 2.0, 3.0, 4.0], ends=(2.5, np.inf), falls=(np.inf, 4.0))
    curves = np.tile([1.2, 0.8, 0.6, 0.7, -0.1], (2, 1))
    found = known_curves(model, curves[:, np.newaxis])[:, 0]
    assert found.tolist() == [[1.0, 0.8, 0.6, 0.6, 0.6], [1.0, 0.8, 0.6, 0.6, 0.0]]
    assert quantile_columns(found, np.array([0.3, 0.5])).tolist() == [[2, 5], [2, 4]]
    at_event = make_model([1.0, 2.0, 3.0, 4.0], falls=(3.0, 2.5))
    found = known_curves(at_event, curves[:, np.newaxis])[:, 0]
    assert found.tolist() == [[1.0, 0.8, 0.6, 0.0, 0.0], [1.0, 0.8, 0.6, 0.0, 0.0]]


def test_the_density_is_the_fall_of_the_curve_over_time_around_a_quantile():
    model = make_model(np.arange(1.0, 11.0))
    steady = np.linspace(1.0, 0.0, 11)[np.newaxis]
    assert densities(model, steady, np.array([0.3, 0.5]))[0] == pytest.approx([0.1, 0.1])
    # A curve that has stopped falling, and one that never falls: not known.
    stopped = np.maximum(steady, 0.6)
    flat = np.ones_like(steady)
    assert densities(model, stopped, np.array([0.2]))[0, 0] == pytest.approx(0.1)
    assert densities(model, stopped, np.array([0.35]))[0, 0] == pytest.approx(0.1 / 7)
    assert np.isnan(densities(model, stopped, np.array([0.5, 0.55]))).all()
    assert np.isnan(densities(model, flat, np.array([0.5]))).all()


def test_errors_of_quantile_effects_by_the_delta_method(case):
    data, forest, _ = case
    model = forest.model_
    X, level = data.X[:4], 0.5
    queries = Queries(encode_all(model.effect, X))
    curves = arm_curves(model, queries, None)
    scores = predict.arm_scores(model, model.nuisances.survival)
    leaves = find_leaves(model.effect.forest, queries.codes)
    found = forest.effect_interval(X, "quantile", confidence=0.6826894921370859)
    weight = model.weight
    for q in range(4):
        moves = np.zeros(300)
        for number in (0, 1):
            column = quantile_columns(curves[number], np.array([level]))[q, 0]
            density = densities(model, curves[number], np.array([level]))[q, 0]
            moves += (2 * number - 1) * scores[number][:, column] / density
        psi = []
        for t in range(leaves.starts.shape[1]):
            inside = model.effect.forest.leaf_rows[leaves.starts[q, t] :][: leaves.sizes[q, t]]
            psi.append(weight[inside] @ moves[inside] / weight[inside].sum())
        variances = BagVariances(*np.array([oracle.bag_variances(psi, 4)]).T)
        expected = QUANTILE_FACTOR * float(standard_errors(variances, 20)[0])
        assert (found[q, 1] - found[q, 0]) / 2 == pytest.approx(expected, rel=1e-8)
