"""`script/bench standard --against`: two checkouts on one workload."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.support.against import (
    Comparison,
    compare_checkouts,
    engine_contender,
    print_comparisons,
    save_workload,
    verdict,
)
from matchmill.errors import InputError
from matchmill.lab.experiments.spec import Contender, Point
from matchmill.lab.workloads.registry import generate
from matchmill.lab.workloads.standard import standard

HERE = Path(__file__).parents[2]

# A package laid out as it was before, with an index that scans in plain NumPy.
OTHER = {
    "__init__.py": "",
    "encoding/__init__.py": "",
    "encoding/conjunction_table.py": """
from typing import NamedTuple
class ConjunctionTable(NamedTuple):
    clause_ids: object
    clause_offsets: object
    dimensions: object
    interval_offsets: object
    lows: object
    highs: object
""",
    "encoding/event_batch.py": """
from typing import NamedTuple
class EventBatch(NamedTuple):
    offsets: object
    dimensions: object
    keys: object
""",
    "indexes/__init__.py": "",
    "indexes/event_sample.py": "def build_statistics(events, n_dimensions): return None\n",
    "indexes/registry.py": """
from types import SimpleNamespace
import numpy as np
class Plain:
    def __init__(self, table): self.table = table
    @classmethod
    def build(cls, table, statistics): return cls(table)
    def stats(self): return SimpleNamespace(n_bytes=0)
    def holds(self, c, event):
        t = self.table
        return all(
            any(t.lows[k] <= event.get(int(t.dimensions[p]), 0) <= t.highs[k]
                for k in range(t.interval_offsets[p], t.interval_offsets[p + 1]))
            for p in range(t.clause_offsets[c], t.clause_offsets[c + 1]))
    def match_batch(self, events):
        found, offsets = [], [0]
        for e in range(len(events.offsets) - 1):
            span = slice(events.offsets[e], events.offsets[e + 1])
            event = dict(zip(events.dimensions[span].tolist(), events.keys[span].tolist()))
            # In another order than others, which must not matter.
            found += [c for c in reversed(range(len(self.table.clause_ids)))
                      if self.holds(c, event)][FIRST:]
            offsets.append(len(found))
        return SimpleNamespace(offsets=np.array(offsets), clause_ids=np.array(found, np.int64))
def index_class(name): return Plain
""",
}


def other_checkout(folder: Path, first: int) -> Path:
    for name, text in OTHER.items():
        path = folder / "matchmill" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("FIRST", str(first)), encoding="utf-8")
    return folder


def compared(before: Path, folder: Path, contender: Contender) -> Comparison:
    spec = standard("be1").changed(
        n_subscriptions=60, n_events=20, n_dimensions=12, event_size=8, subscription_size=3,
        matching_probability=0.2,
    )  # fmt: skip
    workload = generate(spec)
    save_workload(workload, folder, with_texts=True)
    point = Point(spec, {"case": "be1"}, {})
    return compare_checkouts(
        before, HERE, point, contender, folder, rounds=3, starts=2, builds=1, clock="cpu"
    )


def test_the_same_matches_of_an_earlier_layout(tmp_path: Path) -> None:
    before = other_checkout(tmp_path / "before", 0)
    found = compared(before, tmp_path / "workload", Contender("scan", "scan", {}))
    assert found.problem == ""
    assert found.n_matches > 0
    assert len(found.before) == len(found.after) == 6
    assert len(found.builds_before) == len(found.builds_after) == 2


def test_other_matches_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = other_checkout(tmp_path / "before", 1)  # loses one match per event
    found = compared(before, tmp_path / "workload", Contender("scan", "scan", {}))
    assert "the matches differ" in found.problem
    assert print_comparisons([found], []) == 1
    assert "1 with other matches" in capsys.readouterr().out


def test_the_engine_is_a_contender(tmp_path: Path) -> None:
    found = compared(HERE, tmp_path / "workload", engine_contender())
    assert found.problem == ""
    assert found.n_matches > 0


def test_a_child_that_fails_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="exit code 1"):
        compared(HERE, tmp_path / "workload", Contender("bush", "bush", {}))


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ([1.02, 1.02, 1.02, 1.02], "noise"),  # too small
        ([1.2, 1.2, 0.9, 0.9], "noise"),  # both ways
        ([1.3, 1.3, 1.3, 1.0], "noise"),  # the fastest is as fast as before
        ([1.1, 1.2, 1.05, 1.1], "slower"),
        ([0.9, 0.8, 0.95, 0.9], "faster"),
    ],
)
def test_verdicts(after: list[float], expected: str) -> None:
    assert verdict([1.0, 1.0, 1.0, 1.0], after) == expected
