"""The dialect `eventbridge`: a JSON pattern means what Amazon EventBridge says.

    {"detail": {"state": ["running"], "$or": [{"load": [{"numeric": [">", 5]}]}, {"zone": [null]}]}}

    rule 0   detail.load   > 5        detail.state   running
    rule 1   detail.state  running    detail.zone    null

A pattern becomes rules, one of which has to hold: each combination of the branches of its `$or`s is
one. In a rule a field occurs once; where the pattern gives it again, the later one counts. A rule
holds if each of its fields has a value that its test accepts, and these values stand in the same
elements of all arrays that they share. Fields are taken in the order of their names; a field that
must not exist may exist in other elements than those that were taken before it.

What is written here follows event-ruler, the matcher that Amazon publishes; docs/JSON_PATTERNS.md
lists the differences that remain.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from matchmill.errors import ExpressionError, LimitError
from matchmill.language.dialects.event_fields import (
    EventFields,
    Membership,
    event_fields,
    together,
)
from matchmill.language.dialects.field_tests import FieldTest, LetterCase
from matchmill.language.dialects.pattern import DialectPattern, Exactness, FieldNote
from matchmill.language.explanation import cut_text
from matchmill.language.expression import And, Expression, Or, literal_text
from matchmill.language.json_nodes import (
    EXAMPLE,
    alternatives_of,
    bad,
    below,
    comparisons,
    only_item,
    pairs_of,
    read_json,
    scalar,
    shown,
    string,
    too_deep,
    too_long,
    wildcard_to_like,
)
from matchmill.language.patterns import address_text
from matchmill.settings import Settings

__all__ = ["EventBridgePattern", "read_eventbridge", "stored_text"]

_Rule: TypeAlias = tuple[FieldTest, ...]  # in the order of their names
_Taken: TypeAlias = tuple[tuple[int, int], ...]  # elements of arrays, in order

_OR = "$or"
_COMPARISONS = ("=", "<", "<=", ">", ">=")
# Names of fields that turn an `$or` into an ordinary name; the later ones are kept for the future.
_RESERVED = frozenset(
    {
        *("exactly", "prefix", "suffix", "wildcard", "equals-ignore-case", "anything-but"),
        *("numeric", "exists", "cidr", *_COMPARISONS),
        *("regex", "not-wildcard", "not-equals-ignore-case"),
        *("date-after", "date-on-or-after", "date-before", "date-on-or-before", "in-date-range"),
        *("ip-address-in-range", "ip-address-not-in-range"),
    }
)
_MOST_SHOWN, _LONGEST_NAME = 80, 40


def read_eventbridge(source: object, settings: Settings) -> Expression:
    """Return the pattern that a JSON text or a decoded object is.

    >>> from matchmill.settings import DEFAULT_SETTINGS
    >>> print(read_eventbridge({"origin": ["JFK", None]}, DEFAULT_SETTINGS))
    eventbridge '{"origin":["JFK",null]}'
    """
    node: object = source
    if isinstance(source, (str, bytes)):
        node = read_json(source, settings)
    if not isinstance(node, Mapping):
        raise ExpressionError(f"a pattern is a JSON object, not {shown(node)}", hint=EXAMPLE)
    rules = _Reader(settings).rules(node)
    text = _text(source if isinstance(source, (str, bytes)) else node)
    pattern = EventBridgePattern(text, rules)
    if len(str(pattern)) > settings.max_expression_length:  # which is stored
        raise too_long(settings)
    return pattern


def stored_text(source: str | Mapping[str, Any]) -> str:
    """Return what is stored of a pattern: the text of its expression."""
    return f"eventbridge {literal_text(_text(source))}"


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict)
_SPACE = re.compile(r"[ \t\r\n]")
_TEXT_OR_SPACE = re.compile(r'("(?:[^"\\]|\\.)*+")|[ \t\r\n]+', re.DOTALL)


def _text(source: object) -> str:
    """Return a pattern as text without white space; repeated keys stay."""
    if isinstance(source, bytes):
        source = source.decode()
    if isinstance(source, str):
        text = source.removeprefix("\ufeff")
        return text if _SPACE.search(text) is None else _TEXT_OR_SPACE.sub(r"\1", text)
    return _ENCODER.encode(source)


class EventBridgePattern(DialectPattern):
    """A pattern whose meaning is that of Amazon EventBridge."""

    __slots__ = ("_exactness", "_rules", "_superset", "text")

    dialect = "eventbridge"

    def __init__(self, text: str, rules: Sequence[_Rule]) -> None:
        self.text = text
        self._rules = tuple(rules)
        self._exactness = _exactness(self._rules)
        self._superset = _superset(self._rules)

    @property
    def superset(self) -> Expression:
        """What every event satisfies for which the pattern holds."""
        return self._superset

    @property
    def exactness(self) -> Exactness:
        """When that says all."""
        return self._exactness

    @property
    def event_attributes(self) -> frozenset[str]:
        """The names of all fields."""
        return frozenset(test.name for rule in self._rules for test in rule)

    def holds(self, event: Mapping[str, Any]) -> bool:
        """Whether the pattern holds for an event."""
        fields = event_fields(event)
        return any(_holds(rule, fields) for rule in self._rules)

    def explain(self, event: Mapping[str, Any]) -> list[list[FieldNote]]:
        """Return the rules, each with what it wants of its fields."""
        fields = event_fields(event)
        return [_explained(rule, fields) for rule in self._rules]

    def __reduce__(self) -> tuple[Any, ...]:
        return (_unpickled, (self.text,))


def _unpickled(text: str) -> Expression:
    from matchmill.settings import UNLIMITED

    return read_eventbridge(text, UNLIMITED)


# -- what a rule means ----------------------------------------------------------------------------


def _holds(rule: _Rule, fields: EventFields) -> bool:
    """Whether each field has a value that is accepted, all in the same elements of arrays."""
    in_arrays: list[tuple[FieldTest, list[Membership]]] = []
    for test in rule:
        values = fields.get(test.name)
        if values is None:
            if not test.may_be_absent:
                return False
            continue
        accepts = test.accepts
        if len(values) == 1:
            value, membership = values[0]
            if accepts(value):
                if membership:
                    in_arrays.append((test, [membership]))
                continue
            if membership and test.may_be_absent:
                in_arrays.append((test, []))
                continue
            return False
        found = list(dict.fromkeys(m for value, m in values if accepts(value)))
        if not found and not test.may_be_absent:
            return False
        if found != [()]:
            in_arrays.append((test, found))
    return not in_arrays or _go_together(in_arrays, fields)


def _go_together(in_arrays: list[tuple[FieldTest, list[Membership]]], fields: EventFields) -> bool:
    """Whether one membership of each field can be taken so that no two of them differ.

    Field after field, all choices so far are kept, as the elements that they take of arrays that
    matter to later fields. Equal choices are one, so that arrays apart from each other do not
    multiply.
    """
    # The arrays that the fields from here on look at.
    later: list[set[int]] = [set()]
    for test, found in reversed(in_arrays):
        looked_at = fields[test.name] if test.may_be_absent else [(None, m) for m in found]
        later.append(later[-1].union(array for _, m in looked_at for array, _ in m))
    later.reverse()
    choices: dict[_Taken, dict[int, int]] = {(): {}}
    for (test, found), matters in zip(in_arrays, later[1:], strict=True):
        following: dict[_Taken, dict[int, int]] = {}
        for taken in choices.values():
            for membership in found:
                both = together(taken, membership)
                if both is not None:
                    _keep(following, both, matters)
            if test.may_be_absent and all(
                together(taken, membership) is None for _, membership in fields[test.name]
            ):
                _keep(following, taken, matters)
        if not following:
            return False
        choices = following
    return True


def _keep(choices: dict[_Taken, dict[int, int]], taken: dict[int, int], matters: set[int]) -> None:
    kept = {array: element for array, element in taken.items() if array in matters}
    choices[tuple(sorted(kept.items()))] = kept


def _explained(rule: _Rule, fields: EventFields) -> list[FieldNote]:
    notes = []
    is_true = _holds(rule, fields)
    for test in rule:
        values = [value for value, _ in fields.get(test.name, [])]
        truth = is_true or (any(map(test.accepts, values)) if values else test.may_be_absent)
        what = ", ".join(shown(value) for value in values[:3]) if values else "missing"
        more = f", … ({len(values)} values)" if len(values) > 3 else ""
        wanted = cut_text(
            json.dumps(test.alternatives, ensure_ascii=False, default=dict), _MOST_SHOWN
        )
        name = cut_text(test.name, _LONGEST_NAME)
        notes.append(FieldNote(f"{name}: {wanted}", truth, f"{name} is {what}{more}"))
    if all(note.truth for note in notes) and not is_true:
        problem = "no element of the array has all of these values at once"
        notes.append(FieldNote("the same element of each array", False, problem))
    return notes


# -- what the index gets --------------------------------------------------------------------------


def _exactness(rules: tuple[_Rule, ...]) -> Exactness:
    if not all(test.is_exact for rule in rules for test in rule):
        return Exactness.NONE
    for rule in rules:
        # Fields share an array only if they begin with the same name.
        if len({test.name.partition(".")[0] for test in rule}) < len(rule):
            return Exactness.WITHOUT_LISTS
    return Exactness.ALL


def _superset(rules: tuple[_Rule, ...]) -> Expression:
    """Return what the rules imply; what all of them share is said once."""
    if len(rules) == 1:
        return _all_of(rules[0])
    shared = set(rules[0]).intersection(*rules[1:])
    common = tuple(test for test in rules[0] if test in shared)
    branches = []
    for rule in rules:
        own = tuple(test for test in rule if test not in shared)
        if not own:  # the others say more than this one
            return _all_of(common)
        branches.append(_all_of(own))
    either = Or(tuple(branches))
    return And((*(test.superset() for test in common), either)) if common else either


def _all_of(tests: Sequence[FieldTest]) -> Expression:
    parts = tuple(test.superset() for test in tests)
    return parts[0] if len(parts) == 1 else And(parts)


# -- reading --------------------------------------------------------------------------------------


def _in_order(rule: dict[str, FieldTest]) -> _Rule:
    """Return the fields in the order in which event-ruler takes them."""
    if len(rule) == 1:
        return tuple(rule.values())
    names = sorted(rule) if all(map(str.isascii, rule)) else sorted(rule, key=_utf16)
    return tuple(rule[name] for name in names)


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be")


class _Reader:
    """Walks a pattern and counts, so that no input can exhaust the process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._n_conditions = self._n_values = self._n_tests = 0

    def rules(self, node: Mapping[str, Any]) -> list[_Rule]:
        """Return the rules of a whole pattern."""
        rules: list[dict[str, FieldTest]] = []
        self._object(node, "", "", 1, rules, False)
        return [_in_order(rule) for rule in rules]

    def _spend(self, n_values: int) -> None:
        self._n_conditions += n_values
        self._n_values += n_values
        if self._n_values > self._settings.max_values:
            raise self._too_large("values", "max_values", self._settings.max_values)

    def _too_large(self, what: str, setting: str, most: int) -> LimitError:
        return LimitError(
            f"the pattern has more than {most} {what}",
            hint=f"split it, or raise the setting {setting}",
        )

    def _object(
        self,
        node: Mapping[str, Any],
        prefix: str,
        path: str,
        depth: int,
        rules: list[dict[str, FieldTest]],
        in_or: bool,
    ) -> None:
        """Add all fields of an object to the rules; `prefix` is the beginning of their names."""
        if depth > self._settings.max_depth:
            raise too_deep(self._settings)
        pairs = pairs_of(node, path)
        if not pairs:
            raise bad(path, "an empty object has nothing to match", EXAMPLE)
        for key, value in pairs:
            place = below(path, key)
            if key == _OR and _is_or(value):
                self._branches(value, prefix, place, depth, rules)
                continue
            if in_or and key in _RESERVED:
                raise bad(place, f"{key} is a reserved name, which no field inside of $or has")
            if isinstance(value, Mapping):
                self._object(value, f"{prefix}{key}.", place, depth + 1, rules, in_or)
                continue
            test = self._field(value, prefix + key, place)
            if not rules:
                rules.append({})
            for rule in rules:
                rule[test.name] = test
            self._count_tests(len(rules))

    def _count_tests(self, n_new: int) -> None:
        self._n_tests += n_new
        limit = self._settings.max_conditions
        if self._n_tests > limit:
            raise self._too_large(
                "fields, those of all combinations of $or added up", "max_conditions", limit
            )

    def _branches(
        self,
        value: Sequence[Mapping[str, Any]],
        prefix: str,
        path: str,
        depth: int,
        rules: list[dict[str, FieldTest]],
    ) -> None:
        """Multiply the rules by the branches of an `$or`."""
        before = rules.copy() or [{}]
        rules.clear()
        for i, branch in enumerate(value):
            self._count_tests(sum(map(len, before)))
            own = [dict(rule) for rule in before]
            self._object(branch, prefix, f"{path}[{i}]", depth + 1, own, True)
            rules += own

    def _field(self, value: object, name: str, path: str) -> FieldTest:
        alternatives = alternatives_of(value, name, path)
        self._spend(len(alternatives))
        test = FieldTest(name)
        test.alternatives = alternatives
        for i, alternative in enumerate(alternatives):
            self._alternative(test, alternative, f"{path}[{i}]")
        return test

    def _alternative(self, test: FieldTest, alternative: object, path: str) -> None:
        if alternative is None:
            test.add_null()
            return
        if isinstance(alternative, Mapping):
            kind, argument = only_item(alternative, path, tuple(_MATCH_TYPES))
            _MATCH_TYPES[kind](self, test, argument, f"{path}.{kind}")
            return
        value = scalar(alternative, path)
        if isinstance(value, str):
            test.add_text(value)
        elif isinstance(value, bool):
            test.add_boolean(value)
        else:
            assert isinstance(value, (int, float))
            test.add_number(value)

    # -- match types

    def _exactly(self, test: FieldTest, argument: object, path: str) -> None:
        test.add_exactly(string(argument, path))

    def _exists(self, test: FieldTest, argument: object, path: str) -> None:
        if not isinstance(argument, bool):
            raise bad(path, f"exists is true or false, not {shown(argument)}")
        test.add_presence(argument)

    def _prefix(self, test: FieldTest, argument: object, path: str) -> None:
        self._part(test, argument, path, "", "%")

    def _suffix(self, test: FieldTest, argument: object, path: str) -> None:
        self._part(test, argument, path, "%", "")

    def _part(self, test: FieldTest, argument: object, path: str, before: str, after: str) -> None:
        if isinstance(argument, Mapping):
            kind, inner = only_item(argument, path, ("equals-ignore-case",))
            text = self._text(inner, f"{path}.{kind}")
            test.add_letter_case(LetterCase(text, before, after))
        elif after:
            test.add_prefixes([self._text(argument, path)])
        else:
            test.add_suffixes([self._text(argument, path)])

    def _equals_ignore_case(self, test: FieldTest, argument: object, path: str) -> None:
        test.add_letter_case(LetterCase(self._text(argument, path)))

    def _wildcard(self, test: FieldTest, argument: object, path: str) -> None:
        test.add_like(wildcard_to_like(self._text(argument, path), path))

    def _cidr(self, test: FieldTest, argument: object, path: str) -> None:
        text = string(argument, path)
        address, slash, bits = text.partition("/")
        if not slash:
            hint = 'write "10.0.0.0/8"; a single address is a text: "10.0.0.1"'
            raise bad(path, f"{shown(text)} has no prefix length", hint)
        most = 127 if ":" in address else 31
        if not re.fullmatch("[0-9]{1,3}", bits) or int(bits) > most:
            raise bad(path, f"the prefix length is from 0 to {most}, not {shown(bits)}")
        if address_text(address) is None:
            raise bad(path, f"{shown(address)} is not an IP address")
        test.add_network(str(ipaddress.ip_network(f"{address}/{bits}", strict=False)))

    def _numeric(self, test: FieldTest, argument: object, path: str) -> None:
        bounds = comparisons(argument, path)
        if len(bounds) == 1:
            test.add_comparison(*bounds[0])
            return
        low, high = bounds
        if float(low[1]) >= float(high[1]):
            raise bad(path, "the lower bound of a range has to be below the upper one")
        test.add_range(low, high)

    def _anything_but(self, test: FieldTest, argument: object, path: str) -> None:
        excluded = FieldTest(test.name)
        if isinstance(argument, Mapping):
            kind, inner = only_item(argument, path, tuple(_EXCLUDED_TEXTS))
            place = f"{path}.{kind}"
            for element, its_place in self._each(inner, place):
                if kind in ("prefix", "suffix") and element == "":
                    raise bad(its_place, f"every text has an empty {kind}")
                if isinstance(element, Mapping):
                    raise bad(its_place, f"text is needed here, not {shown(element)}")
                _MATCH_TYPES[kind](self, excluded, element, its_place)
        else:
            self._excluded_values(excluded, argument, path)
        test.add_excluded(excluded)

    def _excluded_values(self, excluded: FieldTest, argument: object, path: str) -> None:
        kinds = set()
        for element, place in self._each(argument, path):
            if element is None or isinstance(element, (bool, Mapping)):
                raise bad(place, f"anything-but takes text and numbers, not {shown(element)}")
            value = scalar(element, place)
            kinds.add(type(value) is str)
            if isinstance(value, str):
                excluded.add_exactly(value)
            else:
                assert isinstance(value, (int, float))
                excluded.add_number(value)
        if len(kinds) > 1:
            hint = "write two patterns, or name the other values with exists and numeric"
            raise bad(path, "the values of anything-but are all texts or all numbers", hint)

    def _each(self, argument: object, path: str) -> Iterator[tuple[object, str]]:
        """Yield the elements of an array, or the one value given, each with its path."""
        if not isinstance(argument, (list, tuple)):
            yield argument, path
            return
        if not argument:
            raise bad(path, "an empty array excludes nothing", 'write {"exists": true}')
        self._spend(len(argument))
        for i, element in enumerate(argument):
            yield element, f"{path}[{i}]"

    def _text(self, argument: object, path: str) -> str:
        text = string(argument, path)
        limit = self._settings.max_pattern_length
        if len(text) > limit:
            raise LimitError(
                f"{path}: this is a text of {len(text)} characters, the most is {limit}",
                hint="shorten it, or raise the setting max_pattern_length",
            )
        return text


def _is_or(value: object) -> bool:
    """Whether `$or` is the word, and not the name of a field."""
    if not isinstance(value, (list, tuple)) or len(value) < 2:
        return False
    return all(isinstance(branch, Mapping) and _RESERVED.isdisjoint(branch) for branch in value)


_MATCH_TYPES = {
    "exactly": _Reader._exactly,
    "prefix": _Reader._prefix,
    "suffix": _Reader._suffix,
    "wildcard": _Reader._wildcard,
    "equals-ignore-case": _Reader._equals_ignore_case,
    "anything-but": _Reader._anything_but,
    "numeric": _Reader._numeric,
    "exists": _Reader._exists,
    "cidr": _Reader._cidr,
}
_EXCLUDED_TEXTS = ("prefix", "suffix", "wildcard", "equals-ignore-case")
