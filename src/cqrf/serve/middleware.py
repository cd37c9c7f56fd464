"""Middleware: checks of host, content type and size before, security headers after a request."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import sys
from collections.abc import Iterable, Mapping

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cqrf.serve.computing import ClientGoneError, ComputingRoute
from cqrf.serve.responses import PlainJson, error_response, report_internal_error
from cqrf.serve.values import Problem

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
]
HOST = re.compile(r"(\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[^\[\]:@/\s]*))(:[0-9]*)?")
LOCAL = ("localhost", "127.0.0.1", "::1")
BODY_SECONDS = 20  # in which a body must arrive
DRAIN_FACTOR = 16  # a body up to this times the limit is read, so that the client gets the answer


class SecurityMiddleware:
    """Checks host, content type and size of a request, and adds security headers to responses.

    A ``Host`` that is not allowed is refused: a page of another site cannot reach the server by
    a name that was made to point to this machine (DNS rebinding).
    """

    def __init__(
        self,
        app: ASGIApp,
        routes: Mapping[str, ComputingRoute],
        *,
        hosts: Iterable[str],
        any_address: bool,
        max_bytes: int,
    ) -> None:
        self.app, self.routes, self.max_bytes = app, routes, max_bytes
        self.hosts, self.any_address = frozenset(hosts), any_address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it here."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def add_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        send_with_headers: Send = add_headers
        if scope["method"] == "HEAD":
            scope, send_with_headers = {**scope, "method": "GET"}, without_body(send_with_headers)
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
            await answer(scope, receive, send_with_headers)
            return
        if scope["method"] == "POST" and scope["path"] in self.routes:
            route, request = self.routes[scope["path"]], Request(scope, receive)
            await self.compute(route, body, request, send_with_headers)
            return
        is_unread = scope["method"] == "POST"

        async def replay() -> Message:
            nonlocal is_unread
            if not is_unread:
                return await receive()
            is_unread = False
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, replay, send_with_headers)

    async def compute(
        self, route: ComputingRoute, body: bytes, request: Request, send: Send
    ) -> None:
        """Send the response of a route that computes; an error is sent, and raised for the log."""
        try:
            answer = await route.respond(body, request)
        except ClientGoneError:
            return
        except Exception:
            await report_internal_error()(request.scope, request.receive, send)
            raise
        await answer(request.scope, request.receive, send)

    def check_host(self, headers: Headers) -> PlainJson | None:
        """Refuse a host that is not allowed."""
        given = headers.getlist("host")
        host = split_host(given[0]) if len(given) == 1 else ""
        if host in self.hosts or (self.any_address and is_address(host)):
            return None
        message = (
            f"the host {host[:80]!r} is not allowed: use localhost, or start the server with "
            "--allow-host."
        )
        return error_response(400, [Problem(message, "Host")])

    async def read_body(self, headers: Headers, receive: Receive) -> bytes | PlainJson | None:
        """The whole body; an error response if it is too large, None if the client has gone."""
        text = headers.get("content-length", "0")
        stated = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else sys.maxsize
        parts: list[bytes] = []
        too_large, max_read = stated > self.max_bytes, DRAIN_FACTOR * self.max_bytes
        size, more = 0, stated <= max_read
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while more and size <= max_read:
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
        except TimeoutError:
            text = f"the body was not complete after {BODY_SECONDS} seconds."
            return error_response(408, [Problem(text)], {"Connection": "close"})
        if too_large:
            text = f"the body has more than {self.max_bytes:,} bytes: send fewer rows at a time."
            return error_response(413, [Problem(text)], {"Connection": "close"})
        return b"".join(parts)


def without_body(send: Send) -> Send:
    """A way to send the headers of a response only."""

    async def send_headers(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return send_headers


def check_type(method: str, headers: Headers) -> PlainJson | None:
    """Refuse other types than JSON, which pages of other origins cannot send without CORS."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if method != "POST" or kind == "application/json":
        return None
    message = "send JSON, with the header Content-Type: application/json."
    return error_response(415, [Problem(message, "Content-Type")])


def split_host(host: str) -> str:
    """A Host header without its port and brackets; empty if it is not as it should be."""
    found = HOST.fullmatch(host)
    if found is None:
        return ""
    address = found["address"]
    if address is None:
        return found["name"].lower()
    return address.lower() if ":" in address and is_address(address) else ""


def is_address(host: str) -> bool:
    """Whether a host is an IP address, which no name server resolves."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
