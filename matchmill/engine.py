"""The engine: subscriptions in, matches out. Everything else in the package stands behind it.

    state     (dimensions, snapshot of the segments, subscriptions): replaced as a whole by a
              writer, taken as a whole by a reader, who never waits and sees no half of a change
    writers   one at a time, under a lock; a call that fails has changed nothing that is visible

A subscription whose normal form passes the clause limit is indexed by a superset; its candidates
are confirmed with the expression itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from matchmill.batch_matches import BatchMatches, distinct_rows
from matchmill.encoding.clause_encoder import ClauseEncoder
from matchmill.encoding.cuts import strings_to_texts
from matchmill.encoding.dimension import Dimensions
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events import Events, read_events
from matchmill.encoding.saved_dimensions import dimensions_from_arrays, dimensions_to_arrays
from matchmill.errors import (
    DuplicateIdError,
    EventError,
    ExpressionError,
    InputError,
    MatchmillError,
    SavedIndexError,
    UnknownIdError,
)
from matchmill.files import read_subscriptions
from matchmill.indexes.base import IndexStats
from matchmill.indexes.registry import DEFAULT_INDEX, index_class
from matchmill.indexes.segments import (
    Segmented,
    Snapshot,
    segments_from_arrays,
    segments_to_arrays,
)
from matchmill.language.builder import Attribute
from matchmill.language.evaluate import evaluate_flat
from matchmill.language.explain import Explanation, explain
from matchmill.language.expression import Expression, Predicate, check_limits, check_predicate, walk
from matchmill.language.json_pattern import parse_json_pattern
from matchmill.language.normal_form import NormalForm, normalize
from matchmill.language.text import parse
from matchmill.saved import SavedFolder, open_folder, write_folder
from matchmill.settings import DEFAULT_SETTINGS, SETTINGS, Settings
from matchmill.subscription_rows import subscription_rows
from matchmill.subscriptions import Identifier, Subscriptions, check_id

__all__ = ["Engine", "EngineStats", "Refused", "SubscribeReport", "read_expression"]

_PROGRESS_EVERY = 2000


class Refused(NamedTuple):
    """A row of a bulk load that was set aside, and why."""

    row: int
    id: object
    reason: str


class SubscribeReport(NamedTuple):
    """What a bulk load did. `never` and `always` were accepted, but are probably mistakes."""

    n_accepted: int
    refused: list[Refused]
    never: list[Identifier]
    always: list[Identifier]

    def __str__(self) -> str:
        parts = [f"{self.n_accepted:,} accepted", f"{len(self.refused):,} refused"]
        if self.never:
            parts.append(f"{len(self.never):,} can never match")
        if self.always:
            parts.append(f"{len(self.always):,} match every event")
        return ", ".join(parts)


class EngineStats(NamedTuple):
    n_subscriptions: int
    n_clauses: int
    n_dimensions: int
    n_cut_points: int
    n_inexact: int
    index_name: str
    segments: list[IndexStats]
    bytes_dimensions: int
    bytes_tables: int
    bytes_indexes: int
    bytes_subscriptions: int

    @property
    def n_bytes(self) -> int:
        return (
            self.bytes_dimensions
            + self.bytes_tables
            + self.bytes_indexes
            + self.bytes_subscriptions
        )


class _State(NamedTuple):
    dimensions: Dimensions
    snapshot: Snapshot
    subscriptions: Subscriptions


def read_expression(source: object, settings: Settings = DEFAULT_SETTINGS) -> Expression:
    """Text, a JSON pattern (a mapping, or text that begins with a brace) or an Expression."""
    if isinstance(source, str):
        if source.lstrip()[:1] == "{":
            return parse_json_pattern(source, settings)
        return parse(source, settings)
    if isinstance(source, Mapping):
        return parse_json_pattern(source, settings)
    if isinstance(source, Expression):
        check_limits(source, settings)
        for node, _ in walk(source):
            if isinstance(node, Predicate):
                check_predicate(node)
        return source
    if isinstance(source, Attribute):  # a bare boolean attribute
        return read_expression(source.is_true(), settings)
    raise ExpressionError(
        f"an expression is text, a JSON pattern or an Expression, not {type(source).__name__}"
    )


class Engine:
    """Finds, for each event, all subscriptions that it satisfies.

    `index` is a name in the registry; `settings` bound sizes. Any thread may match while another
    one subscribes.
    """

    def __init__(
        self, *, index: str = DEFAULT_INDEX, settings: Settings | None = None, **options: Any
    ) -> None:
        self._index_class = index_class(index)
        self._settings = settings or DEFAULT_SETTINGS
        if not isinstance(self._settings, Settings):
            raise InputError(f"settings must be a Settings, not {type(settings).__name__}")
        self._lock = threading.RLock()
        self._segmented = Segmented(
            self._index_class,
            fresh_clauses=self._settings.fresh_clauses,
            merge_factor=self._settings.merge_factor,
            **options,
        )
        self._state = _State(Dimensions(), self._segmented.snapshot, Subscriptions())

    @property
    def settings(self) -> Settings:
        """The limits and sizes that this engine works with."""
        return self._settings

    @property
    def _subscriptions(self) -> Subscriptions:
        return self._state.subscriptions

    def _publish(self, **changes: Any) -> None:
        self._state = self._state._replace(snapshot=self._segmented.snapshot, **changes)

    # -- subscriptions ----------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._subscriptions.n_live

    def __contains__(self, identifier: object) -> bool:
        return self._subscriptions.current_row(identifier) >= 0

    def __repr__(self) -> str:
        return f"<matchmill.Engine: {len(self):,} subscriptions, index {self._index_class.name}>"

    def ids(self) -> list[Identifier]:
        """The identifiers of all subscriptions, in order of first arrival."""
        numbers = self._subscriptions.live_numbers()
        ids: list[Identifier] = self._subscriptions.ids_of_numbers(numbers).to_pylist()
        return ids

    def expression(self, identifier: Identifier) -> Expression:
        """The expression of a subscription."""
        return self._subscriptions.expression_of_row(self._row(identifier))

    def _row(self, identifier: object) -> int:
        row = self._subscriptions.current_row(identifier)
        if row < 0:
            raise UnknownIdError(f"there is no subscription {identifier!r}")
        return row

    def subscribe(
        self, identifier: Identifier, expression: object, *, replace: bool = False
    ) -> None:
        """Store a subscription; the next match sees it."""
        checked = check_id(identifier)
        parsed = read_expression(expression, self._settings)
        normal = normalize(parsed, self._settings.max_clauses)
        with self._lock:
            load = _Load(self, replace=replace)
            load.add(checked, _text_of(expression, parsed), normal)
            load.finish()

    def subscribe_many(
        self,
        source: Any,
        *,
        id_column: str = "id",
        expression_column: str = "expression",
        replace: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> SubscribeReport:
        """Store many subscriptions at once; bad ones are set aside with their reason.

        `source` is a path (CSV, JSON lines or Parquet by suffix), an Arrow table, a pandas or
        polars frame, a mapping of id → expression, or an iterable of (id, expression) pairs or of
        mappings. Rows count from 1 (in a file, the line).
        """
        if isinstance(source, (str, os.PathLike)):
            rows = read_subscriptions(
                Path(source), id_column=id_column, expression_column=expression_column
            )
        else:
            rows = subscription_rows(
                source, id_column=id_column, expression_column=expression_column
            )
        refused: list[Refused] = []
        with self._lock:
            load = _Load(self, replace=replace)
            for n_done, row in enumerate(rows, 1):
                try:
                    if row.problem is not None:
                        raise InputError(row.problem)
                    identifier = check_id(row.id)
                    parsed = read_expression(row.expression, self._settings)
                    normal = normalize(parsed, self._settings.max_clauses)
                    load.add(identifier, _text_of(row.expression, parsed), normal)
                except MatchmillError as error:
                    reason = error.summary if isinstance(error, ExpressionError) else str(error)
                    refused.append(Refused(row.row, row.id, reason))
                if progress is not None and n_done % _PROGRESS_EVERY == 0:
                    progress(n_done)
            load.finish()
        return SubscribeReport(len(load.ids), refused, load.never, load.always)

    def unsubscribe(self, identifier: Identifier) -> None:
        """Remove a subscription; raises UnknownIdError if there is none."""
        self.unsubscribe_many([identifier])

    def unsubscribe_many(self, identifiers: Iterable[Identifier]) -> None:
        """Remove several subscriptions in one step, or none if one of them is unknown."""
        with self._lock:
            rows = np.array(sorted({self._row(i) for i in identifiers}), np.int64)
            if len(rows) == 0:
                return
            self._segmented.apply(None, self._subscriptions.clauses_of(rows))
            self._subscriptions.remove(rows)
            self._publish()

    def compact(self) -> None:
        """Merge all segments and forget what was removed."""
        with self._lock:
            old, live = self._subscriptions, self._subscriptions.live_numbers()
            rows = old.row_of_number.data[live].astype(np.int64)
            order = np.argsort(rows)
            fresh = Subscriptions()
            fresh_ids = old.ids_of_numbers(live[order]).to_pylist()
            rows = rows[order]
            n_clauses = old.first_clause.data[rows + 1] - old.first_clause.data[rows]
            fresh.add(
                fresh_ids,
                strings_to_texts([old.texts[int(r)] for r in rows]),
                n_clauses,
                old.is_exact.data[rows],
            )
            self._segmented.compact(renumber=old.clauses_of(rows))
            self._publish(subscriptions=fresh)

    # -- matching ---------------------------------------------------------------------------------

    def match(self, event: Mapping[str, Any]) -> set[Identifier]:
        """The ids of all subscriptions that one event satisfies."""
        matches = self.match_batch([event])
        if matches.rejected:
            raise EventError(matches.rejected[0])
        return matches[0]

    def match_batch(self, events: Any) -> BatchMatches:
        """The same for many events: dicts, an Arrow table, a pandas or polars frame, JSON lines
        through `matchmill.read_json_lines`."""
        state = self._state
        subscriptions = state.subscriptions
        source = read_events(events, self._settings)
        columns = source.columns(state.dimensions.plans.__contains__)
        matches = state.snapshot.match_batch(encode_events(state.dimensions, columns))
        offsets, rows = distinct_rows(
            matches.offsets, subscriptions.row_of_clause.data[matches.clause_ids]
        )
        if columns.rejected:
            bad = np.fromiter(columns.rejected, np.int64, len(columns.rejected))
            offsets, rows = _without_events(offsets, rows, bad)
        offsets, rows = _confirmed(subscriptions, source, offsets, rows)
        numbers = subscriptions.number_of_row.data[rows]
        return BatchMatches(offsets, numbers, columns.rejected, subscriptions.ids_of_numbers)

    def explain(self, identifier: Identifier, event: Mapping[str, Any]) -> Explanation:
        """Why a subscription matches an event, or what is missing."""
        return explain(self.expression(identifier), event)

    # -- figures ----------------------------------------------------------------------------------

    def stats(self) -> EngineStats:
        """Counts and bytes."""
        state = self._state
        subscriptions = state.subscriptions
        figures = [segment.built.stats() for segment in state.snapshot.segments]
        rows = subscriptions.row_of_number.array
        live_rows = rows[rows >= 0]
        return EngineStats(
            n_subscriptions=subscriptions.n_live,
            n_clauses=state.snapshot.n_clauses,
            n_dimensions=len(state.dimensions),
            n_cut_points=state.dimensions.n_cuts,
            n_inexact=int((subscriptions.is_exact.data[live_rows] == 0).sum()),
            index_name=self._index_class.name,
            segments=figures,
            bytes_dimensions=state.dimensions.n_bytes,
            bytes_tables=sum(segment.table.n_bytes for segment in state.snapshot.segments),
            bytes_indexes=sum(f.n_bytes for f in figures),
            bytes_subscriptions=subscriptions.n_bytes,
        )

    # -- files ------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the engine to a folder, replacing an engine that was saved there."""
        with self._lock:
            state = self._state
            subscriptions = state.subscriptions
            arrays = subscriptions.arrays()
            arrays |= dimensions_to_arrays(state.dimensions)
            segment_arrays, segment_names = segments_to_arrays(state.snapshot)
            arrays |= segment_arrays
            meta = {
                "index": self._index_class.name,
                "segments": segment_names,
                "id_type": subscriptions.id_type.__name__ if subscriptions.id_type else "none",
                "n_subscriptions": subscriptions.n_live,
                "settings": {s.name: getattr(self._settings, s.name) for s in SETTINGS},
            }
            write_folder(path, SavedFolder(arrays, meta))

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, verify: bool = True, index: str | None = None
    ) -> Engine:
        """Map a saved engine. `verify=False` skips the check of all bytes against checksums."""
        folder = open_folder(path, verify=verify)
        meta = folder.meta
        try:
            name = index or meta["index"]
            engine = cls(index=name, settings=Settings(**meta["settings"]))
            subscriptions = Subscriptions.from_arrays(folder.arrays, meta["id_type"])
            dimensions = dimensions_from_arrays(folder.arrays)
            segments = segments_from_arrays(folder.arrays, meta["segments"])
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise SavedIndexError(f"{path} is not a complete saved engine: {error}") from error
        engine._segmented.snapshot = Snapshot(tuple(segments))
        engine._publish(dimensions=dimensions, subscriptions=subscriptions)
        if index is not None and index != meta["index"]:
            engine.compact()
        return engine


class _Load:
    """Gathers subscriptions and applies them all in one step."""

    def __init__(self, engine: Engine, *, replace: bool) -> None:
        self._engine = engine
        self._replace = replace
        self._encoder = ClauseEncoder(engine._state.dimensions)
        self.ids: dict[Identifier, None] = {}
        self.never: list[Identifier] = []
        self.always: list[Identifier] = []
        self._texts: list[str] = []
        self._n_clauses: list[int] = []
        self._exact: list[bool] = []

    def add(self, identifier: Identifier, text: str, normal: NormalForm) -> None:
        known = self._engine._subscriptions
        if known.id_type is not None:
            known.check_id_type(identifier)
        elif self.ids and type(next(iter(self.ids))) is not type(identifier):
            raise InputError(
                f"ids are all strings or all integers; {identifier!r} differs from those before it"
            )
        if identifier in self.ids:
            raise DuplicateIdError(f"the id {identifier!r} occurs twice")
        if not self._replace and known.n_live and known.current_row(identifier) >= 0:
            raise DuplicateIdError(
                f"there is a subscription {identifier!r} already; replace=True replaces it"
            )
        self._encoder.add(normal.clauses)
        self.ids[identifier] = None
        self._texts.append(text)
        self._n_clauses.append(len(normal.clauses))
        self._exact.append(normal.exact)
        if normal.kind == "never":
            self.never.append(identifier)
        elif normal.kind == "always":
            self.always.append(identifier)

    def finish(self) -> None:
        if not self.ids:
            return
        engine = self._engine
        subscriptions, segmented = engine._subscriptions, engine._segmented
        identifiers = list(self.ids)
        n_clauses = np.array(self._n_clauses, np.int64)
        first = subscriptions.row_of_clause.n
        clause_ids = np.arange(first, first + int(n_clauses.sum()))
        encoded = self._encoder.finish(clause_ids)
        replaced = (
            subscriptions.current_rows(identifiers) if self._replace else np.empty(0, np.int64)
        )
        dead = subscriptions.clauses_of(replaced[replaced >= 0])
        texts, exact = strings_to_texts(self._texts), np.array(self._exact, np.uint8)
        before = segmented.snapshot
        try:
            if encoded.relabellings:
                segmented.relabel(encoded.relabellings)
            segmented.apply(encoded.table, dead)
            subscriptions.add(identifiers, texts, n_clauses, exact)
        except BaseException:
            segmented.snapshot = before
            raise
        engine._publish(dimensions=encoded.dimensions)


def _text_of(source: object, parsed: Expression) -> str:
    if isinstance(source, str) and source.lstrip()[:1] != "{":
        return source.strip()
    return str(parsed)


def _without_events(
    offsets: np.ndarray, rows: np.ndarray, bad: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    counts = np.diff(offsets)
    good = np.ones(len(counts), bool)
    good[bad] = False
    kept = np.repeat(good, counts)
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(counts * good))), rows[kept]


def _confirmed(
    subscriptions: Subscriptions, source: Events, offsets: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Evaluate the expressions of inexact candidates."""
    doubtful = np.flatnonzero(subscriptions.is_exact.data[rows] == 0)
    if len(doubtful) == 0:
        return offsets, rows
    events = np.searchsorted(offsets, doubtful, side="right") - 1
    kept = np.ones(len(rows), bool)
    for event, positions in _groups(events, doubtful):
        flat = source.event(event)
        for position in positions:
            expression = subscriptions.expression_of_row(int(rows[position]))
            kept[position] = evaluate_flat(expression, flat) is True
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(kept)))
    return before[offsets], rows[kept]


def _groups(keys: np.ndarray, values: np.ndarray) -> Iterator[tuple[int, list[int]]]:
    """Runs of equal keys with their values."""
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    for start, stop in zip(starts, [*starts[1:], len(keys)], strict=True):
        yield int(keys[start]), values[start:stop].tolist()
