"""``cqrf serve``: a model as a page and an API on this machine."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import uvicorn

from cqrf import CensoredQuantileForest
from cqrf._input.features import feature_names
from cqrf.cli.console import print_message
from cqrf.cli.roles import GivenRoles, Roles, read_ids, read_target_columns
from cqrf.cli.tables import as_known, name_labels, name_source, read_whole
from cqrf.serve.app import make_app
from cqrf.serve.data_rows import DataRows, read_data_rows
from cqrf.serve.model_view import ModelView, make_view
from cqrf.serve.predictions import describe_subjects
from cqrf.serve.schema import Limits

LOOPBACK = ("127.0.0.1", "::1", "localhost")
MAX_CONNECTIONS = 512


class ServeTask(NamedTuple):
    """What to serve, and where.

    Attributes
    ----------
    path : str or None
        Table of rows to start from.
    hosts : sequence of str
        More names that requests may use for this machine.
    opens : bool
        Whether to open the page in a browser.
    """

    model: str
    path: str | None
    given: GivenRoles
    id_column: str | None
    host: str
    port: int
    hosts: Sequence[str]
    limits: Limits
    n_jobs: int
    opens: bool


def serve_file(task: ServeTask) -> None:
    """Serve until stopped."""
    forest = CensoredQuantileForest.load(task.model)
    data = None if task.path is None else load_rows(forest, task)
    view = make_view(forest, Path(task.model).name, data)
    is_public = task.host not in LOOPBACK
    with bind_socket(task.host, task.port) as listener:
        compile_kernels(view)
        app = make_app(
            view,
            limits=task.limits,
            hosts=[*task.hosts, task.host, *([socket.gethostname()] if is_public else [])],
            any_address=is_public,
            n_jobs=task.n_jobs,
        )
        if is_public:
            print_message(
                f"Note    anyone who can reach {task.host} can send requests: there are no users "
                "and no passwords"
            )
        listener.listen(MAX_CONNECTIONS)
        address = format_address(listener)
        print(f"Serving {view.name} on {address} (Ctrl-C ends it)", flush=True)
        if task.opens:
            import webbrowser

            webbrowser.open(address)
        run(app, listener)


def load_rows(forest: CensoredQuantileForest, task: ServeTask) -> DataRows:
    """The rows of a file, and whether they are the training rows."""
    path = str(task.path)
    names, columns = feature_names(forest), forest.model_.columns
    table = read_whole(path, (*name_labels(names, columns), task.id_column))
    X = as_known(table, names, columns, path)
    labels = [str(row) for row in range(1, table.num_rows + 1)]
    if task.id_column is not None:
        ids = read_ids(table, task.id_column, path)
        labels = [row if label is None else label for row, label in zip(labels, ids, strict=True)]
    y = read_outcomes(forest, table, task.given, path)
    rows = read_data_rows(forest, X, y, labels, name_source(path))
    use = (
        "the training table, so the neighbours of a subject are shown"
        if rows.training is not None
        else "to start from; not the training table, so neighbours are not shown"
    )
    print_message(f"Rows    {path}: {table.num_rows:,} rows, {use}")
    return rows


def read_outcomes(
    forest: CensoredQuantileForest, table: pa.Table, given: GivenRoles, path: str
) -> Any:
    """Times and events of the rows; None if the file does not have them all."""
    if not (given.time or forest.notes_.get("time")):
        return None
    roles = Roles.from_notes(forest.notes_, given)
    if any(given):
        return read_target_columns(table, roles, path)
    names = [name for name in (roles.time, roles.event, roles.entry) if name]
    if any(name not in table.column_names for name in names):
        return None
    if any(table.column(name).null_count for name in names[:2]):
        return None
    return read_target_columns(table, roles, path)


def bind_socket(host: str, port: int) -> socket.socket:
    """A socket at this address; raises a ValueError with the reason if there is none."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, OverflowError, UnicodeError):
        raise ValueError(f"--host {host} is no address of this machine.") from None
    bound = socket.socket(family, kind, proto)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise ValueError(describe_bind_error(error, host, port)) from None
    return bound


def describe_bind_error(error: OSError, host: str, port: int) -> str:
    """Why an address cannot be used, and what to do."""
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is in use: choose another with --port, or 0 for any that is free."
    if error.errno == errno.EACCES:
        return f"port {port} is not allowed: choose one from 1024 up with --port."
    return f"--host {host} is no address of this machine."


def format_address(listener: socket.socket) -> str:
    """Address for a browser."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def compile_kernels(view: ModelView) -> None:
    """Predict once, so that every kernel is compiled before the first request."""
    typical = np.array([[summary.typical_number for summary in view.summaries]])
    describe_subjects(view, typical)


def run(app: Any, listener: socket.socket) -> None:
    """Run the server until Ctrl-C, which ends it with exit code 0."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=5,
        ws="none",
        lifespan="off",
    )
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        print_message("cqrf: stopped serving")
