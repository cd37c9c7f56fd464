"""Effects on times of any magnitude: the same numbers in another unit."""

import numpy as np
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf._views.effects import choose_times
from cqrf.effects import CensoredTreatmentForest

N = 80
pytestmark = pytest.mark.filterwarnings("ignore::cqrf.effects.OverlapWarning")


def fit(time):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, 2)).round(2)
    y = censored(time, rng.random(N) < 0.7)
    nuisance = CensoredQuantileForest(n_estimators=20, working_model=None)
    forest = CensoredTreatmentForest(n_estimators=24, nuisance_forest=nuisance, random_state=0)
    return X, forest.fit(X, y, np.arange(N) % 2, propensity=0.5)


def answers(unit):
    """Estimates and errors for times in a unit."""
    time = np.random.default_rng(0).exponential(2, N).round(1) + 0.1
    X, forest = fit(time * unit)
    at = {"horizon": 4.0 * unit}
    average, rate, curve = forest.ate(**at), forest.rate(**at), forest.toc(**at)
    projected, of_median = forest.best_linear_projection(X[:, 0], **at), forest.ate("quantile")
    found = [
        forest.effect(X, **at),
        forest.effect_interval(X, **at),
        forest.effect_interval(X, "quantile", quantiles=0.3),
        [average.estimate, average.standard_error, of_median.estimate, of_median.standard_error],
        [rate.estimate, rate.standard_error],
        curve.standard_error[:-1],  # that of all rows is 0
        projected.coefficient,
        projected.standard_error,
    ]
    return [np.asarray(each) / unit for each in found]


@pytest.mark.parametrize("power", [-990, 990])
def test_errors_are_in_the_unit_of_the_times(power):
    """A power of two changes no digit, unless a square is too large or too small for a float."""
    for found, expected in zip(answers(2.0**power), answers(1.0), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("time", [np.zeros(N), np.arange(N) * 5e-324])
def test_there_are_no_round_times_without_a_span(time):
    assert choose_times(fit(time)[1].model_) == []
