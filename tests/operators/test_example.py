"""The example with a model: with a stand-in for the model, and without any."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "languages.py"
WORDS = {"de": "der zug nach nicht", "fr": "le match de demain est la", "en": "the will be of"}


class Identifier:
    """Counts words that a language is known by."""

    @classmethod
    def from_pickled_model(cls, path: str, *, norm_probs: bool) -> Identifier:
        assert (path, norm_probs) == ("model", True)
        return cls()

    def rank(self, text: str) -> list[tuple[str, float]]:
        words = set(text.lower().split())
        counts = {code: len(words & set(known.split())) for code, known in WORDS.items()}
        total = sum(counts.values()) or 1
        ranked = sorted(counts, key=counts.__getitem__, reverse=True)
        return [(code, counts[code] / total) for code in ranked]


def run(capsys: pytest.CaptureFixture[str]) -> list[str]:
    main: Callable[[], Any] = runpy.run_path(str(EXAMPLE))["main"]
    main()
    return capsys.readouterr().out.splitlines()


def test_with_a_model(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    package, module = ModuleType("py3langid"), ModuleType("py3langid.langid")
    vars(module).update(LanguageIdentifier=Identifier, MODEL_FILE="model")
    monkeypatch.setitem(sys.modules, "py3langid", package)
    monkeypatch.setitem(sys.modules, "py3langid.langid", module)
    lines = run(capsys)
    assert [line.partition("[")[2] for line in lines[:3]] == [
        "'french posts on sports', 'not english']",
        "'german posts', 'not english']",
        "]",
    ]
    assert ", 0 errors" in lines[3]


def test_without_one(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid", None)
    lines = run(capsys)
    assert all(line.endswith("[]") for line in lines[:3])
    assert lines[3].endswith("this needs py3langid: pip install py3langid")
