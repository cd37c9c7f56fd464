"""Best linear projection: least squares with HC3 errors, by loops and by R's grf."""

import numpy as np
import pytest
from scipy.stats import norm

from cqrf._effects.projection import project
from oracles import effects as oracle
from support.treated import read_golden

NAMES = [f"x{j}" for j in range(1, 6)]


def test_the_projection_equals_that_of_grf():
    columns, averages = read_golden("scores_type1.csv.gz"), read_golden("averages.csv")
    row = ((averages["dgp"] == "type1") & (averages["target"] == "rmst")).argmax()
    scores = columns["dr_rmst"]
    n = len(scores)
    matrix = np.column_stack([columns[name] for name in NAMES])
    found = project(scores, matrix, NAMES, np.ones(n), np.arange(n, dtype=np.int32))
    assert found.names == ["intercept", *NAMES]
    expected = [averages[f"blp_{name}"][row] for name in ("b0", *NAMES)]
    errors = [averages[f"blp_se_{name}"][row] for name in ("b0", *NAMES)]
    # The file has seven digits of each score: what their rounding moves, at four deviations.
    half_digit = 0.5 * 10.0 ** (np.floor(np.log10(np.abs(scores))) - 6)
    design = np.column_stack([np.ones(n), matrix])
    moves = np.linalg.pinv(design) * half_digit
    rounding = 4 * np.sqrt((moves**2).sum(axis=1) / 3)
    assert rounding.max() < 5e-8
    assert (np.abs(found.coefficient - expected) < rounding).all()
    assert (np.abs(found.standard_error - errors) < rounding).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("clustered", [False, True])
def test_the_projection_equals_plain_loops(weighted, clustered):
    rng = np.random.default_rng([weighted, clustered])
    n = 60
    matrix, scores = rng.normal(size=(n, 3)), rng.normal(size=n)
    weight = rng.integers(1, 9, n) / 4 if weighted else np.ones(n)
    unit = (np.arange(n) // 4 if clustered else np.arange(n)).astype(np.int32)
    found = project(scores, matrix, list("abc"), weight, unit)
    coefficient, error = oracle.hc3(scores, matrix, weight, unit)
    np.testing.assert_allclose(found.coefficient, coefficient, rtol=1e-10)
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-10)


def test_without_covariates_the_intercept_is_the_average():
    scores = np.random.default_rng(0).normal(2.0, 1.0, 40)
    found = project(scores, np.empty((40, 0)), [], np.ones(40), np.arange(40, dtype=np.int32))
    assert found.coefficient == pytest.approx([scores.mean()])
    # Each residual is divided by 1 - 1/n.
    assert found.standard_error == pytest.approx([scores.std() / np.sqrt(40) * 40 / 39])


def test_p_values_are_those_of_two_sided_tests():
    rng = np.random.default_rng(1)
    found = project(
        rng.normal(size=30), rng.normal(size=(30, 2)), ["a", "b"], np.ones(30), np.arange(30)
    )
    expected = [2 * norm.sf(abs(b / e)) for b, e in zip(found.coefficient, found.standard_error)]
    assert found.p_value == pytest.approx(expected)
    frame = found.to_frame()
    assert frame.index.tolist() == ["intercept", "a", "b"]
    assert frame["p_value"].tolist() == found.p_value.tolist()


@pytest.mark.parametrize("kind", ["constant", "sum"])
def test_a_column_that_is_not_determined_is_an_error(kind):
    rng = np.random.default_rng(2)
    matrix = rng.normal(size=(30, 3))
    matrix[:, 2] = 1.0 if kind == "constant" else matrix[:, 0] + matrix[:, 1]
    with pytest.raises(ValueError, match=r"A: a column is constant or a linear combination"):
        project(rng.normal(size=30), matrix, list("abc"), np.ones(30), np.arange(30))
