"""Every step of the walks through the code is where the page says."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "WALKS.md"
STEP = re.compile(r"^ *([a-z_/]+\.py) +([\w.]+)", re.MULTILINE)
STEPS = STEP.findall(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("file", "name"), STEPS, ids=str)
def test_a_step_is_there(file: str, name: str) -> None:
    if file.startswith("spark/"):
        pytest.importorskip("pyspark")
    module = import_module("matchmill." + file.removesuffix(".py").replace("/", "."))
    found = reduce(getattr, name.split("."), module)
    assert found.__module__ == module.__name__


def test_there_are_steps() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(STEPS) == len(re.findall(r"\.py +[A-Za-z_]", text)) > 40
