"""Around every request: a line in the log, a count, and headers that make browsers strict.

A line has the route instead of the path, and the id of a key instead of the key: it cannot hold a
secret.
"""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from matchmill.service.metrics import Metrics

__all__ = ["AccessLog", "access_logger"]

access_logger = logging.getLogger("matchmill.access")

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class AccessLog:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, and log it when it has ended."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0
        n_bytes = 0

        async def sending(message: Message) -> None:
            nonlocal status, n_bytes
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(raw=message["headers"])
                for name, value in _HEADERS.items():
                    headers[name] = value
                if "cache-control" not in headers:
                    headers["Cache-Control"] = "no-store"
                message["headers"] = headers.raw
            else:
                n_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            self._note(scope, status, n_bytes, time.perf_counter() - started)

    def _note(self, scope: Scope, status: int, n_bytes: int, seconds: float) -> None:
        route = scope.get("matchmill.route", "other")
        self._metrics.request(route, status)
        if access_logger.isEnabledFor(logging.INFO):
            line: dict[str, Any] = {
                "at": round(time.time(), 3),
                "method": scope["method"][:20],
                "route": route,
                "status": status,
                "milliseconds": round(1000 * seconds, 2),
                "bytes": n_bytes,
            }
            if "matchmill.sender" in scope:
                line["sender"] = scope["matchmill.sender"]
            access_logger.info(json.dumps(line))
