"""The conditions of many expressions, each kept once, and how often each is true.

    "price < 10 and place = 'Rome'"  ──►  0 1          0  price < 10
    "place = 'Rome'"                 ──►  1            1  place = 'Rome'

A text is cut at each ` and `, as in `condition_cache.py`, so that what was read before is not read
again; what cannot be cut so is left to the parser.

A condition is a set of keys on a dimension. So how often it is true is a difference of two places
in the sorted keys of all events, and no condition is compared with any event. Of a condition with
a flag that must be absent (`not like '%x%'`), the events with the flag are a part of those with the
type, and are taken off. Conditions on lists, of which an event has several keys, are matched. Only
the few other conditions on several dimensions are tried with each event.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from matchmill.encoding.clause_encoder import ClauseEncoder
from matchmill.encoding.conjunction_table import ConjunctionTable, divide
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.event_batch import EventBatch
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events.columns import EventColumns
from matchmill.encoding.pattern_work import reject_costly
from matchmill.errors import ExpressionError
from matchmill.index.lists import ListIndex
from matchmill.kernels.csr import offsets_of
from matchmill.language.comments import may_have_comments
from matchmill.language.expression import Expression, Predicate, walk
from matchmill.language.normal_form import FLAG_DERIVATIONS, predicate_clauses
from matchmill.language.parser import parse
from matchmill.settings import UNLIMITED, Settings

__all__ = ["Asked", "Conditions", "count_true"]


class Asked(NamedTuple):
    """What one expression asks for."""

    conditions: list[int]  # numbers
    others: list[str]  # attributes that calls of operators look at
    expression: Expression | None  # None if it is a conjunction, or one condition


class Conditions:
    """Numbers for conditions, in order of first appearance."""

    def __init__(self) -> None:
        self.predicates: list[Predicate] = []
        self._numbers: dict[str, int] = {}
        self._pieces: dict[str, int | None] = {}

    def read(self, text: str) -> Asked:
        """Return what the text of an expression asks for."""
        if may_have_comments(text):
            return self._read_all(parse(text, UNLIMITED))
        pieces = _conjuncts(text)
        found = []
        for piece in pieces:
            number = self._pieces.get(piece, -1)
            if number == -1:
                number = self._pieces[piece] = self._read_piece(piece)
            if number is None:
                return self._read_all(parse(text, UNLIMITED))
            found.append(number)
        return Asked(found, [], None)

    def _read_piece(self, piece: str) -> int | None:
        try:
            parsed = parse(piece, UNLIMITED)
        except ExpressionError:
            return None
        return self._number(parsed) if isinstance(parsed, Predicate) else None

    def _read_all(self, expression: Expression) -> Asked:
        conditions: dict[int, None] = {}
        others: dict[str, None] = {}
        for node, _ in walk(expression):
            if isinstance(node, Predicate):
                conditions[self._number(node)] = None
            else:
                others |= dict.fromkeys(sorted(node.event_attributes))
        return Asked(sorted(conditions), list(others), expression)

    def _number(self, predicate: Predicate) -> int:
        text = str(predicate)
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self.predicates)
            self.predicates.append(predicate)
        return number


def _conjuncts(text: str) -> list[str]:
    """Cut a text at each ` and ` but those of `between`."""
    pieces = text.split(" and ")
    if " between " not in text:
        return pieces
    joined: list[str] = []
    rest = iter(pieces)
    for piece in rest:
        second = next(rest, None) if " between " in piece else None
        joined.append(piece if second is None else f"{piece} and {second}")
    return joined


# -- counting -------------------------------------------------------------------------------------


def count_true(
    predicates: Iterable[Predicate], chunks: Iterable[EventColumns], settings: Settings
) -> tuple[np.ndarray, int]:
    """Return for how many events each condition is true, and how many events there are."""
    dimensions = Dimensions()
    encoder = ClauseEncoder(dimensions)
    n_clauses: list[int] = []
    for predicate in predicates:
        clauses = predicate_clauses(predicate, True)
        encoder.add(clauses)
        n_clauses.append(len(clauses))
    encoded = encoder.finish(np.arange(sum(n_clauses)))
    counter = _Counter(encoded.dimensions, encoded.table, np.array(n_clauses, np.int64))
    totals, n_events = np.zeros(len(n_clauses), np.int64), 0
    for chunk in chunks:
        events = reject_costly(encoded.dimensions, chunk, settings.max_pattern_work)
        batch = encode_events(encoded.dimensions, events)
        bad = np.fromiter(events.rejected, np.int64, len(events.rejected))
        totals += counter.count(batch, bad)
        n_events += events.n_events - len(bad)
    return totals, n_events


class _Counter:
    """Counts events per condition; each condition is a few clauses of the table."""

    def __init__(
        self, dimensions: Dimensions, table: ConjunctionTable, n_clauses: np.ndarray
    ) -> None:
        self._table = table
        self._first = offsets_of(n_clauses)
        self._n_dimensions = len(dimensions)
        sizes = np.diff(table.interval_offsets)
        self._predicate = np.repeat(np.arange(table.n_predicates), sizes)  # of each interval
        owner = table.dimensions[self._predicate]
        self._order = np.argsort(owner, kind="stable")
        self._offsets = offsets_of(np.bincount(owner, minlength=self._n_dimensions))
        n_predicates = np.diff(table.clause_offsets)
        _, lists = divide(table)
        owners = np.repeat(np.arange(len(n_clauses)), n_clauses)
        self._owner_of_listed = owners[lists.clause_ids]
        self._lists = ListIndex.build(lists._replace(clause_ids=np.arange(lists.n_clauses)))
        self._singles = np.setdiff1d(np.flatnonzero(n_clauses == 1), self._owner_of_listed)
        self._singles = self._singles[n_predicates[self._first[self._singles]] == 1]
        # A type, and a flag that is absent: the two places of each such condition.
        self._flagged = np.empty((0, 3), np.int64)
        self._others: list[int] = []
        flagged = []
        known = np.union1d(self._singles, self._owner_of_listed)
        for number in np.setdiff1d(np.flatnonzero(n_clauses), known).tolist():
            clause = self._first[number]
            start, stop = table.clause_offsets[clause : clause + 2].tolist()
            names = [dimensions.keys[d].derivation for d in table.dimensions[start:stop].tolist()]
            flags = [name in FLAG_DERIVATIONS for name in names]
            if n_clauses[number] == 1 and sorted(flags) == [False, True] and "value" in names:
                at = start + flags.index(False)
                flagged.append((number, at, start + flags.index(True)))
            else:
                self._others.append(number)
        if flagged:
            self._flagged = np.array(flagged, np.int64)

    def count(self, batch: EventBatch, bad: np.ndarray) -> np.ndarray:
        """Return for how many events of a batch each condition is true; bad ones do not count."""
        n_events = batch.n_events - len(bad)
        order = np.lexsort((batch.keys, batch.dimensions))
        keys = batch.keys[order]
        ends = offsets_of(np.bincount(batch.dimensions, minlength=self._n_dimensions))
        n_in = self._count_intervals(keys, ends, n_events)
        counts = np.bincount(self._predicate, n_in, self._table.n_predicates).astype(np.int64)
        out = np.zeros(len(self._first) - 1, np.int64)
        out[self._singles] = counts[self._table.clause_offsets[self._first[self._singles]]]
        numbers, types, flags = self._flagged.T
        # Only an event of the type can have the flag.
        out[numbers] = counts[types] - (n_events - counts[flags])
        out += self._count_lists(batch, bad)
        for number in self._others:
            out[number] = np.delete(self._holds(number, batch), bad).sum()
        return out

    def _count_intervals(self, keys: np.ndarray, ends: np.ndarray, n_events: int) -> np.ndarray:
        lows, highs = self._table.lows, self._table.highs
        out = np.zeros(len(lows), np.int64)
        for dimension in np.flatnonzero(np.diff(self._offsets)).tolist():
            places = self._order[self._offsets[dimension] : self._offsets[dimension + 1]]
            known = keys[ends[dimension] : ends[dimension + 1]]
            low, high = lows[places], highs[places]
            inside = np.searchsorted(known, high, "right") - np.searchsorted(known, low, "left")
            with_absent = (low <= 0) & (high >= 0)
            out[places] = inside + with_absent * (n_events - len(known))
        return out

    def _count_lists(self, batch: EventBatch, bad: np.ndarray) -> np.ndarray:
        """Return for how many events each condition on lists is true, and 0 for all others."""
        n_conditions = len(self._first) - 1
        if len(self._owner_of_listed) == 0:
            return np.zeros(n_conditions, np.int64)
        found = self._lists.match_batch(batch)
        events = np.repeat(np.arange(batch.n_events), np.diff(found.offsets))
        conditions = self._owner_of_listed[found.clause_ids]
        is_good = ~np.isin(events, bad)
        hits = np.unique(events[is_good] * n_conditions + conditions[is_good])
        return np.bincount(hits % n_conditions, minlength=n_conditions)

    def _holds(self, number: int, batch: EventBatch) -> np.ndarray:
        """Tell for each event whether the condition is true: some clause holds."""
        table = self._table
        events = np.repeat(np.arange(batch.n_events), np.diff(batch.offsets))
        out = np.zeros(batch.n_events, bool)
        for clause in range(self._first[number], self._first[number + 1]):
            holds = np.ones(batch.n_events, bool)
            for place in range(table.clause_offsets[clause], table.clause_offsets[clause + 1]):
                own = np.zeros(batch.n_events, np.int64)
                on_dimension = batch.dimensions == table.dimensions[place]
                own[events[on_dimension]] = batch.keys[on_dimension]
                some = slice(table.interval_offsets[place], table.interval_offsets[place + 1])
                lows, highs = table.lows[some], table.highs[some]
                k = np.searchsorted(lows, own, "right") - 1  # intervals ascend
                holds &= (k >= 0) & (own <= highs[k])
            out |= holds
        return out
