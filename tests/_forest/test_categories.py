"""Categories: what the order of their levels gains by chance is not counted as a gain."""

import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf.datasets import make_aft
from oracles.splitting import cost_of_order, gain_of


def gain_of_best_order(column, label):
    """Gain of the best cut of the levels in the order of their mean label, by plain loops."""
    weight, labels = np.ones(len(label)), label[:, np.newaxis]
    levels = sorted(np.unique(column), key=lambda level: label[column == level].mean())
    gains = [
        gain_of(np.isin(column, levels[:k]), labels, np.ones(1), weight)
        for k in range(1, len(levels))
    ]
    return max(gains)


@pytest.mark.parametrize(("n_levels", "n"), [(20, 200), (60, 300), (120, 300)])
def test_the_cost_is_the_mean_gain_of_an_order_under_no_effect(n_levels, n):
    rng = np.random.default_rng(n_levels)
    gains, costs = [], []
    for _ in range(150):
        column, label = rng.integers(0, n_levels, n), rng.normal(size=n)
        gains.append(gain_of_best_order(column, label))
        costs.append(cost_of_order(column, label[:, np.newaxis], np.ones(1), np.ones(n), False))
    expected, spread = np.mean(gains) - 1, np.std(gains)
    assert np.mean(costs) == pytest.approx(expected + 2 * spread, rel=0.2)
    assert np.mean(np.array(gains) - costs > 4) < 0.03  # more than a numeric feature gains by luck


def with_levels(X, n_levels, seed=0):
    """X and a column of random levels."""
    levels = np.random.default_rng(seed).integers(0, n_levels, len(X)).astype(str)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    return frame.assign(level=pd.Series(levels, dtype="category"))


@pytest.mark.parametrize("working_model", [None, "cox"])
@pytest.mark.parametrize("n_levels", [30, 100, 250])
def test_random_levels_do_no_harm(n_levels, working_model):
    data = make_aft(400, 5, random_state=0)
    forest = CensoredQuantileForest(
        n_estimators=200, working_model=working_model, random_state=0, n_jobs=2
    )
    skill = forest.fit(data.X, data.y).score_oob()
    with_noise = forest.fit(with_levels(data.X, n_levels), data.y)
    assert with_noise.score_oob() > skill - 0.02
    assert with_noise.feature_importances_[-1] < 0.05


@pytest.mark.parametrize("working_model", [None, "cox"])
def test_levels_that_matter_are_used(working_model):
    rng = np.random.default_rng(0)
    frame = with_levels(rng.normal(size=(800, 4)), 50)
    effect = rng.normal(size=50)[frame["level"].astype(int)]
    time = np.exp(effect + 0.3 * rng.normal(size=800))
    y = censored(np.minimum(time, 6), time <= 6)
    forest = CensoredQuantileForest(
        n_estimators=200, working_model=working_model, random_state=0, n_jobs=2
    )
    as_levels = forest.fit(frame, y)
    skill, importance = as_levels.score_oob(), as_levels.feature_importances_[-1]
    as_numbers = forest.fit(frame.astype({"level": float}), y).score_oob()
    assert importance > 0.5
    assert skill > as_numbers + 0.05
