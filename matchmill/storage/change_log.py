"""The log of a saved engine: every acknowledged change since the arrays were written.

    file      header, record, record, …           only ever appended to
    record    mark, length, checksum, number      16 + 4 bytes; numbers count from 0
              payload                             `length` bytes
    payload   flags, count, ids, texts            see `_encoded`; a removal has no texts

A change may be as large as a bulk load, so it may take several records; all but the last one say
that more follows. A change is in the log if all of its records are there, whole.

After a crash the end of the file may be torn: the last record is cut short, or its bytes never
reached the disk. Such an end holds nothing that was acknowledged as safe, and is cut. If whole
records follow a broken one, or a whole one has a wrong number, something else has happened, and
nobody should guess: that is an error.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from matchmill.errors import FolderError
from matchmill.storage.directory import Directory, opened

__all__ = ["HEADER", "Change", "LogEnd", "find_end", "read_changes", "records_of"]

HEADER = b"matchmill log 1\n"
_RECORD = struct.Struct("<4sIIQ")
_CHECKED = struct.Struct("<IQ")  # of the record's head, what its checksum covers
_PAYLOAD = struct.Struct("<BI")
_MARK = b"\xf1mLr"
_BYTES_PER_RECORD = 4 << 20

_REMOVAL, _INTEGER_IDS, _MORE_FOLLOWS = 1, 2, 4


class Change(NamedTuple):
    """Subscriptions that were stored, replacing those with the same ids, or that were removed."""

    ids: Sequence[str | int]
    texts: Sequence[str] | None  # None: removed

    @property
    def n_rows(self) -> int:
        """How many subscriptions it changes."""
        return len(self.ids)


class LogEnd(NamedTuple):
    """Where the last whole change of a log ends."""

    n_bytes: int
    n_records: int
    n_torn_bytes: int  # behind it


# -- writing --------------------------------------------------------------------------------------


def records_of(change: Change, first_number: int) -> Iterator[bytes]:
    """Yield a change as records that can be appended."""
    slices = _slices(change)
    for n, rows in enumerate(slices):
        payload = _encoded(change, rows, _MORE_FOLLOWS if n + 1 < len(slices) else 0)
        number = first_number + n
        crc = zlib.crc32(payload, zlib.crc32(_CHECKED.pack(len(payload), number)))
        yield _RECORD.pack(_MARK, len(payload), crc, number) + payload


def _slices(change: Change) -> list[slice]:
    """Divide the rows among records."""
    if change.n_rows == 1:
        return [slice(0, 1)]
    starts, n_bytes = [0], 0
    for row in range(change.n_rows):
        if n_bytes > _BYTES_PER_RECORD:
            starts.append(row)
            n_bytes = 0
        n_bytes += 32 + (4 * len(change.texts[row]) if change.texts is not None else 0)
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], change.n_rows], strict=True)]


def _encoded(change: Change, rows: slice, flags: int) -> bytes:
    ids = change.ids[rows]
    if change.texts is None:
        flags |= _REMOVAL
    if isinstance(ids[0], int):
        flags |= _INTEGER_IDS
        parts = [struct.pack(f"<{len(ids)}q", *ids)]
    else:
        parts = _packed_texts(ids)  # type: ignore[arg-type]
    if change.texts is not None:
        parts += _packed_texts(change.texts[rows])
    return b"".join([_PAYLOAD.pack(flags, len(ids)), *parts])


def _packed_texts(texts: Sequence[str]) -> list[bytes]:
    encoded = [text.encode() for text in texts]
    return [struct.pack(f"<{len(texts)}I", *map(len, encoded)), *encoded]


# -- reading --------------------------------------------------------------------------------------


def find_end(path: Path, folder: Directory | None = None) -> LogEnd:
    """Check every record; raise FolderError if one is broken and whole ones follow it.

    With an open folder, the log is that of its name there, whatever the path leads to by now.
    """
    with _mapped(path, folder) as data:
        return _find_end(path, data)


def _find_end(path: Path, data: mmap.mmap) -> LogEnd:
    if data[: len(HEADER)] != HEADER:
        raise FolderError(
            f"{path} is damaged: it does not begin as a log does; restore the folder from a copy"
        )
    at = end = len(HEADER)
    number = n_whole = 0
    while (length := _length_at(data, at, number)) >= 0:
        more_follows = data[at + _RECORD.size] & _MORE_FOLLOWS
        at += _RECORD.size + length
        number += 1
        if not more_follows:
            end, n_whole = at, number
    if at < len(data):
        if _length_at(data, at, None) >= 0:
            raise FolderError(
                f"{path} is damaged: what is at byte {at} is whole, but is not record {number}, as"
                " it has to be; restore the folder from a copy, or cut the log there, which loses"
                f" what follows: truncate -s {end} {path}"
            )
        n_after = _count_whole_after(data, at + 1)
        if n_after:
            raise FolderError(
                f"{path} is damaged: record {number}, at byte {at}, is broken, and {n_after}"
                " whole ones follow it; restore the folder from a copy, or cut the log there,"
                f" which loses what follows: truncate -s {end} {path}"
            )
    return LogEnd(end, n_whole, len(data) - end)


def read_changes(path: Path, end: LogEnd, folder: Directory | None = None) -> Iterator[Change]:
    """Yield the changes of a log that `find_end` has checked, in parts as they were written."""
    with _mapped(path, folder) as data:
        at = len(HEADER)
        for number in range(end.n_records):
            length = _length_at(data, at, number)
            start = at + _RECORD.size
            at = start + length
            try:
                yield _decoded(data[start:at])
            except (struct.error, ValueError) as error:
                raise FolderError(
                    f"{path} is damaged: record {number}, at byte {start - _RECORD.size}, is whole"
                    f" but makes no sense ({error}); restore the folder from a copy"
                ) from error


def _mapped(path: Path, folder: Directory | None) -> mmap.mmap:
    try:
        with (
            opened(path.parent if folder is None else folder) as place,
            open(place.open(path.name), "rb") as stream,
        ):
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise FolderError(
            f"{path} is missing, and with it all changes since the last save; restore it"
        ) from None
    except ValueError:  # an empty file cannot be mapped
        raise FolderError(
            f"{path} is damaged: it is empty; restore the folder from a copy"
        ) from None


def _length_at(data: mmap.mmap, at: int, number: int | None) -> int:
    """Return the length of the payload of the whole record at this place, or -1."""
    if at + _RECORD.size + _PAYLOAD.size > len(data):
        return -1
    mark, length, crc, found = _RECORD.unpack_from(data, at)
    start = at + _RECORD.size
    if mark != _MARK or start + length > len(data) or number not in (None, found):
        return -1
    with memoryview(data) as view:
        is_whole = crc == zlib.crc32(
            view[start : start + length], zlib.crc32(_CHECKED.pack(length, found))
        )
    return length if is_whole else -1


def _count_whole_after(data: mmap.mmap, at: int) -> int:
    n_whole = 0
    while (at := data.find(_MARK, at)) >= 0:
        length = _length_at(data, at, None)
        n_whole += length >= 0
        at += _RECORD.size + length if length >= 0 else 1
    return n_whole


def _decoded(payload: bytes) -> Change:
    flags, count = _PAYLOAD.unpack_from(payload)
    at = _PAYLOAD.size
    ids: Sequence[str | int]
    if flags & _INTEGER_IDS:
        ids = struct.unpack_from(f"<{count}q", payload, at)
        at += 8 * count
    else:
        ids, at = _unpacked_texts(payload, at, count)
    if flags & _REMOVAL:
        return Change(ids, None)
    return Change(ids, _unpacked_texts(payload, at, count)[0])


def _unpacked_texts(payload: bytes, at: int, count: int) -> tuple[list[str], int]:
    lengths = struct.unpack_from(f"<{count}I", payload, at)
    ends = list(accumulate(lengths, initial=at + 4 * count))
    texts = [payload[a:b].decode() for a, b in pairwise(ends)]
    return texts, ends[-1]
