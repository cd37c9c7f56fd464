"""Responses of censored rows against their definition, by plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._effects.response import (
    FEWEST_TIMES,
    GRID_NUMBERS,
    LEAST_CENSORING,
    LEAST_SURVIVAL,
    MOST_TIMES,
    Grid,
    make_grid,
    make_response,
)
from oracles import effects as oracle


def make_curves(rng, n, n_times, lowest=0.0):
    """Decreasing curves of some rows, from at most 1 down to ``lowest`` at least."""
    return np.sort(rng.uniform(lowest, 1.0, (n, n_times)), axis=1)[:, ::-1]


def make_case(seed, n=12, n_times=7, lowest=0.0):
    """A grid, rows with ties to its times and to each other, and their curves."""
    rng = np.random.default_rng(seed)
    grid = Grid(0.0, np.sort(rng.permutation(20)[:n_times] + 1.0) / 2)
    time = np.where(rng.random(n) < 0.5, rng.choice(grid.times, n), rng.integers(1, 25, n) / 2)
    event = rng.random(n) < 0.6
    survival, censoring = make_curves(rng, n, n_times, lowest), make_curves(rng, n, n_times, lowest)
    own = rng.uniform(lowest, 1.0, n)
    rows = [
        oracle.RowResponse(time[i], event[i], grid.times, survival[i], censoring[i], own[i])
        for i in range(n)
    ]
    return make_response(grid, time, event, survival, censoring, own), rows


@given(st.integers(0, 10**6))
def test_responses_equal_their_definition(seed):
    response, rows = make_case(seed)
    times = np.concatenate([[0.0, 0.25], response.grid.times, response.time, [99.0]])
    expected = [[row.at(t) for t in times] for row in rows]
    np.testing.assert_allclose(response.at(times), expected, rtol=1e-11, atol=1e-11)


@given(st.integers(0, 10**6), st.integers(1, 30))
def test_the_restricted_mean_is_the_integral_of_the_response(seed, horizon):
    response, rows = make_case(seed)
    expected = [row.mean(0.0, horizon / 2) for row in rows]
    np.testing.assert_allclose(response.means(horizon / 2), expected, rtol=1e-10, atol=1e-10)


def test_time_may_start_below_zero():
    response, rows = make_case(3)
    earlier = response._replace(
        grid=Grid(-4.0, response.grid.times - 4.0), time=response.time - 4.0
    )
    for row in rows:
        row.grid, row.time = [t - 4.0 for t in row.grid], row.time - 4.0
    for horizon in (-2.0, 0.0, 3.5):
        expected = [row.mean(-4.0, horizon) for row in rows]
        np.testing.assert_allclose(earlier.means(horizon), expected, rtol=1e-10, atol=1e-10)


@given(st.integers(0, 10**6))
def test_without_censoring_a_response_says_who_survives(seed):
    # Whatever the survival curves are.
    rng = np.random.default_rng(seed)
    time = rng.integers(1, 12, 15) / 4
    grid = make_grid(time, np.full(15, True))
    survival, none = make_curves(rng, 15, len(grid.times)), np.ones((15, len(grid.times)))
    response = make_response(grid, time, np.full(15, True), survival, none, np.ones(15))
    at = np.arange(0, 14) / 4
    np.testing.assert_allclose(response.at(at), time[:, np.newaxis] > at, atol=1e-12)
    for horizon in (0.3, 1.0, 5.0):
        np.testing.assert_allclose(response.means(horizon), np.minimum(time, horizon), rtol=1e-12)


def test_the_mean_response_is_the_survival_if_the_curves_are_right():
    # T and C take whole values; averages over all pairs are exact.
    of_time, of_censoring = np.array([0.1, 0.2, 0.3, 0.25, 0.15]), np.array([0.2, 0.1, 0.3, 0.4])
    values = np.arange(1.0, 6.0)
    grid = Grid(0.0, values)
    survival = 1 - np.cumsum(of_time)
    survival[-1] = 0.0
    # G just before u: C >= u. Events leave first, so that an event needs C >= T.
    before = 1 - np.concatenate([[0.0], np.cumsum(of_censoring)])
    mean = np.zeros(4)
    for t, p in zip(values, of_time, strict=True):
        for c, q in zip(values[:4], of_censoring, strict=True):
            y = min(t, c)
            response = make_response(
                grid,
                np.array([y]),
                np.array([t <= c]),
                survival[np.newaxis],
                before[np.newaxis],
                before[[int(y) - 1]],
            )
            mean += p * q * response.at(values[:4])[0]
    # The follow-up ends at 4: up to then.
    np.testing.assert_allclose(mean[:3], survival[:3], atol=1e-12)


def test_what_is_divided_by_is_kept_away_from_zero():
    grid = Grid(0.0, np.array([1.0, 2.0]))
    survival, censoring = np.array([[0.5, 0.0]]), np.array([[1.0, 0.0]])
    response = make_response(
        grid, np.array([2.0]), np.array([True]), survival, censoring, np.zeros(1)
    )
    assert response.event_term[0] == pytest.approx(1 / (LEAST_SURVIVAL * LEAST_CENSORING))
    steps = [1 / 0.5 - 1, (1 / LEAST_SURVIVAL - 1 / 0.5) / LEAST_CENSORING]
    assert response.compensator[0] == pytest.approx([0.0, steps[0], sum(steps)])


def test_the_grid_holds_the_event_times_or_evenly_spaced_ones():
    time, event = np.array([3.0, 1.0, 1.0, 2.0, 5.0]), np.array([1, 1, 1, 0, 1], bool)
    grid = make_grid(time, event)
    assert grid.start == 0.0
    assert grid.times.tolist() == [1.0, 3.0, 5.0]
    assert make_grid(time - 2.0, event).start == -1.0
    many = np.arange(1000.0)
    times = make_grid(many, np.full(1000, True)).times
    assert len(times) == MOST_TIMES
    assert (times[0], times[-1]) == (0.0, 999.0)
    assert set(np.diff(times)) == {2.0, 3.0}
    # A large table has fewer times.
    n = GRID_NUMBERS // 60
    assert len(make_grid(np.arange(float(n)), np.full(n, True)).times) == 60
    n = 2 * GRID_NUMBERS // FEWEST_TIMES
    assert len(make_grid(np.arange(float(n)), np.full(n, True)).times) == FEWEST_TIMES


def test_curves_hold_from_each_time_on():
    grid = Grid(0.0, np.array([1.0, 4.0]))
    assert grid.columns(np.array([0.5, 1.0, 3.9, 4.0, 9.0])).tolist() == [0, 1, 1, 2, 2]
    assert grid.widths(6.0).tolist() == [1.0, 3.0, 2.0]
    assert grid.widths(2.0).tolist() == [1.0, 1.0, 0.0]
    curve = np.array([[1.0, 0.5, 0.25]])
    for horizon in (0.5, 1.0, 2.5, 7.0):
        expected = oracle.step_mean([1.0, 4.0], [0.5, 0.25], horizon)
        assert grid.means(curve, horizon) == pytest.approx(expected)
