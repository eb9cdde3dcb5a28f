"""What the kernels of JSON patterns share: where they write, and how a predicate is added.

cursor    where the next predicate, literal, name, … is written; what was counted of the row
floats    decimals, in the order in which the text of the expression has them
data      the texts of tokens; what is made of them, reversed or in lower case, is appended
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.bulk.predicates import FIRST, WHAT, N
from matchmill.encoding.bulk.tokens import DOUBLE
from matchmill.kernels.jit import int64, kernel

__all__ = [
    "ANYTHING_BUT",
    "AT_DATA",
    "AT_FIELD",
    "AT_FLOAT",
    "AT_LITERAL",
    "AT_NAME",
    "AT_PREDICATE",
    "DERIVATIONS",
    "EXACTLY",
    "EXISTS",
    "FIELD_EXACT",
    "IGNORE_CASE",
    "LOWER",
    "LOWER_REVERSED",
    "MATCH_TYPES",
    "NUMERIC",
    "N_CONDITIONS",
    "N_MATCH_TYPES",
    "N_VALUES",
    "PREFIX",
    "REVERSED",
    "SUFFIX",
    "VALUE",
    "VALUES",
    "Work",
    "add",
    "changed_text",
    "double_near",
    "is_small",
    "match_type",
    "note_float",
    "note_number",
    "put_number",
    "put_text",
]

MATCH_TYPES = (
    *("prefix", "suffix", "equals-ignore-case", "anything-but", "numeric", "exists"),
    "exactly",
)
N_MATCH_TYPES = len(MATCH_TYPES)
PREFIX, SUFFIX, IGNORE_CASE, ANYTHING_BUT, NUMERIC, EXISTS, EXACTLY = range(7)

# What predicates are about; the place of each in this list is its number.
DERIVATIONS = ("value", "values", "values.reversed", "values.lower", "values.lower_reversed")
VALUE, VALUES, REVERSED, LOWER, LOWER_REVERSED = range(5)

# cursor: where the next one is written, and what was counted of the row
(
    AT_PREDICATE,
    AT_LITERAL,
    AT_NAME,
    AT_FIELD,
    AT_FLOAT,
    AT_DATA,
    N_CONDITIONS,
    N_VALUES,
    FIELD_EXACT,
) = range(9)

_EXACT = 1 << 52  # below it the next double is a number between integers


class Work(NamedTuple):
    """What the kernels read and write."""

    tokens: np.ndarray
    parts: np.ndarray
    data: np.ndarray
    words: np.ndarray  # the bytes of MATCH_TYPES
    word_offsets: np.ndarray
    predicates: np.ndarray
    whole: np.ndarray
    part: np.ndarray
    names: np.ndarray
    fields: np.ndarray  # the token of its array, first predicate, how many match types
    floats: np.ndarray  # decimals to print, in the order in which they are printed
    cursor: np.ndarray


@kernel
def match_type(
    tokens: np.ndarray, data: np.ndarray, words: np.ndarray, word_offsets: np.ndarray, t: int
) -> int:
    """Return which of MATCH_TYPES a key is; -1 if it is none."""
    start = tokens[t, 1]
    length = tokens[t, 2] - start
    for i in range(N_MATCH_TYPES):
        word = word_offsets[i]
        if word_offsets[i + 1] - word == length:
            k = int64(0)
            while k < length and words[word + k] == data[start + k]:
                k += 1
            if k == length:
                return int(i)
    return -1


@kernel
def add(work: Work, what: int, first: int) -> None:
    """Write a predicate with the literals from `first` on."""
    cursor = work.cursor
    p = cursor[AT_PREDICATE]
    work.predicates[p, WHAT] = what
    work.predicates[p, FIRST] = first
    work.predicates[p, N] = cursor[AT_LITERAL] - first
    cursor[AT_PREDICATE] = p + 1


@kernel
def put_number(work: Work, t: int) -> None:
    """Write the literal of a token; a decimal is to be printed."""
    cursor = work.cursor
    n = cursor[AT_LITERAL]
    work.whole[n], work.part[n] = work.tokens[t, 1], 0.0
    if work.tokens[t, 0] == DOUBLE:
        work.part[n] = work.parts[t]
    cursor[AT_LITERAL] = n + 1


@kernel
def put_text(work: Work, start: int, stop: int, is_range: bool) -> None:
    """Write a text; of a range from it to what follows all that begin with it."""
    cursor = work.cursor
    n = cursor[AT_LITERAL]
    work.whole[n], work.part[n] = start, float(stop)
    if is_range:
        work.whole[n + 1], work.part[n + 1] = start, -float(stop)
        n += 1
    cursor[AT_LITERAL] = n + 1


@kernel
def changed_text(work: Work, start: int, stop: int, is_lower: bool, is_reversed: bool) -> int:
    """Append a text to the data in lower case, reversed; return where it begins.

    The letters of a text in lower case are ASCII, or the result is -1.
    """
    data, cursor = work.data, work.cursor
    out = cursor[AT_DATA]
    at = start
    end = out + stop - start
    to = end if is_reversed else out
    while at < stop:
        b = data[at]
        if is_lower and b >= 128:
            return -1
        length = 1 if b < 0xC0 else 2 if b < 0xE0 else 3 if b < 0xF0 else 4
        if is_reversed:
            to -= length
        for k in range(length):
            c = data[at + k]
            data[to + k] = c + 32 if is_lower and 65 <= c <= 90 else c
        if not is_reversed:
            to += length
        at += length
    cursor[AT_DATA] = end
    return int(out)


@kernel
def double_near(whole: int, part: float) -> float:
    """Return the double next to a number."""
    return part if abs(part) >= 1.0 else float(whole) + part


@kernel
def is_small(whole: int, part: float) -> bool:
    """Whether doubles near a number have digits after the point."""
    return -_EXACT < whole < _EXACT and abs(part) < 1.0


@kernel
def note_float(work: Work, whole: int, part: float) -> None:
    """Have a decimal printed."""
    cursor = work.cursor
    work.floats[cursor[AT_FLOAT]] = double_near(whole, part)
    cursor[AT_FLOAT] += 1


@kernel
def note_number(work: Work, t: int) -> None:
    """Have the number of a token printed, if it is a decimal."""
    if work.tokens[t, 0] == DOUBLE:
        note_float(work, work.tokens[t, 1], work.parts[t])
