"""Times at which the Brier score is taken unless others are given."""

from types import SimpleNamespace

import numpy as np
import pytest

from cqrf.metrics.survival import default_times


@pytest.mark.parametrize("horizon", [0.05, 0.5, np.inf])
def test_they_lie_before_the_horizon_if_the_range_begins_behind_it(horizon):
    rows = SimpleNamespace(
        time=np.arange(1, 101) / 10 - 0.09, sample_weight=np.full(100, 0.01), horizon=horizon
    )
    times = default_times(rows)
    assert times[0] < horizon
    if horizon < 1:
        assert times[-1] <= horizon


@pytest.mark.parametrize("n_late", [85, 95, 0])
def test_a_range_that_is_a_single_time_gives_way_to_the_distinct_times(n_late):
    """As where most rows end with the study: by NumPy's percentiles of 1 to 11."""
    time = np.concatenate([np.arange(1.0, 12.0), np.full(n_late, 11.0)])
    rows = SimpleNamespace(time=time, sample_weight=np.ones(len(time)), horizon=np.inf)
    first, last = np.quantile(time, [0.1, 0.9])
    if n_late == 95:
        assert first == last == 11
        first, last = 2.0, 10.0
    found = default_times(rows)
    assert found == pytest.approx(np.linspace(first, last, 50), rel=1e-12)


def test_a_range_that_begins_at_the_horizon_gives_way_to_times_up_to_it():
    """Scores are known before the horizon, not at it."""
    time = np.concatenate([np.arange(1.0, 6.0), np.full(45, 20.0), np.full(50, 30.0)])
    rows = SimpleNamespace(time=time, sample_weight=np.ones(100), horizon=20.0)
    assert default_times(rows)[[0, -1]].tolist() == [1.5, 12.5]  # of 1 to 5, and 20
    rows.horizon = np.nextafter(20.0, 21.0)
    assert default_times(rows)[[0, -1]].tolist() == [20.0, 30.0]


def test_rows_of_weight_0_have_no_influence():
    time = np.arange(1.0, 102.0)
    rows = SimpleNamespace(time=time, sample_weight=np.where(time <= 11, 1.0, 0.0), horizon=np.inf)
    assert default_times(rows)[[0, -1]].tolist() == pytest.approx([2.0, 10.0])
