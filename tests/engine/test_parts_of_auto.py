"""What `stats` says of a default engine that combines several structures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import matchmill as mm


def test_stats_say_what_was_chosen_and_why(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    boxes = [
        f"x between {x} and {x + 5} and y between {y} and {y + 5}"
        for x, y in random.uniform(0, 100, (20_000, 2)).round(6).tolist()
    ]
    engine = mm.Engine({**dict(enumerate(boxes)), -1: "z = 1"})
    engine.compact()
    (segment,) = engine.stats().index
    assert [part.index for part in segment.parts] == ["mill", "mask_tree"]
    assert [part.n_clauses for part in segment.parts] == [1, 20_000]
    costs = segment.parts[1].expected_ns
    assert costs["mask_tree"] < costs["bitmaps"] < costs["mill"]
    figures = engine.stats().to_dict()
    assert json.loads(json.dumps(figures)) == figures
    assert "expected µs per event: mill" in str(engine.stats())
    engine.save(tmp_path / "saved")
    event = {"x": 50, "y": 50, "z": 1}
    with mm.Engine.open(tmp_path / "saved") as opened:
        assert opened.match(event) == engine.match(event)
        assert opened.stats().index[0].parts == segment.parts


def test_stats_of_lists_and_nested_clauses() -> None:
    """An engine of several indexes names them all."""
    nested = " and ".join(
        "(" + " or ".join(f"{name} = {i}" for name in names) + ")"
        for i, names in enumerate(("abcd", "efgh", "ijkl", "mnop"))
    )
    engine = mm.Engine({1: "a = 1", 2: "tags contains any ('x', 'y')", 3: nested})
    engine.compact()
    (segment,) = engine.stats().index
    assert [part.index for part in segment.parts] == ["mill", "lists", "nested"]
    assert sum(part.n_clauses for part in segment.parts) == segment.n_clauses
    assert "lists" in str(engine.stats())
