"""Aalen-Johansen curves against their definition, R's survival, lifelines and scikit-survival."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._forest.weights import Weights
from cqrf._input.target import pair, rank_target
from cqrf._survival.curves import RankedTarget
from cqrf._survival.incidence import IncidenceCurves, incidence_curves
from cqrf._survival.little_bags import follow_incidence, write_influence
from oracles.causes import curve_at, curves_by_definition

DATA = Path(__file__).parents[1] / "data" / "competing"


def curves_of(time, cause, weight, entry=None, n_causes=2):
    """Curves of a single row of weights."""
    time, cause, weight = np.asarray(time, float), np.asarray(cause), np.asarray(weight, float)
    ranked, order = rank_target(pair(time, cause > 0, entry), "right")
    weights = weight[order] / weight.sum()
    row = Weights(np.array([0, len(time)]), np.arange(len(time), dtype=np.int32), weights)
    causes = tuple(range(1, n_causes + 1))
    return incidence_curves(row, RankedTarget.of(ranked), cause[order].astype(np.uint8), causes)


@given(st.data())
def test_curves_equal_their_definition(data):
    n = data.draw(st.integers(1, 20))
    time = data.draw(st.lists(st.integers(1, 8), min_size=n, max_size=n))
    cause = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    weight = data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
    late = data.draw(st.booleans())
    entry = [data.draw(st.integers(0, t)) - 0.5 for t in time] if late else None
    curves = curves_of(time, cause, weight, entry, n_causes=3)
    since = [-1.0] * n if entry is None else entry
    steps = curves_by_definition(time, cause, weight, since, 3)
    at = np.arange(0.0, 10.0, 0.5)
    found, free = curves(at, beyond="extend")[0], curves.survival(at, beyond="extend")[0]
    for j, t in enumerate(at):
        survival, incidence = curve_at(steps, t, 3)
        assert free[j] == pytest.approx(float(survival), abs=1e-12)
        np.testing.assert_allclose(found[:, j], [float(f) for f in incidence], atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=0) + free, 1.0, atol=1e-12)


@pytest.mark.parametrize(("weighted", "suffix"), [(True, ""), (False, "_unweighted")])
def test_curves_are_those_of_r_on_mgus2(weighted, suffix):
    rows, truth = (pd.read_csv(DATA / f"{name}.csv") for name in ("mgus2", "aalen_johansen"))
    weight = rows["weight"] if weighted else np.ones(len(rows))
    curves = curves_of(rows["time"], rows["cause"], weight)
    found = curves(truth["time"])[0]
    for k in (1, 2):
        np.testing.assert_allclose(found[k - 1], truth[f"cause{k}{suffix}"], atol=1e-12)
    np.testing.assert_allclose(
        curves.survival(truth["time"])[0], truth[f"alive{suffix}"], atol=1e-12
    )


def test_curves_are_those_of_lifelines_and_scikit_survival():
    from lifelines import AalenJohansenFitter
    from sksurv.nonparametric import cumulative_incidence_competing_risks

    rng = np.random.default_rng(0)
    time, cause = rng.exponential(size=300), rng.integers(0, 3, 300)
    curves = curves_of(time, cause, np.ones(300))
    at, incidence = cumulative_incidence_competing_risks(cause, time)
    np.testing.assert_allclose(curves(at)[0], incidence[1:], atol=1e-12)
    fitted = AalenJohansenFitter(calculate_variance=False).fit(time, cause, event_of_interest=2)
    table = fitted.cumulative_density_
    np.testing.assert_allclose(curves[2](table.index)[0], table.to_numpy()[:, 0], atol=1e-12)


def sample(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(1, 20, n).astype(float), rng.integers(0, 3, n), rng.random(n)


def test_a_quantile_is_where_the_incidence_reaches_its_level():
    curves = curves_of(*sample())
    step = curves[2][0]
    levels = np.array([0.05, 0.2, float(step.values[3]), 0.99])
    values = curves.quantiles(2, levels).values[0]
    expected = [step.times[step.values >= level - 1e-12] for level in levels]
    assert values[:3].tolist() == [times[0] for times in expected[:3]]
    assert len(expected[3]) == 0
    assert values[3] == np.inf


def test_time_lost_is_the_integral_of_the_incidence():
    curves = curves_of(*sample())
    grid = np.linspace(0, 12, 1_200_001)
    by_sum = curves[1](grid)[0].mean() * 12
    assert curves.time_lost(1, 12.0)[0] == pytest.approx(by_sum, rel=1e-5)


def test_time_lost_to_all_causes_and_the_restricted_mean_add_up_to_the_horizon():
    curves = curves_of(*sample())
    lost = curves.time_lost(1, 15.0) + curves.time_lost(2, 15.0)
    assert (lost + curves.survival.restricted_mean(15.0))[0] == pytest.approx(15.0, abs=1e-12)


def test_after_a_time_survived_the_incidence_is_conditional():
    curves = curves_of(*sample())
    later, at = curves.given(4.0), np.array([1.0, 3.0, 10.0])
    free = curves.survival([4.0])[0]
    expected = (curves(4.0 + at)[0] - curves([4.0])[0]) / free
    np.testing.assert_allclose(later(at)[0], expected, atol=1e-12)
    np.testing.assert_allclose(later(at)[0].sum(axis=0) + later.survival(at)[0], 1, atol=1e-12)


def test_beyond_the_last_row_nothing_is_known():
    time, cause = [1.0, 2.0, 3.0], [1, 2, 0]
    curves = curves_of(time, cause, [1, 1, 1])
    assert np.isnan(curves([3.5])).all()
    assert np.isnan(curves.time_lost(1, 4.0)).all()
    assert curves.time_lost(1, 4.0, "restrict")[0] == pytest.approx(2 / 3)
    assert curves([3.5], beyond="extend")[0, :, 0] == pytest.approx([1 / 3, 1 / 3])
    assert curves.last(1)[0] == pytest.approx(1 / 3)


def test_curves_that_have_reached_0_are_known_for_ever():
    curves = curves_of([1.0, 2.0], [1, 2], [1, 1])
    assert curves([9.0])[0, :, 0] == pytest.approx([0.5, 0.5])


def test_curves_of_blocks_are_joined():
    first, second = curves_of(*sample(seed=1)), curves_of(*sample(seed=2))
    joined = IncidenceCurves.join([first, second])
    assert len(joined) == 2
    assert np.array_equal(joined([5.0])[1], second([5.0])[0])


def incidence_by_loops(weights, cause, chosen, n_before):
    survival, incidence = 1.0, 0.0
    for i in range(n_before):
        if cause[i]:
            hazard = weights[i] / weights[i:].sum()
            incidence += survival * hazard * (cause[i] == chosen)
            survival *= 1 - hazard
    return incidence


@pytest.mark.parametrize("n_before", [0, 1, 7, 19])
@pytest.mark.parametrize("chosen", [1, 2])
def test_influence_is_the_derivative_of_the_incidence(n_before, chosen):
    n = 20
    rng = np.random.default_rng(n_before)
    weights, cause = rng.dirichlet(np.ones(n)), rng.integers(0, 3, n).astype(np.uint8)
    ranks, time, found = np.arange(n, dtype=np.int32), np.arange(n, dtype=float), np.zeros((n, 1))
    path = follow_incidence(ranks, weights, cause > 0, cause, chosen)
    write_influence(ranks, path, time, np.array([n_before - 0.5]), found)
    curve = [incidence_by_loops(weights, cause, chosen, k) for k in range(n + 1)]
    assert path.level == pytest.approx(curve, abs=1e-14)
    for i in range(n):
        step = np.zeros(n)
        step[i] = 1e-6
        up, down = (
            incidence_by_loops(weights + sign * step, cause, chosen, n_before) for sign in (1, -1)
        )
        assert found[i, 0] == pytest.approx((up - down) / 2e-6, abs=1e-6)
    assert weights @ found[:, 0] == pytest.approx(0, abs=1e-12)
