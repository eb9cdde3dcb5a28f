"""The nodes of a JSON pattern: decoded, checked, and named in messages by their path.

Every dialect of JSON patterns reads its text and its values with these. A path is that of the node
in the pattern: `detail.state[1].prefix`.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from matchmill.errors import ExpressionError, LimitError
from matchmill.language.expression import Operator
from matchmill.language.patterns import escape_like
from matchmill.language.strict_json import (
    JsonDepthError,
    JsonError,
    JsonObject,
    decode_json,
    decode_utf8,
)
from matchmill.language.values import Value, bad_scalar
from matchmill.settings import Settings

__all__ = [
    "EXAMPLE",
    "OPERATORS",
    "Number",
    "alternatives_of",
    "bad",
    "below",
    "check_keys",
    "comparisons",
    "only_item",
    "pairs_of",
    "read_json",
    "scalar",
    "shown",
    "string",
    "too_deep",
    "too_long",
    "wildcard_to_like",
]

Number: TypeAlias = int | float

EXAMPLE = 'write {"field": ["value"]}'


# -- limits ---------------------------------------------------------------------------------------


def too_long(settings: Settings) -> LimitError:
    """Return the error for a pattern of too many characters."""
    return LimitError(
        f"the pattern, or its expression, has more than "
        f"{settings.max_expression_length} characters",
        hint="split it, or raise the setting max_expression_length",
    )


def too_deep(settings: Settings) -> LimitError:
    """Return the error for a pattern with too many levels."""
    return LimitError(
        f"the pattern is nested too deep: the setting max_depth is {settings.max_depth}",
        hint="simplify it, or raise the setting max_depth",
    )


# -- JSON text ------------------------------------------------------------------------------------


def read_json(pattern: str | bytes, settings: Settings) -> object:
    """Return what the text of a pattern holds; its objects know repeated keys (`pairs_of`)."""
    limit = settings.max_expression_length
    text = ""
    try:
        if len(pattern) <= 4 * limit:  # UTF-8 takes up to four bytes per character
            text = pattern if isinstance(pattern, str) else decode_utf8(pattern)
        if len(text or pattern) > limit:
            raise too_long(settings)
        text = text.removeprefix("\ufeff")
        # An alternative of `$or` takes two brackets per level.
        depth = 2 * settings.max_depth + 8
        return decode_json(text, allow_nan=True, mark_duplicates=True, max_depth=depth)
    except JsonDepthError:
        raise too_deep(settings) from None
    except JsonError as error:
        if error.position is None:
            hint = "write the number as a decimal (1e20)" if "64 bits" in error.message else ""
            raise ExpressionError(error.message, hint=hint) from None
        message = error.message if text.strip() else "the pattern is empty"
        hint = _json_hint(text, error.position)
        raise ExpressionError(message, text=text, position=error.position, hint=hint) from None


_JSON_HINTS = (
    (re.compile(r",\s*[\]}]"), "remove the comma before the closing bracket"),
    (re.compile(r"'"), "JSON text stands in double quotes"),
    (re.compile(r"True\b|False\b|None\b"), "JSON writes true, false and null"),
    (re.compile(r"[#/]"), "JSON has no comments"),
    (re.compile(r"[\w+.-]"), "text stands in double quotes; numbers look like 5, -0.5 or 1e20"),
)


def _json_hint(text: str, position: int) -> str:
    if not text[:position].strip():
        return "a pattern is a JSON object: " + EXAMPLE
    before = len(text[:position].rstrip()) - 1
    places = (before, position) if text[before] == "," else (position,)
    return next((h for start, h in _JSON_HINTS for i in places if start.match(text, i)), "")


# -- messages -------------------------------------------------------------------------------------


def bad(path: str, problem: str, hint: str = "") -> ExpressionError:
    """Return the error for a node."""
    return ExpressionError(f"{path}: {problem}" if path else problem, hint=hint)


def shown(value: object, width: int = 40) -> str:
    """Return a value for a message, in plain ASCII and short."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "an array"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a very large integer"
    if value is None or isinstance(value, (str, int, float)):
        text = json.dumps(value[:width] if isinstance(value, str) else value)
        return text if not isinstance(value, str) or len(value) <= width else text[:-1] + '…"'
    return f"a value of type {type(value).__name__}"


_PLAIN_KEY = re.compile(r"[\w$-]{1,40}")


def below(path: str, key: str) -> str:
    """Return the path of a key below another path."""
    step = key if _PLAIN_KEY.fullmatch(key) else shown(key)
    return f"{path}.{step}" if path else step


def pairs_of(node: Mapping[Any, Any], path: str) -> Iterable[tuple[str, Any]]:
    """Return the keys of an object with their values; a key that is given twice comes twice."""
    if isinstance(node, JsonObject):
        return node.items() if node.duplicate is None else node.pairs
    check_keys(node, path)
    return node.items()


def check_keys(node: Mapping[Any, Any], path: str) -> None:
    """Raise ExpressionError for a key that is given twice, or is no text."""
    if isinstance(node, JsonObject):
        if node.duplicate is not None:
            hint = "put the alternatives of a field into one array"
            problem = f"the key {shown(node.duplicate)} is given twice in one object"
            raise bad(path, problem, hint)
        return
    for key in node:
        if not isinstance(key, str):
            raise bad(path, f"keys are text, not {shown(key)}")


def only_item(node: Mapping[str, Any], path: str, known: Sequence[str]) -> tuple[str, Any]:
    """Return the match type and its argument."""
    check_keys(node, path)
    if len(node) != 1:
        hint = "alternatives are objects of their own; one of them has to hold"
        raise bad(path, f"an object in an array holds one match type, not {len(node)}", hint)
    ((kind, argument),) = node.items()
    if kind not in known:
        close = difflib.get_close_matches(kind[:40].lower().replace("_", "-"), known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(known)}"
        raise bad(path, f"unknown match type {shown(kind)}", hint)
    return kind, argument


# -- values ---------------------------------------------------------------------------------------


def scalar(value: object, path: str) -> Value:
    """Return a checked literal, of exactly the types that JSON has."""
    if isinstance(value, (list, tuple)):
        raise bad(path, "an array inside an array", "list the alternatives side by side")
    if not isinstance(value, (str, int, float)):
        raise bad(path, f"{shown(value)} is not JSON", "use text, numbers, true, false or null")
    if isinstance(value, float) and not math.isfinite(value):
        raise bad(path, f"{shown(value)} is not a number that can be compared")
    if problem := bad_scalar(value):
        hint = "write the number as a decimal (1e20)" if "64 bits" in problem else ""
        raise bad(path, problem, hint)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool):
        return value
    return int(value) if isinstance(value, int) else float(value)


def string(value: object, path: str) -> str:
    """Return a checked text."""
    if not isinstance(value, str):
        raise bad(path, f"text is needed here, not {shown(value)}")
    return str(scalar(value, path))


_WILDCARD_TOKEN = re.compile(r"\\[\\*]|\*+|.", re.DOTALL)


def wildcard_to_like(text: str, path: str) -> str:
    r"""Turn `*` into `%`; `\*` and `\\` stand for an asterisk and a backslash."""
    parts = []
    for token in _WILDCARD_TOKEN.findall(text):
        if token == "\\":
            hint = r'in JSON text write "\\*" for an asterisk, "\\\\" for a backslash'
            raise bad(path, "a backslash stands before * or another backslash only", hint)
        if token.startswith("**"):
            raise bad(path, "two wildcards in a row", "a single * stands for any text already")
        parts.append("%" if token == "*" else escape_like(token[-1]))
    return "".join(parts)


# -- numbers --------------------------------------------------------------------------------------

OPERATORS: dict[str, Operator] = {"=": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def comparisons(argument: object, path: str) -> list[tuple[Operator, Number]]:
    """Return `[">", 0, "<=", 5]` as pairs."""
    example = 'write [">", 5] or [">", 0, "<=", 5]'
    if not isinstance(argument, (list, tuple)) or len(argument) not in (2, 4):
        raise bad(path, "numeric takes an array of one or two comparisons", example)
    bounds: list[tuple[Operator, Number]] = []
    for i in range(0, len(argument), 2):
        op, value = argument[i : i + 2]
        if not isinstance(op, str) or op not in OPERATORS:
            hint = 'not equal is {"anything-but": 5}' if op in ("!=", "<>") else example
            raise bad(f"{path}[{i}]", f"an operator is one of = < <= > >=, not {shown(op)}", hint)
        number = scalar(value, f"{path}[{i + 1}]")
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise bad(f"{path}[{i + 1}]", f"a number is needed here, not {shown(value)}")
        bounds.append((OPERATORS[op], number))
    if len(bounds) == 2 and (bounds[0][0] not in (">", ">=") or bounds[1][0] not in ("<", "<=")):
        raise bad(path, "a range is a lower bound, then an upper bound", example)
    return bounds


def alternatives_of(value: object, name: str, path: str) -> Sequence[object]:
    """Return the alternatives of a field; ExpressionError if its name or value is not allowed."""
    if not name:
        raise bad(path, "the name of a field is empty")
    if problem := bad_scalar(name):
        raise bad(path, problem)
    if not isinstance(value, (list, tuple)):
        problem = f"a field takes an array of alternatives, not {shown(value)}"
        raise bad(path, problem, f"write [{shown(value)}]")
    if not value:
        hint = 'write ["value"], or [{"exists": false}] for a missing field'
        raise bad(path, "an empty array has nothing to match", hint)
    return value
