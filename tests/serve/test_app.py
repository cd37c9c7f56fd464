"""The API: responses, error responses, and what it never gives away."""

import json
import warnings

import numpy as np
import pytest
from starlette.datastructures import Headers

from cqrf.serve.app import make_app
from cqrf.serve.middleware import SecurityMiddleware, is_address, split_host
from cqrf.serve.schema import Limits, ModelDescription, PredictResponse, SubjectsResponse

JSON = {"Content-Type": "application/json"}


def test_predict_responds_to_every_row(client, forest, frame, rows):
    status, found = client.post("/predict", {"rows": rows, "quantiles": [0.1], "times": [30]})
    assert status == 200
    PredictResponse.model_validate(found, strict=True)
    expected = forest.predict(frame.head(len(rows)), 0.1)
    np.testing.assert_array_equal([r["quantiles"][0]["value"] for r in found["rows"]], expected)
    assert found["confidence"] == {"level": None, "reason": None}


def test_extreme_levels_and_values_are_predicted(client, rows):
    question = {
        "rows": [{**rows[0], "age": 1.7e308, "stay": -1e300}],
        "quantiles": [5e-324, 1 - 2**-53],
        "times": [-1.7e308, 1.7e308],
        "intervals": [1 - 2**-53, 5e-324],
        "confidence": 0.9999,
    }
    status, found = client.post("/predict", question)
    assert status == 200
    PredictResponse.model_validate(found, strict=True)


def test_unidentified_quantiles_are_null_with_a_bound(client, forest, frame, rows):
    _, found = client.post("/predict", {"rows": rows, "quantiles": [0.99]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hidden = np.isinf(forest.predict(frame.head(len(rows)), 0.99))
    assert hidden.any()
    for row, is_hidden in zip(found["rows"], hidden, strict=True):
        quantile = row["quantiles"][0]
        assert (quantile["value"] is None) == is_hidden
        assert (quantile["reason"] == "after_bound") == is_hidden
        assert (quantile["bound"] is not None) == is_hidden


def test_the_model_is_described(client, lone_client, forest, frame):
    status, found = client.get("/model")
    assert status == 200
    ModelDescription.model_validate(found, strict=True)
    assert [column["name"] for column in found["columns"]] == list(frame.columns)
    kinds = [column["kind"] for column in found["columns"]]
    assert kinds == ["number", "category", "number", "date", "duration"]
    assert found["settings"]["bag_size"] == 2
    assert found["notes"] == {"time": "days", "source": "patients.csv"}
    assert found["data"] == {
        "source": "patients.csv",
        "rows": len(frame),
        "training": True,
        "id": None,
    }
    assert found["limits"]["rows"] == 1000
    assert lone_client.get("/model")[1]["data"] is None
    assert client.get("/healthz")[1]["status"] == "ok"


def test_typical_values_can_be_predicted(client):
    columns = client.get("/model")[1]["columns"]
    typical = {column["name"]: column["typical"] for column in columns}
    status, found = client.post("/subjects", {"subjects": [typical]})
    assert status == 200
    SubjectsResponse.model_validate(found, strict=True)


def test_rows_of_the_table(client, lone_client, rows, target):
    status, found = client.get("/rows/2")
    assert status == 200
    assert found["label"] == "p1"
    assert found["time"] == target["time"][1]
    asked = {name: value for name, value in found["values"].items() if name != "seen"}
    assert asked == {name: value for name, value in rows[1].items() if name != "seen"}
    assert rows[1]["seen"].startswith(found["values"]["seen"])
    _, found = client.get("/rows?search=11")
    assert [row["label"] for row in found["rows"]] == ["p11", *(f"p11{i}" for i in range(10))]
    _, found = client.get("/rows?search=P1")  # after which so many begin
    assert found["rows"][0]["label"] == "p1"
    assert len(client.get("/rows")[1]["rows"]) == 50
    for path in ("/rows", "/rows/1"):
        status, found = lone_client.get(path)
        assert status == 404
        assert "--data" in found["error"]


def test_without_the_table_no_training_row_is_shown(lone_client, rows, target, frame):
    _, found = lone_client.post("/subjects", {"subjects": rows[:1]})
    assert found["subjects"][0]["neighbours"] is None
    steps = np.diff(found["times"])
    assert np.ptp(steps) < 1e-9
    assert len(set(found["times"]) & set(target["time"].tolist())) == 0
    described = json.dumps(lone_client.get("/model")[1])
    assert "p11" not in described


BAD = {
    "no rows": ({}, "rows", None),
    "rows that are empty": ({"rows": []}, "rows", None),
    "unknown column": ({"rows": [{"shape": 1}]}, "rows[0]", "shape"),
    "text for a number": ({"rows": [{"age": "old"}]}, "rows[0]", "age"),
    "a number for a level": ({"rows": [{"colour": 3}]}, "rows[0]", "colour"),
    "wrong date": ({"rows": [{"seen": "soon"}]}, "rows[0]", "seen"),
    "NaN": ({"rows": [{"age": float("nan")}]}, "rows[0]", "age"),
    "infinity": ({"rows": [{"stay": float("inf")}]}, "rows[0]", "stay"),
    "a nested value": ({"rows": [{"age": [[1]]}]}, "rows[0]", "age"),
    "a quantile of 1": ({"quantiles": [0.5, 1]}, "quantiles[1]", None),
    "a quantile of text": ({"quantiles": ["0.5"]}, "quantiles[0]", None),
    "a quantile of NaN": ({"quantiles": [float("nan")]}, "quantiles[0]", None),
    "a time that is infinite": ({"times": [float("inf")]}, "times[0]", None),
    "a time beyond all floats": ({"times": [2 * 10**308]}, "times[0]", None),
    "a coverage of 0": ({"intervals": [0]}, "intervals[0]", None),
    "a horizon that is infinite": ({"horizons": [float("inf")]}, "horizons[0]", None),
    "a text as time survived": ({"given": "long"}, "given", None),
    "a time survived that is infinite": ({"given": [float("inf")]}, "given[0]", None),
    "two times survived for one row": ({"given": [1, 2]}, "given", None),
    "a confidence of 2": ({"confidence": 2}, "confidence", None),
    "a confidence of nearly 1": ({"confidence": 0.99999}, "confidence", None),
    "another field": ({"quantile": 0.5}, "quantile", None),
    "too many quantiles": ({"quantiles": [0.5] * 100}, "quantiles", None),
    "a list": ([], None, None),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named(client, rows, case):
    question, field, column = BAD[case]
    if isinstance(question, dict) and case not in ("no rows", "rows that are empty"):
        changed = question.pop("rows", [{}])
        question = {**question, "rows": [{**rows[0], **changed[0]}]}
    status, found = client.post("/predict", question)
    assert status == 422
    problem = found["problems"][0]
    assert (problem["field"], problem["column"]) == (field, column)
    assert found["error"] == problem["message"]
    for name in (field, column):
        assert name is None or name in problem["message"]


def test_an_unseen_level_is_missing_as_in_python(client, forest, frame, rows):
    asked = [{**rows[0], "colour": "pink"}, rows[1]]
    status, found = client.post("/predict", {"rows": asked, "quantiles": [0.1]})
    assert status == 200
    X = frame.head(2).copy()
    X.loc[0, "colour"] = "pink"
    with pytest.warns(UserWarning, match="treated as missing"):
        expected = forest.predict(X, [0.1])
    assert [row["quantiles"][0]["value"] for row in found["rows"]] == expected[:, 0].tolist()
    first, second = (row["notes"] for row in found["rows"])
    assert second == []
    assert len(first) == 1
    assert "'colour' has no level 'pink'" in first[0]
    assert "treated as missing" in first[0]


def test_a_strict_server_refuses_an_unseen_level(view, rows, start_server, make_client):
    with start_server(make_app(view, strict=True)) as address:
        client = make_client(address)
        status, found = client.post("/predict", {"rows": [{**rows[0], "colour": "pink"}]})
        assert status == 422
        assert found["problems"][0]["column"] == "colour"
        assert "no level 'pink'" in found["error"]
        levels = client.get("/openapi.json")[1]["components"]["schemas"]["Row"]["properties"]
        assert levels["colour"]["enum"] == ["blue", "green", "red", None]


def test_a_missing_column_is_named(client, rows):
    del rows[1]["stay"]
    status, found = client.post("/predict", {"rows": rows})
    assert status == 422
    (problem,) = found["problems"]
    assert (problem["row"], problem["column"]) == (1, "stay")
    assert "null" in problem["message"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe\x00", b"[" * 100_000, b"1" * 5000, b'{"rows": [{"\\ud800": 1}]}']
)
def test_a_body_that_is_not_json_is_refused(client, body):
    status, found = client.post("/predict", body)
    assert status in (400, 422)
    assert found["problems"]


def test_limits_of_rows_bytes_and_values(view, rows, start_server, make_client):
    limits = Limits(rows=3, bytes=2000, values=12)
    with start_server(make_app(view, limits=limits)) as address:
        client = make_client(address)
        row = rows[0]
        assert client.post("/predict", {"rows": [row] * 3})[0] == 200
        status, found = client.post("/predict", {"rows": [row] * 4})
        assert (status, found["problems"][0]["field"]) == (422, "rows")
        assert "4 rows are more than 3" in found["error"]
        status, found = client.post("/predict", {"rows": [row] * 3, "times": [1, 2]})
        assert status == 422
        assert "15" in found["error"] or "5 values" in found["error"]
        status, found = client.post("/predict", b" " * 2001)
        assert status == 413
        assert "2,000 bytes" in found["error"]
        assert client.post("/predict", b" " * 100_000)[0] == 413
        assert client.get("/healthz")[0] == 200


def test_a_body_sent_in_pieces_has_the_same_limit(view, start_server, make_client):
    with start_server(make_app(view, limits=Limits(rows=3, bytes=2000, values=9))) as address:
        client = make_client(address)
        pieces = iter([b" " * 1500, b" " * 1500])
        status, _, content = client.ask("POST", "/predict", pieces, **JSON)
        assert status == 413
        assert b"2,000 bytes" in content


def test_a_body_that_claims_to_be_huge_is_not_waited_for(client):
    for size in ("99999999999999", "1" * 18):
        headers = {**JSON, "Content-Length": size}
        status, _, content = client.ask("POST", "/predict", b"", **headers)
        assert status == 413
        assert b"1,000,000 bytes" in content


def test_other_content_types_are_refused(client):
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        status, _, content = client.ask("POST", "/predict", b"{}", **{"Content-Type": kind})
        assert status == 415
        assert b"application/json" in content


@pytest.mark.parametrize("path", ["/", "/docs", "/page.js", "/model", "/none", "/predict"])
def test_every_response_has_security_headers(client, path):
    _, headers, _ = client.ask("GET", path)
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    for directive in ("base-uri 'none'", "frame-ancestors 'none'", "form-action 'none'"):
        assert directive in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert not any(name.startswith("access-control") for name in headers)
    assert "server" not in headers or headers["server"] == "uvicorn"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "10.0.0.1"])
def test_a_foreign_host_is_refused(client, host):
    status, headers, content = client.ask("GET", "/model", Host=host)
    assert status == 400
    assert b"--allow-host" in content
    assert "content-security-policy" in headers


def test_allowed_hosts():
    def allows(*hosts, **settings):
        settings = {"hosts": ["localhost", "::1"], "max_bytes": 1, **settings}
        middleware = SecurityMiddleware(None, {}, **settings)
        headers = Headers(raw=[(b"host", host.encode()) for host in hosts])
        return middleware.check_host(headers) is None

    for host in ("localhost", "LOCALHOST:8000", "[::1]:8000", "[::1]"):
        assert allows(host, any_address=False)
    assert not allows("10.1.2.3:8000", any_address=False)
    assert allows("10.1.2.3:8000", any_address=True)
    assert not allows("ten.example:8000", any_address=True)
    assert split_host("[2001:db8::1]:80") == "2001:db8::1"
    wrong = ("[localhost]x", "[localhost]", "[::1]x", "[::1", "localhost:80x", "a@localhost")
    for host in (*wrong, "[127.0.0.1]"):
        assert not allows(host, any_address=True), host
    for hosts in ((), ("localhost", "evil.example"), ("localhost", "localhost")):
        assert not allows(*hosts, any_address=True), hosts
    assert is_address("2001:db8::1")


@pytest.mark.parametrize(
    "path",
    ["/../app.py", "/%2e%2e/app.py", "/page/index.html", "/m.cqrf", "/etc/passwd", "//etc/passwd",
     "/base.css/../../page.py", "/static", "/patients.csv"],
)  # fmt: skip
def test_no_file_can_be_reached(client, path):
    status, _, content = client.ask("GET", path)
    assert status == 404
    assert content.startswith(b'{"error":"not found.')


def test_a_method_that_is_not_there(client):
    status, headers, _ = client.ask("DELETE", "/predict")
    assert status == 405
    assert headers["allow"] == "POST"


def test_a_full_queue_is_an_error(view, rows, start_server, make_client, monkeypatch):
    monkeypatch.setattr("cqrf.serve.computing.MAX_WAITING", 0)
    monkeypatch.setattr("cqrf.serve.computing.INLINE_WORK", 0)
    with start_server(make_app(view)) as address:
        status, headers, content = make_client(address).ask(
            "POST", "/predict", json.dumps({"rows": rows}).encode(), **JSON
        )
        assert status == 503
        assert headers["retry-after"] == "1"
        assert b"try again" in content


def test_an_internal_error_gives_no_details(view, rows, start_server, make_client, monkeypatch):
    def fail(*_):
        raise RuntimeError("secret")

    monkeypatch.setattr("cqrf.serve.app.predict_rows", fail)
    with start_server(make_app(view)) as address:
        body = json.dumps({"rows": rows}).encode()
        status, headers, content = make_client(address).ask("POST", "/predict", body, **JSON)
        assert status == 500
        assert b"secret" not in content
        assert "content-security-policy" in headers


def test_the_same_response_from_many_threads(client, rows):
    from concurrent.futures import ThreadPoolExecutor

    question = {"rows": rows, "quantiles": [0.1, 0.5], "times": [10, 50]}
    expected = client.post("/predict", question)
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: client.post("/predict", question), range(64)))
    assert all(each == expected for each in found)
