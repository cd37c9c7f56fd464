"""Skill over the Kaplan-Meier curve: weights of the training rows count as copies of them."""

import numpy as np
import pytest

from cqrf import censored
from cqrf.metrics import quantile_skill


def test_weights_of_training_rows_are_copies_of_them():
    rng = np.random.default_rng(0)
    time, event = rng.permutation(40) + 1.0, rng.random(40) < 0.7
    copies = rng.integers(1, 5, 40)
    many = np.repeat(np.arange(40), copies)
    y, test = censored(time, event), censored(time[:25] + 0.5, event[:25])
    predicted = rng.uniform(5, 30, (25, 2))
    found = quantile_skill(y, test, predicted, [0.25, 0.5], train_weight=copies)
    expected = quantile_skill(censored(time[many], event[many]), test, predicted, [0.25, 0.5])
    assert found == pytest.approx(expected, abs=1e-12)
    assert found != pytest.approx(quantile_skill(y, test, predicted, [0.25, 0.5]), abs=1e-3)


def test_where_the_baseline_is_perfect():
    y = censored([3.0, 3.0], [True, True])
    assert quantile_skill(y, y, [3.0, 3.0], 0.5) == 0.0
    assert quantile_skill(y, y, [3.0, 3.5], 0.5) == -np.inf
