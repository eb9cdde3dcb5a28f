"""Error responses of a service become the errors that an engine would raise."""

from __future__ import annotations

import json
from typing import Any

from matchmill.client.messages import Request, Response
from matchmill.errors import (
    DuplicateIdError,
    EventError,
    ExpressionError,
    InputError,
    MatchmillError,
    QuotaError,
    ServiceError,
    StoreError,
    UnknownIdError,
)

__all__ = ["check_response", "error_of", "not_matchmill"]

_ENGINE_ERRORS: dict[str, type[MatchmillError]] = {
    "bad_request": InputError,
    "bad_event": EventError,
    "duplicate_id": DuplicateIdError,
    "event_id_taken": DuplicateIdError,
    "not_found": UnknownIdError,
}
_SERVICE_ERRORS = {"quota": QuotaError, "store": StoreError}


def check_response(response: Response, request: Request) -> None:
    """Raise the error that a response tells; a response of success passes."""
    status = response.status
    if 200 <= status < 300:
        return
    try:
        problem = json.loads(response.body)
        after = response.headers.get("Retry-After", "")
        retry_after = float(after) if after.isascii() and after.isdigit() else None
        error: MatchmillError = error_of(problem, status, request.expression, retry_after)
    except (ValueError, KeyError, TypeError, AttributeError):
        error = not_matchmill(response, request)
    raise error


def not_matchmill(response: Response, request: Request) -> ServiceError:
    """Make the error of a response that is a proxy's, or of another service."""
    status = response.status
    hint = "is this the address of a matchmill service?"
    if 300 <= status < 400:
        hint = f"it points to {response.headers.get('Location')}: give that as the url"
    message = f"{request.method} {request.path}: the response {status} is not matchmill's"
    return ServiceError(message, status=status, code="not_matchmill", hint=hint)


def error_of(
    problem: dict[str, Any],
    status: int | None = None,
    expression: str | None = None,
    retry_after: float | None = None,
) -> MatchmillError:
    """Make the error of a problem; `expression` is the one that was sent."""
    code, message = str(problem["code"]), str(problem["detail"])
    hint = str(problem.get("hint") or "")
    if code == "bad_expression":
        position = (problem.get("position") or {}).get("offset")
        return ExpressionError(message, text=expression, position=position, hint=hint)
    if code in _ENGINE_ERRORS:
        return _ENGINE_ERRORS[code](message, hint=hint)
    kind_of_service = _SERVICE_ERRORS.get(code, ServiceError)
    return kind_of_service(
        message,
        status=problem.get("status", status),
        code=code,
        hint=hint,
        field=problem.get("field"),
        retry_after=retry_after,
    )
