"""The clauses of plain texts: gathered in flat arrays, resolved to a ConjunctionTable at the end.

    clause c       refs[clause_offsets[c] … clause_offsets[c + 1]] are its predicates
    predicate p    name[p], what[p] (`scan.py`), n[p] constants from codes[first[p]] on
    code           the slot of a constant, among those of strings or of numbers (`constants.py`)

    slots of one attribute and type ─► sorted once ─► cut points with labels ─► labels of slots
    predicates, labels ─► ConjunctionTable

A text with alternatives has several clauses, which share predicates: their order is that of
`language/normal_form.py`, groups with fewer alternatives outside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchmill.encoding.bulk.constants import NumberTable, TextTable
from matchmill.encoding.bulk.scan import (
    ABSENT,
    AFTER,
    BEFORE,
    FALSE,
    FIRST,
    FIXED,
    GROUP,
    HIGH_SIDE,
    IS_FOREIGN,
    LOW_SIDE,
    NAME,
    NAME_STOP,
    NOT_POINTS,
    NOT_RANGE,
    POINTS,
    PRESENT,
    RANGE,
    REGION,
    WHAT,
    N,
    Scanned,
    is_readable,
    scan,
)
from matchmill.encoding.clause_encoder import AddedCuts
from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.cut_points import NumberRun, StringRun
from matchmill.encoding.dimensions import FALSE_KEY, LAST_KEYS, START_KEYS, TRUE_KEY
from matchmill.encoding.numbers import distinct_pairs
from matchmill.encoding.texts import Texts, gather_texts, text_heads, texts_to_strings
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.jit import int64, kernel
from matchmill.kernels.sorting import sort_rows
from matchmill.kernels.threads import in_advance, on_ranges, split_weights
from matchmill.language.expression import KEYWORDS
from matchmill.language.normal_form import Dimension
from matchmill.language.values import Region
from matchmill.settings import Settings

__all__ = ["BulkClauses", "PlainTexts"]

_PLAIN_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_KEY_BITS = 3  # of the type, in the key of a constant
_NUMBER, _STRING, _ABSENT_REGION = int(Region.NUMBER), int(Region.STRING), int(Region.ABSENT)
_PRESENT_KEY, _LAST_KEY = START_KEYS[Region.BOOLEAN], LAST_KEYS[Region.END]


class PlainTexts(NamedTuple):
    """Some texts, and what their bytes say: how many clauses each has, 0 if it is not plain."""

    texts: Texts
    scanned: Scanned
    n_clauses: np.ndarray


class _Gathered(NamedTuple):
    """Predicates of some rows, and their constants, apart by kind; places are in `codes`."""

    names: np.ndarray  # where each begins
    name_stops: np.ndarray
    what: np.ndarray
    n_codes: np.ndarray
    number_owners: np.ndarray  # the predicate of each number
    number_places: np.ndarray
    whole: np.ndarray
    part: np.ndarray
    string_owners: np.ndarray
    string_places: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    clause_sizes: np.ndarray
    refs: np.ndarray


class _Columns(NamedTuple):
    """What was gathered of all rows so far."""

    names: np.ndarray  # slots of names, int32
    what: np.ndarray  # int16
    n_codes: np.ndarray  # int32
    codes: np.ndarray  # int32
    clause_sizes: np.ndarray  # int32
    refs: np.ndarray  # int32


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _count(scanned: Scanned, rows: np.ndarray, out_counts: np.ndarray) -> None:
    """Count what some rows have: predicates, numbers, strings, clauses, references."""
    for row in rows:
        start, stop = scanned.row_predicates[row], scanned.row_predicates[row + 1]
        n_clauses = scanned.row_clauses[row]
        out_counts[0] += stop - start
        out_counts[3] += n_clauses
        out_counts[4] += n_clauses * (stop - start)  # enough: alternatives leave some out
        for p in range(start, stop):
            what = scanned.predicates[p, WHAT]
            if what & 7 != FIXED:
                is_string = (what >> REGION) & 15 == _STRING
                out_counts[2 if is_string else 1] += scanned.predicates[p, N]


@kernel
def _order_groups(predicates: np.ndarray, start: int, stop: int, out_order: np.ndarray) -> int:
    """List the groups of a row, those with fewer alternatives first; return how many there are."""
    n_groups = int64(0)
    for p in range(start, stop):
        n_groups = max(n_groups, predicates[p, GROUP])
    for g in range(1, n_groups + 1):
        size = int64(0)
        for p in range(start, stop):
            size += predicates[p, GROUP] == g
        j = g - 1
        while j > 0 and out_order[j - 1, 1] > size:
            out_order[j, 0], out_order[j, 1] = out_order[j - 1, 0], out_order[j - 1, 1]
            j -= 1
        out_order[j, 0], out_order[j, 1] = g, size
    return int(n_groups)


@kernel
def _gather(
    scanned: Scanned, rows: np.ndarray, n_before: int, groups: np.ndarray, out: _Gathered
) -> int:
    """Copy the predicates of some rows; return how many references their clauses have."""
    predicates, row_clauses = scanned.predicates, scanned.row_clauses
    whole, part, row_predicates = scanned.whole, scanned.part, scanned.row_predicates
    p_out = n_numbers = n_strings = n_codes = c = n_refs = int64(0)
    for row in rows:
        start, stop = row_predicates[row], row_predicates[row + 1]
        first_out = p_out
        for p in range(start, stop):
            what, n = predicates[p, WHAT], predicates[p, N]
            out.names[p_out], out.name_stops[p_out] = predicates[p, NAME], predicates[p, NAME_STOP]
            out.what[p_out] = what & ~IS_FOREIGN
            out.n_codes[p_out] = n
            is_string = (what >> REGION) & 15 == _STRING and what & 7 != FIXED
            for k in range(predicates[p, FIRST], predicates[p, FIRST] + n):
                if is_string:
                    out.string_owners[n_strings], out.string_places[n_strings] = p_out, n_codes
                    out.starts[n_strings], out.stops[n_strings] = whole[k], int64(part[k])
                    n_strings += 1
                else:
                    out.number_owners[n_numbers], out.number_places[n_numbers] = p_out, n_codes
                    out.whole[n_numbers], out.part[n_numbers] = whole[k], part[k]
                    n_numbers += 1
                n_codes += 1
            p_out += 1
        n_clauses = row_clauses[row]
        n_groups = int64(0)
        if n_clauses > 1:
            n_groups = _order_groups(predicates, start, stop, groups)
        for clause in range(n_clauses):
            before = n_refs
            for p in range(start, stop):
                if n_groups == 0 or predicates[p, GROUP] == 0:
                    out.refs[n_refs] = n_before + first_out + p - start
                    n_refs += 1
            left = clause
            for j in range(n_groups - 1, -1, -1):
                digit = left % groups[j, 1]
                left //= groups[j, 1]
                for p in range(start, stop):
                    if predicates[p, GROUP] == groups[j, 0]:
                        if digit == 0:
                            out.refs[n_refs] = n_before + first_out + p - start
                            n_refs += 1
                        digit -= 1
            out.clause_sizes[c] = n_refs - before
            c += 1
    return int(n_refs)


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


@kernel
def _label_codes(
    columns: _Columns,
    code_offsets: np.ndarray,
    number_labels: np.ndarray,
    string_labels: np.ndarray,
    first: int,
    last: int,
    out_labels: np.ndarray,
    out_sizes: np.ndarray,
) -> None:
    """Write the labels of the constants of some predicates, those of lists sorted and distinct.

    Also how many intervals each predicate has.
    """
    what, codes = columns.what, columns.codes
    scratch = np.empty(64, np.int64)
    for p in range(first, last):
        kind = what[p] & 7
        out_sizes[p] = 1
        if kind == FIXED:
            continue
        start, stop = code_offsets[p], code_offsets[p + 1]
        if (what[p] >> REGION) & 15 == _STRING:
            for k in range(start, stop):
                out_labels[k] = string_labels[codes[k]]
        else:
            for k in range(start, stop):
                out_labels[k] = number_labels[codes[k]]
        if kind == NOT_RANGE:
            out_sizes[p] = 2
        elif kind != RANGE:
            if stop - start > len(scratch):
                scratch = np.empty(2 * (stop - start), np.int64)
            sort_rows(out_labels, scratch, start, stop)
            n = int64(0)
            for k in range(start, stop):
                if k == start or out_labels[k] != out_labels[start + n - 1]:
                    out_labels[start + n] = out_labels[k]
                    n += 1
            out_sizes[p] = n + (kind == NOT_POINTS)


@kernel
def _write(
    what: int,
    labels: np.ndarray,
    start: int,
    n_codes: int,
    size: int,
    starts: np.ndarray,
    lasts: np.ndarray,
    at: int,
    out_lows: np.ndarray,
    out_highs: np.ndarray,
) -> None:
    """Write the intervals of a predicate."""
    kind = what & 7
    region = (what >> REGION) & 15
    if kind == FIXED:
        if region == ABSENT:
            out_lows[at], out_highs[at] = 0, 0
        elif region == PRESENT:
            out_lows[at], out_highs[at] = _PRESENT_KEY, _LAST_KEY
        else:
            key = FALSE_KEY if region == FALSE else TRUE_KEY
            out_lows[at], out_highs[at] = key, key
        return
    floor, ceiling = starts[region], lasts[region + 1]
    if kind == POINTS:
        for k in range(size):
            out_lows[at + k], out_highs[at + k] = labels[start + k], labels[start + k]
        return
    if kind == NOT_POINTS:
        for k in range(size):
            out_lows[at + k] = labels[start + k - 1] + 1 if k > 0 else floor
            out_highs[at + k] = labels[start + k] - 1 if k + 1 < size else ceiling
        return
    low_side, high_side = (what >> LOW_SIDE) & 3, (what >> HIGH_SIDE) & 3
    low, high = labels[start], labels[start + n_codes - 1]
    if kind == RANGE:
        out_lows[at] = low + (low_side == AFTER) if low_side else floor
        out_highs[at] = high - (high_side == BEFORE) if high_side else ceiling
    else:
        out_lows[at], out_highs[at] = floor, low - (low_side == BEFORE)
        out_lows[at + 1], out_highs[at + 1] = high + (high_side == AFTER), ceiling


@kernel
def _resolve(
    columns: _Columns,
    name_dimensions: np.ndarray,
    clause_offsets: np.ndarray,
    code_offsets: np.ndarray,
    labels: np.ndarray,
    sizes: np.ndarray,
    starts: np.ndarray,
    lasts: np.ndarray,
    first: int,
    last: int,
    at: int,
    out: ConjunctionTable,
) -> None:
    """Write the predicates of some clauses, in the order of their dimensions, and intervals.

    `at` is where the intervals of the first of these clauses begin.
    """
    names, what, n_codes, refs = columns.names, columns.what, columns.n_codes, columns.refs
    dimensions, lows, highs = out.dimensions, out.lows, out.highs
    interval_offsets = out.interval_offsets
    order = np.empty(64, np.int64)
    for c in range(first, last):
        start, stop = clause_offsets[c], clause_offsets[c + 1]
        for r in range(start, stop):
            p = int64(refs[r])
            j = r - start
            while j > 0 and name_dimensions[names[order[j - 1]]] > name_dimensions[names[p]]:
                order[j] = order[j - 1]
                j -= 1
            order[j] = p
        for r in range(start, stop):
            p = order[r - start]
            dimensions[r] = name_dimensions[names[p]]
            _write(
                int64(what[p]),
                labels,
                code_offsets[p],
                int64(n_codes[p]),
                sizes[p],
                starts,
                lasts,
                at,
                lows,
                highs,
            )
            at += sizes[p]
            interval_offsets[r + 1] = at


# -- the class ------------------------------------------------------------------------------------


class BulkClauses:
    """Reads texts chunk by chunk; `add_cuts` and then `table` make their clauses."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._names = TextTable()
        self._numbers = NumberTable()
        self._strings = TextTable()
        self._chunks: list[_Columns] = []
        self._n_predicates = 0
        self._known_names: dict[bytes, bool] = {}
        self.is_readable = is_readable(settings)

    # reading

    def read(self, texts: Texts) -> PlainTexts:
        """Find out what texts say; nothing is gathered yet."""
        scanned = scan(texts, self._settings)
        self._leave_out_strange_names(texts.data, scanned)
        return PlainTexts(texts, scanned, scanned.row_clauses)

    def _leave_out_strange_names(self, data: np.ndarray, scanned: Scanned) -> None:
        """Leave texts to the parser whose names beyond ASCII are no names to it."""
        foreign = np.flatnonzero(scanned.predicates[:, WHAT] & IS_FOREIGN)
        rows = np.searchsorted(scanned.row_predicates, foreign, side="right") - 1
        for p, row in zip(foreign.tolist(), rows.tolist(), strict=True):
            start, stop = scanned.predicates[p, NAME], scanned.predicates[p, NAME_STOP]
            if not self._is_name(data[start:stop].tobytes()):
                scanned.row_clauses[row] = 0

    def _is_name(self, name: bytes) -> bool:
        known = self._known_names.get(name)
        if known is None:
            text = name.decode()
            is_plain = _PLAIN_NAME.fullmatch(text) is not None
            known = self._known_names[name] = is_plain and text.lower() not in KEYWORDS
        return known

    # gathering

    def gather(self, plain: PlainTexts, rows: np.ndarray) -> None:
        """Take the clauses of some rows, which are plain."""
        scanned, data = plain.scanned, plain.texts.data
        counts = np.zeros(5, np.int64)
        _count(scanned, rows, counts)
        n_predicates, n_numbers, n_strings, n_clauses, n_refs = counts.tolist()
        out = _Gathered(
            names=np.empty(n_predicates, np.int64),
            name_stops=np.empty(n_predicates, np.int64),
            what=np.empty(n_predicates, np.int64),
            n_codes=np.empty(n_predicates, np.int64),
            number_owners=np.empty(n_numbers, np.int64),
            number_places=np.empty(n_numbers, np.int64),
            whole=np.empty(n_numbers, np.int64),
            part=np.empty(n_numbers, np.float64),
            string_owners=np.empty(n_strings, np.int64),
            string_places=np.empty(n_strings, np.int64),
            starts=np.empty(n_strings, np.int64),
            stops=np.empty(n_strings, np.int64),
            clause_sizes=np.empty(n_clauses, np.int32),
            refs=np.empty(n_refs, np.int32),
        )
        groups = np.empty((64, 2), np.int64)
        n_refs = _gather(scanned, rows, self._n_predicates, groups, out)
        no_keys = np.zeros(n_predicates, np.int32)
        names = self._names.enter(data, out.names, out.name_stops, no_keys)
        keys = names << _KEY_BITS | ((out.what >> REGION) & 15).astype(np.int32)
        codes = np.empty(n_numbers + n_strings, np.int32)
        codes[out.number_places] = self._numbers.enter(out.whole, out.part, keys[out.number_owners])
        codes[out.string_places] = self._strings.enter(
            data, out.starts, out.stops, keys[out.string_owners]
        )
        self._chunks.append(
            _Columns(
                names,
                out.what.astype(np.int16),
                out.n_codes.astype(np.int32),
                codes,
                out.clause_sizes,
                out.refs[:n_refs].copy(),
            )
        )
        self._n_predicates += n_predicates

    # cut points

    def add_cuts(self, cuts: AddedCuts) -> None:
        """Add the cut points of all constants to the dimensions."""
        every = np.arange(self._names.n)
        names = texts_to_strings(_without_doubled(self._names.texts, every, ord('"')))
        dimensions = cuts.dimensions
        ids = [dimensions.id_of(Dimension(name)) for name in names]
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
            return key, *_sorted_strings(strings, key.slots)

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
        columns = _Columns(*map(np.concatenate, zip(*self._chunks, strict=True)))
        self._chunks = []
        code_offsets, clause_offsets = offsets_of(columns.n_codes), offsets_of(columns.clause_sizes)
        labels = np.empty(len(columns.codes), np.int64)
        sizes = np.empty(len(columns.what), np.int64)

        def label(first: int, last: int) -> None:
            _label_codes(
                columns,
                code_offsets,
                self._number_labels,
                self._string_labels,
                first,
                last,
                labels,
                sizes,
            )

        on_ranges(label, split_weights(code_offsets + np.arange(len(code_offsets))))
        interval_ends = offsets_of(sizes[columns.refs])[clause_offsets]
        n_predicates, n_intervals = int(clause_offsets[-1]), int(interval_ends[-1])
        table = ConjunctionTable(
            clause_ids,
            clause_offsets,
            np.empty(n_predicates, np.int32),
            np.zeros(n_predicates + 1, np.int64),
            np.empty(n_intervals, np.int64),
            np.empty(n_intervals, np.int64),
        )
        starts, lasts = np.array(START_KEYS, np.int64), np.array(LAST_KEYS, np.int64)

        def resolve(first: int, last: int) -> None:
            _resolve(
                columns,
                self._name_dimensions,
                clause_offsets,
                code_offsets,
                labels,
                sizes,
                starts,
                lasts,
                first,
                last,
                int(interval_ends[first]),
                table,
            )

        on_ranges(resolve, split_weights(interval_ends))
        return table


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


def _sorted_strings(texts: Texts, slots: np.ndarray) -> tuple[StringRun, np.ndarray]:
    """Return distinct strings as a run, and the place of each in it."""
    plain = _without_doubled(texts, slots, ord("'"))
    buffers = [None, pa.py_buffer(plain.offsets), pa.py_buffer(plain.data)]
    array = pa.Array.from_buffers(pa.large_binary(), plain.n_texts, buffers)
    order = pc.sort_indices(array).to_numpy().astype(np.int64)
    ascending = Texts(*gather_texts(plain.offsets, plain.data, order))
    at = np.empty(len(order), np.int64)
    at[order] = np.arange(len(order))
    return StringRun(text_heads(*ascending), *ascending, np.empty(0, np.int64)), at


def _without_doubled(texts: Texts, rows: np.ndarray, quote: int) -> Texts:
    """Return some texts, with one quote for each two."""
    n_bytes = int((texts.offsets[rows + 1] - texts.offsets[rows]).sum())
    out = Texts(np.zeros(len(rows) + 1, np.int64), np.empty(n_bytes, np.uint8))
    n_bytes = _unescape(texts, rows, quote, out)
    return Texts(out.offsets, out.data[:n_bytes])
