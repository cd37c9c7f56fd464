"""The report on a forest that tells causes apart."""

import re

import numpy as np
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf._views.curves import SHOWN_LEVELS
from cqrf.evaluation import evaluate
from cqrf.report import write_report
from cqrf.report.content import build_content
from cqrf.report.rows import SURVIVAL_UNIT

STEPS, SURVIVAL, SHARES, CAUSE, OF_CAUSES = 7, 8, 9, 10, 11  # fields of a row, as in assets/rows.js


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(150, 2))
    time = rng.exponential(5 + 10 * X[:, 0])
    status = np.array(["", "death", "relapse"])[rng.integers(0, 3, 150)]
    return X, censored(np.minimum(time, 9), np.where(time < 9, status, ""), censored="")


@pytest.fixture(scope="module")
def content(table):
    forest = CensoredQuantileForest(n_estimators=30, random_state=0).fit(*table)
    return forest, build_content(forest, *table, title="t", max_rows=20)


def test_events_are_counted_by_cause(table, content):
    counts = [int((table[1]["cause"] == cause).sum()) for cause in ("death", "relapse")]
    expected = f"({counts[0]} of cause death, {counts[1]} of cause relapse)"
    assert expected in content[1]["data"]["text"][0]
    assert content[1]["causes"] == ["death", "relapse"]
    assert content[1]["words"]["event"] == "any event"


def test_causes_that_are_numbers_are_called_causes(table):
    X, y = table
    codes = np.select([y["cause"] == "death", y["cause"] == "relapse"], [1, 2], 0)
    coded = censored(y["time"], codes)
    forest = CensoredQuantileForest(n_estimators=10, random_state=0).fit(X, coded)
    page = build_content(forest, X, coded, title="t", max_rows=5)
    names = ["cause 1", "cause 2"]
    assert page["causes"] == page["data"]["incidence"]["causes"] == names
    assert [each["cause"] for each in page["cause_scores"]["causes"]] == names
    shown = {row[0] - 1: row[CAUSE] for row in page["rows"]["rows"] if len(row) > SHARES}
    assert {codes[row] for row in shown} == {0, 1, 2}
    assert all(name == [None, *names][codes[row]] for row, name in shown.items())


def test_a_row_has_the_out_of_bag_incidence_of_each_cause(table, content):
    forest, page = content
    curves = forest.predict_incidence_oob()
    drawn = [row for row in page["rows"]["rows"] if len(row) > SHARES]
    assert len(drawn) == 20
    for row in drawn:
        number = row[0] - 1
        times = np.array([page["rows"]["times"][i] for i in row[STEPS]])
        total = np.array(row[SURVIVAL]) + np.sum(row[SHARES], axis=0)
        assert np.abs(total - SURVIVAL_UNIT).max() <= 2
        for k, cause in enumerate(forest.causes_):
            # Times on the page are rounded: compare just after each.
            wanted = curves[cause][number](times * (1 + 1e-3), "extend")
            assert np.abs(np.array(row[SHARES][k]) / SURVIVAL_UNIT - wanted).max() < 0.1
            assert row[SHARES][k][-1] == pytest.approx(SURVIVAL_UNIT * wanted[-1], abs=1)
        assert row[CAUSE] == (str(table[1]["cause"][number]) or None)


def test_a_row_has_the_quantiles_of_each_cause(content):
    forest, page = content
    curves = forest.predict_incidence_oob()
    drawn = [row for row in page["rows"]["rows"] if len(row) > OF_CAUSES]
    assert len(drawn) == 20
    for k, cause in enumerate(forest.causes_):
        wanted = curves.quantiles(cause, np.array(SHOWN_LEVELS)).values
        for row in drawn:
            found = [np.inf if value is None else value for value in row[OF_CAUSES][k]]
            np.testing.assert_allclose(found, wanted[row[0] - 1], rtol=1e-3)


def test_rows_of_one_kind_of_event_have_no_shares(table):
    X, y = table
    forest = CensoredQuantileForest(n_estimators=10, random_state=0)
    plain = censored(y["time"], y["event"])
    page = build_content(forest.fit(X, plain), X, plain, title="t", max_rows=5)
    assert max(map(len, page["rows"]["rows"])) == SHARES
    assert page["causes"] == []
    assert page["cause_scores"] is page["data"]["incidence"] is None


@pytest.mark.parametrize("is_new", [False, True])
def test_scores_of_each_cause_are_those_of_evaluate(table, content, is_new):
    X, y = table
    forest, page = content
    if is_new:
        rows = np.arange(0, 150, 2)
        page = build_content(forest, X[rows], y[rows], title="t", max_rows=2)
        expected = evaluate(forest, X[rows], y[rows])
    else:
        expected = evaluate(forest)
    keys = ("concordance", "integrated_brier_score", "calibration_distance")
    assert [each["cause"] for each in page["cause_scores"]["causes"]] == ["death", "relapse"]
    for each in page["cause_scores"]["causes"]:
        assert each["scores"][0]["baseline"] == "0.5"
        for key, score in zip(keys, each["scores"], strict=True):
            wanted = expected[f"{key}_cause_{each['cause']}"]
            assert float(score["forest"]) == pytest.approx(wanted, rel=6e-3)


def test_a_cause_that_no_row_has_cannot_be_scored(table, content):
    X, y = table
    rows = y["cause"] != "relapse"
    page = build_content(content[0], X[rows], y[rows], title="t", max_rows=2)
    relapse = page["cause_scores"]["causes"][1]
    assert relapse["scores"][0]["forest"].startswith("cannot be computed")
    assert page["data"]["incidence"]["shares"][1] == [0] * len(page["data"]["incidence"]["times"])


def test_the_incidence_of_all_rows_is_the_aalen_johansen_curve(table, content):
    y, shown = table[1], content[1]["data"]["incidence"]
    assert shown["causes"] == ["death", "relapse"]
    assert shown["end"] == 9
    total = dict.fromkeys(("death", "relapse"), 0.0)
    free, curves = 1.0, []
    for time in np.unique(y["time"][y["cause"] != ""]):
        at_risk = np.sum(y["time"] >= time)
        deaths = {cause: np.sum((y["time"] == time) & (y["cause"] == cause)) for cause in total}
        for cause, n in deaths.items():
            total[cause] += free * n / at_risk
        free *= 1 - sum(deaths.values()) / at_risk
        curves.append(list(total.values()))
    np.testing.assert_allclose(np.transpose(shown["shares"]), curves, rtol=1e-3)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_a_row_is_drawn_with_all_causes(browser, table, content, tmp_path, width, scheme):
    path = write_report(content[0], *table, tmp_path / "r.html", max_rows=20)
    browser.open(path, width=width, scheme=scheme)
    assert browser.complaints() == []
    assert browser.run("document.querySelectorAll('#curve path.fill-cause').length") == 2
    assert browser.run("document.querySelectorAll('#incidence path.fill-cause').length") == 2
    quantiles = browser.run("document.getElementById('cause-quantiles').textContent")
    assert re.search(r"quantile of each cause: death [\w .]+, relapse [\w .]+", quantiles)
    heads = "[...document.querySelectorAll('#cause-scores tbody th')].map(h => h.innerText)"
    assert browser.run(heads) == ["death", "relapse"]
    label = browser.run("document.querySelector('#curve svg').getAttribute('aria-label')")
    assert label.startswith("Incidence of each cause for 1.")
    assert "death" in label
    assert browser.run("document.documentElement.scrollWidth") <= width
