"""Argument checks: each accepts up to its limits, and names the argument that it refuses."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._runtime.arguments import (
    exactly,
    is_count,
    is_missing,
    is_number,
    read_choice,
    read_count,
    read_flag,
    read_floats,
    read_fraction,
    read_share,
)


def refuse(check, name, value, *limits, says):
    """The check must raise, and name its argument, what it found and what is expected."""
    with pytest.raises(ValueError, match=re.escape(f"{name}={value!r}")) as caught:
        check(name, value, *limits)
    assert says in str(caught.value)


def test_a_choice_is_one_of_its_names():
    assert read_choice("solver", "root", ("root", "argmin")) == "root"
    assert read_choice("solver", "argmin", ("root", "argmin")) == "argmin"


@pytest.mark.parametrize("value", ["Root", "", "roo", None, 0, ["root"], b"root"])
def test_another_value_is_refused_with_the_choices(value):
    refuse(read_choice, "solver", value, ("root", "argmin"), says="choose one of root, argmin")


@pytest.mark.parametrize("value", [2, 3, 10**12, np.int32(2), np.uint8(255)])
def test_a_count_is_whole_and_at_least_its_least(value):
    count = read_count("n_estimators", value, 2)
    assert count == value
    assert type(count) is int


@pytest.mark.parametrize("value", [1, 0, -3, 2.0, 2.5, np.float64(3), True, "3", None, [3]])
def test_what_is_no_count_is_refused(value):
    refuse(read_count, "n_estimators", value, 2, says="must be a whole number of at least 2")


@pytest.mark.parametrize("value", [0.0, 0, 0.05, 0.5, np.float32(0.25), Fraction(1, 3)])
def test_a_fraction_lies_between_its_limits_or_on_them(value):
    fraction = read_fraction("min_child_fraction", value, 0.0, 0.5)
    assert fraction == float(value)
    assert type(fraction) is float


@pytest.mark.parametrize(
    "value",
    [
        -1e-9,
        np.nextafter(0.5, 1.0),
        1,
        np.nan,
        np.inf,
        -np.inf,
        True,
        False,
        "0.1",
        None,
        [0.1],
        0.1j,
        Decimal("0.1"),
    ],
)
def test_what_is_no_such_fraction_is_refused(value):
    says = "must be a number from 0 to 0.5"
    refuse(read_fraction, "min_child_fraction", value, 0.0, 0.5, says=says)


@pytest.mark.parametrize("value", [1e-9, 0.5, 1, np.float32(0.25)])
def test_a_share_lies_above_0_and_up_to_1(value):
    share = read_share("max_features", value)
    assert share == float(value)
    assert type(share) is float


@pytest.mark.parametrize("value", [0, 0.0, -0.5, np.nextafter(1.0, 2.0), np.nan, True, "0.5", None])
def test_what_is_no_such_share_is_refused(value):
    refuse(read_share, "max_features", value, says="must be a number above 0 and at most 1")


@pytest.mark.parametrize(
    "values", [[1, 2], [1.5, 2.5], np.array([1, 2], np.uint8), [True, False], [Fraction(1, 2), 3]]
)
def test_numbers_become_floats(values):
    found = read_floats("quantiles", values)
    assert found.dtype == np.float64
    assert found.tolist() == [float(value) for value in values]


@pytest.mark.parametrize("values", ["a", ["1", "2"], [None, "x"], [1j], [b"1"]])
def test_what_are_no_numbers_is_refused(values):
    with pytest.raises(ValueError, match="quantiles must be numbers; found"):
        read_floats("quantiles", values)


@pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
def test_a_flag_is_true_or_false(value):
    flag = read_flag("honest", value)
    assert flag == value
    assert type(flag) is bool


@pytest.mark.parametrize("value", [0, 1, 1.0, "True", None, [True]])
def test_what_is_no_flag_is_refused(value):
    refuse(read_flag, "honest", value, says="must be True or False")


@pytest.mark.parametrize(
    ("value", "count", "number"),
    [
        (1, True, True),
        (-1, True, True),
        (np.int64(1), True, True),
        (1.0, False, True),
        (np.float32(1.0), False, True),
        (Fraction(1, 2), False, True),
        (np.nan, False, True),
        (True, False, False),
        (np.True_, False, False),
        ("1", False, False),
        (1j, False, False),
        (None, False, False),
        (np.ones(1), False, False),
    ],
)
def test_a_truth_value_is_neither_a_count_nor_a_number(value, count, number):
    assert is_count(value) is count
    assert is_number(value) is number


@pytest.mark.parametrize("value", [None, np.nan, np.float32("nan"), pd.NaT, pd.NA])
def test_missing_values_of_all_kinds_are_missing(value):
    assert is_missing(value)


@pytest.mark.parametrize("value", [0, "", "nan", False, np.inf, pd.Timestamp(0)])
def test_other_values_are_not_missing(value):
    assert not is_missing(value)


@given(st.floats(allow_nan=False))
def test_the_text_of_a_number_reads_back_as_the_same_number(number):
    assert float(exactly(number)) == number


@pytest.mark.parametrize(
    ("number", "text"), [(0.1, "0.1"), (3.0, "3"), (0.1 + 0.2, "0.30000000000000004")]
)
def test_the_text_of_a_number_is_short(number, text):
    assert exactly(number) == text
