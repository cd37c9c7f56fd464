"""Connections: how many there may be, how long a request may take to arrive, how long it may be.

A subclass of uvicorn's protocol. Beyond the limits, and for what is not HTTP, it sends the same
headers as every other response.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from cqrf.serve.middleware import HEADERS

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as Protocol
else:
    from uvicorn.protocols.http.auto import AutoHTTPProtocol as Protocol

MAX_CONNECTIONS = 512
MAX_PER_ADDRESS = 256
MAX_HEAD = 65_536  # bytes of the first line and the headers of a request
REQUEST_SECONDS = 20  # in which the first line and the headers of a request must arrive

open_by_address: Counter[str] = Counter()


class LimitedProtocol(Protocol):
    """A connection that is closed if there are too many, or if a request arrives too slowly."""

    address = ""
    waiting: asyncio.TimerHandle | None = None
    head_size = 0  # bytes of a request whose headers are not complete

    def connection_made(self, transport: Any) -> None:
        """Count the connection; refuse it if there are too many."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        open_by_address[self.address] += 1
        if (
            len(self.connections) > MAX_CONNECTIONS
            or open_by_address[self.address] > MAX_PER_ADDRESS
        ):
            self.refuse(503, "too many connections: try again in a second.")
        else:
            self.wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        open_by_address[self.address] -= 1
        if open_by_address[self.address] <= 0:
            del open_by_address[self.address]
        self.stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, and wait for the rest of a request that is not complete yet."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.is_idle():
            self.head_size += len(data)
            if self.head_size > MAX_HEAD:
                self.refuse(431, f"the headers have more than {MAX_HEAD:,} bytes.")
            else:
                self.wait()
        else:
            self.head_size = 0
            self.stop_waiting()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self.refuse(400, "the request is not HTTP.")

    def is_idle(self) -> bool:
        """Whether no request has begun, or all have been answered."""
        return self.cycle is None or self.cycle.response_complete

    def wait(self) -> None:
        """Close the connection if no request is complete in time."""
        if self.waiting is None:
            self.waiting = self.loop.call_later(REQUEST_SECONDS, self.give_up)

    def stop_waiting(self) -> None:
        """A request has arrived."""
        if self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None

    def give_up(self) -> None:
        """Refuse a request that did not arrive in time."""
        if self.is_idle() and not self.transport.is_closing():
            self.refuse(408, f"no request in {REQUEST_SECONDS} seconds.")

    def refuse(self, status: int, message: str) -> None:
        """Send an error and close the connection, unless that is done already."""
        self.stop_waiting()
        if self.transport.is_closing():
            return
        self.transport.write(write_response(status, message))
        self.transport.close()


def write_response(status: int, message: str) -> bytes:
    """Bytes of the response to a request that did not reach the application."""
    problem = {"message": message, "field": None, "row": None, "column": None}
    body = json.dumps({"error": message, "problems": [problem]}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *HEADERS,
    ]
    if status == 503:
        headers.append((b"retry-after", b"1"))
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
    lines += [name + b": " + value for name, value in headers]
    return b"\r\n".join([*lines, b"", body])
