"""The page of a treatment forest in a browser: two curves, their names, the table, hostile text."""

import re

import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf.effects import CensoredTreatmentForest
from cqrf.serve.app import make_app
from cqrf.serve.effect_view import make_effect_view
from support.browser import CONTRAST, READABLE, assert_painted

NAME = "<script>window.harmed = 1</script>"
LABEL = '"><img src=x onerror="window.harmed = 1">'
DRAWN = "Number(document.body.dataset.ready || 0)"
CURVES = "[...document.querySelectorAll('#curves .curve')].map(p => p.getAttribute('d'))"
CELLS = (
    "[...document.querySelectorAll('#effects tbody tr')]"
    ".map(r => [...r.children].map(c => c.firstChild.textContent))"
)
WORDS = ("NaN", "undefined", "Infinity", "null", "[object")


@pytest.fixture(scope="module")
def page(effect_view, start_server):
    with start_server(make_app(effect_view)) as address:
        yield address + "/"


def look_at(browser, address, **window):
    browser.open(address, **window)
    browser.wait(f"{DRAWN} > 0")
    browser.settle()


def slide(browser, column, value):
    before = browser.run(DRAWN)
    browser.run(
        f"(s => {{ s.value = {value}; s.dispatchEvent(new Event('input', {{bubbles: true}})); }})"
        f"(document.querySelector('input[type=range][aria-label=\"{column}, subject A\"]'))"
    )
    browser.wait(f"{DRAWN} > {before}")
    browser.settle()


def read_number(text):
    return float(text.replace("\u2212", "-").replace("+", "").replace(",", ""))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_opens_without_complaint(browser, page, width, scheme, tmp_path):
    look_at(browser, page, width=width, scheme=scheme)
    assert browser.complaints() == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert len(browser.run(CURVES)) == 2
    labels = browser.run("[...document.querySelectorAll('.arm-label')].map(t => t.textContent)")
    assert sorted(labels) == ["new", "usual"]
    assert browser.run("document.querySelectorAll('#curves .fill-band').length") >= 1
    for selector in (".arm-label.treatment", ".arm-label.control", "#notes p", "#effects td"):
        assert browser.run(CONTRAST % selector) >= READABLE
    text = browser.run("document.body.innerText + document.querySelector('main').innerHTML")
    for word in WORDS:
        assert word not in text
    picture = tmp_path / "page.png"
    browser.photograph(picture)
    assert_painted(browser, picture, "#curves svg", 1)


def test_labels_of_the_arms_stay_in_the_chart_and_apart(browser, page):
    for width in (360, 700, 1200):
        look_at(browser, page, width=width)
        boxes = browser.run(
            "[...document.querySelectorAll('.arm-label'), document.querySelector('#curves svg')]"
            ".map(e => e.getBoundingClientRect()).map(b => [b.left, b.right, b.top, b.bottom])"
        )
        one, two, chart = boxes
        for box in (one, two):
            assert chart[0] <= box[0] < box[1] <= chart[1]
            assert chart[2] <= box[2] < box[3] <= chart[3]
        assert one[1] <= two[0] or two[1] <= one[0] or one[3] <= two[2] or two[3] <= one[2]


def test_labels_of_the_arms_are_not_crossed_by_a_curve(browser, page):
    for width in (360, 1200):
        look_at(browser, page, width=width)
        for age in (30, 50, 70):
            slide(browser, "age", age)
            crossed = browser.run(
                "[...document.querySelectorAll('.arm-label')].flatMap(label => {"
                "  const box = label.getBBox();"
                "  return [...document.querySelectorAll('#curves .curve')].map(path => {"
                "    for (let at = 0; at < path.getTotalLength(); at += 1) {"
                "      const { x, y } = path.getPointAtLength(at);"
                "      if (x > box.x && x < box.x + box.width && y > box.y + 2"
                "        && y < box.y + box.height - 3) return true;"
                "    }"
                "    return false;"
                "  });"
                "})"
            )
            assert crossed == [False] * 4


def test_the_table_has_the_effects_of_the_forest(browser, page, treatment_forest, arms):
    look_at(browser, page)
    before = browser.run(CURVES)
    slide(browser, "age", 62)
    assert browser.run(CURVES) != before
    model = browser.run("fetch('model').then(r => r.json())")
    row = {column["name"]: column["typical"] for column in model["columns"]} | {"age": 62.0}
    row = {**row, "seen": pd.Timestamp(row["seen"]), "stay": pd.Timedelta(days=row["stay"])}
    X = pd.DataFrame([row])[arms[0].columns]
    found = browser.run(CELLS)
    n_times = len(model["times"])
    effects = [
        treatment_forest.effect(X)[0],
        *100 * treatment_forest.effect(X, "survival", times=model["times"])[0],
        treatment_forest.effect(X, "quantile")[0],
    ]
    intervals = [
        treatment_forest.effect_interval(X)[0],
        *100 * treatment_forest.effect_interval(X, "survival", times=model["times"])[0],
        treatment_forest.effect_interval(X, "quantile")[0],
    ]
    assert len(found) == n_times + 2
    for (_, value, interval), effect, ends in zip(found, effects, intervals, strict=True):
        step = 10.0 ** (np.floor(np.log10(ends[1] - ends[0])) - 1)  # of the last digit, at most
        shown = [read_number(text) for text in (value, *interval.split(" to "))]
        np.testing.assert_allclose(shown, [effect, *ends], atol=max(0.5, 0.51 * step))
    assert found[0][0] == f"Time gained up to {model['horizon']:g}"
    sentence = browser.run("document.querySelector('.sentence').textContent")
    word = "longer" if effects[0] > 0 else "shorter"
    assert re.search(rf"is [\d.,]+ {word} with new than with usual \(95\xa0% interval: ", sentence)
    assert "no unmeasured confounding" in browser.run("notes.textContent")
    assert browser.complaints() == []


def test_a_link_restores_the_subject(browser, page):
    look_at(browser, page)
    slide(browser, "age", 40)
    curves, link = browser.run(CURVES), browser.run("location.href")
    look_at(browser, link)
    assert browser.run(CURVES) == curves
    assert browser.run("document.getElementById('message').hidden")


def test_a_row_of_the_table_is_a_start(browser, page):
    look_at(browser, page)
    before = browser.run(DRAWN)
    browser.run(
        "(b => { b.value = 'p7'; b.dispatchEvent(new Event('change')); })"
        "(document.getElementById('row0'))"
    )
    browser.wait(f"{DRAWN} > {before}")
    assert "a training row" in browser.run("document.querySelector('.start .note').textContent")


def test_hostile_names_stay_text(browser, start_server):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({NAME: rng.uniform(size=120), "a" * 300: rng.uniform(size=120)})
    arm = np.where(rng.uniform(size=120) < 0.5, LABEL + "b" * 200, NAME)
    time = np.exp(2 * X[NAME].to_numpy() + rng.normal(size=120) / 5)
    forest = CensoredTreatmentForest(
        n_estimators=8, nuisance_forest=CensoredQuantileForest(n_estimators=80), random_state=0
    ).fit(X, censored(time, rng.uniform(size=120) < 0.7), arm)
    forest.notes_ = {"time": LABEL, "source": NAME}
    with start_server(make_app(make_effect_view(forest, NAME))) as address:
        for width in (360, 1200):
            look_at(browser, address + "/", width=width)
            assert browser.complaints() == []
            assert browser.run("window.harmed === undefined")
            assert browser.run("document.documentElement.scrollWidth") <= width


def test_the_page_of_the_api_shows_effects(browser, page):
    browser.open(page + "docs")
    browser.wait("document.querySelectorAll('section').length > 3")
    assert browser.complaints() == []
    text = browser.run("document.body.innerText")
    assert "POST /effects" in text
    assert "SurvivalDifference" in text
    assert "/predict" not in text
