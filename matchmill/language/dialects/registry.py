"""The dialects: in which language an expression or a pattern is written.

    matchmill     the language of expressions, and JSON patterns that become expressions
    eventbridge   JSON patterns that mean what Amazon EventBridge says
    sigma         a Sigma rule as YAML, which becomes an expression

A dialect is one entry here: its name, and where the function is that reads a source. A module is
loaded when its dialect is first used. The function returns an `Expression`: an ordinary one, or a
`DialectPattern`, which is written as the name of the dialect and the pattern in quotes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from matchmill.errors import InputError, did_you_mean, shown

if TYPE_CHECKING:
    from matchmill.language.expression import Expression
    from matchmill.settings import Settings

__all__ = ["DIALECTS", "MATCHMILL", "check_dialect", "dialect_reader"]

Reader: TypeAlias = "Callable[[object, Settings], Expression]"

MATCHMILL = "matchmill"

# name → "module:function"
DIALECTS = {
    MATCHMILL: "language.read:read_matchmill",
    "eventbridge": "language.dialects.eventbridge:read_eventbridge",
    "sigma": "sigma.dialect:read_sigma",
}


def check_dialect(dialect: object) -> str:
    """Return the name of a dialect that exists; raise InputError for any other."""
    if isinstance(dialect, str) and dialect in DIALECTS:
        return dialect
    near = did_you_mean(dialect, DIALECTS) if isinstance(dialect, str) else ""
    raise InputError(f"dialect is one of {', '.join(DIALECTS)}, not {shown(dialect)}{near}")


@cache
def dialect_reader(dialect: str) -> Reader:
    """Return the function that reads what is written in a dialect."""
    module, _, name = DIALECTS[dialect].partition(":")
    reader: Reader = getattr(import_module(f"matchmill.{module}"), name)
    return reader
