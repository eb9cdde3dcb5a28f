"""Conjunctions that are read condition by condition, against the parser."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import matchmill as mm
from matchmill.encoding.dimension_arrays import dimensions_to_arrays
from matchmill.encoding.texts import texts_to_strings
from matchmill.engine.condition_cache import Conjunctions
from matchmill.engine.loading import Load, load_rows
from matchmill.engine.state import NewRows, Store
from matchmill.index.registry import index_class
from matchmill.io.reports import Rejected
from matchmill.io.subscription_chunks import RowItems
from matchmill.io.subscription_files import SubscriptionRow
from matchmill.io.subscription_sources import SubscriptionSource
from matchmill.settings import Settings
from tests.support.generators import random_expression

CONDITIONS = [
    *("a = 1", "a < 2", "b = 'x'", "b = 'x and y'", "b = 'it''s'", "c in (1, 2, 3)", "c is null"),
    *("d between 1 and 5", "d not between 1 and 5", "e != 3", "not e = 3", "f like 'x%'", "f"),
    *("b = 'p between q'", "g between 'a' and 'b'", "1 < h", "(h = 2)", "true", "false", "i = i"),
    *("b = 'x", "c in (1", "d between 1", "", "and", "x y", "b = ' and '", '"a b" = 1', "?v > 1"),
    *("a = 1 or b = 2", "e rlike '^a'", "any(k) = 1", "j = 99999999999999999999", "A = 1", "{"),
    *("lower(b) = 'x'", "b not in ('u', 'v')", "d between 5 and 1", "c = 1.5", "c > 1e400"),
]
several = st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=5)
between = st.sampled_from([" and ", " and ", " AND ", "  and ", " and  "])
texts = st.builds(lambda parts, word: word.join(parts), several, between)


def loaded(sources: list[Any], settings: Settings, *, by_parser: bool) -> tuple[Any, ...]:
    load = Load(Store(index_class("scan"), settings), replace=False)
    if by_parser:
        load._conjunctions.is_worth_it = False
    rows = [SubscriptionRow(i, source) for i, source in enumerate(sources)]
    rejected: list[Rejected] = []
    load_rows(load, SubscriptionSource(RowItems(iter(rows))), rejected)
    made: NewRows | None = load.rows() if load.ids else None
    return rejected, load.warnings, made


def check(sources: list[Any], settings: Settings | None = None) -> None:
    quick, slow = (
        loaded(sources, settings or Settings(), by_parser=by_parser) for by_parser in (False, True)
    )
    assert quick[:2] == slow[:2]
    if quick[2] is None or slow[2] is None:
        assert quick[2] is slow[2]
        return
    assert quick[2].identifiers == slow[2].identifiers
    assert texts_to_strings(quick[2].texts) == texts_to_strings(slow[2].texts)
    for one, other in (
        (quick[2].n_clauses, slow[2].n_clauses),
        (quick[2].is_exact, slow[2].is_exact),
        *zip(quick[2].encoded.table, slow[2].encoded.table, strict=True),
    ):
        np.testing.assert_array_equal(one, other)
    dimensions = [dimensions_to_arrays(made.encoded.dimensions) for made in (quick[2], slow[2])]
    assert dimensions[0].keys() == dimensions[1].keys()
    for name, array in dimensions[0].items():
        np.testing.assert_array_equal(array, dimensions[1][name])


@given(st.lists(texts, min_size=1, max_size=6))
@example(["a = 1 and b = 'x and y'", "a = 1 and b = 'x' and a < 2"])
@example(["d between 1 and 5 and d between 1 and 5", "d between 1", "a = 1 and d between 1"])
def test_the_same_as_by_the_parser(sources: list[str]) -> None:
    check(sources)


@pytest.mark.parametrize("seed", range(20))
def test_whole_expressions_too(seed: int) -> None:
    rng = Random(seed)
    expressions = [str(random_expression(rng)) for _ in range(30)]
    check(expressions + [" and ".join(rng.choices(expressions, k=2)) for _ in range(30)])


@pytest.mark.parametrize(
    "limits",
    [{"max_conditions": 2}, {"max_values": 3}, {"max_expression_length": 20}, {"max_depth": 1}],
)
def test_limits_hold(limits: dict[str, int]) -> None:
    short = ["a = 1", "a = 1 and b = 2", "a = 1 and b = 2 and c = 3", "c in (1, 2, 3, 4)"]
    check(short, Settings(**limits))


def test_a_condition_is_read_once() -> None:
    conjunctions = Conjunctions(Settings())
    first = conjunctions.read("a = 1 and d between 1 and 5")
    second = conjunctions.read("d between 1 and 5 and b = 2")
    assert first is not None
    assert second is not None
    assert first[1] is second[0]
    assert conjunctions.read("a = 1 or b = 2") is None
    assert conjunctions.read("a = 1 and a = 2") is None


def test_texts_without_anything_in_common_go_to_the_parser() -> None:
    conjunctions = Conjunctions(Settings())
    for i in range(1 << 16):
        assert conjunctions.is_worth_it
        conjunctions.read(f"a = {i}")
    assert not conjunctions.is_worth_it
    assert conjunctions.read("a = 1") is None


def test_a_rejected_row_leaves_nothing_behind() -> None:
    engine = mm.Engine()
    report = engine.subscribe_many([("a", "x = 1"), ("a", "y = 2"), ("b", "z = 3 and w =")])
    assert report.n_accepted == 1
    assert report.n_rejected == 2
    engine.subscribe("c", "y = 2 and z = 3")
    assert engine.match({"x": 1, "y": 2, "z": 3}) == {"a", "c"}
