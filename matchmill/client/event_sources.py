"""Events from any source, one at a time, as they are sent to a service."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from matchmill.errors import EventError, FileFormatError, InputError

if TYPE_CHECKING:
    from matchmill.io.csv_types import CsvColumns
    from matchmill.io.formats import Source

__all__ = ["EventRow", "event_rows", "source_rows"]


class EventRow(NamedTuple):
    """One event, or why it cannot be read, and its line in a text file."""

    event: Any
    problem: str | None = None
    line: int | None = None


def event_rows(source: Any) -> Iterator[EventRow]:
    """Read the events of a path, a frame, an Arrow table, or an iterable of mappings.

    Events of JSON lines and mappings keep their form: whoever receives one sees nested objects.
    """
    if isinstance(source, str | os.PathLike):
        return _from_path(source)
    if isinstance(source, Mapping):
        return iter([EventRow(source)])
    if _is_table(source):
        return _from_table(source)
    if isinstance(source, Iterable) and not isinstance(source, bytes | bytearray | memoryview):
        return _from_items(source)
    raise InputError(
        "events come from a path, an Arrow table, a pandas or polars frame, a mapping, or an"
        f" iterable of mappings, not from {type(source).__name__}"
    )


def _is_table(source: object) -> bool:
    return hasattr(source, "__arrow_c_stream__") or type(source).__name__ == "DataFrame"


def _from_items(items: Iterable[Any]) -> Iterator[EventRow]:
    for item in items:
        if isinstance(item, EventRow):
            yield item
            continue
        if not isinstance(item, Mapping):
            raise InputError(f"an event is a mapping of attributes to values, not {item!r:.80}")
        yield EventRow(item)


def _from_table(table: Any) -> Iterator[EventRow]:
    from matchmill.encoding.events.read import read_events

    events = read_events(table)
    rejected = events.columns().rejected
    for i in range(events.n_events):
        if i in rejected:
            yield EventRow(None, rejected[i])
        else:
            yield EventRow(events.event(i))


def _from_path(path: str | os.PathLike[str]) -> Iterator[EventRow]:
    from matchmill.io.formats import check_file

    return source_rows(check_file(path))


def source_rows(
    source: Source,
    csv_columns: CsvColumns | None = None,
    types: Mapping[str, str] | None = None,
) -> Iterator[EventRow]:
    """Read the events of a file; `csv_columns` tells how the columns of CSV are read.

    `types` are those of columns; JSON lines stay as they are.
    """
    if source.format.kind == "jsonl":
        return _from_json_lines(source)
    return _from_rows(source, csv_columns, types)


def _from_json_lines(source: Source) -> Iterator[EventRow]:
    from matchmill.encoding.events.json_lines import read_json_lines
    from matchmill.io.formats import encoding_problem, text_lines
    from matchmill.language.strict_json import JsonError, decode_json

    is_first = True
    for number, line in enumerate(text_lines(source), 1):
        if line.isspace():
            continue
        if is_first and line.lstrip().startswith("["):
            raise FileFormatError(
                f"{source.path} holds a JSON array; write one object per line: "
                f"jq -c '.[]' {source.path.name}"
            )
        is_first = False
        event, problem = None, encoding_problem(line)
        if problem is None:
            try:
                read_json_lines(line.encode()).event(0)
                event = decode_json(line, allow_nan=True)  # a service takes no name twice
            except (EventError, JsonError) as error:
                problem = str(error).removeprefix("line 1: ")
        yield EventRow(event, problem, number)


def _from_rows(
    source: Source, csv_columns: CsvColumns | None, types: Mapping[str, str] | None
) -> Iterator[EventRow]:
    from matchmill.io.event_files import read_event_chunks

    for chunk in read_event_chunks(source, csv_columns=csv_columns, types=types):
        rejected = chunk.events.columns().rejected
        for i in range(chunk.events.n_events):
            line = None if chunk.lines is None else int(chunk.lines[i])
            if i in rejected:
                yield EventRow(None, rejected[i].removeprefix(f"line {line}: "), line)
            else:
                yield EventRow(chunk.events.event(i), None, line)
