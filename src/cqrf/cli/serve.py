"""``cqrf serve``: a model as a page and an API on this machine."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
import uvicorn

from cqrf import CensoredQuantileForest
from cqrf._input.features import feature_names
from cqrf._runtime.progress import printable
from cqrf.cli.console import count, print_message
from cqrf.cli.models import is_treatment_file
from cqrf.cli.notation import Notation
from cqrf.cli.roles import GivenRoles, Roles, read_ids
from cqrf.cli.tables import as_known, name_labels, name_source, read_whole
from cqrf.cli.target_columns import Rows, TargetRoles, read_target_columns, take_valid
from cqrf.effects import CensoredTreatmentForest
from cqrf.serve.app import make_app
from cqrf.serve.data_rows import AnyForest, DataRows, read_data_rows, rows_model
from cqrf.serve.effect_view import EffectView, make_effect_view
from cqrf.serve.effects import EffectRequest, estimate
from cqrf.serve.model_view import ModelView, make_view
from cqrf.serve.predictions import describe_subjects
from cqrf.serve.protocol import MAX_CONNECTIONS, LimitedProtocol
from cqrf.serve.schema import Limits

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class ServeTask(NamedTuple):
    """What to serve, and where.

    Attributes
    ----------
    path : str or None
        Table of rows to start from.
    hosts : sequence of str
        More names that requests may use for this machine.
    strict : bool
        Whether levels that training did not have are refused.
    opens : bool
        Whether to open the page in a browser.
    unit : float or None
        Times are rounded to multiples of it.
    """

    model: str
    path: str | None
    given: GivenRoles
    id_column: str | None
    host: str
    port: int
    hosts: Sequence[str]
    limits: Limits
    strict: bool
    n_jobs: int
    opens: bool
    unit: float | None = None


def serve_file(task: ServeTask) -> None:
    """Serve until stopped."""
    view = load_view(task)
    is_public = task.host not in LOOPBACK
    with bind_socket(task.host, task.port) as listener:
        compile_kernels(view)
        app = make_app(
            view,
            limits=task.limits,
            hosts=[*task.hosts, task.host, *([socket.gethostname()] if is_public else [])],
            any_address=is_public,
            strict=task.strict,
            n_jobs=task.n_jobs,
        )
        if is_public:
            print_message(
                f"Note    anyone who can reach {task.host} can send requests: there are no users "
                "and no passwords"
            )
        listener.listen(MAX_CONNECTIONS)
        run(app, listener, view.name, opens=task.opens)


def load_view(task: ServeTask) -> ModelView | EffectView:
    """The model of the file, with the rows of the table."""
    name = Path(task.model).name
    if is_treatment_file(task.model):
        if task.unit is not None:
            raise ValueError("--round is not available for a treatment forest.")
        treatment = CensoredTreatmentForest.load(task.model)
        rows = None if task.path is None else load_rows(treatment, task)
        return make_effect_view(treatment, name, rows)
    forest = CensoredQuantileForest.load(task.model)
    rows = None if task.path is None else load_rows(forest, task)
    return make_view(forest, name, rows, task.unit)


def load_rows(forest: AnyForest, task: ServeTask) -> DataRows:
    """The rows of a file, and whether they are the training rows."""
    path = str(task.path)
    names, columns = feature_names(forest), rows_model(forest).columns
    notation = Notation.from_notes(forest.notes_, task.given.encoding)
    table = read_whole(path, (*name_labels(names, columns), task.id_column), notation).table
    X = as_known(table, names, columns, path, notation)
    labels = [str(row) for row in range(1, table.num_rows + 1)]
    if task.id_column is not None:
        ids = read_ids(Rows(table, path, notation), task.id_column)
        labels = [row if label is None else label for row, label in zip(labels, ids, strict=True)]
    y = read_outcomes(forest, Rows(table, path, notation), task.given)
    rows = read_data_rows(forest, X, y, labels, name_source(path), task.id_column)
    use = describe_use(forest, rows, names_time(forest, task.given))
    print_message(f"Rows    {path}: {count(table.num_rows, 'row')}, {use}")
    return rows


def names_time(forest: AnyForest, given: GivenRoles) -> bool:
    """Whether the column of the times is known; a forest that Python saved does not name it."""
    return bool(given.time or forest.notes_.get("time"))


def describe_use(forest: AnyForest, rows: DataRows, has_time: bool) -> str:
    """What the page does with the rows."""
    if isinstance(forest, CensoredTreatmentForest):
        return "to start from"
    if rows.training is not None:
        return "the training table, so the neighbours of a subject are shown"
    if not has_time:
        return "to start from; if it is the training table, --time and --event show neighbours"
    return "to start from; not the training table, so neighbours are not shown"


def read_outcomes(forest: AnyForest, rows: Rows, given: GivenRoles) -> Any:
    """Times and events of the rows; None if the file does not have them all."""
    if not names_time(forest, given):
        return None
    causes = forest.causes_ if isinstance(forest, CensoredQuantileForest) else ()
    roles = Roles.from_notes(forest.notes_, given, causes).target
    named = (given.time, given.event, given.event_value, given.entry, given.censored)
    if all(name is None for name in named):
        names = [name for name in (roles.time, roles.event, roles.entry, roles.lower) if name]
        if any(name not in rows.table.column_names for name in names):
            return None
        if lack_outcomes(rows, roles):
            return None
    return read_target_columns(take_valid(rows, roles)[0], roles)


def lack_outcomes(rows: Rows, roles: TargetRoles) -> bool:
    """Whether a row has no time or no event; an empty cell may be an end, or mean censored."""
    if roles.lower is not None:
        ends = (rows.table.column(name).is_null() for name in (roles.lower, roles.time))
        return bool(pc.any(pc.and_(*ends)).as_py())
    event = None if roles.censored == "" else roles.event
    needed = [name for name in (roles.time, event) if name]
    return any(rows.table.column(name).null_count > 0 for name in needed)


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


def compile_kernels(view: ModelView | EffectView) -> None:
    """Predict once, so that every kernel is compiled before the first request."""
    typical = np.array([[summary.typical_number for summary in view.summaries]])
    if isinstance(view, EffectView):
        horizons = [float(view.model.follow_up)]
        estimate(view, typical, EffectRequest(horizons, view.shown_times, [0.5], 0.95, 0))
    else:
        describe_subjects(view, typical)


def run(app: Any, listener: socket.socket, name: str, *, opens: bool) -> None:
    """Say where the model is served, and serve it until Ctrl-C, which ends it with exit code 0."""
    try:
        address = format_address(listener)
        print(f"Serving {printable(name)} on {address} (Ctrl-C ends it)", flush=True)
        if opens:
            import webbrowser

            webbrowser.open(address)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            http=LimitedProtocol,
            timeout_graceful_shutdown=5,
            ws="none",
            lifespan="off",
        )
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        print_message("cqrf: stopped serving")
