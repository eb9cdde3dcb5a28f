"""The tasks of a newcomer run, each with the result that a newcomer expects."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("polars")
SCRIPT = Path(__file__).parents[2] / "examples" / "newcomer.py"

EXPECTED = {
    1: ("0,u1", "alerts.csv:3: u2:", "--subscription-id name"),
    2: ("events: 1 read", "events: 6 read", "matches: 6 in out.csv"),
    3: ("│ 2        ┆ u3              │", "│ u3              │     2 │"),
    4: ("[{'u1'}, set()]",),
    5: ("'late'", "✓ ts > timestamp '2013-01-01 00:00:00': ts is '2013-01-31 11:00:00'"),
    6: ("events: 3 published, 0 rejected",),
    7: ("u1: x > 30", '"expression":"x > 20"'),
    8: ("['u1', 'u3']", "['a', 'b.c']", "n_subscriptions: 2"),
    9: ("dep_delay is 45, needs > 60", "a name alone is a boolean attribute"),
    10: ("FolderInUseError", "in /", "create=True", "cannot be pickled"),
    11: (
        "<SubscribeReport: 1 accepted, 2 rejected>",
        "did you mean 'max_clauses'?",
        "did you mean 'dep_delay'?",
    ),
    12: ("{'u1'}",),
    13: ("{'far'}", "['is_far']"),
    14: ('Expression("a = 1 or b > 2")', "<EngineStats: 1 subscriptions"),
    15: ('"subscription_id":"mine"', "the form is {", "Matchmill-Ticket is missing"),
}


@pytest.mark.slow
def test_every_task(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    parts = re.split(r"^(\d+)\. ", done.stdout, flags=re.MULTILINE)[1:]
    said = dict(zip(map(int, parts[::2]), parts[1::2], strict=True))
    assert said.keys() == EXPECTED.keys()
    missing = {
        number: [text for text in texts if text not in said[number]]
        for number, texts in EXPECTED.items()
    }
    assert {number: texts for number, texts in missing.items() if texts} == {}
