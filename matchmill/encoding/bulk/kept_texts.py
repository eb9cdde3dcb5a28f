"""The texts of a chunk that are kept: those of plain rows from its bytes, others as they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matchmill.encoding.texts import Texts
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.jit import kernel

__all__ = ["kept_texts"]


@kernel
def _is_space(byte: int) -> bool:
    return byte == 32 or byte == 10 or byte == 13 or byte == 9


@kernel
def _trim(texts: Texts, rows: np.ndarray, out_starts: np.ndarray, out_stops: np.ndarray) -> None:
    data = texts.data
    for k in range(len(rows)):
        start, stop = texts.offsets[rows[k]], texts.offsets[rows[k] + 1]
        while start < stop and _is_space(data[start]):
            start += 1
        while start < stop and _is_space(data[stop - 1]):
            stop -= 1
        out_starts[k], out_stops[k] = start, stop


@kernel
def _copy(
    data: np.ndarray, starts: np.ndarray, stops: np.ndarray, at: np.ndarray, out_data: np.ndarray
) -> None:
    for k in range(len(starts)):
        for j in range(stops[k] - starts[k]):
            out_data[at[k] + j] = data[starts[k] + j]


def kept_texts(texts: Texts, rows: np.ndarray, parts: Sequence[tuple[np.ndarray, Texts]]) -> Texts:
    """Return the texts of some rows without white space around them.

    Each part has some of these rows, ascending, and texts for them that are kept instead.
    """
    starts, stops = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    _trim(texts, rows, starts, stops)
    first, last = int(texts.offsets[0]), int(texts.offsets[-1])
    parts = [part for part in parts if len(part[0])]
    if not parts and int((stops - starts).sum()) == last - first:
        return Texts(texts.offsets - first, texts.data[first:last])
    lengths = stops - starts
    is_own = np.ones(len(rows), bool)
    places = [np.searchsorted(rows, some) for some, _ in parts]
    for at, (_, other) in zip(places, parts, strict=True):
        lengths[at] = np.diff(other.offsets)
        is_own[at] = False
    offsets = offsets_of(lengths)
    data = np.empty(int(offsets[-1]), np.uint8)
    _copy(texts.data, starts[is_own], stops[is_own], offsets[:-1][is_own], data)
    for at, (_, other) in zip(places, parts, strict=True):
        _copy(other.data, other.offsets[:-1], other.offsets[1:], offsets[at], data)
    return Texts(offsets, data)
