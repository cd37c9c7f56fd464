"""The routes: a page for people, JSON for programs, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Annotated, Any, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter
from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from joblib import effective_n_jobs
from starlette.exceptions import HTTPException

import cqrf
from cqrf.report.page import read_part
from cqrf.serve import facts, schema
from cqrf.serve.answers import CONFIDENCE, Question, describe_subjects, predict_rows
from cqrf.serve.guard import LOCAL, Guard, PlainJson, refuse
from cqrf.serve.openapi import write_document
from cqrf.serve.schema import Limits, Problems
from cqrf.serve.served import Served
from cqrf.serve.values import MOST_PROBLEMS, Problem, RefusedError, read_rows

Result = TypeVar("Result")
Responses = dict[int | str, dict[str, Any]]

MAX_ROWS, MAX_BYTES, MAX_ANSWERS = 1000, 1_000_000, 50_000
MOST_WAITING = 128  # requests that wait for a thread
BUSY = 503
SCRIPT, STYLE, PAGE = "text/javascript", "text/css", "text/html"
# What a browser may load, and where it stands: our own files, and those of the report.
ASSETS = {
    "/": ("index.html", PAGE),
    "/docs": ("docs.html", PAGE),
    "/page.css": ("page.css", STYLE),
    "/controls.js": ("controls.js", SCRIPT),
    "/pictures.js": ("pictures.js", SCRIPT),
    "/link.js": ("link.js", SCRIPT),
    "/page.js": ("page.js", SCRIPT),
    "/docs.js": ("docs.js", SCRIPT),
}
SHARED = {"/look.css": ("page.css", STYLE), "/charts.js": ("charts.js", SCRIPT)}


def make_app(
    served: Served,
    *,
    limits: Limits | None = None,
    hosts: Sequence[str] = (),
    any_address: bool = False,
    n_jobs: int | None = -1,
) -> Guard:
    """The application, with the guard before it.

    Parameters
    ----------
    served : Served
        What is served.
    limits : Limits, optional
        What one request may ask.
    hosts : sequence of str
        Names by which it may be called, beside those of this machine for itself.
    any_address : bool
        Whether it may be called by any address that is a number.
    n_jobs : int, optional
        Answers that are computed at the same time.
    """
    limits = limits or Limits(rows=MAX_ROWS, bytes=MAX_BYTES, answers=MAX_ANSWERS)
    app = FastAPI(
        title="cqrf",
        version=cqrf.__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        default_response_class=PlainJson,
        responses={400: _refusal("Not meant for this server, or not readable.")},
    )
    _add_handlers(app)
    _add_files(app)
    _add_answers(app, served, limits, Threads(effective_n_jobs(n_jobs)))
    _add_facts(app, served, limits)
    document = write_document(app, served, limits)

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> PlainJson:
        return PlainJson(document)

    allowed = {*LOCAL, *(host.lower() for host in hosts)}
    return Guard(app, hosts=allowed, any_address=any_address, max_bytes=limits.bytes)


class Threads:
    """A few threads that answer, and a queue before them that does not grow without end."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self.limiter: CapacityLimiter | None = None

    async def run(self, work: Callable[[], Result]) -> Result:
        """What the work gives, in its turn."""
        if self.limiter is None:
            self.limiter = CapacityLimiter(self.n_threads)
        if self.limiter.statistics().tasks_waiting >= MOST_WAITING:
            raise RefusedError(
                Problem("too many requests at once: try again in a second."), status=BUSY
            )
        return await anyio.to_thread.run_sync(work, limiter=self.limiter)


def _add_answers(app: FastAPI, served: Served, limits: Limits, threads: Threads) -> None:
    refusals: Responses = {
        413: _refusal("The body is too large."),
        415: _refusal("The body is not said to be JSON."),
        422: _refusal("A field, a row or a column is wrong; it is named."),
        BUSY: _refusal("Too many requests at once."),
    }

    @app.post("/predict", response_model=schema.Answered, responses=refusals, tags=["forest"])
    async def predict(asked: schema.Asked) -> PlainJson:
        """Quantiles, intervals and survival of rows."""
        question = Question(asked.quantiles, asked.times, asked.intervals, asked.confidence)
        _check_size(len(asked.rows), question, limits)

        def answer() -> PlainJson:
            matrix = read_rows(asked.rows, served.kinds)
            rows = predict_rows(served, matrix, question)
            confidence = facts.say_confidence(served, asked.confidence)
            return PlainJson({"rows": rows, "confidence": confidence})

        return await threads.run(answer)

    @app.post("/subjects", response_model=schema.Subjects, responses=refusals, tags=["page"])
    async def compare(compared: schema.Compared) -> PlainJson:
        """One or two subjects with curves and the training rows that speak for them."""

        def answer() -> PlainJson:
            matrix = read_rows(compared.subjects, served.kinds, "subjects")
            return PlainJson(
                {
                    "times": served.times.tolist(),
                    "confidence": facts.say_confidence(served, CONFIDENCE),
                    "subjects": describe_subjects(served, matrix),
                }
            )

        return await threads.run(answer)


def _check_size(n_rows: int, question: Question, limits: Limits) -> None:
    if n_rows > limits.rows:
        message = f"rows: {n_rows:,} rows are more than {limits.rows:,}: send them in parts."
        raise RefusedError(Problem(message, "rows"))
    if n_rows * question.n_answers > limits.answers:
        raise RefusedError(
            Problem(
                f"rows: {n_rows:,} rows with {question.n_answers:,} answers each are more than "
                f"{limits.answers:,} answers: send fewer rows, quantiles or times.",
                "rows",
            )
        )


def _add_facts(app: FastAPI, served: Served, limits: Limits) -> None:
    described = facts.describe_model(served, limits)
    no_row: Responses = {404: _refusal("There is no such row, or no table was given.")}

    @app.get("/model", response_model=schema.ModelFacts, tags=["forest"])
    async def model() -> PlainJson:
        """Columns, ranges, categories, version, and how it was fitted."""
        return PlainJson(described)

    @app.get("/healthz", response_model=schema.Health, tags=["server"])
    async def health() -> PlainJson:
        """Whether the server is there."""
        return PlainJson({"status": "ok", "version": cqrf.__version__})

    @app.get(
        "/rows",
        response_model=schema.RowLabels,
        responses={**no_row, 422: _refusal("The search is too long.")},
        tags=["page"],
    )
    async def rows(search: Annotated[str, Query(max_length=200)] = "") -> PlainJson:
        """Rows of the table, by their labels."""
        found = await anyio.to_thread.run_sync(lambda: facts.search_rows(served, search))
        return PlainJson(found)

    @app.get(
        "/rows/{row}",
        response_model=schema.DataRow,
        responses={**no_row, 422: _refusal("Rows have whole numbers.")},
        tags=["page"],
    )
    async def one_row(row: int) -> PlainJson:
        """A row of the table, by its number from 1."""
        return PlainJson(facts.find_row(served, row))


def _add_files(app: FastAPI) -> None:
    parts = {path: (_read_own(name), kind) for path, (name, kind) in ASSETS.items()}
    parts |= {path: (read_part(name), kind) for path, (name, kind) in SHARED.items()}
    for path, (text, kind) in parts.items():
        app.add_api_route(path, _serve_text(text, kind), include_in_schema=False)


def _serve_text(text: str, kind: str) -> Callable[[], Any]:
    async def serve() -> Response:
        return Response(text, media_type=kind)

    return serve


def _read_own(name: str) -> str:
    return (files("cqrf.serve") / "page" / name).read_text(encoding="utf-8")


def _add_handlers(app: FastAPI) -> None:
    @app.exception_handler(RefusedError)
    async def refused(_: Request, error: RefusedError) -> Response:
        return refuse(
            error.status, error.problems, {"Retry-After": "1"} if error.status == 503 else None
        )

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        return refuse(422, [_name_problem(each) for each in error.errors()[:MOST_PROBLEMS]])

    @app.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> Response:
        message = f"{str(error.detail).rstrip('.').lower()}."
        return refuse(error.status_code, [Problem(message)], dict(error.headers or {}))

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> Response:
        return refuse(500, [Problem("something broke in the server; its log says what.")])


def _name_problem(error: Any) -> Problem:
    """What the validation of a body found, with its place in words."""
    place, text = list(error["loc"]), str(error["msg"])
    if error["type"] == "json_invalid":
        return Problem(f"the body is not JSON: {error.get('ctx', {}).get('error', text)}.")
    field = ""
    for step in place[1:]:
        field += f"[{step}]" if isinstance(step, int) else f".{step}" if field else str(step)
    text = text[:1].lower() + text[1:]
    row = place[2] if place[1:2] in (["rows"], ["subjects"]) and len(place) > 2 else None
    return Problem(f"{field or 'the body'}: {text}.", field or None, row)


def _refusal(description: str) -> dict[str, Any]:
    return {"model": Problems, "description": description}
