"""Intervals: how they are read, and what is refused."""

import datetime

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import cqrf
from cqrf import censored, interval
from cqrf._input.target import rank_target, read_target, warn_of_negative_times

INF = np.inf


def test_ends_become_a_structured_array():
    y = interval([2, 5, 3, -INF], [4, INF, 3, 1])
    assert y.dtype.names == ("lower", "upper")
    assert y["lower"].tolist() == [2, 5, 3, -INF]
    assert y["upper"].tolist() == [4, INF, 3, 1]


@pytest.mark.parametrize("as_frame", [False, True])
def test_target_of_every_kind_of_row(as_frame):
    y = interval([2, 5, 3, -INF], [4, INF, 3, 1])
    target = read_target(pd.DataFrame(y) if as_frame else y)
    assert target.time.tolist() == [4, 5, 3, 1]
    assert target.event.tolist() == [True, False, True, True]
    assert target.lower.tolist() == [2, 5, 3, -INF]


def test_exact_and_right_censored_rows_are_an_ordinary_target():
    time, event = np.array([4.0, 5.0, 3.0]), np.array([True, False, True])
    target = read_target(interval(time, np.where(event, time, INF)))
    ordinary = read_target(censored(time, event))
    assert target.lower is None
    assert_array_equal(target.time, ordinary.time)
    assert_array_equal(target.event, ordinary.event)


def test_rank_keeps_rows_together():
    target = read_target(interval([2, 5, 3, 0], [4, INF, 3, 1]))
    ranked, order = rank_target(target, "right")
    assert order.tolist() == [3, 2, 0, 1]
    assert ranked.lower.tolist() == [0, 3, 2, 5]


def test_timedeltas_are_days():
    hour = datetime.timedelta(hours=1)
    with pytest.warns(cqrf.TimedeltaWarning, match=r"(lower|upper) holds timedeltas"):
        y = interval(np.array([12 * hour, 24 * hour]), np.array([24 * hour, 36 * hour]))
    assert y["lower"].tolist() == [0.5, 1.0]
    assert y["upper"].tolist() == [1.0, 1.5]


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (
            [1, 3, 5],
            [2, 2, 4],
            r"lower is above upper \(3 > 2\) in row 1 .* and in 1 other row. Are",
        ),
        (
            [1, np.nan],
            [2, 2],
            "lower is missing in row 1 .*. Pass -inf or 0 for a left-censored row.",
        ),
        ([1, 1], [np.nan, 2], "upper is missing in row 0 .*. Pass inf for a right-censored row."),
        ([-INF, 1], [INF, 2], "lower is -inf and upper inf in row 0 .*. Such a row says nothing"),
        (
            [INF],
            [INF],
            "lower and upper are the same infinity in row 0 .*. An exact time is finite.",
        ),
        ([-INF], [-INF], "lower and upper are the same infinity in row 0"),
        ([1, 2], [3], "lower has 2 rows but upper has 1; they must pair up"),
        ([[1]], [[2]], r"lower must have one dimension; found shape \(1, 1\)"),
        (["a"], ["b"], "lower"),
    ],
)
def test_errors(lower, upper, message):
    with pytest.raises(ValueError, match=message):
        interval(lower, upper)


def test_left_censoring_is_in_the_intervals():
    target = read_target(interval([2, 5], [4, INF]))
    with pytest.raises(ValueError, match="y has intervals, which say themselves on which side"):
        rank_target(target, "left")


@pytest.mark.parametrize(
    ("lower", "upper", "said"),
    [
        ([1, -5, 2], [2, 2, 4], r"lower is -5 in row 1 .*end lie before"),
        ([-3, -5, 2], [-3, 2, INF], r"lower is -3 in row 0 .* and in 1 other row\. Does"),
        ([1, -INF, 2], [2, -0.5, INF], r"upper is -0\.5 in row 1 "),
        ([-INF, 0, 1], [2, 2, INF], None),
    ],
)
def test_a_finite_end_below_0_is_asked_about(lower, upper, said):
    target = read_target(interval(lower, upper))
    if said is None:
        return warn_of_negative_times(target, "right")
    with pytest.warns(cqrf.NegativeTimeWarning, match=said):
        warn_of_negative_times(target, "right")
