"""The routes: the page and its files, and the JSON API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import anyio.to_thread
from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from joblib import effective_n_jobs
from pydantic import BaseModel
from starlette.exceptions import HTTPException

import cqrf
from cqrf._views.pages import read_asset, read_shared_asset
from cqrf.serve import effect_schema, schema
from cqrf.serve.computing import (
    EFFECT_WORK,
    VALUE_WORK,
    ComputingRoute,
    WorkerThreads,
    count_leaf_rows,
)
from cqrf.serve.curve_times import choose_curve_times
from cqrf.serve.data_rows import find_row, search_rows
from cqrf.serve.description import describe_confidence, describe_model
from cqrf.serve.effect_openapi import write_effect_document
from cqrf.serve.effect_view import EffectView, describe_effect_model
from cqrf.serve.effects import EffectRequest, check_horizons, effect_rows, join_effects
from cqrf.serve.middleware import LOCAL, SecurityMiddleware
from cqrf.serve.model_view import N_TIMES, ModelView
from cqrf.serve.openapi import write_document
from cqrf.serve.predictions import (
    CONFIDENCE,
    PredictionRequest,
    check_given,
    describe_subjects,
    predict_rows,
    round_request,
)
from cqrf.serve.responses import BUSY, PlainJson, error_response, refuse, report_internal_error
from cqrf.serve.schema import Limits
from cqrf.serve.values import Problem, RequestError, read_rows

Responses = dict[int | str, dict[str, Any]]
Routes = dict[str, ComputingRoute]

MAX_ROWS, MAX_BYTES, MAX_VALUES = 1000, 1_000_000, 50_000
SCRIPT, STYLE, PAGE = "text/javascript", "text/css", "text/html"
# Path, file and media type of everything that a browser may load.
ASSETS = {
    "/": ("index.html", PAGE),
    "/docs": ("docs.html", PAGE),
    "/page.css": ("page.css", STYLE),
    "/controls.js": ("controls.js", SCRIPT),
    "/words.js": ("words.js", SCRIPT),
    "/curves.js": ("curves.js", SCRIPT),
    "/incidence.js": ("incidence.js", SCRIPT),
    "/link.js": ("link.js", SCRIPT),
    "/page.js": ("page.js", SCRIPT),
    "/docs.js": ("docs.js", SCRIPT),
}
CURVE_SCRIPTS = ("/curves.js", "/incidence.js")
EFFECT_ASSETS = {
    **{path: asset for path, asset in ASSETS.items() if path not in CURVE_SCRIPTS},
    "/": ("effects.html", PAGE),
    "/effects.css": ("effects.css", STYLE),
    "/effects.js": ("effects.js", SCRIPT),
}
# Those that reports have as well.
SHARED_ASSETS = {
    "/base.css": ("base.css", STYLE),
    "/arms.css": ("arms.css", STYLE),
    "/elements.js": ("elements.js", SCRIPT),
    "/charts.js": ("charts.js", SCRIPT),
    "/causes.js": ("causes.js", SCRIPT),
    "/outcomes.js": ("outcomes.js", SCRIPT),
    "/arms.js": ("arms.js", SCRIPT),
}


def make_app(
    view: ModelView | EffectView,
    *,
    limits: Limits | None = None,
    hosts: Sequence[str] = (),
    any_address: bool = False,
    strict: bool = False,
    n_jobs: int | None = -1,
) -> SecurityMiddleware:
    """The application, behind its security middleware.

    Parameters
    ----------
    view : ModelView or EffectView
        The model to serve: a forest, or a treatment forest.
    limits : Limits, optional
        Limits of one request.
    hosts : sequence of str
        Hosts that requests may name, beside localhost and its addresses.
    any_address : bool
        Whether requests may name any IP address as host.
    strict : bool
        Whether a level that training did not have is refused, not treated as missing.
    n_jobs : int, optional
        Requests that are computed at the same time.
    """
    limits = limits or Limits(rows=MAX_ROWS, bytes=MAX_BYTES, values=MAX_VALUES)
    app = FastAPI(
        title="cqrf",
        version=cqrf.__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        default_response_class=PlainJson,
        responses={400: _error("The host is not allowed, or the body cannot be read.")},
    )
    _add_handlers(app)
    threads = WorkerThreads(effective_n_jobs(n_jobs))
    routes: Routes = {}
    document = _add_routes(app, routes, view, limits, threads, strict=strict)

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> PlainJson:
        return PlainJson(document)

    allowed = {*LOCAL, *(host.lower() for host in hosts)}
    return SecurityMiddleware(
        app, routes, hosts=allowed, any_address=any_address, max_bytes=limits.bytes
    )


def _add_routes(
    app: FastAPI,
    routes: Routes,
    view: ModelView | EffectView,
    limits: Limits,
    threads: WorkerThreads,
    *,
    strict: bool,
) -> dict[str, Any]:
    """Add all routes but that of the OpenAPI document, which is returned."""
    # Routes are compared with a request in this order: those that compute come first.
    if isinstance(view, EffectView):
        _add_effects(app, routes, view, limits, threads, strict=strict)
        _refuse_predictions(app)
        content = describe_effect_model(view, limits)
        _add_description(app, content, effect_schema.EffectModelDescription)
        _add_rows(app, view, strict=strict)
        _add_assets(app, EFFECT_ASSETS)
        return write_effect_document(app, view, limits, strict=strict)
    _add_predictions(app, routes, view, limits, threads, strict=strict)
    _add_description(app, describe_model(view, limits), schema.ModelDescription)
    _add_rows(app, view, strict=strict)
    _add_assets(app, ASSETS)
    return write_document(app, view, limits, strict=strict)


def _add_predictions(
    app: FastAPI,
    routes: Routes,
    view: ModelView,
    limits: Limits,
    threads: WorkerThreads,
    *,
    strict: bool,
) -> None:
    errors, columns, leaf_rows = _list_errors(), view.columns, count_leaf_rows(view.model)
    read_work = len(columns) * VALUE_WORK

    @app.post("/predict", response_model=schema.PredictResponse, responses=errors, tags=["forest"])
    async def predict(body: schema.PredictRequest, request: Request) -> PlainJson:
        """Quantiles, intervals, survival probabilities and restricted means of rows.

        If the model tells causes apart, also the incidence of each cause.
        """
        asked = round_request(view, read_request(body, len(view.model.causes)))
        _check_size(len(body.rows), asked, limits)
        check_given(view, asked.given, len(body.rows))

        n_rows = len(body.rows)
        read = await threads.run(
            lambda: read_rows(body.rows, columns, strict=strict), n_rows * read_work, request
        )
        rows = await threads.run_blocks(
            lambda rows: predict_rows(view, read.take(rows), asked.take(rows)),
            n_rows,
            asked.work(leaf_rows),
            request,
        )
        confidence = describe_confidence(view, body.confidence, is_given=body.given is not None)
        return PlainJson({"rows": rows, "confidence": confidence})

    @app.post("/subjects", response_model=schema.SubjectsResponse, responses=errors, tags=["page"])
    async def subjects(body: schema.SubjectsRequest, request: Request) -> PlainJson:
        """Curves, quantiles and neighbours of one or two subjects."""

        def respond() -> PlainJson:
            rows = read_rows(body.subjects, columns, "subjects", strict=True)
            given = None if body.given is None else float(view.round(body.given))
            times = choose_curve_times(view, rows.matrix, given)
            return PlainJson(
                {
                    "times": times.tolist(),
                    "given": given,
                    "confidence": describe_confidence(view, CONFIDENCE, is_given=given is not None),
                    "subjects": describe_subjects(view, rows.matrix, given, times),
                }
            )

        return await threads.run(respond, 2 * N_TIMES * leaf_rows, request)

    routes["/predict"] = ComputingRoute(schema.PredictRequest, predict)
    routes["/subjects"] = ComputingRoute(schema.SubjectsRequest, subjects)


def read_request(body: schema.PredictRequest, n_causes: int) -> PredictionRequest:
    """What is predicted for every row of a request."""
    return PredictionRequest(
        body.quantiles,
        body.times,
        body.intervals,
        body.confidence,
        body.horizons,
        body.given,
        n_causes=n_causes,
    )


def _add_effects(
    app: FastAPI,
    routes: Routes,
    view: EffectView,
    limits: Limits,
    threads: WorkerThreads,
    *,
    strict: bool,
) -> None:
    answer, default = effect_schema.EffectsResponse, float(view.model.follow_up)
    columns, read_work = view.columns, len(view.columns) * VALUE_WORK

    @app.post("/effects", response_model=answer, responses=_list_errors(), tags=["forest"])
    async def effects(body: effect_schema.EffectsRequest, request: Request) -> PlainJson:
        """Time gained, differences of survival and of quantiles, and curves of both arms."""
        horizons = [default] if body.horizons is None else body.horizons
        n_times = len(view.times) if body.curves else 0
        asked = EffectRequest(horizons, body.times, body.quantiles, body.confidence, n_times)
        _check_size(len(body.rows), asked, limits)
        check_horizons(view, asked.horizons)

        n_rows = len(body.rows)
        read = await threads.run(
            lambda: read_rows(body.rows, columns, strict=strict), n_rows * read_work, request
        )
        rows = await threads.run_blocks(
            lambda rows: effect_rows(view, read.take(rows), asked),
            n_rows,
            EFFECT_WORK,
            request,
        )
        return PlainJson(join_effects(view, asked, rows))

    routes["/effects"] = ComputingRoute(effect_schema.EffectsRequest, effects)


def _refuse_predictions(app: FastAPI) -> None:
    async def refuse() -> Response:
        message = "this server has a treatment forest: send rows to POST /effects."
        raise RequestError(Problem(message), status=404)

    for path in ("/predict", "/subjects"):
        app.add_api_route(path, refuse, methods=["GET", "POST"], include_in_schema=False)


def _list_errors() -> Responses:
    """Errors of routes that read rows."""
    return {
        413: _error("The body is too large."),
        415: _error("The content type is not JSON."),
        422: _error("A field, a row or a column is wrong; the message names it."),
        BUSY: _error("Too many requests at once."),
    }


def _check_size(n_rows: int, request: PredictionRequest | EffectRequest, limits: Limits) -> None:
    if n_rows > limits.rows:
        message = f"rows: {n_rows:,} rows are more than {limits.rows:,}: send them in parts."
        raise RequestError(Problem(message, "rows"))
    if n_rows * request.n_values > limits.values:
        advice = "send fewer rows, quantiles, times or horizons"
        if isinstance(request, EffectRequest) and request.n_curve_times:
            advice += ', or "curves": false'
        raise RequestError(
            Problem(
                f"rows: {n_rows:,} rows with {request.n_values:,} values each are more than "
                f"{limits.values:,} values: {advice}.",
                "rows",
            )
        )


def _add_description(app: FastAPI, description: dict[str, Any], kind: type[BaseModel]) -> None:
    health_content = {"status": "ok", "version": cqrf.__version__}  # reading the version is slow

    @app.get("/model", response_model=kind, tags=["forest"])
    async def model() -> PlainJson:
        """Columns, ranges, categories, version, and how it was fitted."""
        return PlainJson(description)

    @app.get("/healthz", response_model=schema.Health, tags=["server"])
    async def health() -> PlainJson:
        """Whether the server is running."""
        return PlainJson(health_content)


def _add_rows(app: FastAPI, view: ModelView | EffectView, *, strict: bool) -> None:
    no_row: Responses = {404: _error("There is no such row, or the server has no table.")}
    wrong_row = "Row numbers are whole numbers. With --strict: a level that training did not have."

    @app.get(
        "/rows",
        response_model=schema.RowLabels,
        responses={**no_row, 422: _error("The search is too long.")},
        tags=["page"],
    )
    async def rows(search: Annotated[str, Query(max_length=200)] = "") -> PlainJson:
        """Rows of the table whose label contains a text."""
        found = await anyio.to_thread.run_sync(lambda: search_rows(view.data, search))
        return PlainJson(found)

    @app.get(
        "/rows/{row}",
        response_model=schema.DataRow,
        responses={**no_row, 422: _error(wrong_row)},
        tags=["page"],
    )
    async def one_row(row: int) -> PlainJson:
        """A row of the table, by its number from 1."""
        return PlainJson(find_row(view.data, row, view.columns, strict=strict))


def _add_assets(app: FastAPI, assets: dict[str, tuple[str, str]]) -> None:
    for path, (name, kind) in assets.items():
        text = read_asset("cqrf.serve", name)
        app.add_api_route(path, _serve_text(text, kind), include_in_schema=False)
    for path, (name, kind) in SHARED_ASSETS.items():
        app.add_api_route(path, _serve_text(read_shared_asset(name), kind), include_in_schema=False)


def _serve_text(text: str, kind: str) -> Callable[[], Any]:
    async def serve() -> Response:
        return Response(text, media_type=kind)

    return serve


def _add_handlers(app: FastAPI) -> None:
    @app.exception_handler(RequestError)
    async def refused(_: Request, error: RequestError) -> Response:
        return refuse(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        # Only parameters of GET come here; routes that compute read their bodies themselves.
        first = error.errors()[0]
        field, text = str(first["loc"][-1]), str(first["msg"])
        text = f"{field}: {text[:1].lower()}{text[1:]}."
        return error_response(422, [Problem(text, field)])

    @app.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> Response:
        message = f"{str(error.detail).rstrip('.').lower()}."
        return error_response(error.status_code, [Problem(message)], dict(error.headers or {}))

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> Response:
        return report_internal_error()


def _error(description: str) -> dict[str, Any]:
    return {"model": schema.ErrorResponse, "description": description}
