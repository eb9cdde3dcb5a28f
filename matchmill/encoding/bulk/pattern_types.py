"""The match types of JSON patterns, and plain values, as predicates: one function for each."""

from __future__ import annotations

import numpy as np

from matchmill.encoding.bulk.pattern_twins import has_equal
from matchmill.encoding.bulk.pattern_work import (
    ANYTHING_BUT,
    AT_LITERAL,
    EXACTLY,
    EXISTS,
    FIELD_EXACT,
    IGNORE_CASE,
    LOWER,
    LOWER_REVERSED,
    N_VALUES,
    NUMERIC,
    PREFIX,
    REVERSED,
    SUFFIX,
    VALUE,
    VALUES,
    Work,
    add,
    changed_text,
    double_near,
    is_small,
    match_type,
    note_float,
    note_number,
    put_number,
    put_text,
)
from matchmill.encoding.bulk.predicates import (
    AFTER,
    BEFORE,
    HIGH_SIDE,
    IS_WIDE,
    LOW_SIDE,
    NOT_POINTS,
    POINT,
    RANGE,
    REGION,
)
from matchmill.encoding.bulk.tokens import (
    DOUBLE,
    END_OF_LIST,
    END_OF_OBJECT,
    LIST,
    OBJECT,
    TEXT,
    WHOLE,
    pair_of_double,
    token_after,
)
from matchmill.kernels.jit import int64, kernel
from matchmill.language.values import Region

__all__ = [
    "add_anything_but",
    "add_numeric",
    "add_text",
    "add_values",
    "derivation_of",
    "note_values",
]

_NUMBER, _STRING = int(Region.NUMBER), int(Region.STRING)


@kernel
def derivation_of(tokens: np.ndarray, t: int, kind: int, is_ours: bool) -> int:
    """Return what a match type of this kind is about; -1 if it is not read here."""
    is_nested = tokens[t + 2, 0] == OBJECT
    if kind == PREFIX:
        return LOWER if is_nested else VALUES
    if kind == SUFFIX:
        return LOWER_REVERSED if is_nested else REVERSED
    if is_nested:
        return -1
    if kind == IGNORE_CASE:
        return LOWER
    if kind == EXISTS:
        return VALUE
    if kind == ANYTHING_BUT:
        return VALUES if is_ours else VALUE
    if kind == NUMERIC:
        return VALUES
    return VALUES if kind == EXACTLY and not is_ours else -1


@kernel
def add_text(
    work: Work, t: int, kind: int, derivation: int, most_bytes: int, is_ours: bool
) -> bool:
    """Add a prefix, a suffix, or a text in any case."""
    tokens, cursor, data = work.tokens, work.cursor, work.data
    at = t + 2
    if tokens[at, 0] == OBJECT:
        at += 2
        is_ignoring = match_type(tokens, data, work.words, work.word_offsets, t + 3) == IGNORE_CASE
        if not is_ignoring or tokens[at, 0] != TEXT or tokens[at + 1, 0] != END_OF_OBJECT:
            return False
    if tokens[at, 0] != TEXT:
        return False
    start, stop = tokens[at, 1], tokens[at, 2]
    if 2 * (stop - start) + 2 > most_bytes:
        return False
    is_lower = derivation in (LOWER, LOWER_REVERSED)
    if is_lower and not is_ours:
        for k in range(start, stop):
            b = data[k] | 32
            if b == 105 or b == 107:  # letters beyond ASCII have i and k in lower case, too
                cursor[FIELD_EXACT] = 0
    if derivation != VALUES:
        is_reversed = derivation in (REVERSED, LOWER_REVERSED)
        length = stop - start
        start = changed_text(work, start, stop, is_lower, is_reversed)
        if start < 0:
            return False
        stop = start + length
    first = cursor[AT_LITERAL]
    is_range = kind != IGNORE_CASE and kind != EXACTLY
    if is_range and (stop == start or data[stop - 1] == 127 or data[stop - 1] == 191):
        return False
    put_text(work, start, stop, is_range)
    sides = BEFORE << LOW_SIDE | BEFORE << HIGH_SIDE if is_range else POINT
    add(work, RANGE | _STRING << REGION | sides, first)
    return True


@kernel
def _side(data: np.ndarray, start: int, stop: int) -> int:
    """Return 1 and 2 for < and <=, 4 and 8 for > and >=, 16 for =; 0 for anything else."""
    first = data[start] if stop > start else 0
    second = data[start + 1] if stop == start + 2 else 0
    if stop - start > 2 or (stop - start == 2 and second != 61):
        return 0
    if first == 60:
        return 2 if second else 1
    if first == 62:
        return 8 if second else 4
    return 16 if first == 61 and second == 0 else 0


@kernel
def _moved(work: Work, n: int, direction: float) -> bool:
    """Replace a literal by the next number; whether that is a decimal that is no integer."""
    value = np.nextafter(double_near(work.whole[n], work.part[n]), direction)
    whole, part = pair_of_double(value)
    work.whole[n], work.part[n] = whole, part
    return part != 0.0


@kernel
def _range_between(work: Work, t: int, low_side: int, high_side: int, is_ours: bool) -> bool:
    """Add the numbers between two bounds: tokens t + 1 and t + 3."""
    whole, part = work.whole, work.part
    first = work.cursor[AT_LITERAL]
    put_number(work, t + 1)
    put_number(work, t + 3)
    last = first + 1
    low = double_near(whole[first], part[first])
    high = double_near(whole[last], part[last])
    if low >= high or not is_small(whole[first], part[first]):
        return False
    if not is_small(whole[last], part[last]):
        return False
    is_closed = low_side == 8 and high_side == 2
    if is_ours and not is_closed:
        note_number(work, t + 1)
        note_number(work, t + 3)
    if low_side == 4 and not _moved(work, first, np.inf):
        return False
    if high_side == 1 and not _moved(work, last, -np.inf):
        return False
    if whole[first] > whole[last] or (whole[first] == whole[last] and part[first] > part[last]):
        return False
    if is_ours:
        for _k in range(2 if is_closed else 1):
            if low_side == 4:
                note_float(work, whole[first], part[first])
            else:
                note_number(work, t + 1)
            if high_side == 1:
                note_float(work, whole[last], part[last])
            else:
                note_number(work, t + 3)
    add(work, RANGE | _NUMBER << REGION | POINT, first)
    return True


@kernel
def add_numeric(work: Work, t: int, is_ours: bool) -> bool:
    """Add one or two comparisons."""
    tokens, data = work.tokens, work.data
    t += 2
    if tokens[t, 0] != LIST or tokens[t + 1, 0] != TEXT:
        return False
    t += 1
    side = _side(data, tokens[t, 1], tokens[t, 2])
    if side == 0 or (tokens[t + 1, 0] != WHOLE and tokens[t + 1, 0] != DOUBLE):
        return False
    if tokens[t + 2, 0] == TEXT:
        other = _side(data, tokens[t + 2, 1], tokens[t + 2, 2])
        if side & 12 == 0 or other & 3 == 0 or tokens[t + 4, 0] != END_OF_LIST:
            return False
        if tokens[t + 3, 0] != WHOLE and tokens[t + 3, 0] != DOUBLE:
            return False
        return _range_between(work, t, side, other, is_ours)
    if tokens[t + 2, 0] != END_OF_LIST:
        return False
    first = work.cursor[AT_LITERAL]
    put_number(work, t + 1)
    if not is_ours and not is_small(work.whole[first], work.part[first]):
        return False
    if is_ours:
        note_number(work, t + 1)
        note_number(work, t + 1)
    sides = int64(POINT)
    if side & 3:
        sides = int64(BEFORE if side == 1 else AFTER) << HIGH_SIDE
    elif side & 12:
        sides = int64(AFTER if side == 4 else BEFORE) << LOW_SIDE
    add(work, RANGE | _NUMBER << REGION | sides, first)
    return True


@kernel
def add_values(work: Work, t: int, kind: int, is_ours: bool, base: int) -> int:
    """Write the literals of one type among the values of an array, from its first value on.

    Return how many there are; -1 if that is for the parser.
    """
    tokens, cursor = work.tokens, work.cursor
    first = cursor[AT_LITERAL]
    while tokens[t, 0] != END_OF_LIST:
        token = tokens[t, 0]
        if token == OBJECT:
            t = token_after(tokens, t)
            continue
        if token == TEXT and kind == TEXT:
            put_text(work, tokens[t, 1], tokens[t, 2], False)
        elif (token in (WHOLE, DOUBLE)) and kind == WHOLE:
            put_number(work, t)
            n = cursor[AT_LITERAL] - 1
            if not is_ours and not is_small(work.whole[n], work.part[n]):
                return -1
        t += 1
    n = cursor[AT_LITERAL] - first
    if is_ours and n > 1 and has_equal(work, first, n, kind == TEXT, base):
        return -1
    return int(n)


@kernel
def note_values(work: Work, t: int) -> None:
    """Have the decimals of an array printed, for the value and for an element."""
    tokens = work.tokens
    for _k in range(2):
        at = t
        while tokens[at, 0] != END_OF_LIST:
            if tokens[at, 0] == OBJECT:
                at = token_after(tokens, at)
            else:
                note_number(work, at)
                at += 1


@kernel
def add_anything_but(work: Work, t: int, is_ours: bool, base: int) -> bool:
    """Add what is not one of some values."""
    tokens, cursor = work.tokens, work.cursor
    t += 2
    is_list = tokens[t, 0] == LIST
    n_texts = n_numbers = int64(0)
    at = t + 1 if is_list else t
    while tokens[at, 0] != END_OF_LIST:
        token = tokens[at, 0]
        if token == TEXT:
            n_texts += 1
        elif token in (WHOLE, DOUBLE):
            n_numbers += 1
        else:
            return False
        at += 1
        if not is_list:
            break
    if not is_ours and n_texts > 0 and n_numbers > 0:
        return False
    cursor[N_VALUES] += 2 * (n_texts + n_numbers)
    flags = 0 if is_ours else IS_WIDE
    for k in range(2):
        first = cursor[AT_LITERAL]
        kind = WHOLE if k else TEXT
        if (n_numbers if k else n_texts) == 0:
            continue
        if is_list:
            if add_values(work, t + 1, kind, is_ours, base) < 0:
                return False
        elif k:
            put_number(work, t)
            if not is_ours and not is_small(work.whole[first], work.part[first]):
                return False
        else:
            put_text(work, tokens[t, 1], tokens[t, 2], False)
        add(work, NOT_POINTS | (_NUMBER if k else _STRING) << REGION | flags, first)
    if is_ours:
        if is_list:
            note_values(work, t + 1)
        else:
            note_number(work, t)
            note_number(work, t)
    if not is_ours:
        cursor[FIELD_EXACT] = 0
    return True
