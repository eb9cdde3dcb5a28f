"""What is found in the bytes of JSON lines is what Python's json finds."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pytest

from matchmill.encoding.events.columns import InterleavedEvents
from matchmill.encoding.events.json_lines import read_json_lines
from matchmill.encoding.events.json_scan import has_null_in_array, value_kinds
from matchmill.language.values import Opaque

KINDS = {str: 1, int: 2, float: 2, bool: 3, dict: 4, list: 5, type(None): 0}
TEXTS = ["a", 'say "a"', "\\", "[null]", '{"a": 1}', "n", "é", ""]


def random_value(rng: Random, depth: int = 3) -> Any:
    if depth and rng.random() < 0.7:
        if rng.random() < 0.5:
            return [random_value(rng, depth - 1) for _ in range(rng.randrange(3))]
        return {rng.choice(TEXTS): random_value(rng, depth - 1) for _ in range(rng.randrange(3))}
    return rng.choice([*[None] * 4, True, False, 1, -2.5, *TEXTS])


def has_null(value: Any, inside: bool = False) -> bool:
    if isinstance(value, list):
        return any(has_null(one, True) for one in value)
    if isinstance(value, dict):
        return any(has_null(one, inside) for one in value.values())
    return inside and value is None


@pytest.mark.kernels
def test_nulls_and_kinds() -> None:
    rng = Random(1)
    objects = [{key: random_value(rng) for key in rng.sample(TEXTS, 3)} for _ in range(400)]
    separators = [(",", ":"), (", ", ": "), (" ,\t", " : ")]
    lines = [json.dumps(one, separators=rng.choice(separators), ensure_ascii=False).encode()
             for one in objects]  # fmt: skip
    data = np.frombuffer(b"\n".join(lines), np.uint8).copy()
    ends = np.cumsum([len(line) + 1 for line in lines]) - 1
    starts = ends - [len(line) for line in lines]
    expected = [has_null(one) for one in objects]
    assert has_null_in_array(data, starts, ends).tolist() == expected
    assert 0.1 < sum(expected) / len(objects) < 0.9
    for text in TEXTS:
        name = np.frombuffer(json.dumps(text, ensure_ascii=False).encode(), np.uint8).copy()
        kinds = [KINDS[type(one.get(text))] for one in objects]
        assert value_kinds(data, starts, ends, name).tolist() == kinds


BAD = {
    "a name twice": '{"id": 1, "id": 2}',
    "no JSON": '{"id": }',
    "two objects": '{"id": 1} {"id": 2}',
    "a large integer": '{"id": 123456789012345678901}',
    "infinite": '{"id": 1e999}',
    "half a character": '{"text": "\\ud800"}',
    "another type": '{"id": "x"}',
    "another type inside": '{"items": [{"n": "x"}]}',
    "a null at the beginning": '{"items": [null, {"n": 1}]}',
    "deep": '{"id": ' + "[" * 300 + "]" * 300 + "}",
    "no object": "[1]",
}


@pytest.mark.parametrize("name", BAD)
def test_few_lines_go_the_slow_way(name: str) -> None:
    """One odd line among many: the others are read by Arrow, and all mean what they say."""
    good = [
        {"id": n, "text": "😀", "items": [{"n": k} for k in range(n % 3)], "x": n / 4}
        for n in range(2000)
    ]
    lines = [json.dumps(one) for one in good]
    for place in (0, 1000, 1999):
        some = [*lines]
        some[place] = BAD[name]
        events = read_json_lines("\n".join(some).encode())
        (part,) = events._parts
        parts = part.parts if isinstance(part, InterleavedEvents) else []  # or Arrow is exact
        assert parts or (name == "a null at the beginning" and place > 0)
        n_slow = sum(len(rows) for rows, one in parts if type(one).__name__ == "_LineEvents")
        assert n_slow <= 64
        slow = read_json_lines("\n".join(some).encode(), fast=False)
        assert events.columns().rejected == slow.columns().rejected
        for i in {place, abs(place - 1), (place + 1) % 2000, 5} - set(slow.columns().rejected):
            assert plain(events.event(i)) == plain(slow.event(i))


def plain(value: Any) -> Any:
    """A flat event in a form that can be compared."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value.problem if isinstance(value, Opaque) else value


def test_a_name_of_several_types_is_read_in_groups() -> None:
    values: list[Any] = [1, "x", True, None, [1], {"y": 1}]
    lines = [json.dumps({"id": n, "mixed": values[n % 6]}) for n in range(3000)]
    events = read_json_lines("\n".join(lines).encode())
    (part,) = events._parts
    assert isinstance(part, InterleavedEvents)
    assert all(type(one).__name__ == "_LineTableEvents" for _, one in part.parts)
    assert [events.event(i) for i in range(3000)] == [
        read_json_lines(line.encode(), fast=False).event(0) for line in lines
    ]
