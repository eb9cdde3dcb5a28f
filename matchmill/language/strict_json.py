"""The one JSON decoder: for patterns, events, files of subscriptions and bodies of requests.

It is Python's `json`, made strict. A name given twice in one object is an error, as are NaN and
Infinity, bytes that are not UTF-8, and nesting that would exhaust the stack. Integers are exact
whatever their size; only one of thousands of digits is an error here, because Python does not
convert it. Whether a value can be compared at all (64 bits, finite, valid Unicode) is checked
later, where the attribute is known and can be named.

Why not msgspec: it decodes an event of 200 bytes in 0.6 µs, this module in 4.7 µs. But msgspec
keeps the last of two equal names without a word and has no hook to notice it, so two readers of one
text could see different events. It also says of an error no more than the byte, or only that the
input was truncated, where we show line and column. Both would need this decoder behind it, on a
path that is slow anyway: most JSON lines are read by Arrow, and a subscription's expression takes
longer to parse than its line. (msgspec 0.22 and CPython 3.11; it agrees on all else: NaN, large
integers, doubles, escapes, depth.)
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from typing import Any, NoReturn

from matchmill.language.flatten import Pairs

__all__ = [
    "JsonDepthError",
    "JsonError",
    "JsonObject",
    "decode_event",
    "decode_json",
    "decode_utf8",
]


class JsonError(ValueError):
    """Text that is not JSON, or not strictly so.

    Attributes
    ----------
    message : str
        What is wrong, without the place.
    position : int or None
        The character at which decoding stopped, from 0, where it is known.
    line, column : int
        The same place, from 1.
    """

    def __init__(self, message: str, position: int | None = None, text: str = "") -> None:
        self.message = message
        self.position = position
        self.line = text.count("\n", 0, position or 0) + 1
        self.column = (position or 0) - (text.rfind("\n", 0, position or 0) + 1) + 1
        super().__init__(message if position is None else f"{message} at column {self.column}")


class JsonDepthError(JsonError):
    """JSON that is nested deeper than the limit, or than the stack allows."""


class JsonObject(dict[str, Any]):
    """An object; `duplicate` is a name that is given twice in it, or None.

    If there is one, `pairs` are all names with their values.
    """

    duplicate: str | None = None
    pairs: list[tuple[str, Any]]


def decode_utf8(data: bytes) -> str:
    """Return the text of bytes in UTF-8; raise JsonError if they are not."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise JsonError(f"not valid UTF-8: {error.reason} at byte {error.start}") from None


def decode_json(
    text: str | bytes,
    *,
    allow_nan: bool = False,
    mark_duplicates: bool = False,
    check_unicode: bool = False,
    max_depth: int | None = None,
) -> Any:
    r"""Return the value of a JSON text.

    Parameters
    ----------
    text : str or bytes
        One JSON value; bytes are UTF-8.
    allow_nan : bool
        Accept NaN and Infinity, which Python's `json` writes.
    mark_duplicates : bool
        Return objects as `JsonObject`, so that the caller can name the path of a repeated name.
    check_unicode : bool
        Reject half a character, such as an escaped `\ud800`.
    max_depth : int, optional
        The deepest nesting of brackets.

    Raises
    ------
    JsonError
        If the text is not JSON.
    JsonDepthError
        If it is nested too deep.
    """
    if isinstance(text, bytes):
        text = decode_utf8(text)
    if max_depth is not None:
        _check_depth(text, max_depth)
    try:
        value = _decoder(allow_nan, mark_duplicates).decode(text)
        if check_unicode and "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")
        raise JsonError(f"not valid JSON: {what}", error.pos, text) from None
    except RecursionError:
        raise JsonDepthError("the JSON is nested too deep") from None
    except UnicodeEncodeError:
        raise JsonError("half of a character, such as \\ud800, is not valid Unicode") from None
    except JsonError:
        raise
    except ValueError:  # Python converts integers of at most some thousand digits
        digits = max(re.findall(r"\d+", text), key=len)
        raise JsonError(
            f"the integer {digits[:20]}… of {len(digits)} digits is beyond 64 bits"
        ) from None


def decode_event(text: bytes, max_depth: int) -> Any:
    """Return the value of a JSON text that is an event: no value of an attribute is an error.

    A name that is given twice is in `Pairs` twice. What is nested deeper than attributes may be,
    and an integer that Python does not convert, is read as infinite, which cannot be compared.

    Raises
    ------
    JsonError
        If the text is not JSON, but for `NaN` and `Infinity`.
    """
    decoded = decode_utf8(text)
    cut = decoded if _is_flat(decoded, max_depth) else _without_depths(decoded, max_depth + 1)
    decoder = _event_decoder()
    try:
        return decoder.decode(cut)
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")
        raise JsonError(f"not valid JSON: {what}", error.pos, decoded) from None
    except RecursionError:
        raise JsonDepthError("the JSON is nested too deep") from None
    except ValueError:  # Python converts integers of at most some thousand digits
        return decoder.decode(_STRING_OR_LONG_INTEGER.sub(lambda m: m[1] or "Infinity", cut))


def _is_flat(text: str, max_depth: int) -> bool:
    return text.count("[") + text.count("{") <= max_depth


def _without_depths(text: str, max_depth: int) -> str:
    """Return the text with `Infinity` for each object and array that is nested too deep."""
    kept: list[str] = []
    depth = start = 0
    for token in _BRACKET_OR_STRING.finditer(text):
        if token[0] in "[{":
            depth += 1
            if depth == max_depth + 1:
                kept.append(text[start : token.start()])
        elif token[0] in "]}":
            if depth == max_depth + 1:
                kept.append("Infinity")
                start = token.end()
            depth -= 1
    return text if depth else "".join([*kept, text[start:]])


_STRING_OR_LONG_INTEGER = re.compile(r'("(?:[^"\\]++|\\.)*+")|-?\d{400,}(?![\d.eE])')

_BRACKET_OR_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{\]}]', re.DOTALL)


def _check_depth(text: str, max_depth: int) -> None:
    """Raise JsonDepthError before the decoder recurses."""
    if text.count("[") + text.count("{") <= max_depth:
        return
    depth = 0
    for token in _BRACKET_OR_STRING.finditer(text):
        depth += (token[0] in "[{") - (token[0] in "]}")
        if depth > max_depth:
            raise JsonDepthError(f"the JSON is nested more than {max_depth} deep")


@cache
def _decoder(allow_nan: bool, mark_duplicates: bool) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_marked_object if mark_duplicates else _plain_object,
        parse_constant=None if allow_nan else _no_constant,
    )


@cache
def _event_decoder() -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=_object_or_pairs)


def _object_or_pairs(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Pairs(pairs)


def _plain_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise JsonError(f"the name {_repeated(pairs)[:40]!r} is given twice in one object")
    return found


def _marked_object(pairs: list[tuple[str, Any]]) -> JsonObject:
    found = JsonObject(pairs)
    if len(found) != len(pairs):
        found.duplicate = _repeated(pairs)
        found.pairs = pairs
    return found


def _repeated(pairs: list[tuple[str, Any]]) -> str:
    return Counter(name for name, _ in pairs).most_common(1)[0][0]


def _no_constant(name: str) -> NoReturn:
    raise JsonError(f"{name} is not JSON")
