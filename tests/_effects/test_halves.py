"""Priorities by halves: the rows that are judged have no part in how they are ranked."""

from dataclasses import replace

import numpy as np
import pytest

from cqrf._effects.fit import read_effect_settings
from cqrf._effects.halves import halves_with_priorities
from cqrf._effects.predict import residual_responses
from cqrf._effects.targets import RestrictedMeans
from oracles import effects as oracle
from support.treated import fit_small, make_data, make_forest

HORIZON = 1.5


@pytest.fixture(scope="module", params=["rows", "groups", "weights"])
def case(request):
    data, rng = make_data(), np.random.default_rng(0)
    fit = {}
    if request.param == "groups":
        fit["groups"] = rng.integers(0, 80, 300)
    if request.param == "weights":
        fit["sample_weight"] = rng.integers(0, 3, 300).astype(float)
    return fit_small(data, **fit), fit


def list_halves(forest, model=None):
    model = forest.model_ if model is None else model
    settings = read_effect_settings(
        forest, model.effect.sampling.n_units // 2, len(model.effect.edges), model.effect.seed
    )
    responses = residual_responses(model, RestrictedMeans(HORIZON))
    return list(halves_with_priorities(model, responses, settings, None))


def test_each_row_of_positive_weight_is_judged_once_with_its_cluster(case):
    forest, fit = case
    first, second = (half.rows for half in list_halves(forest))
    used = np.flatnonzero(np.asarray(fit.get("sample_weight", np.ones(300))) > 0)
    assert sorted([*first, *second]) == used.tolist()
    groups = fit.get("groups", np.arange(300))
    assert not set(groups[first]) & set(groups[second])
    n_units = len(set(groups[used]))
    assert {len(set(groups[half])) for half in (first, second)} <= {n_units // 2, -(-n_units // 2)}


def test_outcomes_of_the_rows_that_are_judged_do_not_move_their_priorities(case):
    forest = case[0]
    model = forest.model_
    rng = np.random.default_rng(1)
    for number, half in enumerate(list_halves(forest)):
        ranks = model.effect.ranks[half.rows]
        response = model.nuisances.response
        changed = response.event_term.copy()
        changed[ranks] = rng.uniform(0, 9, len(ranks))
        nuisances = model.nuisances._replace(response=response._replace(event_term=changed))
        other = list_halves(forest, replace(model, nuisances=nuisances))
        assert np.array_equal(other[number].rows, half.rows)
        assert np.array_equal(other[number].priorities, half.priorities)
        # While those of the other half do.
        assert not np.array_equal(
            other[1 - number].priorities, list_halves(forest)[1 - number].priorities
        )


@pytest.mark.parametrize("metric", ["autoc", "qini"])
def test_the_rank_average_is_the_mean_of_both_halves(case, metric):
    forest, fit = case
    if "sample_weight" in fit:
        assert np.isfinite(forest.rate(metric=metric, horizon=HORIZON).standard_error)
        return
    scores = forest.scores(horizon=HORIZON)
    halves = list_halves(forest)
    each = [oracle.rank_average(scores[h.rows], h.priorities, metric) for h in halves]
    found = forest.rate(metric=metric, horizon=HORIZON)
    assert found.estimate == pytest.approx(np.mean(each), abs=1e-12)
    toc = [oracle.toc_values(scores[h.rows], h.priorities) for h in halves]
    share = 0.5
    expected = np.mean([values[int(share * len(values)) - 1] for values in toc])
    found = forest.toc(horizon=HORIZON, shares=[share])
    assert found.estimate[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
def test_rankings_find_who_benefits_and_nothing_where_there_is_nothing():
    # In simple1 the effect falls with x1; in null there is none. Twenty tests at 5 % each.
    data = make_data(n=600, kind="simple1")
    found = fit_small(data, forest=make_forest(200, min_samples_arm=15)).rate(horizon=1.0)
    assert found.estimate > 4 * found.standard_error
    rejected = 0
    for seed in range(20):
        data = make_data(n=400, kind="null", seed=seed)
        forest = make_forest(200, min_samples_arm=15, random_state=seed)
        null = fit_small(data, forest=forest, propensity=data.propensity).rate(horizon=3.0)
        rejected += abs(null.estimate) > 1.96 * null.standard_error
    assert rejected <= 4
