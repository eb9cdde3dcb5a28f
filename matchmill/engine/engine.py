"""The engine: subscriptions in, matches out. Everything else in the package stands behind it.

Engine ─► Store            what is subscribed (engine_store.py); matching.py reads one state of it
       ─► DurableFolder    the log and the versions of an engine that lives in a folder
       ─► Maintenance      merging, forgetting and saving, beside the calls
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from matchmill.encoding.events.read import read_events
from matchmill.engine.durable_folder import DurableFolder
from matchmill.engine.expression_input import normal_form, read_expression, text_of
from matchmill.engine.loading import Load, load_rows
from matchmill.engine.maintenance import Maintenance
from matchmill.engine.match_many import match_events, match_expression
from matchmill.engine.match_single import SingleEvents
from matchmill.engine.matches import Matches
from matchmill.engine.saved_state import capture, open_store
from matchmill.engine.state import Store
from matchmill.engine.stats import EngineStats, engine_stats
from matchmill.engine.subexpressions import encode_with_parts, is_asked_for
from matchmill.engine.subscription_table import Identifier, Subscriptions, check_id
from matchmill.errors import EventError, FolderError, InputError, ReadOnlyError
from matchmill.index.registry import DEFAULT_INDEX, index_class
from matchmill.io.reports import SubscribeReport
from matchmill.io.subscription_files import read_subscriptions
from matchmill.io.subscription_rows import subscription_rows
from matchmill.language.explain import Explanation
from matchmill.language.expression import Expression
from matchmill.operators.explain import explain_with_operators
from matchmill.operators.matcher import OperatorMatcher
from matchmill.settings import DEFAULT_SETTINGS, Settings
from matchmill.storage.array_folder import (
    is_saved_engine,
    read_manifest,
    remove_leftovers,
    retried,
    write_folder,
)
from matchmill.storage.folder_lock import FolderLock

__all__ = ["Engine"]


class Engine:
    """Finds, for each event, all subscriptions that it satisfies.

    `index` is a name in the registry; `settings` bound sizes. Any thread may match while another
    one subscribes. An engine made here lives in memory; `Engine.open` has one that lives in a
    folder. `close`, or leaving a `with` block, ends its work in the background.
    """

    def __init__(
        self, *, index: str = DEFAULT_INDEX, settings: Settings | None = None, **options: Any
    ) -> None:
        settings = _checked(settings) or DEFAULT_SETTINGS
        self._start(Store(index_class(index), settings, **options), None)

    def _start(self, store: Store, folder: DurableFolder | None, refusal: str = "") -> None:
        self._store = store
        self._folder = folder
        self._refusal = refusal  # why nothing can be changed, if so
        self._operators = OperatorMatcher(store.settings)
        self._single_events = SingleEvents(store.settings, store.sample, self._operators)
        self._maintenance = Maintenance(store, folder)
        self._finalizer = weakref.finalize(self, self._maintenance.stop, wait=False)
        if folder is not None and store.settings.background:
            self._maintenance.after_write()  # what was due when it was closed

    @property
    def settings(self) -> Settings:
        """The limits and sizes that this engine works with."""
        return self._store.settings

    @property
    def _subscriptions(self) -> Subscriptions:
        return self._store.state.subscriptions

    # -- subscriptions ----------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._subscriptions.n_live

    def __contains__(self, identifier: object) -> bool:
        return self._subscriptions.current_row(identifier) >= 0

    def __repr__(self) -> str:
        index = self._store.segmented.index_class.name
        where = f", in {self._folder.root}" if self._folder is not None else ""
        return f"<matchmill.Engine: {len(self):,} subscriptions, index {index}{where}>"

    def ids(self) -> list[Identifier]:
        """The identifiers of all subscriptions, in order of first arrival."""
        subscriptions = self._subscriptions
        numbers = subscriptions.live_numbers()
        ids: list[Identifier] = subscriptions.ids_of_numbers(numbers).to_pylist()
        return ids

    def expression(self, identifier: Identifier) -> Expression:
        """The expression of a subscription."""
        subscriptions = self._subscriptions
        return subscriptions.expression_of_row(int(subscriptions.rows_of([identifier])[0]))

    @contextmanager
    def _writing(self) -> Iterator[Store]:
        """Around every change: may it be, one at a time, is it safe, what does it entail."""
        store, folder = self._store, self._folder
        with store.changing():
            self._check_writable()
            self._maintenance.raise_error("this call has changed nothing and can be repeated")
            yield store
            position = folder.position if folder is not None else 0
        if folder is not None and store.settings.sync == "always":
            folder.sync(position)
        self._maintenance.after_write()

    def _check_writable(self) -> None:
        if self._refusal:
            raise ReadOnlyError(self._refusal)
        if self._folder is not None:
            self._folder.check_process()

    def subscribe(
        self, identifier: Identifier, expression: object, *, replace: bool = False
    ) -> None:
        """Store a subscription; the next match sees it."""
        checked = check_id(identifier)
        parsed = read_expression(expression, self.settings)
        normal = normal_form(expression, parsed, self.settings)
        with self._writing() as store:
            load = Load(store, replace=replace)
            load.add(checked, text_of(expression, parsed), normal)
            load.finish(self._folder)

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
        is_path = isinstance(source, (str, os.PathLike))
        read: Any = read_subscriptions if is_path else subscription_rows
        rows = read(source, id_column=id_column, expression_column=expression_column)
        with self._writing() as store:
            load = Load(store, replace=replace)
            rejected = load_rows(load, rows, os.fspath(source) if is_path else None, progress)
            load.finish(self._folder)
        return load.report(rejected)

    def unsubscribe(self, identifier: Identifier) -> None:
        """Remove a subscription; raises UnknownIdError if there is none."""
        self.unsubscribe_many([identifier])

    def unsubscribe_many(self, identifiers: Iterable[Identifier]) -> None:
        """Remove several subscriptions in one step, or none if one of them is unknown."""
        with self._writing() as store:
            known = list(identifiers)
            rows = store.state.subscriptions.rows_of(known)
            if len(rows):
                store.remove(known, np.unique(rows), self._folder)

    def compact(self) -> None:
        """Merge all segments and forget what was removed. Matching goes on meanwhile."""
        self._maintenance.compact()

    # -- matching ---------------------------------------------------------------------------------

    def match(self, event: Mapping[str, Any]) -> set[Identifier]:
        """The ids of all subscriptions that one event satisfies."""
        found = self._single_events.match(self._store.state, event)
        if found is not None:
            return found
        matches = self.match_many([event])
        if matches.rejected:
            raise EventError(matches.rejected[0])
        return matches[0]

    def match_many(self, events: Any, *, threads: int | None = 1) -> Matches:
        """The same for many events: dicts, an Arrow table, a pandas or polars frame, JSON lines
        through `matchmill.read_json_lines`.

        `threads` divides the events among so many threads; 0 or None means one for each processor
        that this process may use. The result is the same for every number.
        """
        store = self._store
        return match_events(
            store.state, events, self.settings, threads, store.sample, self._operators
        )

    def match_expression(self, event: object) -> set[Identifier]:
        """The ids of all subscriptions that an event which is itself an expression may satisfy.

        `price between 20 and 40 and genre = 'classics'` stands for all events with such values and
        no other attributes; a subscription is found if it is true for one of those.
        """
        parsed = read_expression(event, self.settings)
        return match_expression(self._store.state, parsed, self.settings)

    def learn(self, events: Any) -> None:
        """Have the index built for events like these.

        Without it, a sample of what is matched serves the same end. The next merge of segments uses
        what is known then; `compact()` does it at once. Answers never depend on it.
        """
        store = self._store
        state = store.state
        source = read_events(events, self.settings)
        columns = source.columns(is_asked_for(state.dimensions))
        store.sample.add(encode_with_parts(state.dimensions, columns), everything=True)
        store.relearn()

    def explain(self, identifier: Identifier, event: Mapping[str, Any]) -> Explanation:
        """Why a subscription matches an event, or what is missing."""
        return explain_with_operators(self.expression(identifier), event)

    # -- figures ----------------------------------------------------------------------------------

    def stats(self) -> EngineStats:
        """Counts and bytes."""
        error = self._maintenance.error
        return engine_stats(self._store, self._folder, error, self._operators.stats())

    # -- files ------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str] | None = None) -> None:
        """Write the engine to a folder, replacing an engine that was saved there.

        Without a path, or with its own, an engine that is open on a folder writes a new version
        there and empties its log. Subscribing and matching go on meanwhile.
        """
        if path is None and self._folder is None:
            raise InputError("this engine is not open on a folder: save it as save('alerts.mill')")
        if path is not None and (self._folder is None or not self._folder.is_same(path)):
            write_folder(path, capture(self._store).to_saved())
            return
        self._check_writable()
        self._maintenance.checkpoint()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        create: bool = False,
        read_only: bool = False,
        verify: bool = False,
        index: str | None = None,
        settings: Settings | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Engine:
        """Open an engine that lives in a folder: every change is in its log before the call ends.

        `create` makes a new one if there is none. `read_only` opens it to match, beside whoever
        writes; otherwise the folder is locked until `close`. `verify` reads all files against
        their checksums, which else is done for small ones only. `index` and `settings` change
        those it was saved with. `progress` is told how many changes were read from the log.
        """
        root = Path(path)
        options: Any = {
            "verify": verify,
            "index": index,
            "settings": _checked(settings),
            "progress": progress,
        }
        engine = cls.__new__(cls)
        if read_only:
            if create:
                raise InputError("create=True and read_only=True contradict each other")
            opened = retried(root, lambda manifest: open_store(root, manifest, **options))
            engine._start(
                opened.store, None, f"{root} was opened with read_only=True: it cannot be changed"
            )
        else:
            if create and not is_saved_engine(root):
                empty = cls(index=index or DEFAULT_INDEX, settings=settings)
                write_folder(root, capture(empty._store).to_saved())
            engine._start(*_opened_for_writing(root, options))
        if index is not None and any(
            segment.built.name != index and not segment.is_fresh
            for segment in engine._store.state.snapshot.segments
        ):
            engine.compact()
        return engine

    def close(self) -> None:
        """End the work in the background, and let another engine write to the folder.

        What was subscribed can still be matched; nothing can be changed any more. Raises
        BackgroundError if work in the background has failed and no call has said so yet."""
        if not self._finalizer.detach():
            return
        with self._store.lock:
            self._refusal = "this engine is closed: it cannot be changed"
        self._maintenance.stop(wait=True)
        self._maintenance.raise_error("the engine is closed all the same")

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _checked(settings: Settings | None) -> Settings | None:
    if settings is not None and not isinstance(settings, Settings):
        raise InputError(f"settings must be a Settings, not {type(settings).__name__}")
    return settings


def _opened_for_writing(root: Path, options: Any) -> tuple[Store, DurableFolder]:
    if not is_saved_engine(root):
        raise FolderError(
            f"{root} holds no saved engine: there is no manifest.json; create=True makes a new one"
        )
    lock = FolderLock(root)
    try:
        manifest = read_manifest(root)
        opened = open_store(root, manifest, **options)
        remove_leftovers(root)
        return opened.store, DurableFolder(root, lock, manifest.logs, opened.log_ends)
    except BaseException:
        lock.release()
        raise
