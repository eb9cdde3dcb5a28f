"""What every index is held to. An index in the registry gets all of it by being there.

Two levels: raw tables of random integers against a brute-force loop (all shapes that a table can
have, also without compilation), and expressions against the oracle through the whole encoding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.clause_encoder import encode_clauses
from matchmill.encoding.conjunction_table import (
    NONE,
    ONE_KEY,
    SOME,
    ConjunctionTable,
    empty_table,
    used_quantifiers,
)
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.event_batch import EventBatch
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events.dicts import DictEvents
from matchmill.index.base import ClauseMatches, DynamicIndex, Index, Statistics
from matchmill.index.fresh_scan import FreshScan
from matchmill.index.registry import INDEXES
from matchmill.index.segments import Segmented
from matchmill.language.evaluate import evaluate_flat
from matchmill.language.expression import Expression
from matchmill.language.flatten import flatten_event
from matchmill.language.normal_form import Clause, normalize

INDEX_NAMES = sorted(INDEXES)

# Also what segments use for new clauses, which nobody chooses by name.
BUILDABLE: dict[str, type[Index]] = {**INDEXES, FreshScan.name: FreshScan}


def matched(matches: ClauseMatches) -> list[list[int]]:
    """The clause ids of each event, sorted; a clause reported twice stays twice."""
    return [
        sorted(matches.clause_ids[a:b].tolist())
        for a, b in zip(matches.offsets[:-1], matches.offsets[1:], strict=True)
    ]


# -- raw tables -----------------------------------------------------------------------------------


def random_table(
    rng: Random, n_clauses: int, n_dimensions: int = 8, first_id: int = 0, top: int = 40
) -> ConjunctionTable:
    """Clauses of 0 to n_dimensions predicates of 1 to 4 intervals, with and without absence."""
    n_predicates, dimensions, n_intervals = [], [], []
    lows: list[int] = []
    highs: list[int] = []
    for _ in range(n_clauses):
        used = sorted(rng.sample(range(n_dimensions), min(n_dimensions, rng.choice(_LENGTHS))))
        n_predicates.append(len(used))
        for dimension in used:
            intervals = _random_intervals(rng, top)
            dimensions.append(dimension)
            n_intervals.append(len(intervals))
            lows += (low for low, _ in intervals)
            highs += (high for _, high in intervals)
    return ConjunctionTable(
        np.arange(first_id, first_id + n_clauses),
        np.concatenate(([0], np.cumsum(n_predicates))).astype(np.int64),
        np.array(dimensions, np.int32),
        np.concatenate(([0], np.cumsum(n_intervals))).astype(np.int64),
        np.array(lows, np.int64),
        np.array(highs, np.int64),
    )


_LENGTHS = (0, 1, 1, 2, 2, 3, 3, 4, 6)
FIRST_LIST = 6  # the dimensions from here to `_LAST_LIST` have several values in lists' tables
_LAST_LIST = 9


def random_list_table(
    rng: Random, n_clauses: int, first_id: int = 0, top: int = 40
) -> ConjunctionTable:
    """Clauses of which most have multi-valued dimensions, each of them once or more often."""
    plain = random_table(rng, n_clauses, FIRST_LIST, first_id, top)
    clauses: list[list[tuple[int, int, list[tuple[int, int]]]]] = []
    for i in range(n_clauses):
        span = range(plain.clause_offsets[i], plain.clause_offsets[i + 1])
        clause = []
        for p in rng.sample(span, min(len(span), rng.choice((0, 1, 1, 2)))):
            own = slice(plain.interval_offsets[p], plain.interval_offsets[p + 1])
            intervals = list(zip(plain.lows[own].tolist(), plain.highs[own].tolist(), strict=True))
            clause.append((int(plain.dimensions[p]), ONE_KEY, intervals))
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            quantifier = rng.choice((SOME, SOME, NONE))
            dimension = rng.randrange(FIRST_LIST, _LAST_LIST)
            clause.append((dimension, quantifier, _random_intervals(rng, top)))
        clauses.append(sorted(clause))
    predicates = [predicate for clause in clauses for predicate in clause]
    intervals = np.array([pair for *_, own in predicates for pair in own], np.int64).reshape(-1, 2)
    return ConjunctionTable(
        np.arange(first_id, first_id + n_clauses),
        np.cumsum([0, *map(len, clauses)]),
        np.array([dimension for dimension, _, _ in predicates], np.int32),
        np.cumsum([0, *(len(own) for *_, own in predicates)]),
        intervals[:, 0].copy(),
        intervals[:, 1].copy(),
        used_quantifiers(np.array([quantifier for _, quantifier, _ in predicates], np.uint8)),
    )


def random_list_batch(rng: Random, n_events: int, top: int = 40) -> EventBatch:
    """Events that have none to many keys on multi-valued dimensions, some of them repeated."""
    offsets, pairs = [0], []
    for _ in range(n_events):
        event = [(d, rng.randrange(1, top)) for d in range(FIRST_LIST) if rng.random() < 0.6]
        for d in range(FIRST_LIST, _LAST_LIST + 1):
            event += [(d, rng.randrange(1, top)) for _ in range(rng.choice((0, 1, 2, 5, 20)))]
        rng.shuffle(event)
        pairs += event
        offsets.append(len(pairs))
    return EventBatch(
        np.array(offsets, np.int64),
        np.array([d for d, _ in pairs], np.int32),
        np.array([key for _, key in pairs], np.int64),
    )


def _random_intervals(rng: Random, top: int) -> list[tuple[int, int]]:
    shape = rng.random()
    if shape < 0.45:
        value = rng.randrange(1, top)
        return [(value, value)]
    if shape < 0.55:
        return [(0, 0)]
    cuts = sorted(rng.sample(range(top), 2 * rng.choice((1, 1, 2, 4))))
    return [(cuts[k], cuts[k + 1] - 1) for k in range(0, len(cuts), 2)]


def random_batch(rng: Random, n_events: int, n_dimensions: int = 10, top: int = 40) -> EventBatch:
    """Events with some of the dimensions, two of which no table has heard of."""
    offsets, dimensions, keys = [0], [], []
    for _ in range(n_events):
        used = [d for d in range(n_dimensions) if rng.random() < 0.6]
        rng.shuffle(used)
        dimensions += used
        keys += (rng.randrange(1, top) for _ in used)
        offsets.append(len(dimensions))
    return EventBatch(
        np.array(offsets, np.int64), np.array(dimensions, np.int32), np.array(keys, np.int64)
    )


def brute_force(table: ConjunctionTable, events: EventBatch) -> list[list[int]]:
    """The definition of a match, in plain Python."""
    out = []
    for e in range(events.n_events):
        span = slice(int(events.offsets[e]), int(events.offsets[e + 1]))
        event: dict[int, list[int]] = {}
        for d, key in zip(
            events.dimensions[span].tolist(), events.keys[span].tolist(), strict=True
        ):
            event.setdefault(d, []).append(key)
        out.append(
            [
                int(table.clause_ids[i])
                for i in range(table.n_clauses)
                if all(
                    _predicate_holds(table, p, event)
                    for p in range(table.clause_offsets[i], table.clause_offsets[i + 1])
                )
            ]
        )
    return out


def _predicate_holds(table: ConjunctionTable, p: int, event: Mapping[int, list[int]]) -> bool:
    quantifier = table.all_quantifiers()[p]
    keys = event.get(int(table.dimensions[p]), [0] if quantifier == ONE_KEY else [])
    found = any(
        table.lows[k] <= key <= table.highs[k]
        for k in range(table.interval_offsets[p], table.interval_offsets[p + 1])
        for key in keys
    )
    return found != (quantifier == NONE)


Intervals = Sequence[tuple[int, int]]


def table_of(clauses: Sequence[Mapping[int, Intervals]], first_id: int = 0) -> ConjunctionTable:
    """Clauses given as dimension → intervals."""
    predicates = [item for clause in clauses for item in clause.items()]
    intervals = [pair for _, pairs in predicates for pair in pairs]
    bounds = np.array(intervals, np.int64).reshape(-1, 2)
    return ConjunctionTable(
        np.arange(first_id, first_id + len(clauses)),
        np.cumsum([0, *(len(clause) for clause in clauses)]),
        np.array([dimension for dimension, _ in predicates], np.int32),
        np.cumsum([0, *(len(pairs) for _, pairs in predicates)]),
        bounds[:, 0].copy(),
        bounds[:, 1].copy(),
    )


def batch_of(events: Sequence[Mapping[int, int]]) -> EventBatch:
    """Events given as dimension → key."""
    return EventBatch(
        np.cumsum([0, *map(len, events)]),
        np.array([dimension for event in events for dimension in event], np.int32),
        np.array([key for event in events for key in event.values()], np.int64),
    )


def brute_force_arrays(table: ConjunctionTable, events: EventBatch) -> Iterator[np.ndarray]:
    """The same as `brute_force` for tables that plain Python takes too long for: for each event the
    ids, ascending. Every interval of every clause is compared with the event's key."""
    n_dimensions = max(table.n_dimensions, int(events.dimensions.max(initial=-1)) + 1)
    predicates = np.repeat(np.arange(table.n_predicates), np.diff(table.interval_offsets))
    clauses = np.repeat(np.arange(table.n_clauses), np.diff(table.clause_offsets))
    dimensions = table.dimensions[predicates]
    lengths = np.diff(table.clause_offsets)
    keys = np.zeros(n_dimensions, np.int64)
    for e in range(events.n_events):
        span = slice(int(events.offsets[e]), int(events.offsets[e + 1]))
        keys[events.dimensions[span]] = events.keys[span]
        per_interval = keys[dimensions]
        inside = (table.lows <= per_interval) & (per_interval <= table.highs)
        holds = np.zeros(table.n_predicates, bool)
        holds[predicates[inside]] = True
        n_holding = np.bincount(clauses[holds], minlength=table.n_clauses)
        yield np.sort(table.clause_ids[n_holding == lengths])
        keys[events.dimensions[span]] = 0


def check_matches(matches: ClauseMatches, expected: Sequence[np.ndarray]) -> None:
    """Each event has exactly the ids that are expected of it (ascending), each once."""
    offsets, clause_ids = matches
    assert len(offsets) == len(expected) + 1
    assert (offsets[0], offsets[-1]) == (0, len(clause_ids))
    for e, ids in enumerate(expected):
        got = np.sort(clause_ids[offsets[e] : offsets[e + 1]])
        if not np.array_equal(got, ids):
            missing, extra = np.setdiff1d(ids, got), np.setdiff1d(got, ids)
            raise AssertionError(
                f"event {e}: {len(got)} ids, not {len(ids)}; "
                f"missing {missing[:5]}, not to be there {extra[:5]}"
            )


# -- statistics -----------------------------------------------------------------------------------


def statistics_of(events: EventBatch, n_dimensions: int) -> Statistics:
    """What these events tell of those to come: all their keys are the sample."""
    counts = np.bincount(events.dimensions, minlength=n_dimensions).astype(np.int64)
    order = np.lexsort((events.keys, events.dimensions))
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    return Statistics(events.n_events, counts, offsets, events.keys[order])


def random_statistics(rng: Random, n_dimensions: int, top: int = 40) -> Statistics:
    """Of no events or many, with samples of any size, also of dimensions that no table has and
    without some that it has; wrong about the events, too."""
    n_events = rng.choice((0, 1, 10, 1000))
    n_known = rng.choice((0, 1, n_dimensions // 2, n_dimensions, n_dimensions + 3))
    counts = [rng.randint(0, n_events) for _ in range(n_known)]
    samples = [
        sorted(rng.randrange(1, top + 3) for _ in range(min(count, rng.choice((1, 5, 100)))))
        for count in counts
    ]
    return Statistics(
        n_events,
        np.array(counts, np.int64),
        np.cumsum([0, *map(len, samples)]),
        np.array([key for sample in samples for key in sample], np.int64),
    )


# -- updates --------------------------------------------------------------------------------------


def updatable(name: str, **sizes: int) -> Any:
    """An index that takes insertions: itself if it is dynamic, else inside segments."""
    empty = INDEXES[name].build(empty_table())
    if isinstance(empty, DynamicIndex):
        return empty
    return Segmented(INDEXES[name], **(sizes or {"fresh_clauses": 5, "merge_factor": 2}))


# -- expressions ----------------------------------------------------------------------------------


class Encoded(NamedTuple):
    """Expressions and events on their way into an index, and what the oracle says."""

    expressions: list[Expression]
    events: list[dict[str, Any]]
    table: ConjunctionTable
    batch: EventBatch
    owners: np.ndarray  # the expression of each clause
    is_exact: np.ndarray
    truth: np.ndarray  # expressions × events: the oracle says TRUE


def encode(
    expressions: list[Expression], events: list[dict[str, Any]], max_clauses: int = 64
) -> Encoded:
    clauses: list[Clause] = []
    owners: list[int] = []
    exact: list[bool] = []
    for i, expression in enumerate(expressions):
        normal = normalize(expression, max_clauses)
        exact.append(normal.exact)
        clauses += normal.clauses
        owners += [i] * len(normal.clauses)
    encoded = encode_clauses(Dimensions(), clauses, np.arange(len(clauses)))
    columns = DictEvents(events).columns()
    assert not columns.rejected, columns.rejected
    flat = [flatten_event(event) for event in events]
    truth = [[evaluate_flat(e, v) is True for v in flat] for e in expressions]
    return Encoded(
        expressions,
        events,
        encoded.table,
        encode_events(encoded.dimensions, columns),
        np.array(owners, np.int64),
        np.array(exact, bool),
        np.array(truth, bool).reshape(len(expressions), len(events)),
    )


def check_against_oracle(index: Index, case: Encoded) -> None:
    """Exact expressions match exactly when the oracle says so; inexact ones at least then."""
    matches = index.match_batch(case.batch)
    got = np.zeros_like(case.truth)
    for e, clause_ids in enumerate(matched(matches)):
        assert len(set(clause_ids)) == len(clause_ids), "a clause was reported twice"
        got[case.owners[clause_ids], e] = True
    wrong = (got != case.truth) & (case.is_exact[:, None] | case.truth)
    if wrong.any():
        i, e = np.argwhere(wrong)[0]
        raise AssertionError(
            f"{case.expressions[i]}\n  on {case.events[e]}\n  oracle: {case.truth[i, e]}"
        )
