"""What goes over the wire: requests, responses, server-sent events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["Request", "Response", "ServerEvent"]


class Request(NamedTuple):
    """A call of the service; `expression` is what an error's position refers to."""

    method: str
    path: str
    body: str | None = None
    ticket: str | None = None  # in place of the key
    new_ticket: str | None = None  # beside the key: what the subscription's ticket shall be
    is_repeatable: bool = True
    timeout: float | None = None  # None: that of the transport
    expression: str | None = None


class Response(NamedTuple):
    """The response to a request that succeeded."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the value of the body, None if it is empty."""
        return json.loads(self.body) if self.body else None


class ServerEvent(NamedTuple):
    """One server-sent event: its name, its value, and the id to continue after."""

    name: str
    value: Any
    id: str
