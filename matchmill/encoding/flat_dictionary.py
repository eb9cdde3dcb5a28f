"""Containers that grow at their end and can be mapped from files: arrays, texts, a dictionary.

    FlatDictionary    entry n is data[offsets[n] … offsets[n + 1]], numbered in order of arrival
                      slots: open-addressed hash table of entry numbers, -1 for free

All are append-only: a reader keeps the array that it holds, and nothing in it changes. There is one
writer at a time; readers need no lock.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchmill.encoding.texts import Texts
from matchmill.kernels.jit import kernel

__all__ = ["FlatDictionary", "Growable", "TextPool"]


class Growable:
    """A one-dimensional array that grows at its end."""

    __slots__ = ("data", "n")

    def __init__(self, dtype: Any, initial: np.ndarray | None = None) -> None:
        self.data: np.ndarray = np.empty(0, dtype) if initial is None else initial
        self.n = len(self.data)

    @property
    def array(self) -> np.ndarray:
        """The values written so far."""
        return self.data[: self.n]

    def extend(self, values: Any) -> None:
        """Add values at the end."""
        values = np.asarray(values, self.data.dtype)
        self.reserve(len(values))
        self.data[self.n : self.n + len(values)] = values
        self.n += len(values)

    def reserve(self, n_more: int) -> None:
        """Make room, so that adding this many values cannot fail."""
        n = self.n + n_more
        if n > len(self.data):
            wider = np.empty(max(n, len(self.data) * 3 // 2, 64), self.data.dtype)
            wider[: self.n] = self.data[: self.n]
            self.data = wider

    def pad(self, n: int, value: int) -> None:
        """Grow to n entries."""
        if n > self.n:
            self.extend(np.full(n - self.n, value, self.data.dtype))


class TextPool:
    """Texts that are only added; text n is `pool[n]`."""

    __slots__ = ("data", "offsets")

    def __init__(self, texts: Texts | None = None) -> None:
        self.offsets = Growable(np.int64, np.zeros(1, np.int64) if texts is None else texts.offsets)
        self.data = Growable(np.uint8, None if texts is None else texts.data)

    def __len__(self) -> int:
        return self.offsets.n - 1

    def __getitem__(self, n: int) -> str:
        return self.raw(n).decode()

    def raw(self, n: int) -> bytes:
        """Return the bytes of text n."""
        return self.data.data[self.offsets.data[n] : self.offsets.data[n + 1]].tobytes()

    def reserve(self, texts: Texts) -> None:
        """Make room, so that adding these texts cannot fail."""
        self.data.reserve(len(texts.data))
        self.offsets.reserve(texts.n_texts)

    def extend(self, texts: Texts) -> None:
        """Add texts at the end."""
        start = self.data.n
        self.data.extend(texts.data)
        self.offsets.extend(texts.offsets[1:] + start)

    @property
    def texts(self) -> Texts:
        """All texts so far."""
        return Texts(self.offsets.array, self.data.array)

    @property
    def n_bytes(self) -> int:
        """The bytes of both arrays, with room to grow."""
        return self.offsets.data.nbytes + self.data.data.nbytes


@kernel
def _hash_bytes(data: np.ndarray, start: int, stop: int) -> int:
    """Hash bytes, 31 bits per step, so that nothing overflows with or without compilation."""
    h: Any = 0x12345 + stop - start
    for k in range(start, stop):
        h = (h ^ np.int64(data[k])) * 0x01000193
        h = (h ^ (h >> 29)) & 0x7FFFFFFF
    return int(h)


@kernel
def _same_bytes(
    a: np.ndarray, a_start: int, a_stop: int, b: np.ndarray, b_start: int, b_stop: int
) -> bool:
    if a_stop - a_start != b_stop - b_start:
        return False
    for k in range(a_stop - a_start):
        if a[a_start + k] != b[b_start + k]:
            return False
    return True


@kernel
def _lookup(slots: np.ndarray, stored: Texts, wanted: Texts, out: np.ndarray) -> None:
    mask = len(slots) - 1
    n_stored = len(stored.offsets) - 1
    for w in range(len(wanted.offsets) - 1):
        start, stop = wanted.offsets[w], wanted.offsets[w + 1]
        slot = _hash_bytes(wanted.data, start, stop) & mask
        out[w] = -1
        while slots[slot] >= 0:
            n = slots[slot]
            # A writer may have put entries into the slots that this reader's texts do not have.
            if n < n_stored and _same_bytes(
                stored.data, stored.offsets[n], stored.offsets[n + 1], wanted.data, start, stop
            ):
                out[w] = n
                break
            slot = (slot + 1) & mask


@kernel
def _insert(slots: np.ndarray, stored: Texts, first: int, n_entries: int) -> None:
    """Put entries, known to be distinct, into the slots."""
    mask = len(slots) - 1
    for n in range(first, n_entries):
        slot = _hash_bytes(stored.data, stored.offsets[n], stored.offsets[n + 1]) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = n


def _n_slots(n: int) -> int:
    return 1 << max(6, (2 * n).bit_length())


class FlatDictionary:
    """Byte strings numbered in order of arrival."""

    __slots__ = ("_slots", "pool")

    def __init__(self, pool: TextPool | None = None, slots: np.ndarray | None = None) -> None:
        self.pool = TextPool() if pool is None else pool
        self._slots = np.full(_n_slots(0), -1, np.int32) if slots is None else slots
        if slots is None and len(self.pool):
            self._grow(len(self.pool))

    def __len__(self) -> int:
        return len(self.pool)

    @property
    def slots(self) -> np.ndarray:
        """The hash table."""
        return self._slots

    def lookup(self, texts: Texts) -> np.ndarray:
        """Return the number of each text, or -1."""
        out = np.empty(texts.n_texts, np.int64)
        _lookup(self._slots, self.pool.texts, texts, out)
        return out

    def add_new(self, texts: Texts) -> np.ndarray:
        """Add texts that are distinct and new; return their numbers."""
        first = len(self.pool)
        self.pool.extend(texts)
        if 2 * len(self.pool) > len(self._slots):
            self._grow(len(self.pool))
        else:
            _insert(self._slots, self.pool.texts, first, len(self.pool))
        return np.arange(first, len(self.pool))

    def _grow(self, n: int) -> None:
        slots = np.full(_n_slots(n), -1, np.int32)
        _insert(slots, self.pool.texts, 0, n)
        self._slots = slots

    @property
    def n_bytes(self) -> int:
        """The bytes of all arrays, with room to grow."""
        return self.pool.n_bytes + self._slots.nbytes
