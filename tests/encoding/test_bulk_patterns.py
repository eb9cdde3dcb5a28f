"""JSON patterns that kernels read, against the parser: reasons, texts, clauses and values."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pytest

import matchmill as mm
from matchmill.encoding.bulk.pattern_reader import PatternReader
from matchmill.encoding.texts import strings_to_texts
from matchmill.engine import loading
from matchmill.settings import Settings
from tests.encoding.test_bulk_reader import check, chunk_of
from tests.support.odd_patterns import odd_pattern
from tests.support.odd_texts import odd_ids, odd_text
from tests.support.tiers import first_cases

DIALECTS = ("matchmill", "eventbridge")

PLAIN: list[Any] = [
    {"a": ["x"]},
    {"a": ["x", "y", 5, 2.5, True, False]},
    {"a": {"b": {"c": [1]}}, "d": ["it's"]},
    {"a": [None]},
    {"a": [{"exists": True}], "b": [{"exists": False}, "x"]},
    {"a": [{"prefix": "x%_\\"}, {"suffix": "größe"}, {"equals-ignore-case": "aB"}]},
    {"a": [{"prefix": {"equals-ignore-case": "aB"}}, {"suffix": {"equals-ignore-case": "aB"}}]},
    {"a": [{"numeric": [">", 5]}, {"numeric": ["<", -0.5]}, {"numeric": ["=", 0]}]},
    {"a": [{"numeric": [">", 0, "<=", 5]}, {"numeric": [">=", 7, "<", 9.5]}, "x"]},
    {"a": [{"anything-but": "x"}], "b": [{"anything-but": [1, 2.5]}]},
    {"a": [{"suffix": "x"}, 1], "b": [{"suffix": "y"}, 2], "größe.x y": [{"prefix": "z"}, None]},
    {"a": [f"city {k}" for k in range(100)]},
]
NOT_PLAIN: list[Any] = [
    *({}, {"a": []}, {"a": "x"}, {"a": {}}, {"": ["x"]}, {"a": [[]]}, {"a": [{}]}, {5: ["x"]}),
    *({"a": [{"numeric": [">"]}]}, {"a": [{"numeric": [">", 5, "<", 5]}]}, {"a": [10**19]}),
    *({"a": [{"wildcard": "x*"}]}, {"a": [{"cidr": "10.0.0.0/8"}]}, {"a": [{"prefix": 5}]}),
    *({"$or": [{"a": [1]}, {"b": [1]}]}, {"a": {"b": [1]}, "a.b": [2]}, {"a": [float("nan")]}),
    *({"a": [{"prefix": "x", "suffix": "y"}]}, {"a": ("x",)}, {"a": [{"exists": 1}]}),
    *({"a": ["\ud800"]}, {"a": {"b": {}}}, {"a": [{"anything-but": []}]}, {"a": [{"prefix": ""}]}),
    *('{"a": ["x"]', '{"a": ["x",]}', '{"a": [05]}', '{"a": [1], "a": [1]}', '{"a": ["\\ud800"]}'),
    *('{"a": ["x\ty"]}', '{"a": [1.]}', "{'a': [1]}", '{"a": [NaN]}', '{"a": [1]} x', "[1]"),
]  # fmt: skip


def compared(seed: int, n: int, oddness: float, dialect: str) -> None:
    rng = Random(seed)
    sources = [odd_pattern(rng, oddness) for _ in range(n)]
    if seed % 3 == 0:
        sources = [odd_text(rng) if rng.random() < 0.2 else source for source in sources]
    ids: list[Any] = odd_ids(rng, n) if seed % 4 == 0 else list(range(n))
    half = n // 2
    chunks = [chunk_of(ids[:half], sources[:half]), chunk_of(ids[half:], sources[half:])]
    check(chunks, dialect=dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("seed", first_cases(1, range(200)))
def test_odd_patterns(seed: int, dialect: str) -> None:
    compared(seed, 250, 0.04, dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("seed", first_cases(1, range(1000, 1200)))
def test_patterns_that_are_mostly_plain(seed: int, dialect: str) -> None:
    compared(seed, 250, 0.002, dialect)


def n_clauses_of(sources: list[Any], dialect: str) -> list[int]:
    reader = PatternReader(Settings(), is_ours=dialect == "matchmill")
    found = []
    for source in sources:
        if isinstance(source, str):
            plain = reader.read_json(strings_to_texts([source]), np.arange(1))
        else:
            plain = reader.read_objects(np.arange(1), [source])
        found.append(int(plain.n_clauses[0]))
    return found


@pytest.mark.parametrize("dialect", DIALECTS)
def test_named_patterns(dialect: str) -> None:
    plain = [*PLAIN, *map(json.dumps, PLAIN)]
    assert all(n_clauses_of(plain, dialect))
    assert not any(n_clauses_of(NOT_PLAIN, dialect))
    sources = [*plain, *NOT_PLAIN]
    check([chunk_of(list(range(len(sources))), sources)], dialect=dialect)


@pytest.mark.parametrize(
    "limits",
    [
        {"max_conditions": 3},
        {"max_values": 5},
        {"max_expression_length": 60},
        {"max_depth": 3},
        {"max_clauses": 2},
        {"max_pattern_length": 3},
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_limits_hold(limits: dict[str, int], dialect: str) -> None:
    rng = Random(5)
    sources = [*PLAIN, *map(json.dumps, PLAIN), *(odd_pattern(rng) for _ in range(100))]
    check([chunk_of(list(range(len(sources))), sources)], Settings(**limits), dialect=dialect)


def test_objects_that_share_others_do_not_grow() -> None:
    shared: Any = ["x"]
    for _ in range(60):
        shared = {"a": shared, "b": shared}
    of_lists: Any = ["x"]
    for _ in range(60):
        of_lists = [of_lists, of_lists]
    rows = [shared, {"a": of_lists}, {"a": [{"prefix": of_lists}]}, {"a": [{"prefix": shared}]}]
    assert n_clauses_of(rows, "matchmill") == [0] * 4


@pytest.mark.kernels
@pytest.mark.parametrize("dialect", DIALECTS)
def test_kernels_read_what_the_parser_reads(dialect: str) -> None:
    rng = Random(3)
    sources = [*PLAIN, *map(json.dumps, PLAIN), *NOT_PLAIN, *(odd_pattern(rng) for _ in range(40))]
    check([chunk_of(list(range(len(sources))), sources)], dialect=dialect)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_engine_finds_the_same(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(9)
    rows = list(enumerate(odd_pattern(rng) for _ in range(400)))
    engines = []
    for many in (1, 1 << 60):
        monkeypatch.setattr(loading, "_MANY", many)
        engine = mm.Engine()
        engine.subscribe_many(rows, dialect=dialect)
        engines.append(engine)
    texts = ["x", "y", "running", "stop", "ab", "KIk", 5, 0.5, True, None, ["x", 5], "größe"]
    events = [{k: rng.choice(texts) for k in ("a", "b", "c", "state")} for _ in range(200)]
    found = [engine.match_many(events) for engine in engines]
    assert [set(some) for some in found[0]] == [set(some) for some in found[1]]
    assert any(found[0])
