"""Weights of any size: only their ratios matter."""

import numpy as np
import pytest

from cqrf import censored, solve_quantiles
from cqrf.metrics import (
    brier_score,
    brier_score_incidence,
    concordance_index,
    incidence_calibration,
    integrated_brier_score,
)

SCALES = [1e308 / 7, 1e200, 1e-200, 1e-300]


def make_rows(n=30, seed=0):
    rng = np.random.default_rng(seed)
    return censored(rng.exponential(3.0, n), rng.random(n) < 0.7), rng.integers(1, 8, n), rng


@pytest.mark.parametrize("scale", SCALES)
def test_solve_quantiles(scale):
    y, copies, rng = make_rows()
    weights = rng.integers(0, 8, (5, 30)).astype(float)
    levels = [0.1, 0.5]
    expected = solve_quantiles(weights, y["time"], y["event"], levels, sample_weight=copies)
    for by, more in ((scale, 1.0), (1.0, scale), (scale, scale)):
        found = solve_quantiles(
            weights * by, y["time"], y["event"], levels, sample_weight=copies * more
        )
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["sample_weight", "train_weight"])
def test_scores(scale, name):
    y, copies, rng = make_rows()
    times = np.quantile(y["time"], [0.2, 0.4, 0.6])
    survival = np.sort(rng.random((30, 3)))[:, ::-1]
    for score in (brier_score, integrated_brier_score):
        expected = score(y, y, survival, times, **{name: copies})
        found = score(y, y, survival, times, **{name: copies * scale})
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    predicted = rng.random(30)
    settings = {} if name == "sample_weight" else {"y_train": y}
    expected = concordance_index(y, predicted, **settings, **{name: copies})
    found = concordance_index(y, predicted, **settings, **{name: copies * scale})
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert 0 < expected < 1


@pytest.mark.parametrize("scale", SCALES)
def test_scores_of_a_cause(scale):
    y, copies, rng = make_rows()
    y = censored(y["time"], np.where(y["event"], rng.integers(1, 3, 30), 0))
    times = np.quantile(y["time"], [0.2, 0.4, 0.6])
    incidence, predicted = np.sort(rng.random((30, 3))), rng.random(30)

    def scores(weight):
        calibration = incidence_calibration(
            y, incidence[:, 1], times[1], cause=1, n_groups=3, sample_weight=weight
        )
        weights = {"sample_weight": weight, "train_weight": weight}
        return [
            *brier_score_incidence(y, y, incidence, times, cause=1, **weights),
            concordance_index(y, predicted, cause=1, sample_weight=weight),
            *calibration.observed,
            calibration.distance,
        ]

    expected = scores(copies)
    np.testing.assert_allclose(scores(copies * scale), expected, rtol=1e-9)
    assert np.isfinite(expected).all()
