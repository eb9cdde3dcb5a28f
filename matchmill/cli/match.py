"""`matchmill match`: files in, files out."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from matchmill.cli.load_engine import check_targets, load, rate, refused_writer, say
from matchmill.cli.progress import Progress
from matchmill.cli.rejected import SetAside, listed
from matchmill.engine.engine import Engine
from matchmill.engine.match_many import ChunkSize
from matchmill.errors import InputError
from matchmill.io.csv_types import CsvColumns
from matchmill.io.event_files import event_columns, infer_csv_columns, read_event_chunks
from matchmill.io.event_ids import EventIds
from matchmill.io.event_sources import rejected_events
from matchmill.io.formats import format_of, missing_column
from matchmill.io.writers import MatchWriter

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    check_targets((arguments.subscriptions, arguments.events), (arguments.out, arguments.refused))
    if arguments.out == "-" == arguments.refused:
        raise InputError("--out and --refused cannot both be standard output")
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(arguments.quiet))
        source = _EventSource(arguments)
        writer = stack.enter_context(
            MatchWriter(arguments.out, kind=arguments.format, hold_back=arguments.strict)
        )
        aside = SetAside(refused_writer(arguments, stack), arguments.strict)
        loaded = load(arguments, aside, progress)
        progress.stage("matching events")
        start = time.perf_counter()
        n_events, n_pairs = _match_events(loaded.engine, source, writer, aside, progress)
        seconds = time.perf_counter() - start

    def summary() -> Iterator[str]:
        n_rejected = aside.counts["event"]
        yield loaded.summary(aside.counts["subscription"])
        yield f"events: {n_events:,} read, {n_rejected:,} set aside; {rate(n_events, seconds)}"
        yield from source.lines()
        yield f"matches: {n_pairs:,}" + ("" if arguments.out == "-" else f" in {arguments.out}")
        yield from aside.lines()

    say(arguments, summary())
    return aside.exit_code


class _EventSource:
    """The file of events: whether its options fit it, how a CSV is read, how events are named."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.path = arguments.events
        names = event_columns(self.path)
        if names is not None and arguments.event_id not in (None, *names):
            raise missing_column(Path(self.path), arguments.event_id, names, "--event-id")
        self.csv_columns: CsvColumns | None = None
        if format_of(self.path).kind == "csv":
            self.csv_columns = infer_csv_columns(
                self.path, null_words=arguments.null, text_columns=arguments.text
            )
        elif arguments.null or arguments.text:
            raise InputError("--null and --text are for events in CSV; other files have types")
        self.ids: EventIds | None = None
        if arguments.event_id is not None:
            self.ids = EventIds(arguments.event_id)

    def lines(self) -> Iterator[str]:
        if self.csv_columns is not None:
            by_type: dict[str, list[str]] = {}
            for name, kind in self.csv_columns.types.items():
                by_type.setdefault(kind, []).append(name)
            yield "columns: " + "; ".join(f"{k} {listed(names)}" for k, names in by_type.items())


def _match_events(
    engine: Engine,
    source: _EventSource,
    writer: MatchWriter,
    aside: SetAside,
    progress: Progress,
) -> tuple[int, int]:
    n_events = n_pairs = 0
    size = ChunkSize(len(engine))
    for chunk in read_event_chunks(
        source.path, chunk_rows=size, csv_columns=source.csv_columns, settings=engine.settings
    ):
        matches = engine.match_many(chunk.events, threads=1)
        size.learn(chunk.events.n_events, matches.n_matches)
        reasons = {one.row: one.reason for one in matches.rejected}
        ids = None
        if source.ids is not None:
            ids, nameless = source.ids.read(chunk.events)
            reasons = {**nameless, **reasons}
        names = None if ids is None else ids.to_pylist()
        for rejected in rejected_events(reasons, chunk, names):
            aside.add(rejected)
        pairs = _named(matches.to_arrow(), chunk.first, ids)
        writer.write(pairs)
        n_events += chunk.events.n_events
        n_pairs += len(pairs)
        progress.update(n_events)
    return n_events, n_pairs


def _named(pairs: pa.Table, first: int, ids: pa.Array | None) -> pa.Table:
    """Numbers within a chunk become numbers within the file, or the user's own names."""
    if ids is None:
        return pairs.set_column(0, "event_id", pc.add(pairs["event_id"], first))
    pairs = pairs.set_column(0, "event_id", ids.take(pairs["event_id"].combine_chunks()))
    return pairs.filter(pc.is_valid(pairs["event_id"])) if ids.null_count else pairs
