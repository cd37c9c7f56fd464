"""The maximum likelihood estimate: optimality conditions, golden numbers, EM, Kaplan-Meier."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from numpy.testing import assert_allclose

from oracles.intervals import em, innermost, log_likelihood, violation
from oracles.survival import kaplan_meier
from support.interval_rows import interval_rows, masses_of, solve

FOLDER = Path(__file__).resolve().parents[1] / "data" / "interval"


def read_rows():
    """The rows of the golden numbers."""
    table = pd.read_csv(FOLDER / "rows.csv")
    return list(zip(table["left"], table["right"], strict=True)), table["weight"].to_numpy()


@pytest.mark.parametrize("kind", ["plain", "weighted"])
def test_golden_numbers(kind):
    rows, weight = read_rows()
    golden = pd.read_csv(FOLDER / f"npmle_{kind}.csv")
    intervals = list(zip(golden["left"], golden["right"], strict=True))
    steps = solve(rows, weight if kind == "weighted" else np.ones(len(rows)))
    assert_allclose(masses_of(steps, intervals), golden["mass"], atol=1e-9)


@given(interval_rows())
def test_optimality_conditions(drawn):
    rows, weights = drawn
    steps = solve(rows, weights)
    intervals = innermost(rows)
    masses = masses_of(steps, intervals)
    assert (np.diff(np.append(1.0, steps.values)) < 0).all()
    assert masses.sum() == pytest.approx(1, abs=1e-12)
    assert violation(rows, weights, intervals, masses) < 1e-8
    assert steps.violation[0] < 1e-8


@given(interval_rows(most=8))
def test_no_less_likely_than_many_em_steps(drawn):
    rows, weights = drawn
    intervals, by_em = em(rows, weights, 20_000)
    masses = masses_of(solve(rows, weights), intervals)
    ours = log_likelihood(rows, weights, intervals, masses)
    assert ours >= log_likelihood(rows, weights, intervals, by_em) - 1e-10


def test_equals_em_where_masses_are_unique():
    rng = np.random.default_rng(3)
    left = rng.uniform(0, 3, 40)
    rows = list(zip(left, left + rng.uniform(0.5, 2, 40), strict=True))
    weights = rng.uniform(0.5, 2, 40)
    intervals, by_em = em(rows, weights, 200_000)
    assert violation(rows, weights, intervals, by_em) < 1e-5
    assert_allclose(masses_of(solve(rows, weights), intervals), by_em, atol=1e-4)


@given(interval_rows())
def test_exact_and_right_censored_rows_give_kaplan_meier(drawn):
    rows, weights = drawn
    rows = [(a, b) if b == np.inf or a == b else (b, b) for a, b in rows]
    steps = solve(rows, weights)
    time = [a for a, _ in rows]
    event = [a == b for a, b in rows]
    curve = kaplan_meier(time, event, weights)
    ours = dict(zip(steps.right.tolist(), steps.values.tolist(), strict=True))
    value = 1.0
    for now, expected in curve.items():
        value = ours.get(now, value)
        assert value == pytest.approx(float(expected), abs=1e-9)
    assert steps.end[0] == (np.inf if value < 1e-12 else max(time))


@pytest.mark.parametrize("share_exact", [0.0, 0.1, 0.5])
def test_many_rows(share_exact):
    rng = np.random.default_rng(0)
    n = 1500
    time = 2 * rng.weibull(1.5, n)
    visits = np.sort(rng.uniform(0, 5, (n, 10)), axis=1)
    visits = np.column_stack([np.zeros(n), visits, np.full(n, np.inf)])
    behind = (visits < time[:, np.newaxis]).sum(axis=1)
    lower, upper = visits[np.arange(n), behind - 1], visits[np.arange(n), behind]
    exact = rng.random(n) < share_exact
    lower[exact] = upper[exact] = time[exact]
    weight = rng.gamma(2, size=n) + 0.1
    steps = solve(list(zip(lower, upper, strict=True)), weight)
    assert steps.violation[0] < 1e-9
    rows = list(zip(lower, upper, strict=True))
    intervals = innermost(rows)
    assert violation(rows, weight, intervals, masses_of(steps, intervals)) < 1e-8
