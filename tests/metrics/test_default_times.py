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
