"""Causes of events: what is read from y, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from cqrf import censored
from cqrf._input.causes import find_cause
from cqrf._input.target import join_targets, read_target

TIME = [5.0, 8.0, 3.0, 4.0]


def test_whole_numbers_are_causes_and_0_is_censored():
    y = censored(TIME, [2, 0, 1, 2])
    target = read_target(y)
    assert y["cause"].tolist() == [2, 0, 1, 2]
    assert target.event.tolist() == [True, False, True, True]
    assert (target.cause.tolist(), target.causes) == ([2, 0, 1, 2], (1, 2))


def test_causes_are_numbered_in_ascending_order_of_their_names():
    target = read_target(censored(TIME, [70, 0, 9, 70]))
    assert (target.cause.tolist(), target.causes) == ([2, 0, 1, 2], (9, 70))


@pytest.mark.parametrize(
    "event",
    [
        ["death", "alive", "graft", "death"],
        np.array(["death", "alive", "graft", "death"], object),
        pd.Series(["death", "alive", "graft", "death"], dtype="category"),
        pd.Series(["death", "alive", "graft", "death"], dtype="string"),
    ],
)
def test_texts_are_causes_once_one_of_them_is_said_to_be_censored(event):
    target = read_target(censored(TIME, event, censored="alive"))
    assert (target.cause.tolist(), target.causes) == ([1, 0, 2, 1], ("death", "graft"))


@pytest.mark.parametrize("event", [[True, False, True, True], [1, 0, 1, 1], [1.0, 0.0, 1.0, 1.0]])
def test_one_cause_is_an_ordinary_event(event):
    plain = censored(TIME, event)
    assert plain.dtype.names == ("event", "time")
    for other in (censored(TIME, [3, 0, 3, 3]), censored(TIME, list("abaa"), censored="b")):
        assert other.dtype == plain.dtype
        assert (other == plain).all()


def test_another_number_may_mean_censored():
    assert read_target(censored(TIME, [1, 2, 3, 1], censored=2)).cause.tolist() == [1, 0, 2, 1]


def test_texts_without_a_0_may_all_be_events():
    target = read_target(censored(TIME, list("abba"), censored=0))
    assert (target.cause.tolist(), target.causes) == ([1, 2, 2, 1], ("a", "b"))


def test_a_single_cause_may_be_0_and_codes_may_be_negative():
    assert censored(TIME, [0, 1, 0, 1], censored=1)["event"].tolist() == [True, False] * 2
    target = read_target(censored(TIME, [-1, 0, 2, -1]))
    assert (target.cause.tolist(), target.causes) == ([1, 0, 2, 1], (-1, 2))


def test_a_code_that_is_no_whole_number_is_named():
    said = r"found 1\.5 in row 1 .*, which is not a whole number, as codes of causes are"
    with pytest.raises(ValueError, match=said):
        censored(TIME, [3.0, 1.5, 0.0, 1.0])


def test_entries_are_kept_beside_causes():
    target = read_target(censored(TIME, [2, 0, 1, 2], entry=[0, 1, 2, 3]))
    assert target.entry.tolist() == [0, 1, 2, 3]
    assert target.causes == (1, 2)


@pytest.mark.parametrize(
    ("event", "options", "message"),
    [
        ([1, 2, 1, 2], {}, r"values 1, 2 and no 0: which of them means censored\? .*censored=1"),
        (list("abca"), {}, r"values 'a', 'b', 'c' and no 0"),
        (list("abca"), {"censored": "alive"}, r"censored='alive' is no value of event.*'a', 'b'"),
        ([1, 2.5, 0, 2], {}, r"event must be whole numbers or texts; found 2.5 in row 1"),
        ([1, None, "x", 2], {"censored": "x"}, r"missing in row 1 .*censored=value"),
        ([1, 1j, 0, 2], {"censored": 0}, r"event must be whole numbers or texts"),
        ([1, "y", 0, 2], {"censored": "x"}, r"texts, such as 'y', beside other values, such as 1"),
        (["0", 1, 2, 1], {"censored": 0}, r"texts, such as '0', beside other values, such as 1"),
        (list("0120"), {}, r"'0', '1', '2' and no number 0: .* Pass it as censored='0', say\.$"),
        (list("0120"), {"censored": 0}, r"texts, '0', '1', '2', but.*number: pass censored='0'"),
        (["no", "False", "x", "no"], {"censored": False}, r"pass censored='False'"),
        (["a", "2.0", "b", "c"], {"censored": 2}, r"pass censored='2\.0'"),
        ([0, 1, 2, 1], {"censored": 2}, r"event has 0 beside.*censored, 2: .* code .*such as 3"),
        ([0, 1, -1, 1], {"censored": -1}, r"event has 0 beside .*censored, -1: .*such as 2"),
        (["a", "", "b", "c"], {"censored": "a"}, r'event is an empty text.*censored=""'),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_way_out(event, options, message):
    with pytest.raises(ValueError, match=message):
        censored(TIME, np.array(event, object), **options)


def test_more_causes_than_anyone_has_are_taken_for_a_mistake():
    with pytest.raises(ValueError, match=r"21 different values: 1, 2, .*Are these times\?"):
        censored(np.arange(22.0), np.arange(22))


def test_an_event_that_contradicts_its_cause_is_refused():
    y = censored(TIME, [2, 0, 1, 2])
    y["event"][2] = False
    with pytest.raises(ValueError, match=r"event False but cause 1 in row 2"):
        read_target(y)


def test_a_frame_has_the_columns_time_and_cause():
    target = read_target(pd.DataFrame({"time": TIME, "cause": [2, 0, 1, 2]}))
    assert (target.cause.tolist(), target.causes) == ([2, 0, 1, 2], (1, 2))


def test_parts_of_a_table_may_lack_causes():
    y = censored(TIME, [2, 0, 1, 3])
    joined = join_targets([read_target(y[:1]), read_target(y[1:3]), read_target(y[3:])])
    assert (joined.cause.tolist(), joined.causes) == ([2, 0, 1, 3], (1, 2, 3))


def test_rows_keep_their_cause():
    target = read_target(censored(TIME, [2, 0, 1, 2])).take(np.array([3, 1]))
    assert (target.cause.tolist(), target.causes) == ([2, 0], (1, 2))


@pytest.mark.parametrize("cause", [None, np.nan])
def test_a_frame_without_the_cause_of_a_row_is_refused_with_its_place(cause):
    frame = pd.DataFrame({"time": TIME, "cause": [2, 0, cause, 1]})
    with pytest.raises(ValueError, match=r"cause is missing in row 12 .* else drop such rows\."):
        read_target(frame, first_row=10)


def test_a_status_of_several_codes_is_pointed_to_causes():
    said = r"found 2.* or tell several causes apart with y = censored\(time, status\)"
    with pytest.raises(ValueError, match=said):
        read_target(pd.DataFrame({"time": TIME, "event": [2, 0, 1, 1]}))
    records = np.array([(2, 1.0), (0, 2.0)], [("status", "i8"), ("ftime", "f8")])
    with pytest.raises(ValueError, match=r"status: int64, .* risks, censored\(time, cause\)\."):
        read_target(records)


@pytest.mark.parametrize("cause", [0, 3, "1", True, None, [1], np.array([1, 2]), 1j])
def test_an_unknown_cause_names_those_there_are(cause):
    with pytest.raises(ValueError, match=r"is no cause of this forest; choose one of 1, 2\."):
        find_cause(cause, (1, 2))


def test_a_cause_may_be_a_number_of_numpy():
    assert find_cause(np.int64(2), (1, 2)) == 1
    assert find_cause(np.str_("b"), ("a", "b")) == 1
