"""`script/demo`: Spark where it can be had, the tour where not, or where it is asked for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "script" / "demo"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The script among others that only say how they were called."""
    (tmp_path / "script").mkdir()
    shutil.copy(SCRIPT, tmp_path / "script" / "demo")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    write(tmp_path / ".venv" / "bin" / "python", 'echo "python $*"')
    write(tmp_path / "script" / "bootstrap", 'echo "bootstrap $*"')
    return tmp_path


def write(path: Path, command: str) -> None:
    path.write_text(f"#!/bin/sh\n{command}\n")
    path.chmod(0o755)


def run(root: Path, *arguments: str) -> tuple[list[str], str]:
    done = subprocess.run(
        [root / "script" / "demo", *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines(), done.stderr


def test_the_demo_is_the_pipeline(root: Path) -> None:
    lines, _ = run(root, "--events", "7")
    assert lines == ["bootstrap spark", "python -m matchmill.lab.demo.spark --events 7"]


def test_the_tour_needs_no_spark(root: Path) -> None:
    lines, _ = run(root, "--tour", "--events", "7")
    assert lines == ["bootstrap ", "python -m matchmill.lab.demo.tour --events 7"]


def test_without_java_there_is_the_tour(root: Path) -> None:
    write(root / "script" / "bootstrap", 'echo "bootstrap $*"; test "$1" != spark')
    lines, told = run(root, "--events", "7")
    assert lines[-2:] == ["bootstrap ", "python -m matchmill.lab.demo.tour --events 7"]
    assert "a Java 17 for it cannot be had" in told
