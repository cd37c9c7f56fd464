"""Simulated arms: the drawn times have the survival, means and quantiles that are called true."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from cqrf.datasets import make_treatment
from cqrf.datasets.treatment import DESIGNS

KINDS = tuple(DESIGNS)
OF_GRF = ("simple1", "type1", "type2", "type3", "type4", "type5")
MANY = 100_000
# Quarters of the time that a row of each kind lives, roughly.
TIMES = {
    "simple1": [0.25, 0.5, 1.0, 1.25],
    "type1": [0.05, 0.1, 0.25, 0.8],
    "type2": [0.02, 0.1, 0.4, 1.2],
    "type3": [4.0, 6.5, 8.0, 10.0],
    "type4": [0.0, 0.5, 1.0, 2.0],
    "type5": [0.02, 0.1, 0.17, 1.2],
    "confounded": [1.0, 1.5, 3.0, 4.5],
    "null": [1.0, 1.5, 3.0, 4.5],
    "spread": [1.0, 2.0, 3.0, 6.0],
}
IS_WHOLE = ("type3", "type4")
kinds = pytest.mark.parametrize("kind", KINDS)
arms = pytest.mark.parametrize("arm", [0, 1])


def latent_times(kind, X, arm, seed=0):
    """Times as the generator draws them, with every row in one arm."""
    w = np.full(len(X), float(arm))
    return DESIGNS[kind].times(X, w).draw(np.random.default_rng(seed))


@kinds
@arms
def test_drawn_times_survive_as_often_as_the_truth_says(kind, arm):
    data = make_treatment(kind, n=3, random_state=4)
    for row in data.X:
        drawn = latent_times(kind, np.repeat(row[np.newaxis], MANY, axis=0), arm)
        truth = data.true_survival(row[np.newaxis], TIMES[kind], arm)[0]
        found = (drawn[:, np.newaxis] > TIMES[kind]).mean(axis=0)
        error = np.sqrt(np.maximum(truth * (1 - truth), 1e-12) / MANY)
        assert (np.abs(found - truth) <= 4.5 * error).all()


@kinds
@arms
def test_the_restricted_mean_is_the_area_under_the_curve(kind, arm):
    X = make_treatment(kind, n=6, random_state=1).X
    times = DESIGNS[kind].times(X, np.full(6, float(arm)))
    for horizon in (*TIMES[kind][1:], 2 * TIMES[kind][-1]):
        found = times.restricted_mean(horizon)
        breaks = range(1, int(np.ceil(horizon))) if kind in IS_WHOLE else [1.0]
        for row in range(6):
            area = quad(
                lambda t, row=row: times.survival(t)[row],
                0.0,
                horizon,
                points=[p for p in breaks if p < horizon] or None,
                epsabs=1e-11,
                epsrel=1e-11,
                limit=400,
            )[0]
            assert found[row] == pytest.approx(area, rel=1e-7)


@kinds
@arms
def test_a_quantile_is_where_survival_falls_to_one_less_its_level(kind, arm):
    X = make_treatment(kind, n=50, random_state=2).X
    times = DESIGNS[kind].times(X, np.full(50, float(arm)))
    for level in (0.03, 0.25, 0.5, 0.9, 0.99):
        for row, quantile in enumerate(times.quantile(level)):
            if kind in IS_WHOLE:
                assert quantile == int(quantile)
                assert (
                    times.survival(quantile)[row] <= 1 - level < times.survival(quantile - 1)[row]
                )
            else:
                assert times.survival(quantile)[row] == pytest.approx(1 - level, abs=1e-12)


@kinds
def test_effects_are_differences_of_the_arms(kind):
    data = make_treatment(kind, n=40, random_state=0)
    of_arm = [DESIGNS[kind].times(data.X, np.full(40, float(arm))) for arm in (0, 1)]
    at = TIMES[kind]
    survival = data.true_survival(data.X, at, 1) - data.true_survival(data.X, at, 0)
    assert survival.shape == (40, 4)
    assert np.array_equal(data.true_effect(data.X, "survival", times=at), survival)
    assert np.array_equal(data.true_effect(data.X, "survival", times=at[1]), survival[:, 1])
    mean = of_arm[1].restricted_mean(at[2]) - of_arm[0].restricted_mean(at[2])
    assert np.array_equal(data.true_effect(data.X, horizon=at[2]), mean)
    quantile = of_arm[1].quantile(0.5) - of_arm[0].quantile(0.5)
    assert np.array_equal(data.true_effect(data.X, "quantile", quantiles=[0.5])[:, 0], quantile)


@kinds
def test_rows_are_treated_as_often_as_their_propensity_says(kind):
    data = make_treatment(kind, n=MANY, random_state=3)
    assert set(np.unique(data.treatment)) == {0, 1}
    assert (data.propensity > 0).all()
    assert (data.propensity < 1).all()
    for low, high in zip(np.arange(0, 1, 0.1), np.arange(0.1, 1.1, 0.1), strict=True):
        inside = (data.propensity >= low) & (data.propensity < high)
        if inside.sum() > 100:
            expected = data.propensity[inside].mean()
            error = np.sqrt(expected * (1 - expected) / inside.sum())
            assert abs(data.treatment[inside].mean() - expected) < 4 * error


def some_row(kind, n=1):
    """Rows with x = .64, .36, .75, .1, .9, ..., whose square roots are easy."""
    return np.tile([0.64, 0.36, 0.75, 0.1, 0.9] * (DESIGNS[kind].n_features // 5), (n, 1))


def test_the_propensities_by_hand():
    # The density of beta(2, 4) is 20 x (1 - x)^3.
    by_beta = (1 + 20 * 0.64 * 0.36**3) / 4
    expected = dict.fromkeys(("type1", "type2", "type3", "type5"), by_beta)
    expected |= {"simple1": 0.5, "spread": 0.5}
    expected["type4"] = 1 / ((1 + np.exp(-0.64)) * (1 + np.exp(-0.36)))
    expected |= dict.fromkeys(("confounded", "null"), np.sin(np.pi * 0.2304))
    assert set(expected) == set(KINDS)
    for kind, value in expected.items():
        assert DESIGNS[kind].propensity(some_row(kind))[0] == pytest.approx(value)
    extreme = np.zeros((2, 10))
    extreme[1, :2] = [0.5, 1.0]
    assert DESIGNS["null"].propensity(extreme).tolist() == [0.1, 0.9]


def test_the_times_of_each_kind_by_hand():
    base = -0.5 + 0.7 * (np.sin(np.pi * 0.2304) + 0.125 + 0.1 + 0.45)
    expected = {
        "simple1": [(0.0, 0.64), (1.0, 0.64)],
        "type1": [(-1.28, 1.0), (-0.82, 1.0)],
        "type2": [(np.exp(0.64),), (np.exp(0.5),)],
        "type3": [(6.8796,), (7.8796,)],
        "type4": [(1.11,), (1.45,)],
        "type5": [(np.exp(0.64),), (np.exp(0.6),)],
        "confounded": [(base, 0.6), (base + 0.3, 0.6)],
        "null": [(base, 0.6), (base, 0.6)],
        "spread": [(1.015, 0.3), (1.015, 0.624)],
    }
    assert set(expected) == set(KINDS)
    for kind, by_arm in expected.items():
        for arm, parameters in enumerate(by_arm):
            found = DESIGNS[kind].times(some_row(kind), np.array([float(arm)]))
            assert [float(np.ravel(p)[0]) for p in found] == pytest.approx(parameters)
    low = some_row("type1")
    low[0, 0] = 0.25
    found = [DESIGNS["type1"].times(low, np.array([w])).location[0] for w in (0.0, 1.0)]
    assert found == pytest.approx([-2.08, -2.02])
    # Below .3 treatment does nothing in type4.
    assert DESIGNS["type4"].times(low, np.ones(1)).mean[0] == pytest.approx(1.11)


def weibull(scale):
    return lambda level: scale * (-np.log1p(-level)) ** (2 / 3)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(
    ("kind", "quantile"),
    [
        ("simple1", [lambda level: 2 * level] * 2),
        ("type1", [lambda q, r=r: np.sqrt(-np.log1p(-q) / np.exp(r)) for r in (-1.9, -0.93)]),
        ("type2", [lambda level: 3 * level] * 2),
        ("type5", [lambda q, m=m: np.exp(norm.ppf(q, m)) for m in (0.64, -0.11)]),
        ("confounded", [weibull(np.exp(0.98)), weibull(np.exp(0.48))]),
        ("null", [weibull(np.exp(0.98)), weibull(np.exp(0.48))]),
        ("spread", [weibull(np.exp(1.48))] * 2),
    ],
)
def test_quantiles_of_the_censoring_time_by_hand(kind, quantile, level):
    for arm, truth in enumerate(quantile):
        w = np.full(MANY, float(arm))
        drawn = DESIGNS[kind].draw_censoring(np.random.default_rng(arm), some_row(kind, MANY), w)
        error = np.sqrt(level * (1 - level) / MANY)
        assert (drawn <= truth(level)).mean() == pytest.approx(level, abs=4.5 * error)


@pytest.mark.parametrize(("kind", "mean"), [("type3", 12.0), ("type4", 1.0)])
def test_whole_censoring_times_have_a_poisson_mean(kind, mean):
    drawn = DESIGNS[kind].draw_censoring(
        np.random.default_rng(0), some_row(kind, MANY), np.zeros(MANY)
    )
    mean += np.log1p(np.exp(0.75))
    assert np.array_equal(drawn, np.floor(drawn))
    assert drawn.mean() == pytest.approx(mean, abs=4.5 * np.sqrt(mean / MANY))
    assert drawn.var() == pytest.approx(mean, rel=0.03)


def test_the_null_has_no_effect_and_spread_none_on_the_median():
    null = make_treatment("null", n=100, random_state=0)
    assert not null.true_effect(null.X, horizon=3.0).any()
    assert not null.true_effect(null.X, "quantile", quantiles=[0.1, 0.9]).any()
    spread = make_treatment("spread", n=100, random_state=0)
    low, middle, high = spread.true_effect(spread.X, "quantile", quantiles=[0.1, 0.5, 0.9]).T
    assert (low < 0).all()
    assert not middle.any()
    assert (high > 0).all()


@pytest.mark.parametrize("kind", OF_GRF)
def test_at_the_horizon_rows_become_events(kind):
    whole, horizon = make_treatment(kind, n=500, random_state=5), TIMES[kind][2]
    cut = make_treatment(kind, n=500, horizon=horizon, random_state=5)
    assert np.array_equal(cut.y["time"], np.minimum(whole.y["time"], horizon))
    late = whole.y["time"] >= horizon
    assert 0 < late.sum() < 500
    assert cut.y["event"][late].all()
    assert np.array_equal(cut.y["event"][~late], whole.y["event"][~late])
    for name in ("X", "treatment", "propensity"):
        assert np.array_equal(getattr(cut, name), getattr(whole, name))


@kinds
def test_a_seed_gives_the_same_rows(kind):
    first, again, other = (make_treatment(kind, n=30, random_state=seed) for seed in (1, 1, 2))
    assert first.X.shape == (30, 5 if kind in OF_GRF else 10)
    assert np.array_equal(first.y, again.y)
    assert np.array_equal(first.treatment, again.treatment)
    assert not np.array_equal(first.y, other.y)
    assert (make_treatment(kind, n=30).true_survival(first.X, -1.0, 1) == 1.0).all()
    old = make_treatment(kind, n=30, random_state=np.random.RandomState(0))
    assert old.X.shape == first.X.shape


def test_errors_say_what_is_wanted():
    with pytest.raises(ValueError, match=r"kind='type6' is unknown; choose one of simple1, type1"):
        make_treatment("type6")
    with pytest.raises(ValueError, match=r"n must be at least 1; found 0"):
        make_treatment(n=0)
    data = make_treatment("type1", n=3, random_state=0)
    with pytest.raises(ValueError, match=r'target="survival" needs times=, and no other'):
        data.true_effect(data.X, "survival", horizon=1.0)
    with pytest.raises(ValueError, match=r'target="rmst" needs horizon=, and no other'):
        data.true_effect(data.X, horizon=1.0, times=1.0)
    with pytest.raises(ValueError, match=r"target='mean' is unknown; choose one of rmst"):
        data.true_effect(data.X, "mean")
    with pytest.raises(ValueError, match=r"arm=2 must be 0 for the control or 1"):
        data.true_survival(data.X, 1.0, arm=2)
    with pytest.raises(ValueError, match=r"X must have 5 columns for kind='type1'; found shape"):
        data.true_survival(data.X[:, :3], 1.0, arm=1)
