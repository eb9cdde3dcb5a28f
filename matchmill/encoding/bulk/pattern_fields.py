"""The fields of a JSON pattern: tokens become predicates.

    "state": ["running", 5, {"prefix": "stop"}, {"suffix": "ed"}, {"exists": false}]

    predicate   derivation        what                                 literals
    0           values            points, of strings                   running
    1           values            points, of numbers, joined to 0      5
    2           values            range of strings, joined to 0        from stop to before stoq
    3           values.reversed   range of strings                     from de to before df
    4           value             fixed: ABSENT

Each derivation is a dimension, so this field has three alternatives: its clauses. The predicates
that are *joined* to the one before them are one set with it.

A field is left to the parser if it has match types that are not here, is wrong, or has twice the
same value or set.
"""

from __future__ import annotations

import numpy as np

from matchmill.encoding.bulk.pattern_twins import has_twins
from matchmill.encoding.bulk.pattern_types import (
    add_anything_but,
    add_numeric,
    add_text,
    add_values,
    derivation_of,
    note_values,
)
from matchmill.encoding.bulk.pattern_work import (
    ANYTHING_BUT,
    AT_LITERAL,
    AT_PREDICATE,
    EXISTS,
    FIELD_EXACT,
    N_CONDITIONS,
    N_VALUES,
    NUMERIC,
    VALUE,
    VALUES,
    Work,
    add,
    match_type,
)
from matchmill.encoding.bulk.predicates import (
    ABSENT,
    ABSENT_OR_LIST,
    DERIVATION,
    FALSE,
    FIXED,
    GROUP,
    IS_JOINED,
    NAME,
    NAME_STOP,
    POINTS,
    PRESENT,
    REGION,
    TRUE,
    WHAT,
)
from matchmill.encoding.bulk.tokens import (
    DOUBLE,
    END_OF_LIST,
    END_OF_OBJECT,
    FALSE_TOKEN,
    NULL,
    OBJECT,
    TEXT,
    TRUE_TOKEN,
    WHOLE,
    token_after,
)
from matchmill.kernels.jit import int64, kernel
from matchmill.language.values import Region

__all__ = ["read_field"]

_NUMBER, _STRING = int(Region.NUMBER), int(Region.STRING)
_MOST_PAIRS = 64  # of match types in a field


@kernel
def _may_be_address(data: np.ndarray, start: int, stop: int) -> bool:
    """Whether a text could be an IP address: digits, points and colons, and what may follow a %."""
    has_mark = False
    for k in range(start, stop):
        b = data[k]
        if b == 37:
            break
        if b == 46 or b == 58:
            has_mark = True
        elif not (48 <= b <= 57 or 97 <= b | 32 <= 102):
            return False
    return has_mark


@kernel
def _object_type(
    work: Work, t: int, derivation: int, most_bytes: int, is_ours: bool, base: int
) -> bool:
    """Add the match type that begins at a token, if it is of this derivation."""
    tokens = work.tokens
    kind = match_type(tokens, work.data, work.words, work.word_offsets, t + 1)
    if derivation_of(tokens, t, kind, is_ours) != derivation:
        return True
    if kind == EXISTS:
        return True  # `_presence`
    if kind == NUMERIC:
        return add_numeric(work, t, is_ours)
    if kind == ANYTHING_BUT:
        return add_anything_but(work, t, is_ours, base)
    return add_text(work, t, kind, derivation, most_bytes, is_ours)


@kernel
def _counted(work: Work, t: int, is_ours: bool) -> tuple[bool, int, int, int, int, int]:
    """Look at the alternatives from a token on.

    Return whether they are in order; how many texts, numbers and match types there are; which
    constants (bits: true, false, null); which derivations and `exists` (bits 8 and 9).
    """
    tokens = work.tokens
    bad = (False, int64(0), int64(0), int64(0), int64(0), int64(0))
    n_texts = n_numbers = n_types = constants = derivations = int64(0)
    while tokens[t, 0] != END_OF_LIST:
        token = tokens[t, 0]
        if token == TEXT:
            n_texts += 1
            if not is_ours and _may_be_address(work.data, tokens[t, 1], tokens[t, 2]):
                return bad
        elif token in (WHOLE, DOUBLE):
            n_numbers += 1
        elif token in (TRUE_TOKEN, FALSE_TOKEN, NULL):
            bit = 1 << (token - TRUE_TOKEN)
            if constants & bit:
                return bad
            constants |= bit
        elif token == OBJECT:
            n_types += 1
            kind = match_type(tokens, work.data, work.words, work.word_offsets, t + 1)
            derivation = derivation_of(tokens, t, kind, is_ours) if kind >= 0 else -1
            after = token_after(tokens, t + 2)
            if derivation < 0 or tokens[after, 0] != END_OF_OBJECT:
                return bad
            if kind == EXISTS:
                token = tokens[t + 2, 0]
                if token != TRUE_TOKEN and token != FALSE_TOKEN:
                    return bad
                bit = 256 if token == TRUE_TOKEN else 512
                if derivations & bit:
                    return bad
                derivations |= bit
            else:
                if derivations >> derivation & 1 and kind == ANYTHING_BUT and not is_ours:
                    return bad
                derivations |= 1 << derivation
            t = after
        else:
            return bad
        t += 1
    return True, n_texts, n_numbers, n_types, constants, derivations


@kernel
def _presence(work: Work, is_null: bool, exists: int, is_ours: bool) -> bool:
    """Add null and `exists`; whether that is not for the parser."""
    cursor = work.cursor
    is_absent = exists & 512 != 0
    is_present = exists & 256 != 0
    if is_ours:
        if is_present and (is_absent or is_null):
            return False
        if is_null and is_absent:
            return False
        if is_present or is_absent or is_null:
            state = PRESENT if is_present else ABSENT
            add(work, FIXED | state << REGION, cursor[AT_LITERAL])
        return True
    if is_null or is_absent:
        add(work, FIXED | ABSENT_OR_LIST << REGION, cursor[AT_LITERAL])
    if is_null or is_absent or is_present:
        cursor[FIELD_EXACT] = 0
    return True


@kernel
def read_field(
    work: Work, t: int, name: int, name_stop: int, group: int, most_bytes: int, base: int
) -> int:
    """Add the predicates of the alternatives from token t on.

    Return how many clauses they are: 0 if every event satisfies them, -1 if they are for the
    parser. The dialect is ours if `base`, the base of hashes, is positive.
    """
    is_ours = base > 0
    predicates, cursor, tokens = work.predicates, work.cursor, work.tokens
    good, n_texts, n_numbers, n_types, constants, derivations = _counted(work, t, is_ours)
    if not good or n_types > _MOST_PAIRS:
        return -1
    cursor[N_CONDITIONS] += 2 + 3 * n_types
    cursor[N_VALUES] += 2 * (n_texts + n_numbers) + 6 * n_types + 6
    field_start, first_literal = cursor[AT_PREDICATE], cursor[AT_LITERAL]
    cursor[FIELD_EXACT] = 1
    n_clauses = int64(0)
    if is_ours:
        note_values(work, t)
    for step in range(5):
        derivation = (step + 1) % 5  # what is about the value itself comes last
        start = cursor[AT_PREDICATE]
        if derivation == VALUES:
            for k in range(2):
                first = cursor[AT_LITERAL]
                if (n_numbers if k else n_texts) > 0:
                    if add_values(work, t, WHOLE if k else TEXT, is_ours, base) < 0:
                        return -1
                    add(work, POINTS | (_NUMBER if k else _STRING) << REGION, first)
            for k in range(2):
                if constants >> k & 1:
                    state = FALSE if k else TRUE
                    add(work, FIXED | state << REGION, cursor[AT_LITERAL])
        if derivations >> derivation & 1:
            at = t
            while tokens[at, 0] != END_OF_LIST:
                if tokens[at, 0] == OBJECT:
                    if not _object_type(work, at, derivation, most_bytes, is_ours, base):
                        return -1
                at = token_after(tokens, at)
            if n_types > 1 or n_numbers == 1:
                if has_twins(work, start):
                    return -1
        if derivation == VALUE:
            if not _presence(work, constants >> 2 & 1 == 1, derivations & 768, is_ours):
                return -1
        for p in range(start, cursor[AT_PREDICATE]):
            predicates[p, NAME], predicates[p, NAME_STOP] = name, name_stop
            predicates[p, GROUP] = group
            predicates[p, WHAT] |= derivation << DERIVATION
            if p > start:
                predicates[p, WHAT] |= IS_JOINED
        n_clauses += cursor[AT_PREDICATE] > start
    if not is_ours and derivations & 256:
        cursor[AT_PREDICATE], cursor[AT_LITERAL] = field_start, first_literal
        return 0
    return int(n_clauses)
