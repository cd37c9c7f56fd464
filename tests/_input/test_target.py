"""Whatever form y comes in, the same times and events come out; what is wrong is named."""

from __future__ import annotations

import re
import warnings
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sksurv.util import Surv

from cqrf import CensoredQuantileForest, NegativeTimeWarning, TimedeltaWarning, censored
from cqrf._input.target import (
    Target,
    oriented,
    pair,
    rank_target,
    read_target,
    time_order,
)

TIME = [5.0, -8.5, 3.0, 0.0]  # a time may be negative: a log, say
EVENT = [True, False, True, False]


def structured(*fields):
    """A structured array of (name, type, values)."""
    y = np.empty(len(fields[0][2]), dtype=[(name, kind) for name, kind, _ in fields])
    for name, _, values in fields:
        y[name] = values
    return y


def assert_is_the_target(target, time=TIME, event=EVENT):
    assert isinstance(target, Target)
    assert target.time.dtype == np.float64
    assert target.event.dtype == np.bool_
    assert target.time.tolist() == time
    assert target.event.tolist() == event
    assert target.entry is None


# Forms of y


def test_censored_pairs_times_with_events():
    y = censored(TIME, EVENT)
    assert y.shape == (4,)
    assert y.dtype.names == ("event", "time")
    assert y["time"].dtype == np.float64
    assert y["event"].dtype == np.bool_
    assert y["time"].tolist() == TIME
    assert y["event"].tolist() == EVENT


def test_what_censored_builds_is_read_back():
    assert_is_the_target(read_target(censored(TIME, EVENT)))


@pytest.mark.parametrize(
    "y",
    [
        structured(("event", "?", EVENT), ("time", "<f8", TIME)),
        structured(("time", "<f8", TIME), ("event", "?", EVENT)),
        structured(("days", "<f4", TIME), ("died", "?", EVENT)),
        structured(("died", "?", EVENT), ("days", ">f8", TIME)),
        structured(("event", "?", EVENT), ("time", "<f8", TIME)).view(np.recarray),
    ],
    ids=["event first", "time first", "other names", "big endian", "record array"],
)
def test_a_structured_array_is_read_by_the_types_of_its_fields(y):
    assert_is_the_target(read_target(y))


@pytest.mark.parametrize("kind", ["<i4", "<u2"])
def test_a_structured_array_may_count_time_in_whole_numbers(kind):
    y = structured(("event", "?", EVENT), ("time", kind, [5, 8, 3, 0]))
    assert_is_the_target(read_target(y), time=[5.0, 8.0, 3.0, 0.0])


def test_the_arrays_of_scikit_survival_are_read():
    assert_is_the_target(read_target(Surv.from_arrays(EVENT, TIME)))
    named = Surv.from_arrays(EVENT, TIME, name_event="cens", name_time="survtime")
    assert_is_the_target(read_target(named))
    frame = pd.DataFrame({"days": TIME, "died": EVENT})
    assert_is_the_target(read_target(Surv.from_dataframe("died", "days", frame)))


@pytest.mark.parametrize(
    "y",
    [
        np.column_stack([TIME, EVENT]),
        np.asfortranarray(np.column_stack([TIME, EVENT])),
        np.column_stack([TIME, EVENT]).astype(np.float32),
        np.array(list(zip(TIME, EVENT)), dtype=object),
        [[time, int(event)] for time, event in zip(TIME, EVENT)],
        list(zip(TIME, EVENT)),
        pd.DataFrame({"days": TIME, "died": EVENT}),
        pd.DataFrame({"days": TIME, "died": np.array(EVENT, dtype=int)}, index=[7, 7, 1, 0]),
        pd.DataFrame({0: TIME, 1: EVENT}),
        pl.DataFrame({"days": TIME, "died": EVENT}),
        pl.DataFrame({"days": TIME, "died": np.array(EVENT, dtype=int)}),
    ],
    ids=[
        "array",
        "Fortran array",
        "single precision",
        "objects",
        "list of lists",
        "list of tuples",
        "pandas",
        "pandas with whole numbers",
        "pandas without names",
        "polars",
        "polars with whole numbers",
    ],
)
def test_two_columns_are_time_then_event(y):
    assert_is_the_target(read_target(y))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize(
    "columns",
    [
        {"time": TIME, "event": EVENT},
        {"event": EVENT, "time": TIME},
        {"event": np.array(EVENT, dtype=int), "time": TIME},
        {"event": EVENT, "age": [1.0, 2.0, 3.0, 4.0], "time": TIME},
    ],
    ids=["time first", "event first", "event as 1 and 0", "with another column"],
)
def test_columns_named_time_and_event_are_read_by_name(frame, columns):
    assert_is_the_target(read_target(frame(columns)))


@pytest.mark.parametrize(
    "y",
    [TIME, tuple(TIME), np.array(TIME), pd.Series(TIME), pl.Series(TIME)],
    ids=["list", "tuple", "array", "pandas", "polars"],
)
def test_one_dimension_is_times_that_were_all_seen(y):
    assert_is_the_target(read_target(y), event=[True] * 4)


def test_whole_numbers_in_one_dimension_become_floats():
    assert_is_the_target(read_target([3, -1, 2]), time=[3.0, -1.0, 2.0], event=[True] * 3)


@pytest.mark.parametrize(
    "y",
    [np.array(TIME)[:, np.newaxis], [[t] for t in TIME], pd.DataFrame({"time": TIME})],
    ids=["array", "list", "pandas"],
)
def test_a_single_column_is_read_as_events_with_a_warning(y):
    with pytest.warns(DataConversionWarning, match="column-vector y .* all events") as caught:
        target = read_target(y)
    assert len(caught) == 1
    assert_is_the_target(target, event=[True] * 4)


@pytest.mark.parametrize("event", [EVENT, [1, 0, 1, 0], [1.0, 0.0, 1.0, 0.0], (True, 0, 1, False)])
def test_events_are_true_and_false_or_one_and_zero(event):
    assert_is_the_target(pair(TIME, event))


def test_the_caller_keeps_what_was_passed():
    time, event = np.array(TIME), np.array(EVENT)
    target = pair(time, event)
    target.time[0], target.event[0] = 99.0, False
    assert time.tolist() == TIME
    assert event.tolist() == EVENT


# Errors


def test_no_y_says_what_to_pass():
    with pytest.raises(ValueError, match=r"y is None: pass censored\(time, event\)"):
        read_target(None)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_time_that_is_not_finite_is_named_with_its_row(bad):
    message = re.escape(f"time is {bad} in row 2 (the first row is 0). Drop")
    for y in ([1.0, 2.0, bad], [[1.0, 1], [2.0, 0], [bad, 1]]):
        with pytest.raises(ValueError, match=message):
            read_target(y)
    with pytest.raises(ValueError, match=message):
        censored([1.0, 2.0, bad], [1, 1, 1])


def test_times_that_are_not_finite_are_counted():
    with pytest.raises(ValueError, match=r"time is inf in row 1 \(.*\) and in 2 other rows"):
        pair([1.0, np.inf, 2.0, np.nan, -np.inf], [1, 1, 1, 1, 1])


def test_a_missing_time_is_not_a_number():
    with pytest.raises(ValueError, match="time is nan in row 1"):
        read_target([1.0, None])
    with pytest.raises(ValueError, match="time is nan in row 1"):
        read_target(pl.DataFrame({"time": [1.0, None], "event": [True, True]}))


@pytest.mark.parametrize(
    ("event", "found"),
    [
        ([1, 0, 2], "2"),  # 0 = alive, 1 = transplanted, 2 = dead
        ([1, 0, -1], "-1"),
        ([1.0, 0.0, 0.5], "0.5"),
    ],
)
def test_an_event_other_than_one_or_zero_is_named_with_its_row(event, found):
    message = rf"event must be True/False or 1/0; found .*{re.escape(found)}.* in row 2"
    with pytest.raises(ValueError, match=message):
        pair([1.0, 2.0, 3.0], event)
    with pytest.raises(ValueError, match=message):
        read_target(np.column_stack([[1.0, 2.0, 3.0], event]))
    with pytest.raises(ValueError, match=message):
        read_target(pd.DataFrame({"event": event, "time": [1.0, 2.0, 3.0]}))


def test_a_status_code_or_swapped_columns_get_a_hint():
    with pytest.raises(ValueError, match=r"event = \(status == 2\)"):
        pair([1.0, 2.0], [1, 2])
    with pytest.raises(ValueError, match=r"found .*4\.5.* in row 1.*order is \(time, event\)"):
        read_target([[1, 1.0], [0, 4.5]])


def test_lengths_that_differ_are_both_named():
    with pytest.raises(ValueError, match="time has 3 rows but event has 2"):
        censored([1.0, 2.0, 3.0], [True, False])


@pytest.mark.parametrize(
    ("y", "shape"),
    [
        (np.zeros((4, 3)), r"\(4, 3\)"),
        (np.zeros((4, 0)), r"\(4, 0\)"),
        (np.zeros((2, 2, 2)), r"\(2, 2, 2\)"),
        (3.0, r"\(\)"),
        ("time", r"\(\)"),
        (pd.DataFrame({"time": TIME, "died": EVENT, "age": TIME}), r"\(4, 3\)"),
    ],
)
def test_a_shape_that_cannot_be_read_is_named(y, shape):
    with pytest.raises(ValueError, match=f"y has shape {shape}; expected a structured array"):
        read_target(y)


@pytest.mark.parametrize(
    ("time", "event", "message"),
    [
        ([[1.0, 2.0]], [True], r"time must have one dimension; found shape \(1, 2\)"),
        ([1.0], [[True]], r"event must have one dimension; found shape \(1, 1\)"),
        (1.0, [True], r"time must have one dimension; found shape \(\)"),
    ],
)
def test_times_and_events_have_one_dimension_each(time, event, message):
    with pytest.raises(ValueError, match=message):
        censored(time, event)


def test_words_are_not_numbers():
    with pytest.raises(ValueError, match="time must be numbers; found <U4 values"):
        read_target(["soon", "late"])
    with pytest.raises(ValueError, match="event must be True/False or 1/0; found <U4 values"):
        pair([1.0, 2.0], ["dead", "lost"])
    with pytest.raises(ValueError, match="event must be True/False or 1/0; found object values"):
        read_target(pd.DataFrame({"days": [1.0, 2.0], "status": ["dead", "lost"]}))


def test_a_time_is_a_real_number():
    with pytest.raises(ValueError, match="Complex data not supported: time"):
        read_target(np.array([1.0, 2.0 + 1.0j]))


@pytest.mark.parametrize(
    "y",
    [
        structured(("event", "<i8", [1, 0]), ("time", "<f8", [1.0, 2.0])),
        structured(("event", "?", [1, 0]), ("seen", "?", [1, 0])),
        structured(("time", "<f8", [1.0, 2.0])),
        structured(("event", "?", [1, 0])),
        structured(("event", "?", [1, 0]), ("time", "<f8", [1, 2]), ("age", "<f8", [1, 2])),
        structured(("event", "?", [1, 0]), ("time", "U4", ["soon", "late"])),
    ],
    ids=["two numbers", "two flags", "time only", "event only", "three fields", "words"],
)
def test_a_structured_array_needs_one_flag_and_one_number(y):
    with pytest.raises(ValueError, match=r"one boolean field .* one float field") as caught:
        read_target(y)
    for name in y.dtype.names:
        assert f"{name}: {y.dtype[name]}" in str(caught.value)
    assert "censored(time, event)" in str(caught.value)


def test_a_structured_array_is_checked_like_any_other():
    with pytest.raises(ValueError, match="time is nan in row 1"):
        read_target(structured(("event", "?", [1, 0]), ("time", "<f8", [1.0, np.nan])))


DAYS = [1.5, 30.0, 400.0]


def test_the_unit_of_timedeltas_is_said():
    time = pd.to_timedelta(pd.Series(DAYS), "D")
    with pytest.warns(TimedeltaWarning, match="time holds timedeltas: it is read in days") as said:
        censored(time, [True, False, True])
    assert [warning.filename for warning in said] == [__file__]


@pytest.mark.filterwarnings("ignore::cqrf.TimedeltaWarning")
@pytest.mark.parametrize(
    "time",
    [
        pd.to_timedelta(pd.Series(DAYS), "D"),
        (np.array(DAYS) * 86400).astype("timedelta64[s]"),
        [timedelta(days=days) for days in DAYS],
        pl.Series([timedelta(days=days) for days in DAYS]),
        [Decimal("1.5"), Decimal(30), Decimal(400)],
    ],
    ids=["pandas", "numpy", "python", "polars", "decimal"],
)
def test_durations_are_read_in_days_and_decimals_as_numbers(time):
    y = censored(time, [True, False, True])
    np.testing.assert_array_equal(y["time"], DAYS)
    np.testing.assert_array_equal(read_target(time).time, DAYS)
    entered = censored([2.0, 31.0, 401.0], [1, 1, 1], entry=time)
    np.testing.assert_array_equal(entered["entry"], DAYS)


@pytest.mark.filterwarnings("ignore::cqrf.TimedeltaWarning")
def test_a_missing_duration_is_named_with_its_row():
    for gap in (None, pd.NaT, np.timedelta64("NaT")):
        with pytest.raises(ValueError, match="time is nan in row 1"):
            censored([timedelta(days=1), gap], [True, True])


def test_text_is_no_time_even_if_it_is_a_number():
    for time in (["12", "5.5"], np.array([1.0, "12"], dtype=object), pd.Series(["12", "5.5"])):
        with pytest.raises(ValueError, match=r"time must be numbers; .*'12'.*pd\.to_numeric"):
            censored(time, [True, True])


def test_dates_are_no_times():
    for time in (pd.to_datetime(["2020-01-01"]), [date(2020, 1, 1)], np.array(["2020"], "M8[D]")):
        with pytest.raises(ValueError, match=r"time holds dates: .*end - start"):
            censored(time, [True])


def test_a_negative_duration_is_asked_about_with_its_row():
    X = np.arange(40.0).reshape(-1, 1)
    time, event = X[:, 0] - 0.5, np.arange(40) % 3 > 0
    forest = CensoredQuantileForest(n_estimators=2, max_samples=0.5)
    with pytest.warns(NegativeTimeWarning, match=r"time is -0\.5 in row 0 .*end lie bef") as caught:
        forest.fit(X, censored(time, event))
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forest.fit(X, time)  # an ordinary regression
        forest.fit(X, censored(time, event, entry=time - 1))
        clone(forest).set_params(censoring="left").fit(X, censored(time, event))


# Entry

ENTRY = [4.0, -9.0, -np.inf, -0.5]


def test_censored_keeps_entries():
    y = censored(TIME, EVENT, ENTRY)
    assert y.dtype.names == ("event", "time", "entry")
    assert y["entry"].dtype == np.float64
    assert y["entry"].tolist() == ENTRY


@pytest.mark.parametrize(
    "y",
    [
        censored(TIME, EVENT, ENTRY),
        structured(("entry", "<f8", ENTRY), ("days", "<f4", TIME), ("died", "?", EVENT)),
        pd.DataFrame({"entry": ENTRY, "event": EVENT, "time": TIME}),
        pl.DataFrame({"time": TIME, "entry": ENTRY, "event": EVENT}),
    ],
    ids=["censored", "structured", "pandas", "polars"],
)
def test_a_field_or_column_named_entry_is_read(y):
    target = read_target(y)
    assert target.time.tolist() == TIME
    assert target.event.tolist() == EVENT
    assert target.entry.tolist() == ENTRY


def test_a_row_without_entry_was_there_from_the_start():
    assert pair(TIME, EVENT, [4.0, np.nan, np.nan, -np.inf]).entry.tolist() == [4.0, *[-np.inf] * 3]
    frame = pl.DataFrame({"time": TIME, "event": EVENT, "entry": [4.0, None, None, None]})
    assert read_target(frame).entry.tolist() == [4.0, *[-np.inf] * 3]


@pytest.mark.parametrize("entry", [3.0, 3.5, np.inf])
def test_an_entry_that_is_not_before_its_time_is_named_with_its_row(entry):
    message = f"entry must be before time: entry is {entry:g} and time 3 in row 1"
    with pytest.raises(ValueError, match=message):
        censored([5.0, 3.0], [1, 1], [0.0, entry])


def test_entries_pair_up_with_times():
    with pytest.raises(ValueError, match=r"entry has shape \(1,\) but time has \(2,\)"):
        censored([5.0, 3.0], [1, 1], [0.0])
    with pytest.raises(ValueError, match=r"entry has shape \(\) but time has \(2,\)"):
        censored([5.0, 3.0], [1, 1], 0.0)


def test_entry_goes_with_right_censoring_only():
    with pytest.raises(ValueError, match="entry times go with right censoring only"):
        rank_target(pair(TIME, EVENT, ENTRY), "left")


# Orientation and order


def test_ranks_are_in_time_order_with_events_and_entries_beside_them():
    time, event, entry = [2.0, 1.0, 2.0, 3.0], [0, 1, 1, 1], [0.0, -1.0, 0.5, 1.5]
    target, order = rank_target(pair(time, event, entry), "right")
    assert order.tolist() == [1, 2, 0, 3]
    assert target.time.tolist() == [1.0, 2.0, 2.0, 3.0]
    assert target.event.tolist() == [True, True, False, True]
    assert target.entry.tolist() == [-1.0, 0.5, 0.0, 1.5]
    target, order = rank_target(pair(time, event), "left")
    assert order.tolist() == [3, 2, 0, 1]
    assert target.time.tolist() == [-3.0, -2.0, -2.0, -1.0]
    assert target.event.tolist() == [True, True, False, True]
    assert target.entry is None


def test_rows_are_taken_in_the_order_given():
    taken = pair(TIME, EVENT, ENTRY).take(np.array([2, 0]))
    assert taken.time.tolist() == [3.0, 5.0]
    assert taken.event.tolist() == [True, True]
    assert taken.entry.tolist() == [-np.inf, 4.0]
    assert pair(TIME, EVENT).take(np.array([1])).entry is None


def test_left_censored_times_are_negated_and_negated_back():
    time = np.array(TIME)
    assert oriented(time, "right").tolist() == TIME
    assert oriented(time, "left").tolist() == [-5.0, 8.5, -3.0, 0.0]
    assert oriented(oriented(time, "left"), "left").tolist() == TIME


def test_events_come_before_censorings_at_a_tied_time():
    time = np.array([2.0, 1.0, 2.0, 1.0, 2.0, -3.0])
    event = np.array([False, False, True, True, True, False])
    assert time_order(time, event).tolist() == [5, 3, 1, 2, 4, 0]


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), max_size=40))
def test_rows_are_ordered_by_time_then_event_then_row_number(rows):
    time = np.array([t for t, _ in rows], dtype=float)
    event = np.array([seen for _, seen in rows], dtype=bool)
    expected = sorted(range(len(rows)), key=lambda i: (time[i], not event[i], i))
    assert time_order(time, event).tolist() == expected
