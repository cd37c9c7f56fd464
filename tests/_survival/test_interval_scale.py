"""The scale of cells: places of ends, and a single time for each row."""

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose

from cqrf._survival.interval_scale import MOST_CELLS, impute_times, scale_intervals
from cqrf.metrics.ipcw import marginal_weights
from oracles.intervals import em, violation
from support.interval_rows import as_target, interval_rows, visits

INF = np.inf


def scale_of(rows):
    target, order = as_target(rows)
    return scale_intervals(target, marginal_weights(None, len(rows))), order


def test_cells_of_disjoint_intervals():
    scale, order = scale_of([(0, 1), (1, 2), (1, 2), (2, 2), (2, INF)])
    # Masses: 1/5 in (0, 1], 3/5 at 2, as (1, 2] includes it; 1/5 beyond.
    assert_allclose(scale.survival, [1, 0.8, 0.2, 0], atol=1e-9)
    assert scale.n_finite == 2
    places = dict(zip(order.tolist(), scale.bounds.tolist(), strict=True))
    assert places[0] == pytest.approx([0, 1])
    assert places[1] == pytest.approx([1, 2])
    assert places[3] == pytest.approx([1, 2])
    assert places[4] == pytest.approx([2, 3])


@given(interval_rows())
def test_every_row_covers_its_probability(drawn):
    rows, _ = drawn
    if not any(np.isfinite(right) for _, right in rows):
        return
    scale, order = scale_of(rows)
    assert scale.survival[0] == 1
    assert scale.survival[-1] == 0
    assert (np.diff(scale.survival) < 0).all()
    assert scale.n_finite in (len(scale.survival) - 1, len(scale.survival) - 2)
    at = np.interp(scale.bounds, np.arange(len(scale.survival)), scale.survival)
    intervals, masses = em(rows, np.ones(len(rows)), 5000)
    if violation(rows, np.ones(len(rows)), intervals, masses) > 1e-7:
        return  # EM has not arrived
    from oracles.intervals import incidence

    expected = incidence(rows, intervals) @ masses
    assert_allclose((at[:, 0] - at[:, 1]), expected[order], atol=2e-3)


def test_many_exact_rows_share_cells():
    time = np.arange(1.0, 501.0)
    rows = [(t, t) for t in time] + [(10.5, 20.5)]
    scale, order = scale_of(rows)
    assert len(scale.survival) - 1 <= MOST_CELLS
    width = np.diff(scale.bounds, axis=1)[:, 0]
    assert (width > 0).all()
    assert width[order == 500] == pytest.approx(10 * np.median(width[order != 500]), rel=0.2)


def test_imputed_times_lie_in_their_intervals():
    lower, upper, _ = visits(300, 6, seed=0)
    target, _ = as_target(list(zip(lower, upper, strict=True)))
    imputed = impute_times(target, marginal_weights(None, 300))
    is_open = target.event & (target.lower < target.time)
    assert (imputed[is_open] > target.lower[is_open]).all()
    assert (imputed <= target.time).all()
    assert (imputed[~is_open] == target.time[~is_open]).all()


def test_imputed_time_is_the_mean_of_the_curve_in_the_interval():
    rows = [(1, 1), (1, 1), (1, 1), (3, 3), (0, 4)]
    target, order = as_target(rows)
    imputed = impute_times(target, marginal_weights(None, 5))
    assert imputed[order == 4] == pytest.approx((3 * 1 + 1 * 3) / 4)
