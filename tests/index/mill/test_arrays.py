"""The arrays of an index: the example of docs/MILL.md, word by word, and arrays that do not fit."""

from __future__ import annotations

import re
from ast import literal_eval
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from matchmill.errors import InputError
from matchmill.index.mill import Mill
from matchmill.index.mill import words as w
from matchmill.index.mill.arrays import MillArrays
from matchmill.kernels.jit import uint64
from tests.support.conformance_kit import batch_of, matched, table_of
from tests.support.mill_checks import by_kernel

pytestmark = pytest.mark.kernels

_PAGE = Path(__file__).parents[3] / "docs" / "MILL.md"

EXAMPLE = table_of(
    [
        {0: [(2, 2)], 1: [(1, 5)]},
        {0: [(2, 2)], 1: [(4, 9)], 2: [(0, 0)]},
        {1: [(4, 9)], 2: [(1, 3), (5, 5)]},
    ]
)


def documented() -> dict[str, Any]:
    """Read all arrays of the example; rows of `dimensions` are given one by one."""
    text = _PAGE.read_text("utf-8").partition("## A worked example")[2]
    found: dict[str, Any] = {}
    for name, row, values in re.findall(r"^(\w+)(\[\d+\])? = (\[.*\])$", text, re.MULTILINE):
        if row:
            found.setdefault(name, []).append(literal_eval(values))
        else:
            found[name] = literal_eval(values)
    return found


def test_the_documented_example_is_built_like_this() -> None:
    arrays = Mill.build(EXAMPLE).arrays()
    expected = documented()
    assert sorted(expected) == sorted(arrays)
    for name, array in arrays.items():
        assert array.tolist() == expected[name], name


@by_kernel
def test_the_documented_event_matches_like_this(kernel: str) -> None:
    index = Mill.build(EXAMPLE, kernel=kernel)
    assert matched(index.match_batch(batch_of([{0: 2, 1: 4}]))) == [[0, 1]]


def test_the_documented_inline_tests() -> None:
    def points(codes: tuple[int, int, int], *, excludes: bool) -> Any:
        payload = w.points_payload(False, excludes)
        for i, code in enumerate(codes):
            payload |= w.point_payload(code, i)
        return w.inline_test(4, payload)

    bits = (uint64(1) << w.general_bit(0)) | (uint64(1) << w.general_bit(30))
    words = [
        w.inline_test(3, uint64(0b100101)),
        points((7, 9, 11), excludes=False),
        points((7, 7, 7), excludes=True),
        w.inline_test(6, w.interval_payload(10, 20)),
        w.inline_test(w.GENERAL, w.general_payload(9) | bits),
        w.general_intervals(12, 2),
    ]
    table = _PAGE.read_text("utf-8").partition("| test | word |")[2].partition("##")[0]
    assert re.findall(r"0x[0-9a-f]{16}", table) == [f"{int(word):#018x}" for word in words]


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("words", lambda a: a.view(np.int64), "must be a contiguous array of uint64"),
        ("words", lambda a: np.repeat(a, 2)[::2], "contiguous"),
        ("row_of_code", lambda a: a.astype(np.int64), "must be a contiguous array of int32"),
        ("dimensions", lambda a: a[:, :8].copy(), "in rows of 16"),
        ("pairs", lambda a: a.ravel(), "in rows of 4"),
        ("slot_places", lambda a: a[:-1], "must have 13 items, not 12"),
        ("default_truth", lambda a: np.zeros(2, np.uint64), "must have 1 items, not 2"),
        ("edges", lambda a: a[:-1], "must have 10 items, not 9"),
        ("sizes", lambda a: a[:-1], "must have 7 numbers"),
        ("default_values", lambda a: a[:0], "must have 1 items or more"),
    ],
)
def test_arrays_that_do_not_fit_are_rejected(name: str, change: Any, problem: str) -> None:
    arrays = Mill.build(EXAMPLE).arrays()
    arrays[name] = change(arrays[name])
    with pytest.raises(InputError, match=problem):
        Mill.from_arrays(arrays)


def test_every_array_that_matching_reads_has_one_accessor() -> None:
    from matchmill.index.mill import arrays

    named = {name.removesuffix("_of") for name in vars(arrays) if name.endswith("_of")}
    only_python = {"clause_ids"}  # looked up after matching
    assert named - {"ids", "tests"} == set(MillArrays._fields) - only_python
