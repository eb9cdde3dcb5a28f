"""Texts as flat UTF-8, as Arrow keeps them and as kernels read them.

text i     data[offsets[i] … offsets[i + 1]]
head       the first eight bytes of a text as one big-endian integer, padded with zeros:
           heads in order are texts in order, except that equal heads say nothing
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from matchmill.kernels.jit import kernel

__all__ = [
    "Texts",
    "arrow_of_texts",
    "gather_texts",
    "head_of",
    "joined_texts",
    "one_text",
    "strings_to_texts",
    "text_heads",
    "texts_of",
    "texts_to_strings",
    "writable",
]

_FEW_TEXTS = 32  # Arrow takes ten times as long for a single one


class Texts(NamedTuple):
    """Strings as flat UTF-8."""

    offsets: np.ndarray
    data: np.ndarray

    @property
    def n_texts(self) -> int:
        """The number of texts."""
        return len(self.offsets) - 1


def texts_of(values: pa.LargeStringArray) -> Texts:
    """Return the texts of an Arrow array without nulls; the data are not copied."""
    n = len(values)
    _, offsets_buffer, data_buffer = values.buffers()
    if n == 0 or offsets_buffer is None:
        return Texts(np.zeros(1, np.int64), np.empty(0, np.uint8))
    offsets = _view(offsets_buffer, np.dtype(np.int64))[values.offset : values.offset + n + 1]
    if data_buffer is None or data_buffer.size == 0:
        return Texts(offsets - offsets[0], np.empty(0, np.uint8))
    data = _view(data_buffer, np.dtype(np.uint8))[offsets[0] : offsets[-1]]
    return Texts(offsets - offsets[0], data)


def arrow_of_texts(texts: Texts, kind: pa.DataType) -> pa.Array:
    """Return texts as an Arrow array of a large type; the data are not copied."""
    buffers = [None, pa.py_buffer(texts.offsets), pa.py_buffer(texts.data)]
    return pa.Array.from_buffers(kind, texts.n_texts, buffers)


class _ArrayInterface:
    """Lets NumPy see an Arrow buffer as writable: kernels then compile once, not twice."""

    def __init__(self, buffer: pa.Buffer, dtype: np.dtype[Any]) -> None:
        self.owner = buffer
        self.__array_interface__ = {
            "shape": (buffer.size // dtype.itemsize,),
            "typestr": dtype.str,
            "data": (buffer.address, False),
            "version": 3,
        }


def _view(buffer: pa.Buffer, dtype: np.dtype[Any]) -> np.ndarray:
    return np.asarray(_ArrayInterface(buffer, dtype))


def writable(array: np.ndarray) -> np.ndarray:
    """Return the array, or a copy if it is read-only: kernels would be compiled again for it."""
    return array if array.flags.writeable else array.copy()


def strings_to_texts(values: Sequence[str]) -> Texts:
    """Return Python strings as texts."""
    if len(values) <= _FEW_TEXTS:
        encoded = [value.encode() for value in values]
        offsets = np.array([0, *accumulate(map(len, encoded))], np.int64)
        return Texts(offsets, np.frombuffer(bytearray().join(encoded), np.uint8))
    return texts_of(pa.array(values, pa.large_string()))


def joined_texts(parts: Sequence[Texts]) -> Texts:
    """Return the texts of several objects, one after the other."""
    if len(parts) == 1:
        return parts[0]
    ends = [0, *accumulate(int(part.offsets[-1]) for part in parts)]
    offsets = [part.offsets[1:] + end for part, end in zip(parts, ends, strict=False)]
    return Texts(
        np.concatenate([np.zeros(1, np.int64), *offsets]),
        np.concatenate([part.data for part in parts]),
    )


def texts_to_strings(texts: Texts) -> list[str]:
    """Return texts as Python strings."""
    data, ends = texts.data.tobytes(), texts.offsets.tolist()
    return [data[a:b].decode() for a, b in pairwise(ends)]


def one_text(text: str) -> Texts:
    """Return one Python string as texts, quickly."""
    data = bytearray(text, "utf-8")
    return Texts(np.array([0, len(data)], np.int64), np.frombuffer(data, np.uint8))


@kernel
def head_of(data: np.ndarray, start: int, stop: int) -> Any:
    """Return the head of one text."""
    head = np.uint64(0)
    for j in range(8):
        head = head << np.uint64(8)
        if start + j < stop:
            head |= np.uint64(data[start + j])
    return head


@kernel
def text_heads(offsets: np.ndarray, data: np.ndarray) -> np.ndarray:
    """Return the head of each text."""
    n = len(offsets) - 1
    heads = np.zeros(n, np.uint64)
    for i in range(n):
        heads[i] = head_of(data, offsets[i], offsets[i + 1])
    return heads


@kernel
def gather_texts(
    offsets: np.ndarray, data: np.ndarray, order: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Copy some texts, in the order given; return their offsets and data."""
    out_offsets = np.zeros(len(order) + 1, np.int64)
    for k in range(len(order)):
        i = order[k]
        out_offsets[k + 1] = out_offsets[k] + offsets[i + 1] - offsets[i]
    out_data = np.empty(out_offsets[-1], np.uint8)
    for k in range(len(order)):
        i = order[k]
        start = out_offsets[k]
        for j in range(offsets[i + 1] - offsets[i]):
            out_data[start + j] = data[offsets[i] + j]
    return out_offsets, out_data
