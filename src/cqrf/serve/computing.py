"""Routes that compute: they read the body themselves, and compute rows in blocks.

FastAPI documents these routes. A request does not pass its layers, which take as long as a
prediction: the middleware has read the body, and :meth:`ComputingRoute.respond` does the rest.

Rows are computed in blocks of some 30 ms, one block of each request in turn, so that a request for
one row does not wait for a thousand others. Before each block the server looks whether the client
is still there. A request that takes less than handing it to a thread is computed where it is read.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

import anyio.to_thread
import numpy as np
from anyio import CapacityLimiter
from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from cqrf._model.fitted import Model
from cqrf.serve import schema
from cqrf.serve.responses import BUSY, PlainJson, refuse
from cqrf.serve.values import MAX_PROBLEMS, Problem, RequestError

Result = TypeVar("Result")

MAX_WAITING = 128  # requests that wait for a thread
# Work is counted in rows of leaves that are read: a thousand of them take about a microsecond.
BLOCK_WORK = 30_000_000
INLINE_WORK = 300_000
EFFECT_WORK = BLOCK_WORK / 200  # of a row: much of the work of a block is the same for any size
VALUE_WORK = 2_000  # of a predicted value, as Python makes an object of JSON of it


class ClientGoneError(Exception):
    """The client has closed the connection: nobody reads the response."""


class WorkerThreads:
    """Threads that compute responses, with a queue of limited length."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self.turns: CapacityLimiter | None = None
        self.threads: CapacityLimiter | None = None

    async def run(self, task: Callable[[], Result], work: float, request: Request) -> Result:
        """Result of a task; ClientGoneError if nobody waits for it once it is its turn."""
        if work <= INLINE_WORK:
            return task()
        if self.turns is None or self.threads is None:
            self.turns = CapacityLimiter(self.n_threads)
            self.threads = CapacityLimiter(self.n_threads)
        if self.turns.statistics().tasks_waiting >= MAX_WAITING:
            raise RequestError(
                Problem("too many requests at once: try again in a second."), status=BUSY
            )
        must_wait = self.turns.available_tokens == 0
        async with self.turns:
            if must_wait:
                await check_client(request)
            return await anyio.to_thread.run_sync(task, limiter=self.threads)

    async def run_blocks(
        self, task: Callable[[slice], list[Any]], n_rows: int, row_work: float, request: Request
    ) -> list[Any]:
        """What a task gives for all rows, from blocks of them."""
        size, parts = max(1, int(BLOCK_WORK / row_work)), list[Any]()
        for start in range(0, n_rows, size):
            if start > 0:
                await check_client(request)
            rows = slice(start, min(start + size, n_rows))
            work = row_work * (rows.stop - start)
            parts += await self.run(functools.partial(task, rows), work, request)
        return parts


async def check_client(request: Request) -> None:
    """Raise ClientGoneError if nobody waits for the response."""
    if await request.is_disconnected():
        raise ClientGoneError


def count_leaf_rows(model: Model) -> float:
    """Training rows that the leaves of a query hold together, on average over training rows."""
    sizes = np.diff(model.forest.nodes.leaf_offsets).astype(np.float64)
    return float(len(model.forest.roots) * (sizes**2).sum() / max(1.0, sizes.sum()))


class ComputingRoute(NamedTuple):
    """A route that computes.

    Attributes
    ----------
    kind : type of BaseModel
        What the body must be.
    compute : function
        Response to such a body.
    """

    kind: type[BaseModel]
    compute: Callable[[Any, Request], Awaitable[PlainJson]]

    async def respond(self, body: bytes, request: Request) -> PlainJson:
        """Response to a body, or the problems with it; ClientGoneError if nobody waits for it."""
        try:
            return await self.compute(self.read(body), request)
        except RequestError as error:
            return refuse(error)

    def read(self, body: bytes) -> BaseModel:
        """The body as it must be."""
        try:
            content = json.loads(body) if body else None
        except json.JSONDecodeError as error:
            raise RequestError(Problem(f"the body is not JSON: {error.msg}.")) from None
        except (ValueError, RecursionError):
            message = "the body cannot be read: it must be JSON in UTF-8, not deeply nested."
            raise RequestError(Problem(message), status=400) from None
        unknown = content.keys() - self.kind.model_fields if isinstance(content, dict) else ()
        if len(unknown) > MAX_PROBLEMS:
            message = f"the body: it has {len(unknown):,} fields that are not known."
            raise RequestError(Problem(message))
        try:
            return self.kind.model_validate(content)
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False)[:MAX_PROBLEMS]
            raise RequestError(*(describe_problem(each) for each in found)) from None


def describe_problem(error: Any) -> Problem:
    """A validation error of pydantic as a problem, with its place in the body."""
    place, text = list(error["loc"]), str(error["msg"])
    field = ""
    for step in (step for step in place if step not in (schema.FOR_ALL, schema.FOR_EACH)):
        field += f"[{step}]" if isinstance(step, int) else f".{step}" if field else str(step)
    text = text[:1].lower() + text[1:]
    row = place[1] if place[:1] in (["rows"], ["subjects"]) and len(place) > 1 else None
    return Problem(f"{field or 'the body'}: {text}.", field or None, row)
