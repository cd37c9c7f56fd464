"""Curves and quantiles of interval-censored rows, from weights."""

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal

from cqrf import UnidentifiedQuantileWarning, solve_quantiles
from cqrf._forest.weights import Weights
from cqrf._survival.curves import as_curves
from cqrf._survival.innermost import number_ends
from cqrf._survival.interval_curves import interval_steps
from oracles.intervals import em, innermost
from support.interval_rows import as_target, interval_rows, solve, visits

INF = np.inf


def test_steps_at_either_end():
    steps = solve([(1, 2), (4, 5), (4, 5), (6, INF)], [1, 1, 1, 1])
    right, left = (as_curves(each, "right")[0] for each in (steps.at_right(), steps.at_left()))
    at = np.array([0.5, 1, 1.5, 2, 4, 4.5, 5, 6])
    assert_allclose(right(at), [1, 1, 1, 0.75, 0.75, 0.75, 0.25, 0.25], atol=1e-9)
    assert_allclose(left(at), [1, 0.75, 0.75, 0.75, 0.25, 0.25, 0.25, 0.25], atol=1e-9)
    assert right.end == left.end == 6
    assert np.isnan(right(7))


@given(interval_rows(most=12))
def test_the_left_curve_is_nowhere_above_the_right_one(drawn):
    steps = solve(*drawn)
    right, left = (as_curves(each, "right") for each in (steps.at_right(), steps.at_left()))
    times = np.linspace(-1, 9, 41)
    assert (left(times, "extend") <= right(times, "extend")).all()


def test_a_query_does_not_depend_on_those_before_it():
    lower, upper, _ = visits(120, 5, seed=1)
    target, _ = as_target(list(zip(lower, upper, strict=True)))
    rng = np.random.default_rng(0)
    dense = rng.gamma(1.0, size=(6, 120)) * (rng.random((6, 120)) < 0.5)
    ends = number_ends(target)

    def solve_some(queries):
        ranks = [np.flatnonzero(dense[q] > 0).astype(np.int32) for q in queries]
        offsets = np.cumsum([0, *map(len, ranks)])
        values = np.concatenate([dense[q][r] for q, r in zip(queries, ranks, strict=True)])
        return interval_steps(Weights(offsets, np.concatenate(ranks), values), ends)

    together = solve_some(range(6))
    for q in range(6):
        alone, own = solve_some([q]), slice(together.offsets[q], together.offsets[q + 1])
        assert_array_equal(together.values[own], alone.values)
        assert_array_equal(together.left[own], alone.left)


def test_a_query_without_weights_is_known_nowhere():
    target, _ = as_target([(1, 2), (2, 3)])
    empty = Weights(np.array([0, 0]), np.empty(0, np.int32), np.empty(0))
    steps = interval_steps(empty, number_ends(target))
    assert steps.offsets.tolist() == [0, 0]
    assert steps.end.tolist() == [-INF]


@given(interval_rows(most=8))
def test_quantiles_are_right_ends_of_the_likeliest_curve(drawn):
    rows, weights = drawn
    lower, upper = np.array(rows, dtype=float).T
    if not np.isfinite(upper).any():
        return
    intervals, masses = em(rows, weights, 20_000)
    found = solve_quantiles(
        [weights], quantiles=[0.2, 0.55, 0.8], lower=lower, upper=upper, unidentified="nan"
    )[0]
    survival = 1 - np.cumsum(masses)
    for level, value in zip([0.2, 0.55, 0.8], found, strict=True):
        if np.abs(survival - (1 - level)).min() < 1e-3:
            continue  # plain EM does not tell on which side
        right = intervals[int(np.argmax(survival <= 1 - level))][1]
        assert value == right or (np.isnan(value) and np.isinf(right))


def test_solve_quantiles_of_exact_and_censored_rows_is_the_same_as_before():
    time, event = np.array([1.0, 2, 3, 4, 5]), np.array([1, 0, 1, 1, 0], bool)
    weights = np.array([[1, 2, 1, 1, 1.0], [0, 1, 3, 1, 0]])
    known = solve_quantiles(weights, time, event, [0.2, 0.6], unidentified="clip")
    upper = np.where(event, time, INF)
    found = solve_quantiles(
        weights, quantiles=[0.2, 0.6], lower=time, upper=upper, unidentified="clip"
    )
    assert_array_equal(found, known)


def test_solve_quantiles_with_sample_weights_and_beyond_the_end():
    lower, upper = [0.0, 1, 2], [1.0, 2, INF]
    found = solve_quantiles([[1, 1, 1]], quantiles=0.5, lower=lower, upper=upper)
    assert found.tolist() == [2.0]
    heavy = {"lower": lower, "upper": upper, "sample_weight": [4, 1, 1]}
    assert solve_quantiles([[1, 1, 1]], quantiles=0.5, **heavy).tolist() == [1.0]
    with pytest.warns(UnidentifiedQuantileWarning):
        assert np.isinf(solve_quantiles([[1, 1, 1]], quantiles=0.9, lower=lower, upper=upper))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lower": [1.0, 2]}, "give both lower and upper"),
        ({}, "give time and event, or lower and upper"),
        ({"lower": [1.0, 2], "upper": [2.0, 3], "time": [1, 2]}, "instead of time, event"),
        ({"lower": [1.0, 2], "upper": [2.0, 3], "solver": "argmin"}, "a table of intervals reads"),
        ({"lower": [1.0, 2], "upper": [2.0, 3], "censoring": "left"}, "y has intervals"),
        ({"lower": [1.0, 4], "upper": [2.0, 3]}, "lower is above upper"),
    ],
)
def test_arguments_of_solve_quantiles_that_do_not_go_together(arguments, message):
    with pytest.raises(ValueError, match=message):
        solve_quantiles([[1, 1]], quantiles=0.5, **arguments)


def test_innermost_intervals_of_the_steps():
    rows = [(1.0, 4.0), (2.0, 3.0), (3.5, 6.0)]
    steps = solve(rows, [1, 1, 1])
    assert set(zip(steps.left.tolist(), steps.right.tolist(), strict=True)) <= set(innermost(rows))


def test_solve_quantiles_says_which_settings_go_with_intervals():
    rows = {"lower": [0, 1, 2], "upper": [1, 2, 3], "quantiles": 0.5}
    for settings in ({"solver": "argmin"}, {"censoring_survival": "km"}):
        with pytest.raises(ValueError, match=r'a table of intervals reads .* and solver "root"\.$'):
            solve_quantiles([[1, 1, 1]], **rows, **settings)
