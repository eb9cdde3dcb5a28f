"""Files of events: how they are read, and how they are matched."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import islice
from shlex import quote
from typing import TYPE_CHECKING, Any

from matchmill.cli.arguments import declared_types
from matchmill.cli.inputs import event_sources
from matchmill.cli.rejected import listed, one_line
from matchmill.errors import InputError

if TYPE_CHECKING:
    from matchmill.client import Client
    from matchmill.engine.engine import Engine
    from matchmill.engine.matches import Matches
    from matchmill.io.event_sources import ChunkedEvents

__all__ = ["EventFiles", "matched_files", "matched_remotely"]

_REMOTE_BATCH = 500


class EventFiles:
    """The arguments EVENTS: whether the options fit them, and how CSV columns are read."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        from matchmill.io.event_files import event_columns, infer_csv_columns
        from matchmill.io.formats import missing_column

        self.event_id: str | None = getattr(arguments, "event_id", None)
        self.threads = getattr(arguments, "threads", None)
        self.sources = event_sources(arguments.events)
        self.types = declared_types(arguments.types)
        self.csv_columns: dict[int, Any] = {}
        self.names: list[list[str] | None] = []  # of the columns of each file, if it has some
        for number, source in enumerate(self.sources):
            names = event_columns(source)
            self.names.append(names)
            if names is not None and self.event_id is not None and self.event_id not in names:
                raise missing_column(source.path, self.event_id, names, "--event-id")
            if source.format.kind == "csv":
                self.csv_columns[number] = infer_csv_columns(
                    source,
                    null_words=arguments.null_values,
                    text_columns=[name for name in names or () if name in self.types],
                )
        if arguments.null_values and not self.csv_columns:
            raise InputError("--null-value is for events in CSV; others have nulls")

    def chunks(self) -> ChunkedEvents:
        """Return the events of all files, to be read some at a time."""
        from matchmill.io.event_files import read_event_chunks
        from matchmill.io.event_sources import ChunkedEvents

        def chunks(batch_size: Any, settings: Any) -> Iterator[Any]:
            for number, source in enumerate(self.sources):
                yield from read_event_chunks(
                    source,
                    chunk_rows=batch_size,
                    csv_columns=self.csv_columns.get(number),
                    types=self.types,
                    settings=settings,
                )

        return ChunkedEvents(chunks)

    def lines(self) -> Iterator[str]:
        """Say which types the columns of CSV files have, and which cells make them text."""
        for number, columns in self.csv_columns.items():
            for cell in columns.odd:
                option = f"; --null-value {quote(cell.shown)}" if cell.is_word else ""
                yield f"{self.sources[number].path}:{cell.line}: {one_line(cell)}{option}"
            by_type: dict[str, list[str]] = {}
            for name, kind in columns.types.items():
                by_type.setdefault(kind, []).append(name)
            if by_type:
                columns_text = "; ".join(f"{k} {listed(names)}" for k, names in by_type.items())
                yield f"columns: {columns_text}"
        yield from self._needless_types()

    def _needless_types(self) -> Iterator[str]:
        """Say which --type names a column that no file has, if all files have columns."""
        from matchmill.errors import did_you_mean

        if not self.types or any(names is None for names in self.names):
            return
        known = {name for names in self.names for name in names or ()}
        for attribute, kind in self.types.items():
            head = attribute.partition(".")[0]
            if attribute not in known and head not in known:
                hint = did_you_mean(attribute, known)
                yield f"--type {attribute}={kind}: no file has such a column{hint}"


def matched_files(engine: Engine, files: EventFiles) -> Iterator[Matches]:
    """Match the events of all files, in batches."""
    return engine.match_batches(files.chunks(), event_id=files.event_id, threads=files.threads)


def matched_remotely(client: Client, files: EventFiles) -> Iterator[Matches]:
    """Have a service match the events of all files, one by one."""
    from matchmill.client.event_sources import source_rows

    first = 0
    for number, source in enumerate(files.sources):
        rows = enumerate(source_rows(source, files.csv_columns.get(number), files.types))
        while some := list(islice(rows, _REMOTE_BATCH)):
            yield _batch(client, some, source.name, files.event_id, first)
            first += len(some)


def _batch(
    client: Client, rows: list[Any], name: str | None, event_id: str | None, first: int
) -> Matches:
    import numpy as np
    import pyarrow as pa

    from matchmill.engine.matches import ArrowIds, Matches
    from matchmill.errors import EventError
    from matchmill.io.reports import Rejected

    offsets, found, rejected, event_ids = [0], [], [], []
    for number, row in rows:
        id = None
        try:
            if row.problem is not None:
                raise EventError(row.problem)
            if event_id is not None:
                id = row.event.get(event_id)
                if not isinstance(id, str | int) or isinstance(id, bool):
                    raise EventError(f"there is no event id: {event_id!r} is missing")
            found += sorted(client.match(row.event))
        except EventError as error:
            rejected.append(Rejected("event", number, row.line, name, id, error.summary))
        offsets.append(len(found))
        event_ids.append(id)
    return Matches(
        np.array(offsets),
        np.arange(len(found)),
        ArrowIds(pa.array(found, pa.large_string())),
        rejected=rejected,
        event_ids=None if event_id is None else pa.array(event_ids),
        first=first,
    )
