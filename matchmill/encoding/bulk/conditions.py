"""What follows a name in an expression: a comparison, `in`, `between`, `like 'ab%'`, `is null`."""

from __future__ import annotations

import numpy as np

from matchmill.encoding.bulk.literals import LIST, ONE, PAIR, literals
from matchmill.encoding.bulk.predicates import (
    ABSENT,
    AFTER,
    BEFORE,
    FALSE,
    FIXED,
    HIGH_SIDE,
    LOW_SIDE,
    NOT_RANGE,
    POINT,
    POINTS,
    PRESENT,
    RANGE,
    REGION,
    TRUE,
)
from matchmill.encoding.bulk.united import negated, number_order
from matchmill.encoding.bulk.words import (
    AND_WORD,
    BETWEEN_WORD,
    IN_WORD,
    IS_WORD,
    LIKE_WORD,
    NOT_WORD,
    NULL_WORD,
    OR_WORD,
    SIGN,
    after_not,
    after_quoted,
    after_space,
    after_word,
    word_at,
)
from matchmill.kernels.jit import int64, kernel
from matchmill.language.values import Region

__all__ = ["read_condition"]

_NUMBER, _DATE = int(Region.NUMBER), int(Region.DATE)
_STRING, _BOOLEAN = int(Region.STRING), int(Region.BOOLEAN)


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
            return what | POINT, 1
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
        order = number_order(whole[n], part[n], whole[n + 1], part[n + 1])
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
    at = after_space(data, classes, at, stop)
    if at >= stop or data[at] != 39:
        return -1, 0, 0
    end = after_quoted(data, 39, at + 1, stop)
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
def read_condition(
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
    form, first, second = int64(ONE), int64(0), int64(0)
    word, is_negated = int64(0), False
    if at < stop and classes[data[at]] == SIGN:
        first = int64(data[at])
        at += 1
        if at < stop and classes[data[at]] == SIGN:
            second = int64(data[at])
            at += 1
            if at < stop and classes[data[at]] == SIGN:
                return -1, 0, 0
    else:
        end = after_word(data, classes, at, stop)
        word = word_at(data, at, end)
        if end == at:
            is_end = at >= stop or data[at] == 41
            return (at if is_end else -1), FIXED | TRUE << REGION, 0
        if word in (AND_WORD, OR_WORD):
            return at, FIXED | TRUE << REGION, 0
        is_null_test = word == IS_WORD
        if word in (NOT_WORD, IS_WORD):
            at = after_space(data, classes, end, stop)
            is_negated = word == NOT_WORD
            if is_null_test:
                start = at
                at = after_not(data, classes, start, stop)
                is_negated = at != start
            end = after_word(data, classes, at, stop)
            word = word_at(data, at, end)
        if is_null_test:
            state = PRESENT if is_negated else ABSENT
            return (end if word == NULL_WORD else -1), FIXED | state << REGION, 0
        at = end
        if word == LIKE_WORD:
            at, what, n_more = _like(data, classes, most_pattern, at, stop, n, whole, part)
            return at, (negated(what) if is_negated else what), n_more
        if word != IN_WORD and word != BETWEEN_WORD:
            return -1, 0, 0
        form = int64(LIST if word == IN_WORD else PAIR)
    at, region, n_more = literals(data, classes, fives, tens, form, at, stop, n, whole, part)
    if at < 0:
        return -1, 0, 0
    if form == ONE:
        what, n_more = _compared(first, second, region, n, whole, part)
    elif form == PAIR:
        what = _between(data, region, n, whole, part)
    else:
        what = POINTS | region << REGION
        if region != _NUMBER and region != _STRING:
            what = int64(-1)
    if what < 0:
        return -1, 0, 0
    return at, (negated(what) if is_negated else what), n_more
