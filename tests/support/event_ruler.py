"""What an EventBridge pattern means, read directly from event-ruler's documentation; slow.

Nothing here is shared with the package. An event is a list of facts: a dotted name, a JSON value,
and for each array above the value, known by its place in the document, the element it is in. A
pattern is a list of rules: a rule has one array of alternatives per dotted name. A rule holds if
facts can be found for all of its names, taken in order, so that no two facts are in different
elements of one array.
"""

from __future__ import annotations

import functools
import ipaddress
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

RESERVED = [
    "exactly",
    "equals-ignore-case",
    "prefix",
    "suffix",
    "anything-but",
    "exists",
    "wildcard",
    "numeric",
    "cidr",
    "=",
    "<",
    "<=",
    ">",
    ">=",
    "regex",
    "not-wildcard",
    "not-equals-ignore-case",
    "date-after",
    "date-on-or-after",
    "date-before",
    "date-on-or-before",
    "in-date-range",
    "ip-address-in-range",
    "ip-address-not-in-range",
]


class Pairs(NamedTuple):
    """An object with all of its keys, also the repeated ones."""

    pairs: list[tuple[str, Any]]


class Fact(NamedTuple):
    name: str
    value: Any
    elements: dict[str, int]  # the place of an array in the document → which element


def ruler_matches(pattern: str | dict[str, Any], event: dict[str, Any]) -> bool:
    text = pattern if isinstance(pattern, str) else json.dumps(pattern)
    facts = sorted(facts_of(event, "", "$", {}), key=lambda fact: fact.name)
    return any(rule_holds(sorted(rule.items()), facts, {}) for rule in rules_of(text))


# -- events ---------------------------------------------------------------------------------------


def facts_of(node: Any, name: str, place: str, elements: dict[str, int]) -> Iterator[Fact]:
    if isinstance(node, dict):
        for key, value in node.items():
            below = f"{name}.{key}" if name else key
            yield from facts_of(value, below, f"{place}/{key}", elements)
    elif isinstance(node, list):
        for i, value in enumerate(node):
            if isinstance(value, (dict, list)):
                yield from facts_of(value, name, f"{place}/{i}", {**elements, place: i})
            else:
                yield Fact(name, value, elements)
    else:
        yield Fact(name, node, elements)


def agree(a: dict[str, int], b: dict[str, int]) -> bool:
    return all(a[place] == b[place] for place in a.keys() & b.keys())


# -- rules ----------------------------------------------------------------------------------------


def rules_of(text: str) -> list[dict[str, list[Any]]]:
    rules = combine(json.loads(text, object_pairs_hook=Pairs), "", [])
    return [dict(rule) for rule in rules]


def combine(
    node: Pairs, prefix: str, rules: list[dict[str, list[Any]]]
) -> list[dict[str, list[Any]]]:
    """Put the fields of an object into each rule; an `$or` makes one rule per branch of each."""
    for key, value in node.pairs:
        if key == "$or" and is_or(value):
            before = rules or [{}]
            branches = [
                combine(branch, prefix, [dict(rule) for rule in before]) for branch in value
            ]
            rules = list(itertools.chain.from_iterable(branches))
        elif isinstance(value, Pairs):
            rules = combine(value, f"{prefix}{key}.", rules)
        else:
            rules = [{**rule, prefix + key: value} for rule in rules or [{}]]
    return rules


def is_or(value: Any) -> bool:
    if not isinstance(value, list) or len(value) < 2:
        return False
    return all(
        isinstance(branch, Pairs) and not any(key in RESERVED for key, _ in branch.pairs)
        for branch in value
    )


def rule_holds(rule: list[tuple[str, list[Any]]], facts: list[Fact], taken: dict[str, int]) -> bool:
    if not rule:
        return True
    (name, alternatives), rest = rule[0], rule[1:]
    near = [fact for fact in facts if fact.name == name and agree(fact.elements, taken)]
    for fact in near:
        if any(holds(alternative, fact.value) for alternative in alternatives):
            if rule_holds(rest, facts, {**taken, **fact.elements}):
                return True
    may_be_absent = Pairs([("exists", False)]) in alternatives
    return may_be_absent and not near and rule_holds(rest, facts, taken)


# -- values ---------------------------------------------------------------------------------------


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def same(a: Any, b: Any) -> bool:
    if is_number(a) and is_number(b):
        return float(a) == float(b)
    return type(a) is type(b) and bool(a == b)


def holds(alternative: Any, value: Any) -> bool:
    if not isinstance(alternative, Pairs):
        if isinstance(alternative, str) and isinstance(value, str) and address(alternative):
            return address(alternative) == address(value)
        return same(alternative, value)
    ((kind, argument),) = alternative.pairs
    if kind == "exists":
        return bool(argument)
    if kind == "anything-but":
        return not excluded(argument, value)
    if kind == "numeric":
        steps = zip(argument[::2], argument[1::2], strict=True)
        return is_number(value) and all(compares(value, op, bound) for op, bound in steps)
    if not isinstance(value, str):
        return False
    if kind == "exactly":
        return bool(value == argument)
    if kind == "cidr":
        known = address(value)
        return known is not None and known in ipaddress.ip_network(argument, strict=False)
    return text_holds(kind, argument, value)


def excluded(argument: Any, value: Any) -> bool:
    kind = None
    if isinstance(argument, Pairs):
        ((kind, argument),) = argument.pairs
    argument = argument if isinstance(argument, list) else [argument]
    if kind is None:
        return any(same(one, value) for one in argument)
    return isinstance(value, str) and any(text_holds(kind, one, value) for one in argument)


def text_holds(kind: str, argument: Any, value: str) -> bool:
    ignore_case = kind == "equals-ignore-case"
    if isinstance(argument, Pairs):
        ((_, argument),) = argument.pairs
        ignore_case = True
    if kind == "wildcard":
        regex = wildcard(argument)
    else:
        regex = "".join(map(either_case if ignore_case else re.escape, argument))
        regex = ".*" + regex if kind == "suffix" else regex + ".*" if kind == "prefix" else regex
    return re.fullmatch(regex, value, re.DOTALL) is not None


def either_case(c: str) -> str:
    return f"(?:{re.escape(c.lower())}|{re.escape(c.upper())})"


def wildcard(text: str) -> str:
    parts = re.findall(r"\\.|\*|[^\\*]+", text, re.DOTALL)
    return "".join(".*" if p == "*" else re.escape(p[1:] if p[0] == "\\" else p) for p in parts)


def compares(value: Any, op: str, bound: Any) -> bool:
    a, b = float(value), float(bound)
    return {"=": a == b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


@functools.cache
def address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
