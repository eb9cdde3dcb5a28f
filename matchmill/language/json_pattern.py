"""Patterns in JSON, in the style of Amazon EventBridge, read into expressions.

    {"detail": {"state": ["running", {"prefix": "stop"}], "load": [{"numeric": [">", 5]}]}}
        │         │       └ alternatives: one of them must hold
        │         └ fields: all of them must hold
        └ nested objects give dotted names

    (detail.state = 'running' or detail.state contains 'running'
     or detail.state like 'stop%' or any(detail.state) like 'stop%')
    and (detail.load > 5 or any(detail.load) > 5)

An alternative holds for a value, or for some element of a list; a list is a type of its own in
expressions, so each alternative is written twice. Where one element has to satisfy several
conditions at once, they become a single condition: an open range is a `between` of the numbers
next to its ends, a list of excluded text patterns is one `rlike`.

The grammar is EventBridge's; docs/JSON_PATTERNS.md lists where the meaning differs. Text is decoded
by `strict_json`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import re2

from matchmill.errors import ExpressionError, LimitError
from matchmill.language.expression import (
    And,
    Between,
    Compare,
    Contains,
    Expression,
    In,
    InNetwork,
    IsNull,
    Like,
    Or,
    RLike,
    check_limits,
    network,
)
from matchmill.language.i_regexp import regexp_to_re2
from matchmill.language.json_nodes import (
    EXAMPLE,
    OPERATORS,
    alternatives_of,
    bad,
    below,
    check_keys,
    comparisons,
    only_item,
    read_json,
    scalar,
    shown,
    string,
    too_deep,
    too_long,
    wildcard_to_like,
)
from matchmill.language.patterns import check_regex, escape_like, like_to_regex
from matchmill.language.values import Value, fold_case, next_number
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["parse_json_pattern"]

_OR = "$or"


def parse_json_pattern(
    pattern: str | bytes | Mapping[str, Any], settings: Settings = DEFAULT_SETTINGS
) -> Expression:
    """Return the expression of a pattern, given as JSON text or as the decoded object.

    >>> print(parse_json_pattern('{"origin": ["JFK"]}'))
    origin = 'JFK' or origin contains 'JFK'
    """
    node: object = pattern
    if isinstance(pattern, (str, bytes)):
        node = read_json(pattern, settings)
    if not isinstance(node, Mapping):
        raise ExpressionError(f"a pattern is a JSON object, not {shown(node)}", hint=EXAMPLE)
    expression = _Reader(settings).pattern(node, "", "", 1)
    check_limits(expression, settings)
    if (
        len(str(expression)) > settings.max_expression_length
    ):  # its text has to be within the limit, too
        raise too_long(settings)
    return expression


# -- objects and fields ---------------------------------------------------------------------------


class _Reader:
    """Walks a pattern and counts, so that no input can exhaust the process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._n_conditions = self._n_values = self._n_name_characters = 0

    def spend(self, *, n_values: int = 0, n_conditions: int = 0, name: str = "") -> None:
        """Count values, or conditions on one attribute, whose name each of them repeats."""
        self._n_values += n_values
        self._n_conditions += n_conditions
        self._n_name_characters += n_conditions * len(name)
        limits = self.settings
        if self._n_conditions > limits.max_conditions or self._n_values > limits.max_values:
            raise LimitError(
                f"the pattern has more than {limits.max_conditions} conditions or"
                f" {limits.max_values} values",
                hint="split it, or raise the settings max_conditions and max_values",
            )
        if self._n_name_characters > limits.max_expression_length:
            raise too_long(limits)

    def pattern(self, node: Mapping[str, Any], prefix: str, path: str, depth: int) -> Expression:
        """Return all fields of an object; `prefix` is the beginning of their names."""
        if depth > self.settings.max_depth:
            raise too_deep(self.settings)
        check_keys(node, path)
        if not node:
            raise bad(path, "an empty object has nothing to match", EXAMPLE)
        parts = []
        for key, value in node.items():
            place = below(path, key)
            if key == _OR:
                parts.append(self._branches(value, prefix, place, depth))
            elif isinstance(value, Mapping):
                parts.append(self.pattern(value, f"{prefix}{key}.", place, depth + 1))
            else:
                if prefix:
                    _check_not_a_match_type(key, value, place)
                parts.append(self._field(value, prefix + key, place))
        return _joined(And, parts)

    def _branches(self, value: object, prefix: str, path: str, depth: int) -> Expression:
        if not isinstance(value, (list, tuple)) or len(value) < 2:
            hint = 'write {"$or": [{"a": [1]}, {"b": [2]}]}'
            raise bad(path, "$or takes an array of at least two patterns", hint)
        parts = []
        for i, branch in enumerate(value):
            place = f"{path}[{i}]"
            if not isinstance(branch, Mapping):
                raise bad(place, f"a pattern is an object, not {shown(branch)}", EXAMPLE)
            parts.append(self.pattern(branch, prefix, place, depth + 1))
        return _joined(Or, parts)

    def _field(self, value: object, name: str, path: str) -> Expression:
        alternatives = alternatives_of(value, name, path)
        self.spend(n_values=len(alternatives))
        field = _Field(name, self)
        for i, alternative in enumerate(alternatives):
            field.add(alternative, f"{path}[{i}]")
        return field.expression()


def _joined(kind: type[And] | type[Or], parts: Sequence[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


def _check_not_a_match_type(key: str, value: object, path: str) -> None:
    """Reject `"state": {"prefix": "x"}` and the like: as fields they would never match."""
    if key not in _MATCH_TYPES:
        return
    if isinstance(value, (list, tuple)) and key not in ("anything-but", "equals-ignore-case"):
        if key != "numeric" or not value or value[0] not in tuple(OPERATORS):
            return
    problem = f"{key} is a match type and stands in an array of alternatives"
    hint = f'write "field": [{{"{key}": …}}]; a field of this name is "field.{key}"'
    raise bad(path, problem, hint)


# -- alternatives ---------------------------------------------------------------------------------


class _Field:
    """The alternatives of one field. Exact values and networks are gathered into one list each."""

    def __init__(self, name: str, reader: _Reader) -> None:
        self._name = name
        self._reader = reader
        self._values: list[Value] = []
        self._networks: list[str] = []
        self._presence: list[bool] = []
        self._others: list[Expression] = []

    def add(self, alternative: object, path: str) -> None:
        """Add one alternative."""
        if alternative is None:
            self._presence.append(False)
        elif isinstance(alternative, Mapping):
            kind, argument = only_item(alternative, path, tuple(_MATCH_TYPES))
            _MATCH_TYPES[kind](self, argument, f"{path}.{kind}")
        else:
            self._values.append(scalar(alternative, path))

    def expression(self) -> Expression:
        """Return the expression of all alternatives, for a value or for an element of a list."""
        name = self._name
        parts: list[Expression] = []
        if self._values:
            values = _distinct(self._values)
            parts.append(Compare(name, "=", values[0]) if len(values) == 1 else In(name, values))
            parts.append(Contains(name, "any", values))
        if self._networks:
            networks = tuple(dict.fromkeys(self._networks))
            parts += [InNetwork(name, networks, any_element=any_) for any_ in (False, True)]
        parts += self._others
        parts += [IsNull(name, negated=present) for present in dict.fromkeys(self._presence)]
        self._reader.spend(n_conditions=sum(len(part.parts) or 1 for part in parts), name=name)
        return _joined(Or, parts)

    def prefix(self, argument: object, path: str) -> None:
        self._prefix_or_suffix("prefix", argument, path)

    def suffix(self, argument: object, path: str) -> None:
        self._prefix_or_suffix("suffix", argument, path)

    def wildcard(self, argument: object, path: str) -> None:
        self._like(self._like_pattern("wildcard", argument, path))

    def equals_ignore_case(self, argument: object, path: str) -> None:
        self._like(self._like_pattern("equals-ignore-case", argument, path), ignore_case=True)

    def regexp(self, argument: object, path: str) -> None:
        text = self._short_enough(string(argument, path), path)
        try:
            regex = regexp_to_re2(text)
            check_regex(regex, self._reader.settings.max_pattern_program)
        except LimitError as error:
            raise LimitError(f"{path}: {error.message}", hint=error.hint) from None
        except ExpressionError as error:
            raise bad(path, error.message) from None
        for any_ in (False, True):
            self._others.append(RLike(self._name, regex, any_element=any_))

    def exists(self, argument: object, path: str) -> None:
        if not isinstance(argument, bool):
            raise bad(path, f"exists is true or false, not {shown(argument)}")
        self._presence.append(argument)

    def cidr(self, argument: object, path: str) -> None:
        text = string(argument, path)
        if "/" not in text:
            hint = 'write "10.0.0.0/8"; a single address is "10.0.0.1/32"'
            raise bad(path, f"{shown(text)} has no prefix length", hint)
        try:
            network(text)
        except ExpressionError as error:
            raise bad(path, error.message, error.hint) from None
        self._networks.append(text)

    def numeric(self, argument: object, path: str) -> None:
        bounds = comparisons(argument, path)
        ends = [Compare(self._name, op, value) for op, value in bounds]
        if len(bounds) == 1:
            self._others += (ends[0], Compare(self._name, *bounds[0], any_element=True))
            return
        (low_op, low), (high_op, high) = bounds
        first = low if low_op == ">=" else next_number(low, 1)
        last = high if high_op == "<=" else next_number(high, -1)
        if first > last:
            raise bad(path, f"no number is {low_op} {low} and {high_op} {high}")
        closed = (low_op, high_op) == (">=", "<=")
        self._others.append(Between(self._name, low, high) if closed else And(tuple(ends)))
        self._others.append(Between(self._name, first, last, any_element=True))

    def anything_but(self, argument: object, path: str) -> None:
        if isinstance(argument, Mapping):
            kind, inner = only_item(argument, path, tuple(_LIKE_PATTERNS))
            self._anything_but_patterns(kind, inner, f"{path}.{kind}")
            return
        values = _distinct(self._excluded(e, place) for e, place in self._each(argument, path))
        for any_ in (False, True):
            if len(values) == 1:
                self._others.append(Compare(self._name, "!=", values[0], any_))
            else:
                self._others.append(In(self._name, values, True, any_))

    def _excluded(self, value: object, path: str) -> Value:
        if isinstance(value, Mapping):
            hint = 'write {"anything-but": {"prefix": ["a", "b"]}}'
            raise bad(path, "the array of anything-but holds values, not match types", hint)
        if value is None:
            hint = 'anything-but never matches null; leave it out, or write {"exists": true}'
            raise bad(path, "anything-but takes text, numbers and booleans, not null", hint)
        return scalar(value, path)

    def _anything_but_patterns(self, kind: str, argument: object, path: str) -> None:
        ignore_case = kind == "equals-ignore-case"
        likes: dict[str, None] = {}
        for element, place in self._each(argument, path):
            if element == "" and kind in ("prefix", "suffix"):
                raise bad(place, f"every text has an empty {kind}, so nothing would match")
            likes[self._like_pattern(kind, element, place)] = None
        if len(likes) == 1:
            self._like(next(iter(likes)), ignore_case, negated=True)
            return
        to_regex = _regex_ignoring_case if ignore_case else like_to_regex
        regex = "|".join(map(to_regex, likes))
        try:
            check_regex(regex, self._reader.settings.max_pattern_program)
        except LimitError as error:
            raise LimitError(f"{path}: {error.message}", hint="exclude fewer patterns") from None
        except ExpressionError as error:
            raise bad(path, error.message, "exclude fewer patterns") from None
        each = tuple(Like(self._name, like, True, ignore_case) for like in likes)
        self._others += (And(each), RLike(self._name, regex, True, any_element=True))

    def _each(self, argument: object, path: str) -> Iterator[tuple[object, str]]:
        """Yield the elements of an array, or the one value given, each with its path."""
        if not isinstance(argument, (list, tuple)):
            yield argument, path
            return
        if not argument:
            raise bad(path, "an empty array excludes nothing", 'write {"exists": true}')
        self._reader.spend(n_values=len(argument))
        for i, element in enumerate(argument):
            yield element, f"{path}[{i}]"

    def _prefix_or_suffix(self, kind: str, argument: object, path: str) -> None:
        ignore_case = isinstance(argument, Mapping)
        if isinstance(argument, Mapping):
            inner, argument = only_item(argument, path, ("equals-ignore-case",))
            path = f"{path}.{inner}"
        self._like(self._like_pattern(kind, argument, path), ignore_case)

    def _like_pattern(self, kind: str, argument: object, path: str) -> str:
        text = self._short_enough(string(argument, path), path)
        return self._short_enough(_LIKE_PATTERNS[kind](text, path), path)

    def _like(self, pattern: str, ignore_case: bool = False, negated: bool = False) -> None:
        for any_ in (False, True):
            self._others.append(Like(self._name, pattern, negated, ignore_case, any_))

    def _short_enough(self, pattern: str, path: str) -> str:
        limit = self._reader.settings.max_pattern_length
        if len(pattern) > limit:
            raise LimitError(
                f"{path}: this takes a pattern of {len(pattern)} characters, the most is {limit}",
                hint="shorten it, or raise the setting max_pattern_length",
            )
        return pattern


_MATCH_TYPES: dict[str, Callable[[_Field, object, str], None]] = {
    "prefix": _Field.prefix,
    "suffix": _Field.suffix,
    "wildcard": _Field.wildcard,
    "equals-ignore-case": _Field.equals_ignore_case,
    "anything-but": _Field.anything_but,
    "numeric": _Field.numeric,
    "regexp": _Field.regexp,
    "exists": _Field.exists,
    "cidr": _Field.cidr,
}


# -- values ---------------------------------------------------------------------------------------


def _distinct(values: Iterable[Value]) -> tuple[Value, ...]:
    """Return the values without repetitions; `1` is `1.0` but not `true`."""
    return tuple({(isinstance(value, bool), value): value for value in values}.values())


_LIKE_PATTERNS: dict[str, Callable[[str, str], str]] = {
    "prefix": lambda text, path: escape_like(text) + "%",
    "suffix": lambda text, path: "%" + escape_like(text),
    "wildcard": wildcard_to_like,
    "equals-ignore-case": lambda text, path: escape_like(text),
}


@cache
def _capitals() -> dict[str, str]:
    """Return for each character the others that `fold_case` turns into it."""
    capitals: dict[str, str] = {}
    for c in map(chr, range(sys.maxunicode + 1)):
        if c.lower() != c:
            capitals[fold_case(c)] = capitals.get(fold_case(c), "") + c
    return capitals


def _regex_ignoring_case(like: str) -> str:
    """Return a regex for the text of a like pattern in any case; (?i) folds more than we do."""
    capitals = _capitals()
    text = fold_case(re.sub(r"\\(.)", r"\1", like, flags=re.DOTALL))
    letters = (f"[{c}{capitals[c]}]" if c in capitals else re2.escape(c) for c in text)
    return r"\A" + "".join(letters) + r"\z"
