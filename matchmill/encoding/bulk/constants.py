"""Distinct names, strings and numbers of a load: each gets a slot when it first occurs.

    TextTable      slot   key, bytes as they stand in the text (quotes inside are doubled)
    NumberTable    slot   key, whole, part

A key is what a constant is compared within: 0 for names; for a constant, its attribute and type.
Slots are found by hashes, polynomials modulo 2**31 - 1 of a random base. Who does not know the base
cannot write texts that collide. Numbers that hardly ever occur twice are appended without a look
(`NumberTable.is_worth_it`): what sorts them finds the equal ones.

    slots          open addressing: number of an entry, or -1
    hashes[e]      of entry e
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from matchmill.encoding.texts import Texts
from matchmill.kernels.jit import int64, kernel

__all__ = ["LEAST_BASE", "MOST_BASE", "NumberTable", "TextTable", "number_hash", "text_hash"]

_PRIME = (1 << 31) - 1
LEAST_BASE, MOST_BASE = 1 << 16, _PRIME  # of hashes; they are drawn between these
_TRIED = 1 << 16  # numbers after which it is seen whether old ones come again
_FEW = 1 << 10


@kernel
def _step(h: int, number: int, base: int) -> int:
    """Append a number below 2**31 to a hash."""
    h = h * base + number
    h = (h & _PRIME) + (h >> 31)
    h = (h & _PRIME) + (h >> 31)
    return h if h < _PRIME else h - _PRIME


@kernel
def text_hash(data: np.ndarray, start: int, stop: int, last: int, key: int, base: int) -> int:
    """Hash a key and a text, three bytes per step; `last` is its last byte."""
    h = _step(int64(1), key, base)
    h = _step(h, stop - start, base)
    at = start
    while at + 3 < stop:
        word = int64(data[at]) << 16 | int64(data[at + 1]) << 8 | int64(data[at + 2])
        h = _step(h, word, base)
        at += 3
    while at + 1 < stop:
        h = _step(h, int64(data[at]), base)
        at += 1
    return _step(h, last, base)


@kernel
def number_hash(key: int, whole: int, bits: int, base: int) -> int:
    """Hash a key and a number."""
    h = _step(_step(int64(1), key, base), whole & _PRIME, base)
    if whole >> 31:
        h = _step(_step(h, (whole >> 31) & _PRIME, base), (whole >> 62) & 3, base)
    if bits:
        h = _step(_step(h, bits & _PRIME, base), (bits >> 31) & _PRIME, base)
        h = _step(h, (bits >> 62) & 3, base)
    return h


@kernel
def _enter_texts(
    data: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    keys: np.ndarray,
    base: int,
    slots: np.ndarray,
    hashes: np.ndarray,
    known_keys: np.ndarray,
    offsets: np.ndarray,
    pool: np.ndarray,
    n_known: int,
    out_entries: np.ndarray,
) -> int:
    """Find or add texts; a negative stop adds one to the last byte. Return how many are known."""
    mask = len(slots) - 1
    for k in range(len(starts)):
        start, stop, key = starts[k], abs(stops[k]), int64(keys[k])
        length = stop - start
        last = int64(0)
        if length > 0:
            last = int64(data[stop - 1]) + int64(stops[k] < 0)
        h = text_hash(data, start, stop, last, key, base)
        slot = h & mask
        while True:
            entry = int64(slots[slot])
            if entry < 0:
                slots[slot] = n_known
                hashes[n_known], known_keys[n_known] = h, key
                at = offsets[n_known]
                for j in range(length):
                    pool[at + j] = data[start + j]
                if length > 0:
                    pool[at + length - 1] = last
                offsets[n_known + 1] = at + length
                entry = n_known
                n_known += 1
                break
            if hashes[entry] == h and known_keys[entry] == key:
                at = offsets[entry]
                if offsets[entry + 1] - at == length:
                    j = int64(0)
                    while j < length - 1 and pool[at + j] == data[start + j]:
                        j += 1
                    if length == 0 or (j == length - 1 and int64(pool[at + j]) == last):
                        break
            slot = (slot + 1) & mask
        out_entries[k] = entry
    return n_known


@kernel
def _enter_numbers(
    whole: np.ndarray,
    bits: np.ndarray,
    keys: np.ndarray,
    base: int,
    slots: np.ndarray,
    hashes: np.ndarray,
    known_whole: np.ndarray,
    known_bits: np.ndarray,
    known_keys: np.ndarray,
    n_known: int,
    out_entries: np.ndarray,
) -> int:
    """Find or add numbers; return how many are known."""
    mask = len(slots) - 1
    for k in range(len(whole)):
        key = int64(keys[k])
        h = number_hash(key, whole[k], bits[k], base)
        slot = h & mask
        while True:
            entry = int64(slots[slot])
            if entry < 0:
                slots[slot] = n_known
                hashes[n_known], known_keys[n_known] = h, key
                known_whole[n_known], known_bits[n_known] = whole[k], bits[k]
                entry = n_known
                n_known += 1
                break
            if (
                known_whole[entry] == whole[k]
                and known_bits[entry] == bits[k]
                and known_keys[entry] == key
            ):
                break
            slot = (slot + 1) & mask
        out_entries[k] = entry
    return n_known


@kernel
def _put_in_slots(hashes: np.ndarray, n_known: int, out_slots: np.ndarray) -> None:
    mask = len(out_slots) - 1
    for entry in range(n_known):
        slot = hashes[entry] & mask
        while out_slots[slot] >= 0:
            slot = (slot + 1) & mask
        out_slots[slot] = entry


def _grown(array: np.ndarray, n: int) -> np.ndarray:
    """Return an array with room for n entries, which begins as the old one does."""
    if n <= len(array):
        return array
    new = np.empty(max(n, len(array) * 3 // 2, _FEW), array.dtype)
    new[: len(array)] = array
    return new


class _Table:
    """What both tables have: slots that grow."""

    def __init__(self) -> None:
        self.n = 0
        self._base = LEAST_BASE + secrets.randbelow(MOST_BASE - LEAST_BASE)
        self._slots: np.ndarray = np.full(_FEW, -1, np.int32)
        self._hashes: np.ndarray = np.empty(0, np.int32)
        self._keys: np.ndarray = np.empty(0, np.int32)

    def _make_room(self, n_more: int) -> None:
        n = self.n + n_more
        self._hashes, self._keys = _grown(self._hashes, n), _grown(self._keys, n)
        if 2 * n > len(self._slots):
            self._slots = np.full(1 << (2 * n).bit_length(), -1, np.int32)
            _put_in_slots(self._hashes, self.n, self._slots)

    @property
    def keys(self) -> np.ndarray:
        """The key of each slot."""
        return self._keys[: self.n]


class TextTable(_Table):
    """Distinct texts, each with a key."""

    def __init__(self) -> None:
        super().__init__()
        self._offsets = np.zeros(1, np.int64)
        self._pool = np.empty(0, np.uint8)

    def enter(
        self, data: np.ndarray, starts: np.ndarray, stops: np.ndarray, keys: np.ndarray
    ) -> np.ndarray:
        """Return the slot of each text; a negative stop adds one to its last byte."""
        self._make_room(len(starts))
        self._offsets = _grown(self._offsets, self.n + len(starts) + 1)
        n_bytes = int((np.abs(stops) - starts).sum())
        self._pool = _grown(self._pool, int(self._offsets[self.n]) + n_bytes)
        out = np.empty(len(starts), np.int32)
        self.n = _enter_texts(
            data,
            starts,
            stops,
            keys,
            self._base,
            self._slots,
            self._hashes,
            self._keys,
            self._offsets,
            self._pool,
            self.n,
            out,
        )
        return out

    @property
    def texts(self) -> Texts:
        """The text of each slot, as it stood there."""
        return Texts(self._offsets[: self.n + 1], self._pool[: self._offsets[self.n]])


class NumberTable(_Table):
    """Distinct numbers, each with a key; or, if they hardly ever repeat, all that came."""

    def __init__(self) -> None:
        super().__init__()
        self.is_worth_it = True
        self._whole = np.empty(0, np.int64)
        self._bits = np.empty(0, np.int64)
        self._n_seen = 0

    def enter(self, whole: np.ndarray, part: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Return the slot of each number."""
        n = self.n + len(whole)
        bits: Any = part.view(np.int64)
        self._whole, self._bits = _grown(self._whole, n), _grown(self._bits, n)
        if not self.is_worth_it:
            self._keys = _grown(self._keys, n)
            self._whole[self.n : n], self._bits[self.n : n] = whole, bits
            self._keys[self.n : n] = keys
            out = np.arange(self.n, n, dtype=np.int32)
            self.n = n
            return out
        self._make_room(len(whole))
        out = np.empty(len(whole), np.int32)
        self.n = _enter_numbers(
            whole,
            bits,
            keys,
            self._base,
            self._slots,
            self._hashes,
            self._whole,
            self._bits,
            self._keys,
            self.n,
            out,
        )
        self._n_seen += len(whole)
        if self._n_seen >= _TRIED:
            self.is_worth_it = 2 * self.n < self._n_seen
            if not self.is_worth_it:
                self._slots = self._hashes = np.empty(0, np.int32)
        return out

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The number of each slot, whole and part."""
        return self._whole[: self.n], self._bits[: self.n].view(np.float64)
