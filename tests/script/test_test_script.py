"""Which steps `script/test` runs, with a Python that only says how it is called."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
SAYS = '[[ "$1" == -c ]] && { echo 2; exit; }; echo "python $*"'


def write(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/usr/bin/env bash\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("bootstrap", "lint", "bench"):
        write(tmp_path / "script" / name, f'echo "{name} $*"')
    write(tmp_path / ".venv" / "bin" / "python", SAYS)
    shutil.copy(REPOSITORY / "script" / "test", tmp_path / "script" / "test")
    (tmp_path / "tests").mkdir()
    return tmp_path


def run(root: Path, *arguments: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [root / "script" / "test", *arguments],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def verdicts(lines: list[str]) -> dict[str, str]:
    """The verdict on each step, from the summary."""
    found = {}
    for line in lines[lines.index("=== summary ===") + 1 :]:
        title, verdict, _seconds, _unit = line.rsplit(maxsplit=3)
        found[title.strip()] = verdict
    return found


def test_all_steps(root: Path) -> None:
    code, lines = run(root)
    assert code == 0
    assert verdicts(lines) == dict.fromkeys(
        ["compile the kernels", "lint", "tests", "kernels without the JIT"], "ok"
    )
    assert lines.index("python -m matchmill.engine.warm") < lines.index("=== tests ===")
    assert "lint " in lines


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("lint", "lint"),
        ("engine.warm", "compile the kernels"),
        ("-n 5", "tests"),
        ("--ignore", "kernels without the JIT"),
    ],
)
def test_a_failing_step_stops_no_other(root: Path, words: str, title: str) -> None:
    write(root / ".venv" / "bin" / "python", f'{SAYS}; [[ "$*" != *"{words}"* ]]')
    if words == "lint":
        write(root / "script" / "lint", "exit 1")
    code, lines = run(root)
    assert code == 1
    found = verdicts(lines)
    assert len(found) == 4
    assert [name for name, verdict in found.items() if verdict == "FAILED"] == [title]


def test_before_a_release(root: Path) -> None:
    code, lines = run(root, "--long")
    assert code == 0
    assert list(verdicts(lines)) == [
        "compile the kernels", "tests with coverage", "long tests", "kill rounds",
        "more generated cases", "checked array bounds",
    ]  # fmt: skip
    assert sum(line.startswith("bench ") for line in lines) == 3
    assert sum("tests.support.what_ran" in line for line in lines) == 5
    checked = lines[lines.index("=== checked array bounds ===") :]
    assert any(
        "tests/papers" in line and "-m not long" in line for line in checked
    )  # the papers' are slow
    assert any("tests/engine -m long and bounds" in line for line in checked)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--fast"], "-m not slow and not long"),
        (["--fast", "-x"], "-x"),
        (["-k", "name"], "-k name"),
        (["tests", "-m", "slow"], "-m pytest tests -m slow"),
    ],
)
def test_some_of_the_tests(root: Path, arguments: list[str], words: str) -> None:
    code, lines = run(root, *arguments)
    assert code == 0
    assert len(verdicts(lines)) == 1
    assert any(words in line for line in lines)
