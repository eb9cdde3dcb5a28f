"""JSON as the service reads and writes it: no name twice, no NaN, no text that is not Unicode."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

from matchmill.language.strict_json import JsonError, decode_json
from matchmill.service.problems import Problem

__all__ = ["compact", "from_body", "iso"]


def from_body(data: bytes) -> Any:
    """Return the value of a body; raise Problem if it is not JSON."""
    try:
        return decode_json(data, check_unicode=True)
    except JsonError as error:
        where = "" if error.position is None else f" at line {error.line}, column {error.column}"
        raise _bad(f"the body cannot be read: {error.message}{where}") from None


def _bad(message: str) -> Problem:
    return Problem(400, "bad_json", message, hint="send one JSON value in UTF-8")


def compact(value: Any) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def iso(moment: int) -> str:
    """Return a time in microseconds as text."""
    then = dt.datetime.fromtimestamp(moment // 1_000_000, dt.UTC)
    return f"{then:%Y-%m-%dT%H:%M:%S}.{moment % 1_000_000:06d}Z"
