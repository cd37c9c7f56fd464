"""Values between JSON and the forest: each kind, there and back, and what is refused."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf.serve.values import Column, RequestError, read_rows, read_value, write_value

NUMBER = Column("age", "number")
DATE = Column("seen", "date")
DURATION = Column("stay", "duration")
CATEGORY = Column("colour", "category", ("blue", "red"))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_itself(number):
    assert read_value(number, NUMBER) == number
    assert write_value(number, NUMBER) == number


@given(st.datetimes(min_value=pd.Timestamp.min, max_value=pd.Timestamp.max))
def test_a_date_is_seconds_since_1970_as_pandas_has_them(moment):
    expected = pd.Timestamp(moment).value / 1e9
    read = read_value(moment.isoformat(), DATE)
    np.testing.assert_allclose(read, expected, rtol=1e-15, atol=1e-6)
    assert abs(read_value(write_value(read, DATE), DATE) - read) < 1e-5


def test_kinds_have_their_forms():
    assert read_value("2020-01-02", DATE) == 1577923200.0
    assert read_value("2020-01-02T01:00:00+01:00", DATE) == 1577923200.0
    assert write_value(1577923200.0, DATE) == "2020-01-02"
    assert read_value(1.5, DURATION) == 129600.0
    assert write_value(129600.0, DURATION) == 1.5
    assert read_value("red", CATEGORY) == 1.0
    assert write_value(1.0, CATEGORY) == "red"
    assert read_value(True, NUMBER) == 1.0
    for kind in (NUMBER, DATE, DURATION, CATEGORY):
        assert math.isnan(read_value(None, kind))
        assert write_value(math.nan, kind) is None
    assert write_value(1e18, DATE) is None


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        ("old", NUMBER, "the text 'old'"),
        ([1], NUMBER, "a list"),
        ({}, NUMBER, "an object"),
        (math.nan, NUMBER, "finite"),
        (math.inf, DURATION, "finite"),
        (10**400, NUMBER, "finite"),
        (1e301, DURATION, "days up to"),
        ("pink", CATEGORY, "no level 'pink'; there are 'blue', 'red'"),
        (1, CATEGORY, "must be text"),
        ("soon", DATE, "a date such as"),
        (12.0, DATE, "a date such as"),
        ("2020-02-30", DATE, "a date such as"),
    ],
)
def test_what_cannot_be_read_is_said(value, kind, said):
    with pytest.raises(ValueError, match=said):
        read_value(value, kind)


def test_rows_name_the_row_and_the_column():
    good = {"age": 1, "colour": "red"}
    kinds = [NUMBER, CATEGORY]
    read = read_rows([good], kinds)
    np.testing.assert_array_equal(read.matrix, [[1, 1]])
    assert read.notes == [[]]
    bad = [good, {"age": "x", "shape": 1}]
    with pytest.raises(RequestError) as caught:
        read_rows(bad, kinds)
    found = {(p.row, p.column) for p in caught.value.problems}
    assert found == {(1, "shape"), (1, "age"), (1, "colour")}
    assert all(p.column in p.message and "rows[1]" in p.message for p in caught.value.problems)


def test_a_level_that_training_did_not_have_is_missing_or_refused():
    kinds = [NUMBER, CATEGORY]
    asked = [{"age": 1, "colour": "red"}, {"age": 2, "colour": "pink"}]
    read = read_rows(asked, kinds)
    np.testing.assert_array_equal(read.matrix, [[1, 1], [2, np.nan]])
    said = "column 'colour' has no level 'pink'; there are 'blue', 'red': treated as missing."
    assert read.notes == [[], [said]]
    with pytest.raises(RequestError, match=r"rows\[1\], column 'colour': has no level 'pink'"):
        read_rows(asked, kinds, strict=True)


def test_problems_are_not_listed_without_end():
    with pytest.raises(RequestError) as caught:
        read_rows([{"x" * 1000: 1}] * 1000, [NUMBER])
    assert len(caught.value.problems) == 20
    assert all(len(p.message) < 300 for p in caught.value.problems)
