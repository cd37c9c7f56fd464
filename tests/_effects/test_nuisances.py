"""Nuisances: what is known about a row comes from trees that have not seen it."""

import numpy as np
import pytest

from cqrf import CensoredQuantileForest
from cqrf._effects.fit import ARM_ROWS, read_effect_settings
from cqrf._effects.nuisances import LEAST_PROPENSITY, clusters_in_bag, curves_on_grid
from cqrf._effects.predict import residual_responses
from cqrf._effects.response import LEAST_CENSORING
from cqrf._effects.targets import SurvivalProbabilities
from cqrf._forest.sampling import in_bag_bits
from cqrf._model.queries import Queries, training_codes, training_queries
from cqrf._readers.curves import CensoringAt, SurvivalAt
from cqrf._readers.reader import read_one
from cqrf.effects import OverlapWarning
from oracles import effects as oracle
from support.treated import fit_small, make_data, make_forest


@pytest.fixture(scope="module")
def data():
    return make_data()


@pytest.fixture(scope="module")
def forest(data):
    return fit_small(data)


def by_row(model, values):
    return values[..., model.effect.ranks, :] if values.ndim > 1 else values[model.effect.ranks]


def test_responses_come_from_the_curves_of_the_rows_own_arm_out_of_bag(data, forest):
    model = forest.model_
    times = np.array([0.02, 0.2, 0.7, 1.2])
    grid = model.grid.times
    residual = by_row(model, residual_responses(model, SurvivalProbabilities(times, False)))
    pooled = read_one(
        model.forests.pooled, training_queries(model.forests.pooled), SurvivalAt(grid), None
    )
    floored = 0
    for number, of_arm in enumerate(model.forests.arms):
        rows = np.flatnonzero(model.arm == bool(number))
        queries = training_queries(of_arm)
        survival = read_one(of_arm, queries, SurvivalAt(grid), None)
        before = np.nextafter(grid, -np.inf)
        censoring = read_one(of_arm, queries, CensoringAt(before), None)
        for i in range(0, len(rows), 10):
            time, event = data.y["time"][rows[i]], data.y["event"][rows[i]]
            own = read_one(of_arm, queries, CensoringAt([np.nextafter(time, -np.inf)]), None)
            row = oracle.RowResponse(time, event, grid, survival[i], censoring[i], own[i, 0])
            expected = [row.at(t) for t in times]
            # The pooled curve is read at the times of the grid.
            curve = by_row(model, model.nuisances.pooled)[rows[i]]
            mean = curve[model.grid.columns(times)]
            np.testing.assert_allclose(residual[rows[i]], expected - mean, atol=1e-10)
        own = [
            read_one(of_arm, queries, CensoringAt([np.nextafter(t, -np.inf)]), None)[i, 0]
            for i, t in enumerate(data.y["time"][rows])
        ]
        floored += (np.array(own) < LEAST_CENSORING).sum()
    assert forest.overlap().censoring_floored == floored / 300
    # 300 rows have fewer event times than the grid holds: it has all of them.
    assert np.array_equal(grid, np.unique(data.y["time"][data.y["event"]]))
    assert np.array_equal(by_row(model, model.nuisances.pooled)[:, 1:], pooled)


def test_the_curve_of_the_other_arm_is_that_of_its_forest(data, forest):
    model = forest.model_
    codes = training_codes(model.forests.pooled)
    for number, of_arm in enumerate(model.forests.arms):
        other = model.arm != bool(number)
        expected = curves_on_grid(of_arm, Queries(codes[other]), model.grid, None)
        found = by_row(model, model.nuisances.survival[number])[other]
        assert np.array_equal(found, expected)


def test_no_tree_that_drew_a_cluster_predicts_one_of_its_rows(data):
    groups = np.random.default_rng(0).integers(0, 40, 300)
    model = fit_small(data, groups=groups).model_
    for number, of_arm in enumerate(model.forests.arms):
        own, other = (np.flatnonzero((model.arm == number) == side) for side in (True, False))
        bits = clusters_in_bag(model.forests.pooled, of_arm, own, other)
        n_trees = len(of_arm.forest.roots)
        found = np.unpackbits(bits, axis=1, bitorder="little")[:, :n_trees].astype(bool)
        drawn = in_bag_bits(of_arm.sampling, of_arm.tree_numbers, of_arm.seed)
        drawn = np.unpackbits(drawn, axis=1, bitorder="little")[:, :n_trees].astype(bool)
        # Units are numbered by the first appearance of a group among the arm's rows.
        names = list(dict.fromkeys(groups[own].tolist()))
        for row, is_out in zip(other, found, strict=True):
            name = groups[row]
            expected = drawn[names.index(name)] if name in names else np.zeros(n_trees, bool)
            assert np.array_equal(is_out, expected)
        codes = training_codes(model.forests.pooled)[other]
        curves, seen = (
            curves_on_grid(of_arm, Queries(codes, drawn), model.grid, None)
            for drawn in (bits, None)
        )
        of_other = by_row(model, model.nuisances.survival[number])[other]
        assert np.array_equal(of_other, curves)
        assert not np.array_equal(of_other, seen)
    assert model.effect.sampling.n_units == len(np.unique(groups))


def test_propensities_are_averages_of_the_arm_kept_from_zero_and_one(data, forest):
    propensity = forest.overlap().propensity
    assert (propensity >= LEAST_PROPENSITY).all()
    assert (propensity <= 1 - LEAST_PROPENSITY).all()
    assert abs(propensity.mean() - data.treatment.mean()) < 0.03
    assert np.corrcoef(propensity, data.propensity)[0, 1] > 0.3


def test_known_propensities_are_taken_as_they_are(data):
    one = fit_small(data, propensity=0.4)
    assert (one.overlap().propensity == 0.4).all()
    assert one.model_.forests.propensity is None
    many = fit_small(data, propensity=data.propensity)
    np.testing.assert_allclose(many.overlap().propensity, data.propensity, rtol=1e-15)
    assert np.array_equal(
        fit_small(data, propensity=np.full(300, 0.4)).effect(data.X[:9]), one.effect(data.X[:9])
    )


def test_few_nuisance_trees_are_an_error_if_rows_are_left_without_any(data):
    few = make_forest(nuisance_forest=CensoredQuantileForest(n_estimators=2))
    with pytest.raises(ValueError, match=r"nuisance_forest: \d+ of \d+ rows were drawn by all of"):
        fit_small(data, forest=few)
    # A few rows that all trees drew are predicted by all of them.
    few.nuisance_forest.n_estimators = 8
    with pytest.warns(OverlapWarning):
        fit_small(data, forest=few)
    assert np.isfinite(few.scores(horizon=1.0)).all()


@pytest.mark.parametrize(
    ("n_units", "rows"), [(2000, ARM_ROWS), (8000, 2 * ARM_ROWS), (500, 15), (20, 5)]
)
def test_automatic_limits_grow_with_the_root_of_the_rows(n_units, rows):
    settings = read_effect_settings(make_forest(min_samples_arm="auto"), n_units, 5, 0)
    assert settings.limits.min_samples_stratum == settings.limits.min_samples_leaf == rows
    assert settings.limits.min_samples_split == 2 * rows


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bag_size": 1}, r"bag_size=1 must be a whole number of at least 2"),
        ({"n_estimators": 42}, r"n_estimators=42 must be a multiple of bag_size=4"),
        ({"n_estimators": 4}, r"n_estimators=4 must be a whole number of at least 8"),
        ({"min_samples_arm": 0}, r"min_samples_arm=0 must be a whole number of at least 1"),
        ({"min_samples_arm": "all"}, r"min_samples_arm='all' must be a whole number"),
        ({"min_child_fraction": 0.6}, r"min_child_fraction=0.6 must be a number from 0 to 0.5"),
        ({"max_features": 0}, r"max_features"),
        ({"max_depth": 0}, r"max_depth=0"),
        ({"nuisance_forest": "cox"}, r"nuisance_forest='cox' must be a CensoredQuantileForest"),
        (
            {"nuisance_forest": CensoredQuantileForest(censoring="left")},
            r"nuisance_forest has censoring='left': effects are available for right-censored",
        ),
        ({"nuisance_forest": CensoredQuantileForest(criterion="gini")}, r"criterion='gini'"),
    ],
)
def test_settings_are_checked(data, settings, message):
    with pytest.raises(ValueError, match=message):
        fit_small(data, forest=make_forest(**settings))
