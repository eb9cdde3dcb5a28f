"""Checks values against the schemas that also describe them in /openapi.json.

This is the part of JSON Schema that the service uses, and no more; a schema with a word that is not
known here is an error of ours, found by a test.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from matchmill.service.problems import Problem

__all__ = ["Schema", "check", "unknown_words"]

Schema = dict[str, Any]

_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "object": ("an object", lambda value: isinstance(value, dict)),
    "array": ("a list", lambda value: isinstance(value, list)),
    "string": ("a string", lambda value: isinstance(value, str)),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "integer": (
        "a whole number",
        lambda value: isinstance(value, int) and not isinstance(value, bool),
    ),
}
_KNOWN = {
    "type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems",
    "minLength", "maxLength", "minimum", "maximum", "pattern", "enum", "description", "default",
}  # fmt: skip


def check(value: Any, schema: Schema, where: str = "") -> None:
    """Problem if a value is not as the schema says."""
    word, is_right = _TYPES[schema["type"]]
    if not is_right(value):
        raise _bad(where, f"must be {word}, not {_shown(value)}")
    if "enum" in schema and value not in schema["enum"]:
        raise _bad(where, f"must be one of {', '.join(schema['enum'])}")
    if isinstance(value, str):
        _check_text(value, schema, where)
    elif isinstance(value, dict):
        _check_object(value, schema, where)
    elif isinstance(value, list):
        _check_list(value, schema, where)
    elif not isinstance(value, bool):
        if value < schema.get("minimum", value):
            raise _bad(where, f"must be at least {schema['minimum']:,}")
        if value > schema.get("maximum", value):
            raise _bad(where, f"must be at most {schema['maximum']:,}")


def _check_text(value: str, schema: Schema, where: str) -> None:
    if len(value) < schema.get("minLength", 0):
        raise _bad(where, "must not be empty")
    if len(value) > schema.get("maxLength", len(value)):
        raise _bad(where, f"may have {schema['maxLength']:,} characters, and has {len(value):,}")
    if "pattern" in schema and not _compiled(schema["pattern"]).search(value):
        raise _bad(where, f"must be {schema['description']}")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.removesuffix("$") + r"\Z")  # `$` allows a line break after it


def _check_object(value: dict[str, Any], schema: Schema, where: str) -> None:
    for name in schema.get("required", ()):
        if name not in value:
            raise _bad(_below(where, name), "is missing")
    if not schema.get("additionalProperties", False):
        for name in value:
            if name not in schema["properties"]:
                known = ", ".join(schema["properties"])
                raise _bad(_below(where, name), f"is not known here; there are: {known}")
    for name, inner in schema.get("properties", {}).items():
        if name in value:
            check(value[name], inner, _below(where, name))


def _check_list(value: list[Any], schema: Schema, where: str) -> None:
    if len(value) < schema.get("minItems", 0):
        raise _bad(where, "must not be empty")
    if len(value) > schema.get("maxItems", len(value)):
        raise _bad(where, f"may have {schema['maxItems']:,} items, and has {len(value):,}")
    for k, item in enumerate(value):
        check(item, schema["items"], f"{where}[{k}]")


def _below(where: str, name: str) -> str:
    return f"{where}.{name[:100]}" if where else name[:100]


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    names = {dict: "an object", list: "a list", bool: "true or false", str: "a string"}
    return names.get(type(value), "a number")


def _bad(where: str, what: str) -> Problem:
    return Problem(
        400,
        "bad_request",
        f"{where or 'the body'} {what}",
        hint="/openapi.json describes every request",
        field=where or None,
    )


def unknown_words(schema: Schema) -> set[str]:
    """Words of a schema that are not checked here."""
    found = set(schema) - _KNOWN
    for inner in (*schema.get("properties", {}).values(), schema.get("items")):
        if isinstance(inner, dict):
            found |= unknown_words(inner)
    return found
