"""Errors as responses: `application/problem+json` (RFC 9457), one form for all of them.

    {"type": "urn:matchmill:bad_expression", "title": "Unprocessable Content", "status": 422,
     "detail": "…", "code": "bad_expression", "hint": "…", "field": "expression",
     "position": {"offset": 4, "line": 1, "column": 5, "length": 1},
     "rejected": [{"kind": "subscription", "row": 0, "id": "u42", "reason": "…"}]}

`field`, `position` and `rejected` are there where they apply.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

from matchmill.errors import (
    DuplicateIdError,
    EventError,
    ExpressionError,
    InputError,
    MatchmillError,
    QuotaError,
    StoreError,
    UnknownIdError,
)

__all__ = ["Problem", "problem_of", "rejected_record"]

_WORD = re.compile(r"\w+")


class Problem(Exception):
    """A request that is answered with an error."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        hint: str = "",
        field: str | None = None,
        position: dict[str, int] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.hint = hint
        self.field = field
        self.position = position
        self.retry_after = retry_after
        self.rejected: list[dict[str, Any]] = []

    def rejecting(self, kind: str, row: int, id: object) -> Problem:
        """Return this problem with a record of the item that it rejects."""
        self.rejected = [rejected_record(self, kind, row, id)]
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the body of the response."""
        body: dict[str, Any] = {
            "type": f"urn:matchmill:{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "hint": self.hint,
        }
        if self.field is not None:
            body["field"] = self.field
        if self.position is not None:
            body["position"] = self.position
        if self.rejected:
            body["rejected"] = self.rejected
        return body


def rejected_record(problem: Problem, kind: str, row: int, id: object) -> dict[str, Any]:
    """Return what a report says of one rejected item; the reason is one line."""
    reason = problem.detail
    if problem.position is not None:
        reason += f" at line {problem.position['line']}, column {problem.position['column']}"
    if problem.hint:
        reason += f"; {problem.hint}"
    return {
        "kind": kind,
        "row": row,
        "id": id[:200] if isinstance(id, str) else None,
        "reason": " ".join(reason.split()),
    }


def problem_of(error: MatchmillError, field: str | None = None) -> Problem:
    """Return an error of the library as a problem."""
    if isinstance(error, ExpressionError):
        return Problem(
            422,
            "bad_expression",
            error.message,
            hint=error.hint,
            field=field or "expression",
            position=_position(error),
        )
    if isinstance(error, EventError):
        hint = "values are booleans, numbers, strings, null, lists of those, and objects"
        return Problem(422, "bad_event", str(error), hint=hint, field=field or "event")
    if isinstance(error, DuplicateIdError):
        hint = "PUT replaces a subscription; or use another id, or none to be given one"
        return Problem(409, "duplicate_id", str(error), hint=hint, field="subscription_id")
    if isinstance(error, QuotaError):
        hint = "unsubscribe some, or let them expire; the setting is max_subscriptions"
        return Problem(409, "quota", str(error), hint=hint)
    if isinstance(error, StoreError):
        hint = "it is not known whether the change was made; send the request again"
        return Problem(503, "store", "the store cannot be reached", hint=hint, retry_after=1)
    if isinstance(error, UnknownIdError):
        return Problem(404, "not_found", error.message, hint=error.hint, field=field)
    if isinstance(error, InputError):
        return Problem(400, "bad_request", error.message, hint=error.hint, field=field)
    hint = "the log of the service has the reason"
    return Problem(503, "unavailable", "the engine cannot be used", hint=hint, retry_after=5)


def _position(error: ExpressionError) -> dict[str, int] | None:
    if error.text is None or error.position is None:
        return None
    word = _WORD.match(error.text, error.position)
    return {
        "offset": error.position,
        "line": error.line,
        "column": error.column,
        "length": len(word[0]) if word else 1,
    }
