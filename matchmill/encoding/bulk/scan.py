"""Plain texts to predicates: one pass over the bytes of many texts, without side effects.

    "price < 10 and place in ('Rome', 'Oslo') and (late or day = 3)"

    predicate   name        what                          literals       group
    0           price       range: … to before 10         10             0
    1           place       points, of strings            Rome, Oslo     0
    2           late        fixed: TRUE                                  1
    3           day         range: before 3 to after 3    3              1

A text is plain if it is a conjunction of conditions on different attributes, where a condition may
also be alternatives in parentheses, or if it is alternatives alone. Conditions are comparisons,
`in`, `between`, `like 'ab%'`, `is null` and bare booleans; `not` may precede a condition or a
parenthesis. Conditions on one attribute become one where that is simple: ranges of numbers are
narrowed, lists are joined. All else is for the parser: what is not plain, what is wrong, what no
event can satisfy, and numbers that `decimals.py` has no answer for. So the parser alone decides all
errors.

    predicates[p]    NAME, NAME_STOP   its bytes, without quotes, but with doubled ones inside
                     WHAT              kind | region << 3 | low side << 7 | high side << 9 | flags
                     FIRST, N          its literals
                     GROUP             0, or the number of the alternatives that it belongs to
    whole, part      a literal: the pair of a number, or where a string begins and where it ends;
                     the end is negative if the last character stands for the next one
    row_predicates   where the predicates of a row end
    row_clauses      how many clauses a row has; 0 is for the parser

Inside of quotes, two quotes stand for one. As nothing else is written in two ways, equal bytes
between quotes are equal texts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.bulk.decimals import NO_ANSWER, Powers, double_of, powers
from matchmill.encoding.texts import Texts
from matchmill.kernels.jit import int64, kernel
from matchmill.language.values import INT64_MAX, INT64_MIN, Region
from matchmill.settings import Settings

__all__ = [
    "ABSENT",
    "AFTER",
    "BEFORE",
    "FALSE",
    "FIRST",
    "FIXED",
    "GROUP",
    "HIGH_SIDE",
    "IS_FOREIGN",
    "LOW_SIDE",
    "MOST_CLAUSES",
    "NAME",
    "NAME_STOP",
    "NOT_POINTS",
    "NOT_RANGE",
    "POINTS",
    "PRESENT",
    "RANGE",
    "REGION",
    "TRUE",
    "WHAT",
    "N",
    "Scanned",
    "is_readable",
    "scan",
]

NAME, NAME_STOP, WHAT, FIRST, N, GROUP = range(6)
_WIDTH = 6

# WHAT: the kind, in its lowest three bits
RANGE, POINTS, NOT_POINTS, NOT_RANGE, FIXED = range(5)
REGION, LOW_SIDE, HIGH_SIDE = 3, 7, 9  # shifts
BEFORE, AFTER = 1, 2  # the side of a value where a range ends; 0 if it has no end
IS_FOREIGN = 1 << 11  # the name has letters beyond ASCII and is not quoted
# in place of the region, if the kind is FIXED
ABSENT, PRESENT, FALSE, TRUE = range(4)

_NUMBER, _DATE = int(Region.NUMBER), int(Region.DATE)
_STRING, _BOOLEAN = int(Region.STRING), int(Region.BOOLEAN)
_POINT = BEFORE << LOW_SIDE | AFTER << HIGH_SIDE
_SIDES_OF_POINT = _POINT >> LOW_SIDE

_MOST_PREDICATES = 32  # of one text
MOST_CLAUSES = 16  # no product of fewer is ever kept whole (`language/normal_form.py`)
_DEEP_ENOUGH = 8  # a limit of depth that no plain text comes near

_MOST_DIGITS = INT64_MAX // 10
_LETTER, _DIGIT, _SIGN, _SPACE = 1, 2, 4, 8


def _word(text: str) -> int:
    return int.from_bytes(text.encode(), "big")


_AND, _OR, _NOT, _IN, _IS, _LIKE = map(_word, ("and", "or", "not", "in", "is", "like"))
_NULL, _TRUE_WORD, _FALSE_WORD = map(_word, ("null", "true", "false"))
_BETWEEN, _ILIKE, _RLIKE = map(_word, ("between", "ilike", "rlike"))
_WORDS = (_AND, _OR, _NOT, _IN, _IS, _LIKE, _ILIKE, _RLIKE, _BETWEEN)
_RESERVED = (*_WORDS, _NULL, _TRUE_WORD, _FALSE_WORD)


_ONE, _PAIR, _LIST = range(3)  # of literals


class Scanned(NamedTuple):
    """The predicates of some texts."""

    predicates: np.ndarray  # int64, a row per predicate
    whole: np.ndarray  # int64
    part: np.ndarray  # float64
    row_predicates: np.ndarray  # int64
    row_clauses: np.ndarray  # int64
    n_literals: int


class _Limits(NamedTuple):
    """What a plain text may have at most."""

    n_bytes: int
    n_predicates: int
    n_values: int
    n_pattern_bytes: int
    n_clauses: int


def is_readable(settings: Settings) -> bool:
    """Whether the limits of expressions are wide enough for plain texts."""
    return settings.max_depth >= _DEEP_ENOUGH


def scan(texts: Texts, settings: Settings) -> Scanned:
    """Read texts; those that are not plain have no predicates."""
    n = texts.n_texts
    n_bytes = int(texts.offsets[-1] - texts.offsets[0])
    predicates = np.empty((n_bytes // 2 + 2, _WIDTH), np.int64)
    whole, part = np.empty(2 * n_bytes + 8, np.int64), np.empty(2 * n_bytes + 8, np.float64)
    row_predicates, row_clauses = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    limits = _Limits(
        settings.max_expression_length,
        min(_MOST_PREDICATES, settings.max_conditions),
        settings.max_values,
        settings.max_pattern_length,
        min(MOST_CLAUSES, settings.max_clauses),
    )
    n_literals = _scan(
        texts, _classes(), powers(), limits, predicates, whole, part, row_predicates, row_clauses
    )
    return Scanned(
        predicates[: row_predicates[-1]], whole, part, row_predicates, row_clauses, n_literals
    )


def _classes() -> np.ndarray:
    """Return what each byte is; those beyond ASCII are taken as letters and checked later."""
    classes = np.zeros(256, np.uint8)
    letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
    kinds = ((letters, _LETTER), (b"0123456789", _DIGIT), (b"=<>!&|~", _SIGN), (b" \t\r\n", _SPACE))
    for characters, kind in kinds:
        classes[list(characters)] = kind
    classes[128:] = _LETTER
    return classes


# -- tokens ---------------------------------------------------------------------------------------


@kernel
def _after_space(data: np.ndarray, classes: np.ndarray, at: int, stop: int) -> int:
    while at < stop and classes[data[at]] == _SPACE:
        at += 1
    return at


@kernel
def _after_word(data: np.ndarray, classes: np.ndarray, at: int, stop: int) -> int:
    """Return the end of the name or keyword that begins here; dots join its parts."""
    start = at
    while at < stop:
        kind = classes[data[at]]
        if kind == _LETTER or (kind == _DIGIT and at > start):
            at += 1
        elif data[at] == 46 and at > start and at + 1 < stop and classes[data[at + 1]] == _LETTER:
            at += 2
        else:
            break
    return at


@kernel
def _word_at(data: np.ndarray, start: int, stop: int) -> int:
    """Return a word of up to seven letters, in lower case, as a number; 0 for other words.

    Those with letters beyond ASCII are -1.
    """
    word = int64(0)
    for k in range(start, stop):
        b = int64(data[k])
        if b >= 128:
            return -1
        if 65 <= b <= 90:
            b += 32
        word = (word << 8 | b) & 0xFFFFFFFFFFFFFF
    return word if stop - start <= 7 else 0


@kernel
def _after_quoted(data: np.ndarray, quote: int, at: int, stop: int) -> int:
    """Return the place of the closing quote; -1 if there is none, or a `?` before it.

    A `?` begins a variable, and the parser looks for one before it looks at quotes.
    """
    while at < stop:
        b = data[at]
        if b == quote:
            if at + 1 < stop and data[at + 1] == quote:
                at += 1
            else:
                return at
        elif b == 63:
            return -1
        at += 1
    return -1


# -- literals: (region or -1, the place after it, whole, part) ------------------------------------


@kernel
def _number(
    data: np.ndarray,
    classes: np.ndarray,
    fives: np.ndarray,
    tens: np.ndarray,
    at: int,
    stop: int,
) -> tuple[int, int, int, float]:
    is_negative = data[at] == 45
    if is_negative:
        at += 1
    digits, exponent = int64(0), int64(0)
    is_decimal = has_digits = False
    while at < stop:
        b = int64(data[at])
        if 48 <= b <= 57:
            if digits > _MOST_DIGITS or (digits == _MOST_DIGITS and b > 55):
                return -1, at, 0, 0.0
            digits = 10 * digits + (b - 48)
            has_digits = True
            if is_decimal:
                exponent -= 1
        elif b == 46 and not is_decimal:
            is_decimal = True
        else:
            break
        at += 1
    if not has_digits:
        return -1, at, 0, 0.0
    if at < stop and data[at] | 32 == 101:
        is_decimal = True
        at += 1
        is_down = at < stop and data[at] == 45
        if at < stop and (data[at] == 45 or data[at] == 43):
            at += 1
        start, power = at, int64(0)
        while at < stop and classes[data[at]] == _DIGIT and at - start < 6:
            power = 10 * power + int64(data[at]) - 48
            at += 1
        if at == start:
            return -1, at, 0, 0.0
        exponent += -power if is_down else power
    if at < stop and (classes[data[at]] & (_LETTER | _DIGIT) or data[at] == 46):
        return -1, at, 0, 0.0  # a number takes every letter that follows
    if not is_decimal:
        return _NUMBER, at, -digits if is_negative else digits, 0.0
    value = double_of(digits, exponent, fives, tens)
    if value == NO_ANSWER:
        return -1, at, 0, 0.0
    if is_negative:
        value = -value
    if value >= 9223372036854775808.0:
        return _NUMBER, at, INT64_MAX, value
    if value <= -9223372036854775808.0:
        is_least = value == -9223372036854775808.0
        return _NUMBER, at, INT64_MIN, 0.0 if is_least else value
    whole = int64(value)
    return _NUMBER, at, whole, value - float(whole)


@kernel
def _literal(
    data: np.ndarray,
    classes: np.ndarray,
    fives: np.ndarray,
    tens: np.ndarray,
    at: int,
    stop: int,
) -> tuple[int, int, int, float]:
    """Read a literal; a string is where it begins and where it ends."""
    at = _after_space(data, classes, at, stop)
    if at >= stop:
        return -1, at, 0, 0.0
    b = data[at]
    if b == 39:
        end = _after_quoted(data, 39, at + 1, stop)
        return (-1 if end < 0 else _STRING), end + 1, at + 1, float(end)
    if classes[b] != _LETTER:
        if classes[b] == _DIGIT or b == 45 or b == 46:
            return _number(data, classes, fives, tens, at, stop)
        return -1, at, 0, 0.0
    end = _after_word(data, classes, at, stop)
    word = _word_at(data, at, end)
    if word in (_TRUE_WORD, _FALSE_WORD):
        return _BOOLEAN, end, int64(word == _TRUE_WORD), 0.0
    # Dates and timestamps are on a dimension of their own: the parser reads conditions with them.
    return -1, at, 0, 0.0


# -- values ---------------------------------------------------------------------------------------


@kernel
def _number_order(whole: int, part: float, other_whole: int, other_part: float) -> int:
    """Return -1, 0 or 1: how two numbers compare."""
    if whole != other_whole:
        return -1 if whole < other_whole else 1
    return 0 if part == other_part else -1 if part < other_part else 1


@kernel
def _string_order(data: np.ndarray, start: int, stop: int, other: int, other_stop: int) -> int:
    """Return how two strings compare: -1, 0, 1; 2 if one has a quote, which is doubled here."""
    order = int64(0)
    length, other_length = stop - start, other_stop - other
    for k in range(max(length, other_length)):
        a = int64(data[start + k]) if k < length else int64(-1)
        b = int64(data[other + k]) if k < other_length else int64(-1)
        if a == 39 or b == 39:
            return 2
        if order == 0 and a != b:
            order = int64(-1 if a < b else 1)
    return int(order)


@kernel
def _prefix_stop(data: np.ndarray, start: int, stop: int) -> int:
    """Return where the prefix of a like pattern ends; -1 if it is no prefix and no plain text.

    Its last character is one that can be counted up, which no quote is part of.
    """
    end = stop - 1
    if end <= start or data[end] != 37:
        return -1
    for k in range(start, end):
        b = data[k]
        if b == 37 or b == 95 or b == 92:
            return -1
    last = data[end - 1]
    return -1 if last >= 126 or last == 38 or last == 39 else end


# -- conditions -----------------------------------------------------------------------------------


@kernel
def _narrowed(
    predicates: np.ndarray, whole: np.ndarray, part: np.ndarray, p: int, q: int, n: int
) -> int:
    """Narrow range p of numbers to what is in range q, too; return how many literals there are.

    The ends are written behind the first n literals. -1 if nothing is left.
    """
    new = n
    sides = int64(0)
    for is_high in range(2):
        shift = HIGH_SIDE if is_high else LOW_SIDE
        best = best_side = int64(-1)
        for k in range(2):
            i = q if k else p
            side = (predicates[i, WHAT] >> shift) & 3
            if side == 0:
                continue
            at = predicates[i, FIRST] + (predicates[i, N] - 1 if is_high else 0)
            order = int64(1)
            if best >= 0:
                order = _number_order(whole[at], part[at], whole[best], part[best])
                if order == 0:
                    order = side - best_side
                if is_high:
                    order = -order
            if order > 0:
                best, best_side = at, side
        if best >= 0:
            whole[new], part[new] = whole[best], part[best]
            sides |= best_side << shift
            new += 1
    if new - n == 2:
        order = _number_order(whole[n], part[n], whole[n + 1], part[n + 1])
        if order > 0 or (order == 0 and sides != _POINT):
            return -1
    kept = predicates[p, WHAT] & ~(3 << LOW_SIDE | 3 << HIGH_SIDE)
    predicates[p, WHAT] = kept | sides
    predicates[p, FIRST], predicates[p, N] = n, new - n
    return new


@kernel
def _joined(
    predicates: np.ndarray, whole: np.ndarray, part: np.ndarray, p: int, q: int, n: int, most: int
) -> int:
    """Give predicate p the literals of q, too; return as `_narrowed`."""
    first, n_p, n_q = predicates[p, FIRST], predicates[p, N], predicates[q, N]
    predicates[p, N] = n_p + n_q
    if first + n_p == predicates[q, FIRST]:
        return n
    if n + n_p + n_q > most:
        return -1
    predicates[p, FIRST] = n
    for k in range(n_p + n_q):
        at = first + k if k < n_p else predicates[q, FIRST] + k - n_p
        whole[n + k], part[n + k] = whole[at], part[at]
    return int(n + n_p + n_q)


@kernel
def _is_list(predicates: np.ndarray, p: int, kind: int) -> bool:
    """Whether a predicate is a list of points, or without them, or about a single one."""
    what = predicates[p, WHAT]
    if what & 7 == kind:
        return True
    is_single = predicates[p, N] == 1 and (what >> LOW_SIDE) & 15 == _SIDES_OF_POINT
    return bool(is_single and what & 7 == (RANGE if kind == POINTS else NOT_RANGE))


@kernel
def _united(
    predicates: np.ndarray,
    whole: np.ndarray,
    part: np.ndarray,
    p: int,
    q: int,
    is_any: bool,
    n: int,
    most: int,
) -> int:
    """Make one predicate p of two on one attribute, as alternatives or as conditions.

    Return how many literals there are; -1 if that is left to the parser.
    """
    what, other = predicates[p, WHAT], predicates[q, WHAT]
    region = (what >> REGION) & 15
    if what & 7 == FIXED or other & 7 == FIXED or region != (other >> REGION) & 15:
        return -1
    if (what ^ other) & IS_FOREIGN:
        return -1
    if is_any:
        if _is_list(predicates, p, POINTS) and _is_list(predicates, q, POINTS):
            predicates[p, WHAT] = POINTS | region << REGION | what & IS_FOREIGN
            return _joined(predicates, whole, part, p, q, n, most)
        return -1
    if _is_list(predicates, p, NOT_POINTS) and _is_list(predicates, q, NOT_POINTS):
        predicates[p, WHAT] = NOT_POINTS | region << REGION | what & IS_FOREIGN
        return _joined(predicates, whole, part, p, q, n, most)
    if what & 7 != RANGE or other & 7 != RANGE or region == _STRING or n + 2 > most:
        return -1
    return _narrowed(predicates, whole, part, p, q, n)


@kernel
def _negated(what: int) -> int:
    """Return when a predicate is FALSE."""
    kind = what & 7
    if kind == FIXED:
        return what ^ (1 << REGION)  # absent and present, false and true
    low, high = (what >> LOW_SIDE) & 3, (what >> HIGH_SIDE) & 3
    if kind == RANGE and (low == 0 or high == 0):
        ends = 3 << LOW_SIDE | 3 << HIGH_SIDE
        return (what & ~ends) | high << LOW_SIDE | low << HIGH_SIDE
    if kind in (POINTS, NOT_POINTS):
        return what + (NOT_POINTS - POINTS if kind == POINTS else POINTS - NOT_POINTS)
    return what + (NOT_RANGE - RANGE if kind == RANGE else RANGE - NOT_RANGE)


@kernel
def _same_name(data: np.ndarray, predicates: np.ndarray, p: int, q: int) -> bool:
    start, other = predicates[p, NAME], predicates[q, NAME]
    length = predicates[p, NAME_STOP] - start
    if predicates[q, NAME_STOP] - other != length:
        return False
    for k in range(length):
        if data[start + k] != data[other + k]:
            return False
    return True


@kernel
def _literals(
    data: np.ndarray,
    classes: np.ndarray,
    fives: np.ndarray,
    tens: np.ndarray,
    form: int,
    at: int,
    stop: int,
    n: int,
    whole: np.ndarray,
    part: np.ndarray,
) -> tuple[int, int, int]:
    """Read `1`, `1 and 2` or `(1, 2, 3)`; return the place after it, the type, and how many.

    All have one type. The place is -1 if that is not what is there.
    """
    if form == _LIST:
        at = _after_space(data, classes, at, stop)
        if at >= stop or data[at] != 40:
            return -1, 0, 0
        at += 1
    kind, start = int64(-1), n
    while True:
        region, at, a, b = _literal(data, classes, fives, tens, at, stop)
        if region < 0 or (kind >= 0 and region != kind):
            return -1, 0, 0
        kind = int64(region)
        whole[n], part[n] = a, b
        n += 1
        if form == _ONE or (form == _PAIR and n == start + 2):
            return at, kind, n - start
        at = _after_space(data, classes, at, stop)
        if form == _PAIR:
            end = _after_word(data, classes, at, stop)
            if _word_at(data, at, end) != _AND:
                return -1, 0, 0
            at = end
        elif at >= stop or (data[at] != 41 and data[at] != 44):
            return -1, 0, 0
        elif data[at] == 41:
            return at + 1, kind, n - start
        else:
            at += 1


@kernel
def _compared(
    first: int, second: int, region: int, n: int, whole: np.ndarray, part: np.ndarray
) -> tuple[int, int]:
    """Return WHAT and the number of literals of a comparison with literal n; -1 if it is none."""
    is_equal = first == 61 and (second == 0 or second == 61)
    is_unequal = (first == 33 and second == 61) or (first == 60 and second == 62)
    if region == _BOOLEAN:
        if not is_equal and not is_unequal:
            return -1, 0
        return FIXED | (TRUE if (whole[n] == 1) == is_equal else FALSE) << REGION, 0
    what = region << REGION
    if is_equal or is_unequal:
        what |= RANGE if is_equal else NOT_RANGE
        if region != _DATE:
            return what | _POINT, 1
        whole[n + 1], part[n + 1] = whole[n] + 1, 0.0  # before the next day
        return what | BEFORE << LOW_SIDE | BEFORE << HIGH_SIDE, 2
    if (first != 60 and first != 62) or (second != 0 and second != 61):
        return -1, 0
    is_after = (first == 62) == (second == 0)
    if is_after and region == _DATE:
        whole[n] += 1
        is_after = False
    side = AFTER if is_after else BEFORE
    return what | side << (LOW_SIDE if first == 62 else HIGH_SIDE), 1


@kernel
def _between(data: np.ndarray, region: int, n: int, whole: np.ndarray, part: np.ndarray) -> int:
    """Return WHAT of a range from literal n to the next one; -1 if nothing is in it."""
    if region == _BOOLEAN:
        return -1
    if region == _STRING:
        order = _string_order(data, whole[n], int64(part[n]), whole[n + 1], int64(part[n + 1]))
    else:
        order = _number_order(whole[n], part[n], whole[n + 1], part[n + 1])
    if order > 0:
        return -1
    side = AFTER
    if region == _DATE:
        whole[n + 1] += 1
        side = BEFORE
    return RANGE | region << REGION | BEFORE << LOW_SIDE | side << HIGH_SIDE


@kernel
def _like(
    data: np.ndarray,
    classes: np.ndarray,
    most: int,
    at: int,
    stop: int,
    n: int,
    whole: np.ndarray,
    part: np.ndarray,
) -> tuple[int, int, int]:
    """Read the pattern of a prefix: from it to before the one that follows; as `_condition`."""
    at = _after_space(data, classes, at, stop)
    if at >= stop or data[at] != 39:
        return -1, 0, 0
    end = _after_quoted(data, 39, at + 1, stop)
    if end < 0 or end - at > most:
        return -1, 0, 0
    prefix_stop = _prefix_stop(data, at + 1, end)
    if prefix_stop < 0:
        return -1, 0, 0
    whole[n], part[n] = at + 1, float(prefix_stop)
    whole[n + 1], part[n + 1] = at + 1, -float(prefix_stop)
    sides = BEFORE << LOW_SIDE | BEFORE << HIGH_SIDE
    return end + 1, RANGE | _STRING << REGION | sides, 2


@kernel
def _after_not(data: np.ndarray, classes: np.ndarray, at: int, stop: int) -> int:
    """Return the place of what follows a `not`; the same place if there is none."""
    end = _after_word(data, classes, at, stop)
    return _after_space(data, classes, end, stop) if _word_at(data, at, end) == _NOT else at


@kernel
def _condition(
    data: np.ndarray,
    classes: np.ndarray,
    fives: np.ndarray,
    tens: np.ndarray,
    most_pattern: int,
    at: int,
    stop: int,
    n: int,
    whole: np.ndarray,
    part: np.ndarray,
) -> tuple[int, int, int]:
    """Read what follows a name; return the place after it, WHAT, and how many literals it has.

    The place is -1 if it is nothing plain.
    """
    form, first, second = int64(_ONE), int64(0), int64(0)
    word, is_negated = int64(0), False
    if at < stop and classes[data[at]] == _SIGN:
        first = int64(data[at])
        at += 1
        if at < stop and classes[data[at]] == _SIGN:
            second = int64(data[at])
            at += 1
            if at < stop and classes[data[at]] == _SIGN:
                return -1, 0, 0
    else:
        end = _after_word(data, classes, at, stop)
        word = _word_at(data, at, end)
        if end == at:
            is_end = at >= stop or data[at] == 41
            return (at if is_end else -1), FIXED | TRUE << REGION, 0
        if word in (_AND, _OR):
            return at, FIXED | TRUE << REGION, 0
        is_null_test = word == _IS
        if word in (_NOT, _IS):
            at = _after_space(data, classes, end, stop)
            is_negated = word == _NOT
            if is_null_test:
                start = at
                at = _after_not(data, classes, start, stop)
                is_negated = at != start
            end = _after_word(data, classes, at, stop)
            word = _word_at(data, at, end)
        if is_null_test:
            state = PRESENT if is_negated else ABSENT
            return (end if word == _NULL else -1), FIXED | state << REGION, 0
        at = end
        if word == _LIKE:
            at, what, n_more = _like(data, classes, most_pattern, at, stop, n, whole, part)
            return at, (_negated(what) if is_negated else what), n_more
        if word != _IN and word != _BETWEEN:
            return -1, 0, 0
        form = int64(_LIST if word == _IN else _PAIR)
    at, region, n_more = _literals(data, classes, fives, tens, form, at, stop, n, whole, part)
    if at < 0:
        return -1, 0, 0
    if form == _ONE:
        what, n_more = _compared(first, second, region, n, whole, part)
    elif form == _PAIR:
        what = _between(data, region, n, whole, part)
    else:
        what = POINTS | region << REGION
        if region != _NUMBER and region != _STRING:
            what = int64(-1)
    if what < 0:
        return -1, 0, 0
    return at, (_negated(what) if is_negated else what), n_more


@kernel
def _scan_row(
    data: np.ndarray,
    at: int,
    stop: int,
    classes: np.ndarray,
    fives: np.ndarray,
    tens: np.ndarray,
    limits: _Limits,
    predicates: np.ndarray,
    whole: np.ndarray,
    part: np.ndarray,
    first: int,
    n: int,
) -> tuple[int, int, int]:
    """Read one text; return the ends of its predicates and literals, and how many clauses it has.

    A text that is not plain has no clauses.
    """
    p = first
    most = n + 2 * (stop - at)
    n_clauses, n_values = int64(1), int64(0)
    n_parentheses = group = n_groups = group_size = int64(0)
    is_open, is_all, is_any, is_outer_negated = False, False, False, False
    while True:
        at = _after_space(data, classes, at, stop)
        start = at
        at = _after_not(data, classes, start, stop)
        is_negated = at != start
        if at < stop and data[at] == 40 and not is_open and not is_any:
            n_parentheses += 1
            is_open, is_outer_negated = True, is_negated
            if not is_negated:
                n_groups += 1
                group, group_size = n_groups, int64(0)
            start = _after_space(data, classes, at + 1, stop)
            at = _after_not(data, classes, start, stop)
            is_negated = (at != start) != is_outer_negated
        elif is_open and is_outer_negated:
            is_negated = not is_negated
        if at >= stop or p - first == limits.n_predicates:
            return 0, 0, 0
        flags = int64(0)
        if data[at] == 34:
            predicates[p, NAME] = at + 1
            end = _after_quoted(data, 34, at + 1, stop)
            if end <= at + 1:
                return 0, 0, 0
            predicates[p, NAME_STOP] = end
            at = end + 1
        else:
            end = _after_word(data, classes, at, stop)
            word = _word_at(data, at, end)
            if end == at or word in _RESERVED:
                return 0, 0, 0
            if word < 0:
                flags = int64(IS_FOREIGN)
            predicates[p, NAME], predicates[p, NAME_STOP] = at, end
            at = end
        at = _after_space(data, classes, at, stop)
        at, what, n_more = _condition(
            data, classes, fives, tens, limits.n_pattern_bytes, at, stop, n, whole, part
        )
        if at < 0:
            return 0, 0, 0
        kind = what & 7
        n_values += n_more if kind in (POINTS, NOT_POINTS) else 2
        predicates[p, WHAT] = (_negated(what) if is_negated else what) | flags
        predicates[p, FIRST], predicates[p, N] = n, n_more
        predicates[p, GROUP] = group
        n += n_more
        q = first
        while q < p and not _same_name(data, predicates, q, p):
            q += 1
        if q == p:
            p += 1
            group_size += 1
        else:
            if predicates[q, GROUP] != group:
                return 0, 0, 0
            n = _united(predicates, whole, part, q, p, group != 0 or is_any, n, most)
            if n < 0:
                return 0, 0, 0
        at = _after_space(data, classes, at, stop)
        if is_open and at < stop and data[at] == 41:
            if group != 0:
                n_clauses *= group_size
                if n_clauses > limits.n_clauses:
                    return 0, 0, 0
                group = int64(0)
            is_open = False
            at = _after_space(data, classes, at + 1, stop)
        if at >= stop:
            break
        end = _after_word(data, classes, at, stop)
        word = _word_at(data, at, end)
        if word == _OR and (is_open or (n_parentheses == 0 and not is_all)):
            is_any = is_any or not is_open
        elif word == _AND and not is_open and not is_any:
            is_all = True
        else:
            return 0, 0, 0
        at = end
    if is_open or n_values > limits.n_values:
        return 0, 0, 0
    if is_any:
        n_clauses = p - first
        for q in range(first, p):
            predicates[q, GROUP] = 1
    return p, n, (n_clauses if n_clauses <= limits.n_clauses else 0)


@kernel
def _scan(
    texts: Texts,
    classes: np.ndarray,
    powers: Powers,
    limits: _Limits,
    out_predicates: np.ndarray,
    out_whole: np.ndarray,
    out_part: np.ndarray,
    out_row_predicates: np.ndarray,
    out_row_clauses: np.ndarray,
) -> int:
    data, offsets = texts.data, texts.offsets
    fives, tens = powers.fives, powers.tens
    p = n = int64(0)
    for row in range(len(offsets) - 1):
        start, stop = offsets[row], offsets[row + 1]
        if stop - start <= limits.n_bytes:
            end, n_end, n_clauses = _scan_row(
                data,
                start,
                stop,
                classes,
                fives,
                tens,
                limits,
                out_predicates,
                out_whole,
                out_part,
                p,
                n,
            )
            out_row_clauses[row] = n_clauses
            if n_clauses > 0:
                p, n = end, n_end
        out_row_predicates[row + 1] = p
    return int(n)
