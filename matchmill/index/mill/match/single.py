"""Matching one event at a time.

1  each pair: its code; its row into the truth table, its values into the columns; the slots
   of its nodes and groups into a list
2  the slots of pairs of dimensions, of dimensions that the event lacks and that matter then, and
   of all events
3  each slot of the list: its blocks, entry by entry (`single_walk.py`); meanwhile start to load
   what the next two events are looked up in
4  the truth table and the columns back to those of the empty event

Kernels get the addresses of the index's arrays, `mill`, and those of `EventState`, `state`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchmill.index.mill.arrays import (
    BELOW_KEY,
    DEFAULT_ROW,
    EDGE_START,
    EDGE_STOP,
    FIRST_COLUMN,
    FIRST_WORD,
    GROUP_START,
    LAST_KEY,
    N_SLOTS,
    N_WORDS,
    NODE_START,
    PAIR_FIRST,
    PAIR_SECOND,
    RANK_START,
    ROW_START,
    SECOND_COLUMN,
    USED_LEVELS,
    absent_dimensions_of,
    access_words_of,
    default_values_of,
    dimensions_of,
    edges_of,
    pairs_of,
    ranks_of,
    row_of_code_of,
    rows_of,
    sizes_of,
    slot_places_of,
    words_of,
)
from matchmill.index.mill.match.event_state import (
    codes_of,
    event_dimensions_of,
    event_keys_of,
    event_offsets_of,
    levels_of,
    out_of,
    out_offsets_of,
    truth_words_of,
    values_of,
    visits_of,
)
from matchmill.index.mill.match.lookups import (
    MOST_LEVELS,
    code_of_key,
    even_code,
    find_levels,
    group_slot,
    is_even,
    pair_slot,
    prefetch_fields,
)
from matchmill.index.mill.match.single_walk import walk_slots
from matchmill.index.mill.words import slot_on_level, slot_start
from matchmill.kernels.addresses import borrowed
from matchmill.kernels.intrinsics import prefetch, trailing_zeros
from matchmill.kernels.jit import int64, kernel, uint64

__all__ = ["enter_event", "leave_event", "match_events"]

_ONE, _THREE, _EIGHT, _LOW_EIGHT = (uint64(n) for n in (1, 3, 8, 255))
# Eight bits as eight bytes.
_SPREAD = (
    np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    .view(np.uint64)[:, 0]
    .copy()
)


@kernel
def _flip_row(
    truth_words: np.ndarray, rows: np.ndarray, row: int, default: int, word: int, n_words: int
) -> None:
    """Put a row into the truth table in place of the default, or take it out again."""
    for w in range(n_words):
        bits = rows[row + w]
        if default >= 0:
            bits ^= rows[default + w]
        at = uint64(word + w) << _THREE
        if bits != 0:
            for _ in range(8):
                truth_words[at] ^= _SPREAD[bits & _LOW_EIGHT]
                bits >>= _EIGHT
                at += _ONE


@kernel
def _add_slot(
    slot_places: np.ndarray, words: np.ndarray, visits: np.ndarray, n: int, slot: int
) -> int:
    """Append a slot to the list unless it is empty; return the new number, also beyond its end."""
    place = slot_places[slot]
    if place > 0:
        if n < len(visits):
            visits[n] = place
            prefetch(words, slot_start(place))
        n += 1
    return n


@kernel
def _add_groups(
    slot_places: np.ndarray, words: np.ndarray, visits: np.ndarray, n: int, first: int, bits: Any
) -> int:
    """Append the groups first + b of all bits b that are set; none of them is empty."""
    while bits != 0:
        place = slot_places[first + trailing_zeros(bits)]
        visits[uint64(n)] = place
        prefetch(words, slot_start(place))
        n += 1
        bits &= bits - _ONE
    return n


@kernel
def _find_codes(mill: Any, state: Any, first_pair: int, last_pair: int) -> None:
    """Find the codes of an event, in stages: the memory of all pairs is loaded at the same time."""
    fields, edges, ranks = dimensions_of(mill), edges_of(mill), ranks_of(mill)
    row_of_code, rows, slot_places = row_of_code_of(mill), rows_of(mill), slot_places_of(mill)
    dimensions, keys = event_dimensions_of(state), event_keys_of(state)
    codes = codes_of(state)
    for k in range(first_pair, last_pair):
        prefetch_fields(fields, int64(dimensions[k]))
    for k in range(first_pair, last_pair):
        d = int64(dimensions[k])
        if d < len(fields) and not is_even(fields, d):
            prefetch(edges, (fields[d, EDGE_START] + fields[d, EDGE_STOP]) >> 1)
    for k in range(first_pair, last_pair):
        d = int64(dimensions[k])
        if d < len(fields):
            code = code_of_key(fields, edges, d, keys[k])
            codes[d] = code
            prefetch(slot_places, fields[d, NODE_START] + code)
            prefetch(row_of_code, max(int64(0), fields[d, ROW_START]) + code)
            prefetch(ranks, max(int64(0), fields[d, RANK_START]) + code)
    for k in range(first_pair, last_pair):
        d = int64(dimensions[k])
        if d < len(fields) and fields[d, ROW_START] >= 0:
            prefetch(rows, row_of_code[fields[d, ROW_START] + codes[d]])


@kernel
def _enter_pairs(mill: Any, state: Any, first_pair: int, last_pair: int) -> int:
    """Take in all pairs of an event, whose codes are known; return the number of slots."""
    fields, ranks, words = dimensions_of(mill), ranks_of(mill), words_of(mill)
    row_of_code, rows, slot_places = row_of_code_of(mill), rows_of(mill), slot_places_of(mill)
    dimensions, truth_words = event_dimensions_of(state), truth_words_of(state)
    values, codes, levels, visits = (
        values_of(state), codes_of(state), levels_of(state), visits_of(state),
    )  # fmt: skip
    access_words, group_start = access_words_of(mill), sizes_of(mill)[GROUP_START]
    n = int64(0)
    for k in range(first_pair, last_pair):
        d = int64(dimensions[k])
        if d >= len(fields):
            continue
        code = int64(codes[d])
        if fields[d, FIRST_COLUMN] >= 0:
            values[fields[d, FIRST_COLUMN]] = code
            if fields[d, RANK_START] >= 0:
                values[fields[d, FIRST_COLUMN]] = ranks[fields[d, RANK_START] + code]
            if fields[d, SECOND_COLUMN] >= 0:
                values[fields[d, SECOND_COLUMN]] = code
        most = MOST_LEVELS + (fields[d, N_WORDS] << 6)
        has_room = n + most <= len(visits)
        if fields[d, USED_LEVELS] != 0 and has_room:
            n_levels = find_levels(fields, d, levels)
            for i in range(n_levels if code > 0 else 1):
                place = slot_places[slot_on_level(levels[i], code)]
                visits[uint64(n)] = place
                prefetch(words, slot_start(place))
                n += int64(place > 0)
        if fields[d, ROW_START] >= 0:
            row = int64(row_of_code[fields[d, ROW_START] + code])
            default, word = fields[d, DEFAULT_ROW], fields[d, FIRST_WORD]
            _flip_row(truth_words, rows, row, default, word, fields[d, N_WORDS])
            for w in range(fields[d, N_WORDS] if has_room else 0):
                bits = rows[row + w] & access_words[word + w]
                first = group_slot(group_start, word + w)
                n = _add_groups(slot_places, words, visits, n, first, bits)
        if not has_room:
            n = max(n, len(visits)) + most
    return int(n)


@kernel
def enter_event(mill: Any, state: Any, first_pair: int, last_pair: int) -> int:
    """Take in all pairs of an event.

    Return the number of slots, or if there may be no room for them, how many there can be.
    """
    fields, pairs = dimensions_of(mill), pairs_of(mill)
    slot_places, words = slot_places_of(mill), words_of(mill)
    rows, access_words = rows_of(mill), access_words_of(mill)
    group_start, last_slot = sizes_of(mill)[GROUP_START], sizes_of(mill)[N_SLOTS] - 1
    codes, visits = codes_of(state), visits_of(state)
    _find_codes(mill, state, first_pair, last_pair)
    n = _enter_pairs(mill, state, first_pair, last_pair)
    for p in range(len(pairs)):
        a, b = int64(codes[pairs[p, PAIR_FIRST]]), int64(codes[pairs[p, PAIR_SECOND]])
        if a > 0 and b > 0:
            n = _add_slot(slot_places, words, visits, n, pair_slot(pairs, p, a, b))
    for absent in absent_dimensions_of(mill):
        d = int64(absent)
        if codes[d] < 0:
            if fields[d, USED_LEVELS] != 0:
                n = _add_slot(slot_places, words, visits, n, fields[d, NODE_START])
            row, most = fields[d, DEFAULT_ROW], fields[d, N_WORDS] << 6
            if row >= 0 and n + most > len(visits):
                n = max(n, len(visits)) + most
            elif row >= 0:
                word = fields[d, FIRST_WORD]
                for w in range(fields[d, N_WORDS]):
                    bits = rows[row + w] & access_words[word + w]
                    first = group_slot(group_start, word + w)
                    n = _add_groups(slot_places, words, visits, n, first, bits)
    return _add_slot(slot_places, words, visits, n, last_slot)


@kernel
def leave_event(mill: Any, state: Any, first_pair: int, last_pair: int) -> None:
    """Return to the empty event."""
    fields, defaults = dimensions_of(mill), default_values_of(mill)
    row_of_code, rows = row_of_code_of(mill), rows_of(mill)
    dimensions, truth_words = event_dimensions_of(state), truth_words_of(state)
    values, codes = values_of(state), codes_of(state)
    for k in range(first_pair, last_pair):
        d = int64(dimensions[k])
        if d >= len(fields):
            continue
        if fields[d, ROW_START] >= 0:
            row = int64(row_of_code[fields[d, ROW_START] + codes[d]])
            default, word = fields[d, DEFAULT_ROW], fields[d, FIRST_WORD]
            _flip_row(truth_words, rows, row, default, word, fields[d, N_WORDS])
        if fields[d, FIRST_COLUMN] >= 0:
            values[fields[d, FIRST_COLUMN]] = defaults[fields[d, FIRST_COLUMN]]
            if fields[d, SECOND_COLUMN] >= 0:
                values[fields[d, SECOND_COLUMN]] = defaults[fields[d, SECOND_COLUMN]]
        codes[d] = -1


@kernel
def _load_fields(mill: Any, state: Any, first_pair: int, last_pair: int) -> None:
    """Start to load the dimensions of a coming event."""
    fields, dimensions = dimensions_of(mill), event_dimensions_of(state)
    for k in range(first_pair, last_pair):
        prefetch_fields(fields, int64(dimensions[k]))


@kernel
def _load_codes(mill: Any, state: Any, first_pair: int, last_pair: int) -> None:
    """Start to load what belongs to the codes of a coming event, whose dimensions are loaded."""
    dimensions, keys = event_dimensions_of(state), event_keys_of(state)
    fields, edges, ranks = dimensions_of(mill), edges_of(mill), ranks_of(mill)
    row_of_code, slot_places = row_of_code_of(mill), slot_places_of(mill)
    for k in range(first_pair, last_pair):
        d = int64(dimensions[k])
        if d < len(fields):
            if not is_even(fields, d):
                prefetch(edges, (fields[d, EDGE_START] + fields[d, EDGE_STOP]) >> 1)
            else:
                code = even_code(fields[d, BELOW_KEY], fields[d, LAST_KEY], keys[k])
                prefetch(slot_places, fields[d, NODE_START] + code)
                prefetch(row_of_code, max(int64(0), fields[d, ROW_START]) + code)
                prefetch(ranks, max(int64(0), fields[d, RANK_START]) + code)


@kernel
def match_events(
    mill: Any, state: Any, pairs: bytes, start: int, stop: int
) -> tuple[int, int, int]:
    """Match events from `start` to `stop`.

    Return (the first one for which there was no room, slots that it visits, entries looked at).

    Unless `pairs` is empty, it becomes event 0: 64-bit integers dimension, key, dimension, key, …
    """
    mill, state = borrowed(mill), borrowed(state)
    offsets, out_offsets = event_offsets_of(state), out_offsets_of(state)
    n_visits, n_room = len(visits_of(state)), len(out_of(state))
    if len(pairs) > 0:
        offsets[1] = len(pairs) >> 4
        dimensions, keys = event_dimensions_of(state), event_keys_of(state)
        numbers = np.frombuffer(pairs, np.int64)
        for k in range(offsets[1]):
            dimensions[k] = numbers[2 * k]
            keys[k] = numbers[2 * k + 1]
    n_out = out_offsets[start]
    n_seen = 0
    n_slots = 0
    for e in range(start, stop):
        n_slots = enter_event(mill, state, offsets[e], offsets[e + 1])
        n_after = n_room + 1
        if e + 2 < stop:
            _load_fields(mill, state, offsets[e + 2], offsets[e + 3])
        if e + 1 < stop:
            _load_codes(mill, state, offsets[e + 1], offsets[e + 2])
        if n_slots <= n_visits:
            n_after, seen = walk_slots(mill, state, n_slots, n_out)
            n_seen += seen if n_after <= n_room else 0
        leave_event(mill, state, offsets[e], offsets[e + 1])
        if n_after > n_room:
            return e, n_slots, n_seen
        n_out = n_after
        out_offsets[e + 1] = n_out
    return stop, n_slots, n_seen
