"""The conditions of many expressions, each kept once, and how often each is true.

    "price < 10 and place = 'Rome'"  ──►  0 1          0  price < 10
    "place = 'Rome'"                 ──►  1            1  place = 'Rome'

A text is cut at each ` and `, as in `condition_cache.py`, so that what was read before is not read
again; what cannot be cut so is left to the parser.

A condition is a set of keys on a dimension. So how often it is true is a difference of two places
in the sorted keys of all events, and no condition is compared with any event. Of a condition with
a flag that must be absent (`not like '%x%'`), the events with the flag are a part of those with the
type, and are taken off. Only `contains all` needs the events themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

import numpy as np

from matchmill.encoding.clause_encoder import ClauseEncoder
from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.event_batch import EventBatch
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events.columns import EventColumns
from matchmill.encoding.pattern_work import reject_costly
from matchmill.errors import ExpressionError
from matchmill.kernels.csr import offsets_of
from matchmill.language.expression import Expression, Predicate, walk
from matchmill.language.normal_form import predicate_clauses
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
    owners: list[int] = []
    n = 0
    for number, predicate in enumerate(predicates):
        n = number + 1
        for clause in predicate_clauses(predicate, True):  # one, or none for an empty set
            encoder.add([clause])
            owners.append(number)
    encoded = encoder.finish(np.arange(len(owners)))
    counter = _Counter(encoded.dimensions, encoded.table)
    totals, n_events = np.zeros(n, np.int64), 0
    places = np.array(owners, np.int64)
    for chunk in chunks:
        events = reject_costly(encoded.dimensions, chunk, settings.max_pattern_work)
        batch = encode_events(encoded.dimensions, events)
        n_good = events.n_events - len(events.rejected)
        totals[places] += counter.count(batch, n_good)
        n_events += n_good
    return totals, n_events


class _Counter:
    """Counts events per clause, where each clause is that of one condition."""

    def __init__(self, dimensions: Dimensions, table: ConjunctionTable) -> None:
        self._table = table
        self._n_dimensions = len(dimensions)
        sizes = np.diff(table.interval_offsets)
        self._predicate = np.repeat(np.arange(table.n_predicates), sizes)  # of each interval
        owner = table.dimensions[self._predicate]
        self._order = np.argsort(owner, kind="stable")
        self._offsets = offsets_of(np.bincount(owner, minlength=self._n_dimensions))
        derivations = [dimension.derivation for dimension in dimensions.keys]
        self._is_value = np.array([name == "value" for name in derivations], bool)

    def count(self, batch: EventBatch, n_events: int) -> np.ndarray:
        """Return for how many events of a batch each clause holds."""
        order = np.lexsort((batch.keys, batch.dimensions))
        keys = batch.keys[order]
        ends = offsets_of(np.bincount(batch.dimensions, minlength=self._n_dimensions))
        n_in = self._count_intervals(keys, ends, n_events)
        per_predicate = np.bincount(self._predicate, n_in, self._table.n_predicates)
        counts = per_predicate.astype(np.int64)
        first = self._table.clause_offsets[:-1]
        n_predicates = np.diff(self._table.clause_offsets)
        out = counts[first] if len(first) else np.zeros(0, np.int64)
        for clause in np.flatnonzero(n_predicates > 1).tolist():
            places = np.arange(first[clause], first[clause] + n_predicates[clause])
            own = self._table.dimensions[places]
            is_value = self._is_value[own]
            if is_value.any():  # a type, and a flag that is absent
                with_flag = n_events - int(counts[places[~is_value]].sum())
                out[clause] = int(counts[places[is_value]].sum()) - with_flag
            else:
                out[clause] = _n_with_all(batch, own)
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


def _n_with_all(batch: EventBatch, dimensions: np.ndarray) -> int:
    """Count the events that have all of these flags."""
    events = np.repeat(np.arange(batch.n_events), np.diff(batch.offsets))
    rows = [events[batch.dimensions == dimension] for dimension in dimensions.tolist()]
    return len(reduce(np.intersect1d, rows))
