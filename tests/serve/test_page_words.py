"""Words and shapes on the page: units, names, bounds of differences, ids, steps."""

import json
import re
from itertools import pairwise

import pytest

from cqrf import CensoredQuantileForest
from cqrf.datasets import load_pbc
from cqrf.serve.app import make_app
from cqrf.serve.data_rows import read_data_rows
from cqrf.serve.model_view import make_view

DRAWN = "Number(document.body.dataset.ready || 0)"


@pytest.fixture(scope="module")
def page(start_server):
    """PBC with a unit, a name for the event, and ids."""
    table = load_pbc(as_frame=True)
    forest = CensoredQuantileForest(n_estimators=60, random_state=0, bag_size=2)
    forest.time_unit, forest.event_name = "days", "death"
    forest.fit(table.X, table.y)
    forest.notes_ = {"time": "followed"}
    labels = [f"patient {row}" for row in range(1, len(table.y) + 1)]
    data = read_data_rows(forest, table.X, table.y, labels, "pbc.csv", "name")
    with start_server(make_app(make_view(forest, "pbc.cqrf", data))) as address:
        yield address + "/"


@pytest.fixture
def opened(browser, page):
    browser.open(page)
    browser.wait(f"{DRAWN} > 0")
    browser.settle()
    return browser


def test_labels_have_the_unit_and_the_event(opened):
    texts = opened.run("[...document.querySelectorAll('#curves text')].map(t => t.textContent)")
    assert "followed (days)" in texts
    assert "probability without death" in texts
    sentence = opened.run("document.querySelector('.sentence').textContent")
    assert re.match(r"Death is expected by [\d,]+\xa0days for ", sentence)
    heads = opened.run(
        "[...document.querySelectorAll('#quantiles thead th')].map(h => h.textContent)"
    )
    assert heads == ["Death expected", "days"]


def test_the_page_says_that_it_compares_subjects(opened):
    assert "does not predict what happens if someone changes it" in opened.run("about.textContent")


def test_curves_and_bands_are_steps(opened):
    paths = opened.run(
        "[...document.querySelectorAll('#curves .curve, #curves .fill-band')]"
        ".map(p => p.getAttribute('d'))"
    )
    assert len(paths) == 2
    for path in paths:
        corners = [tuple(map(float, pair.split())) for pair in path.strip("MZ").split("L")]
        assert len(corners) > 100
        for (x, y), (next_x, next_y) in pairwise(corners):
            assert x == next_x or y == next_y


def test_the_box_says_that_it_takes_ids(opened):
    assert opened.run("document.querySelector('label[for=row0]').textContent") == "or row by name "
    opened.run("row0.focus()")
    opened.call("Input.insertText", text="17")
    opened.press("Enter")
    opened.wait("problem0.textContent !== ''")
    assert opened.run("problem0.textContent") == "There is no name 17 in pbc.csv."
    opened.run("row0.focus(); row0.value = ''")
    opened.call("Input.insertText", text="patient 17")
    before = opened.run(DRAWN)
    opened.press("Enter")
    opened.wait(f"{DRAWN} > {before}")
    assert opened.run("problem0.textContent") == ""
    assert "no death until" in opened.run("document.querySelector('.start .note').textContent") or (
        "death at" in opened.run("document.querySelector('.start .note').textContent")
    )


@pytest.mark.parametrize(
    ("name", "unit", "said"),
    [
        ("week", "weeks", "time (weeks)"),
        ("Days", "days", "time (days)"),
        ("stay", "days", "stay (days)"),
        ("stay", None, "stay"),
    ],
)
def test_the_unit_is_not_said_twice(opened, name, unit, said):
    model = json.dumps({"notes": {"time": name}, "time_unit": unit})
    assert opened.run(f"nameTimes({model})") == said


@pytest.mark.parametrize("given", [None, 30])
def test_a_quantile_at_the_end_of_the_curve_is_said_once(opened, given):
    def sentence(early):
        times = [
            {"level": 0.1, "value": early, "bound": None, "reason": None},
            {"level": 0.5, "value": None, "bound": 22, "reason": "after_bound"},
        ]
        subject = {"quantiles": times, "estimable": {"from_level": 0, "to_level": 0.12}}
        model = {"censoring": "right", "time_unit": None, "event_name": None}
        arguments = ", ".join(json.dumps(each) for each in (subject, model, given))
        return opened.run(f"describeSubject({arguments})")

    assert sentence(22).count("22") == 1
    assert "for 12\xa0% of subjects like this" in sentence(22)
    assert "7 for one in ten" in sentence(7)


def test_the_label_of_the_unknown_part_is_below_curves_that_end_high(opened):
    subjects = [
        {"estimable": {"from_level": 0, "to_level": level, "bound": 5}} for level in (0.12, 0.06)
    ]
    y, top, bottom = opened.run(
        f"(at => {{ labelUnidentified(at, {json.dumps(subjects)}, false);"
        " return [Number(at.svg.lastChild.getAttribute('y')), at.y(0.88), at.bottom]; })"
        "({svg: document.querySelector('#curves svg'), left: 0, right: 100, top: 0, bottom: 400,"
        " y: share => 400 * (1 - share)})"
    )
    assert top + 40 < y < bottom - 40


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ((10, None), (25, None), "+15"),
        ((10, None), (30, "after_bound"), "more than 20 later"),
        ((30, "after_bound"), (10, None), "more than 20 earlier"),
        ((10, None), (4, "before_bound"), "more than 6 earlier"),
        ((4, "before_bound"), (10, None), "more than 6 later"),
        ((30, None), (10, "after_bound"), "less than 20 earlier"),
        ((10, "after_bound"), (30, None), "less than 20 later"),
        ((10, None), (10, "after_bound"), "later"),
        ((10, "after_bound"), (10, None), "earlier"),
        ((30, "after_bound"), (40, "after_bound"), "unknown"),
    ],
)
def test_a_difference_has_a_bound_if_one_side_has(opened, first, second, said):
    def time(number, reason):
        value, bound = ("null", number) if reason else (number, "null")
        return f"{{value: {value}, bound: {bound}, reason: {reason!r}}}".replace("None", "null")

    assert opened.run(f"describeDifference({time(*first)}, {time(*second)})") == said
