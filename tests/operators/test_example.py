"""The example with a model: with it, and without."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "languages.py"


def run(capsys: pytest.CaptureFixture[str]) -> list[str]:
    main: Callable[[], Any] = runpy.run_path(str(EXAMPLE))["main"]
    main()
    return capsys.readouterr().out.splitlines()


def test_with_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("py3langid", reason="the example's model; the extra dev installs it")
    lines = run(capsys)
    assert [line.partition("[")[2] for line in lines[:3]] == [
        "'french posts on sports', 'not english']",
        "'german posts', 'not english']",
        "]",
    ]
    assert ", 0 errors" in lines[3]


def test_without_one(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    lines = run(capsys)
    assert all(line.endswith("[]") for line in lines[:3])
    assert lines[3].endswith("this needs py3langid: pip install py3langid")
