"""Events in the cells of one column mean what the same events as mappings mean."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from matchmill.encoding.events.arrow_cells import read_cells
from matchmill.errors import EventError
from matchmill.language.flatten import flatten_event
from matchmill.language.values import Region
from matchmill.settings import Settings
from tests.support.generators import cases

PAIRS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())]))


def texts_of(seed: int, n: int) -> list[dict[str, str]]:
    _, events = cases(seed, 0, n)
    return [{k: v for k, v in event.items() if type(v) is str} for event in events]


def as_maps(events: list[Any]) -> pa.Array:
    return pa.array(
        [e if e is None else list(e.items()) for e in events], pa.map_(pa.string(), pa.string())
    )


def as_pairs(events: list[Any]) -> pa.Array:
    rows = [
        e if e is None else [{"name": k, "value": v} for k, v in e.items()] for e in events
    ]  # fmt: skip
    return pa.array(rows, PAIRS)


def as_structs(events: list[Any]) -> pa.Array:
    names = sorted({name for e in events if e is not None for name in e})
    return pa.array(events, pa.struct([(name, pa.string()) for name in names]))


def as_json(events: list[Any]) -> pa.Array:
    return pa.array([json.dumps(e or {}) for e in events])


@pytest.mark.parametrize("write", [as_maps, as_pairs, as_structs, as_json])
def test_every_form_means_the_same(write: Any) -> None:
    events: list[Any] = [*texts_of(1, 50), None, {}, *texts_of(2, 50)]
    whole = write(events)
    for cells, part in ((whole, events), (whole.slice(7, 60), events[7:67])):
        found = read_cells(cells)
        assert found.n_events == len(part)
        columns = found.columns()
        assert columns.rejected == {}
        values: list[dict[str, str]] = [{} for _ in part]
        for column in columns.columns:
            assert column.text is not None
            texts = column.text.to_pylist()
            for row, text in zip(column.rows.tolist(), texts, strict=True):
                values[row][column.attribute] = text
        assert values == [e or {} for e in part]
        assert [found.event(i) for i in range(len(part))] == values


NUMBERS = [
    [("a", 1.5), ("b", None), ("c", float("nan"))],
    [("b", float("inf"))],
    None,
    [("a", 2.0), ("a", 3.0)],
    [("c", -0.0), ("a", 2.0**63)],
    [],
]


@pytest.mark.parametrize("nested", [False, True])
def test_numbers_that_are_absent_or_bad(nested: bool) -> None:
    """Maps to scalars are read at once, others key by key; what is found is the same."""
    rows: Any = NUMBERS
    kind = pa.map_(pa.string(), pa.float64())
    if nested:
        kind = pa.map_(pa.string(), pa.struct([("x", pa.float64())]))
        rows = [r if r is None else [(k, {"x": v}) for k, v in r] for r in rows]
    found = read_cells(pa.array(rows, kind))
    columns = found.columns()
    assert not columns.rejected
    suffix = ".x" if nested else ""
    values = {(c.attribute, c.region): dict(zip(c.rows.tolist(), c.part.tolist(), strict=True))
              for c in columns.columns}  # fmt: skip
    number, opaque = Region.NUMBER, Region.OBJECT
    assert values == {
        (f"a{suffix}", number): {0: 0.5, 4: 2.0**63},
        (f"a{suffix}", opaque): {3: 0.0},  # given twice
        (f"b{suffix}", opaque): {1: 0.0},  # infinite
        (f"c{suffix}", number): {4: 0.0},
    }


def test_only_what_is_wanted() -> None:
    cells = as_maps([{"a": "1", "b": "2"}, {"b": "3"}])
    (column,) = read_cells(cells).columns(lambda name: name == "b").columns
    assert (column.attribute, column.rows.tolist()) == ("b", [0, 1])


def test_a_name_given_twice_cannot_be_compared() -> None:
    twice = [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]
    found = read_cells(pa.array([twice, [{"name": "a", "value": "1"}]], PAIRS))
    by_region = {column.region: column.rows.tolist() for column in found.columns().columns}
    assert by_region == {Region.OBJECT: [0], Region.STRING: [1]}
    assert "twice" in found.event(0)["a"].problem


def test_a_pair_without_a_name_is_left_out() -> None:
    nameless = {"name": None, "value": "1"}
    named = {"name": "a", "value": "2"}
    cells = pa.array([[named], [nameless], None, [nameless, named, nameless]], PAIRS)
    found = read_cells(cells)
    (column,) = found.columns().columns
    assert (column.rows.tolist(), column.text.to_pylist()) == ([0, 3], ["2", "2"])
    assert [found.event(i) for i in range(4)] == [{"a": "2"}, {}, {}, {"a": "2"}]


def test_nested_values_and_limits() -> None:
    kind = pa.map_(pa.string(), pa.list_(pa.int64()))
    cells = pa.array([[("a", [1, 2])], [("a", None)], [("b", [1, 2, 3, 4])]], kind)
    assert [read_cells(cells).event(i) for i in range(3)] == [
        flatten_event(e) for e in ({"a": [1, 2]}, {}, {"b": [1, 2, 3, 4]})
    ]
    assert list(read_cells(cells, Settings(max_event_values=4)).columns().rejected) == [2]
    shallow = read_cells(cells, Settings(max_event_depth=1)).columns().columns
    assert [(c.attribute, c.region, c.rows.tolist()) for c in shallow] == [
        ("a", Region.OBJECT, [0]),
        ("b", Region.OBJECT, [2]),
    ]


def test_json_cells_one_by_one() -> None:
    cells = pa.array(['{"a": 1}', None, "", ' {"a":\n2} ', '{"a": "x\ny"}', '{"a": 1} {}', "{"])
    found = read_cells(cells)
    rejected = found.columns().rejected
    assert sorted(rejected) == [1, 2, 4, 5, 6]
    assert not any("line" in reason for reason in rejected.values())
    assert found.event(3) == {"a": 2}


@pytest.mark.parametrize("cells", [pa.array([1]), pa.array([[1]]), pa.array([b"{}"])])
def test_other_columns_hold_no_events(cells: pa.Array) -> None:
    with pytest.raises(EventError, match="give structs, maps"):
        read_cells(cells)
