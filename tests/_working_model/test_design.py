"""The design of the working model: its columns from raw values, and scores by bin."""

import numpy as np
import pytest

from cqrf._forest.binning import encode, find_edges, level_edges
from cqrf._forest.spec import MISSING, N_BINS
from cqrf._working_model import design as design_module
from cqrf._working_model.cox import make_rows, maximise
from cqrf._working_model.design import CLIP, make_design, principal_components


def make_codes(matrix, n_levels, max_bins=255):
    edges = find_edges(matrix, max_bins, 0)
    edges = [level_edges(n) if n else own for own, n in zip(edges, n_levels)]
    return encode(matrix, edges)


def design_of(matrix, n_levels=None, weight=None):
    """The design of a matrix, its codes, and the weights."""
    matrix = np.asarray(matrix, float)
    n_levels = n_levels or [0] * matrix.shape[1]
    weight = np.ones(len(matrix)) if weight is None else weight
    codes = make_codes(matrix, n_levels)
    return make_design(matrix, codes, n_levels, weight), codes, weight


def moments(columns, weight):
    share = weight / weight.sum()
    mean = share @ columns
    return mean, np.sqrt(share @ (columns - mean) ** 2)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_number_is_standardised(weighted):
    rng = np.random.default_rng(0)
    matrix = rng.uniform(size=(200, 3)) * [1.0, 100.0, 1e-7] + [0.0, -1e4, 1.0]
    weight = rng.uniform(0.1, 3.0, 200) if weighted else None
    design, codes, weight = design_of(matrix, weight=weight)
    columns = design.matrix(codes)
    assert design.feature.tolist() == [0, 1, 2]
    mean, deviation = moments(columns, weight)
    np.testing.assert_allclose(mean, 0, atol=1e-9)
    np.testing.assert_allclose(deviation, 1, rtol=1e-9)
    # 200 values have a bin each: the column is the feature itself, standardised.
    own_mean, own_deviation = moments(matrix, weight)
    np.testing.assert_allclose(columns, (matrix - own_mean) / own_deviation, atol=1e-6)


def test_a_bin_of_many_values_has_their_weighted_mean():
    rng = np.random.default_rng(1)
    matrix, weight = rng.normal(size=(300, 1)), rng.uniform(0.5, 2.0, 300)
    codes = make_codes(matrix, [0], max_bins=8)
    columns = make_design(matrix, codes, [0], weight).matrix(codes)[:, 0]
    means = np.empty(300)
    for code in np.unique(codes[0]):
        rows = codes[0] == code
        means[rows] = weight[rows] @ matrix[rows, 0] / weight[rows].sum()
    mean, deviation = moments(means, weight)
    np.testing.assert_allclose(columns, (means - mean) / deviation, atol=1e-9)


def test_empty_bins_lie_between_their_neighbours():
    matrix = np.array([[0.0], [0.0], [4.0], [4.0]])
    codes = np.array([[0, 0, 4, 4]], np.uint8)
    values = make_design(matrix, codes, [0], np.ones(4)).values[0]
    np.testing.assert_allclose(values[:5], [-1, -0.5, 0, 0.5, 1])


def test_far_values_are_clipped():
    matrix = np.append(np.linspace(-1, 1, 100), 1e6)[:, np.newaxis]
    design, codes, _ = design_of(matrix)
    assert design.matrix(codes).max() == CLIP
    assert np.abs(design.values).max() == CLIP


@pytest.mark.parametrize("largest", [1e300, 1.7e308, 1e-300])
def test_huge_and_tiny_values(largest):
    matrix = largest * np.linspace(-1, 1, 50)[:, np.newaxis]
    design, codes, _ = design_of(matrix)
    expected = np.linspace(-1, 1, 50) / np.linspace(-1, 1, 50).std()
    np.testing.assert_allclose(design.matrix(codes)[:, 0], expected, atol=1e-9)


def test_missing_values_are_the_median_and_are_marked():
    matrix = np.array([[1.0], [2.0], [3.0], [10.0], [20.0], [np.nan], [np.nan], [np.nan]])
    design, codes, _ = design_of(matrix)
    assert design.feature.tolist() == [0, 0]
    value, mark = design.matrix(codes).T
    assert (value[5:] == value[2]).all()
    filled = np.where(np.isnan(matrix[:, 0]), 3.0, matrix[:, 0])
    np.testing.assert_allclose(value, (filled - filled.mean()) / filled.std())
    np.testing.assert_allclose(mark, 2 * (np.isnan(matrix[:, 0]) - 3 / 8))


def test_the_median_is_that_of_the_weights():
    matrix, weight = np.array([[1.0], [2.0], [3.0], [np.nan]]), np.array([1.0, 1.0, 5.0, 1.0])
    design, codes, _ = design_of(matrix, weight=weight)
    value = design.matrix(codes)[:, 0]
    assert value[3] == value[2]


def test_without_missing_values_in_training_a_missing_one_is_the_median():
    design, codes, _ = design_of([[1.0], [2.0], [9.0]])
    assert design.feature.tolist() == [0]
    assert design.values[0, MISSING] == design.matrix(codes)[1, 0]


def test_a_category_has_a_column_for_each_level():
    levels = np.array([0, 0, 0, 0, 1, 1, 2, np.nan])[:, np.newaxis]
    design, codes, weight = design_of(levels, [3])
    assert design.feature.tolist() == [0, 0, 0, 0]
    columns = design.matrix(codes)
    mean, deviation = moments(columns, weight)
    np.testing.assert_allclose(mean, 0, atol=1e-12)
    assert (deviation[:3] ** 2).sum() == pytest.approx(1.0)
    for level in range(3):
        is_level = levels[:, 0] == level
        assert np.ptp(columns[is_level, level]) == 0
        assert np.ptp(columns[~is_level, level]) == 0
        assert columns[is_level, level][0] > columns[~is_level, level][0]
    # The variances of levels are as those of their indicators.
    shares = np.array([4, 2, 1]) / 8
    variance = shares * (1 - shares)
    np.testing.assert_allclose(deviation[:3] ** 2, variance / variance.sum())


def test_levels_without_rows_have_no_column():
    design, codes, _ = design_of(np.array([[0.0], [2.0], [2.0]]), [3])
    assert len(design.feature) == 2
    assert np.isfinite(design.matrix(codes)).all()


@pytest.mark.parametrize(
    ("column", "levels"),
    [([7.0] * 6, 0), ([0.0] * 6, 0), ([1e300] * 6, 0), ([np.nan] * 6, 0), ([1.0] * 6, 2)],
)
def test_constant_columns_are_dropped(column, levels):
    matrix = np.column_stack([column, np.arange(6.0)])
    design, codes, _ = design_of(matrix, [levels, 0])
    assert design.feature.tolist() == [1]
    assert design.matrix(codes).shape == (6, 1)


def test_no_columns_at_all():
    design, codes, _ = design_of(np.ones((5, 2)))
    assert design.matrix(codes).shape == (5, 0)
    assert not design.scores(np.empty(0), 2).any()


def test_scores_add_up_to_the_linear_predictor():
    rng = np.random.default_rng(2)
    matrix = rng.normal(size=(120, 4))
    matrix[:, 1] = rng.integers(0, 5, 120)
    matrix[rng.random((120, 4)) < 0.1] = np.nan
    design, codes, _ = design_of(matrix, [0, 5, 0, 0])
    coefficients = rng.normal(size=len(design.feature))
    scores = design.scores(coefficients, 4)
    assert scores.shape == (4, N_BINS)
    added = sum(scores[feature][codes[feature]] for feature in range(4))
    np.testing.assert_allclose(added, design.matrix(codes) @ coefficients, atol=1e-12)


@pytest.mark.parametrize("n", [80, 400])
def test_components_of_a_wide_matrix_give_the_same_ridge_fit(n, monkeypatch):
    rng = np.random.default_rng(3)
    wide = rng.normal(size=(n, 30)) @ rng.normal(size=(30, 90)) / 30
    time = np.sort(rng.exponential(np.exp(-wide[:, 0])))
    rows = make_rows(time, rng.random(n) < 0.7, np.ones(n), None)
    assert principal_components(wide)[1] is None
    expected = maximise(rows, wide, 0.1 * n, np.zeros(90))
    monkeypatch.setattr(design_module, "MOST_COLUMNS", 40)
    components, directions = principal_components(wide)
    assert components.shape == (n, 40)
    rotated = maximise(rows, components, 0.1 * n, np.zeros(40)) @ directions
    np.testing.assert_allclose(rotated, expected, atol=1e-6)
    assert np.abs(expected).max() > 0.01


def test_components_of_few_rows_are_no_more_than_these():
    wide = np.random.default_rng(4).normal(size=(60, 300))
    components, directions = principal_components(wide)
    assert components.shape == (60, 60)
    np.testing.assert_allclose(components @ directions, wide, atol=1e-8)
