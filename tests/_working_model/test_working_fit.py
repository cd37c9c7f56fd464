"""Fitting the working model: cross-fitting, slope, folds, hazard, sampling of rows."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from cqrf._forest.binning import encode, find_edges
from cqrf._input.target import Target
from cqrf._working_model import fit as fit_module
from cqrf._working_model import ridge as ridge_module
from cqrf._working_model.cox import make_rows, maximise
from cqrf._working_model.design import make_design
from cqrf._working_model.fit import (
    WorkingRows,
    fit_working_model,
    fold_of_unit,
    has_enough,
    sample_rows,
)
from cqrf._working_model.ridge import FOLDS
from oracles.cox import cumulative_hazard

SEED = 5


def make_working_rows(n=300, *, effect=1.0, seed=0, weighted=False, late=False, unit=None):
    """Four columns, the first of them with an effect; rows in the order of their table."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(n, 4))
    time = rng.exponential(np.exp(-effect * matrix[:, 0])) + 0.01
    event = rng.random(n) < 0.75
    entry = np.where(rng.random(n) < 0.5, time * rng.random(n), -np.inf) if late else None
    weight = rng.integers(1, 9, n) / 4 if weighted else np.ones(n)
    unit = np.arange(n) if unit is None else unit
    codes = encode(matrix, find_edges(matrix, 255, 0))
    target = Target(time, event, entry)
    return WorkingRows(matrix, codes, target, weight, unit.astype(np.int32))


def fit(rows, seed=SEED):
    return fit_working_model(rows, [0] * 4, seed)


def predict(fitted, rows):
    return fitted.predict_training(rows.codes.T, rows.unit)


@pytest.mark.parametrize("case", [{}, {"weighted": True}, {"late": True}])
def test_each_fold_has_the_coefficients_of_the_other_rows(case, monkeypatch):
    """Refitted from the rows of the other folds alone, up to the slope, which all rows choose."""
    monkeypatch.setattr(ridge_module, "PENALTIES", (0.1,))
    rows = make_working_rows(**case)
    fitted, fold = fit(rows), fold_of_unit(rows.unit, SEED)
    columns = make_design(rows.matrix, rows.codes, [0] * 4, rows.weight).matrix(rows.codes)
    predicted, ratios = predict(fitted, rows), []
    for number in range(FOLDS):
        kept = np.flatnonzero(fold != number)
        kept = kept[np.argsort(rows.target.time[kept])]
        others = make_rows(*rows.target.take(kept)[:2], rows.weight[kept], None)
        if rows.target.entry is not None:
            others = make_rows(
                *rows.target.take(kept)[:2], rows.weight[kept], rows.target.entry[kept]
            )
        penalty = 0.1 * rows.weight[kept].sum()
        expected = columns @ maximise(others, columns[kept], penalty, np.zeros(4))
        left_out = fold == number
        ratio = predicted[left_out] / expected[left_out]
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
        ratios.append(ratio[0])
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-6)
    assert 0.5 < ratios[0] <= 1.0


def test_the_outcome_of_a_row_does_not_move_its_own_predictor(monkeypatch):
    monkeypatch.setattr(ridge_module, "PENALTIES", (0.1,))
    rows = make_working_rows()
    is_first = fold_of_unit(rows.unit, SEED) == 0
    time, event = rows.target.time.copy(), rows.target.event.copy()
    time[is_first] = np.random.default_rng(1).permutation(time[is_first])
    event[is_first] = ~event[is_first]
    changed = rows._replace(target=Target(time, event))
    before, after = predict(fit(rows), rows), predict(fit(changed), rows)
    # The slope is common to all rows, and is chosen by all of them.
    ratio = after[is_first] / before[is_first]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)
    others = after[~is_first] / before[~is_first]
    assert np.ptp(others) > 1e-3


@pytest.mark.parametrize("seed", range(4))
def test_noise_fades_out_and_a_signal_stays(seed):
    noise = make_working_rows(300, effect=0.0, seed=seed)
    assert predict(fit(noise), noise).std() < 0.12
    signal = make_working_rows(300, effect=1.0, seed=seed)
    predicted = predict(fit(signal), signal)
    assert np.corrcoef(predicted, signal.matrix[:, 0])[0, 1] > 0.97
    assert predicted.std() == pytest.approx(1.0, abs=0.25)


@pytest.mark.parametrize(
    ("factor", "slope"), [(1.0, 1.0), (0.5, 1.0), (2.0, 0.5), (-1.0, 0.0), (0.0, 0.0)]
)
def test_the_slope_is_between_0_and_1(factor, slope):
    rows = make_working_rows(4000, seed=9)
    order = np.argsort(rows.target.time)
    target = rows.target.take(order)
    whole = make_rows(target.time, target.event, np.ones(4000), None)
    found = fit_module._calibration_slope(whole, factor * rows.matrix[order, 0])
    assert 0.0 <= found <= 1.0
    assert found == pytest.approx(slope, abs=0.05)


@pytest.mark.parametrize(("effect", "is_kept"), [(0.03, False), (0.15, True)])
def test_a_model_that_explains_little_of_many_events_has_slope_0(effect, is_kept):
    """The likelihood-ratio statistic is about effect^2 for each event."""
    rows = make_working_rows(8000, effect=effect, seed=3)
    order = np.argsort(rows.target.time)
    target = rows.target.take(order)
    whole = make_rows(target.time, target.event, np.ones(8000), None)
    predicted = effect * rows.matrix[order, 0]
    slope = fit_module._calibration_slope(whole, predicted)
    assert (slope > 0) is is_kept
    found = fit_module.evaluate(whole, predicted).log_likelihood
    null = fit_module.evaluate(whole, 0 * predicted).log_likelihood
    assert found > null + 1  # either effect is there


def test_folds_keep_units_together_and_are_about_equal():
    unit = np.repeat(np.arange(1000), 3)
    fold = fold_of_unit(unit, SEED)
    assert (fold.reshape(1000, 3) == fold[::3, np.newaxis]).all()
    assert np.bincount(fold[::3].astype(int), minlength=FOLDS) == pytest.approx(200, abs=50)
    assert not np.array_equal(fold, fold_of_unit(unit, SEED + 1))
    np.testing.assert_array_equal(fold_of_unit(unit[::-1], SEED), fold[::-1])


@pytest.mark.parametrize("n_units", [1, 2, 3])
@pytest.mark.parametrize("late", [False, True])
def test_few_units_leave_folds_without_rows(n_units, late):
    rows = make_working_rows(100, late=late, unit=np.arange(100) % n_units)
    predicted = predict(fit(rows), rows)
    assert np.isfinite(predicted).all()
    if n_units == 1:  # no model is fitted without the only unit
        assert not predicted.any()


@pytest.mark.parametrize("case", [{}, {"weighted": True, "late": True}])
def test_the_hazard_is_that_of_the_cross_fitted_predictors(case):
    rows = make_working_rows(150, **case)
    fitted = fit(rows)
    model, eta = fitted.model, predict(fitted, rows)
    time, event = rows.target.time, rows.target.event
    data = time, event, rows.weight, rows.target.entry
    assert model.knots[0] == time.min()
    np.testing.assert_array_equal(model.knots[-event.sum() :], np.sort(time[event]))
    for knot, hazard in list(zip(model.knots, model.hazards))[::20]:
        assert hazard == pytest.approx(cumulative_hazard(data, eta, knot), rel=1e-9)


def test_many_event_times_are_thinned(monkeypatch):
    rows = make_working_rows(300)
    whole = fit(rows).model
    monkeypatch.setattr(fit_module, "MOST_KNOTS", 40)
    thin = fit(rows).model
    assert len(thin.knots) <= 41
    place = np.searchsorted(whole.knots, thin.knots)
    np.testing.assert_array_equal(whole.knots[place], thin.knots)
    np.testing.assert_array_equal(whole.hazards[place], thin.hazards)
    assert thin.knots[-1] == whole.knots[-1]


def test_a_sample_of_many_rows(monkeypatch):
    assert sample_rows(20_000, SEED) is None
    sample = sample_rows(20_001, SEED)
    assert len(np.unique(sample)) == 20_000
    assert (np.diff(sample) > 0).all()
    monkeypatch.setattr(fit_module, "MOST_ROWS", 50)
    few = sample_rows(1000, SEED)
    assert few.shape == (50,)
    assert few.max() > 500
    assert not np.array_equal(few, sample_rows(1000, SEED + 1))


@pytest.mark.parametrize(
    ("n_rows", "n_events", "enough"),
    [(50, 10, True), (49, 40, False), (500, 9, False), (0, 0, False)],
)
def test_what_is_enough(n_rows, n_events, enough):
    assert has_enough(n_rows, n_events) is enough


def test_threads_of_the_linear_algebra_change_nothing():
    """With so many rows and columns its products are split over threads, and rounded otherwise."""
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(4000, 60))
    rows = WorkingRows(
        matrix,
        encode(matrix, find_edges(matrix, 255, 0)),
        Target(rng.exponential(np.exp(-matrix[:, 0])), rng.random(4000) < 0.7),
        np.ones(4000),
        np.arange(4000, dtype=np.int32),
    )
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            found.append(fit_working_model(rows, [0] * 60, SEED))
    one, two = found
    np.testing.assert_array_equal(one.model.scores, two.model.scores)
    np.testing.assert_array_equal(one.model.hazards, two.model.hazards)
    np.testing.assert_array_equal(one.fold_scores, two.fold_scores)


def test_columns_that_do_not_vary_give_no_predictor():
    rows = make_working_rows(100)
    flat = rows._replace(matrix=np.ones((100, 4)), codes=np.zeros((4, 100), np.uint8))
    fitted = fit(flat)
    assert not predict(fitted, flat).any()
    assert len(fitted.model.features) == 0


def test_times_that_follow_from_a_column_without_noise():
    rows = make_working_rows(200)
    exact = rows._replace(target=Target(np.exp(-rows.matrix[:, 0]), np.full(200, True)))
    fitted = fit(exact)
    assert np.isfinite(fitted.model.scores).all()
    assert np.isfinite(fitted.model.hazards).all()
    assert (np.diff(fitted.model.hazards) >= 0).all()
