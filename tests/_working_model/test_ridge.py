"""Cross-validated ridge models: the penalty, scales of columns, and the rows of each part."""

import numpy as np
import pytest
from scipy.optimize import minimize

from cqrf._input.target import Target
from cqrf._working_model.cox import evaluate, make_rows, maximise
from cqrf._working_model.ridge import FOLDS, PENALTIES, fit_part, fit_ridge, make_parts
from oracles.cox import penalised_likelihood


def make_table(n=120, effect=1.0, seed=0, n_columns=4):
    """Rows in time order: matrix, target, and the fold of each row."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(n, n_columns))
    time = rng.exponential(np.exp(-effect * matrix[:, 0])) + 0.01
    order = np.argsort(time)
    event = rng.random(n) < 0.75
    return matrix[order], Target(time[order], event[order]), rng.integers(0, FOLDS, n)


@pytest.mark.parametrize(("effect", "seed"), [(0.0, 0), (0.3, 1), (2.0, 2)])
def test_the_penalty_has_the_best_cross_validated_likelihood(effect, seed):
    """The score of every multiple is computed by its definition."""
    matrix, target, fold = make_table(effect=effect, seed=seed)
    whole = make_rows(target.time, target.event, np.ones(120), None)
    scores = []
    for multiple in PENALTIES:
        score = 0.0
        for number in range(FOLDS):
            kept = np.flatnonzero(fold != number)
            part = target.take(kept)
            others = make_rows(part.time, part.event, np.ones(len(kept)), None)
            found = maximise(others, matrix[kept], multiple * len(kept), np.zeros(4))
            score += evaluate(whole, matrix @ found).log_likelihood
            score -= evaluate(others, matrix[kept] @ found).log_likelihood
        scores.append(score)
    falls = np.flatnonzero(np.diff(scores) <= 0)
    best = falls[0] if len(falls) else len(PENALTIES) - 1
    ridge = fit_ridge(make_parts(target, np.ones(120), fold), matrix, np.ones((FOLDS + 1, 4)))
    assert ridge.multiple == PENALTIES[best]
    assert ridge.log_likelihood == pytest.approx(scores[best], abs=1e-6)
    of_all = maximise(whole, matrix, ridge.multiple * 120, np.zeros(4))
    np.testing.assert_allclose(ridge.coefficients[FOLDS], of_all, rtol=1e-4, atol=1e-6)


def test_no_penalty_above_the_largest_is_tried():
    matrix, target, fold = make_table(effect=0.0)
    parts, scales = make_parts(target, np.ones(120), fold), np.ones((FOLDS + 1, 4))
    assert fit_ridge(parts, matrix, scales).multiple == 1.0
    assert fit_ridge(parts, matrix, scales, largest=0.1).multiple == 0.1


def test_a_scale_divides_the_penalty_by_its_square():
    matrix, target, fold = make_table(60)
    weight = np.random.default_rng(3).integers(1, 5, 60) / 2
    part = make_parts(target, weight, fold)[2]
    scale, data = np.array([1.0, 0.5, 0.0, 0.2]), (target.time, target.event, weight, None)
    found = fit_part(part, matrix, scale, 0.1, np.zeros(4))
    kept = fold != 2
    data = target.time[kept], target.event[kept], weight[kept], None
    used = [0, 1, 3]
    penalties = 0.1 * weight[kept].sum() / scale[used] ** 2

    def loss(coefficients):
        likelihood = penalised_likelihood(data, matrix[kept][:, used], 0.0, coefficients)
        return penalties @ coefficients**2 / 2 - likelihood

    expected = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-6}).x
    np.testing.assert_allclose(found[used], expected, atol=2e-5)
    assert found[2] == 0.0
    assert np.abs(expected).min() > 1e-3


def test_a_part_without_events_or_columns_has_no_coefficients():
    matrix, target, _ = make_table(40)
    fold = np.where(target.event, 1, 0)  # outside of fold 1 there is no event
    parts = make_parts(target, np.ones(40), fold)
    ridge = fit_ridge(parts, matrix, np.ones((FOLDS + 1, 4)))
    assert not ridge.coefficients[1].any()
    assert ridge.coefficients[0].all()
    assert not fit_part(parts[0], matrix, np.zeros(4), 0.1, np.zeros(4)).any()
