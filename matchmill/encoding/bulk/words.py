"""Words, names and quotes in the bytes of expressions.

Each byte has a class: a letter, a digit, a sign of a comparison, or white space; those beyond ASCII
are taken as letters and checked later. A word of up to seven letters is compared as a number, its
bytes in lower case.
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import int64, kernel

__all__ = [
    "AND_WORD",
    "BETWEEN_WORD",
    "DIGIT",
    "FALSE_WORD",
    "IN_WORD",
    "IS_WORD",
    "LETTER",
    "LIKE_WORD",
    "NOT_WORD",
    "NULL_WORD",
    "OR_WORD",
    "RESERVED",
    "SIGN",
    "SPACE",
    "TRUE_WORD",
    "after_not",
    "after_quoted",
    "after_space",
    "after_word",
    "byte_classes",
    "word",
    "word_at",
]

LETTER, DIGIT, SIGN, SPACE = 1, 2, 4, 8


def word(text: str) -> int:
    """Return a word as it is compared."""
    return int.from_bytes(text.encode(), "big")


AND_WORD, OR_WORD, NOT_WORD, IN_WORD, IS_WORD, LIKE_WORD = map(
    word, ("and", "or", "not", "in", "is", "like")
)
NULL_WORD, TRUE_WORD, FALSE_WORD = map(word, ("null", "true", "false"))
BETWEEN_WORD, _ILIKE, _RLIKE = map(word, ("between", "ilike", "rlike"))
_OPERATORS = (
    AND_WORD,
    OR_WORD,
    NOT_WORD,
    IN_WORD,
    IS_WORD,
    LIKE_WORD,
    _ILIKE,
    _RLIKE,
    BETWEEN_WORD,
)
RESERVED = (*_OPERATORS, NULL_WORD, TRUE_WORD, FALSE_WORD)


def byte_classes() -> np.ndarray:
    """Return the class of each byte."""
    classes = np.zeros(256, np.uint8)
    letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
    kinds = ((letters, LETTER), (b"0123456789", DIGIT), (b"=<>!&|~", SIGN), (b" \t\r\n", SPACE))
    for characters, kind in kinds:
        classes[list(characters)] = kind
    classes[128:] = LETTER
    return classes


@kernel
def after_space(data: np.ndarray, classes: np.ndarray, at: int, stop: int) -> int:
    """Return the place after white space."""
    while at < stop and classes[data[at]] == SPACE:
        at += 1
    return at


@kernel
def after_word(data: np.ndarray, classes: np.ndarray, at: int, stop: int) -> int:
    """Return the end of the name or keyword that begins here; dots join its parts."""
    start = at
    while at < stop:
        kind = classes[data[at]]
        if kind == LETTER or (kind == DIGIT and at > start):
            at += 1
        elif data[at] == 46 and at > start and at + 1 < stop and classes[data[at + 1]] == LETTER:
            at += 2
        else:
            break
    return at


@kernel
def word_at(data: np.ndarray, start: int, stop: int) -> int:
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
def after_quoted(data: np.ndarray, quote: int, at: int, stop: int) -> int:
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


@kernel
def after_not(data: np.ndarray, classes: np.ndarray, at: int, stop: int) -> int:
    """Return the place of what follows a `not`; the same place if there is none."""
    end = after_word(data, classes, at, stop)
    return after_space(data, classes, end, stop) if word_at(data, at, end) == NOT_WORD else at
