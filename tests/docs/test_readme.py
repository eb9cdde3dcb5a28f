"""The README's example runs, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(code, names)
    assert "dep_delay is 45, needs > 60" in capsys.readouterr().out
    assert (tmp_path / "alerts.mill" / "manifest.json").exists()
    assert names["matches"].n_matches == 2  # type: ignore[attr-defined]


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert len(links) >= 5
    for link in links:
        assert (ROOT / link).exists(), link
