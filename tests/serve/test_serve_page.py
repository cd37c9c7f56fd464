"""The page in a browser: sliders move the curve, two subjects compare, a link restores it all."""

import json

import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf._views.numbers import format_number
from cqrf.datasets import load_pbc
from cqrf.serve.app import make_app
from cqrf.serve.data_rows import read_data_rows
from cqrf.serve.model_view import make_view
from support.browser import CONTRAST, READABLE, assert_painted

PHONE = {"width": 360, "height": 740}
NAME = "<script>window.harmed = 1</script>"
LABEL = '"><img src=x onerror="window.harmed = 1">'
CURVES = "[...document.querySelectorAll('#curves .curve')].map(p => p.getAttribute('d'))"
SENTENCES = "[...document.querySelectorAll('.sentence')].map(p => p.textContent)"
DRAWN = "Number(document.body.dataset.ready || 0)"
WORDS = ("NaN", "undefined", "Infinity", "null", "[object")


def serve_pbc(start_server, n_estimators, **settings):
    table = load_pbc(as_frame=True)
    forest = CensoredQuantileForest(n_estimators=n_estimators, random_state=0, **settings)
    forest.fit(table.X, table.y)
    forest.notes_ = {"time": "days", "source": "pbc.csv"}
    labels = [str(row) for row in range(1, len(table.y) + 1)]
    data = read_data_rows(forest, table.X, table.y, labels, "pbc.csv")
    return start_server(make_app(make_view(forest, "pbc.cqrf", data)))


@pytest.fixture(scope="module")
def page(start_server):
    with serve_pbc(start_server, 60, bag_size=2) as address:
        yield address + "/"


@pytest.fixture(scope="module")
def hostile(start_server):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({NAME: rng.uniform(size=80), "a" * 300: rng.uniform(size=80)})
    X["مرحبا"] = rng.choice([LABEL, "😀"], 80)
    X["__proto__"] = rng.uniform(size=80)
    time = np.exp(2 * X[NAME].to_numpy() + rng.normal(size=80) / 5)
    forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, time)
    forest.notes_ = {"time": LABEL, "source": NAME, NAME: LABEL}
    labels = [LABEL, NAME, *(f"{'x' * 200} {i}" for i in range(78))]
    data = read_data_rows(forest, X, time, labels, LABEL)
    with start_server(make_app(make_view(forest, NAME + "b" * 300, data))) as address:
        yield address + "/"


def look_at(browser, address, **window):
    """Open a page and wait for its first answer."""
    browser.open(address, **window)
    browser.wait(f"{DRAWN} > 0")
    browser.settle()


def change(browser, act):
    """Do something, and wait until the answer to it is drawn."""
    before = browser.run(DRAWN)
    act()
    browser.wait(f"{DRAWN} > {before}")
    browser.settle()


def slide(browser, selector, value):
    """Move a slider as a hand does: its value, then the event of a change."""
    script = (
        f"(s => {{ s.value = {value}; s.dispatchEvent(new Event('input', {{bubbles: true}})); }})"
        f"(document.querySelector({selector!r}))"
    )
    change(browser, lambda: browser.run(script))


def slider(column, side="A"):
    return f'input[type="range"][aria-label="{column}, subject {side}"]'


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_opens_without_complaint(browser, page, width, scheme):
    look_at(browser, page, width=width, scheme=scheme)
    assert browser.complaints() == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.querySelectorAll('#curves .curve').length") == 1
    text = browser.run("document.body.innerText + document.querySelector('main').innerHTML")
    for word in WORDS:
        assert word not in text


def test_a_slider_moves_the_curve(browser, page, start_server):
    look_at(browser, page)
    before = browser.run(CURVES)
    slide(browser, slider("bili"), 20)
    assert browser.run(CURVES) != before
    assert (
        browser.run("document.querySelector('[aria-label=\"bili, subject A, exact value\"]').value")
        == "20"
    )
    table = load_pbc(as_frame=True)
    forest = CensoredQuantileForest(n_estimators=60, random_state=0, bag_size=2)
    forest.fit(table.X, table.y)
    model = browser.run("fetch('model').then(r => r.json())")
    row = {column["name"]: column["typical"] for column in model["columns"]} | {"bili": 20.0}
    early, half = forest.predict(pd.DataFrame([row])[table.X.columns], [0.1, 0.5])[0]
    expected = (
        f"The event is expected by {format_number(half)} for half of subjects like this, "
        f"by {format_number(early)} for one in ten."
    )
    assert browser.run(SENTENCES) == [expected]
    browser.wait(f"live.textContent === {json.dumps(expected)}")
    assert browser.complaints() == []


def test_the_mouse_drags_a_slider(browser, page):
    look_at(browser, page)
    before, sentence = browser.run(CURVES), browser.run(SENTENCES)
    x, y, width = browser.run(
        "(s => { s.scrollIntoView({block: 'center'}); const box = s.getBoundingClientRect();"
        " return [box.x, box.y + box.height / 2, box.width]; })"
        f"(document.querySelector({slider('bili')!r}))"
    )
    place = browser.run(
        f"(s => (s.value - s.min) / (s.max - s.min))(document.querySelector({slider('bili')!r}))"
    )
    start = x + 8 + place * (width - 16)

    def drag():
        browser.point("mouseMoved", start, y)
        browser.point("mousePressed", start, y, button="left", clickCount=1)
        for step in range(1, 11):
            browser.point("mouseMoved", start + step * 0.07 * width, y, button="left")
        browser.point("mouseReleased", start + 0.7 * width, y, button="left", clickCount=1)

    change(browser, drag)
    value = browser.run(f"Number(document.querySelector({slider('bili')!r}).value)")
    assert value > 15
    assert browser.run(CURVES) != before
    assert browser.run(SENTENCES) != sentence


def test_the_last_of_many_moves_wins(browser, page):
    moves = (
        "(s => { for (let k = 1; k <= 25; k++) {"
        " s.value = k; s.dispatchEvent(new Event('input')); } })"
        f"(document.querySelector({slider('bili')!r}))"
    )
    look_at(browser, page)
    browser.run(moves)
    link = browser.run("location.href")
    look_at(browser, link)
    expected = browser.run(CURVES)
    look_at(browser, page)
    assert browser.run(CURVES) != expected
    browser.run(moves)
    browser.wait(
        f"JSON.stringify({CURVES}) === {json.dumps(json.dumps(expected, separators=(',', ':')))}"
    )
    assert browser.run(DRAWN) < 10
    assert browser.complaints() == []


def test_the_link_can_be_copied(browser, page):
    look_at(browser, page)
    assert browser.run("location.hash") == ""
    browser.click("#copy")
    browser.wait("copied.textContent !== ''")
    assert len(browser.run("location.hash")) > 20


def test_the_keys_reach_and_move_everything(browser, page):
    look_at(browser, page)
    seen = []
    for _ in range(16):
        browser.press("Tab")
        seen.append(browser.run("document.activeElement.ariaLabel || document.activeElement.id"))
    assert seen[1:3] == ["compare", "copy"]
    for wanted in ("bili, subject A", "bili, subject A, exact value", "bili, subject A, missing"):
        assert wanted in seen
    browser.run(f"document.querySelector({slider('bili')!r}).focus()")
    assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    before = browser.run(f"Number(document.querySelector({slider('bili')!r}).value)")
    change(browser, lambda: browser.press("ArrowRight"))
    after = browser.run(f"Number(document.querySelector({slider('bili')!r}).value)")
    assert after == pytest.approx(before + 0.1)
    unnamed = browser.run(
        "[...document.querySelectorAll('main :is(input, select, button)')].filter(c =>"
        " !c.ariaLabel && !(c.labels && c.labels.length) && !c.textContent).length"
    )
    assert unnamed == 0


def test_missing_is_an_option(browser, page):
    look_at(browser, page)
    before = browser.run(CURVES)
    change(browser, lambda: browser.click('[aria-label="bili, subject A, missing"]'))
    assert browser.run(f"document.querySelector({slider('bili')!r}).disabled")
    assert browser.run(CURVES) != before
    change(browser, lambda: browser.click('[aria-label="bili, subject A, missing"]'))
    assert browser.run(CURVES) == before
    options = "[...document.querySelector('[aria-label=\"stage, subject A\"]').options]"
    assert browser.run(f"{options}.map(o => o.textContent)")[-1].startswith("missing")


def test_sliders_have_the_range_and_marks_of_the_data(browser, page):
    look_at(browser, page)
    bili = load_pbc(as_frame=True).X["bili"]
    ends = browser.run(
        f"(s => [Number(s.min), Number(s.max)])(document.querySelector({slider('bili')!r}))"
    )
    assert ends == [pytest.approx(bili.min()), pytest.approx(bili.max())]
    marks = browser.run(
        f"[...document.querySelector({slider('bili')!r}).parentElement.querySelectorAll('.mark')]"
        ".map(m => m.getBoundingClientRect().x)"
    )
    assert len(marks) == 5
    assert marks == sorted(marks)


def test_two_subjects_stand_side_by_side(browser, page):
    look_at(browser, page, width=1280)
    alone = browser.run(SENTENCES)
    change(browser, lambda: browser.click("#compare"))
    one, two = browser.run(CURVES)
    assert one == two
    slide(browser, slider("bili", "B"), 15)
    first, second = browser.run(CURVES)
    assert first == one
    assert second != one
    left, right = browser.run(
        f"[{slider('bili')!r}, {slider('bili', 'B')!r}].map(s => document.querySelector(s)"
        ".getBoundingClientRect().x)"
    )
    assert right > left + 100
    heads = browser.run(
        "[...document.querySelectorAll('#quantiles thead th')].map(h => h.textContent)"
    )
    assert heads[1:] == ["A", "B", "B − A"]
    assert browser.run("document.querySelectorAll('.differs').length") == 1
    assert browser.run("document.querySelectorAll('.neighbours').length") == 2
    change(browser, lambda: browser.click("#compare"))
    assert browser.run(SENTENCES) == alone
    assert browser.complaints() == []


def test_the_picture_stays_in_sight_and_in_its_place(browser, page):
    look_at(browser, page, width=1280, height=900)
    change(browser, lambda: browser.click("#compare"))
    where = "(id => document.getElementById(id).getBoundingClientRect())"
    browser.run("window.scrollTo(0, 500)")
    browser.settle()
    assert browser.run(f"{where}('curves').top") > 0
    browser.run("window.scrollTo(0, document.body.scrollHeight)")
    browser.settle()
    assert browser.run(f"{where}('results').bottom <= {where}('neighbours').top")
    look_at(browser, page, **PHONE)
    browser.run("window.scrollTo(0, 900)")
    browser.settle()
    assert 0 <= browser.run(f"{where}('curves').top") < 40


def test_the_link_restores_the_state(browser, page):
    look_at(browser, page)
    change(browser, lambda: browser.click("#compare"))
    slide(browser, slider("bili", "B"), 15)
    slide(browser, slider("age"), 70)
    change(browser, lambda: browser.click('[aria-label="albumin, subject A, missing"]'))
    link, curves, sentences = (browser.run(each) for each in ("location.href", CURVES, SENTENCES))
    assert "#" in link
    look_at(browser, page)
    assert browser.run(CURVES) != curves
    look_at(browser, link)
    assert browser.run(CURVES) == curves
    assert browser.run(SENTENCES) == sentences
    assert browser.run("location.href") == link
    assert browser.run(
        "document.querySelector('[aria-label=\"albumin, subject A, missing\"]').checked"
    )
    assert browser.run("message.hidden")
    assert browser.complaints() == []


@pytest.mark.parametrize(
    ("hash_", "said"),
    [
        ("#rubbish!", "incomplete"),
        ("#eyJ2IjoxLCJtIjoi", "incomplete"),
        ("#eyJ2Ijo5fQ", "another version"),
        ("#bnVsbA", "another version"),
        ("#eyJ2IjoxLCJtIjoieCJ9", "another model"),
    ],
)
def test_a_foreign_link_gives_a_calm_message(browser, page, hash_, said):
    look_at(browser, page + hash_)
    assert said in browser.run("message.textContent")
    assert "Typical values are shown instead" in browser.run("message.textContent")
    assert browser.run("document.querySelectorAll('#curves .curve').length") == 1
    assert browser.complaints() == []


def test_values_that_do_not_fit_the_columns_are_not_restored(browser, page):
    look_at(browser, page)
    slide(browser, slider("bili"), 15)
    forged = browser.run(
        "(() => { const kept = JSON.parse(atob(location.hash.slice(1)));"
        " kept.s[0][0] = {}; return '#' + btoa(JSON.stringify(kept)); })()"
    )
    look_at(browser, page + forged)
    assert "incomplete" in browser.run("message.textContent")


def test_it_starts_from_a_row_of_the_table(browser, page):
    look_at(browser, page)
    table = load_pbc(as_frame=True)
    typical = browser.run(CURVES)
    browser.run("row0.focus()")
    browser.call("Input.insertText", text="17")
    change(browser, lambda: browser.press("Enter"))
    bili = browser.run(
        "document.querySelector('[aria-label=\"bili, subject A, exact value\"]').value"
    )
    assert float(bili) == table.X["bili"][16]
    note = browser.run("document.querySelector('.start .note').textContent")
    event, time = bool(table.y["event"][16]), table.y["time"][16]
    said = f"a training row: {'event at' if event else 'no event until'} {time:,.0f}"
    assert note == f"{said}. The forest was fitted to it."
    look_at(browser, browser.run("location.href"))
    slide(browser, slider("bili"), 20)
    for _ in range(2):  # moved, and restored from the link
        note = browser.run("document.querySelector('.start .note').textContent")
        assert note == f"{said}, changed"
        look_at(browser, browser.run("location.href"))
    change(browser, lambda: browser.click(".start button"))
    assert browser.run(CURVES) == typical
    row = browser.run("document.querySelector('.neighbours button').textContent")
    change(browser, lambda: browser.click(".neighbours button"))
    assert browser.run("document.querySelector('#row0').value") == row
    browser.run("row0.focus(); row0.value = ''")
    browser.call("Input.insertText", text="99999")
    browser.press("Enter")
    browser.wait("problem0.textContent !== ''")
    assert browser.run("problem0.textContent") == "There is no row 99999 in pbc.csv."
    assert browser.run("row0.getAttribute('aria-invalid')") == "true"
    red, green, blue = browser.run("getComputedStyle(problem0).color.match(/\\d+/g).map(Number)")
    assert red > 1.5 * max(green, blue)
    box, beside = (
        browser.run(f"(b => [b.x, b.y])({name}.getBoundingClientRect())")
        for name in ("row0", "problem0")
    )
    assert abs(box[1] - beside[1]) < 80
    change(browser, lambda: browser.click(".start button"))
    assert browser.run("problem0.textContent") == ""


def test_training_rows_are_listed_with_weight_time_and_outcome(browser, page):
    look_at(browser, page)
    cells = browser.run(
        "[...document.querySelectorAll('.neighbours tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    assert len(cells) == 12
    y = load_pbc(as_frame=True).y
    for row, weight, time, outcome, *_ in cells:
        assert weight.endswith("%")
        assert time == f"{y['time'][int(row) - 1]:,.0f}"
        assert outcome == ("event" if y["event"][int(row) - 1] else "censored")


def test_without_the_table_no_row_is_on_the_page(browser, start_server):
    table = load_pbc(as_frame=True)
    forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(table.X, table.y)
    with start_server(make_app(make_view(forest, "pbc.cqrf"))) as address:
        look_at(browser, address)
        assert browser.run("document.querySelectorAll('.neighbours, #starts input').length") == 0
        assert "--data" in browser.run("document.getElementById('neighbour-lists').textContent")
        assert "--bag-size 2" in browser.run("notes.textContent")
        assert browser.run("document.querySelectorAll('.fill-band').length") == 0
        assert browser.complaints() == []


@pytest.mark.parametrize("width", [360, 1280])
def test_hostile_text_stays_text(browser, hostile, width):
    look_at(browser, hostile, width=width)
    change(browser, lambda: browser.click("#compare"))
    assert browser.complaints() == []
    assert browser.run("window.harmed === undefined")
    assert browser.run("document.querySelectorAll('img, script:not([src])').length") == 0
    names = browser.run("[...document.querySelectorAll('.head h3')].map(n => n.textContent)")
    assert NAME in names
    assert "__proto__" in names
    options = browser.run(
        "[...document.querySelectorAll('.side select option')].map(o => o.textContent)"
    )
    assert any(option.startswith(LABEL) for option in options)
    labels = browser.run(
        "[...document.querySelectorAll('.neighbours button')].map(b => b.textContent)"
    )
    assert len(labels) == 24
    change(browser, lambda: browser.click(".neighbours button"))
    assert browser.run("document.documentElement.scrollWidth") <= width
    link, curves = browser.run("location.href"), browser.run(CURVES)
    look_at(browser, link, width=width)
    assert browser.run(CURVES) == curves
    browser.open(hostile + "docs", width=width)
    browser.wait("document.querySelectorAll('section').length === 7")
    assert browser.run("window.harmed === undefined")
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.complaints() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_its_ground(browser, page, scheme):
    look_at(browser, page, scheme=scheme)
    change(browser, lambda: browser.click("#compare"))
    selectors = [
        "h1",
        "#about",
        ".sentence",
        "#compare",
        "#quantiles td",
        "#quantiles th",
        "#notes p",
    ]
    selectors += [
        ".head h3",
        ".head .quiet",
        ".missing",
        ".ends span",
        "#curves text",
        ".legend span",
    ]
    selectors += [".sideA .badge", ".neighbours td", "button.plain", "select"]
    for selector in selectors:
        assert browser.run(CONTRAST % selector) >= READABLE, selector


def test_left_censoring_and_dates(browser, start_server, frame, target):
    y = censored(500.0 - np.minimum(target["time"], 499), target["event"])
    forest = CensoredQuantileForest(n_estimators=20, censoring="left", random_state=0)
    forest.fit(frame, y)
    with start_server(make_app(make_view(forest, "m"))) as address:
        look_at(browser, address)
        before = browser.run(CURVES)
        slide(browser, slider("age"), 30)
        slide(browser, slider("seen"), 18300)
        shown = browser.run(
            "document.querySelector('[aria-label=\"seen, subject A, exact value\"]').value"
        )
        assert shown == "2020-02-08"
        assert browser.run(CURVES) != before
        text = browser.run("document.body.innerText")
        for word in WORDS:
            assert word not in text
        assert browser.complaints() == []


def test_a_server_that_has_gone_is_said(browser, start_server, lone_view):
    with start_server(make_app(lone_view)) as address:
        look_at(browser, address)
    browser.run(
        "(s => { s.value = 30; s.dispatchEvent(new Event('input')); })"
        f"(document.querySelector({slider('age')!r}))"
    )
    browser.wait("!message.hidden")
    assert "is it still running" in browser.run("message.textContent")


def test_the_chart_is_painted(browser, page, tmp_path):
    look_at(browser, page)
    browser.photograph(tmp_path / "page.png")
    assert_painted(browser, tmp_path / "page.png", "#curves svg", 1)
