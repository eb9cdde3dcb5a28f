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

import difflib
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

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
    Operator,
    Or,
    RLike,
    check_limits,
    network,
)
from matchmill.language.patterns import check_regex, escape_like, like_to_regex
from matchmill.language.strict_json import (
    JsonDepthError,
    JsonError,
    JsonObject,
    decode_json,
    decode_utf8,
)
from matchmill.language.values import Value, bad_scalar, fold_case, next_number
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["parse_json_pattern"]

Number: TypeAlias = int | float

_OR = "$or"
_EXAMPLE = 'write {"field": ["value"]}'


def parse_json_pattern(
    pattern: str | bytes | Mapping[str, Any], settings: Settings = DEFAULT_SETTINGS
) -> Expression:
    """Return the expression of a pattern, given as JSON text or as the decoded object.

    >>> print(parse_json_pattern('{"origin": ["JFK"]}'))
    origin = 'JFK' or origin contains 'JFK'
    """
    node: object = pattern
    if isinstance(pattern, (str, bytes)):
        node = _read_json(pattern, settings)
    if not isinstance(node, Mapping):
        raise ExpressionError(f"a pattern is a JSON object, not {_shown(node)}", hint=_EXAMPLE)
    expression = _Reader(settings).pattern(node, "", "", 1)
    check_limits(expression, settings)
    if (
        len(str(expression)) > settings.max_expression_length
    ):  # its text has to be within the limit, too
        raise _too_long(settings)
    return expression


def _too_long(settings: Settings) -> LimitError:
    return LimitError(
        f"the pattern, or its expression, has more than "
        f"{settings.max_expression_length} characters",
        hint="split it, or raise the setting max_expression_length",
    )


def _too_deep(settings: Settings) -> LimitError:
    return LimitError(
        f"the pattern is nested too deep: the setting max_depth is {settings.max_depth}",
        hint="simplify it, or raise the setting max_depth",
    )


# -- JSON text ------------------------------------------------------------------------------------


def _read_json(pattern: str | bytes, settings: Settings) -> object:
    limit = settings.max_expression_length
    text = ""
    try:
        if len(pattern) <= 4 * limit:  # UTF-8 takes up to four bytes per character
            text = pattern if isinstance(pattern, str) else decode_utf8(pattern)
        if len(text or pattern) > limit:
            raise _too_long(settings)
        text = text.removeprefix("\ufeff")
        # An alternative of `$or` takes two brackets per level.
        depth = 2 * settings.max_depth + 8
        return decode_json(text, allow_nan=True, mark_duplicates=True, max_depth=depth)
    except JsonDepthError:
        raise _too_deep(settings) from None
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
        return "a pattern is a JSON object: " + _EXAMPLE
    before = len(text[:position].rstrip()) - 1
    places = (before, position) if text[before] == "," else (position,)
    return next((h for start, h in _JSON_HINTS for i in places if start.match(text, i)), "")


# -- messages -------------------------------------------------------------------------------------


def _bad(path: str, problem: str, hint: str = "") -> ExpressionError:
    return ExpressionError(f"{path}: {problem}" if path else problem, hint=hint)


def _shown(value: object, width: int = 40) -> str:
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


def _below(path: str, key: str) -> str:
    step = key if _PLAIN_KEY.fullmatch(key) else _shown(key)
    return f"{path}.{step}" if path else step


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
            raise _too_long(limits)

    def pattern(self, node: Mapping[str, Any], prefix: str, path: str, depth: int) -> Expression:
        """Return all fields of an object; `prefix` is the beginning of their names."""
        if depth > self.settings.max_depth:
            raise _too_deep(self.settings)
        _check_keys(node, path)
        if not node:
            raise _bad(path, "an empty object has nothing to match", _EXAMPLE)
        parts = []
        for key, value in node.items():
            place = _below(path, key)
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
            raise _bad(path, "$or takes an array of at least two patterns", hint)
        parts = []
        for i, branch in enumerate(value):
            place = f"{path}[{i}]"
            if not isinstance(branch, Mapping):
                raise _bad(place, f"a pattern is an object, not {_shown(branch)}", _EXAMPLE)
            parts.append(self.pattern(branch, prefix, place, depth + 1))
        return _joined(Or, parts)

    def _field(self, value: object, name: str, path: str) -> Expression:
        if not name:
            raise _bad(path, "the name of a field is empty")
        if problem := bad_scalar(name):
            raise _bad(path, problem)
        if not isinstance(value, (list, tuple)):
            problem = f"a field takes an array of alternatives, not {_shown(value)}"
            raise _bad(path, problem, f"write [{_shown(value)}]")
        if not value:
            hint = 'write ["value"], or [{"exists": false}] for a missing field'
            raise _bad(path, "an empty array has nothing to match", hint)
        self.spend(n_values=len(value))
        field = _Field(name, self)
        for i, alternative in enumerate(value):
            field.add(alternative, f"{path}[{i}]")
        return field.expression()


def _joined(kind: type[And] | type[Or], parts: Sequence[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


def _check_keys(node: Mapping[Any, Any], path: str) -> None:
    if isinstance(node, JsonObject):
        if node.duplicate is not None:
            hint = "put the alternatives of a field into one array"
            problem = f"the key {_shown(node.duplicate)} is given twice in one object"
            raise _bad(path, problem, hint)
        return
    for key in node:
        if not isinstance(key, str):
            raise _bad(path, f"keys are text, not {_shown(key)}")


def _check_not_a_match_type(key: str, value: object, path: str) -> None:
    """Reject `"state": {"prefix": "x"}` and the like: as fields they would never match."""
    if key not in _MATCH_TYPES:
        return
    if isinstance(value, (list, tuple)) and key not in ("anything-but", "equals-ignore-case"):
        if key != "numeric" or not value or value[0] not in tuple(_OPERATORS):
            return
    problem = f"{key} is a match type and stands in an array of alternatives"
    hint = f'write "field": [{{"{key}": …}}]; a field of this name is "field.{key}"'
    raise _bad(path, problem, hint)


def _only_item(node: Mapping[str, Any], path: str, known: Sequence[str]) -> tuple[str, Any]:
    """Return the match type and its argument."""
    _check_keys(node, path)
    if len(node) != 1:
        hint = "alternatives are objects of their own; one of them has to hold"
        raise _bad(path, f"an object in an array holds one match type, not {len(node)}", hint)
    ((kind, argument),) = node.items()
    if kind not in known:
        close = difflib.get_close_matches(kind[:40].lower().replace("_", "-"), known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(known)}"
        raise _bad(path, f"unknown match type {_shown(kind)}", hint)
    return kind, argument


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
            kind, argument = _only_item(alternative, path, tuple(_MATCH_TYPES))
            _MATCH_TYPES[kind](self, argument, f"{path}.{kind}")
        else:
            self._values.append(_scalar(alternative, path))

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

    def exists(self, argument: object, path: str) -> None:
        if not isinstance(argument, bool):
            raise _bad(path, f"exists is true or false, not {_shown(argument)}")
        self._presence.append(argument)

    def cidr(self, argument: object, path: str) -> None:
        text = _string(argument, path)
        if "/" not in text:
            hint = 'write "10.0.0.0/8"; a single address is "10.0.0.1/32"'
            raise _bad(path, f"{_shown(text)} has no prefix length", hint)
        try:
            network(text)
        except ExpressionError as error:
            raise _bad(path, error.message, error.hint) from None
        self._networks.append(text)

    def numeric(self, argument: object, path: str) -> None:
        bounds = _bounds(argument, path)
        ends = [Compare(self._name, op, value) for op, value in bounds]
        if len(bounds) == 1:
            self._others += (ends[0], Compare(self._name, *bounds[0], any_element=True))
            return
        (low_op, low), (high_op, high) = bounds
        first = low if low_op == ">=" else next_number(low, 1)
        last = high if high_op == "<=" else next_number(high, -1)
        if first > last:
            raise _bad(path, f"no number is {low_op} {low} and {high_op} {high}")
        closed = (low_op, high_op) == (">=", "<=")
        self._others.append(Between(self._name, low, high) if closed else And(tuple(ends)))
        self._others.append(Between(self._name, first, last, any_element=True))

    def anything_but(self, argument: object, path: str) -> None:
        if isinstance(argument, Mapping):
            kind, inner = _only_item(argument, path, tuple(_LIKE_PATTERNS))
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
            raise _bad(path, "the array of anything-but holds values, not match types", hint)
        if value is None:
            hint = 'anything-but never matches null; leave it out, or write {"exists": true}'
            raise _bad(path, "anything-but takes text, numbers and booleans, not null", hint)
        return _scalar(value, path)

    def _anything_but_patterns(self, kind: str, argument: object, path: str) -> None:
        ignore_case = kind == "equals-ignore-case"
        likes: dict[str, None] = {}
        for element, place in self._each(argument, path):
            if element == "" and kind in ("prefix", "suffix"):
                raise _bad(place, f"every text has an empty {kind}, so nothing would match")
            likes[self._like_pattern(kind, element, place)] = None
        if len(likes) == 1:
            self._like(next(iter(likes)), ignore_case, negated=True)
            return
        to_regex = _regex_ignoring_case if ignore_case else like_to_regex
        regex = self._short_enough("|".join(map(to_regex, likes)), path)
        try:
            check_regex(regex, self._reader.settings.max_pattern_program)
        except LimitError as error:
            raise LimitError(f"{path}: {error.message}", hint="exclude fewer patterns") from None
        except ExpressionError as error:
            raise _bad(path, error.message, "exclude fewer patterns") from None
        each = tuple(Like(self._name, like, True, ignore_case) for like in likes)
        self._others += (And(each), RLike(self._name, regex, True, any_element=True))

    def _each(self, argument: object, path: str) -> Iterator[tuple[object, str]]:
        """Yield the elements of an array, or the one value given, each with its path."""
        if not isinstance(argument, (list, tuple)):
            yield argument, path
            return
        if not argument:
            raise _bad(path, "an empty array excludes nothing", 'write {"exists": true}')
        self._reader.spend(n_values=len(argument))
        for i, element in enumerate(argument):
            yield element, f"{path}[{i}]"

    def _prefix_or_suffix(self, kind: str, argument: object, path: str) -> None:
        ignore_case = isinstance(argument, Mapping)
        if isinstance(argument, Mapping):
            inner, argument = _only_item(argument, path, ("equals-ignore-case",))
            path = f"{path}.{inner}"
        self._like(self._like_pattern(kind, argument, path), ignore_case)

    def _like_pattern(self, kind: str, argument: object, path: str) -> str:
        text = self._short_enough(_string(argument, path), path)
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
    "exists": _Field.exists,
    "cidr": _Field.cidr,
}


# -- values ---------------------------------------------------------------------------------------


def _distinct(values: Iterable[Value]) -> tuple[Value, ...]:
    """Return the values without repetitions; `1` is `1.0` but not `true`."""
    return tuple({(isinstance(value, bool), value): value for value in values}.values())


def _scalar(value: object, path: str) -> Value:
    """Return a checked literal, of exactly the types that JSON has."""
    if isinstance(value, (list, tuple)):
        raise _bad(path, "an array inside an array", "list the alternatives side by side")
    if not isinstance(value, (str, int, float)):
        raise _bad(path, f"{_shown(value)} is not JSON", "use text, numbers, true, false or null")
    if isinstance(value, float) and not math.isfinite(value):
        raise _bad(path, f"{_shown(value)} is not a number that can be compared")
    if problem := bad_scalar(value):
        hint = "write the number as a decimal (1e20)" if "64 bits" in problem else ""
        raise _bad(path, problem, hint)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool):
        return value
    return int(value) if isinstance(value, int) else float(value)


def _string(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise _bad(path, f"text is needed here, not {_shown(value)}")
    return str(_scalar(value, path))


_WILDCARD_TOKEN = re.compile(r"\\[\\*]|\*+|.", re.DOTALL)


def _wildcard(text: str, path: str) -> str:
    r"""Turn `*` into `%`; `\*` and `\\` stand for an asterisk and a backslash."""
    parts = []
    for token in _WILDCARD_TOKEN.findall(text):
        if token == "\\":
            hint = r'in JSON text write "\\*" for an asterisk, "\\\\" for a backslash'
            raise _bad(path, "a backslash stands before * or another backslash only", hint)
        if token.startswith("**"):
            raise _bad(path, "two wildcards in a row", "a single * stands for any text already")
        parts.append("%" if token == "*" else escape_like(token[-1]))
    return "".join(parts)


_LIKE_PATTERNS: dict[str, Callable[[str, str], str]] = {
    "prefix": lambda text, path: escape_like(text) + "%",
    "suffix": lambda text, path: "%" + escape_like(text),
    "wildcard": _wildcard,
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


# -- numbers --------------------------------------------------------------------------------------

_OPERATORS: dict[str, Operator] = {"=": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def _bounds(argument: object, path: str) -> list[tuple[Operator, Number]]:
    """Return `[">", 0, "<=", 5]` as pairs."""
    example = 'write [">", 5] or [">", 0, "<=", 5]'
    if not isinstance(argument, (list, tuple)) or len(argument) not in (2, 4):
        raise _bad(path, "numeric takes an array of one or two comparisons", example)
    bounds: list[tuple[Operator, Number]] = []
    for i in range(0, len(argument), 2):
        op, value = argument[i : i + 2]
        if not isinstance(op, str) or op not in _OPERATORS:
            hint = 'not equal is {"anything-but": 5}' if op in ("!=", "<>") else example
            raise _bad(f"{path}[{i}]", f"an operator is one of = < <= > >=, not {_shown(op)}", hint)
        number = _scalar(value, f"{path}[{i + 1}]")
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise _bad(f"{path}[{i + 1}]", f"a number is needed here, not {_shown(value)}")
        bounds.append((_OPERATORS[op], number))
    if len(bounds) == 2 and (bounds[0][0] not in (">", ">=") or bounds[1][0] not in ("<", "<=")):
        raise _bad(path, "a range is a lower bound, then an upper bound", example)
    return bounds
