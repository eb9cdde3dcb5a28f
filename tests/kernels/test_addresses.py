"""Arrays as addresses: accessors read what was declared, and wrong arrays are found."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

from matchmill.errors import InputError
from matchmill.kernels.addresses import (
    Form,
    Int32Array,
    UInt64Array,
    accessor,
    addresses_of,
    borrowed,
    check_arrays,
    is_checked,
    set_checked,
)
from matchmill.kernels.jit import kernel

pytestmark = pytest.mark.kernels


class _Arrays(NamedTuple):
    numbers: Int32Array
    rows: Annotated[np.ndarray, Form(np.int64, 3)]
    words: UInt64Array


numbers_of = accessor(_Arrays, "numbers")
rows_of = accessor(_Arrays, "rows")
words_of = accessor(_Arrays, "words")
bytes_of = accessor(_Arrays, "words", view_as=np.uint8)
pairs_of = accessor(_Arrays, "numbers", view_as=np.uint64)


def _some() -> _Arrays:
    return _Arrays(
        np.arange(6, dtype=np.int32),
        np.arange(12).reshape(4, 3),
        np.array([0x0102, 1 << 63], np.uint64),
    )


@kernel
def _inner(arrays: Any) -> int:
    return int(numbers_of(arrays)[5] + rows_of(arrays)[3, 1])


@kernel
def _read(arrays: Any) -> tuple[int, int, int, int, int]:
    arrays = borrowed(arrays)
    numbers, rows = numbers_of(arrays), rows_of(arrays)
    small = bytes_of(arrays)
    rows[0, 0] = 99
    return (
        _inner(arrays),
        len(numbers) + 10 * len(rows) + 100 * rows.shape[1],
        len(small) + 100 * int(small[0]) + 1000 * int(small[15]),
        len(pairs_of(arrays)) + int(pairs_of(arrays)[0] >> np.uint64(32)),
        int(words_of(arrays)[1] >> np.uint64(60)),
    )


def test_accessors_read_what_was_declared() -> None:
    arrays = _some()
    assert _read(addresses_of(arrays)) == (5 + 10, 346, 16 + 200 + 128_000, 3 + 1, 8)
    assert arrays.rows[0, 0] == 99  # the same memory


@pytest.mark.parametrize(
    ("name", "array", "problem"),
    [
        ("numbers", np.arange(6), "must be a contiguous array of int32, not int64"),
        ("numbers", np.arange(12, dtype=np.int32)[::2], "strides"),
        ("numbers", np.zeros((2, 3), np.int32), "shape"),
        ("numbers", np.arange(6, dtype=">i4"), "not >i4"),
        ("rows", np.zeros((4, 2), np.int64), "in rows of 3"),
        ("rows", np.zeros((3, 4), np.int64).T, "in rows of 3"),
        ("rows", np.zeros(12, np.int64), "in rows of 3"),
        ("words", np.frombuffer(bytes(17), np.uint8)[1:].view(np.uint64), "contiguous"),
    ],
)
def test_wrong_arrays_are_found(name: str, array: np.ndarray, problem: str) -> None:
    arrays = _some()._replace(**{name: array})
    with pytest.raises(InputError, match=f"array '{name}' of _Arrays.*{problem}"):
        check_arrays(arrays)


def test_addresses_are_checked_in_the_checked_mode() -> None:
    wrong = _some()._replace(numbers=np.arange(6))
    before = set_checked(True)
    try:
        assert is_checked()
        with pytest.raises(InputError, match="must be a contiguous array of int32"):
            addresses_of(wrong)
        assert set_checked(False)
        addresses_of(wrong)
    finally:
        set_checked(before)
