"""Answers that say what is wrong, where, and how to mend it: one form for all of them."""

from __future__ import annotations

import re
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

__all__ = ["Problem", "problem_of"]

_WORD = re.compile(r"\w+")


class Problem(Exception):
    """A request that gets an error as its answer."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str = "",
        field: str | None = None,
        position: dict[str, int] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.hint = hint
        self.field = field
        self.position = position
        self.retry_after = retry_after

    def to_dict(self) -> dict[str, Any]:
        """The value of `error` in an answer."""
        told: dict[str, Any] = {"code": self.code, "message": self.message, "hint": self.hint}
        if self.field is not None:
            told["field"] = self.field
        if self.position is not None:
            told["position"] = self.position
        return told


def problem_of(error: MatchmillError, field: str | None = None) -> Problem:
    """An error of the library as an answer."""
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
        hint = "cancel that one first, take another id, or leave the id out to be given one"
        return Problem(409, "duplicate_id", str(error), hint=hint, field="id")
    if isinstance(error, QuotaError):
        hint = "cancel some, or let them expire; the setting is max_subscriptions"
        return Problem(409, "quota", str(error), hint=hint)
    if isinstance(error, StoreError):
        hint = "nothing was changed, or it is not known whether it was; ask again"
        return Problem(503, "store", "the store cannot be reached", hint=hint, retry_after=1)
    if isinstance(error, (InputError, UnknownIdError)):
        return Problem(400, "bad_request", str(error), field=field)
    hint = "the log of the service says why"
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
