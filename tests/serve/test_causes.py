"""The server with a forest that tells causes apart: API, page and refusals."""

import numpy as np
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf.serve.app import make_app
from cqrf.serve.data_rows import read_data_rows
from cqrf.serve.model_view import make_view
from cqrf.serve.schema import Limits, PredictResponse, SubjectsResponse

LIMITS = Limits(rows=10, bytes=100_000, values=500)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 2))
    time = rng.exponential(5 + 10 * X[:, 0])
    status = np.array(["", "death", "relapse"])[rng.integers(0, 3, 200)]
    y = censored(np.minimum(time, 9), np.where(time < 9, status, ""), censored="")
    return X, y


@pytest.fixture(scope="module")
def forest(table):
    return CensoredQuantileForest(n_estimators=30, random_state=0).fit(*table)


@pytest.fixture(scope="module")
def client(forest, table, start_server, make_client):
    X, y = table
    rows = read_data_rows(forest, X, y, [str(i + 1) for i in range(200)], "t.csv", None)
    app = make_app(make_view(forest, "m.cqrf", rows), limits=LIMITS, n_jobs=1)
    with start_server(app) as address:
        yield make_client(address)


def as_rows(X):
    return [{"feature 0": a, "feature 1": b} for a, b in X.tolist()]


def test_predict_answers_with_each_cause(client, forest, table):
    X = table[0][:2]
    asked = {"rows": as_rows(X), "times": [2, 5, 50], "quantiles": [0.1, 0.95], "horizons": [4]}
    answer = client.post("/predict", asked)[1]
    PredictResponse.model_validate(answer)
    for i, row in enumerate(answer["rows"]):
        assert [each["cause"] for each in row["causes"]] == ["death", "relapse"]
        for each in row["causes"]:
            cause, query = each["cause"], X[[i]]
            values = [entry["probability"] for entry in each["incidence"]]
            wanted = forest.predict_incidence(query, [2, 5], cause)[0]
            assert values[:2] == pytest.approx(wanted.tolist())
            assert values[2] is None
            assert each["incidence"][2]["reason"] == "after_bound"
            low, high = (entry["value"] for entry in each["quantiles"])
            time = forest.predict(query, 0.1, cause=cause, unidentified="nan")[0]
            assert low == (None if np.isnan(time) else pytest.approx(time))
            assert high is None
            last = forest.predict_incidence(query)[cause][0].end
            free = forest.predict_survival(query)[0].values[-1]
            entry = each["quantiles"][1]
            if each["max_level"] + free < 0.95:
                assert (entry["bound"], entry["reason"]) == (None, "never")
            else:
                assert (entry["bound"], entry["reason"]) == (pytest.approx(last), "after_bound")
            lost = forest.predict_mean(query, 4, cause=cause)[0]
            assert each["time_lost"][0]["value"] == pytest.approx(lost)
            assert each["max_level"] == pytest.approx(forest.max_quantile(query, cause=cause)[0])
        parts = [each["incidence"][1]["probability"] for each in row["causes"]]
        assert sum(parts) + row["survival"][1]["probability"] == pytest.approx(1)


def test_a_quantile_of_a_cause_without_a_time_has_the_reason(client, table):
    """A level may be reached after the last known time only if enough have had no event by then."""
    asked = {"rows": as_rows(table[0][:10]), "quantiles": [0.01, 0.3, 0.4, 0.5, 0.95]}
    rows = client.post("/predict", asked)[1]["rows"]
    found = [each for row in rows for cause in row["causes"] for each in cause["quantiles"]]
    assert {each["reason"] for each in found} == {None, "after_bound", "never"}
    for each in found:
        assert (each["value"] is None) == (each["reason"] is not None)
        assert (each["bound"] is None) == (each["reason"] != "after_bound")
    late = client.post("/predict", {**asked, "given": 100})[1]["rows"][0]["causes"]
    reasons = {each["reason"] for cause in late for each in cause["quantiles"]}
    assert reasons == {"given_too_late"}


def test_incidence_of_what_remains(client, forest, table):
    X = table[0][:1]
    asked = {"rows": as_rows(X), "times": [2], "given": 3, "horizons": [2]}
    (row,) = client.post("/predict", asked)[1]["rows"]
    wanted = forest.predict_incidence(X, [2], given=3)[0, :, 0]
    found = [each["incidence"][0]["probability"] for each in row["causes"]]
    assert found == pytest.approx(wanted.tolist())


def test_causes_count_as_values(client, table):
    asked = {"rows": as_rows(table[0][:10]), "times": list(range(1, 20)), "quantiles": []}
    status, answer = client.post("/predict", asked)
    assert status == 422
    assert "57 values each" in answer["error"]


def test_the_page_receives_curves_that_add_up_to_1(client, table):
    answer = client.post("/subjects", {"subjects": as_rows(table[0][:2])})[1]
    SubjectsResponse.model_validate(answer)
    for subject in answer["subjects"]:
        of_causes = np.array([each["values"] for each in subject["incidence"]], dtype=float)
        total = of_causes.sum(axis=0) + np.array(subject["survival"], dtype=float)
        known = ~np.isnan(total)
        assert known.any()
        assert not known.all()
        np.testing.assert_allclose(total[known], 1, atol=3e-6)
        assert all("cause" in each for each in subject["neighbours"])


def test_the_model_counts_its_causes(client, table):
    found = client.get("/model")[1]["causes"]
    counts = [int((table[1]["cause"] == cause).sum()) for cause in ("death", "relapse")]
    assert found == [
        {"cause": "death", "events": counts[0]},
        {"cause": "relapse", "events": counts[1]},
    ]
    row = client.get("/rows/1")[1]
    assert row["cause"] == (str(table[1]["cause"][0]) or None)


def test_the_document_describes_causes(client):
    schemas = client.get("/openapi.json")[1]["components"]["schemas"]
    assert "causes" in schemas["RowPrediction"]["properties"]
    assert {"incidence", "quantiles", "time_lost"} <= set(schemas["CausePrediction"]["properties"])


def test_a_forest_of_one_kind_of_event_has_no_causes(table, start_server, make_client):
    X, y = table
    plain = CensoredQuantileForest(n_estimators=10, random_state=0)
    plain.fit(X, censored(y["time"], y["event"]))
    with start_server(make_app(make_view(plain, "m"), n_jobs=1)) as address:
        client = make_client(address)
        assert client.get("/model")[1]["causes"] == []
        (row,) = client.post("/predict", {"rows": as_rows(X[:1])})[1]["rows"]
    assert "causes" not in row


def test_the_page_of_the_api_lists_what_it_says_of_causes(browser, forest, start_server):
    with start_server(make_app(make_view(forest, "m"), n_jobs=1)) as address:
        browser.open(f"{address}/docs")
        browser.wait("document.body.innerText.includes('Schema: CauseQuantile')")
        assert browser.complaints() == []


AREAS = "[...document.querySelectorAll('#curves path.fill-cause')].length"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_the_page_draws_an_area_for_each_cause(browser, forest, start_server, width, scheme):
    with start_server(make_app(make_view(forest, "m"), n_jobs=1)) as address:
        browser.open(address, width=width, scheme=scheme)
        browser.wait("Number(document.body.dataset.ready || 0) > 0")
        browser.settle()
        assert browser.complaints() == []
        assert browser.run(AREAS) == 2
        assert browser.run("document.querySelectorAll('#curves path.fill-none').length") == 1
        assert browser.run("document.documentElement.scrollWidth") <= width
        legend = browser.run("document.querySelector('#curves .legend').innerText")
        assert legend.split() == ["no", "event", "relapse", "death"]
        assert [browser.run(f"nameCause({each})") for each in ("2", "'relapse'")] == [
            "cause 2",
            "relapse",
        ]
        assert "Any event is expected" in browser.run("document.body.innerText")
        browser.click("#compare")
        browser.wait(f"{AREAS} === 4")
        browser.settle()
        assert browser.complaints() == []
