"""``cqrf serve``: a model as a page and an API on this machine."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import uvicorn

from cqrf import CensoredQuantileForest
from cqrf.cli.console import say
from cqrf.cli.roles import Roles, read_target_columns
from cqrf.cli.tables import STDIN, as_known, as_text, name_labels, name_some, read_whole
from cqrf.serve.answers import describe_subjects
from cqrf.serve.app import make_app
from cqrf.serve.schema import Limits
from cqrf.serve.served import DataRows, Served, name_columns, prepare, read_data

LOOPBACK = ("127.0.0.1", "::1", "localhost")
MOST_CONNECTIONS = 512


def serve_file(
    model: str,
    path: str | None,
    given: dict[str, str | None],
    *,
    id_column: str | None,
    host: str,
    port: int,
    hosts: Sequence[str],
    limits: Limits,
    n_jobs: int,
    opens: bool,
) -> None:
    """Serve until stopped."""
    forest = CensoredQuantileForest.load(model)
    data = None if path is None else load_rows(forest, path, given, id_column)
    served = prepare(forest, Path(model).name, data)
    with take_address(host, port) as listener:
        warm(served)
        names = [*hosts, host, *([] if host in LOOPBACK else [socket.gethostname()])]
        app = make_app(
            served,
            limits=limits,
            hosts=names,
            any_address=host not in LOOPBACK,
            n_jobs=n_jobs,
        )
        if host not in LOOPBACK:
            say(f"Note    whoever reaches {host} may ask: there are no users and no passwords")
        listener.listen(MOST_CONNECTIONS)
        address = name_address(listener)
        print(f"Serving {served.name} on {address} (Ctrl-C ends it)", flush=True)
        if opens:
            import webbrowser

            webbrowser.open(address)
        run(app, listener)


def load_rows(
    forest: CensoredQuantileForest, path: str, given: dict[str, str | None], id_column: str | None
) -> DataRows:
    """The rows of a file, and whether they are those the forest was fitted to."""
    names, columns = name_columns(forest), forest.model_.columns
    table = read_whole(path, (*name_labels(names, columns), id_column))
    X = as_known(table, names, columns, path)
    source = "standard input" if path == STDIN else Path(path).name
    labels = [str(row) for row in range(1, table.num_rows + 1)]
    if id_column is not None:
        if id_column not in table.column_names:
            raise ValueError(
                f"{path} has no column {id_column!r}; it has {name_some(table.column_names)}."
            )
        ids = as_text(table.column(id_column)).to_pylist()
        labels = [row if label is None else label for row, label in zip(labels, ids, strict=True)]
    rows = read_data(forest, X, read_outcomes(forest, table, given, path), labels, source)
    said = (
        "what the model was fitted to, so the rows that speak for a subject are shown"
        if rows.training is not None
        else "to start from; not what the model was fitted to, so training rows are not shown"
    )
    say(f"Rows    {path}: {table.num_rows:,} rows, {said}")
    return rows


def read_outcomes(
    forest: CensoredQuantileForest, table: pa.Table, given: dict[str, str | None], path: str
) -> Any:
    """Times and outcomes of the rows; None if the file does not have them all."""
    if not (given.get("time") or forest.notes_.get("time")):
        return None
    roles = Roles.from_notes(forest.notes_, **given)
    named = [name for name in (roles.time, roles.event, roles.entry) if name]
    asked = [name for name in given.values() if name]
    if not asked and any(name not in table.column_names for name in named):
        return None
    if not asked and any(table.column(name).null_count for name in named[:2]):
        return None
    return read_target_columns(table, roles, path)


def take_address(host: str, port: int) -> socket.socket:
    """A socket at this address, or one line that says why there is none."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, OverflowError, UnicodeError):
        raise ValueError(f"--host {host} is no address of this machine.") from None
    taken = socket.socket(family, kind, proto)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
    except OSError as error:
        taken.close()
        raise ValueError(say_why_not(error, host, port)) from None
    return taken


def say_why_not(error: OSError, host: str, port: int) -> str:
    """Why an address cannot be taken, and what to do."""
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is in use: choose another with --port, or 0 for any that is free."
    if error.errno == errno.EACCES:
        return f"port {port} is not allowed: choose one from 1024 up with --port."
    return f"--host {host} is no address of this machine."


def name_address(listener: socket.socket) -> str:
    """What to write into a browser."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def warm(served: Served) -> None:
    """Ask once, so that everything is compiled and loaded."""
    middle = np.array([[column.middle for column in served.columns]])
    describe_subjects(served, middle)


def run(app: Any, listener: socket.socket) -> None:
    """Answer until Ctrl-C, which is how it is meant to end."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=5,
        ws="none",
        lifespan="off",
    )
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        say("cqrf: stopped serving")
