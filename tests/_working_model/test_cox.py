"""Ridge Cox regression: against lifelines, plain loops, and a general optimiser."""

import lifelines
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from cqrf._working_model.cox import (
    LARGEST_SPREAD,
    baseline_hazard,
    evaluate,
    make_rows,
    maximise,
)
from oracles.cox import at_risk, cumulative_hazard, penalised_likelihood


def make_data(n=60, *, tied=True, weighted=True, late=True, seed=0):
    """Time, event, weight and entry in time order, and a matrix of three columns."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(n, 3))
    time = rng.exponential(np.exp(-matrix[:, 0])) + 0.1
    time = np.ceil(4 * time) / 4 if tied else time
    event = rng.random(n) < 0.7
    weight = rng.integers(1, 9, n) / 4 if weighted else np.ones(n)
    entry = np.where(rng.random(n) < 0.5, np.floor(2 * time * rng.random(n)) / 2, -np.inf)
    order = np.lexsort((~event, time))
    entry = entry[order] if late else None
    return (time[order], event[order], weight[order], entry), matrix[order]


CASES = [
    {"tied": tied, "weighted": weighted, "late": late}
    for tied in (False, True)
    for weighted in (False, True)
    for late in (False, True)
]


@st.composite
def tables(draw):
    n = draw(st.integers(1, 12))
    time = np.sort(draw(st.lists(st.integers(1, 6), min_size=n, max_size=n))).astype(float)
    event = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    order = np.lexsort((~event, time))
    gaps = st.sampled_from([1.0, 2.0, 5.0, np.inf])
    entry = time - np.array(draw(st.lists(gaps, min_size=n, max_size=n)))
    values = np.array(draw(st.lists(st.integers(-8, 8), min_size=n, max_size=n)), float)
    return time[order], event[order], draw(st.sampled_from([None, entry[order]])), values


@given(tables())
def test_sums_over_risk_sets_are_those_of_loops(table):
    time, event, entry, values = table
    rows = make_rows(time, event, np.ones(len(time)), entry)
    expected = [sum(values[at_risk(time, entry, t)]) for t in time[event]]
    assert rows.risk_sums(values).tolist() == expected


@given(tables(), st.sampled_from("CF"))
def test_weighted_sums_of_rows_are_those_of_loops(table, layout):
    time, event, entry, values = table
    rows = make_rows(time, event, np.ones(len(time)), entry)
    matrix = np.array([values, values[::-1] + 1.0]).T.copy(order=layout)
    weight = 1.0 + np.arange(len(time)) % 3
    expected = np.zeros((int(event.sum()), 2))
    for k, t in enumerate(time[event]):
        for i in at_risk(time, entry, t):
            expected[k] += weight[i] * matrix[i]
    np.testing.assert_array_equal(rows.weighted_risk_sums(matrix, weight), expected)


@given(tables())
def test_sums_over_the_time_at_risk_are_those_of_loops(table):
    time, event, entry, values = table
    rows = make_rows(time, event, np.ones(len(time)), entry)
    of_events = values[event]
    expected = [
        sum(v for v, t in zip(of_events, time[event]) if i in at_risk(time, entry, t))
        for i in range(len(time))
    ]
    assert rows.sums_at_risk(of_events).tolist() == expected


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_maximum_is_that_of_a_general_optimiser(case):
    data, matrix = make_data(**case)
    penalty = 0.1 * data[2].sum()

    def loss(coefficients):
        return -penalised_likelihood(data, matrix, penalty, coefficients)

    expected = minimize(loss, np.zeros(3), method="Nelder-Mead", tol=1e-12).x
    found = maximise(make_rows(*data), matrix, penalty, np.zeros(3))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert np.abs(found).max() > 0.1


@pytest.mark.parametrize("case", CASES, ids=str)
def test_likelihood_and_gradient(case):
    data, matrix = make_data(**case, seed=1)
    rows, penalty = make_rows(*data), 0.03 * data[2].sum()
    other = np.array([0.4, -0.2, 0.1])
    assert evaluate(rows, matrix @ other).log_likelihood == pytest.approx(
        penalised_likelihood(data, matrix, 0.0, other), rel=1e-12
    )
    found = maximise(rows, matrix, penalty, np.zeros(3))
    scale = abs(penalised_likelihood(data, matrix, penalty, found))
    for step in 1e-4 * np.eye(3):
        up, down = (
            penalised_likelihood(data, matrix, penalty, found + sign * step) for sign in (1, -1)
        )
        assert (up - down) / 2e-4 == pytest.approx(0, abs=1e-4 * scale)


def test_a_negative_penalty_is_refused():
    data, matrix = make_data()
    with pytest.raises(np.linalg.LinAlgError, match="found penalty -900"):
        maximise(make_rows(*data), matrix, -900.0, np.zeros(3))


@pytest.mark.parametrize("start", [np.zeros(3), np.array([2.0, -2.0, 1.0])])
def test_the_start_does_not_matter(start):
    data, matrix = make_data(200)
    penalty = 0.01 * data[2].sum()
    expected = maximise(make_rows(*data), matrix, penalty, np.array([0.5, 0.5, 0.5]))
    found = maximise(make_rows(*data), matrix, penalty, start)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("late", [False, True])
def test_lifelines_has_the_same_coefficients_and_hazard(late):
    (time, event, weight, entry), matrix = make_data(150, tied=False, weighted=False, late=late)
    # lifelines maximises the mean log likelihood less penalizer |b|^2 / 2, on columns that it
    # divides by their standard deviations.
    matrix = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0, ddof=1)
    frame = pd.DataFrame(matrix, columns=["a", "b", "c"]).assign(time=time, event=event)
    if late:
        frame["entry"] = np.maximum(entry, 0.0)
    peer = lifelines.CoxPHFitter(penalizer=0.1, l1_ratio=0.0).fit(
        frame, "time", "event", entry_col="entry" if late else None
    )
    rows = make_rows(time, event, weight, entry)
    found = maximise(rows, matrix, 0.1 * len(time), np.zeros(3))
    np.testing.assert_allclose(found, peer.params_, rtol=1e-4)
    if late:  # the baseline hazard of lifelines takes all rows to be at risk from the start
        return
    hazard = np.cumsum(baseline_hazard(rows, matrix @ peer.params_.to_numpy()))
    peers = peer.baseline_cumulative_hazard_["baseline cumulative hazard"]
    np.testing.assert_allclose(hazard, peers[time[event]], rtol=1e-9)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_baseline_hazard_is_that_of_loops(case):
    data, matrix = make_data(**case, seed=2)
    time, event, *_ = data
    eta = matrix @ [1.5, 0.0, -1.0] + 30.0  # far from 0: exp must not lose it
    found = baseline_hazard(make_rows(*data), eta)
    for t in np.unique(time[event]):
        expected = cumulative_hazard(data, eta, t)
        assert found[time[event] <= t].sum() == pytest.approx(expected, rel=1e-9)


def test_a_column_that_decides_the_order_of_events_has_a_finite_coefficient():
    time = np.arange(1.0, 41.0)
    column = -np.linspace(-1, 1, 40)[:, np.newaxis]
    rows = make_rows(time, np.full(40, True), np.ones(40), None)
    found = maximise(rows, column, 1e-9, np.zeros(1))
    assert found[0] > 5
    assert np.ptp(column @ found) <= LARGEST_SPREAD


def test_no_rows_have_likelihood_1():
    nothing = make_rows(np.empty(0), np.empty(0, bool), np.empty(0), np.empty(0))
    assert evaluate(nothing, np.empty(0)).log_likelihood == 0.0
