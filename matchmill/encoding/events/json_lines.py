"""JSON lines as events: one object per line, blank lines between them allowed.

    lines ──► blocks of about a megabyte ──┬─► Arrow's JSON reader ─► TableEvents   (fast)
                                           └─► `strict_json`, line by line          (always right)

Arrow's reader is several times faster, but reads some texts differently: it accepts two objects on
one line and `Inf`, makes times out of strings and doubles out of integers beside doubles, knows one
type per name, loses nulls at the beginning of lists, and crashes on deep nesting. So it reads a
block only if the result cannot differ, which is checked before and after; otherwise Python reads
the block.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from matchmill.encoding.events.arrow import TableEvents, table_sources
from matchmill.encoding.events.columns import ChainedEvents, EventColumns, Events, Wanted
from matchmill.encoding.events.dicts import DictEvents
from matchmill.errors import EventError, InputError
from matchmill.language.flatten import flatten_record
from matchmill.language.strict_json import JsonDepthError, JsonError, decode_json
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
        table = _read_fast(block, hints) if fast else None
        by_line = _LineEvents(block, settings)
        parts.append(by_line if table is None else _LineTableEvents(by_line, table, settings))
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
            value = decode_json(self._lines.line(i).strip(_WHITESPACE), allow_nan=True)
        except JsonDepthError:
            return EventError(
                f"an event may be nested {self._settings.max_event_depth} deep"
                " (setting max_event_depth)"
            )
        except JsonError as error:
            return EventError(str(error))
        if type(value) is dict:
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


def _read_fast(lines: _Lines, hints: dict[str, Any]) -> pa.Table | None:
    """Return the lines as a table, or None if only Python can read them.

    `hints` remembers from block to block which names hold strings.
    """
    if not _looks_like_objects(lines):
        return None
    if not hints:
        sample = _parse(_joined(lines, min(_SAMPLE_LINES, len(lines.starts))), {})
        hints.update(_string_hints(sample) if sample is not None else {})
    block = _joined(lines, len(lines.starts))
    table = _parse(block, hints)
    if table is None and hints:  # perhaps a name holds something else from here on
        hints.clear()
        table = _parse(block, hints)
    if table is not None and any(_contains_time(kind) for kind in table.schema.types):
        hints.clear()
        hints.update(_string_hints(table))
        table = _parse(block, hints)
    return table if table is not None and _is_faithful(table, len(lines.starts)) else None


def _joined(lines: _Lines, n_lines: int) -> bytes:
    return lines.data[int(lines.starts[0]) : int(lines.ends[n_lines - 1])]


def _looks_like_objects(lines: _Lines) -> bool:
    """Whether each line begins with { and ends with }, is UTF-8 and not too deep.

    Then no object contains a line break: nowhere in JSON does } precede {.
    """
    offset, end = int(lines.starts[0]), int(lines.ends[-1])
    buffer = np.frombuffer(lines.data, np.uint8)
    lasts = lines.ends - 1
    lasts = lasts - (buffer[lasts] == ord("\r"))
    if not (buffer[lines.starts] == ord("{")).all() or not (buffer[lasts] == ord("}")).all():
        return False
    block = lines.data[offset:end]
    if not block.isascii():
        try:
            block.decode()
        except UnicodeDecodeError:
            return False
    part = buffer[offset:end]
    brackets = (part == ord("{")) | (part == ord("["))
    counts = np.add.reduceat(brackets, lines.starts - offset, dtype=np.int64)
    return bool(counts.max() <= _MOST_BRACKETS)


def _parse(block: bytes, hints: dict[str, Any]) -> pa.Table | None:
    schema = pa.schema([pa.field(name, _hinted_type(hint)) for name, hint in hints.items()])
    try:
        return arrow_json.read_json(
            pa.BufferReader(block),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=schema if hints else None, unexpected_field_behavior="infer"
            ),
        )
    except pa.ArrowException:
        return None


def _is_faithful(table: pa.Table, n_lines: int) -> bool:
    """Whether the table holds what the lines hold."""
    if table.num_rows != n_lines or any(_contains_time(kind) for kind in table.schema.types):
        return False
    if any(_lists_objects(kind) for kind in table.schema.types):
        return False  # in a list, an object without a name is not one where it is null
    if not all(_is_exact(chunk) for column in table.columns for chunk in column.chunks):
        return False
    try:
        table.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _is_exact(array: pa.Array) -> bool:
    """Whether no element is lost, and no double can stand for a larger integer, NaN or Inf."""
    if pa.types.is_list(array.type):
        n_elements = array.offsets[-1].as_py() - array.offsets[0].as_py()
        return len(array.values) == n_elements and _is_exact(array.values)
    if pa.types.is_struct(array.type):
        return all(_is_exact(child) for child in array.flatten())
    if not pa.types.is_floating(array.type):
        return True
    return bool((np.abs(array.drop_null().to_numpy()) < _EXACT).all())


def _contains_time(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind):
        return any(_contains_time(kind.field(i).type) for i in range(kind.num_fields))
    return bool(pa.types.is_temporal(kind))


def _lists_objects(kind: pa.DataType, in_list: bool = False) -> bool:
    if pa.types.is_struct(kind):
        return in_list or any(_lists_objects(field.type) for field in kind)
    return pa.types.is_list(kind) and _lists_objects(kind.value_type, True)


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
