"""Rows and spans are never given out twice, keep their content, and are all found again."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from matchmill.papers.common import pools


@pytest.mark.parametrize("seed", range(5))
def test_rows_keep_their_content_through_taking_giving_and_growing(seed: int) -> None:
    rng = Random(seed)
    rows = pools.new_rows(3, 2)
    content: dict[int, int] = {}
    for step in range(400):
        if content and rng.random() < 0.45:
            row = rng.choice(sorted(content))
            assert rows.cells[row].tolist() == [content.pop(row)] * 3
            pools.give_row(rows, row)
        else:
            rows = pools.rows_with_room(rows, 1)
            row = pools.take_row(rows)
            assert row not in content
            content[row] = step
            rows.cells[row] = step
        assert pools.rows_in_use(rows) == len(content)
        assert pools.rows_left(rows) == len(rows.cells) - len(content)
    for row, value in content.items():
        assert rows.cells[row].tolist() == [value] * 3


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("seed", range(5))
def test_spans_keep_their_content_and_do_not_overlap(seed: int, dtype: type) -> None:
    rng = Random(seed)
    spans = pools.new_spans(dtype, 4)
    content: dict[int, tuple[int, int]] = {}
    for step in range(400):
        if content and rng.random() < 0.45:
            start = rng.choice(sorted(content))
            n, value = content.pop(start)
            assert spans.cells[start : start + n].tolist() == [value] * n
            pools.give_span(spans, start, n)
        else:
            n = rng.randrange(1, 20)
            spans = pools.spans_with_room(spans, pools.span_capacity(n))
            start = pools.take_span(spans, n)
            content[start] = n, step
            spans.cells[start : start + n] = step
        in_use = sum(pools.span_capacity(n) for n, _ in content.values())
        assert pools.spans_in_use(spans) == in_use
        assert pools.spans_left(spans) <= len(spans.cells) - in_use
    for start, (n, value) in content.items():
        assert spans.cells[start : start + n].tolist() == [value] * n


def test_what_is_given_back_is_used_again() -> None:
    rows = pools.new_rows(2, 4)
    spans = pools.new_spans(np.int64, 8)
    for _ in range(100):
        pools.give_row(rows, pools.take_row(rows))
        pools.give_span(spans, pools.take_span(spans, 5), 5)
    assert pools.rows_in_use(rows) == pools.spans_in_use(spans) == 0


@pytest.mark.parametrize(("n", "capacity"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (1025, 2048)])
def test_capacities_are_powers_of_two(n: int, capacity: int) -> None:
    assert pools.span_capacity(n) == capacity


def test_taking_without_room_is_an_error_and_takes_nothing() -> None:
    rows, spans = pools.new_rows(2, 1), pools.new_spans(np.int64, 4)
    assert pools.can_take_span(spans, 4)
    assert not pools.can_take_span(spans, 5)
    pools.take_row(rows)
    start = pools.take_span(spans, 3)
    with pytest.raises(RuntimeError, match="no room was made"):
        pools.take_row(rows)
    with pytest.raises(RuntimeError, match="no room was made"):
        pools.take_span(spans, 1)
    assert pools.rows_in_use(rows) == 1
    assert pools.spans_in_use(spans) == 4
    pools.give_span(spans, start, 3)
    assert pools.can_take_span(spans, 3)
    assert not pools.can_take_span(spans, 1)
