"""Doubly robust scores and averages of effects, by plain loops and by R's grf."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from cqrf._effects import averages
from cqrf._effects.averages import POPULATIONS, Parts, effect_scores, ratio_of_sums
from cqrf._effects.predict import (
    densities,
    grid_responses,
    quantile_columns,
    residual_responses,
    training_effects,
)
from cqrf._effects.targets import RestrictedMeans
from cqrf.effects import AverageEffect
from oracles import effects as oracle
from support.treated import fit_small, make_data, make_forest, read_golden

HORIZON = 1.5
TIMES = [0.1, 0.5]


@pytest.fixture(scope="module", params=["plain", "swapped", "weighted", "clustered"])
def case(request):
    data = make_data()
    rng, fit, treatment = np.random.default_rng(0), {}, data.treatment
    if request.param == "swapped":
        treatment = 1 - treatment
    if request.param == "weighted":
        fit["sample_weight"] = rng.integers(0, 5, 300) / 2
    if request.param == "clustered":
        fit["groups"] = rng.integers(0, 60, 300)
    return treatment, fit_small(data, treatment, **fit), fit


class Rows:
    """What averages are made of, by row: effect of the treatment, propensity, Y* - m, weight."""

    def __init__(self, treatment, forest, fit):
        model = forest.model_
        self.arm = treatment
        self.effect = forest.effect_oob(horizon=HORIZON)
        self.propensity = forest.overlap().propensity
        response = residual_responses(model, RestrictedMeans(HORIZON))
        self.response = response[model.effect.ranks, 0]
        self.weight = model.weight[model.effect.ranks]
        self.cluster = fit.get("groups", np.arange(len(treatment)))

    def average(self, population, chosen):
        columns = (self.effect, self.arm, self.propensity, self.response, self.weight)
        estimate, parts = oracle.population_average(
            population, *(column[chosen] for column in columns)
        )
        return estimate, oracle.clustered_error(parts, self.cluster[chosen])


def test_scores_equal_their_definition(case):
    rows = Rows(*case)
    columns = zip(rows.effect, rows.arm, rows.propensity, rows.response, strict=True)
    expected = [oracle.score(*row) for row in columns]
    np.testing.assert_allclose(case[1].scores(horizon=HORIZON), expected, atol=1e-10)
    both = case[1].scores("survival", times=TIMES)
    assert both.shape == (300, 2)
    for k, time in enumerate(TIMES):
        one = case[1].scores("survival", times=time)
        np.testing.assert_allclose(both[:, k], one, rtol=1e-12)


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("some", [False, True])
def test_averages_equal_plain_loops(case, population, some):
    forest, rows = case[1], Rows(*case)
    chosen = rows.weight > 0
    subset = None
    if some:
        subset = np.arange(300) % 3 > 0
        chosen &= subset
    found = forest.ate(horizon=HORIZON, population=population, subset=subset, confidence=0.9)
    estimate, error = rows.average(population, chosen)
    assert found.estimate == pytest.approx(estimate, abs=1e-10)
    assert found.standard_error == pytest.approx(error, rel=1e-8)
    width = norm.ppf(0.95) * error
    assert (found.lower, found.upper) == pytest.approx((estimate - width, estimate + width))
    inside = {"treated": rows.arm == 1, "control": rows.arm == 0}.get(population, True)
    assert (found.n_rows, found.confidence) == ((chosen & inside).sum(), 0.9)
    if some:
        numbers = forest.ate(
            horizon=HORIZON, population=population, subset=np.flatnonzero(subset), confidence=0.9
        )
        assert numbers == found


def test_the_average_of_all_is_the_mean_of_the_scores(case):
    forest, rows = case[1], Rows(*case)
    both = forest.ate("survival", times=TIMES)
    scores = forest.scores("survival", times=TIMES)
    np.testing.assert_allclose(both.estimate, np.average(scores, axis=0, weights=rows.weight))
    if not case[2]:
        error = scores.std(axis=0, ddof=1) / np.sqrt(300)
        np.testing.assert_allclose(both.standard_error, error)
    one = forest.ate("survival", times=TIMES[1])
    assert isinstance(one.estimate, float)
    assert one.estimate == pytest.approx(both.estimate[1], rel=1e-12)


def test_the_projection_is_that_of_the_scores(case):
    forest, rows = case[1], Rows(*case)
    A = np.random.default_rng(1).normal(size=(300, 2))
    chosen = (rows.weight > 0) & (np.arange(300) % 3 > 0)
    found = forest.best_linear_projection(A, horizon=HORIZON, subset=np.arange(300) % 3 > 0)
    scores = forest.scores(horizon=HORIZON)
    coefficient, error = oracle.hc3(
        scores[chosen], A[chosen], rows.weight[chosen], rows.cluster[chosen]
    )
    assert found.names == ["intercept", "A0", "A1"]
    np.testing.assert_allclose(found.coefficient, coefficient, rtol=1e-8)
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-8)
    alone = forest.best_linear_projection(horizon=HORIZON)
    assert alone.coefficient == pytest.approx([forest.ate(horizon=HORIZON).estimate])


def test_scores_and_averages_from_the_parts_of_grf_are_those_of_grf(monkeypatch):
    columns, golden = read_golden("scores_type1.csv.gz"), read_golden("averages.csv")
    e, effect = columns["what"], columns["oob_rmst"]
    residual = columns["w"] - e
    left = (columns["num_rmst"] - columns["den_rmst"] * effect) / residual
    model = SimpleNamespace(
        sign=1.0,
        nuisances=SimpleNamespace(residual=residual, probability=np.column_stack([1 - e, e])),
    )
    monkeypatch.setattr(
        averages, "effect_and_rest", lambda *_: (effect[:, np.newaxis], left[:, np.newaxis])
    )
    found = effect_scores(model, None, None)[:, 0]
    # The parts have seven digits in the file, and are divided by as little as a tenth.
    np.testing.assert_allclose(found, columns["dr_rmst"], atol=5e-6)
    n = len(e)
    row = ((golden["dgp"] == "type1") & (golden["target"] == "rmst")).argmax()
    parts = Parts(columns["dr_rmst"][:, np.newaxis], np.ones(n))
    estimate, error = ratio_of_sums(parts, np.arange(n, dtype=np.int32), np.full(n, True))
    assert estimate[0] == pytest.approx(golden["ate"][row], abs=1e-8)
    assert error[0] == pytest.approx(golden["ate_se"][row], abs=1e-8)


def test_average_quantile_effects_invert_the_average_curves(case):
    treatment, forest, _ = case
    model, rows, levels = forest.model_, Rows(*case), [0.25, 0.5]
    ranks = model.effect.ranks
    shown = grid_responses(model)
    effect = model.sign * training_effects(model, shown - model.nuisances.pooled, None)
    pooled, e = model.nuisances.pooled[ranks], rows.propensity
    quantiles, influence = [], np.zeros((300, 2))
    for arm in (0, 1):
        curves = pooled + (arm - e)[:, np.newaxis] * effect[ranks]
        of_arm = np.where(treatment == arm, 1 / np.where(arm == 1, e, 1 - e), 0.0)
        scores = curves + of_arm[:, np.newaxis] * (shown[ranks] - curves)
        mean = np.average(scores, axis=0, weights=rows.weight)
        curve = np.minimum.accumulate(np.clip(mean, 0, 1))
        columns = [next(c for c, s in enumerate(curve) if s <= 1 - q + 1e-9) for q in levels]
        quantiles.append(model.grid.begins[columns])
        density = densities(model, curve[np.newaxis], np.array(levels))[0]
        assert quantile_columns(curve[np.newaxis], np.array(levels))[0].tolist() == columns
        influence += (2 * arm - 1) * (scores[:, columns] - mean[columns]) / density
    found = forest.ate("quantile", quantiles=levels)
    np.testing.assert_allclose(found.estimate, quantiles[1] - quantiles[0], rtol=1e-12)
    used = rows.weight > 0
    for k in range(2):
        parts = [(w * i, w) for w, i in zip(rows.weight[used], influence[used, k], strict=True)]
        error = oracle.clustered_error(parts, rows.cluster[used])
        assert found.standard_error[k] == pytest.approx(error, rel=1e-8)


def test_rows_that_all_trees_drew_are_left_out_of_averages():
    data = make_data()
    forest = fit_small(data, forest=make_forest(n_estimators=8))
    scores = forest.scores(horizon=HORIZON)
    known = ~np.isnan(scores)
    assert 150 < known.sum() < 300
    found = forest.ate(horizon=HORIZON)
    assert found.n_rows == known.sum()
    assert found.estimate == pytest.approx(scores[known].mean())
    assert np.isfinite(forest.ate("quantile").standard_error)
    coefficient, _ = oracle.hc3(scores[known], data.X[known, :1])
    projection = forest.best_linear_projection(data.X[:, :1], horizon=HORIZON)
    assert projection.coefficient == pytest.approx(coefficient)
    priorities = data.X[:, 0]
    expected = oracle.rank_average(scores[known], priorities[known], "autoc")
    assert forest.rate(priorities, horizon=HORIZON).estimate == pytest.approx(expected)
    assert np.isfinite(forest.rate(horizon=HORIZON).estimate)


def test_rankings_by_given_priorities_equal_plain_loops(case):
    forest = case[1]
    if "sample_weight" in case[2]:  # rows of weight 0 are left out
        assert np.isfinite(forest.rate(np.arange(300.0), horizon=HORIZON).estimate)
        return
    priorities = np.random.default_rng(2).integers(0, 40, 300).astype(float)
    scores = forest.scores(horizon=HORIZON)
    for metric in ("autoc", "qini"):
        found = forest.rate(priorities, metric=metric, horizon=HORIZON, confidence=0.8)
        assert found.estimate == pytest.approx(
            oracle.rank_average(scores, priorities, metric), abs=1e-12
        )
        width = norm.ppf(0.9) * found.standard_error
        assert (found.lower, found.upper) == pytest.approx(
            (found.estimate - width, found.estimate + width)
        )
        assert (found.metric, found.confidence) == (metric, 0.8)
    toc = forest.toc(priorities, horizon=HORIZON, shares=[0.2, 0.5, 1.0])
    whole = oracle.toc_values(scores, priorities)
    np.testing.assert_allclose(toc.estimate, [whole[59], whole[149], 0.0], atol=1e-12)
    assert toc.share.tolist() == [0.2, 0.5, 1.0]
    assert toc.standard_error[2] == pytest.approx(0.0, abs=1e-12)
    assert forest.toc(priorities, horizon=HORIZON).share.tolist() == list(np.arange(1, 11) / 10)


def test_an_average_is_shown_in_one_line():
    one = AverageEffect(0.25, 0.1, 0.05, 0.45, 0.95, 100)
    assert repr(one) == "AverageEffect(0.25 [0.05, 0.45]; 95% intervals, 100 rows)"
    two = AverageEffect(*(np.array([v, v + 1]) for v in (0.25, 0.1, 0.05, 0.45)), 0.9, 7)
    assert repr(two) == (
        "AverageEffect(0.25 [0.05, 0.45], 1.25 [1.05, 1.45]; 90% intervals, 7 rows)"
    )
