"""Many events are read and matched in pieces: memory is bounded, the result is the same."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import matchmill as mm


@pytest.mark.parametrize("event_id", [None, "no"])
def test_the_result_is_that_of_all_at_once(
    event_id: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = mm.Engine({"a": "x > 5", "b": "x < 8 or y = 'u'"})
    events: list[dict[str, object]] = [
        {"no": n, "x": n % 11, "y": "u" if n % 5 else "v"} for n in range(40)
    ]
    for n in range(8):
        del events[n]["no"]  # of a whole piece
    names = ("no", "x", "y")
    table = pa.table({name: [event.get(name) for event in events] for name in names})
    lines = "\n".join(json.dumps(event) for event in events)
    (tmp_path / "events.jsonl").write_text(lines + "\nnonsense\n")
    sources = (
        lambda: events,
        lambda: iter(events),
        lambda: table,
        lambda: table.to_reader(max_chunksize=6),
        lambda: tmp_path / "events.jsonl",
        lambda: mm.read_events(tmp_path / "events.jsonl"),
    )
    whole = [engine.match_many(source(), event_id=event_id) for source in sources]
    monkeypatch.setattr("matchmill.engine.engine._EVENTS_AT_ONCE", 7)
    for source, expected in zip(sources, whole, strict=True):
        found = engine.match_many(source(), event_id=event_id)
        assert list(found) == list(expected)
        assert found.rejected == expected.rejected
        assert found.event_ids().equals(expected.event_ids())
        assert found.to_arrow().schema.equals(expected.to_arrow().schema)


def test_no_events_and_no_ids() -> None:
    engine = mm.Engine({"a": "x > 5"})
    assert engine.match_many([]).n_events == 0
    assert engine.match_many(iter([]), event_id="no").to_arrow().num_rows == 0
    with pytest.raises(mm.InputError, match="no event has"):
        engine.match_many([{"x": 6}], event_id="no")
