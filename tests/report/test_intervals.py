"""The report on interval-censored times."""

import json

import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest, censored, interval
from cqrf.report import write_report
from cqrf.report.content import build_content
from cqrf.report.rows import SURVIVAL_UNIT

LABEL, TIME, EVENT = 0, 1, 2  # fields of a row, as in assets/rows.js


@pytest.fixture(scope="module")
def table():
    """Intervals between visits, from 0 or to infinity at their ends; every tenth time is exact."""
    rng = np.random.default_rng(0)
    n = 200
    X = pd.DataFrame(rng.uniform(size=(n, 2)), columns=["a", "b"])
    time = (rng.exponential(10 + 20 * X["a"].to_numpy()) + 0.5).round(1)
    visits = np.sort(rng.uniform(0, 50, (n, 5)).round(1), axis=1)
    visits = np.c_[np.zeros(n), visits, np.full(n, np.inf)]
    before = (visits < time[:, np.newaxis]).sum(axis=1)
    lower, upper = visits[np.arange(n), before - 1], visits[np.arange(n), before]
    lower[::10] = upper[::10] = time[::10]
    return X, interval(lower, upper)


@pytest.fixture(scope="module")
def forest(table):
    forest = CensoredQuantileForest(n_estimators=30, time_unit="months", random_state=0)
    forest.fit(*table).notes_ = {"time": "R", "lower": "L"}
    return forest


@pytest.fixture(scope="module")
def content(forest, table):
    return build_content(forest, *table, title="t", max_rows=40)


def test_times_do_not_have_the_name_of_right_ends(content):
    assert content["words"]["time"] == "time (months)"


@pytest.mark.parametrize("start", [0.0, -np.inf])
def test_rows_are_counted_by_kind(forest, table, start):
    """A row is left-censored if it has no left end, or if that is the start of durations."""
    X, y = table
    y = interval(np.where(y["lower"] == 0, start, y["lower"]), y["upper"])
    exact = y["lower"] == y["upper"]
    right, left = np.isinf(y["upper"]), y["lower"] == start
    between = ~(exact | right | left)
    expected = (
        f"200 rows: {exact.sum()} exact, {between.sum()} known to an interval, "
        f"{left.sum()} left-censored and {right.sum()} right-censored"
    )
    content = build_content(forest, X, y, title="t", max_rows=2)
    assert content["summary"].startswith(expected)
    assert content["data"]["text"][0].startswith(expected)
    assert "observed time" not in content["summary"]


def test_an_interval_from_0_has_a_left_end_among_negative_times(forest, table):
    X, y = table
    y = interval(np.append(y["lower"][1:], -3.0), np.append(y["upper"][1:], -1.0))
    ends = build_content(forest, X, y, title="t", max_rows=2)["rows"]["intervals"]
    assert [each["lower"] for each in ends].count(0.0) == (y["lower"] == 0).sum() > 0


def test_nothing_is_counted_at_risk(content):
    """Between the ends of its interval it is not known whether a row is at risk."""
    assert content["data"]["at_risk"] is None
    assert content["data"]["censoring_curve"] is None


def test_a_reader_of_a_report_has_no_advice_on_python(content):
    shown = {name: part for name, part in content.items() if name != "about"}
    assert "censored(" not in json.dumps(shown)
    why = "cannot be computed: some of these times are known only to an interval."
    assert content["summary"].endswith(f"The forest's skill {why}")
    assert content["calibration"] == {"text": [f"Calibration {why}"], "levels": None}


def test_rows_have_their_left_ends_and_smallest_curves(content, forest, table):
    y = table[1]
    rows, intervals = content["rows"]["rows"], content["rows"]["intervals"]
    drawn = [each["curve"] for each in intervals if "curve" in each]
    assert len(drawn) == 40
    for row, each in zip(rows, intervals, strict=True):
        lower, upper = y[row[LABEL] - 1].tolist()
        is_left = lower == 0 and upper > 0
        assert each["lower"] == (None if is_left else lower)
        assert row[TIME] == (lower if np.isinf(upper) else upper)
    lower, _ = forest.predict_survival_bounds(table[0])
    # Those of the report are out of bag; of rows that are new, they are the same.
    new = table[0].iloc[:50]
    page = build_content(forest, new, y[:50], title="t")
    for each, curve in zip(page["rows"]["intervals"], lower[:50], strict=True):
        times = np.array(each["curve"]["times"], float)
        np.testing.assert_allclose(times, curve.times[: len(times)], rtol=1e-3)
        values = np.array(each["curve"]["values"]) / SURVIVAL_UNIT
        np.testing.assert_allclose(values, curve.values, atol=1e-4)


def test_all_curves_between_the_marginal_ones_fit_equally_well(content):
    """Both have the same steps: one at left, one at right ends."""
    upper, lower = content["data"]["event_curve"], content["data"]["lower_curve"]
    assert upper["values"] == lower["values"]
    pairs = list(zip(lower["times"], upper["times"], strict=True))
    assert all(left <= right for left, right in pairs)
    assert any(left < right for left, right in pairs)


def test_other_tables_have_no_intervals(table):
    X, y = table
    plain = censored(np.where(np.isinf(y["upper"]), y["lower"], y["upper"]), y["upper"] < np.inf)
    forest = CensoredQuantileForest(n_estimators=5, random_state=0).fit(X, plain)
    content = build_content(forest, X, plain, title="t", max_rows=2)
    assert content["rows"]["intervals"] is None
    assert content["data"]["lower_curve"] is None


BANDS = "document.querySelectorAll('#curve rect.of-b').length"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_the_page_shows_intervals_as_such(browser, forest, table, tmp_path, content, width, scheme):
    path = write_report(forest, *table, tmp_path / "r.html", max_rows=200)
    browser.open(path, width=width, scheme=scheme)
    assert browser.complaints() == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    page = browser.run("document.body.innerText")
    assert "Kaplan-Meier" not in page
    assert "rows at risk" not in browser.run("document.getElementById('marginal').textContent")
    assert browser.run("document.getElementById('scores').offsetHeight") == 0
    ends = [(lower, upper) for lower, upper in table[1].tolist()]
    expected = {
        next(i for i, (low, high) in enumerate(ends) if low == high): ("event at ", 0),
        next(i for i, (low, high) in enumerate(ends) if low == 0): ("event before ", 1),
        next(i for i, (low, high) in enumerate(ends) if high == np.inf): ("event after ", 0),
        next(i for i, (low, high) in enumerate(ends) if 0 < low < high < 99): ("between ", 1),
    }
    for number, (words, n_bands) in expected.items():
        browser.run(f"document.querySelectorAll('#table tbody tr')[{number}].click()")
        assert words in browser.run("document.getElementById('chosen').textContent")
        assert browser.run(BANDS) == n_bands
        assert browser.run("document.querySelectorAll('#curve path.fill-band').length") == 1
