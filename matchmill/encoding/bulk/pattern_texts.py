r"""The texts of JSON patterns as expressions: what `str` of the parsed pattern is.

    {"a": ["x", {"prefix": "y%"}], "b": [{"numeric": [">", 5]}]}

    (a = 'x' or a contains 'x' or a like 'y\%%' or any(a) like 'y\%%')
     and (b > 5 or any(b) > 5)

They are written from the tokens of patterns that `patterns.py` has read. Each alternative has a
*form*, a text in which control characters stand for what the tokens say:

    "\1 like '\4%' or any(\1) like '\4%'"      \1 the name, \4 the text without wildcards

All texts that are copied are in one pool: forms, names as they are printed, decimals in the order
in which they occur (`ScannedPatterns.floats`), and the data of the tokens behind them.
"""

from __future__ import annotations

import numpy as np

from matchmill.encoding.bulk.constants import TextTable
from matchmill.encoding.bulk.pattern_work import (
    ANYTHING_BUT,
    EXISTS,
    IGNORE_CASE,
    MATCH_TYPES,
    N_MATCH_TYPES,
    NUMERIC,
    PREFIX,
    match_type,
)
from matchmill.encoding.bulk.patterns import ScannedPatterns
from matchmill.encoding.bulk.predicates import NAME, NAME_STOP
from matchmill.encoding.bulk.tokens import (
    DOUBLE,
    END_OF_LIST,
    FALSE_TOKEN,
    LIST,
    NULL,
    OBJECT,
    TEXT,
    TRUE_TOKEN,
    WHOLE,
    Tokens,
    token_after,
)
from matchmill.encoding.texts import Texts, strings_to_texts, texts_to_strings
from matchmill.kernels.jit import int64, kernel
from matchmill.language.expression import name_text

__all__ = ["pattern_texts"]

# What stands in forms for the name, the value of a token, all values of an array, a text, the sign
# of a comparison, and of a range the second sign, its number, and the first and last number in it.
_NAME, _VALUE, _LIST, _LIKE, _SIGN, _SIGN_2, _VALUE_2, _FIRST, _LAST = range(1, 10)

_FORMS = (
    "\1 = \2 or \1 contains \2",
    "\1 in (\3) or \1 contains any (\3)",
    "\1 like '\4%' or any(\1) like '\4%'",
    "\1 like '%\4' or any(\1) like '%\4'",
    "\1 ilike '\4%' or any(\1) ilike '\4%'",
    "\1 ilike '%\4' or any(\1) ilike '%\4'",
    "\1 ilike '\4' or any(\1) ilike '\4'",
    "\1 != \2 or any(\1) != \2",
    "\1 not in (\3) or any(\1) not in (\3)",
    "\1 \5 \2 or any(\1) \5 \2",
    "\1 between \2 and \7 or any(\1) between \2 and \7",
    "\1 \5 \2 and \1 \6 \7 or any(\1) between \x08 and \x09",
    "\1 is null",
    "\1 is not null",
    *(" or ", " and ", "(", ")", ", ", "true", "false"),
)
(
    _ONE,
    _SEVERAL,
    _PREFIXED,
    _SUFFIXED,
    _PREFIXED_IN_ANY_CASE,
    _SUFFIXED_IN_ANY_CASE,
    _IN_ANY_CASE,
    _NOT_ONE,
    _NOT_SEVERAL,
    _COMPARED,
    _BETWEEN,
    _BETWEEN_OPEN,
    _ABSENT,
    _PRESENT,
    _OR,
    _AND,
    _OPEN,
    _CLOSE,
    _COMMA,
    _TRUE,
    _FALSE,
) = range(21)
_LONGEST_FORM = 64
_LONGEST_NUMBER = 26


def pattern_texts(tokens: Tokens, patterns: ScannedPatterns, rows: np.ndarray) -> Texts:
    """Return the expressions of some rows, which are plain."""
    fields = patterns.fields[: patterns.row_fields[-1]]
    predicates = patterns.scanned.predicates[fields[:, 1]]
    known = TextTable()
    slots = known.enter(
        patterns.names,
        predicates[:, NAME].copy(),
        predicates[:, NAME_STOP].copy(),
        np.zeros(len(fields), np.int32),
    )
    names = list(map(name_text, texts_to_strings(known.texts)))
    decimals = list(map(repr, patterns.floats.tolist()))
    pool = strings_to_texts([*MATCH_TYPES, *_FORMS, *names, *decimals])
    sizes = np.diff(pool.offsets)[-len(names) - len(decimals) :]
    of_fields = (3 * fields[:, 2] + 4) * (sizes[: len(names)][slots] + _LONGEST_FORM)
    n_bytes = int(of_fields.sum() + sizes[len(names) :].sum()) + 4 * len(patterns.data)
    out = np.empty(n_bytes + 2 * _LONGEST_NUMBER * int(tokens.row_tokens[-1]), np.uint8)
    offsets = np.zeros(len(rows) + 1, np.int64)
    first_name = len(MATCH_TYPES) + len(_FORMS)
    _print_rows(
        tokens.tokens,
        np.concatenate([patterns.data, pool.data]),
        pool.offsets + len(patterns.data),
        rows,
        fields,
        patterns.row_fields,
        patterns.row_floats + (first_name + len(names)),
        slots + np.int32(first_name),
        out,
        offsets,
    )
    return Texts(offsets, out[: offsets[-1]].copy())


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _copied(pool: np.ndarray, offsets: np.ndarray, i: int, out: np.ndarray, n: int) -> int:
    """Copy text i of the pool; return where it ends."""
    for k in range(offsets[i], offsets[i + 1]):
        out[n] = pool[k]
        n += 1
    return n


@kernel
def _text(
    pool: np.ndarray, start: int, stop: int, is_pattern: bool, out: np.ndarray, n: int
) -> int:
    """Write a text inside of quotes; in a pattern wildcards have a backslash."""
    for k in range(start, stop):
        b = pool[k]
        if b == 39 or (is_pattern and (b == 37 or b == 95 or b == 92)):
            out[n] = 39 if b == 39 else 92
            n += 1
        out[n] = b
        n += 1
    return n


@kernel
def _integer(value: int, out: np.ndarray, n: int) -> int:
    """Write an integer."""
    if value < 0:
        out[n] = 45
        n += 1
        value = -value
    power = int64(1)
    while value // power >= 10:
        power *= 10
    while power > 0:
        out[n] = 48 + value // power % 10
        power //= 10
        n += 1
    return n


@kernel
def _value(
    tokens: np.ndarray,
    pool: np.ndarray,
    offsets: np.ndarray,
    t: int,
    decimal: int,
    out: np.ndarray,
    n: int,
) -> tuple[int, int]:
    """Write the value of a token; return the next decimal and where it ends."""
    kind = tokens[t, 0]
    if kind == TEXT:
        out[n] = 39
        n = _text(pool, tokens[t, 1], tokens[t, 2], False, out, n + 1)
        out[n] = 39
        return decimal, n + 1
    if kind == WHOLE:
        return decimal, _integer(tokens[t, 1], out, n)
    which = decimal
    if kind == DOUBLE:
        decimal += 1
    else:
        which = int64(N_MATCH_TYPES + (_TRUE if kind == TRUE_TOKEN else _FALSE))
    return decimal, _copied(pool, offsets, which, out, n)


@kernel
def _form_of(tokens: np.ndarray, t: int, kind: int) -> tuple[int, int]:
    """Return the form of the match type at a token, and the token that it begins with."""
    t += 2
    is_nested = tokens[t, 0] == OBJECT
    form = int64(_SUFFIXED_IN_ANY_CASE if is_nested else _SUFFIXED)
    if kind == NUMERIC:
        t += 1
        is_closed = tokens[t, 2] - tokens[t, 1] == 2
        if tokens[t + 2, 0] == END_OF_LIST:
            form = int64(_COMPARED)
        elif is_closed and tokens[t + 2, 2] - tokens[t + 2, 1] == 2:
            form = int64(_BETWEEN)
        else:
            form = int64(_BETWEEN_OPEN)
        t += 1
    elif kind == ANYTHING_BUT:
        form = int64(_NOT_ONE)
        if tokens[t, 0] == LIST:
            t += 1
            if tokens[t + 1, 0] != END_OF_LIST:
                form = int64(_NOT_SEVERAL)
    elif kind == EXISTS:
        form = int64(_ABSENT if tokens[t, 0] == FALSE_TOKEN else _PRESENT)
    elif kind == IGNORE_CASE:
        form = int64(_IN_ANY_CASE)
    elif kind == PREFIX:
        form = int64(_PREFIXED_IN_ANY_CASE if is_nested else _PREFIXED)
    return form, t + 2 if is_nested else t


@kernel
def _print_form(
    tokens: np.ndarray,
    pool: np.ndarray,
    offsets: np.ndarray,
    form: int,
    name: int,
    t: int,
    decimal: int,
    out: np.ndarray,
    n: int,
) -> tuple[int, int]:
    """Write a form about a name; its first value is token t. Return as `_value`."""
    form += N_MATCH_TYPES
    for k in range(offsets[form], offsets[form + 1]):
        b = pool[k]
        if b == _NAME:
            n = _copied(pool, offsets, name, out, n)
        elif b == _LIKE:
            n = _text(pool, tokens[t, 1], tokens[t, 2], True, out, n)
        elif b == _LIST:
            at, is_first = t, True
            while tokens[at, 0] != END_OF_LIST:
                if tokens[at, 0] != OBJECT and tokens[at, 0] != NULL:
                    if not is_first:
                        out[n], out[n + 1] = 44, 32
                        n += 2
                    is_first = False
                    decimal, n = _value(tokens, pool, offsets, at, decimal, out, n)
                at = token_after(tokens, at)
        elif b in (_SIGN, _SIGN_2):
            sign = t - 1 if b == _SIGN else t + 1
            for j in range(tokens[sign, 1], tokens[sign, 2]):
                out[n] = pool[j]
                n += 1
        elif b in (_VALUE, _VALUE_2, _FIRST, _LAST):
            at = t + 2 if b in (_VALUE_2, _LAST) else t
            if b >= _FIRST and tokens[at - 1, 2] - tokens[at - 1, 1] == 1:
                n = _copied(pool, offsets, decimal, out, n)
                decimal += 1
            else:
                decimal, n = _value(tokens, pool, offsets, at, decimal, out, n)
        else:
            out[n] = b
            n += 1
    return decimal, n


@kernel
def _next_alternative(
    tokens: np.ndarray, pool: np.ndarray, offsets: np.ndarray, t: int, step: int
) -> tuple[int, int, int]:
    """Find what is written at step 0 (values), 1 (match types) or 2 (presence), from token t on.

    Return its form, the token of its first value, and where to go on; form -1 at the end.
    """
    n_values, first = int64(0), int64(t)
    at = t
    while tokens[at, 0] != END_OF_LIST:
        token = tokens[at, 0]
        after = token_after(tokens, at)
        if token == OBJECT and step > 0:
            kind = match_type(tokens, pool, pool, offsets, at + 1)
            if (kind == EXISTS) == (step == 2):
                form, place = _form_of(tokens, at, kind)
                return form, place, after
        elif token == NULL and step == 2:
            return _ABSENT, at, after
        elif token != OBJECT and token != NULL:
            n_values += 1
            first = at if n_values == 1 else first
        at = after
    if step > 0 or n_values == 0:
        return -1, first, at
    return (_ONE if n_values == 1 else _SEVERAL), first if n_values == 1 else t, at


@kernel
def _print_rows(
    tokens: np.ndarray,
    pool: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
    fields: np.ndarray,
    row_fields: np.ndarray,
    row_decimals: np.ndarray,
    names: np.ndarray,
    out: np.ndarray,
    out_offsets: np.ndarray,
) -> None:
    n = int64(0)
    for k in range(len(rows)):
        first, stop = row_fields[rows[k]], row_fields[rows[k] + 1]
        decimal = row_decimals[rows[k]]
        for f in range(first, stop):
            n_parts = int64(0)
            if f > first:
                n = _copied(pool, offsets, N_MATCH_TYPES + _AND, out, n)
            if stop - first > 1:
                out[n] = 40
                n += 1
            before = n
            last_form = int64(-1)
            for step in range(3):
                t = fields[f, 0] + 1
                while tokens[t, 0] != END_OF_LIST:
                    form, place, t = _next_alternative(tokens, pool, offsets, t, step)
                    if form < 0:
                        break
                    if n_parts > 0:
                        n = _copied(pool, offsets, N_MATCH_TYPES + _OR, out, n)
                    decimal, n = _print_form(
                        tokens, pool, offsets, form, names[f], place, decimal, out, n
                    )
                    n_parts += 1
                    last_form = int64(form)
            if stop - first > 1:
                out[n] = 41
                n += 1
                if n_parts == 1 and (last_form in (_ABSENT, _PRESENT)):
                    for j in range(before, n - 1):  # a single condition has no parentheses
                        out[j - 1] = out[j]
                    n -= 2
        out_offsets[k + 1] = n
