"""Large and hostile expressions, events and folders: an error or an answer, soon, and no harm."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

import matchmill as mm
from tests.support.soon import ends_soon

LARGE = {
    "ten thousand conjuncts": " and ".join(f"a{i} = 1" for i in range(10_000)),
    "ten thousand conjuncts on one attribute": " and ".join(f"a != {i}" for i in range(10_000)),
    "ten thousand disjuncts": " or ".join(f"a{i} = 1" for i in range(10_000)),
    "disjuncts on one attribute": " or ".join(f"a = {i}" for i in range(10_000)),
    "five thousand pairs to choose from": " and ".join(
        f"(a{i} = 1 or b{i} = 1)" for i in range(5_000)
    ),
    "pairs and conjuncts": " and ".join(
        [f"(a{i} = 1 or b{i} = 1)" for i in range(10)] + [f"c{i} = 1" for i in range(9_000)]
    ),
    "five thousand conjunctions": " or ".join(f"(a{i} = 1 and b{i} = 1)" for i in range(5_000)),
    "a long list": f"a in ({', '.join(map(str, range(99_999)))})",
    "a long list excluded": f"a not in ({', '.join(map(str, range(99_999)))})",
    "a long list contained": f"a contains all ({', '.join(map(str, range(5_000)))})",
    "not all of a long list": f"not a contains all ({', '.join(map(str, range(5_000)))})",
    "deep": "not (" * 31 + "a = 1" + ")" * 31,
    "a long pattern": f"a like '{'%a_' * 3_000}'",
    "a slow pattern": f"a rlike '{'(a*)*' * 50}b'",
    "wide and deep": "(" * 30 + "a = 1" + "".join(f" or b{i} = 1) and c{i} = 1" for i in range(30)),
}


@pytest.fixture(scope="module")
def compiled() -> None:
    """Compiling kernels is not what is timed here."""
    engine = mm.Engine(settings=mm.Settings(fresh_clauses=2))
    texts = ("a = 1", "a = 'x' and b > 1", "a like '%x%' or a rlike 'y'", "a contains 1", "c = 2")
    engine.subscribe_many(enumerate(texts))
    for event in ({}, {"a": 1}, {"a": "xy"}, {"a": [1, "x"]}):
        engine.match(event)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.usefixtures("compiled")
def test_large_expressions(name: str) -> None:
    with ends_soon():
        engine = mm.Engine()
        engine.subscribe("x", LARGE[name])
        assert engine.stats().n_clauses <= 64
        for event in (
            {},
            {"a": 1},
            {"a": "a" * 5_000},
            {"a": [1, 2]},
            {f"a{i}": 1 for i in range(20)},
        ):
            expected = mm.evaluate(mm.parse(LARGE[name]), event) is True
            assert (engine.match(event) == {"x"}) == expected


def _rewrite(folder: Path, change: object) -> None:
    """A manifest that says something else, with a checksum that fits."""
    file = folder / "manifest.json"
    body = json.loads(file.read_bytes())["body"]
    change(body)  # type: ignore[operator]
    crc = zlib.crc32(json.dumps(body, sort_keys=True).encode())
    file.write_text(json.dumps({"crc32": crc, "body": body}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b.update(version=99), "format version 99"),
        (lambda b: b.update(format="cake"), "'cake'"),
        (lambda b: b.update(data="../../etc"), "no name of a file"),
        (lambda b: b["arrays"].update({"../x": {}}), "no name of a file"),
        (lambda b: b["arrays"].pop("text_data"), "not a complete saved engine"),
        (lambda b: b["meta"].update(index="nope"), "unknown index 'nope'"),
        (lambda b: b["meta"].update(id_type="float"), "unknown type 'float'"),
        (lambda b: b["meta"].update(segments=["scan"] * 9), "not a complete saved engine"),
        (lambda b: b["meta"]["settings"].update(max_depth=0), "max_depth"),
        (lambda b: b["meta"].pop("settings"), "not a complete saved engine"),
    ],
)
def test_manifests_that_lie(tmp_path: Path, change: object, message: str) -> None:
    engine = mm.Engine()
    engine.subscribe("a", "x = 1")
    engine.save(tmp_path / "e")
    _rewrite(tmp_path / "e", change)
    with pytest.raises(mm.MatchmillError, match=message):
        mm.Engine.open(tmp_path / "e")
