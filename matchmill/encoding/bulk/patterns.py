"""JSON patterns to predicates: from their tokens, without side effects.

    {"detail": {"state": ["running", {"prefix": "stop"}], "load": [{"numeric": [">", 5]}]}}

    name           predicates (`pattern_fields.py`)
    detail.state   points running, joined with the range of stop
    detail.load    range after 5

A pattern is plain if its fields have values and the match types `prefix`, `suffix`,
`equals-ignore-case`, `anything-but` with values, `numeric`, `exists` and, in the dialect
`eventbridge`, `exactly`. All else, `$or`, `wildcard`, `cidr`, what is wrong, equal names, equal
values in one list, is for the parser, which alone decides all errors. The two dialects differ in
what a few match types are about, and in which patterns their predicates say all that they mean.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

import numpy as np

from matchmill.encoding.bulk.constants import LEAST_BASE, MOST_BASE
from matchmill.encoding.bulk.pattern_fields import read_field
from matchmill.encoding.bulk.pattern_work import (
    AT_DATA,
    AT_FIELD,
    AT_FLOAT,
    AT_NAME,
    AT_PREDICATE,
    FIELD_EXACT,
    MATCH_TYPES,
    N_CONDITIONS,
    N_VALUES,
    Work,
    match_type,
)
from matchmill.encoding.bulk.predicates import GROUP, MOST_CLAUSES, WIDTH, Scanned
from matchmill.encoding.bulk.tokens import (
    END_OF_OBJECT,
    KEY,
    LIST,
    OBJECT,
    Tokens,
    token_after,
)
from matchmill.encoding.texts import strings_to_texts
from matchmill.kernels.jit import int64, kernel
from matchmill.settings import Settings

__all__ = ["ScannedPatterns", "scan_patterns"]

_MOST_FIELDS = 32  # and objects, of one pattern
_DEEPEST = 5
_START, _STOP = range(2)

# What the predicates of a pattern say of it; as numbered in `engine/subscription_table.py`.
EXACT, WITHOUT_LISTS, SUPERSET = range(3)


class ScannedPatterns(NamedTuple):
    """The predicates of some patterns."""

    scanned: Scanned
    names: np.ndarray  # the bytes of names
    data: np.ndarray  # the bytes of constants
    exactness: np.ndarray  # of each pattern
    fields: np.ndarray  # `Work.fields`
    row_fields: np.ndarray
    floats: np.ndarray
    row_floats: np.ndarray


class _Limits(NamedTuple):
    n_bytes: int  # of a pattern of text
    n_conditions: int
    n_values: int
    n_clauses: int


def scan_patterns(tokens: Tokens, settings: Settings, is_ours: bool) -> ScannedPatterns:
    """Read patterns; those that are not plain have no predicates."""
    n, n_tokens = len(tokens.row_tokens) - 1, int(tokens.row_tokens[-1])
    words = strings_to_texts(MATCH_TYPES)
    work = Work(
        tokens.tokens,
        tokens.parts,
        tokens.data,
        words.data,
        words.offsets,
        np.empty((n_tokens + 4, WIDTH), np.int64),
        np.empty(2 * n_tokens + 4, np.int64),
        np.empty(2 * n_tokens + 4, np.float64),
        np.empty(4 * tokens.n_bytes + 64, np.uint8),
        np.empty((n_tokens + 1, 3), np.int64),
        np.empty(4 * n_tokens + 4, np.float64),
        np.zeros(9, np.int64),
    )
    work.cursor[AT_DATA] = tokens.n_bytes
    limits = _Limits(
        settings.max_pattern_length,
        settings.max_conditions,
        settings.max_values,
        min(MOST_CLAUSES, settings.max_clauses),
    )
    base = LEAST_BASE + secrets.randbelow(MOST_BASE - LEAST_BASE) if is_ours else 0
    ends = np.zeros((3, n + 1), np.int64)
    row_clauses, exactness = np.zeros(n, np.int64), np.zeros(n, np.uint8)
    row_predicates, row_fields, row_floats = ends
    _scan_patterns(
        work,
        tokens.row_tokens,
        limits,
        base,
        row_predicates,
        row_fields,
        row_floats,
        row_clauses,
        exactness,
    )
    scanned = Scanned(
        work.predicates[: row_predicates[-1]], work.whole, work.part, row_predicates, row_clauses
    )
    return ScannedPatterns(
        scanned,
        work.names,
        work.data,
        exactness,
        work.fields,
        row_fields,
        work.floats[: row_floats[-1]],
        row_floats,
    )


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _put_name(work: Work, t: int, start: int, stop: int) -> bool:
    """Write the name of a key below another name; whether there is room for it."""
    names, data, cursor = work.names, work.data, work.cursor
    key, key_stop = work.tokens[t, 1], work.tokens[t, 2]
    out = cursor[AT_NAME]
    if key == key_stop or out + (stop - start) + 1 + (key_stop - key) > len(names):
        return False
    for k in range(start, stop):
        names[out] = names[k]
        out += 1
    if stop > start:
        names[out] = 46
        out += 1
    for k in range(key, key_stop):
        names[out] = data[k]
        out += 1
    cursor[AT_NAME] = out
    return True


@kernel
def _is_known(names: np.ndarray, entries: np.ndarray, n: int) -> bool:
    """Whether the name of entry n is that of an earlier one."""
    start = entries[n, _START]
    length = entries[n, _STOP] - start
    for i in range(n):
        other = entries[i, _START]
        if entries[i, _STOP] - other == length:
            k = int64(0)
            while k < length and names[other + k] == names[start + k]:
                k += 1
            if k == length:
                return True
    return False


@kernel
def _share_roots(names: np.ndarray, entries: np.ndarray, n: int) -> bool:
    """Whether two of the fields among n entries begin with the same name, up to the first dot."""
    for i in range(n):
        if entries[i, 2] == 0:
            continue
        for j in range(i):
            if entries[j, 2] == 0:
                continue
            a, b = entries[i, _START], entries[j, _START]
            stop, other = entries[i, _STOP], entries[j, _STOP]
            while a < stop and b < other and names[a] == names[b] and names[a] != 46:
                a += 1
                b += 1
            if (a == stop or names[a] == 46) and (b == other or names[b] == 46):
                return True
    return False


@kernel
def _scan_pattern(
    work: Work,
    t: int,
    stop: int,
    limits: _Limits,
    base: int,
    entries: np.ndarray,
    path: np.ndarray,
) -> tuple[int, int]:
    """Read one pattern; return how many clauses it has, 0 if it is for the parser, and exactness.

    `entries` are the names of its objects and fields, `path` those of the objects around a key.
    """
    tokens, cursor, predicates = work.tokens, work.cursor, work.predicates
    cursor[N_CONDITIONS] = cursor[N_VALUES] = 0
    if t == stop or tokens[t, 0] != OBJECT:
        return 0, SUPERSET
    depth = n = n_groups = int64(0)
    path[0, _START] = path[0, _STOP] = 0
    n_clauses, is_exact = int64(1), True
    t += 1
    while t < stop:
        if tokens[t, 0] == END_OF_OBJECT:
            depth -= 1
            t += 1
            continue
        if tokens[t, 0] != KEY or n == _MOST_FIELDS:
            return 0, SUPERSET
        entries[n, _START] = cursor[AT_NAME]
        if not _put_name(work, t, path[depth, _START], path[depth, _STOP]):
            return 0, SUPERSET
        entries[n, _STOP] = cursor[AT_NAME]
        entries[n, 2] = tokens[t + 1, 0] == LIST
        is_or = tokens[t, 2] - tokens[t, 1] == 3 and work.data[tokens[t, 1]] == 36
        if is_or or _is_known(work.names, entries, n):
            return 0, SUPERSET
        n += 1
        if tokens[t + 1, 0] == OBJECT:
            depth += 1
            if depth == _DEEPEST:
                return 0, SUPERSET
            path[depth] = entries[n - 1, :2]
            t += 2
            continue
        if tokens[t + 1, 0] != LIST:
            return 0, SUPERSET
        if depth > 0 and match_type(tokens, work.data, work.words, work.word_offsets, t) >= 0:
            return 0, SUPERSET  # the parser knows whether this is meant to be a field
        field = cursor[AT_FIELD]
        first = cursor[AT_PREDICATE]
        work.fields[field, 0], work.fields[field, 1] = t + 1, first
        name, name_stop = entries[n - 1, _START], entries[n - 1, _STOP]
        size = read_field(work, t + 2, name, name_stop, n_groups + 1, limits.n_bytes, base)
        if size < 0:
            return 0, SUPERSET
        if size > 1:
            n_groups += 1
        else:
            for p in range(first, cursor[AT_PREDICATE]):
                predicates[p, GROUP] = 0
        n_clauses *= max(size, 1)
        is_exact = is_exact and cursor[FIELD_EXACT] == 1
        cursor[AT_FIELD] += 1
        after = token_after(tokens, t + 1)
        work.fields[field, 2] = (after - t) // 4  # match types, at most
        t = after
        if n_clauses > limits.n_clauses:
            return 0, SUPERSET
    if cursor[N_CONDITIONS] > limits.n_conditions or cursor[N_VALUES] > limits.n_values:
        return 0, SUPERSET
    exactness = EXACT if is_exact else SUPERSET
    if base == 0 and is_exact and _share_roots(work.names, entries, n):
        exactness = WITHOUT_LISTS
    return int(n_clauses), exactness


@kernel
def _scan_patterns(
    work: Work,
    row_tokens: np.ndarray,
    limits: _Limits,
    base: int,
    out_row_predicates: np.ndarray,
    out_row_fields: np.ndarray,
    out_row_floats: np.ndarray,
    out_row_clauses: np.ndarray,
    out_exactness: np.ndarray,
) -> None:
    cursor = work.cursor
    entries = np.empty((_MOST_FIELDS, 3), np.int64)
    path = np.empty((_DEEPEST + 1, 2), np.int64)
    before = np.empty(len(cursor), np.int64)
    for row in range(len(row_tokens) - 1):
        before[:] = cursor
        n_clauses, exactness = _scan_pattern(
            work, row_tokens[row], row_tokens[row + 1], limits, base, entries, path
        )
        if n_clauses == 0:
            cursor[:] = before
        out_row_clauses[row], out_exactness[row] = n_clauses, exactness
        out_row_predicates[row + 1] = cursor[AT_PREDICATE]
        out_row_fields[row + 1] = cursor[AT_FIELD]
        out_row_floats[row + 1] = cursor[AT_FLOAT]
