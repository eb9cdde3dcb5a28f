"""JSON as the service reads and writes it: no name twice, no NaN, no text that is not Unicode."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any, NoReturn

from matchmill.service.problems import Problem

__all__ = ["compact", "from_body", "iso"]


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"the name {twice!r} is given twice in one object")
    return found


_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)


def from_body(data: bytes) -> Any:
    """Return the value of a body; Problem if it is not JSON."""
    try:
        text = data.decode()
        value = _decoder.decode(text)
        if "\\u" in text or "\\U" in text:
            compact(value).encode()  # half of a character, written as \ud800
    except UnicodeDecodeError as error:
        raise _bad(f"the body is not UTF-8: byte {error.start}") from None
    except UnicodeEncodeError:
        raise _bad("the body holds half of a character, such as \\ud800") from None
    except RecursionError:
        raise _bad("the body is nested too deeply") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _bad(f"the body is not JSON: {error.msg} at {where}") from None
    except ValueError as error:  # a name given twice, a number of thousands of digits
        raise _bad(f"the body cannot be read: {error}") from None
    return value


def _bad(message: str) -> Problem:
    return Problem(400, "bad_json", message, hint="send one JSON value in UTF-8")


def compact(value: Any) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def iso(moment: int) -> str:
    """Return a time in microseconds as text."""
    then = dt.datetime.fromtimestamp(moment // 1_000_000, dt.UTC)
    return f"{then:%Y-%m-%dT%H:%M:%S}.{moment % 1_000_000:06d}Z"
