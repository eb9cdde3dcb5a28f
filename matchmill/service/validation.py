"""Checks values against the schemas that also describe them in /openapi.json.

This is the part of JSON Schema that the service uses, and no more; a test fails if a schema has a
keyword that is not known here.

Why not msgspec: its structs would decode, check and describe in one, but they keep the last of two
equal names without an error, their limits cannot be settings of a service unless the classes are
made at run time, and their errors do not list the known fields or show the form of a request. With
all of that around it there is no less code. It would save 4 µs of the 70 µs that an event of a long
list takes, and of the 1,200 µs of a request with one event (msgspec 0.22, CPython 3.11).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from matchmill.service.problems import Problem

__all__ = ["Schema", "check", "unknown_keywords"]

Schema = dict[str, Any]

_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "object": ("an object", lambda value: isinstance(value, dict)),
    "array": ("a list", lambda value: isinstance(value, list)),
    "string": ("a string", lambda value: isinstance(value, str)),
    "null": ("null", lambda value: value is None),
    "integer": (
        "a whole number",
        lambda value: isinstance(value, int) and not isinstance(value, bool),
    ),
}
_EXAMPLES = {"object": "{…}", "array": "[…]", "string": '"…"', "integer": "1"}
_KNOWN = {
    "type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems",
    "minLength", "maxLength", "minimum", "maximum", "pattern", "enum", "description", "default",
}  # fmt: skip
_SEE = "/openapi.json describes every request"


def check(value: Any, schema: Schema, field: str = "") -> None:
    """Raise Problem if a value is not as the schema says."""
    types = _types(schema)
    if not any(_TYPES[name][1](value) for name in types):
        wanted = " or ".join(_TYPES[name][0] for name in types)
        raise _bad(field, f"must be {wanted}, not {_shown(value)}")
    if "enum" in schema and value not in schema["enum"]:
        raise _bad(field, f"must be one of {', '.join(schema['enum'])}")
    if isinstance(value, str):
        _check_text(value, schema, field)
    elif isinstance(value, dict):
        _check_object(value, schema, field)
    elif isinstance(value, list):
        _check_list(value, schema, field)
    elif value is not None:
        if value < schema.get("minimum", value):
            raise _bad(field, f"must be at least {schema['minimum']:,}")
        if value > schema.get("maximum", value):
            raise _bad(field, f"must be at most {schema['maximum']:,}")


def _types(schema: Schema) -> list[str]:
    types = schema["type"]
    return types if isinstance(types, list) else [types]


def _check_text(value: str, schema: Schema, field: str) -> None:
    if len(value) < schema.get("minLength", 0):
        raise _bad(field, "must not be empty")
    if len(value) > schema.get("maxLength", len(value)):
        raise _bad(field, f"may have {schema['maxLength']:,} characters, and has {len(value):,}")
    if "pattern" in schema and not _compiled(schema["pattern"]).search(value):
        raise _bad(field, f"must be {schema['description']}")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.removesuffix("$") + r"\Z")  # `$` allows a line break after it


def _check_object(value: dict[str, Any], schema: Schema, field: str) -> None:
    for name in schema.get("required", ()):
        if name not in value:
            raise _bad(_below(field, name), "is missing", f"the form is {_form(schema)}; {_SEE}")
    if not schema.get("additionalProperties", False):
        for name in value:
            if name not in schema["properties"]:
                known = ", ".join(schema["properties"])
                raise _bad(_below(field, name), f"is not a field of this request; it has: {known}")
    for name, inner in schema.get("properties", {}).items():
        if name in value:
            check(value[name], inner, _below(field, name))


def _form(schema: Schema) -> str:
    """Return what an object looks like: `{"event": {…}}`."""
    parts = (
        f'"{name}": {_EXAMPLES[_types(schema["properties"][name])[0]]}'
        for name in schema["required"]
    )
    return "{" + ", ".join(parts) + "}"


def _check_list(value: list[Any], schema: Schema, field: str) -> None:
    if len(value) < schema.get("minItems", 0):
        raise _bad(field, "must not be empty")
    if len(value) > schema.get("maxItems", len(value)):
        raise _bad(field, f"may have {schema['maxItems']:,} items, and has {len(value):,}")
    for k, item in enumerate(value):
        check(item, schema["items"], f"{field}[{k}]")


def _below(field: str, name: str) -> str:
    return f"{field}.{name[:100]}" if field else name[:100]


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    names = {dict: "an object", list: "a list", bool: "true or false", str: "a string"}
    return names.get(type(value), "a number")


def _bad(field: str, what: str, hint: str = _SEE) -> Problem:
    return Problem(
        400, "bad_request", f"{field or 'the body'} {what}", hint=hint, field=field or None
    )


def unknown_keywords(schema: Schema) -> set[str]:
    """Return the keywords of a schema that are not checked here."""
    found = set(schema) - _KNOWN
    for inner in (*schema.get("properties", {}).values(), schema.get("items")):
        if isinstance(inner, dict):
            found |= unknown_keywords(inner)
    return found
