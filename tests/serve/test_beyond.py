"""Nothing is made up beyond the end of a curve, and times already survived: API and page."""

import warnings

import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf._input.features import UnseenLevelWarning
from cqrf.serve.app import make_app
from cqrf.serve.data_rows import read_data_rows
from cqrf.serve.model_view import make_view
from cqrf.serve.predictions import (
    PredictionRequest,
    check_given,
    describe_subjects,
    predict_rows,
)
from cqrf.serve.schema import PredictResponse, SubjectsResponse
from cqrf.serve.values import RequestError, read_rows

DRAWN = "Number(document.body.dataset.ready || 0)"
SENTENCE = "document.querySelector('.sentence').textContent"


@pytest.fixture
def head(frame, rows):
    """The rows of the frame that ``rows`` has as JSON."""
    return frame.head(len(rows))


def neighbours_end(forest, X, target):
    """By plain loops: the time of the last neighbour."""
    return [target["time"][weights > 0].max() for weights in forest.weights(X).toarray()]


def test_beyond_the_end_of_a_curve_nothing_is_made_up(client, forest, head, rows, target):
    ends = forest.predict_survival(head).end
    is_open = np.isfinite(ends)
    assert is_open.any()
    assert (ends <= neighbours_end(forest, head, target))[is_open].all()
    question = {"rows": rows, "times": [20, 1e5], "horizons": [100, 1e5], "confidence": 0.9}
    status, found = client.post("/predict", question)
    assert status == 200
    PredictResponse.model_validate(found, strict=True)
    early = forest.predict_mean(head, 100)
    for i, (row, end) in enumerate(zip(found["rows"], ends, strict=True)):
        near, far = row["survival"]
        assert near["reason"] is near["bound"] is None
        assert near["confidence_interval"]["lower"] <= near["probability"]
        short, long = row["means"]
        assert short == {"horizon": 100, "value": early[i], "bound": None, "reason": None}
        if np.isfinite(end):
            unknown = {"bound": end, "reason": "after_bound"}
            empty = {"probability": None, "confidence_interval": None}
            assert far == {"time": 1e5, **empty, **unknown}
            assert long == {"horizon": 1e5, "value": None, **unknown}
        else:
            assert far["probability"] == 0
            assert long["value"] < 1e5


def test_before_the_first_neighbour_nothing_is_made_up_from_the_left(frame, target, rows):
    y = censored(500.0 - np.minimum(target["time"], 499), target["event"])
    forest = CensoredQuantileForest(n_estimators=40, censoring="left", random_state=0)
    view = make_view(forest.fit(frame, y), "m")
    read = read_rows(rows, view.columns)
    predictions = predict_rows(view, read, PredictionRequest([0.5], [-1e5], horizons=[-1e5]))
    starts = forest.predict_survival(frame.head(len(rows))).start
    assert np.isfinite(starts).any()
    for prediction, start in zip(predictions, starts, strict=True):
        (survival,), (mean,) = prediction["survival"], prediction["means"]
        reason = ("before_bound", start) if np.isfinite(start) else (None, None)
        assert (survival["reason"], survival["bound"]) == reason
        assert (mean["reason"], mean["bound"]) == reason
    with pytest.raises(RequestError, match="left-censored"):
        check_given(view, 3.0, len(read.matrix))


def test_times_already_survived_are_those_of_the_forest(client, forest, head, rows):
    survived = [5.0, 20.0, 50.0, 80.0, 100.0, 1e4]
    question = {
        "rows": rows,
        "quantiles": [0.1, 0.9],
        "times": [0, 60],
        "horizons": [70, -3],
        "intervals": [0.8],
        "given": survived,
        "confidence": 0.9,
    }
    status, found = client.post("/predict", question)
    assert status == 200
    PredictResponse.model_validate(found, strict=True)
    reason = found["confidence"]["reason"]
    assert "not available for the time that remains" in reason
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantiles = forest.predict(head, [0.1, 0.9], given=survived, unidentified="nan")
        survival = forest.predict_survival(head, [0, 60], given=survived)
        means = forest.predict_mean(head, 70, given=survived)
        levels = forest.max_quantile(head, given=survived)
    assert np.isnan(quantiles).any()
    assert np.isfinite(quantiles).any()
    for i, row in enumerate(found["rows"]):
        assert row["given"] == survived[i]
        values = [np.nan if q["value"] is None else q["value"] for q in row["quantiles"]]
        np.testing.assert_array_equal(values, quantiles[i])
        assert all(q["confidence_interval"] is None for q in row["quantiles"])
        lower, upper = (row["intervals"][0][end]["value"] for end in ("lower", "upper"))
        assert [lower, upper] == [q["value"] for q in row["quantiles"]]
        values = [np.nan if s["probability"] is None else s["probability"] for s in row["survival"]]
        np.testing.assert_array_equal(values, survival[i])
        assert row["means"][0]["value"] == (None if np.isnan(means[i]) else means[i])
        assert row["estimable"]["to_level"] == pytest.approx(levels[i])
    last = found["rows"][-1]
    everything = [*last["quantiles"], *last["survival"], *last["means"]]
    assert {each["reason"] for each in everything} == {"given_too_late"}
    assert {each["bound"] for each in everything} == {None}
    assert "nothing is known of the time that remains" in last["notes"][0]
    assert found["rows"][0]["notes"] == []
    assert found["rows"][0]["means"][1]["value"] == -3  # min(T - given, -3), as T > given


def test_one_time_survived_holds_for_all_rows(client, rows):
    one, each = (
        client.post("/predict", {"rows": rows, "given": given}) for given in (30, [30] * len(rows))
    )
    assert one == each
    assert one[0] == 200
    assert one != client.post("/predict", {"rows": rows})
    status, found = client.post("/predict", {"rows": rows, "quantiles": [], "given": 30})
    assert (status, found["rows"][0]["quantiles"]) == (200, [])


def test_the_page_gets_remaining_times_on_an_even_grid(client, forest, head, rows, target):
    status, found = client.post("/subjects", {"subjects": rows[:2], "given": 60})
    assert status == 200
    SubjectsResponse.model_validate(found, strict=True)
    assert found["given"] == 60
    assert found["times"][0] == 0
    assert found["times"][-1] > target["time"].max() - 60
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = forest.predict_survival(head[:2], found["times"], given=60)
    for subject, values in zip(found["subjects"], expected, strict=True):
        assert subject["lower"] is None
        curve = [np.nan if value is None else value for value in subject["survival"]]
        np.testing.assert_allclose(curve, values, atol=1e-6)
    status, found = client.post("/subjects", {"subjects": rows[:1], "given": 1e5})
    assert status == 200
    assert set(found["subjects"][0]["survival"]) == {None}
    assert found["times"][-1] > 0


def test_the_document_says_what_is_not_known(client):
    found = client.get("/openapi.json")[1]
    assert '"probability": null' in found["info"]["description"]
    schemas = found["components"]["schemas"]
    assert "null" in str(schemas["SurvivalProbability"]["properties"]["probability"]["anyOf"])
    assert "given_too_late" in str(schemas["RestrictedMean"]["properties"]["reason"])
    assert "already survived" in schemas["PredictRequest"]["properties"]["given"]["description"]


@pytest.fixture(scope="module")
def strange(forest, frame):
    """Rows to start from; the second has a level that training did not have."""
    X = frame.head(3).copy()
    X["colour"] = pd.Series(["red", "pink", None], dtype=object)
    with pytest.warns(UnseenLevelWarning, match="'pink'"):
        data = read_data_rows(forest, X, None, ["one", "two", "three"], "new.csv", "name")
    return make_view(forest, "m.cqrf", data)


def test_an_unseen_level_of_a_row_is_noted(strange, start_server, make_client):
    with start_server(make_app(strange)) as address:
        client = make_client(address)
        found = [client.get(f"/rows/{row}")[1] for row in (1, 2, 3)]
    assert [row["values"]["colour"] for row in found] == ["red", None, None]
    assert found[0]["notes"] == found[2]["notes"] == []
    (note,) = found[1]["notes"]
    assert note.startswith("column 'colour' has no level 'pink'; there are 'blue'")
    assert note.endswith("treated as missing.")
    with start_server(make_app(strange, strict=True)) as address:
        client = make_client(address)
        assert client.get("/rows/1")[0] == 200
        status, found = client.get("/rows/2")
    assert status == 422
    assert found["problems"][0]["column"] == "colour"
    assert "row 2, column 'colour' has no level 'pink'" in found["error"]


def test_the_page_shows_the_unseen_level_of_a_row(browser, strange, start_server):
    for strict, place in ((False, ".start .note"), (True, "#problem0")):
        with start_server(make_app(strange, strict=strict)) as address:
            browser.open(address)
            browser.wait(f"{DRAWN} > 0")
            browser.run("row0.focus()")
            browser.call("Input.insertText", text="two")
            browser.press("Enter")
            browser.wait(f"document.querySelector('{place}').textContent !== ''")
            said = browser.run(f"document.querySelector('{place}').textContent")
            assert "olumn 'colour' has no level 'pink'" in said


@pytest.fixture
def opened(browser, view, forest, start_server, monkeypatch):
    monkeypatch.setattr(forest, "time_unit", "days")
    with start_server(make_app(view)) as address:
        browser.open(address)
        browser.wait(f"{DRAWN} > 0")
        yield browser


def survive(browser, time):
    """Type a time into the box, and wait for the answer."""
    before = browser.run(DRAWN)
    browser.run("given.focus(); given.select()")
    browser.call("Input.insertText", text=time)
    browser.wait(f"{DRAWN} > {before}")
    browser.settle()


def test_the_axis_of_time_ends_after_any_time_survived(view):
    for given in (60.0, -60.0, -1.7e308):
        grid = view.grid(given)
        assert np.isfinite(grid).all()
        assert grid[-1] >= view.model.training_target.time.max() - given


def test_the_box_of_the_time_survived(opened, view):
    before = opened.run(SENTENCE)
    label = "document.querySelector('#survived').textContent"
    assert " ".join(opened.run(label).split()).startswith("already survived days")
    survive(opened, "60")
    typical = np.array([[summary.typical_number for summary in view.summaries]])
    (subject,) = describe_subjects(view, typical, 60.0)
    early = subject["quantiles"][0]["value"]
    said = opened.run(SENTENCE)
    assert said.startswith("After 60\xa0days already survived, the event is expected within")
    assert f"within another {early:.3g}\xa0days for one in ten" in said
    texts = opened.run("[...document.querySelectorAll('#curves text')].map(t => t.textContent)")
    assert "remaining time (days) after 60\xa0days survived" in texts
    link = opened.run("location.href")
    opened.open(link)
    opened.wait(f"{DRAWN} > 0")
    assert opened.run("given.value") == "60"
    assert opened.run(SENTENCE) == said
    survive(opened, "99999")
    assert "nothing is known of the time that remains" in opened.run(SENTENCE)
    assert opened.run("document.querySelectorAll('#curves .curve').length") == 0
    cells = opened.run("[...document.querySelectorAll('#quantiles td')].map(t => t.textContent)")
    assert set(cells) == {"unknown"}
    count = opened.run(DRAWN)
    opened.run("given.value = ''; given.dispatchEvent(new Event('input'))")
    opened.wait(f"{DRAWN} > {count}")
    assert opened.run(SENTENCE) == before
    assert opened.complaints() == []


def test_a_curve_ends_where_it_is_known(opened, view):
    """The path ends at the last neighbour, in an open circle; what follows is hatched."""
    end, circles, n_hatched, width = opened.run(
        "[document.querySelector('#curves .curve').getAttribute('d').split('L').at(-1),"
        " [...document.querySelectorAll('#curves .dot.open')].map(c => c.getAttribute('cx')),"
        " document.querySelectorAll('#curves .fill-hatch').length,"
        " document.querySelector('#curves svg').viewBox.baseVal.width]"
    )
    typical = np.array([[summary.typical_number for summary in view.summaries]])
    (subject,) = describe_subjects(view, typical)
    low, high = view.times[[0, -1]]
    margin_left, margin_right = 46, 14
    share = (subject["estimable"]["bound"] - low) / (high - low)
    assert share < 1
    expected = margin_left + share * (width - margin_left - margin_right)
    assert float(end.split()[0]) == pytest.approx(expected, abs=0.06)
    assert [float(x) for x in circles] == [pytest.approx(expected, abs=0.06)]
    assert n_hatched == 1
