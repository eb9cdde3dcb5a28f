"""The clauses of plain rows: gathered in flat arrays, resolved to a ConjunctionTable at the end.

clause c       refs[clause_offsets[c] … clause_offsets[c + 1]] are its predicates
predicate p    name[p], what[p] (`predicates.py`), n[p] constants from codes[first[p]] on
code           the slot of a constant, among those of strings or of numbers (`constants.py`)
name           the slot of an attribute with what is derived from it: a dimension

slots of one dimension and type ─► sorted once ─► cut points with labels ─► labels of slots
predicates, labels ─► ConjunctionTable (`resolve.py`)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchmill.encoding.bulk.constants import NumberTable, TextTable
from matchmill.encoding.bulk.gather import gather
from matchmill.encoding.bulk.predicates import REGION, Scanned
from matchmill.encoding.bulk.resolve import Columns, resolved
from matchmill.encoding.clause_encoder import AddedCuts
from matchmill.encoding.conjunction_table import (
    ONE_KEY,
    SOME,
    ConjunctionTable,
    used_quantifiers,
)
from matchmill.encoding.cut_points import NumberRun, StringRun
from matchmill.encoding.numbers import distinct_pairs
from matchmill.encoding.texts import Texts, gather_texts, text_heads, texts_to_strings
from matchmill.kernels.jit import int64, kernel
from matchmill.kernels.threads import in_advance
from matchmill.language.normal_form import Dimension, multi_valued

__all__ = ["BulkClauses", "PlainRows"]

_KEY_BITS = 3  # of the type, in the key of a constant


class PlainRows(NamedTuple):
    """What the bytes of some rows say, and where names and strings are."""

    scanned: Scanned
    names: np.ndarray
    data: np.ndarray

    @property
    def n_clauses(self) -> np.ndarray:
        """How many clauses each row has, 0 if it is not plain."""
        return self.scanned.row_clauses


@kernel
def _unescape(texts: Texts, rows: np.ndarray, quote: int, out: Texts) -> int:
    """Copy texts without the second of each two quotes; return how many bytes they have."""
    n = int64(0)
    for k in range(len(rows)):
        at, stop = texts.offsets[rows[k]], texts.offsets[rows[k] + 1]
        while at < stop:
            out.data[n] = texts.data[at]
            at += 2 if texts.data[at] == quote else 1
            n += 1
        out.offsets[k + 1] = n
    return int(n)


class BulkClauses:
    """Takes rows chunk by chunk; `add_cuts` and then `table` make their clauses."""

    def __init__(self, derivations: Sequence[str], *, are_quoted: bool) -> None:
        """Take predicates about these derivations; `are_quoted` if quotes in texts are doubled."""
        self._derivations = derivations
        self._are_quoted = are_quoted
        self._names = TextTable()
        self._numbers = NumberTable()
        self._strings = TextTable()
        self._chunks: list[Columns] = []
        self._n_predicates = 0

    def gather(self, plain: PlainRows, rows: np.ndarray) -> None:
        """Take the clauses of some rows, which are plain."""
        out = gather(plain.scanned, rows, self._n_predicates)
        names = self._names.enter(plain.names, out.names, out.name_stops, out.derivations)
        keys = names << _KEY_BITS | (out.what >> REGION & 15).astype(np.int32)
        codes = np.empty(len(out.number_owners) + len(out.string_owners), np.int32)
        codes[out.number_places] = self._numbers.enter(out.whole, out.part, keys[out.number_owners])
        codes[out.string_places] = self._strings.enter(
            plain.data, out.starts, out.stops, keys[out.string_owners]
        )
        self._chunks.append(
            Columns(names, out.what, out.n_codes, codes, out.clause_sizes, out.refs)
        )
        self._n_predicates += len(names)

    # cut points

    def add_cuts(self, cuts: AddedCuts) -> None:
        """Add the cut points of all constants to the dimensions."""
        every = np.arange(self._names.n)
        names = texts_to_strings(self._unquoted(self._names.texts, every, ord('"')))
        dimensions, derivations = cuts.dimensions, self._derivations
        ids = [
            dimensions.id_of(Dimension(name, derivations[d]))
            for name, d in zip(names, self._names.keys.tolist(), strict=True)
        ]
        self._name_dimensions = np.array(ids, np.int32)
        self._number_labels = np.empty(self._numbers.n, np.int64)
        self._string_labels = np.empty(self._strings.n, np.int64)
        self._later: list[tuple[int, int, np.ndarray, np.ndarray]] = []
        whole, part = self._numbers.pairs
        strings = self._strings.texts

        def sort_numbers(key: _Key) -> tuple[_Key, NumberRun, np.ndarray]:
            distinct, distinct_part, at = distinct_pairs(whole[key.slots], part[key.slots])
            return key, NumberRun(distinct, distinct_part, np.empty(0, np.int64)), at

        def sort_strings(key: _Key) -> tuple[_Key, StringRun, np.ndarray]:
            return key, *_sorted_strings(self._unquoted(strings, key.slots, ord("'")))

        for key, run, at in in_advance(sort_numbers, _by_key(self._numbers.keys)):
            self._label(cuts, ids[key.name], key, run, self._number_labels, at)
        for key, texts, at in in_advance(sort_strings, _by_key(self._strings.keys)):
            self._label(cuts, ids[key.name], key, texts, self._string_labels, at)
        self._n_relabellings = {d: len(changes) for d, changes in cuts.relabellings.items()}

    def _label(
        self,
        cuts: AddedCuts,
        dimension_id: int,
        key: _Key,
        run: NumberRun | StringRun,
        out_labels: np.ndarray,
        at: np.ndarray,
    ) -> None:
        """Add the constants of a key as a run, in which they are at these places."""
        out_labels[key.slots] = cuts.add(dimension_id, key.region, run)[at]
        self._later.append((dimension_id, key.region, out_labels, key.slots))

    def _relabel(self, cuts: AddedCuts) -> None:
        """Bring labels up to date with what was relabelled after `add_cuts`."""
        for dimension_id, region, labels, slots in self._later:
            changes = cuts.relabellings.get(dimension_id, ())
            for change in changes[self._n_relabellings.get(dimension_id, 0) :]:
                if change.region == region:
                    labels[slots] = change.new[np.searchsorted(change.old, labels[slots])]

    # the table

    def table(self, cuts: AddedCuts, clause_ids: np.ndarray) -> ConjunctionTable:
        """Return the clauses; `cuts` has those of all others too by now."""
        self._relabel(cuts)
        columns = Columns(*map(np.concatenate, zip(*self._chunks, strict=True)))
        self._chunks = []
        table = resolved(
            columns, self._number_labels, self._string_labels, self._name_dimensions, clause_ids
        )
        quantifiers = [SOME if multi_valued(d)[0] else ONE_KEY for d in self._derivations]
        if SOME not in quantifiers:
            return table
        of_dimension = np.full(len(cuts.dimensions), ONE_KEY, np.uint8)
        of_dimension[self._name_dimensions] = np.array(quantifiers, np.uint8)[self._names.keys]
        return table._replace(quantifiers=used_quantifiers(of_dimension[table.dimensions]))

    def _unquoted(self, texts: Texts, rows: np.ndarray, quote: int) -> Texts:
        """Return some texts, with one quote for each two."""
        if not self._are_quoted:
            return Texts(*gather_texts(texts.offsets, texts.data, rows))
        n_bytes = int((texts.offsets[rows + 1] - texts.offsets[rows]).sum())
        out = Texts(np.zeros(len(rows) + 1, np.int64), np.empty(n_bytes, np.uint8))
        n_bytes = _unescape(texts, rows, quote, out)
        return Texts(out.offsets, out.data[:n_bytes])


class _Key(NamedTuple):
    """An attribute and a type that constants have, and the slots of these constants."""

    name: int
    region: int
    slots: np.ndarray


def _by_key(keys: np.ndarray) -> Iterator[_Key]:
    """Yield all keys that slots have."""
    if len(keys) == 0:
        return
    most = int(keys.max())
    narrow = keys.astype(np.int16) if most < 1 << 15 else keys  # NumPy sorts these by radix
    order = np.argsort(narrow, kind="stable")
    cuts = np.flatnonzero(np.diff(keys[order])) + 1
    for slots in np.split(order, cuts):
        key = int(keys[slots[0]])
        yield _Key(key >> _KEY_BITS, key & ((1 << _KEY_BITS) - 1), slots)


def _sorted_strings(plain: Texts) -> tuple[StringRun, np.ndarray]:
    """Return distinct strings as a run, and the place of each in it."""
    buffers = [None, pa.py_buffer(plain.offsets), pa.py_buffer(plain.data)]
    array = pa.Array.from_buffers(pa.large_binary(), plain.n_texts, buffers)
    order = pc.sort_indices(array).to_numpy().astype(np.int64)
    ascending = Texts(*gather_texts(plain.offsets, plain.data, order))
    at = np.empty(len(order), np.int64)
    at[order] = np.arange(len(order))
    return StringRun(text_heads(*ascending), *ascending, np.empty(0, np.int64)), at
