"""The texts of a chunk that are kept: those of plain rows from its bytes, others as they are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from matchmill.encoding.texts import Texts, strings_to_texts
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


def kept_texts(texts: Texts, rows: np.ndarray, others: Mapping[int, str]) -> Texts:
    """Return the texts of some rows without white space around them; `others` has its own."""
    starts, stops = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    _trim(texts, rows, starts, stops)
    first, last = int(texts.offsets[0]), int(texts.offsets[-1])
    if not others and int((stops - starts).sum()) == last - first:
        return Texts(texts.offsets - first, texts.data[first:last])
    other = strings_to_texts([others[row] for row in sorted(others)])
    lengths = stops - starts
    places = np.searchsorted(rows, sorted(others))
    lengths[places] = np.diff(other.offsets)
    offsets = offsets_of(lengths)
    data = np.empty(int(offsets[-1]), np.uint8)
    is_own = np.ones(len(rows), bool)
    is_own[places] = False
    _copy(texts.data, starts[is_own], stops[is_own], offsets[:-1][is_own], data)
    _copy(other.data, other.offsets[:-1], other.offsets[1:], offsets[places], data)
    return Texts(offsets, data)
