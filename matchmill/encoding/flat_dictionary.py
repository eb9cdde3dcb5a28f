"""Containers that grow at their end and can be mapped from files: arrays, texts, a dictionary.

    Growable          data[0 … n]; what is behind n is room for more
    FlatDictionary    entry n is data[offsets[n] … offsets[n + 1]], numbered in order of arrival
                      slots: open-addressed hash table of entry numbers, -1 for free; the last
                      item is no slot but the key of the hash

All of them are values: adding something returns another one. The two share their memory, because
the new one has only more in what was room. So whoever has the old one sees nothing of it, and an
addition that is given up needs no undoing: the next one writes to the same place. There is one
writer at a time, who adds to the latest value; readers need no lock.

The key is random, and nobody outside knows it: so nobody can choose texts that share a slot. The
hash is a polynomial in the key modulo a prime. Two texts of n bytes have the same value for at most
n + 1 of 2**29 keys, whatever the texts are.

Slots are the exception. They are shared and written to, and a reader leaves out the numbers that
its texts do not have. If an addition is given up, `without_new` frees its slots.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from matchmill.encoding.texts import Texts
from matchmill.kernels.jit import kernel

__all__ = ["FlatDictionary", "Growable", "TextPool", "are_slots"]

_PRIME = 2**31 - 1
_LEAST_KEY = 2**29  # and less than twice as much, so that no product passes 63 bits


class Growable:
    """A one-dimensional array that grows at its end, as a value."""

    __slots__ = ("data", "n")

    def __init__(self, dtype: Any, initial: np.ndarray | None = None, n: int | None = None) -> None:
        self.data: np.ndarray = np.empty(0, dtype) if initial is None else initial
        self.n = len(self.data) if n is None else n

    @property
    def array(self) -> np.ndarray:
        """The values, without the room."""
        return self.data[: self.n]

    def extended(self, values: Any) -> Growable:
        """Return an array with these values at the end."""
        values = np.asarray(values, self.data.dtype)
        n = self.n + len(values)
        data = self.data
        if n > len(data):
            data = np.empty(max(n, len(data) * 3 // 2, 64), data.dtype)
            data[: self.n] = self.data[: self.n]
        data[self.n : n] = values
        return Growable(data.dtype, data, n)

    def padded(self, n: int, value: int) -> Growable:
        """Return an array of at least n entries."""
        return self.extended(np.full(max(0, n - self.n), value, self.data.dtype))


class TextPool:
    """Texts that are only added; text n is `pool[n]`. A value, as `Growable` is."""

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

    def extended(self, texts: Texts) -> TextPool:
        """Return a pool with these texts at the end."""
        new = TextPool.__new__(TextPool)
        new.data = self.data.extended(texts.data)
        new.offsets = self.offsets.extended(texts.offsets[1:] + self.data.n)
        return new

    @property
    def texts(self) -> Texts:
        """All texts so far."""
        return Texts(self.offsets.array, self.data.array)

    @property
    def n_bytes(self) -> int:
        """The bytes of both arrays, with room to grow."""
        return self.offsets.data.nbytes + self.data.data.nbytes


@kernel
def _hash_bytes(data: np.ndarray, start: int, stop: int, key: int) -> int:
    """Hash bytes; nothing overflows, with or without compilation."""
    factor = np.int64(key)
    h: Any = np.int64(stop - start + 1)
    for k in range(start, stop):
        h = h * factor + np.int64(data[k])
        h = (h & _PRIME) + (h >> 31)
        if h >= _PRIME:
            h -= _PRIME
    h = ((h ^ (h >> 15)) * 0x2C1B3C6D) & _PRIME  # texts that differ little are far apart
    return int(h ^ (h >> 16))


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
    mask, key = len(slots) - 2, slots[-1]
    n_stored = len(stored.offsets) - 1
    for w in range(len(wanted.offsets) - 1):
        start, stop = wanted.offsets[w], wanted.offsets[w + 1]
        slot = _hash_bytes(wanted.data, start, stop, key) & mask
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
    mask, key = len(slots) - 2, slots[-1]
    for n in range(first, n_entries):
        slot = _hash_bytes(stored.data, stored.offsets[n], stored.offsets[n + 1], key) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = n


@kernel
def _free(slots: np.ndarray, stored: Texts, first: int) -> None:
    """Free the slots of the entries from `first` on, which came last.

    The last one goes first: an entry is found by going over the slots of those before it.
    """
    mask, key = len(slots) - 2, slots[-1]
    for n in range(len(stored.offsets) - 2, first - 1, -1):
        slot = _hash_bytes(stored.data, stored.offsets[n], stored.offsets[n + 1], key) & mask
        while slots[slot] != n and slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = -1


def _n_slots(n: int) -> int:
    return 1 << max(6, (2 * n).bit_length())


def are_slots(array: np.ndarray, n: int, *, look: bool) -> bool:
    """Return whether an array can be the slots of a dictionary with so many entries.

    With `look` the numbers in them are looked at, too.
    """
    n_slots = len(array) - 1
    if n_slots < 2 or n_slots & (n_slots - 1) or n_slots <= n:
        return False
    if not _LEAST_KEY <= array[-1] < 2 * _LEAST_KEY:
        return False
    return not look or bool(array[:-1].min() >= -1 and array[:-1].max() < n)


class FlatDictionary:
    """Byte strings numbered in order of arrival."""

    __slots__ = ("pool", "slots")

    def __init__(self, pool: TextPool | None = None, slots: np.ndarray | None = None) -> None:
        self.pool = TextPool() if pool is None else pool
        self.slots: np.ndarray = self._new_slots() if slots is None else slots

    def _new_slots(self) -> np.ndarray:
        slots = np.full(_n_slots(len(self.pool)) + 1, -1, np.int32)
        slots[-1] = _LEAST_KEY + secrets.randbelow(_LEAST_KEY)
        _insert(slots, self.pool.texts, 0, len(self.pool))
        return slots

    def __len__(self) -> int:
        return len(self.pool)

    def lookup(self, texts: Texts) -> np.ndarray:
        """Return the number of each text, or -1."""
        out = np.empty(texts.n_texts, np.int64)
        _lookup(self.slots, self.pool.texts, texts, out)
        return out

    def with_new(self, texts: Texts) -> FlatDictionary:
        """Return a dictionary that has these texts too, which are distinct and new."""
        pool = self.pool.extended(texts)
        if 2 * len(pool) >= len(self.slots):
            return FlatDictionary(pool)
        _insert(self.slots, pool.texts, len(self.pool), len(pool))
        return FlatDictionary(pool, self.slots)

    def without_new(self, later: FlatDictionary) -> None:
        """Free the slots of what `later` has more than this one, because it is given up."""
        if later.slots is self.slots:
            _free(self.slots, later.pool.texts, len(self))

    @property
    def n_bytes(self) -> int:
        """The bytes of all arrays, with room to grow."""
        return self.pool.n_bytes + self.slots.nbytes
