"""/openapi.json, made from the table of endpoints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from matchmill.service.endpoint import Endpoint
from matchmill.service.many import LINES
from matchmill.service.schemas import COMPONENTS, fields, ref
from matchmill.service.secrets import TICKET_HEADER

__all__ = ["describe"]

_MEANINGS = {
    400: "The request is malformed.",
    401: "No key, no ticket, or an unknown one.",
    403: "The key has no such scope.",
    404: "It does not exist, or is another tenant's.",
    408: "The body did not arrive in time.",
    409: "The id is taken, or there are too many subscriptions.",
    413: "The body is too large.",
    415: "The body is of another type.",
    422: "The expression or the event cannot be used.",
    429: "Too many requests, or too much of this tenant waits; Retry-After says when to go on.",
    503: "Not ready, stopping, or overloaded; Retry-After says when to go on.",
}


def describe(endpoints: Sequence[Endpoint], version: str) -> dict[str, Any]:
    """Return the description of all endpoints, as OpenAPI 3.1."""
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
        content: dict[str, Any] = {"application/json": {"schema": endpoint.body}}
        if endpoint.many is not None:
            items: dict[str, Any] = {"type": "array", "items": endpoint.body, "minItems": 1}
            content["application/json"] = {"schema": {"anyOf": [endpoint.body, items]}}
            content[LINES[0]] = {"schema": {"type": "string"}}
        operation["requestBody"] = {"required": True, "content": content}
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
    content: dict[str, Any] = {}
    if endpoint.response is not None:
        content["application/json"] = {"schema": endpoint.response}
    if endpoint.streams:
        content[endpoint.streams] = {"schema": {"type": "string"}}
    good: dict[str, Any] = {"description": endpoint.summary}
    if content:
        good["content"] = content
    responses = {str(endpoint.status): good}
    if endpoint.may_create:
        responses["201"] = good | {"description": "It was created."}
    if endpoint.many is not None:
        _add_many(endpoint, responses)
    statuses = {400, 401, 403, 429, 503, *endpoint.problems}
    if endpoint.body is not None:
        statuses |= {408, 413, 415}
    problem = {"application/problem+json": {"schema": ref("Problem")}}
    for status in sorted(statuses):
        responses[str(status)] = {"description": _MEANINGS[status], "content": problem}
    return responses


def _add_many(endpoint: Endpoint, responses: dict[str, Any]) -> None:
    """Add the responses to a list and to JSON lines, which have status 200."""
    results = {"type": "array", "items": {"anyOf": [endpoint.response, ref("Problem")]}}
    number = {"type": "integer"}
    of_list = fields({"results": results, "n_accepted": number, "n_rejected": number})
    schemas = [of_list]
    if "200" in responses:
        schemas.insert(0, responses["200"]["content"]["application/json"]["schema"])
    responses["200"] = {
        "description": "What became of each, if there are many.",
        "content": {
            "application/json": {"schema": {"anyOf": schemas}},
            LINES[0]: {"schema": {"type": "string"}},
        },
    }
