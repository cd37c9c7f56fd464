"""The adaptive model: powers of features, sizes of columns, and when it is taken."""

import numpy as np
import pytest

from cqrf._forest.binning import encode, find_edges, level_edges
from cqrf._forest.spec import N_BINS
from cqrf._input.target import Target
from cqrf._working_model import adaptive as adaptive_module
from cqrf._working_model.adaptive import (
    add_powers,
    bin_shares,
    column_sizes,
    fit_adaptive,
    number_groups,
    powers,
    relative_sizes,
)
from cqrf._working_model.design import CLIP, make_design
from cqrf._working_model.fit import WorkingRows, fit_working_model, fold_of_unit
from cqrf._working_model.ridge import FOLDS, fit_ridge, make_parts

SEED = 5


def make_rows(location, n=400, n_features=8, seed=0):
    """Rows whose log hazard is a function of uniform features on [-1, 1]."""
    rng = np.random.default_rng(seed)
    matrix = rng.uniform(-1, 1, (n, n_features))
    time = rng.exponential(np.exp(-location(matrix))) + 1e-3
    codes = encode(matrix, find_edges(matrix, 255, 0))
    target = Target(time, rng.random(n) < 0.8)
    return WorkingRows(matrix, codes, target, np.ones(n), np.arange(n, dtype=np.int32))


def fit_both(rows):
    """The first ridge and its design, and what ``fit_adaptive`` makes of them."""
    n_levels = [0] * rows.matrix.shape[1]
    order = np.argsort(rows.target.time)
    design = make_design(rows.matrix, rows.codes, n_levels, rows.weight)
    codes, fold = rows.codes[:, order], fold_of_unit(rows.unit[order], SEED)
    parts = make_parts(rows.target.take(order), rows.weight[order], fold)
    scales = np.ones((FOLDS + 1, len(design.feature)))
    ridge = fit_ridge(parts, design.matrix(codes), scales)
    return (design, ridge), fit_adaptive(design, ridge, parts, codes, n_levels)


def make_mixed_design(weight):
    """A number, a category with a missing level, and a number with missing values."""
    rng = np.random.default_rng(1)
    n = len(weight)
    matrix = np.column_stack([rng.normal(size=n), rng.integers(0, 4, n), rng.normal(size=n)])
    matrix[rng.random(n) < 0.2, 1:] = np.nan
    n_levels = [0, 4, 0]
    edges = find_edges(matrix, 255, 0)
    codes = encode(matrix, [edges[0], level_edges(4), edges[2]])
    return make_design(matrix, codes, n_levels, weight), codes, n_levels


def test_powers_are_what_lower_powers_leave_over():
    """Residuals of weighted least squares, by NumPy, standardised."""
    rng = np.random.default_rng(0)
    column, share = rng.normal(size=N_BINS), rng.uniform(size=N_BINS)
    share /= share.sum()
    lower, root = np.column_stack([np.ones(N_BINS), column]), np.sqrt(share)
    for found, exponent in zip(powers(column, share), (2, 3), strict=True):
        power = column**exponent
        slopes = np.linalg.lstsq(root[:, np.newaxis] * lower, root * power, rcond=None)[0]
        left = power - lower @ slopes
        expected = left / np.sqrt(share @ left**2)
        np.testing.assert_allclose(found, np.clip(expected, -CLIP, CLIP), atol=1e-9)
        lower = np.column_stack([lower, power])


@pytest.mark.parametrize(("n_values", "n_powers"), [(2, 0), (3, 1), (4, 2), (9, 2)])
def test_a_column_of_few_values_has_few_powers(n_values, n_powers):
    share = np.zeros(N_BINS)
    share[:n_values] = 1 / n_values
    column = np.resize(np.arange(n_values, dtype=float) ** 1.5, N_BINS)
    assert len(powers(column, share)) == n_powers


def test_sizes_are_standard_deviations_over_rows():
    weight = np.random.default_rng(2).uniform(0.5, 2, 300)
    design, codes, n_levels = make_mixed_design(weight)
    groups = number_groups(design, n_levels)
    # The number, all columns of the category, the other number, and its missing values.
    assert groups.tolist() == [0, *[1] * 5, 2, 3]
    coefficients = np.random.default_rng(3).normal(size=len(groups))
    sizes = column_sizes(design, coefficients, bin_shares(codes, weight), groups)
    matrix = design.matrix(codes)
    for group in range(4):
        its_columns = groups == group
        added = matrix[:, its_columns] @ coefficients[its_columns]
        mean = np.average(added, weights=weight)
        expected = np.sqrt(np.average((added - mean) ** 2, weights=weight))
        np.testing.assert_allclose(sizes[its_columns], expected, rtol=1e-9)


def test_sizes_are_relative_to_the_largest():
    np.testing.assert_array_equal(relative_sizes(np.array([2.0, 1.0, 0.19])), [1.0, 0.5, 0.0])
    np.testing.assert_array_equal(relative_sizes(np.zeros(3)), np.zeros(3))


def test_numbers_get_powers_if_there_are_not_too_many_columns_then(monkeypatch):
    weight = np.ones(300)
    design, codes, n_levels = make_mixed_design(weight)
    shares = bin_shares(codes, weight)
    wider, source = add_powers(design, shares, n_levels)
    # Powers stand behind the columns of their feature.
    assert wider.feature.tolist() == [*[0] * 3, *[1] * 5, *[2] * 4]
    assert source.tolist() == [0, -1, -1, 1, 2, 3, 4, 5, 6, 7, -1, -1]
    np.testing.assert_array_equal(wider.values[source >= 0], design.values)
    np.testing.assert_array_equal(wider.values[1:3], powers(design.values[0], shares[0]))
    monkeypatch.setattr(adaptive_module, "MOST_COLUMNS", 12)
    assert len(add_powers(design, shares, n_levels)[0].feature) == 12
    monkeypatch.setattr(adaptive_module, "MOST_COLUMNS", 11)
    same, source = add_powers(design, shares, n_levels)
    assert same is design
    assert source.tolist() == list(range(8))


def test_too_many_columns_keep_the_first_ridge(monkeypatch):
    def location(X):
        return 3 * X[:, 0]

    rows = make_rows(location, n_features=40)
    assert len(fit_both(rows)[1][0].feature) == 120
    monkeypatch.setattr(adaptive_module, "MOST_COLUMNS", 40)  # without powers
    _, chosen = fit_both(rows)
    assert len(chosen[0].feature) == 40
    assert np.mean(chosen[1].coefficients[FOLDS] == 0) > 0.2
    monkeypatch.setattr(adaptive_module, "MOST_COLUMNS", 39)
    first, chosen = fit_both(rows)
    assert chosen[1] is first[1]


@pytest.mark.parametrize("seed", range(6))
def test_noise_keeps_the_first_ridge(seed):
    first, chosen = fit_both(make_rows(lambda X: 0 * X[:, 0], seed=seed))
    assert chosen[0] is first[0]
    assert chosen[1] is first[1]


@pytest.mark.parametrize("seed", range(3))
def test_a_curve_is_found_and_noise_is_left_out(seed):
    def location(X):
        return 3 * X[:, 0] ** 2 + np.sin(3 * X[:, 1])

    (design, ridge), (wider, adaptive) = fit_both(make_rows(location, 600, seed=seed))
    assert adaptive.log_likelihood >= ridge.log_likelihood + adaptive_module.LEAST_GAIN
    test = make_rows(location, 1000, seed=100 + seed)
    truth = location(test.matrix)
    errors = []
    for its_design, its_ridge in ((design, ridge), (wider, adaptive)):
        predicted = its_design.matrix(test.codes) @ its_ridge.coefficients[FOLDS]
        errors.append(np.std(predicted - truth))
    assert errors[1] < 0.5 * errors[0]
    is_noise = wider.feature >= 2
    assert np.mean(adaptive.coefficients[FOLDS][is_noise] == 0) > 0.6


def test_the_outcome_of_a_row_does_not_move_its_own_predictor(monkeypatch):
    monkeypatch.setattr("cqrf._working_model.ridge.PENALTIES", (0.1,))
    monkeypatch.setattr(adaptive_module, "LEAST_GAIN", -np.inf)
    rows = make_rows(lambda X: 3 * X[:, 0] ** 2)
    is_first = fold_of_unit(rows.unit, SEED) == 0
    time, event = rows.target.time.copy(), rows.target.event.copy()
    time[is_first] = np.random.default_rng(1).permutation(time[is_first])
    changed = rows._replace(target=Target(time, event))
    before, after = (
        fit_working_model(each, [0] * 8, SEED).predict_training(rows.codes.T, rows.unit)
        for each in (rows, changed)
    )
    # The slope is common to all rows, and is chosen by all of them.
    ratio = after[is_first] / before[is_first]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    assert np.ptp(after[~is_first] / before[~is_first]) > 1e-3
