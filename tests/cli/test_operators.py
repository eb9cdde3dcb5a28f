"""Operators on the command line: a module that registers them is named."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import matchmill as mm
from matchmill.cli import main

MODULE = """\
import matchmill as mm

@mm.operator(cost_ms=2)
def shop_is_near(event, km):
    return event["km"] <= km
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "shop_operators.py").write_text(MODULE)
    rows = 'subscription_id,expression\na,"shop_is_near(3) and price < 5"\n'
    (tmp_path / "alerts.csv").write_text(rows)
    (tmp_path / "events.jsonl").write_text('{"km": 2, "price": 4}\n{"km": 9, "price": 4}\n')
    yield tmp_path
    sys.modules.pop("shop_operators", None)


WITH = ["--operators", "shop_operators", "--quiet"]


def test_match_build_check_and_explain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", "alerts.csv", "events.jsonl", *WITH]) == 0
    assert capsys.readouterr().out.split() == ["event_id,subscription_id", "0,a"]
    assert main(["check", "alerts.csv", *WITH]) == 0
    assert main(["build", "alerts.csv", "alerts.mill", *WITH]) == 0
    assert main(["match", "alerts.mill", "events.jsonl", *WITH]) == 0
    assert capsys.readouterr().out.split() == ["event_id,subscription_id", "0,a"]
    assert main(["explain", "shop_is_near(3)", '{"km": 2}', *WITH[:2]]) == 0
    assert "✓ shop_is_near(3)" in capsys.readouterr().out


def test_without_the_module(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "alerts.csv", "alerts.mill", *WITH]) == 0
    mm.unregister_operator("shop_is_near")
    assert main(["check", "alerts.csv"]) == 1
    assert "there is no operator 'shop_is_near'" in capsys.readouterr().out
    assert main(["match", "alerts.mill", "events.jsonl"]) == 2
    assert "not registered: shop_is_near" in capsys.readouterr().err
    assert main(["explain", "shop_is_near(3)", '{"km": 2}']) == 2
    assert "there is no operator" in capsys.readouterr().err


def test_a_module_that_is_not_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", "alerts.csv", "events.jsonl", "--operators", "unheard_of"]) == 2
    assert "--operators unheard_of: it cannot be imported" in capsys.readouterr().err
    (folder / "broken_operators.py").write_text("1 / 0")
    assert main(["check", "alerts.csv", "--operators", "broken_operators"]) == 2
    assert "ZeroDivisionError" in capsys.readouterr().err
