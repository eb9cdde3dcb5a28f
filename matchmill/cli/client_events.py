"""Events of a file for `matchmill client publish`: as they were written, each with its line."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from matchmill.encoding.events.read import read_json_lines
from matchmill.errors import EventError, FileFormatError, InputError
from matchmill.io.event_files import infer_csv_columns, read_event_chunks
from matchmill.io.formats import Source, check_file, encoding_problem, text_lines

__all__ = ["FileEvent", "file_events"]


class FileEvent(NamedTuple):
    line: int
    event: Mapping[str, Any] | None
    problem: str | None


def file_events(arguments: argparse.Namespace) -> Iterator[FileEvent]:
    """The events of a file; one that cannot be read has a problem instead."""
    source = check_file(arguments.events)
    if source.format.kind != "csv" and (arguments.null or arguments.text):
        raise InputError("--null and --text are for events in CSV; other files have types")
    if source.format.kind == "jsonl":
        return _lines(source)
    return _rows(arguments, source)


def _lines(source: Source) -> Iterator[FileEvent]:
    """JSON lines keep their form: who gets an event sees nested objects as they were."""
    is_first = True
    for number, line in enumerate(text_lines(source), 1):
        if line.isspace():
            continue
        if is_first and line.lstrip().startswith("["):
            raise FileFormatError(f"{source.path} holds a JSON array; write one object a line")
        is_first = False
        problem = encoding_problem(line)
        if problem is None:
            try:
                read_json_lines(line.encode()).event(0)
            except EventError as error:
                problem = str(error)
        event = json.loads(line) if problem is None else None
        yield FileEvent(number, event, problem)


def _rows(arguments: argparse.Namespace, source: Source) -> Iterator[FileEvent]:
    columns = None
    if source.format.kind == "csv":
        columns = infer_csv_columns(
            source.path, null_words=arguments.null, text_columns=arguments.text
        )
    for chunk in read_event_chunks(source.path, csv_columns=columns):
        rejected = chunk.events.columns().rejected
        lines = range(chunk.first + 1, chunk.first + 1 + chunk.events.n_events)
        for i, line in enumerate(lines if chunk.lines is None else chunk.lines.tolist()):
            if i in rejected:
                yield FileEvent(line, None, rejected[i])
            else:
                yield FileEvent(line, chunk.events.event(i), None)
