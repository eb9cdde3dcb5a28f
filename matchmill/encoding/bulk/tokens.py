"""The tokens of JSON patterns, from the bytes of JSON or from Python objects.

    {"detail": {"load": [{"numeric": [">", 5]}, null]}}

    OBJECT  KEY detail  OBJECT  KEY load  LIST  OBJECT  KEY numeric  LIST  TEXT >  WHOLE 5
    END_OF_LIST  END_OF_OBJECT  NULL  END_OF_LIST  END_OF_OBJECT  END_OF_OBJECT

    tokens[t]      KIND, A, B      KEY, TEXT: where it begins and ends in `data`
                                   WHOLE: an integer;  DOUBLE: the whole part of a number
    parts[t]       DOUBLE: the rest
    row_tokens[r]  where the tokens of row r begin; it has none if it is left to the parser
    data           UTF-8 of all texts, without escapes; half of it is free for `patterns.py`

A row has no tokens if it is no strict JSON, or has anything that no good pattern has: an empty
object or array, an object that is nested deep, an integer of more than 64 bits. Python's `json`
decides about those, with its messages.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.kernels.jit import int64, kernel
from matchmill.language.values import INT64_MAX, INT64_MIN

__all__ = [
    "DEEPEST",
    "DOUBLE",
    "END_OF_LIST",
    "END_OF_OBJECT",
    "FALSE_TOKEN",
    "KEY",
    "LIST",
    "NULL",
    "OBJECT",
    "TEXT",
    "TRUE_TOKEN",
    "WHOLE",
    "Tokens",
    "no_tokens",
    "pair_of_double",
    "token_after",
]

(
    OBJECT,
    END_OF_OBJECT,
    LIST,
    END_OF_LIST,
    KEY,
    TEXT,
    WHOLE,
    DOUBLE,
    TRUE_TOKEN,
    FALSE_TOKEN,
    NULL,
) = range(11)

DEEPEST = 24  # objects and arrays in each other
_TWO_TO_63 = 9223372036854775808.0


class Tokens(NamedTuple):
    """The tokens of some rows."""

    tokens: np.ndarray  # int64
    parts: np.ndarray  # float64
    row_tokens: np.ndarray  # int64
    data: np.ndarray  # uint8
    n_bytes: int  # of data


def no_tokens(n_rows: int, n_bytes: int) -> Tokens:
    """Return room for the tokens of so many bytes."""
    return Tokens(
        np.empty((n_bytes + 1, 3), np.int64),
        np.empty(n_bytes + 1, np.float64),
        np.zeros(n_rows + 1, np.int64),
        np.empty(2 * n_bytes + 8, np.uint8),
        0,
    )


@kernel
def pair_of_double(value: float) -> tuple[int, float]:
    """Return the whole part of a finite double and the rest, as `encoding/numbers.py` has them."""
    if value >= _TWO_TO_63:
        return INT64_MAX, value
    if value < -_TWO_TO_63:
        return INT64_MIN, value
    whole = int64(value)
    return whole, value - float(whole) + 0.0


@kernel
def token_after(tokens: np.ndarray, t: int) -> int:
    """Return the token after the value that begins at a token."""
    depth = int64(0)
    while True:
        kind = tokens[t, 0]
        if kind in (OBJECT, LIST):
            depth += 1
        elif kind in (END_OF_OBJECT, END_OF_LIST):
            depth -= 1
        t += 1
        if depth == 0 and kind != KEY:
            return t
