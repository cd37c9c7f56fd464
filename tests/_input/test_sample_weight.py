"""Sample weights: checked, and relative to an exact mean, whatever the order and the parts."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._input.sample_weight import (
    add_exactly,
    read_sample_weight,
    relative_weight,
    summarise_weights,
)

WEIGHTS = st.lists(st.floats(0, 1e308), min_size=1, max_size=30).map(np.array)


@given(WEIGHTS)
def test_sums_are_exact(weight):
    assert add_exactly(weight) == sum(map(Fraction, weight.tolist()))


@given(WEIGHTS, st.integers(0, 30), st.randoms())
def test_parts_in_any_order_have_the_summary_of_the_whole(weight, at, random):
    shuffled = weight.tolist()
    random.shuffle(shuffled)
    parts = [np.array(part) for part in (shuffled[:at], shuffled[at:]) if part]
    joined = summarise_weights(parts[0])
    for part in parts[1:]:
        joined = joined.join(summarise_weights(part))
    assert joined == summarise_weights(weight)


@pytest.mark.parametrize("scale", [1.0, 5e-324, 1e-300, 1e300, 0.1, 3.0])
def test_weights_are_beside_the_mean_of_the_positive_ones(scale):
    weight = np.array([0.0, 1.0, 2.0, 6.0])
    expected = np.array([0.0, 1 / 3, 2 / 3, 2.0], dtype=np.float32)
    found = relative_weight(weight * scale, 4)
    assert found.dtype == np.float32
    assert np.array_equal(found, expected)


def test_what_rounds_to_zero_is_zero():
    assert relative_weight([1e-60, 1.0, 1.0], 3)[0] == 0


def test_weights_that_are_alike_are_none():
    assert relative_weight([0.3, 0.3], 2) is None
    assert relative_weight(2, 5) is None


def test_zeros_do_not_move_the_mean():
    without = relative_weight([4, 2], 2).tolist()
    assert relative_weight([0, 0, 4, 2], 4).tolist() == [0, 0, *without]


def test_a_sample_weight_is_a_number_for_each_row_or_one_for_all():
    assert read_sample_weight([1, 0, 2], 3).tolist() == [1.0, 0.0, 2.0]
    assert read_sample_weight(np.array([True, False]), 2).tolist() == [1.0, 0.0]
    assert read_sample_weight(2, 3).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("sample_weight", "message"),
    [
        ([1.0, 2.0], r"sample_weight has shape \(2,\); expected \(3,\)"),
        ([[1.0, 2.0, 3.0]], r"sample_weight has shape \(1, 3\); expected \(3,\)"),
        ([1.0, -0.5, 1.0], "sample_weight must be finite and not negative; found -0.5"),
        ([1.0, np.nan, 1.0], "sample_weight must be finite and not negative; found nan"),
        ([1.0, np.inf, 1.0], "sample_weight must be finite and not negative"),
        ([0.0, 0.0, 0.0], "sample_weight is zero in every row"),
        (0.0, "sample_weight is zero in every row"),
    ],
)
def test_a_sample_weight_that_cannot_be_used_is_refused(sample_weight, message):
    with pytest.raises(ValueError, match=message):
        read_sample_weight(sample_weight, 3)
