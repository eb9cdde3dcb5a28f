"""The engine: subscriptions in, matches out. Everything else in the package stands behind it.

Engine ─► Store            what is stored (state.py); match_many.py reads one state of it
       ─► DurableFolder    the log and the versions of an engine that lives in a folder
       ─► Maintenance      merging, compacting and saving, in the background
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace as with_changes
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar, overload

import numpy as np

from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.pattern_work import read_columns
from matchmill.engine.check import check_store, unknown_attributes
from matchmill.engine.durable_folder import DurableFolder
from matchmill.engine.expression_input import normal_form, read_typed
from matchmill.engine.loading import Load, asked_progress, asked_rows, load_sources
from matchmill.engine.maintenance import Maintenance
from matchmill.engine.match_many import ChunkSize, Matcher, match_expression, n_threads_for
from matchmill.engine.match_single import SingleEvents
from matchmill.engine.matches import Matches, joined
from matchmill.engine.open_sharded import is_sharded_engine, read_sharded
from matchmill.engine.opening import NewEngine, open_for_reading, open_for_writing
from matchmill.engine.seen_events import SeenEvents, see_events
from matchmill.engine.state import Change, Prepared, Store, checked_options
from matchmill.engine.stats import EngineStats, engine_stats
from matchmill.engine.subscription_table import Id, Subscriptions, check_id, plain_id
from matchmill.errors import EventError, InputError, ReadOnlyError, UnknownIdError, shown
from matchmill.index.registry import DEFAULT_INDEX, index_class
from matchmill.io.event_files import EventChunk
from matchmill.io.event_ids import EventIds
from matchmill.io.event_sources import event_batches, read_events
from matchmill.io.progress import Progress, reporting
from matchmill.io.reports import CheckReport, Finding, SubscribeReport
from matchmill.io.subscription import Subscription
from matchmill.io.subscription_sources import subscription_sources
from matchmill.kernels.uninterrupted import (
    Ask,
    is_interruptible,
    prepared_call,
    uninterrupted,
    uninterrupted_with,
)
from matchmill.language.attribute_types import checked_types, typed_event
from matchmill.language.dialects.registry import MATCHMILL, check_dialect
from matchmill.language.explain import Explanation
from matchmill.operators.explain import explain_with_operators
from matchmill.operators.matcher import OperatorMatcher
from matchmill.settings import DEFAULT_SETTINGS, Settings
from matchmill.storage.directory import folder_path

__all__ = ["Engine"]

_SETTLING_SECONDS = 1.0
_EVENTS_AT_ONCE = 1 << 16  # so that what is read of them and about them takes bounded memory
_LEARNED_AT_ONCE, _LEARNED_CHUNKS = 1024, 8  # events with all of their attributes, for check

Default = TypeVar("Default")

# Makes a change ready, or finds that there is none. What it is to call in the thread of the caller,
# it asks for, unless it runs there itself.
Work: TypeAlias = Callable[[Store, Ask | None], Prepared | None]


class Engine:
    """Find, for each event, all subscriptions that it satisfies.

    An engine is a collection of subscriptions: it has a length, ``id in engine`` and
    ``engine[id]`` work, and iterating gives the ids. Any thread may match while another one
    subscribes. An engine that is made here lives in memory; `Engine.open` opens one that lives in
    a folder. `close`, or leaving a ``with`` block, ends its work in the background.

    Parameters
    ----------
    subscriptions
        Any source that `subscribe_many` takes. A bad row raises.
    index
        The name of the index.
    index_options
        Options of that index, which are saved with the engine.
    types
        What attributes are read as: "timestamp", "date", "number", "text" or "boolean", as
        in ``{"ts": "timestamp"}``. They are saved with the engine.
    settings
        Limits and sizes.

    Raises
    ------
    InputError
        For an unknown index or option, or a source that cannot be read.

    Examples
    --------
    >>> import matchmill as mm
    >>> engine = mm.Engine({"u1": "origin = 'JFK' and dep_delay > 60"})
    >>> engine.match({"origin": "JFK", "dep_delay": 75})
    {'u1'}
    >>> len(engine), "u1" in engine, list(engine)
    (1, True, ['u1'])
    >>> engine["u1"].expression
    "origin = 'JFK' and dep_delay > 60"
    """

    def __init__(
        self,
        subscriptions: Any = None,
        *,
        index: str = DEFAULT_INDEX,
        index_options: Mapping[str, object] | None = None,
        types: Mapping[str, str] | None = None,
        settings: Settings | None = None,
    ) -> None:
        checked = _checked(settings) or DEFAULT_SETTINGS
        options = checked_options(index, index_options)
        store = Store(index_class(index), checked, options, checked_types(types))
        self._start(store, None, None)
        if subscriptions is not None:
            self.subscribe_many(subscriptions, strict=True)

    def _start(
        self, store: Store, folder: DurableFolder | None, path: Path | None, reason: str = ""
    ) -> None:
        self._store = store
        self._folder = folder
        self._path = path
        self._read_only = reason  # why nothing can be changed, if so
        self._learned: SeenEvents | None = None
        self._operators = OperatorMatcher(store.settings)
        self._single_events = SingleEvents(store.settings, store.sample, self._operators)
        self._maintenance = Maintenance(store, folder)
        self._finalizer = weakref.finalize(self, uninterrupted, self._maintenance.stop, wait=False)
        if folder is not None and store.settings.background:
            self._maintenance.after_write()  # what was due when it was closed

    @property
    def settings(self) -> Settings:
        """The limits and sizes that this engine works with."""
        return self._store.settings

    @property
    def index(self) -> str:
        """The name of the index."""
        return self._store.segmented.index_class.name

    @property
    def index_options(self) -> dict[str, object]:
        """The options of the index that differ from its defaults."""
        return dict(self._store.index_options)

    @property
    def types(self) -> dict[str, str]:
        """The declared types of attributes."""
        return dict(self._store.types)

    @property
    def path(self) -> Path | None:
        """The folder that the engine is open on; None for an engine in memory."""
        return self._path

    @property
    def _subscriptions(self) -> Subscriptions:
        return self._store.state.subscriptions

    # -- a collection of subscriptions ------------------------------------------------------------

    def __len__(self) -> int:
        return self._subscriptions.n_live

    def __bool__(self) -> bool:
        return True  # an empty engine is an engine

    def __contains__(self, id: object) -> bool:
        return self._subscriptions.current_row(plain_id(id)) >= 0

    def __iter__(self) -> Iterator[Id]:
        subscriptions = self._subscriptions
        return iter(subscriptions.ids_of_numbers(subscriptions.live_numbers()).to_pylist())

    def __getitem__(self, id: Id) -> Subscription:
        subscriptions = self._subscriptions
        plain: Any = plain_id(id)
        return Subscription(plain, subscriptions.texts[int(subscriptions.rows_of([plain])[0])])

    @overload
    def get(self, id: Id) -> Subscription | None: ...

    @overload
    def get(self, id: Id, default: Default) -> Subscription | Default: ...

    def get(self, id: Id, default: Any = None) -> Any:
        """Return a subscription, or a default if there is none with this id.

        Parameters
        ----------
        id
            The id of the subscription.
        default
            What to return otherwise.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.Engine({"u1": "price < 20"}).get("u2") is None
        True
        """
        try:
            return self[id]
        except UnknownIdError:
            return default

    def items(self) -> Iterator[tuple[Id, Subscription]]:
        """Return all ids with their subscriptions, in order of first arrival.

        Examples
        --------
        >>> import matchmill as mm
        >>> dict(mm.Engine({"u1": "price < 20"}).items())
        {'u1': Subscription(id='u1', expression='price < 20')}
        """
        return ((one.id, one) for one in self.subscriptions())

    def subscriptions(self, *, attribute: str | None = None) -> Iterator[Subscription]:
        """Return all subscriptions, or those that mention an attribute, in order of first arrival.

        Parameters
        ----------
        attribute
            The name of an attribute; names inside of an object are joined by dots.

        Examples
        --------
        >>> import matchmill as mm
        >>> engine = mm.Engine({"u1": "price < 20", "u2": "origin = 'JFK'"})
        >>> [one.id for one in engine.subscriptions(attribute="origin")]
        ['u2']
        """
        if attribute is not None and not isinstance(attribute, str):
            raise InputError(f"attribute is a name, not {type(attribute).__name__}")
        return self._find_subscriptions(self._subscriptions, attribute)

    def _find_subscriptions(
        self, subscriptions: Subscriptions, attribute: str | None
    ) -> Iterator[Subscription]:
        rows = subscriptions.row_of_number.array.copy()
        numbers = np.flatnonzero(rows >= 0)
        ids = subscriptions.ids_of_numbers(numbers)
        last_name = (attribute or "").rpartition(".")[2]
        for n, number in enumerate(numbers.tolist()):
            row = int(rows[number])
            text = subscriptions.texts[row]
            # A quick look before the slow one; a quote in a name is doubled in the text.
            if last_name not in text and '"' not in text:
                continue
            if attribute is None or attribute in subscriptions.expression_of_row(row).attributes:
                yield Subscription(ids[n].as_py(), text)

    def __repr__(self) -> str:
        where = f", in {self._path}" if self._path is not None else ""
        return f"<matchmill.Engine: {len(self):,} subscriptions, index {self.index}{where}>"

    def _repr_html_(self) -> str:
        return self.stats()._repr_html_()

    # -- changing ---------------------------------------------------------------------------------

    def _change(self, work: Work) -> Any:
        """Make a change: one at a time, logged, and followed up; return None.

        `work` makes it ready, under the lock. A caller has to return in the line of this call, and
        without calling anything else: the change is made by the last step here, and after that
        nothing may be interrupted.
        """
        if not is_interruptible():
            self._change_here(work)
            return
        store, change = self._store, Change()
        store.check_not_inside_a_change()
        take_back = prepared_call(store.settle)
        try:
            store.begin(change)
            uninterrupted_with(lambda ask: self._prepare(work, change, ask))
            store.make_visible(change)
        except BaseException:
            change.is_given_up = True  # no other step may come before this one
            take_back()  # nor before this one
            self._settle()
            raise

    def _settle(self) -> None:
        """Wait until a change that was given up is out of the log, for a while despite interrupts.

        Whatever comes here, another thread takes the change back, and no answer depends on it: the
        state does not have the change.
        """
        until = time.monotonic() + _SETTLING_SECONDS
        while time.monotonic() < until:
            try:
                uninterrupted(self._store.settle)
            except KeyboardInterrupt:
                continue
            return

    def _change_here(self, work: Work) -> None:
        """Make a change in a thread that cannot be interrupted."""
        store, folder, change = self._store, self._folder, Change()
        with store.changing():
            self._check_changes()
            change.prepared = work(store, None)
            store.make_visible(change)
            position = folder.position if folder is not None else 0
        if folder is not None and store.settings.sync == "always":
            folder.sync(position)
        self._maintenance.after_write()

    def _prepare(self, work: Work, change: Change, ask: Ask) -> None:
        """Make a change of the main thread ready, in another thread."""
        store, folder = self._store, self._folder
        self._maintenance.before_write()
        with store.changing():
            self._check_changes()
            if change.is_given_up:
                return
            change.prepared = work(store, ask)
            store.wait_for(change)
            if folder is not None and store.settings.sync == "always":
                folder.sync(folder.position)
        self._maintenance.wake()

    def _check_changes(self) -> None:
        self._check_writable()
        self._maintenance.raise_error("this call has changed nothing and can be repeated")

    def _check_writable(self) -> None:
        if self._read_only:
            raise ReadOnlyError(self._read_only)
        if self._folder is not None:
            self._folder.check_process()

    def subscribe(
        self, id: Id, expression: object, *, dialect: str = MATCHMILL, replace: bool = False
    ) -> None:
        """Store a subscription; the next match finds it.

        Parameters
        ----------
        id
            A string or an integer. All ids of an engine have one type.
        expression
            Text, a JSON pattern (a mapping, or text that begins with a brace) or an `Expression`.
        dialect
            The language of text and patterns: "matchmill", or "eventbridge" for JSON patterns that
            mean what Amazon EventBridge says.
        replace
            Whether it may replace a subscription with the same id.

        Raises
        ------
        ExpressionError
            If the expression cannot be read.
        DuplicateIdError
            If the id exists already.

        Examples
        --------
        >>> import matchmill as mm
        >>> engine = mm.Engine()
        >>> engine.subscribe("u1", "price < 20 and genre in ('crime', 'classics')")
        >>> engine.subscribe("u2", {"genre": ["crime"]})
        >>> sorted(engine.match({"price": 12, "genre": "crime"}))
        ['u1', 'u2']
        >>> engine.subscribe("u3", {"genre": [None]}, dialect="eventbridge")
        >>> engine.match({"genre": None}), engine.match({})
        ({'u3'}, set())
        """
        self._subscribe(id, expression, dialect, replace=replace, must_exist=False)

    def update(self, id: Id, *, expression: object, dialect: str = MATCHMILL) -> None:
        """Change the expression of a subscription.

        Parameters
        ----------
        id
            The id of a subscription that exists.
        expression, dialect
            As for `subscribe`.

        Raises
        ------
        UnknownIdError
            If there is none with this id; `subscribe` stores a new one.
        ExpressionError
            If the expression cannot be read.

        Examples
        --------
        >>> import matchmill as mm
        >>> engine = mm.Engine({"u1": "price < 20"})
        >>> engine.update("u1", expression="price < 30")
        >>> engine.match({"price": 25})
        {'u1'}
        """
        self._subscribe(id, expression, dialect, replace=True, must_exist=True)

    def _subscribe(
        self, id: Id, expression: object, dialect: str, *, replace: bool, must_exist: bool
    ) -> None:
        checked = check_id(id)
        parsed, text = read_typed(expression, self._store.types, self.settings, dialect)
        normal = normal_form(expression, parsed, self.settings)

        def work(store: Store, _: Ask | None) -> Prepared | None:
            load = Load(store, replace=replace, must_exist=must_exist)
            load.add(checked, text, normal)
            return load.prepare(self._folder)

        self._change(work)

    def subscribe_many(
        self,
        source: Any,
        *,
        subscription_id: str = "subscription_id",
        expression: str = "expression",
        dialect: str = MATCHMILL,
        replace: bool = False,
        strict: bool = False,
        progress: Progress = False,
    ) -> SubscribeReport:
        """Store many subscriptions in one step; bad ones are rejected with their reason.

        Parameters
        ----------
        source
            A path or several (CSV, JSON lines or Parquet by suffix); an Arrow, pandas, polars or
            DuckDB table, or any object with ``__arrow_c_stream__``; a mapping of id to expression;
            an iterable of (id, expression) pairs, of mappings, or of `Subscription` objects.
        subscription_id, expression
            The columns of a table, or keys of mappings, that hold them.
        dialect
            The language of text and patterns: "matchmill", or "eventbridge" for JSON patterns that
            mean what Amazon EventBridge says.
        replace
            Whether subscriptions may replace those with the same id.
        strict
            Whether the first bad row raises; then nothing is stored.
        progress
            True shows a bar; a function is called with the rows done and their number, or None if
            that is not known.

        Returns
        -------
        SubscribeReport
            How many were accepted, which were rejected and why, and what needs a second look.

        Raises
        ------
        FileFormatError
            If a file or table cannot be read as a whole.
        InputError
            If the source is none of these.

        Examples
        --------
        >>> import matchmill as mm
        >>> engine = mm.Engine()
        >>> report = engine.subscribe_many([("u1", "price < 20"), ("u2", "price <")])
        >>> report
        <SubscribeReport: 1 accepted, 1 rejected>
        >>> report.rejected[0].id
        'u2'
        """
        columns = {"subscription_id": subscription_id, "expression": expression}
        return self._load(source, columns, dialect, replace, False, strict, progress)

    def update_many(
        self,
        source: Any,
        *,
        subscription_id: str = "subscription_id",
        expression: str = "expression",
        dialect: str = MATCHMILL,
        strict: bool = False,
        progress: Progress = False,
    ) -> SubscribeReport:
        """Change the expressions of many subscriptions in one step; unknown ids are rejected.

        Parameters
        ----------
        source, subscription_id, expression, dialect, strict, progress
            As for `subscribe_many`.

        Returns
        -------
        SubscribeReport
            How many were changed, and which were rejected and why.

        Examples
        --------
        >>> import matchmill as mm
        >>> engine = mm.Engine({"u1": "price < 20"})
        >>> engine.update_many({"u1": "price < 30", "u2": "price < 40"})
        <SubscribeReport: 1 accepted, 1 replaced, 1 rejected>
        """
        columns = {"subscription_id": subscription_id, "expression": expression}
        return self._load(source, columns, dialect, True, True, strict, progress)

    def _load(
        self,
        source: Any,
        columns: dict[str, str],
        dialect: str,
        replace: bool,
        must_exist: bool,
        strict: bool,
        progress: Progress,
    ) -> SubscribeReport:
        check_dialect(dialect)
        sources = subscription_sources(source, **columns)
        done: list[SubscribeReport] = []

        def work(store: Store, ask: Ask | None) -> Prepared | None:
            load = Load(store, replace=replace, must_exist=must_exist, dialect=dialect)
            with reporting(asked_progress(progress, ask), "subscriptions") as report:
                read = load_sources(load, asked_rows(sources, ask), strict=strict, report=report)
            prepared = load.prepare(self._folder)
            warnings = [*read.warnings, *self._unknown_attributes(load)]
            done.append(with_changes(read, n_replaced=load.n_replaced, warnings=warnings))
            return prepared

        return self._change(work) or done[0]

    def _unknown_attributes(self, load: Load) -> list[Finding]:
        """Return the new subscriptions that ask for what no learned event has."""
        if self._learned is None:
            return []
        facts = self._learned.facts()
        return unknown_attributes(load.dimensions, load.ids, load.texts, facts)

    def unsubscribe(self, id: Id) -> None:
        """Remove a subscription.

        Parameters
        ----------
        id
            The id of the subscription.

        Raises
        ------
        UnknownIdError
            If there is none with this id.

        Examples
        --------
        >>> import matchmill as mm
        >>> engine = mm.Engine({"u1": "price < 20"})
        >>> engine.unsubscribe("u1")
        >>> len(engine)
        0
        """
        self.unsubscribe_many([id])

    def unsubscribe_many(self, ids: Iterable[Id]) -> None:
        """Remove several subscriptions in one step, or none if one of them is unknown.

        Parameters
        ----------
        ids
            The ids of the subscriptions.

        Raises
        ------
        UnknownIdError
            If there is none with one of these ids.

        Examples
        --------
        >>> import matchmill as mm
        >>> engine = mm.Engine({"u1": "price < 20", "u2": "price < 30"})
        >>> engine.unsubscribe_many(["u1", "u2"])
        >>> list(engine)
        []
        """
        if isinstance(ids, (str, bytes)):
            raise InputError("ids is an iterable of ids; unsubscribe takes one")
        try:
            given = iter(ids)
        except Exception as error:
            raise InputError(f"ids is an iterable of ids, not {shown(ids)}") from error
        known: list[Any] = [plain_id(id) for id in given]

        def work(store: Store, _: Ask | None) -> Prepared | None:
            rows = store.state.subscriptions.rows_of(known)
            if len(rows) == 0:
                return None
            return store.prepare_removal(known, np.unique(rows), self._folder)

        self._change(work)

    def compact(self) -> None:
        """Merge all segments and free the memory of removed subscriptions.

        The engine does so automatically from time to time. Matching goes on meanwhile.

        Examples
        --------
        >>> import matchmill as mm
        >>> engine = mm.Engine({"u1": "price < 20"})
        >>> engine.compact()
        """
        self._store.check_not_inside_a_change()
        uninterrupted(self._maintenance.compact)

    # -- matching ---------------------------------------------------------------------------------

    def match(self, event: Any) -> set[Id]:
        """Return the ids of all subscriptions that one event satisfies.

        Parameters
        ----------
        event
            A mapping of attributes to values, or another record.

        Raises
        ------
        EventError
            If the event has a value that cannot be used.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.Engine({"u1": "price < 20"}).match({"price": 12})
        {'u1'}
        """
        if self._store.types:
            event = typed_event(event, self._store.types, self.settings)
        found = self._single_events.match(self._store.state, event)
        if found is not None:
            return found
        matches = self.match_many([event], threads=1)
        if matches.rejected:
            raise EventError(matches.rejected[0].reason)
        return matches[0]

    def match_many(
        self,
        events: Any,
        *,
        event_id: str | None = None,
        threads: int | None = None,
        strict: bool = False,
    ) -> Matches:
        """Return the matches of many events.

        Parameters
        ----------
        events
            Mappings or other records; an Arrow, pandas, polars or DuckDB table, or any object with
            ``__arrow_c_stream__``; a path or several (CSV, JSON lines or Parquet by suffix); what
            `read_events` returned.
        event_id
            The attribute whose value names an event in the result. It stays an attribute. Without
            it, events are named by their position, from 0.
        threads
            How many threads to use; None means as many as pay. The result does not depend on it.
        strict
            Whether the first event that cannot be read raises.

        Returns
        -------
        Matches
            A set of ids for each event. An event that cannot be read has none, and is in
            `rejected` with its reason.

        Raises
        ------
        InputError
            If the source holds no events, or no event has the attribute `event_id`.
        EventError
            With `strict`, for an event that cannot be read.

        Examples
        --------
        >>> import matchmill as mm
        >>> engine = mm.Engine({"u1": "price < 20"})
        >>> matches = engine.match_many([{"no": 7, "price": 12}, {"no": 8}], event_id="no")
        >>> matches.to_arrow().to_pydict()
        {'event_id': [7], 'subscription_id': ['u1']}
        """
        n_threads_for(threads, 0)
        names = _event_ids(event_id)
        matcher, settings = self._matcher(), self.settings
        parts: list[Matches] = []
        first = 0
        for chunk in event_batches(events, lambda: _EVENTS_AT_ONCE, settings, self._store.types):
            parts.append(_matched(matcher, chunk, first, names, threads, strict))
            first += parts[-1].n_events
        if not parts:
            nothing = EventChunk(0, read_events([], settings=settings))
            parts.append(_matched(matcher, nothing, 0, names, threads, strict))
        _check_ids(names, first)
        return joined(parts)

    def match_batches(
        self,
        events: Any,
        *,
        batch_size: int = 65_536,
        event_id: str | None = None,
        threads: int | None = None,
        strict: bool = False,
    ) -> Iterator[Matches]:
        """Match a stream of events, some at a time, in bounded memory.

        Parameters
        ----------
        events
            As for `match_many`. An iterator may be endless; files are read in pieces.
        batch_size
            The most events per batch. Batches are smaller if events have very many matches.
        event_id, threads, strict
            As for `match_many`. Without `event_id`, events are named by their position in the
            stream.

        Returns
        -------
        iterator of Matches
            One per batch. A batch sees all changes that were made before it.

        Examples
        --------
        >>> import matchmill as mm
        >>> engine = mm.Engine({"u1": "price < 20"})
        >>> stream = ({"price": n} for n in range(100))
        >>> sum(matches.n_matches for matches in engine.match_batches(stream, batch_size=10))
        20
        """
        if type(batch_size) is not int or batch_size < 1:
            raise InputError(f"batch_size is a number of at least 1, not {shown(batch_size)}")
        n_threads_for(threads, 0)
        return self._match_batches(events, batch_size, _event_ids(event_id), threads, strict)

    def _match_batches(
        self,
        events: Any,
        batch_size: int,
        names: EventIds | None,
        threads: int | None,
        strict: bool,
    ) -> Iterator[Matches]:
        size = ChunkSize(len(self), most=batch_size)
        first = 0
        for chunk in event_batches(events, size, self.settings, self._store.types):
            matches = _matched(self._matcher(), chunk, first, names, threads, strict)
            _check_ids(names, matches.n_events)
            size.learn(max(1, matches.n_events), matches.n_matches)
            first += matches.n_events
            yield matches

    def _matcher(self) -> Matcher:
        store = self._store
        return Matcher(
            store.state, store.sample, self._operators, self.settings, self._single_events
        )

    def match_expression(self, expression: object) -> set[Id]:
        """Return the ids of all subscriptions that some event described by an expression satisfies.

        ``price between 20 and 40 and genre = 'classics'`` describes all events with such values and
        no other attributes. A subscription is found if it is true for one of them.

        Parameters
        ----------
        expression
            Text, a JSON pattern or an `Expression`.

        Examples
        --------
        >>> import matchmill as mm
        >>> engine = mm.Engine({"u1": "price < 25", "u2": "price > 50"})
        >>> engine.match_expression("price between 20 and 40")
        {'u1'}
        """
        parsed, _ = read_typed(expression, self._store.types, self.settings)
        return match_expression(self._store.state, parsed, self.settings)

    def explain(self, id: Id, event: Any) -> Explanation:
        """Explain why a subscription matches an event, or what is missing.

        Parameters
        ----------
        id
            The id of the subscription.
        event
            The event.

        Raises
        ------
        UnknownIdError
            If there is no subscription with this id.

        Examples
        --------
        >>> import matchmill as mm
        >>> print(mm.Engine({"u1": "price < 20"}).explain("u1", {"price": 21}))
        ✗ price < 20: price is 21, needs < 20 (1 too much)
        """
        subscriptions = self._subscriptions
        plain: Any = plain_id(id)
        row = int(subscriptions.rows_of([plain])[0])
        if self._store.types:
            event = typed_event(event, self._store.types, self.settings)
        explanation = explain_with_operators(
            subscriptions.expression_of_row(row), event, self.settings
        )
        return with_changes(explanation, id=plain)

    def check(self, events: Any = None) -> CheckReport:
        """Look for subscriptions that need a second look: typos, wrong types, repetitions.

        Parameters
        ----------
        events
            A sample of events, as for `match_many`; of many, a part that is spread evenly over all.
            By default, what the engine has kept of the events that it learned with `learn`. Without
            either, only what the subscriptions say by themselves is checked.

        Returns
        -------
        CheckReport
            The findings, likely mistakes first. A finding about events says how many there were;
            a sample that is too small for it gives none.

        Examples
        --------
        >>> import matchmill as mm
        >>> engine = mm.Engine({"u1": "prize < 20"})
        >>> print(engine.check([{"price": price} for price in range(100)]))
        1 subscriptions, 100 events, 1 warnings
        unknown_attribute: u1: none of the 100 events has prize; did you mean 'price'?
        """
        seen = (
            self._learned
            if events is None
            else see_events(events, self.settings, types=self._store.types)
        )
        return check_store(self._store, seen)

    def learn(self, events: Any) -> None:
        """Have the index built for events like these.

        Without it, the engine uses a sample of the events that it matched. The next merge of
        segments uses what is known then; `compact` does it at once. The answers are the same.
        While the engine is open it also knows which attributes these events have: `check`
        and the warnings of `subscribe_many` point at others.

        Parameters
        ----------
        events
            As for `match_many`.

        Examples
        --------
        >>> import matchmill as mm
        >>> engine = mm.Engine({"u1": "price < 20"})
        >>> engine.learn([{"price": price} for price in range(1000)])
        >>> engine.compact()
        """
        store = self._store
        state = store.state
        learned = self._learned.copy() if self._learned else SeenEvents(_LEARNED_CHUNKS)
        for chunk in event_batches(events, lambda: _LEARNED_AT_ONCE, self.settings, store.types):
            columns = read_columns(state.dimensions, chunk.events, self.settings.max_pattern_work)
            store.sample.add(encode_events(state.dimensions, columns), everything=True)
            learned.add(chunk)
        store.relearn()
        self._learned = learned

    # -- figures ----------------------------------------------------------------------------------

    def stats(self) -> EngineStats:
        """Return counts, bytes and other figures.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.Engine({"u1": "price < 20"}).stats().n_clauses
        1
        """
        error = self._maintenance.error
        return engine_stats(self._store, self._folder, error, self._operators)

    # -- folders ----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str] | None = None) -> None:
        """Write the engine to a folder, replacing an engine that was saved there.

        Without a path, or with its own, an engine that is open on a folder writes a new version
        there and empties its log. Subscribing and matching go on meanwhile.

        Parameters
        ----------
        path
            The folder.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.Engine({"u1": "price < 20"}).save("alerts.mill")
        >>> len(mm.Engine.open("alerts.mill", read_only=True))
        1
        """
        if path is None and self._folder is None:
            raise InputError("this engine is not open on a folder: save it as save('alerts.mill')")
        self._store.check_not_inside_a_change()
        if path is not None:
            path = folder_path(path)
        if path is not None and (self._folder is None or not self._folder.is_same(path)):
            uninterrupted(self._maintenance.save_copy, path)
            return
        self._check_writable()
        uninterrupted(self._maintenance.checkpoint)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        create: bool = False,
        read_only: bool = False,
        verify: bool = False,
        index: str | None = None,
        index_options: Mapping[str, object] | None = None,
        types: Mapping[str, str] | None = None,
        settings: Settings | None = None,
        progress: Progress = False,
    ) -> Engine:
        """Open an engine that lives in a folder: every change is in its log before the call ends.

        With ``read_only=True`` also the latest version of what `matchmill.spark.build` published.

        Parameters
        ----------
        path
            The folder.
        create
            Whether to make a new engine if there is none.
        read_only
            Whether to open it for matching only, also while another process writes. Otherwise the
            folder is locked until `close`.
        verify
            Whether to check all files against their checksums, and all values that are used as
            addresses, and to build the indexes again instead of using those in the folder. Small
            files are always checked. Use it for a folder that comes from somebody else.
        index, index_options
            Another index than the engine was saved with; it is built again.
        types
            Other types of attributes than it was saved with.
        settings
            Other settings than it was saved with.
        progress
            True shows a bar; a function is called with the number of changes read from the log,
            and None.

        Raises
        ------
        FolderError
            If the folder is missing or damaged.
        FolderInUseError
            If another engine has it open for writing.

        Examples
        --------
        >>> import matchmill as mm
        >>> with mm.Engine.open("alerts.mill", create=True) as engine:
        ...     engine.subscribe("u1", "price < 20", replace=True)
        """
        root = Path(
            os.path.abspath(folder_path(path))
        )  # it stays that, whatever the working directory becomes
        options: dict[str, Any] = {
            "verify": verify,
            "index": index,
            "index_options": index_options,
            "types": None if types is None else checked_types(types),
            "settings": _checked(settings),
        }
        if read_only and create:
            raise InputError("create=True and read_only=True contradict each other")
        if read_only and is_sharded_engine(root):
            return cls._of_shards(root, options, progress)
        engine = cls.__new__(cls)
        with reporting(progress, "log") as options["progress"]:
            if read_only:
                reason = f"{root} was opened with read_only=True: it cannot be changed"
                engine._start(open_for_reading(root, options), None, root, reason)
            else:
                index_name = index or DEFAULT_INDEX
                new = NewEngine(index_name, index_options, settings, types) if create else None
                engine._start(*open_for_writing(root, new, options), root)
        if engine._is_of_another_index(index, index_options):
            engine.compact()
        return engine

    @classmethod
    def _of_shards(cls, root: Path, options: Mapping[str, Any], progress: Progress) -> Engine:
        """Load what `matchmill.spark.build` published in a folder; it cannot be changed."""
        read = read_sharded(root, verify=options["verify"])
        engine = cls(
            index=options["index"] or read.index_name,
            index_options=options["index_options"],
            types=options["types"],
            settings=options["settings"] or read.settings,
        )
        engine.subscribe_many(read.rows, strict=True, progress=progress)
        engine._path = root
        engine._read_only = f"{root} belongs to matchmill.spark.build; engine.save(path) copies it"
        return engine

    def _is_of_another_index(
        self, index: str | None, index_options: Mapping[str, object] | None
    ) -> bool:
        """Tell whether segments have to be built again for what was asked for."""
        built = [s.built for s in self._store.state.snapshot.segments if not s.is_fresh]
        if index_options is not None and built:
            return True
        return index is not None and any(one.name != index for one in built)

    def close(self) -> None:
        """End the work in the background, and let another engine write to the folder.

        Matching still works; nothing can be changed any more.

        Raises
        ------
        BackgroundError
            If work in the background has failed and no call has said so yet.

        Examples
        --------
        >>> import matchmill as mm
        >>> engine = mm.Engine({"u1": "price < 20"})
        >>> engine.close()
        """
        self._store.check_not_inside_a_change()
        uninterrupted(self._close)

    def _close(self) -> None:
        if not self._finalizer.detach():
            return
        with self._store.lock:
            self._read_only = "this engine is closed: it cannot be changed"
        self._maintenance.stop(wait=True)
        self._maintenance.raise_error("the engine is closed nevertheless")

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle an engine as its folder, which the other process opens for matching."""
        if self._path is None:
            _refuse_pickling()
        return _reopened, (os.path.abspath(self._path),)


def _refuse_pickling() -> NoReturn:
    raise InputError(
        "an engine in memory cannot be pickled or copied; save it with engine.save('alerts.mill'),"
        " and open that where it is needed: Engine.open('alerts.mill', read_only=True)"
    )


def _reopened(path: str) -> Engine:
    return Engine.open(path, read_only=True)


def _checked(settings: Settings | None) -> Settings | None:
    if settings is not None and not isinstance(settings, Settings):
        raise InputError(f"settings must be a Settings, not {type(settings).__name__}")
    return settings


def _matched(
    matcher: Matcher,
    chunk: EventChunk,
    first: int,
    names: EventIds | None,
    threads: int | None,
    strict: bool,
) -> Matches:
    matches = matcher.match(chunk, first, names, threads)
    if strict and matches.rejected:
        raise EventError(str(matches.rejected[0]))
    return matches


def _check_ids(names: EventIds | None, n_events: int) -> None:
    if names is not None and n_events and not names.has_seen_one:
        raise InputError(
            f"no event has an attribute {shown(names.attribute)} that is a text or an integer;"
            " event_id names the attribute that is the id of an event"
        )


def _event_ids(event_id: str | None) -> EventIds | None:
    if event_id is None:
        return None
    if not isinstance(event_id, str) or not event_id:
        raise InputError(f"event_id is the name of an attribute, not {shown(event_id)}")
    return EventIds(event_id)
