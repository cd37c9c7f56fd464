"""Responses in JSON, of requests that are answered and of those that are refused."""

from __future__ import annotations

import json
from collections.abc import MutableMapping, Sequence
from typing import Any

from pydantic_core import PydanticSerializationError, to_json
from starlette.responses import JSONResponse

from cqrf.serve.values import Problem, RequestError

BUSY = 503


class PlainJson(JSONResponse):
    """JSON; raises an error for NaN and infinity."""

    def render(self, content: Any) -> bytes:
        """Bytes of the content."""
        try:
            written = to_json(content, inf_nan_mode="constants")  # six times as fast as json
        except PydanticSerializationError:  # text that is not Unicode, from a request
            return write_slowly(content)
        has_constant = b"NaN" in written or b"Infinity" in written  # as text, or as a number
        return write_slowly(content) if has_constant else written


def write_slowly(content: Any) -> bytes:
    """JSON in ASCII of any text; raises an error for NaN and infinity."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def error_response(
    status: int, problems: Sequence[Problem], headers: MutableMapping[str, str] | None = None
) -> PlainJson:
    """Response to a request that is refused."""
    listed = [problem._asdict() for problem in problems]
    content = {"error": problems[0].message, "problems": listed}
    return PlainJson(content, status, dict(headers or {}))


def refuse(error: RequestError) -> PlainJson:
    """Response to a request with problems."""
    retry = {"Retry-After": "1"} if error.status == BUSY else None
    return error_response(error.status, error.problems, retry)


def report_internal_error() -> PlainJson:
    """Response to a request that failed here."""
    return error_response(500, [Problem("internal error; the log of the server has details.")])
