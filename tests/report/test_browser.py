"""The page in a browser: it opens without a complaint, answers keys and clicks, fits a phone."""

import base64
import re

import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf._views.numbers import format_number
from cqrf.calibration import assess_calibration
from cqrf.report import write_report
from support.browser import CONTRAST, READABLE, assert_painted

NAME = "<script>window.harmed = 1</script>"
LABEL = '"><img src=x onerror="window.harmed = 1">'


@pytest.fixture(scope="module")
def page(forest, pbc, tmp_path_factory):
    path = tmp_path_factory.mktemp("browser") / "report.html"
    return write_report(forest, pbc.X, pbc.y, path, title="PBC", source="pbc.csv")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({NAME: rng.uniform(size=80), "a" * 300: rng.uniform(size=80)})
    X["مرحبا"] = rng.choice([LABEL, "😀"], 80)
    time = np.exp(2 * X[NAME].to_numpy() + rng.normal(size=80) / 5)
    forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, time)
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    ids = [LABEL, NAME, *(f"{'x' * 200} {i}" for i in range(78))]
    return write_report(forest, X, time, path, title=NAME + "b" * 300, ids=ids, source=LABEL)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_opens_without_complaint(browser, page, width, scheme):
    browser.open(page, width=width, scheme=scheme)
    assert browser.complaints() == []
    assert browser.run("document.querySelectorAll('section').length") == 8
    assert browser.run("document.querySelectorAll('.chart svg').length") == 8
    labels = browser.run("[...document.querySelectorAll('.chart svg')].map(s => s.ariaLabel)")
    assert all(len(label) > 30 for label in labels)
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_the_page_opens_at_a_quantile_that_most_rows_have(browser, tmp_path):
    rng = np.random.default_rng(0)
    X, time = rng.uniform(size=(150, 2)), rng.uniform(size=150)
    y = censored(time, time < 0.4)
    forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
    hidden = np.isnan(forest.predict_oob([0.25, 0.5], unidentified="nan")).mean(axis=0)
    assert hidden[0] < 0.25 < hidden[1]
    browser.open(write_report(forest, X, y, tmp_path / "report.html"))
    assert browser.run("document.getElementById('quantile').value") == "0.25"
    assert "25\u00a0%" in browser.run(
        "document.querySelector('#table th:nth-child(4)').textContent"
    )


def test_complaints_are_heard(browser, page, tmp_path):
    harmed = page.read_text(encoding="utf-8").replace(
        "</body>", "<script>window.harmed = 1</script><img src='https://example.org/a.png'></body>"
    )
    path = tmp_path / "harmed.html"
    path.write_text(harmed, encoding="utf-8")
    browser.open(path)
    assert len(browser.complaints()) == 2
    assert browser.run("window.harmed === undefined")


def test_no_word_is_left_that_a_reader_should_not_see(browser, page):
    browser.open(page)
    text = browser.run("document.body.innerText + ' ' + document.querySelector('main').innerHTML")
    for word in ("NaN", "undefined", "Infinity", "null", "None", "[object"):
        assert word not in text


def test_the_quantile_changes_the_pictures(browser, page):
    browser.open(page)
    look = (
        "[...document.querySelectorAll('.panel .line:not(.other)')].map(p => p.getAttribute('d'))"
    )
    cells = "[...document.querySelectorAll('#table td:nth-child(4)')].map(c => c.textContent)"
    before, listed = browser.run(look), browser.run(cells)
    assert browser.run("document.getElementById('quantile').value") == "0.25"
    browser.run("document.getElementById('quantile').focus()")
    browser.press("ArrowDown")
    browser.press("ArrowDown")
    assert browser.run("document.getElementById('quantile').value") == "0.75"
    assert all(one != two for one, two in zip(before, browser.run(look), strict=True))
    assert browser.run(cells) != listed
    assert "75\u00a0%" in browser.run(
        "document.querySelector('#table th:nth-child(4)').textContent"
    )
    notes = browser.run("[...document.querySelectorAll('#panels .note')].map(n => n.textContent)")
    assert any("not identifiable" in note for note in notes)
    assert browser.complaints() == []


def test_a_click_and_the_keys_show_the_curve_of_a_row(browser, page, forest, pbc):
    browser.open(page)
    curve, name = "document.querySelector('#curve .line').getAttribute('d')", "chosen.textContent"
    first = browser.run(curve)
    browser.click("#table tbody tr:nth-child(2)")
    assert browser.run(name) == "2: no event until 4,500"
    assert browser.run("document.querySelectorAll('#curve .fill-hatch').length") == 1
    assert browser.run("document.querySelectorAll('#curve .observed').length") == 1
    assert "not identifiable" in browser.run("document.querySelector('#curve').textContent")
    browser.click("#table tbody tr:nth-child(3)")
    second = browser.run(curve)
    assert second != first
    assert browser.run(name) == "3: event at 1,012"
    assert browser.run("document.activeElement.tagName") == "TR"
    browser.press("ArrowDown")
    assert browser.run(curve) == second
    browser.press("Enter")
    assert browser.run(name) == "4: event at 1,925"
    assert browser.run(curve) != second
    assert browser.run("document.querySelectorAll('#table [aria-current]').length") == 1
    assert browser.run("document.querySelectorAll('#table tr[tabindex=\"0\"]').length") == 1
    quarter = forest.predict_oob(0.25, unidentified="nan")[3]
    shown = browser.run("document.querySelector('#quantiles [aria-current]').textContent")
    assert shown == f"25\u00a0%: {format_number(quarter)}"
    assert browser.complaints() == []


def test_the_list_sorts_and_filters(browser, page, pbc):
    browser.open(page)
    shown = "[...document.querySelectorAll('#table tbody tr:not([hidden]) td:first-child')]"
    shown += ".map(cell => Number(cell.textContent) - 1)"
    for way, sign in (("ascending", 1), ("descending", -1)):
        browser.click("#table th:nth-child(2) button")
        assert browser.run("document.querySelector('#table th:nth-child(2)').ariaSort") == way
        times = sign * pbc.y["time"][browser.run(shown)]
        assert (np.diff(times) >= 0).all()
    assert browser.run("document.querySelectorAll('[aria-sort]').length") == 1
    browser.run("document.getElementById('search').focus()")
    browser.call("Input.insertText", text="Censored")
    assert not pbc.y["event"][browser.run(shown)].any()
    assert browser.run("found.textContent") == "257 of 418 rows"


def test_pictures_tell_their_values_to_the_pointer_and_to_the_keys(browser, page):
    browser.open(page)
    browser.click("#marginal svg")
    assert "event:" in browser.run("tip.innerText")
    browser.run("document.querySelector('#histogram svg').focus()")
    browser.press("ArrowRight")
    first = browser.run("tip.innerText")
    assert "censored:" in first
    browser.press("ArrowRight")
    assert browser.run("tip.innerText") != first
    browser.press("Escape")
    assert browser.run("tip.hidden")


@pytest.mark.parametrize("width", [360, 1200])
def test_hostile_text_stays_text(browser, hostile, width):
    browser.open(hostile, width=width)
    assert browser.complaints() == []
    assert browser.run("window.harmed === undefined")
    assert browser.run("document.querySelectorAll('img, script').length") == 2
    assert browser.run("document.querySelector('h1').textContent").startswith(NAME)
    names = browser.run("[...document.querySelectorAll('h3, #bars .name')].map(n => n.textContent)")
    assert names.count(NAME) == 2
    browser.click("#table tbody tr:nth-child(1)")
    assert browser.run("chosen.textContent").startswith(LABEL)
    assert browser.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_its_ground(browser, page, scheme):
    browser.open(page, scheme=scheme)
    dark = browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
    assert dark == (scheme == "dark")
    for selector in (
        "h1",
        "p",
        ".quiet",
        ".note",
        "nav a",
        "td",
        "th",
        "#histogram text",
        "dt",
        ".legend span",
        "#table tr[aria-current] td",
        "select",
    ):
        assert browser.run(CONTRAST % selector) >= READABLE, selector


def test_left_censoring_and_rows_without_a_tree(browser, pbc, tmp_path):
    y = censored(5000.0 - pbc.y["time"], pbc.y["event"])
    forest = CensoredQuantileForest(
        n_estimators=3, max_samples=0.9, censoring="left", random_state=0
    ).fit(pbc.X, y)
    assert np.isnan(forest.predict_oob(0.5, unidentified="clip")).any()
    path = write_report(forest, pbc.X, y, tmp_path / "report.html")
    browser.open(path)
    for row in range(1, 12):
        browser.click(f"#table tbody tr:nth-child({row})")
    assert browser.complaints() == []
    text = browser.run("document.body.innerText")
    assert "not out of bag" in text
    assert "<" in browser.run("document.querySelector('#table tbody').innerText")
    for word in ("NaN", "undefined", "Infinity", "null"):
        assert word not in text


def test_a_row_whose_neighbours_are_all_censored_has_a_flat_curve(browser, tmp_path):
    half = np.repeat([0.0, 1.0], 60)
    y = censored(np.random.default_rng(0).uniform(1, 2, 120), half > 0)
    forest = CensoredQuantileForest(n_estimators=30, random_state=0).fit(half[:, np.newaxis], y)
    for side, times in (("right", y["time"]), ("left", 3 - y["time"])):
        turned = censored(times, y["event"])
        forest.set_params(censoring=side).fit(half[:, np.newaxis], turned)
        assert not len(forest.predict_survival_oob()[0].times)
        browser.open(write_report(forest, half[:, np.newaxis], turned, tmp_path / f"{side}.html"))
        browser.click("#table tbody tr:nth-child(1)")
        assert browser.complaints() == []
        text = browser.run("document.body.innerText")
        assert "not out of bag" not in text
        for word in ("NaN", "undefined", "Infinity", "null"):
            assert word not in text
        drawn = browser.run("document.querySelector('#curve .line').getAttribute('d')")
        assert "NaN" not in drawn
        assert "V" not in drawn


def count_printed_pages(browser):
    printed = base64.b64decode(browser.call("Page.printToPDF", printBackground=True)["data"])
    return len(re.findall(rb"/Type /Page\b", printed))


def test_it_is_printed_on_four_pages_at_most(browser, page, tmp_path):
    browser.open(page)
    assert 1 < count_printed_pages(browser) <= 4
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.run("getComputedStyle(document.querySelector('.list')).display") == "none"
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(100, 80)), columns=[f"{'long ' * 8}{i}" for i in range(80)])
    forest = CensoredQuantileForest(n_estimators=10, random_state=0).fit(X, np.exp(X.iloc[:, 0]))
    wide = write_report(forest, X, np.exp(X.iloc[:, 0]), tmp_path / "wide.html", title="t " * 80)
    browser.open(wide)
    assert browser.run("document.querySelector('#more-columns').textContent").startswith("55 more")
    assert count_printed_pages(browser) <= 4


def test_a_wide_screen_has_two_columns(browser, page):
    place = "(id => document.getElementById(id).getBoundingClientRect())"
    browser.open(page, width=1500)
    left, right, whole = (
        browser.run(f"(b => [b.x, b.y, b.width])({place}('{name}'))")
        for name in ("evaluation", "calibration", "rows")
    )
    assert right[0] > left[0] + left[2]
    assert right[1] == left[1]
    assert whole[2] > 1400
    browser.open(page, width=1200)
    assert browser.run(f"{place}('calibration').y > {place}('evaluation').bottom")


def test_the_rows_at_risk_are_written_below_their_times(browser, page, pbc):
    browser.open(page)
    counts = browser.run(
        "[...document.querySelectorAll('#marginal text.foot')].map(t => [t.getAttribute('x'),"
        " t.textContent])"
    )
    labels = dict(
        browser.run(
            "[...document.querySelectorAll('#marginal text:not(.foot)')]"
            ".map(t => [t.getAttribute('x'), t.textContent])"
        )
    )
    assert len(counts) > 2
    for x, count in counts:
        time = float(labels[x].replace(",", ""))
        assert int(count) == np.sum(pbc.y["time"] >= time)


def test_the_search_reaches_every_id_and_ids_are_on_one_line(browser, forest, pbc, tmp_path):
    ids = [f"PBC-2023-{i:05d}" for i in range(418)]
    path = write_report(forest, pbc.X, pbc.y, tmp_path / "r.html", ids=ids, max_rows=20)
    for width in (360, 1200):
        browser.open(path, width=width)
        listed = "[...document.querySelectorAll('#table tbody td:first-child')]"
        assert browser.run(f"{listed}.length") == 20
        assert browser.run("found.textContent") == "20 of 418 rows"
        browser.run("document.getElementById('search').focus()")
        browser.call("Input.insertText", text="pbc-2023-00101")
        assert browser.run(f"{listed}.map(cell => cell.textContent)") == ["PBC-2023-00101"]
        heights = browser.run(f"{listed}.map(cell => cell.getBoundingClientRect().height)")
        assert max(heights) < 40
        clipped = browser.run(f"{listed}.map(cell => cell.scrollWidth > cell.clientWidth)")
        assert clipped == [False]
    browser.click("#table tbody tr")
    assert browser.run("chosen.textContent").startswith("PBC-2023-00101")
    text = browser.run("document.querySelector('#curve').textContent")
    assert "quantiles of this row, and no curve" in text
    assert browser.run("document.querySelectorAll('#curve .line').length") == 0
    assert browser.run("document.querySelectorAll('#curve .dot:not(.open)').length") > 0
    browser.run("search.value = ''; search.dispatchEvent(new Event('input'))")
    browser.click("#table th:nth-child(2) button")
    assert browser.run("found.textContent") == "418 rows"
    assert browser.complaints() == []


BOX = "(({x, y, width, height}) => [x, y, width, height])"


@pytest.mark.parametrize("width", [360, 1400])
def test_texts_of_charts_are_inside_of_them(browser, page, width):
    browser.open(page, width=width)
    charts = browser.run(
        "[...document.querySelectorAll('.chart svg')].map(svg => [svg.viewBox.baseVal.width,"
        f" [...svg.querySelectorAll('text')].map(t => [t.textContent, ...{BOX}(t.getBBox())])])"
    )
    assert len(charts) == 8
    for chart_width, texts in charts:
        for text, x, _, text_width, _ in texts:
            assert x >= 0, text
            assert x + text_width <= chart_width, text


@pytest.mark.parametrize("width", [360, 1200])
def test_labels_of_a_curve_are_not_on_each_other(browser, page, width):
    browser.open(page, width=width)
    browser.run("quantile.value = '0.1'; quantile.dispatchEvent(new Event('change'))")
    n_labels = 0
    for row in range(1, 60):
        browser.run(f"document.querySelector('#table tbody tr:nth-child({row})').click()")
        boxes = browser.run(
            f"[...document.querySelectorAll('#curve .label')].map(t => {BOX}(t.getBBox()))"
        )
        n_labels += len(boxes)
        for i, (x, y, wide, high) in enumerate(boxes):
            for other_x, other_y, other_wide, other_high in boxes[:i]:
                is_beside = x >= other_x + other_wide or other_x >= x + wide
                # Lines of one text touch: half a line is left for what is below the baseline.
                is_below = abs(y - other_y) >= 0.5 * (high + other_high) - 3
                assert is_beside or is_below, row
    assert n_labels > 150


def test_the_band_is_pale_where_too_few_rows_are_left(browser, page, forest, pbc):
    browser.open(page)
    (start, end), (pale_start, pale_end) = (
        browser.run(
            "(({x, width}) => [x, x + width])"
            f"(document.querySelector('#calibrated {kind}').getBBox())"
        )
        for kind in (".fill-band:not(.pale)", ".fill-band.pale")
    )
    known_to = assess_calibration(forest).known_to
    left, right = (
        browser.run(f"document.querySelector('#calibrated .perfect').{end}.baseVal.value")
        for end in ("x1", "x2")
    )
    assert (end - left) / (right - left) == pytest.approx(known_to, abs=1e-3)
    assert start < end == pytest.approx(pale_start, abs=0.01)
    assert pale_start < pale_end


def test_the_curve_of_the_data_ends_with_its_follow_up(browser, forest, pbc, tmp_path):
    time, event = np.minimum(pbc.y["time"], 2000.0), pbc.y["event"] & (pbc.y["time"] < 2000)
    path = write_report(forest, pbc.X, censored(time, event), tmp_path / "short.html")
    browser.open(path)
    drawn = browser.run("document.querySelector('#marginal .line:not(.second)').getAttribute('d')")
    left, right = (
        browser.run(f"Number(document.querySelector('#marginal .axis').getAttribute('{end}'))")
        for end in ("x1", "x2")
    )
    expected = left + (right - left) * 2000 / 4795
    assert float(drawn.split("H")[-1]) == pytest.approx(expected, abs=0.1)


def test_charts_are_printed_at_the_width_of_the_paper(browser, page):
    widths = "[...document.querySelectorAll('.chart svg')].map(svg => svg.viewBox.baseVal.width)"
    browser.open(page, width=1400)
    before = browser.run(widths)
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    assert sorted(browser.run(widths)) == [220] * 4 + [350] * 4
    tops = browser.run(
        "[...document.querySelectorAll('.panel')].map(p => p.getBoundingClientRect().y)"
    )
    assert len(set(tops)) == 1
    browser.call("Emulation.setEmulatedMedia", media="")
    browser.run("window.dispatchEvent(new Event('afterprint'))")
    browser.settle()
    assert browser.run(widths) == before


def test_the_charts_are_painted(browser, page, tmp_path):
    browser.open(page)
    browser.photograph(tmp_path / "page.png")
    assert_painted(browser, tmp_path / "page.png", ".chart svg", 8)
