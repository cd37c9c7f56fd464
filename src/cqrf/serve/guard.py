"""The guard: before every request, whether it may come in; after it, what browsers must hold to."""

from __future__ import annotations

import ipaddress
import json
import sys
from collections.abc import Iterable, MutableMapping, Sequence
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cqrf.serve.values import Problem

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
LOCAL = ("localhost", "127.0.0.1", "::1")
DRAINED = 16  # a body up to so many times the limit is read to its end, so that the answer arrives


class PlainJson(JSONResponse):
    """JSON in ASCII, which cannot hold NaN or infinity."""

    def render(self, content: Any) -> bytes:
        """Bytes of the content."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def refuse(
    status: int, problems: Sequence[Problem], headers: MutableMapping[str, str] | None = None
) -> PlainJson:
    """The answer to a request that is refused."""
    listed = [problem._asdict() for problem in problems]
    content = {"error": problems[0].message, "problems": listed}
    return PlainJson(content, status, dict(headers or {}))


class Guard:
    """Checks the host, the type and the size of what comes in, and adds headers to what goes out.

    Names that are no address of this machine are refused, so that a foreign page whose name
    was made to point here cannot ask in a visitor's name.
    """

    def __init__(
        self, app: ASGIApp, *, hosts: Iterable[str], any_address: bool, max_bytes: int
    ) -> None:
        self.app, self.hosts, self.any_address = app, frozenset(hosts), any_address
        self.max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        headers = Headers(scope=scope)
        answer = self.check_host(headers) or check_type(scope["method"], headers)
        body = b""
        if answer is None and scope["method"] == "POST":
            read = await self.read_body(headers, receive)
            if read is None:
                return
            answer = read if isinstance(read, PlainJson) else None
            body = read if isinstance(read, bytes) else b""
        if answer is not None:
            await answer(scope, receive, send_guarded)
            return
        given = scope["method"] == "POST"

        async def replay() -> Message:
            nonlocal given
            if not given:
                return await receive()
            given = False
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, replay, send_guarded)

    def check_host(self, headers: Headers) -> PlainJson | None:
        """Refuse a name that was not allowed."""
        host = split_host(headers.get("host", ""))
        if host in self.hosts or (self.any_address and is_address(host)):
            return None
        message = (
            f"the host {host[:80]!r} is not served here: use localhost, or start the server "
            "with --allow-host."
        )
        return refuse(400, [Problem(message, "Host")])

    async def read_body(self, headers: Headers, receive: Receive) -> bytes | PlainJson | None:
        """The whole body; a refusal if it is too large, None if the sender has gone."""
        text = headers.get("content-length", "0")
        stated = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else sys.maxsize
        parts: list[bytes] = []
        too_large, patience = stated > self.max_bytes, DRAINED * self.max_bytes
        size, more = 0, stated <= patience
        while more and size <= patience:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part = message.get("body", b"")
            size += len(part)
            too_large = too_large or size > self.max_bytes
            if too_large:
                parts.clear()
            else:
                parts.append(part)
            more = message.get("more_body", False)
        if too_large:
            said = f"the body has more than {self.max_bytes:,} bytes: send fewer rows at a time."
            return refuse(413, [Problem(said)], {"Connection": "close"})
        return b"".join(parts)


def check_type(method: str, headers: Headers) -> PlainJson | None:
    """Refuse what is not said to be JSON: no foreign page may send that unasked."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if method != "POST" or kind == "application/json":
        return None
    message = "send JSON, with the header Content-Type: application/json."
    return refuse(415, [Problem(message, "Content-Type")])


def split_host(host: str) -> str:
    """A Host header without its port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if ":" in host else host.lower()


def is_address(host: str) -> bool:
    """Whether a host is a number, which nobody can make point elsewhere."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
