"""The share of the root: the minimiser of the Brier score, by a grid search in plain loops."""

import numpy as np
import pytest
from lifelines import KaplanMeierFitter

from cqrf import CensoredQuantileForest, censored
from cqrf._input.target import Target
from cqrf._model import share
from cqrf._model.fit import add_root_share
from cqrf._model.share import (
    LEAST_GAIN,
    MOST_SHARE,
    PRIOR_SHARE,
    SHRINKAGE,
    ScoredCurves,
    best_share,
)
from cqrf.metrics.ipcw import read_evaluation_rows

N = 60


def make_scored(seed=0, n=N):
    """Rows with the true survival probabilities at some times."""
    rng = np.random.default_rng(seed)
    rate = np.exp(rng.normal(size=n))
    latent, end = rng.exponential(1 / rate), rng.exponential(2.0, n)
    target = Target(np.minimum(latent, end), latent <= end)
    scored = read_evaluation_rows(target, target, sample_weight=rng.integers(1, 4, n))
    times = np.quantile(target.time, [0.1, 0.3, 0.5, 0.7])
    return scored, np.exp(-np.outer(rate, times)), times


def score_by_loops(scored, survival, times):
    """Sum of IPCW Brier scores at the times."""
    total = 0.0
    for i, (time, event) in enumerate(zip(scored.time, scored.event)):
        for t, s in zip(times, survival[i]):
            weight = 0.0
            if time > t:
                weight, error = 1 / scored.censoring_survival_at(np.array([t]))[0], 1 - s
            elif event:
                weight, error = 1 / scored.censoring_survival_before(scored.time)[i], s
            if weight:
                total += scored.sample_weight[i] * weight * error**2
    return total


def choose(scored, halves, root, times, marginal=0.5):
    """The share, with a constant curve in place of Kaplan-Meier's."""
    curves = ScoredCurves(*halves, root, np.full(len(times), marginal))
    return best_share(scored, curves, times)


def best_by_grid(scored, forest, root, times, marginal=0.5):
    """The best share on a grid: relative score, with a ridge penalty towards the prior share."""
    grid = np.linspace(0, MOST_SHARE, 501)
    of_forest, of_root, of_middle = (
        score_by_loops(scored, (1 - a) * forest + a * root, times) for a in (0.0, 1.0, 0.5)
    )
    gain = 1 - of_root / score_by_loops(scored, np.full(forest.shape, marginal), times)
    if gain <= LEAST_GAIN:
        return 0.0
    # The score is a parabola in the share: three values give it everywhere.
    curvature = 2 * (of_forest + of_root - 2 * of_middle)
    slope = of_root - of_forest - curvature
    ridge = SHRINKAGE / scored.event.sum()
    values = (curvature * grid**2 + slope * grid) / of_forest
    return grid[np.argmin(values + ridge * (grid - PRIOR_SHARE) ** 2)]


@pytest.mark.parametrize("marginal", [0.5, "worse enough", "not enough"])
@pytest.mark.parametrize("seed", range(6))
def test_equal_halves_give_the_minimiser_of_the_score(seed, marginal):
    scored, truth, times = make_scored(seed, n=600)
    rng = np.random.default_rng(seed)
    forest = np.clip(truth + rng.normal(0, 0.25, truth.shape), 0, 1)
    root = np.clip(truth + rng.normal(0, [0.1, 0.25, 0.4][seed % 3], truth.shape), 0, 1)
    if marginal != 0.5:
        gain = LEAST_GAIN * (1.1 if marginal == "worse enough" else 0.9)
        score = score_by_loops(scored, root, times) / (1 - gain)
        marginal = find_constant(scored, times, score)
    found = choose(scored, (forest, forest), root, times, marginal)
    expected = best_by_grid(scored, forest, root, times, marginal)
    assert found == pytest.approx(expected, abs=0.0011)


def find_constant(scored, times, score):
    """A constant curve above 1/2 with this score, by bisection."""
    low, high = 0.5, 3.0
    for _ in range(60):
        middle = (low + high) / 2
        is_less = score_by_loops(scored, np.full((len(scored.time), len(times)), middle), times)
        low, high = (middle, high) if is_less < score else (low, middle)
    return low


def test_the_share_is_between_0_and_its_maximum():
    scored, truth, times = make_scored(n=3000)
    noise = np.random.default_rng(1).random(truth.shape)
    assert choose(scored, (truth, truth), noise, times, 2.0) < 0.01
    # The root is twice as far from the truth, on the same side: the best share is -1.
    assert choose(scored, (truth + 0.2, truth + 0.2), truth + 0.4, times, 2.0) == 0.0
    assert choose(scored, (noise, noise), truth, times) == MOST_SHARE


def test_the_prior_share_where_rows_cannot_tell():
    """Equal curves: a third if they are clearly better than Kaplan-Meier's, 0 if not better."""
    scored, truth, times = make_scored()
    assert choose(scored, (truth, truth), truth, times) == pytest.approx(PRIOR_SHARE)
    constant = np.full(truth.shape, 0.5)
    assert choose(scored, (constant, constant), constant, times) == 0.0


def test_noise_of_the_trees_does_not_count_in_favour_of_the_root():
    """With halves of independent noise the share is that of the curves without noise."""
    scored, truth, times = make_scored(3, n=20_000)
    rng = np.random.default_rng(3)
    root = np.clip(truth + 0.2 * np.sin(9 * truth), 0, 1)
    forest = 0.85 * truth + 0.1
    noisy = [forest + rng.normal(0, 0.3, truth.shape) for _ in range(2)]
    expected = choose(scored, (forest, forest), root, times)
    average = (noisy[0] + noisy[1]) / 2
    assert 0.05 < expected < 0.4
    assert choose(scored, tuple(noisy), root, times) == pytest.approx(expected, abs=0.05)
    assert choose(scored, (average, average), root, times) > expected + 0.1


def fit(X, y, n_trees=100, **settings):
    forest = CensoredQuantileForest(
        n_estimators=n_trees, working_model="cox", random_state=0, **settings
    )
    return forest.fit(X, y).model_


def make_proportional(n=200, seed=0):
    """Proportional hazards with ten weak effects: the working model is right, trees see little."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    latent = rng.exponential(np.exp(-0.3 * X.sum(axis=1)))
    end = rng.exponential(3.0, n)
    return X, censored(np.minimum(latent, end), latent <= end)


def make_interaction(n=400, seed=0):
    """The effect of the second feature changes its sign with the first: the model is wrong."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    latent = np.exp(X[:, 0] + 3 * X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n))
    end = rng.exponential(5.0, n)
    return X, censored(np.minimum(latent, end), latent <= end)


def test_the_root_takes_part_where_the_model_is_right_and_not_where_it_is_wrong():
    for seed in range(3):
        assert fit(*make_proportional(seed=seed)).working.root_share > 0.2
        wrong = fit(*make_interaction(seed=seed)).working
        assert wrong.scores.any()
        assert wrong.root_share < 0.1


def test_the_share_is_that_of_halves_of_the_trees(monkeypatch):
    """The curves that are compared are the public ones of the same trees."""
    (X, y), seen = make_proportional(), {}

    def keep(scored, curves, times):
        seen.update(scored=scored, times=times, **curves._asdict())
        return 0.1

    monkeypatch.setattr(share, "best_share", keep)
    model = fit(X, y, 200)
    assert model.working.root_share == 0.1
    first, second = seen["first"], seen["second"]
    assert first.shape == second.shape == seen["root"].shape == (200, len(seen["times"]))
    np.testing.assert_array_equal(seen["scored"].time, y["time"])
    kaplan_meier = KaplanMeierFitter().fit(y["time"], y["event"])
    expected = kaplan_meier.survival_function_at_times(seen["times"])
    np.testing.assert_allclose(seen["marginal"], expected, rtol=1e-9)
    # The root is the model's own prediction: out of bag, exp(-H0(t) exp(l)) where it is right.
    working = model.working
    predictor = working.linear_predictor[model.ranks][:, np.newaxis]
    model_curve = np.exp(-working.residuals(seen["times"], predictor))
    assert np.abs(seen["root"] - model_curve).max() < 0.15
    whole = (first + second) / 2
    assert np.corrcoef(whole.ravel(), model_curve.ravel())[0, 1] > 0.9
    assert 0.01 < np.abs(first - second).mean() < 0.2


@pytest.mark.parametrize("n_trees", [30, 100])
def test_the_share_does_not_depend_on_blocks_or_threads(n_trees, monkeypatch):
    """With 30 trees most rows are left out, as they lack trees: small blocks are empty."""
    monkeypatch.setattr(share, "MOST_SHARE", np.inf)
    X, y = make_proportional()
    expected = fit(X, y, n_trees).working.root_share
    assert expected > 0
    for n_rows, n_jobs in ((1, 1), (7, 2), (1000, 2)):
        monkeypatch.setattr(share, "BLOCK_ROWS", n_rows)
        assert fit(X, y, n_trees, n_jobs=n_jobs).working.root_share == expected


@pytest.mark.parametrize("n_trees", [2, 3])
def test_too_few_trees_have_no_root(n_trees):
    assert fit(*make_proportional(), n_trees).working.root_share == 0.0


def test_many_rows_are_not_scored(monkeypatch):
    model = fit(*make_proportional())
    assert model.working.root_share > 0
    monkeypatch.setattr(share, "MOST_UNITS", 199)
    without = fit(*make_proportional())
    assert without.working.root_share == 0.0
    assert add_root_share(without, None) is without


def test_bags_have_no_root():
    assert fit(*make_proportional(), bag_size=2).working.root_share == 0.0


def test_times_that_are_all_equal_choose_no_root():
    X, y = make_proportional()
    forest = CensoredQuantileForest(n_estimators=20, working_model="cox", random_state=0)
    model = forest.fit(X, censored(np.full(200, 0.5), y["event"])).model_
    assert model.working.root_share == 0.0
    assert (forest.predict(X, 0.01) == 0.5).all()
