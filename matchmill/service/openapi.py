"""/openapi.json, made from the table of endpoints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from matchmill.service.authentication import TICKET_HEADER
from matchmill.service.endpoint import Endpoint
from matchmill.service.schemas import COMPONENTS, ref

__all__ = ["describe"]

_MEANINGS = {
    400: "The request is malformed.",
    401: "No key, no ticket, or an unknown one.",
    403: "The key has no such scope.",
    404: "It is not there, or not yours.",
    409: "The id is taken, or there are too many.",
    413: "The body is too large.",
    415: "The body is of another type.",
    422: "The expression or the event cannot be used.",
    429: "Too many requests; Retry-After says when to go on.",
    503: "Not ready, stopping, or overloaded; Retry-After says when to go on.",
}


def describe(endpoints: Sequence[Endpoint], version: str) -> dict[str, Any]:
    """OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "matchmill",
            "version": version,
            "description": "Subscribe with Boolean expressions, publish events, get matches.",
        },
        "paths": paths,
        "components": {
            "schemas": COMPONENTS,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer"},
                "ticket": {"type": "apiKey", "in": "header", "name": TICKET_HEADER},
            },
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    security: list[dict[str, list[str]]] = []
    if endpoint.scopes:
        security.append({"key": []})
    if endpoint.by_ticket:
        security.append({"ticket": []})
    if endpoint.is_anonymous:
        security.append({})
    scopes = f" A key needs the scope {' or '.join(endpoint.scopes)}." if endpoint.scopes else ""
    operation: dict[str, Any] = {
        "operationId": endpoint.handler.__name__,
        "summary": endpoint.summary,
        "description": endpoint.summary + scopes,
        "security": security,
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint)],
        "responses": _responses(endpoint),
    }
    if endpoint.body is not None:
        media = "application/x-ndjson" if endpoint.sends_lines else "application/json"
        schema = {"type": "string"} if endpoint.sends_lines else endpoint.body
        operation["requestBody"] = {
            "required": not endpoint.body_may_be_absent,
            "content": {media: {"schema": schema}},
        }
    return operation


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", endpoint.path)
    ]


def _query_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in endpoint.query.items()
    ]


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    good: dict[str, Any] = {"description": endpoint.summary}
    if endpoint.answer is not None:
        good["content"] = {"application/json": {"schema": endpoint.answer}}
    elif endpoint.streams:
        good["content"] = {endpoint.streams: {"schema": {"type": "string"}}}
    statuses = {400, 401, 403, 429, 503, *endpoint.problems}
    if endpoint.body is not None:
        statuses |= {413, 415}
    error = {"application/json": {"schema": ref("Error")}}
    bad = {
        str(status): {"description": _MEANINGS[status], "content": error}
        for status in sorted(statuses)
    }
    return {str(endpoint.status): good} | bad
