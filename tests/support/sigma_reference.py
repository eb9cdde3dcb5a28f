"""What Sigma's specification says of a rule and an event, in plain Python: slow and obvious.

It walks the conditions that pySigma has parsed, and knows nothing of matchmill's language.

- Logic has two values: a condition on a missing field is false, and `not` of it is true.
- Strings are compared without case and with the wildcards `*` and `?`; `cased` minds the case.
- A number, or a string that reads as one, equals that number and its text.
- Regular expressions are searched for in texts; keywords are parts of any text of the event.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from sigma.conditions import (
    ConditionAND,
    ConditionFieldEqualsValueExpression,
    ConditionNOT,
    ConditionOR,
    ConditionValueExpression,
)
from sigma.rule import SigmaRule
from sigma.types import (
    CompareOperators,
    SigmaBool,
    SigmaCasedString,
    SigmaCIDRExpression,
    SigmaCompareExpression,
    SigmaExists,
    SigmaExpansion,
    SigmaFieldReference,
    SigmaNull,
    SigmaNumber,
    SigmaRegularExpression,
    SigmaString,
    SpecialChars,
)

__all__ = ["holds"]

_COMPARE = {
    CompareOperators.LT: lambda a, b: a < b,
    CompareOperators.LTE: lambda a, b: a <= b,
    CompareOperators.GT: lambda a, b: a > b,
    CompareOperators.GTE: lambda a, b: a >= b,
    CompareOperators.NEQ: lambda a, b: a != b,
}
_FLAGS = {"IGNORECASE": re.I, "MULTILINE": re.M, "DOTALL": re.S}


def holds(rule: SigmaRule, event: Mapping[str, Any]) -> bool:
    """Whether one of the conditions of a rule is true for an event."""
    return any(_holds(condition.parsed, event) for condition in rule.detection.parsed_condition)


def _holds(node: Any, event: Mapping[str, Any]) -> bool:
    if isinstance(node, ConditionAND):
        return all(_holds(part, event) for part in node.args)
    if isinstance(node, ConditionOR):
        return any(_holds(part, event) for part in node.args)
    if isinstance(node, ConditionNOT):
        return not _holds(node.args[0], event)
    if isinstance(node, ConditionFieldEqualsValueExpression):
        return _field_holds(node.value, node.field, event)
    assert isinstance(node, ConditionValueExpression)
    return any(_keyword_holds(node.value, text) for text in _texts(event))


def _field_holds(wanted: Any, field: str, event: Mapping[str, Any]) -> bool:
    value = event.get(field)
    if isinstance(wanted, SigmaExpansion):
        return any(_field_holds(one, field, event) for one in wanted.values)
    if isinstance(wanted, SigmaNull):
        return value is None
    if isinstance(wanted, SigmaExists):
        return (value is not None) == bool(wanted)
    if value is None:
        return False
    if isinstance(wanted, SigmaFieldReference):
        return value == event.get(wanted.field)
    if isinstance(wanted, SigmaBool):
        return (_is(value, bool) and value == bool(wanted)) or _lower(value) == str(wanted).lower()
    if isinstance(wanted, SigmaNumber):
        return (_is_number(value) and value == wanted.number) or value == str(wanted.number)
    if isinstance(wanted, SigmaCompareExpression):
        return _is_number(value) and _COMPARE[wanted.op](value, wanted.number.number)
    if isinstance(wanted, SigmaCIDRExpression):
        return isinstance(value, str) and _is_in(value, wanted)
    if isinstance(wanted, SigmaRegularExpression):
        return isinstance(value, str) and _searched(wanted, value)
    assert isinstance(wanted, SigmaString)
    if _is_number(value):
        return _number_of(wanted) == value
    return isinstance(value, str) and _equals(wanted, value)


def _keyword_holds(wanted: Any, text: str) -> bool:
    if isinstance(wanted, SigmaRegularExpression):
        return _searched(wanted, text)
    if isinstance(wanted, SigmaNumber):
        return str(wanted.number) in text
    return _pattern(wanted, part=True).search(text) is not None


def _equals(wanted: SigmaString, value: str) -> bool:
    return _pattern(wanted, part=False).fullmatch(value) is not None


def _pattern(wanted: SigmaString, *, part: bool) -> re.Pattern[str]:
    return _compiled(tuple(wanted.s), isinstance(wanted, SigmaCasedString))


@lru_cache(maxsize=100_000)
def _compiled(parts: tuple[Any, ...], is_cased: bool) -> re.Pattern[str]:
    special = {SpecialChars.WILDCARD_MULTI: ".*", SpecialChars.WILDCARD_SINGLE: "."}
    pieces = [re.escape(part) if isinstance(part, str) else special[part] for part in parts]
    return re.compile("".join(pieces), re.S | (0 if is_cased else re.I))


def _number_of(wanted: SigmaString) -> float | int | None:
    text = "".join(part for part in wanted.s if isinstance(part, str))
    if len(wanted.s) > 1 or not re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?", text):
        return None
    return float(text) if "." in text else int(text)


def _searched(wanted: SigmaRegularExpression, value: str) -> bool:
    flags = 0
    for flag in wanted.flags:
        flags |= _FLAGS[flag.name]
    return re.search(str(wanted.regexp), value, flags) is not None


def _is_in(value: str, wanted: SigmaCIDRExpression) -> bool:
    try:
        return ipaddress.ip_address(value) in wanted.network
    except ValueError:
        return False


def _texts(event: Mapping[str, Any]) -> Iterator[str]:
    for value in event.values():
        if isinstance(value, str):
            yield value


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind)
