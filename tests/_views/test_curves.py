"""Curves that pages draw."""

import numpy as np

from cqrf import StepCurve, StepCurves
from cqrf._views.curves import take_curves, thin_curve, time_range


def test_a_thinned_curve_stays_close():
    times = np.arange(1.0, 1001.0)
    curve = StepCurve(times, np.exp(-times / 300))
    kept = thin_curve(curve, 60)
    assert len(kept.times) <= 60
    assert kept.times[0] == 1
    assert kept.times[-1] == 1000
    assert np.abs(kept(times) - curve(times)).max() < 1 / 50
    assert thin_curve(curve, 1000) is curve


def test_axes_of_time_have_some_length():
    assert time_range(np.array([3.0, 9.0])) == (0.0, 9.0)
    assert time_range(np.array([1e9, 1e9 + 5])) == (1e9, 1e9 + 5)
    assert time_range(np.array([4.0])) == (2.0, 6.0)


def test_curves_are_taken_in_the_order_of_the_rows():
    curves = StepCurves(
        np.array([0, 2, 2, 5]), np.arange(5.0), np.linspace(0.9, 0.1, 5), np.array([1.0, 0.8, 1.0])
    )
    taken = take_curves(curves, np.array([2, 0, 1, 2]))
    for curve, row in zip(taken, (2, 0, 1, 2), strict=True):
        np.testing.assert_array_equal(curve.times, curves[row].times)
        np.testing.assert_array_equal(curve.values, curves[row].values)
        assert curve.initial == curves[row].initial
