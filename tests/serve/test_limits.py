"""Slow, abandoned, huge and odd requests: none of them holds up the others."""

import json
import socket
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn

from cqrf.serve.app import make_app
from cqrf.serve.model_view import make_view
from cqrf.serve.protocol import LimitedProtocol
from cqrf.serve.values import RequestError, problem_at, read_rows


@pytest.mark.parametrize("path", ["/", "/model", "/healthz", "/page.js", "/rows/1"])
def test_head_is_get_without_the_body(client, path):
    status, headers, content = client.ask("HEAD", path)
    expected, of_get, body = client.ask("GET", path)
    assert (status, content) == (expected, b"")
    assert headers["content-length"] == of_get["content-length"] == str(len(body))
    assert "content-security-policy" in headers
    assert client.ask("HEAD", "/predict")[0] == 405


def test_many_unknown_names_give_twenty_problems_and_no_more_are_written(view, rows, monkeypatch):
    written = []

    def count(*where):
        written.append(where)
        return problem_at(*where)

    monkeypatch.setattr("cqrf.serve.values.problem_at", count)
    row = {**rows[0], **{f"k{i}": 0 for i in range(60_000)}}
    with pytest.raises(RequestError) as caught:
        read_rows([row] * 3, view.columns)
    assert len(caught.value.problems) == len(written) == 20


def test_many_unknown_fields_are_one_problem(client, rows):
    status, found = client.post("/predict", {"rows": rows, **{f"k{i}": 0 for i in range(60_000)}})
    assert status == 422
    assert found["error"] == "the body: it has 60,000 fields that are not known."


def test_a_body_that_does_not_arrive_is_not_waited_for(view, start_server, monkeypatch):
    monkeypatch.setattr("cqrf.serve.middleware.BODY_SECONDS", 0.3)
    with start_server(make_app(view)) as address:
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=240) as slow:
            slow.sendall(
                b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 100\r\n\r\n{"
            )
            answer = slow.recv(10_000)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"content-security-policy" in answer.lower()
    assert b"not complete" in answer


def test_rows_in_blocks_are_predicted_alike(view, rows, start_server, make_client, monkeypatch):
    request = {"rows": rows * 3, "times": [10, 50], "given": list(range(3 * len(rows)))}
    with start_server(make_app(view)) as address:
        expected = make_client(address).post("/predict", request)
    for name, value in (("INLINE_WORK", 0), ("BLOCK_WORK", 1)):
        monkeypatch.setattr(f"cqrf.serve.computing.{name}", value)
    with start_server(make_app(view)) as address:
        assert make_client(address).post("/predict", request) == expected
    assert expected[0] == 200


def test_an_abandoned_request_ends_with_its_block(view, rows, start_server, monkeypatch):
    for name, value in (("INLINE_WORK", 0), ("BLOCK_WORK", 1)):
        monkeypatch.setattr(f"cqrf.serve.computing.{name}", value)
    n_blocks, first = 0, threading.Event()

    def predict_slowly(*_):
        nonlocal n_blocks
        n_blocks += 1
        first.set()
        time.sleep(0.1)
        return [{}]

    monkeypatch.setattr("cqrf.serve.app.predict_rows", predict_slowly)
    body = json.dumps({"rows": rows * 100}).encode()
    with start_server(make_app(view, n_jobs=1)) as address:
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=240) as impatient:
            impatient.sendall(
                b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                + f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            assert first.wait(240)
        so_far = 0
        while n_blocks > so_far:
            so_far = n_blocks
            time.sleep(1.0)
        assert n_blocks < len(rows) * 100


@contextmanager
def connections(app, n, sent=b""):
    """Connections to a server with our protocol; what they send first is there when it starts."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        config = uvicorn.Config(app, log_level="critical", lifespan="off", http=LimitedProtocol)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        opened = [socket.create_connection(listener.getsockname(), timeout=240) for _ in range(n)]
        for each in opened:
            each.sendall(sent)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield opened
        finally:
            for each in opened:
                each.close()
            server.should_exit = True
            thread.join()


def receive(connection):
    """Everything until the server closes the connection."""
    parts = []
    while part := connection.recv(10_000):
        parts.append(part)
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    assert b"content-security-policy: default-src 'none'" in head.lower()
    assert b"x-content-type-options: nosniff" in head.lower()
    return int(head.split()[1]), json.loads(body)["error"]


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize("start", [b"", b"GET /healthz HTT", b"GET / HTTP/1.1\r\nHost: loc"])
def test_a_request_that_does_not_arrive_is_not_waited_for(lone_view, start, monkeypatch):
    monkeypatch.setattr("cqrf.serve.protocol.REQUEST_SECONDS", 0.3)
    with connections(make_app(lone_view), 1, start) as (slow,):
        status, message = receive(slow)
    assert status == 408
    assert "0.3 seconds" in message


def test_the_second_request_of_a_connection_must_arrive_as_well(lone_view, monkeypatch):
    monkeypatch.setattr("cqrf.serve.protocol.REQUEST_SECONDS", 0.5)
    with connections(make_app(lone_view), 1, HEALTH) as (slow,):
        assert slow.recv(10_000).startswith(b"HTTP/1.1 200")
        slow.sendall(HEALTH[:20])
        assert receive(slow)[0] == 408


def test_too_many_connections_of_one_address_are_refused(lone_view, monkeypatch):
    monkeypatch.setattr("cqrf.serve.protocol.MAX_PER_ADDRESS", 2)
    with connections(make_app(lone_view), 3) as (first, second, third):
        status, message = receive(third)
        assert (status, "too many connections" in message) == (503, True)
        for allowed in (first, second):
            allowed.sendall(HEALTH)
            assert allowed.recv(10_000).startswith(b"HTTP/1.1 200")


def test_other_addresses_are_served_beside_one_with_too_many_connections(lone_view, monkeypatch):
    monkeypatch.setattr("cqrf.serve.protocol.MAX_PER_ADDRESS", 2)
    slow = HEALTH.replace(b"GET /healthz", b"POST /predict").replace(
        b"\r\n\r\n", b"\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    )
    with connections(make_app(lone_view), 3) as opened:
        for each in opened[:2]:
            each.sendall(slow)
        assert receive(opened[2])[0] == 503
        address, here = opened[0].getpeername(), ("127.0.0.2", 0)
        with socket.create_connection(address, timeout=240, source_address=here) as other:
            other.sendall(HEALTH)
            assert other.recv(10_000).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("piece", [b"a", b"a\r\nY: "])
def test_headers_without_an_end_are_refused(lone_view, piece):
    with connections(make_app(lone_view), 1) as (endless,):
        # One byte too many: the server has read all of it when it refuses.
        endless.sendall((b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + piece * 65_536)[:65_537])
        assert receive(endless) == (431, "the headers have more than 65,536 bytes.")


def test_what_is_not_http_is_refused_with_all_headers(lone_view):
    with connections(make_app(lone_view), 1) as (odd,):
        odd.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert receive(odd) == (400, "the request is not HTTP.")


def list_numbers(content, name):
    """All numbers under a name, however deep."""
    if isinstance(content, list):
        return [number for each in content for number in list_numbers(each, name)]
    if not isinstance(content, dict):
        return []
    own = [content[name]] if isinstance(content.get(name), float | int) else []
    return own + [number for each in content.values() for number in list_numbers(each, name)]


def test_a_server_that_rounds_gives_no_event_time_away(
    forest, frame, target, rows, start_server, make_client
):
    unit = 25.0
    view = make_view(forest, "m.cqrf", unit=unit)
    exact = set(target["time"].tolist())
    asked = {
        "rows": rows,
        "quantiles": [0.1, 0.2, 0.5, 0.9],
        "times": [33.3, 141.0],
        "horizons": [99.0],
        "intervals": [0.5],
        "confidence": 0.9,
    }
    with start_server(make_app(view)) as address:
        client = make_client(address)
        status, found = client.post("/predict", asked)
        assert status == 200
        given = client.post("/predict", {"rows": rows, "given": 31.0})[1]
        page = client.post("/subjects", {"subjects": rows[:2], "given": 12.0})[1]
        described = client.get("/model")[1]
    assert found["rows"][0]["survival"][0]["time"] == 25.0
    assert found["rows"][0]["means"][0]["horizon"] == 100.0
    assert given["rows"][0]["given"] == 25.0
    assert page["given"] == 0.0
    times = [
        time
        for content in (found, given, page)
        for name in ("value", "bound", "time", "horizon", "given")
        for time in list_numbers(content, name)
    ]
    times += [*page["times"], described["first_time"], described["last_time"]]
    assert len(times) > 50
    assert all(time % unit == 0 for time in times)
    assert not exact & {time for time in times if time % unit}


def test_rounding_and_the_training_table_do_not_go_together(view, forest):
    with pytest.raises(ValueError, match="--data shows them"):
        make_view(forest, "m.cqrf", view.data, 10.0)
    with pytest.raises(ValueError, match="positive number"):
        make_view(forest, "m.cqrf", unit=0.0)
