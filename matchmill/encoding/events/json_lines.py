"""JSON lines as events: one object per line, blank lines between them allowed.

    lines ──► blocks of about a megabyte ──┬─► Arrow's JSON reader ─► TableEvents   (fast)
                                           └─► `strict_json`, line by line          (always right)

Arrow's reader is several times faster, but reads some texts differently: it accepts two objects on
one line and `Inf`, makes times out of strings and doubles out of integers beside doubles, knows one
type per name, loses nulls at the beginning of lists, and crashes on deep nesting. So what it reads
is checked, before and after, and only the lines that it may have read differently are read by
Python. Where a name has several types, the lines are grouped by type and read group by group.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from matchmill.encoding.events.arrow import TableEvents, table_sources
from matchmill.encoding.events.arrow_values import list_lengths
from matchmill.encoding.events.columns import (
    ChainedEvents,
    EventColumns,
    Events,
    InterleavedEvents,
    Wanted,
)
from matchmill.encoding.events.dicts import DictEvents
from matchmill.encoding.events.json_scan import has_null_in_array, value_kinds
from matchmill.errors import EventError, InputError
from matchmill.language.flatten import flatten_record
from matchmill.language.strict_json import JsonError, decode_event
from matchmill.language.values import EventValue
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["JsonEvents", "read_json_cells", "read_json_lines"]

_BLOCK_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"
_WHITESPACE = b" \t\r"
# Far below the depth at which Arrow's reader runs out of stack; brackets bound the depth.
_MOST_BRACKETS = 256
_EXACT = 2.0**53
_SAMPLE_LINES = 50
_MOST_TRIES = 64  # of reading a block in pieces, which are not smaller than 1/64 of it


def read_json_lines(
    data: bytes, settings: Settings = DEFAULT_SETTINGS, *, fast: bool = True
) -> JsonEvents:
    """Read events from JSON lines in UTF-8.

    A line that is no good event is rejected with its number and the reason; the others are kept.
    `fast=False` reads all lines with Python's json, for comparison.
    """
    if not isinstance(data, bytes):
        raise InputError(
            f"JSON lines are read from bytes here, not from {type(data).__name__}:"
            " matchmill.read_events reads files and text"
        )
    lines = _find_lines(data)
    assert lines.numbers is not None
    return JsonEvents(_parts(lines, settings, fast), lines.numbers)


def read_json_cells(texts: pa.Array, settings: Settings = DEFAULT_SETTINGS) -> Events:
    """Read events from an Arrow array of texts, one JSON object each; reject null and blank ones.

    A line break between the tokens of a text becomes another white space, so that a text is a line;
    inside a string both are errors.
    """
    texts = texts.cast(pa.large_string())
    is_blank = pc.equal(pc.utf8_trim(texts, " \t\r\n"), "").fill_null(True)
    texts = pc.if_else(is_blank, "null", pc.replace_substring(texts, "\n", "\r"))
    lines = _find_lines("\n".join(texts.to_pylist()).encode())
    return ChainedEvents(_parts(lines, settings, fast=True))


def _parts(lines: _Lines, settings: Settings, fast: bool) -> list[Events]:
    hints: dict[str, Any] = {}
    parts: list[Events] = []
    for start, stop in _blocks(lines):
        block = _Lines(lines.data, lines.starts[start:stop], lines.ends[start:stop], None)
        parts.append(_read_block(block, hints, settings) if fast else _LineEvents(block, settings))
    return parts


class JsonEvents(ChainedEvents):
    """Events of JSON lines; `line_numbers[i]` is the line of event i, counted from 1."""

    line_numbers: np.ndarray

    def __init__(self, parts: list[Events], line_numbers: np.ndarray) -> None:
        super().__init__(parts)
        self.line_numbers = line_numbers


# -- lines ----------------------------------------------------------------------------------------


class _Lines(NamedTuple):
    data: bytes
    starts: np.ndarray
    ends: np.ndarray  # without the line break
    numbers: np.ndarray | None

    def line(self, i: int) -> bytes:
        return self.data[int(self.starts[i]) : int(self.ends[i])]


def _find_lines(data: bytes) -> _Lines:
    """Find all lines but the blank ones."""
    if not data:
        none = np.empty(0, np.int64)
        return _Lines(data, none, none, none)
    buffer = np.frombuffer(data, np.uint8)
    breaks = np.flatnonzero(buffer == ord("\n"))
    first = len(_BOM) if data.startswith(_BOM) else 0
    starts = np.concatenate([[first], breaks + 1])
    ends = np.concatenate([breaks, [len(data)]])
    filled = ends > starts
    # Only a line that begins with white space can be blank and yet have bytes.
    suspects = np.flatnonzero(
        filled & np.isin(buffer[np.minimum(starts, len(data) - 1)], [9, 13, 32])
    )
    for i in suspects.tolist():
        filled[i] = bool(data[int(starts[i]) : int(ends[i])].strip(_WHITESPACE))
    numbers = np.flatnonzero(filled)
    return _Lines(data, starts[numbers], ends[numbers], numbers + 1)


def _blocks(lines: _Lines) -> list[tuple[int, int]]:
    """Return ranges of lines of about a megabyte each."""
    n_lines = len(lines.starts)
    if n_lines == 0:
        return []
    block_ids = lines.starts // _BLOCK_BYTES
    firsts = np.flatnonzero(np.diff(block_ids, prepend=-1)).tolist()
    return list(zip(firsts, [*firsts[1:], n_lines], strict=True))


# -- by Python ------------------------------------------------------------------------------------


class _LineEvents(Events):
    """Lines that are decoded each time they are needed; the objects would take far more memory."""

    def __init__(self, lines: _Lines, settings: Settings) -> None:
        self._lines = lines
        self._settings = settings
        self.n_events = len(lines.starts)

    def columns(self, wanted: Wanted = None) -> EventColumns:
        items = [self._item(i) for i in range(self.n_events)]
        return DictEvents(items, self._settings).columns(wanted)

    def event(self, i: int) -> dict[str, EventValue]:
        self._check_index(i)
        item = self._item(i)
        if isinstance(item, EventError):
            raise item
        return flatten_record(item, self._settings)

    def _item(self, i: int) -> Any:
        """Return what a line holds, or an EventError."""
        try:
            value = decode_event(
                self._lines.line(i).strip(_WHITESPACE), self._settings.max_event_depth
            )
        except JsonError as error:
            return EventError(str(error))
        if isinstance(value, Mapping):
            return value
        return EventError(f"an event is a JSON object, not {_JSON_KINDS[type(value)]}")


class _LineTableEvents(TableEvents):
    """Lines that a table holds, too. A single event comes from its line, which has the nulls."""

    def __init__(self, lines: _LineEvents, table: pa.Table, settings: Settings) -> None:
        super().__init__(table_sources(table), table.num_rows, settings)
        self._lines = lines

    def event(self, i: int) -> dict[str, EventValue]:
        return self._lines.event(i)


_JSON_KINDS: dict[type, str] = {
    list: "an array",
    str: "text",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}


# -- by Arrow -------------------------------------------------------------------------------------


def _read_block(lines: _Lines, hints: dict[str, Any], settings: Settings) -> Events:
    """Read lines by Arrow as far as that is exact, and the others by Python."""
    is_slow = _awkward_lines(lines)
    parts: list[tuple[np.ndarray, Events]] = []
    pending = [np.flatnonzero(~is_slow)]
    n_tries = 0
    while pending:
        rows = pending.pop()
        if len(rows) == 0:
            continue
        n_tries += 1
        if n_tries > _MOST_TRIES or len(rows) * _MOST_TRIES < len(lines.starts):
            is_slow[rows] = True
            continue
        block = lines if len(rows) == len(lines.starts) else _some_lines(lines, rows)
        table = _parse_with_hints(block, hints)
        if isinstance(table, _Failure):
            pending += _without_failure(block, rows, table, is_slow)
            continue
        suspects = _suspects(table, block)
        if suspects is None:  # for reasons that are not known: look for the lines
            pending += _halves(rows, is_slow)
            continue
        if suspects.again:
            is_slow[rows[suspects.flags]] = True
            pending.append(rows[~suspects.flags])
            continue
        if suspects.flags.any():
            is_slow[rows[suspects.flags]] = True
            rows, table = rows[~suspects.flags], table.filter(pa.array(~suspects.flags))
        by_line = _LineEvents(_some_lines(lines, rows), settings)
        parts.append((rows, _LineTableEvents(by_line, table, settings)))
    slow_rows = np.flatnonzero(is_slow)
    if len(slow_rows):
        parts.append((slow_rows, _LineEvents(_some_lines(lines, slow_rows), settings)))
    return parts[0][1] if len(parts) == 1 else InterleavedEvents(parts)


def _some_lines(lines: _Lines, rows: np.ndarray) -> _Lines:
    return _Lines(lines.data, lines.starts[rows], lines.ends[rows], None)


def _joined(lines: _Lines) -> bytes:
    """Return the lines as one text, without the lines between them."""
    starts, ends = lines.starts, lines.ends
    gaps = np.flatnonzero(starts[1:] != ends[:-1] + 1)
    firsts = [0, *(gaps + 1).tolist()]
    lasts = [*gaps.tolist(), len(starts) - 1]
    runs = zip(starts[firsts].tolist(), ends[lasts].tolist(), strict=True)
    return b"\n".join([lines.data[start:end] for start, end in runs])


def _awkward_lines(lines: _Lines) -> np.ndarray:
    """Flag the lines that do not begin with { and end with }, are not UTF-8, or are too deep.

    In all others no object contains a line break: nowhere in JSON does } precede {.
    """
    offset, end = int(lines.starts[0]), int(lines.ends[-1])
    buffer = np.frombuffer(lines.data, np.uint8)
    lasts = lines.ends - 1
    lasts = lasts - (buffer[lasts] == ord("\r"))
    awkward: np.ndarray = (buffer[lines.starts] != ord("{")) | (buffer[lasts] != ord("}"))
    block = lines.data[offset:end]
    if not block.isascii():
        try:
            block.decode()
        except UnicodeDecodeError:
            for i in range(len(awkward)):
                awkward[i] |= not _is_utf8(lines.line(i))
    part = buffer[offset:end]
    brackets = (part == ord("{")) | (part == ord("["))
    counts = np.add.reduceat(brackets, lines.starts - offset, dtype=np.int64)
    return awkward | (counts > _MOST_BRACKETS)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


class _Failure(NamedTuple):
    """Why Arrow's reader stopped."""

    row: int  # -1 if it does not say
    name: str | None  # of the object itself, where its type is not that of earlier rows


_STOPPED = re.compile(r"JSON parse error: (.*) in row (\d+)")
_CHANGED = re.compile(r"Column\(/([^/]+)\) changed from .*", re.DOTALL)


def _without_failure(
    lines: _Lines, rows: np.ndarray, failure: _Failure, is_slow: np.ndarray
) -> list[np.ndarray]:
    """Return groups of rows to read instead; flag those that Python has to read."""
    if failure.name is not None:
        name = np.frombuffer(json.dumps(failure.name, ensure_ascii=False).encode(), np.uint8)
        data = np.frombuffer(lines.data, np.uint8)
        kinds = value_kinds(data, lines.starts, lines.ends, name.copy())
        present = np.unique(kinds[kinds > 0])
        if len(present) > 1:
            kinds[kinds == 0] = present[0]  # lines without the name go with the first group
            return [rows[kinds == kind] for kind in present]
    if not 0 <= failure.row < len(rows):  # it does not say, or a line has two objects
        return _halves(rows, is_slow)
    is_slow[rows[failure.row]] = True
    return [rows[failure.row + 1 :], rows[: failure.row]]


def _halves(rows: np.ndarray, is_slow: np.ndarray) -> list[np.ndarray]:
    half = len(rows) // 2
    if half == 0:
        is_slow[rows] = True
        return []
    return [rows[half:], rows[:half]]


def _parse_with_hints(lines: _Lines, hints: dict[str, Any]) -> pa.Table | _Failure:
    """Parse lines; `hints` remembers from block to block which names hold strings."""
    if not hints:
        sample = _parse(_joined(_some_lines(lines, np.arange(len(lines.starts))[:_SAMPLE_LINES])))
        hints.update(_string_hints(sample) if isinstance(sample, pa.Table) else {})
    block = _joined(lines)
    table = _parse(block, hints)
    if isinstance(table, _Failure) and hints:  # perhaps a name holds something else from here on
        hints.clear()
        table = _parse(block)
    if isinstance(table, pa.Table) and any(map(_contains_time, table.schema.types)):
        hints.clear()
        hints.update(_string_hints(table))
        table = _parse(block, hints)
    return table


def _parse(block: bytes, hints: dict[str, Any] | None = None) -> pa.Table | _Failure:
    schema = None
    if hints:
        schema = pa.schema([pa.field(name, _hinted_type(hint)) for name, hint in hints.items()])
    try:
        return arrow_json.read_json(
            pa.BufferReader(block),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="infer"
            ),
        )
    except pa.ArrowException as error:
        stopped = _STOPPED.match(str(error))
        if stopped is None:
            return _Failure(-1, None)
        changed = _CHANGED.fullmatch(stopped[1])
        return _Failure(int(stopped[2]), None if changed is None else changed[1])


class _Suspects(NamedTuple):
    """Lines that the table may not hold exactly; whether the others must be read again."""

    flags: np.ndarray
    again: bool


def _suspects(table: pa.Table, lines: _Lines) -> _Suspects | None:
    """Find the lines that Python has to read; None if any might be among them."""
    n_lines = len(lines.starts)
    if table.num_rows != n_lines or any(map(_contains_time, table.schema.types)):
        return None
    arrays = [chunk for column in table.columns for chunk in column.chunks]
    if not all(map(_has_all_elements, arrays)):
        data = np.frombuffer(lines.data, np.uint8)
        flags = has_null_in_array(data, lines.starts, lines.ends)
        return _Suspects(flags, again=True) if flags.any() else None
    try:
        table.validate(full=True)
    except pa.ArrowInvalid:  # an escaped half of a character
        flags = np.array([b"\\ud" in lines.line(i).lower() for i in range(n_lines)])
        return _Suspects(flags, again=True) if flags.any() and not flags.all() else None
    flags = np.zeros(n_lines, bool)
    for column in table.columns:
        start = 0
        for chunk in column.chunks:
            if not _is_exact(chunk):
                _flag_inexact(chunk, np.arange(start, start + len(chunk)), flags)
            start += len(chunk)
    return _Suspects(flags, again=False)


def _has_all_elements(array: pa.Array) -> bool:
    if pa.types.is_list(array.type):
        n_elements = array.offsets[-1].as_py() - array.offsets[0].as_py()
        return len(array.values) == n_elements and _has_all_elements(array.values)
    if pa.types.is_struct(array.type):
        return all(map(_has_all_elements, array.flatten()))
    return True


def _is_exact(array: pa.Array) -> bool:
    """Whether no double can stand for a larger integer, NaN or Inf."""
    if pa.types.is_list(array.type):
        return _is_exact(array.values)
    if pa.types.is_struct(array.type):
        return all(map(_is_exact, array.flatten()))
    if not pa.types.is_floating(array.type):
        return True
    return bool((np.abs(array.drop_null().to_numpy()) < _EXACT).all())


def _flag_inexact(array: pa.Array, rows: np.ndarray, out_flags: np.ndarray) -> None:
    if pa.types.is_list(array.type):
        _flag_inexact(array.flatten(), np.repeat(rows, list_lengths(array)), out_flags)
    elif pa.types.is_struct(array.type):
        for child in array.flatten():
            _flag_inexact(child, rows, out_flags)
    elif pa.types.is_floating(array.type):
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        inexact = ~(np.abs(array.drop_null().to_numpy()) < _EXACT)
        out_flags[rows[valid][inexact]] = True


def _contains_time(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind):
        return any(_contains_time(kind.field(i).type) for i in range(kind.num_fields))
    return bool(pa.types.is_temporal(kind))


# Hints are nested as the objects are: True is a string, a dict an object, a list of one a list.


def _string_hints(table: pa.Table) -> dict[str, Any]:
    hints = {field.name: _string_hint(field.type) for field in table.schema}
    return {name: hint for name, hint in hints.items() if hint}


def _string_hint(kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        hints = {field.name: _string_hint(field.type) for field in kind}
        return {name: hint for name, hint in hints.items() if hint}
    if pa.types.is_list(kind):
        hint = _string_hint(kind.value_type)
        return [hint] if hint else None
    return bool(pa.types.is_temporal(kind) or pa.types.is_string(kind))


def _hinted_type(hint: Any) -> pa.DataType:
    if isinstance(hint, dict):
        return pa.struct([pa.field(name, _hinted_type(inner)) for name, inner in hint.items()])
    if isinstance(hint, list):
        return pa.list_(_hinted_type(hint[0]))
    return pa.string()
