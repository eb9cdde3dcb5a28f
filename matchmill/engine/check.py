"""What needs a second look: typos, wrong types, conditions that say nothing, repeated ones.

Findings about events come from a sample (`seen_events.py`), and each says how large it was. Chance
alone must not make one, so:

    unknown_attribute   the events are rows of tables without such a column; or they are 100, and
                        none of them has it; or they are 20, and there is a name like it
    wrong_type          20 events have the attribute, and none of them with a type that the
                        expression can compare
    never, always       1,000 events have the attribute with such a type. If the condition asks for
                        certain values or texts, and not for a range, then also: of the values of
                        the attribute at most one in a hundred occurs only once, so that a value
                        that has not been seen is unlikely to come

The other findings need no events: expressions that contradict themselves, that are always true,
that are there twice, conditions that add nothing to another one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.event_batch import EventBatch
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.pattern_work import reject_costly
from matchmill.engine.distinct_conditions import Asked, Conditions, count_true
from matchmill.engine.insights import Costly, find_insights
from matchmill.engine.seen_events import Facts, SeenEvents
from matchmill.engine.subscription_table import Id
from matchmill.errors import did_you_mean
from matchmill.io.reports import CheckReport, Finding
from matchmill.language.expression import (
    ANY_ATTRIBUTE,
    And,
    Between,
    Compare,
    Contains,
    Expression,
    In,
    IsNull,
    IsTrue,
    Like,
    Or,
    Predicate,
    RLike,
    name_text,
    walk,
)
from matchmill.language.normal_form import NormalForm, predicate_clauses
from matchmill.language.patterns import like_shape, like_to_regex, program_size
from matchmill.language.values import Region, region_of
from matchmill.settings import Settings

if TYPE_CHECKING:
    from matchmill.engine.state import State, Store

__all__ = ["KINDS", "check_one", "check_store", "unknown_attributes"]

KINDS = (
    *("unknown_attribute", "wrong_type", "never", "always"),
    *("slow_pattern", "costly", "duplicate", "contained"),
)

_ROWS_AT_ONCE = 50_000
_ENOUGH_WITHOUT_NAME = 100
_ENOUGH_WITH_SIMILAR = 20
_ENOUGH_OF_TYPE = 20
_ENOUGH_OF_CONDITION = 1000
_ENOUGH_FOR_COSTS = 256
_MOST_FOR_COSTS = 1024
_MOST_COSTLY = 10
_MOST_NAMES = 2000  # among which similar ones are looked for
_MOST_SUGGESTIONS = 200  # similar names and texts, which take a while to find
_LONG_PROGRAM = 1000  # instructions of a pattern
_LONG_TEXT = 80

_OF_FORM = {
    "never": ("no event can satisfy it", "its conditions contradict each other"),
    "always": ("every event satisfies it", "its conditions are always true"),
}

# What a condition needs of a value: its type, and for a list the type of some element.
_Need: TypeAlias = tuple[Region, Region | None]

_WORDS = {
    Region.BOOLEAN: "a boolean",
    Region.LIST: "a list",
    Region.NUMBER: "a number",
    Region.DATE: "a date",
    Region.TIMESTAMP: "a timestamp",
    Region.STRING: "text",
    Region.OBJECT: "an object",
}


def check_store(store: Store, seen: SeenEvents | None) -> CheckReport:
    """Check all subscriptions of an engine, against some events if there are any."""
    state = store.state
    if seen is not None and seen.n_events == 0:
        seen = None
    warnings = _of_clauses(store, state, seen)
    checker = _Checker(seen, store.settings)
    n_subscriptions = 0
    for ids, texts in _subscriptions(state):
        n_subscriptions += len(ids)
        warnings += checker.check(ids, texts)
    place = {kind: number for number, kind in enumerate(KINDS)}
    warnings.sort(key=lambda one: place[one.kind])  # stable: subscriptions stay in order
    return CheckReport(
        n_subscriptions,
        0 if seen is None else seen.n_events,
        [] if seen is None else seen.rejected,
        warnings,
    )


def check_one(text: str, normal: NormalForm, seen: SeenEvents, settings: Settings) -> list[Finding]:
    """Return what is to be said about one expression that is stored nowhere."""
    warnings = []
    if normal.kind in _OF_FORM:
        warnings.append(Finding(None, normal.kind, *_OF_FORM[normal.kind]))
    return warnings + _Checker(seen if seen.n_events else None, settings).check([""], [text])


def _subscriptions(state: State) -> Iterator[tuple[list[Id], list[str]]]:
    subscriptions = state.subscriptions
    rows = subscriptions.row_of_number.array.copy()
    numbers = np.flatnonzero(rows >= 0)
    for start in range(0, len(numbers), _ROWS_AT_ONCE):
        some = numbers[start : start + _ROWS_AT_ONCE]
        texts = [subscriptions.texts[row] for row in rows[some].tolist()]
        yield subscriptions.ids_of_numbers(some).to_pylist(), texts


# -- clauses --------------------------------------------------------------------------------------


def _of_clauses(store: Store, state: State, seen: SeenEvents | None) -> list[Finding]:
    segments = [(segment.built, segment.table) for segment in state.snapshot.segments]
    sample = _sample(store, state, seen)
    most = state.subscriptions.n_live
    found = find_insights(segments, state.subscriptions, sample, most)
    warnings = [Finding(id, "never", *_OF_FORM["never"]) for id in found.never]
    warnings += [Finding(id, "always", *_OF_FORM["always"]) for id in found.always]
    if sample is not None and sample.n_events >= _ENOUGH_FOR_COSTS:
        warnings += [
            _costly(one) for one in [c for c in found.costly if _is_costly(c)][:_MOST_COSTLY]
        ]
    for first, *others in found.duplicates:
        message = f"it asks for the same as {first!r}"
        warnings += [Finding(id, "duplicate", message) for id in others]
    return warnings


def _sample(store: Store, state: State, seen: SeenEvents | None) -> EventBatch | None:
    """Return the events that tell costs: of those given, or of those that were matched."""
    if seen is None:
        return store.sample.batch() if store.sample.n_sampled else None
    chunk = reject_costly(state.dimensions, seen.chunks[0], store.settings.max_pattern_work)
    batch = encode_events(state.dimensions, chunk)
    return batch.slice(0, min(_MOST_FOR_COSTS, batch.n_events))


def _is_costly(one: Costly) -> bool:
    return one.checked_per_event >= 0.5 and one.matched_per_event <= one.checked_per_event / 10


def _costly(one: Costly) -> Finding:
    return Finding(
        one.id,
        "costly",
        f"the index looks at it {one.checked_per_event:.2g} times per event, and"
        f" {one.matched_per_event:.2%} of the events satisfy it",
        "a condition that few events satisfy, such as `=` on a rare value, would make it cheap",
    )


# -- conditions -----------------------------------------------------------------------------------


class _Checker:
    """Checks conditions, some thousand subscriptions at a time."""

    def __init__(self, seen: SeenEvents | None, settings: Settings) -> None:
        self._seen = seen
        self._settings = settings
        self._facts = None if seen is None else seen.facts()
        self._n_suggested = 0
        self._needs: list[tuple[_Need, ...]] = []  # of each condition of some subscriptions
        self._unknown: Callable[[str], Finding | None] = _no_finding
        if self._facts is not None:
            self._unknown = functools.cache(_unknown_finder(self._facts))

    def check(self, ids: Sequence[Id], texts: Sequence[str]) -> list[Finding]:
        """Return what was found about some subscriptions."""
        conditions = Conditions()
        asked = [conditions.read(text) for text in texts]
        self._needs = [_needs(predicate) for predicate in conditions.predicates]
        wrong: dict[tuple[int, ...], Finding | None] = {}
        said = self._about(conditions.predicates)
        warnings = []
        for id, one in zip(ids, asked, strict=True):
            if self._facts is not None:
                found = self._about_attributes(one, conditions.predicates, wrong)
                warnings += [finding._replace(id=id) for finding in found]
            for number in one.conditions:
                warnings += [finding._replace(id=id) for finding in said.get(number, ())]
            warnings += _superfluous(id, one, conditions.predicates)
        return warnings

    # -- attributes and types

    def _about_attributes(
        self,
        asked: Asked,
        predicates: Sequence[Predicate],
        wrong: dict[tuple[int, ...], Finding | None],
    ) -> Iterator[Finding]:
        by_name: dict[str, tuple[int, ...]] = dict.fromkeys(asked.others, ())
        for number in asked.conditions:
            name = predicates[number].name
            by_name[name] = (*by_name.get(name, ()), number)
        by_name.pop(ANY_ATTRIBUTE, None)
        for name, own in by_name.items():
            finding = self._unknown(name)
            if finding is None:
                if own not in wrong:
                    wrong[own] = self._wrong_type(name, own, predicates)
                finding = wrong[own]
            if finding is not None:
                yield finding

    def _wrong_type(
        self, name: str, own: tuple[int, ...], predicates: Sequence[Predicate]
    ) -> Finding | None:
        facts = self._facts
        assert facts is not None
        asking = [number for number in own if self._needs[number]]
        n_present = facts.n_present[name]
        if not asking or n_present < _ENOUGH_OF_TYPE:
            return None
        needs = [need for number in asking for need in self._needs[number]]
        if any(_n_comparable(facts, name, need) for need in needs):
            return None
        first, needs = predicates[asking[0]], list(self._needs[asking[0]])
        types = facts.types_of(name)
        wanted = " or ".join(dict.fromkeys(_WORDS[kind] for kind, _ in needs))
        if needs[0][0] == Region.LIST == types[0]:
            elements = " or ".join(dict.fromkeys(_WORDS[e] for _, e in needs if e is not None))
            wanted = f"{elements} in the list"
            is_what = "has none"
        else:
            is_what = "is " + " or ".join(_WORDS[kind] for kind in types)
        return Finding(
            None,
            "wrong_type",
            f"`{_short(first)}` needs {wanted}, but {name_text(name)} {is_what} in all"
            f" {n_present:,} events that have it",
            _retyped(first, types[0], facts.names),
        )

    # -- truth

    def _about(self, predicates: Sequence[Predicate]) -> dict[int, list[Finding]]:
        """Return what is to be said about each condition for itself."""
        said: dict[int, list[Finding]] = {}
        for number, predicate in enumerate(predicates):
            if (slow := _slow_pattern(predicate)) is not None:
                said[number] = [slow]
        if self._seen is None or self._seen.n_events < _ENOUGH_OF_CONDITION:
            return said
        n_true, n_events = count_true(predicates, self._seen.chunks, self._settings)
        for number in np.flatnonzero((n_true == 0) | (n_true == n_events)).tolist():
            finding = self._about_truth(number, predicates[number], n_true[number] > 0, n_events)
            if finding is not None:
                said.setdefault(number, []).append(finding)
        return said

    def _about_truth(
        self, number: int, predicate: Predicate, is_always: bool, n_events: int
    ) -> Finding | None:
        facts = self._facts
        assert facts is not None
        needs = self._needs[number]
        n_comparable = sum(_n_comparable(facts, predicate.name, need) for need in needs)
        if n_comparable < _ENOUGH_OF_CONDITION:
            return None
        if not _is_range(predicate):
            kinds = {element if element is not None else kind for kind, element in needs}
            if kinds & {Region.DATE, Region.TIMESTAMP}:
                kinds.add(Region.STRING)  # a text may stand for a time
            if not all(
                facts.values(predicate.name, kind).are_few
                for kind in kinds
                if facts.n_of_type[predicate.name, kind]
                or facts.n_with_element[predicate.name, kind]
            ):
                return None
        if is_always:
            message = f"`{_short(predicate)}` was true for all {n_events:,} events"
            return Finding(None, "always", message)
        message = (
            f"`{_short(predicate)}` was true for none of the {n_comparable:,} events that have"
            f" {name_text(predicate.name)}"
        )
        return Finding(None, "never", message, self._seen_instead(predicate))

    def _seen_instead(self, predicate: Predicate) -> str:
        """Say which values the attribute has."""
        assert self._facts is not None
        numbers = self._facts.values(predicate.name, Region.NUMBER)
        if isinstance(predicate, (Compare, Between)) and numbers.n_values and _is_range(predicate):
            return f"the numbers go from {numbers.low} to {numbers.high}"
        texts = self._facts.values(predicate.name, Region.STRING).texts
        for value in _texts_of(predicate):
            self._n_suggested += 1
            if self._n_suggested > _MOST_SUGGESTIONS:
                return ""
            if similar := did_you_mean(value, texts):
                return similar.removeprefix("; ")
        return ""


def unknown_attributes(
    dimensions: Dimensions, ids: Iterable[Id], texts: Sequence[str], facts: Facts
) -> list[Finding]:
    """Return the subscriptions that ask for attributes that no event has.

    `dimensions` are those of the subscriptions, and maybe of others: if events have all of their
    attributes, no text has to be read. A few texts are read at once.
    """
    if facts.n_events == 0:
        return []
    unknown = functools.cache(_unknown_finder(facts))
    last_names = {""}  # which is in every text
    if len(texts) > len(dimensions.plans):
        names = list(dimensions.plans)
        last_names = {name.rpartition(".")[2] for name in names if unknown(name) is not None}
    warnings: list[Finding] = []
    if not last_names:
        return warnings
    conditions = Conditions()
    for id, text in zip(ids, texts, strict=True):
        # A quick look before the slow one; a quote in a name is doubled in the text.
        if '"' in text or any(name in text for name in last_names):
            asked = conditions.read(text)
            names = [*(conditions.predicates[k].name for k in asked.conditions), *asked.others]
            names = [name for name in names if name != ANY_ATTRIBUTE]
            found = map(unknown, dict.fromkeys(names))
            warnings += [one._replace(id=id) for one in found if one is not None]
    return warnings


def _no_finding(_: str) -> Finding | None:
    return None


def _unknown_finder(facts: Facts) -> Callable[[str], Finding | None]:
    """Return a function that returns a finding about an attribute if no event has it."""
    n_suggested = 0

    def find(name: str) -> Finding | None:
        nonlocal n_suggested
        if facts.has(name):
            return None
        n_suggested += 1
        is_quick = len(facts.names) <= _MOST_NAMES and n_suggested <= _MOST_SUGGESTIONS
        names = facts.names if is_quick else ()
        similar = _inside(name, names) or did_you_mean(name, names).removeprefix("; ")
        enough = _ENOUGH_WITH_SIMILAR if similar else _ENOUGH_WITHOUT_NAME
        if facts.have_columns:
            message = f"the events have no column {name_text(name)}"
        elif facts.n_events >= enough:
            message = f"none of the {facts.n_events:,} events has {name_text(name)}"
        else:
            return None
        return Finding(None, "unknown_attribute", message, similar)

    return find


# -- what a condition needs -----------------------------------------------------------------------


def _needs(predicate: Predicate) -> tuple[_Need, ...]:
    """Return the types of values for which the condition is true or false."""
    if isinstance(predicate, IsNull):
        return ()
    if isinstance(predicate, IsTrue):
        return ((Region.BOOLEAN, None),)
    if isinstance(predicate, Contains) and predicate.mode == "none":
        return ((Region.LIST, None),)
    kinds: Iterable[Region] = (Region.STRING,)
    if isinstance(predicate, Compare):
        kinds = (region_of(predicate.value),)
    elif isinstance(predicate, Between):
        kinds = (region_of(predicate.low),)
    elif isinstance(predicate, (In, Contains)):
        kinds = dict.fromkeys(map(region_of, predicate.values))
    if isinstance(predicate, Contains) or getattr(predicate, "any_element", False):
        return tuple((Region.LIST, kind) for kind in kinds)
    return tuple((kind, None) for kind in kinds)


def _n_comparable(facts: Facts, name: str, need: _Need) -> int:
    kind, element = need
    if element is None:
        return facts.n_of_type[name, kind] + facts.n_as_time(name, kind)
    return facts.n_with_element[name, element] + facts.n_as_time(name, element)


def _is_range(predicate: Predicate) -> bool:
    """Whether it asks for values between two ends."""
    is_order = isinstance(predicate, Compare) and predicate.op not in ("=", "!=")
    return is_order or isinstance(predicate, Between)


def _texts_of(predicate: Predicate) -> list[str]:
    values: Iterable[object] = ()
    if isinstance(predicate, Compare):
        values = (predicate.value,)
    elif isinstance(predicate, (In, Contains)):
        values = predicate.values[:3]
    elif isinstance(predicate, Like) and like_shape(predicate.pattern)[0] == "exact":
        values = (predicate.pattern,)
    return [value for value in values if isinstance(value, str)]


def _retyped(predicate: Predicate, kind: Region, names: Sequence[str]) -> str:
    """Say how to write a condition for values of another type, if that is plain."""
    name = name_text(predicate.name)
    if kind == Region.OBJECT:
        return _inside(predicate.name, names)
    is_scalar = not isinstance(predicate, Contains) and not getattr(predicate, "any_element", False)
    if kind == Region.LIST and is_scalar and hasattr(predicate, "any_element"):
        on_elements: Any = predicate
        return f"of a list, write `{_short(replace(on_elements, any_element=True))}`"
    if kind != Region.LIST and not is_scalar:
        return f"of a single value, write `{name} =` or `{name} in`"
    value = predicate.value if isinstance(predicate, Compare) else None
    if kind == Region.STRING and region_of(value) in (Region.NUMBER, Region.BOOLEAN):
        return "write the value in quotes"
    if kind in (Region.NUMBER, Region.BOOLEAN) and isinstance(value, str):
        return "write the value without quotes"
    if kind == Region.STRING and _needs(predicate)[0][0] in (Region.DATE, Region.TIMESTAMP):
        return (
            "text is read as a time if it is written like 2013-01-31 or 2013-01-31T10:00:00Z;"
            " a date is no timestamp, unless that is the attribute's declared type"
        )
    return ""


def _inside(name: str, names: Iterable[str]) -> str:
    """Say which attributes an object has."""
    inside = sorted(other for other in names if other.startswith(f"{name}."))
    return f"its attributes are {', '.join(map(name_text, inside[:5]))}" if inside else ""


def _short(predicate: Predicate) -> str:
    text = str(predicate)
    return text if len(text) <= _LONG_TEXT else f"{text[: _LONG_TEXT - 1]}…"


# -- without events -------------------------------------------------------------------------------


def _slow_pattern(predicate: Predicate) -> Finding | None:
    pattern = ""
    if isinstance(predicate, RLike):
        pattern = predicate.pattern
    elif isinstance(predicate, Like) and like_shape(predicate.pattern)[0] == "general":
        pattern = like_to_regex(predicate.pattern)
    # Repeated groups and classes of characters make long programs of short patterns.
    if len(pattern) < _LONG_TEXT and "{" not in pattern:
        return None
    size = program_size(pattern)
    if size < _LONG_PROGRAM:
        return None
    message = f"`{_short(predicate)}` compiles to {size:,} instructions, run for each text"
    return Finding(None, "slow_pattern", message, "a shorter pattern, or fewer repetitions")


def _superfluous(id: Id, asked: Asked, predicates: Sequence[Predicate]) -> Iterator[Finding]:
    """Find conditions that add nothing to another one beside them."""
    own = [predicates[number] for number in asked.conditions]
    if len({predicate.name for predicate in own}) == len(own):
        return
    if asked.expression is None:
        yield from _contained(id, own, is_and=True)
        return
    for node, _ in walk(asked.expression):
        if isinstance(node, (And, Or)):
            parts = [part for part in node.operands if isinstance(part, Predicate)]
            yield from _contained(id, parts, isinstance(node, And))


def _contained(id: Id, parts: Sequence[Expression], is_and: bool) -> Iterator[Finding]:
    by_name: dict[str, list[Predicate]] = {}
    for part in parts:
        assert isinstance(part, Predicate)
        by_name.setdefault(part.name, []).append(part)
    for some in by_name.values():
        if len(some) > 1:
            yield from _contained_in_group(id, some, is_and)


def _contained_in_group(id: Id, some: Sequence[Predicate], is_and: bool) -> Iterator[Finding]:
    sets = [predicate_clauses(predicate, True) for predicate in some]
    for i, predicate in enumerate(some):
        for j, other in enumerate(some):
            if i == j or len(sets[i]) != 1 or len(sets[j]) != 1:
                continue
            if len(sets[i][0]) != 1 or sets[i][0].keys() != sets[j][0].keys():
                continue
            ((dimension, own),) = sets[i][0].items()
            wide, narrow = (own, sets[j][0][dimension])
            if not is_and:
                wide, narrow = narrow, wide
            if wide.intersect(narrow) == narrow and (wide != narrow or i > j):
                is_same = predicate == other
                says = "is there twice" if is_same else f"adds nothing to `{_short(other)}`"
                yield Finding(id, "contained", f"`{_short(predicate)}` {says}", "leave it out")
                break
