"""The tokens of expression text: one compiled pattern, and what kind of token each one is."""

from __future__ import annotations

import math
import re

from matchmill.language.expression import KEYWORDS, Operator
from matchmill.language.values import INT64_MAX, INT64_MIN

__all__ = [
    "COMPARISONS",
    "DECIMAL",
    "INTEGER",
    "LETTERS",
    "NAME_START",
    "NUMBER_STARTS",
    "RESERVED",
    "SPECIAL_STARTS",
    "TOKEN",
    "TRUTHS",
    "is_name",
    "plain_literal",
]

# The look ahead skips white space faster than trying every alternative on it does. A quoted token
# without its closing quote can only be the last one: it runs to the end. The possessive
# quantifiers keep a million quotes linear. A number takes every letter that follows, so that
# `5and` and `1_000` are wrong numbers and not two tokens.
TOKEN = re.compile(
    r"(?=[^ \t\r\n])(?:"
    r"[^\W\d]\w*+(?:\.[^\W\d]\w*+)*+"
    r"|'[^']*+(?:''[^']*+)*+'?"
    r"|[(),]"
    r"|[=<>!&|~]++"
    r"|-?\.?[0-9][\w.]*+(?:(?<=[eE])[+-][\w.]*+)?"
    r'|"[^"]*+(?:""[^"]*+)*+"?'
    r"|\?\w++"
    r"|."
    r")",
    re.DOTALL,
)
NAME_START = re.compile(r"[^\W\d]")
INTEGER = re.compile(r"-?[0-9]+")
DECIMAL = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz_")
NUMBER_STARTS = frozenset("0123456789-.")
COMPARISONS: dict[str, Operator] = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
TRUTHS: dict[str, bool | None] = {"true": True, "false": False, "unknown": None}  # after `is`
# The other keywords are names wherever a keyword is not expected.
RESERVED = KEYWORDS - {"contains", "any", "all", "none", "cidr", "date", "timestamp"}
SPECIAL_STARTS = RESERVED | {"any", "date", "timestamp"}


def plain_literal(token: str) -> str | int | float | None:
    """Return the value of a string or a number; None for other tokens and for bad numbers."""
    first = token[:1]
    if first == "'":
        text = token[1:-1]
        return text.replace("''", "'") if "''" in text else text
    if first not in NUMBER_STARTS:
        return None
    if len(token) < 19 and token.isdecimal() and token.isascii():
        return int(token)
    if INTEGER.fullmatch(token):
        if len(token.lstrip("-0")) > 19:  # int() rejects thousands of digits, zeros included
            return None
        number = int(token.lstrip("-0") or "0") * (-1 if first == "-" else 1)
        return number if INT64_MIN <= number <= INT64_MAX else None
    if DECIMAL.fullmatch(token):
        decimal = float(token)
        return decimal if math.isfinite(decimal) else None
    return None


def is_name(token: str) -> bool:
    """Whether a token is a name or a keyword, not quoted."""
    return NAME_START.match(token) is not None
