"""The residual scale: increasing, inverted by find_time, and unknown beyond the last event."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._runtime.compiling import kernel
from cqrf._working_model.transform import LARGEST, WorkingModel, find_time

KNOTS, HAZARDS = np.array([1.0, 2.0, 4.0, 5.0]), np.array([0.0, 0.5, 0.75, 2.0])


@kernel
def write_times(hazard, knots, hazards, first, times):
    """Write the time of each hazard."""
    for i in range(hazard.shape[0]):
        times[i], _ = find_time(hazard[i], knots, hazards, first)


def times_of(hazard, knots=KNOTS, hazards=HAZARDS, first=0):
    times = np.empty(len(hazard))
    write_times(np.asarray(hazard, float), knots, hazards, first, times)
    return times


def make_working(scores=None, knots=KNOTS, hazards=HAZARDS):
    scores = np.zeros((2, 256)) if scores is None else scores
    return WorkingModel(scores, knots, hazards, np.empty(0))


@st.composite
def hazard_curves(draw):
    n = draw(st.integers(1, 8))
    gaps = st.floats(1e-3, 1e3)
    knots = np.cumsum(draw(st.lists(gaps, min_size=n, max_size=n)))
    hazards = np.cumsum(draw(st.lists(gaps, min_size=n, max_size=n)))
    return knots, hazards - draw(st.sampled_from([0.0, 1.0])) * hazards[0]


@given(hazard_curves(), st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_find_time_inverts_the_hazard(curve, shares):
    knots, hazards = curve
    time = knots[0] + np.array(shares) * (knots[-1] - knots[0])
    found = times_of(np.interp(time, knots, hazards), knots, hazards)
    np.testing.assert_allclose(found, time, rtol=1e-9, atol=1e-9 * knots[-1])
    np.testing.assert_array_equal(times_of(hazards, knots, hazards), knots)


def test_times_of_hazards_by_hand():
    found = times_of([-1.0, 0.0, 0.25, 0.5, 0.625, 2.0, 2.0001])
    assert found.tolist() == [1.0, 1.0, 1.5, 2.0, 3.0, 5.0, np.inf]
    assert times_of([0.625], first=2).tolist() == [3.0]


def test_where_the_hazard_is_flat_its_first_time_is_found():
    knots, hazards = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 1.0, 1.0, 2.0])
    assert times_of([1.0, 1.5], knots, hazards).tolist() == [2.0, 3.5]


@given(hazard_curves(), st.floats(-5, 5))
def test_residuals_increase_in_time_and_in_the_predictor(curve, predictor):
    knots, hazards = curve
    working = make_working(None, knots, hazards)
    time = np.linspace(knots[0] - 1, knots[-1] + 1, 50)
    residual = working.residuals(time, np.full(50, predictor))
    assert (np.diff(residual) >= 0).all()
    inside = (time > knots[0]) & (time <= knots[-1])
    assert (np.diff(residual[inside]) > 0).all()
    more = working.residuals(time, np.full(50, predictor + 1))
    np.testing.assert_allclose(more, residual * np.e)
    assert (residual[time > knots[-1]] == residual.max()).all()


def test_residuals_by_hand():
    working = make_working()
    found = working.residuals(np.array([0.0, 1.5, 4.5, 9.0]), np.log([2.0, 2.0, 2.0, 3.0]))
    np.testing.assert_allclose(found, [0.0, 0.5, 2.75, 6.0])


def test_places_order_times_outside_of_the_knots():
    places = make_working().hazard_places(np.array([0.5, 1.0, 1.5, 5.0, 6.0]))
    assert places[:4].tolist() == [-np.inf, 0.0, 0.25, 2.0]
    assert places[4] > 2.0
    assert places[4] == pytest.approx(2.0)


def test_the_linear_predictor_is_a_sum_of_scores():
    scores = np.random.default_rng(0).normal(size=(3, 256))
    scores[1] = 0.0
    working = make_working(scores)
    assert working.features.tolist() == [0, 2]
    codes = np.array([[0, 9, 255], [7, 0, 1]], np.uint8)
    expected = [scores[0, 0] + scores[2, 255], scores[0, 7] + scores[2, 1]]
    np.testing.assert_allclose(working.predict(codes), expected)


def test_linear_predictors_are_bounded():
    scores = np.array([[-900.0, 900.0] + [0.0] * 254])
    predicted = make_working(scores).predict(np.array([[0], [1], [2]], np.uint8))
    assert predicted.tolist() == [-LARGEST, LARGEST, 0.0]
    assert np.isfinite(make_working().residuals(np.full(3, 4.0), predicted)).all()
