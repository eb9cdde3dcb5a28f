"""What JSON lines hold, found by looking at their bytes: for lines that are JSON objects.

{"a": [1, {"b": null}], "c": "x"}
the null is inside of an array;  the value of "c" begins with a quote
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import kernel

__all__ = ["has_null_in_array", "value_kinds"]

_TEXT, _NUMBER, _BOOLEAN, _OBJECT, _ARRAY = 1, 2, 3, 4, 5


@kernel
def has_null_in_array(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Flag the lines that have a null inside of an array, at any depth."""
    flags = np.zeros(len(starts), np.bool_)
    for i in range(len(starts)):
        depth = 0  # of brackets since the outermost array
        at, stop = starts[i], ends[i]
        while at < stop:
            c = data[at]
            if c == 34:
                at = _end_of_text(data, at, stop)
            elif c == 91 or (c == 123 and depth > 0):  # [ or, inside of an array, {
                depth += 1
            elif (c == 93 or c == 125) and depth > 0:
                depth -= 1
            elif c == 110 and depth > 0:  # the n of null
                flags[i] = True
                break
            at += 1
    return flags


@kernel
def value_kinds(
    data: np.ndarray, starts: np.ndarray, ends: np.ndarray, name: np.ndarray
) -> np.ndarray:
    """Return the type of the value that a name, given with its quotes, has in each line's object.

    It is 0 where the object has no such name, or null.
    """
    kinds = np.zeros(len(starts), np.int64)
    for i in range(len(starts)):
        depth = 0
        at, stop = starts[i], ends[i]
        while at < stop:
            c = data[at]
            if c == 34:
                start = at
                at = _end_of_text(data, at, stop)
                if depth == 1 and _is_name(data, start, at, name):
                    after = _next_token(data, at + 1, stop)
                    if after < stop and data[after] == 58:  # a colon: it was no value
                        kinds[i] = _kind_of(data, _next_token(data, after + 1, stop), stop)
                        break
            elif c == 91 or c == 123:
                depth += 1
            elif c == 93 or c == 125:
                depth -= 1
            at += 1
    return kinds


@kernel
def _end_of_text(data: np.ndarray, at: int, stop: int) -> int:
    """Return the place of the quote that ends the text which begins at a place."""
    at += 1
    while at < stop and data[at] != 34:
        at += 2 if data[at] == 92 else 1  # a backslash escapes one character at least
    return at


@kernel
def _is_name(data: np.ndarray, start: int, last: int, name: np.ndarray) -> bool:
    if last + 1 - start != len(name):
        return False
    for k in range(len(name)):
        if data[start + k] != name[k]:
            return False
    return True


@kernel
def _next_token(data: np.ndarray, at: int, stop: int) -> int:
    while at < stop and (data[at] == 32 or data[at] == 9 or data[at] == 13):
        at += 1
    return at


@kernel
def _kind_of(data: np.ndarray, at: int, stop: int) -> int:
    if at >= stop:
        return 0
    c = data[at]
    if c == 34:
        return _TEXT
    if c == 123:
        return _OBJECT
    if c == 91:
        return _ARRAY
    if c == 116 or c == 102:
        return _BOOLEAN
    return 0 if c == 110 else _NUMBER
