"""Arrays as rows of bytes: how tasks hand them to later tasks and to the driver.

    shard   kind        name        header      content
    3       table       lows        <i8 [9]     the first bytes
    3       table       lows                    the bytes after them
    3       summary     summary     json        what the shard reports

A row has at most a few megabytes, and a batch has one row, so that no process holds more than that.
Rows of one array follow each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["SCHEMA", "Gatherer", "array_rows", "byte_rows", "json_row"]

SCHEMA = "shard int, kind string, name string, header string, content binary"
_ARROW = pa.schema(
    [
        ("shard", pa.int32()),
        ("kind", pa.string()),
        ("name", pa.string()),
        ("header", pa.string()),
        ("content", pa.binary()),
    ]
)
_CHUNK = 4 << 20


def _row(shard: int, kind: str, name: str, header: str, content: Any) -> pa.RecordBatch:
    values = ([shard], [kind], [name], [header], [content])
    arrays = [pa.array(v, f.type) for v, f in zip(values, _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def json_row(shard: int, kind: str, value: Mapping[str, Any]) -> pa.RecordBatch:
    """Make one row with a document."""
    return _row(shard, kind, kind, "json", json.dumps(value).encode())


def byte_rows(
    shard: int, kind: str, name: str, header: str, content: memoryview
) -> Iterator[pa.RecordBatch]:
    """Make rows with the bytes of one file or array; at least one."""
    for start in range(0, max(1, len(content)), _CHUNK):
        chunk = bytes(content[start : start + _CHUNK])
        yield _row(shard, kind, name, header if start == 0 else "", chunk)


def array_rows(shard: int, kind: str, arrays: Mapping[str, np.ndarray]) -> Iterator[pa.RecordBatch]:
    """Make the rows of some arrays."""
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        header = f"{array.dtype.str} {json.dumps(array.shape)}"
        content = array.reshape(-1).view(np.uint8).data
        yield from byte_rows(shard, kind, name, header, content)


class Gatherer:
    """Put the arrays of one shard together again, and its documents."""

    def __init__(self) -> None:
        self.arrays: dict[str, dict[str, np.ndarray]] = {}
        self.documents: dict[str, Any] = {}
        self._bytes = np.empty(0, np.uint8)
        self._n_filled = 0

    def add(self, kind: str, name: str, header: str, content: bytes) -> None:
        """Take the next row."""
        if header == "json":
            self.documents[kind] = json.loads(content)
            return
        if header:
            dtype, _, shape = header.partition(" ")
            array = np.empty(json.loads(shape), np.dtype(dtype))
            self.arrays.setdefault(kind, {})[name] = array
            self._bytes, self._n_filled = array.reshape(-1).view(np.uint8), 0
        stop = self._n_filled + len(content)
        self._bytes[self._n_filled : stop] = np.frombuffer(content, np.uint8)
        self._n_filled = stop
