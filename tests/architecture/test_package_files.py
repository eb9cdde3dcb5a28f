"""What the wheel holds besides Python: nothing that is not needed at run time."""

from __future__ import annotations

from pathlib import Path

import matchmill

PACKAGE = Path(matchmill.__file__).parent

# Marker of types; the service's page; the experiments that `matchmill bench` runs.
NEEDED = ("py.typed", "service/web/*", "lab/experiments/specs/*/*.toml")


def test_only_files_that_are_needed_at_run_time() -> None:
    needed = {file for pattern in NEEDED for file in PACKAGE.glob(pattern)}
    found = {
        file
        for file in PACKAGE.rglob("*")
        if file.is_file() and file.suffix != ".py" and "__pycache__" not in file.parts
    }
    assert sorted(str(file.relative_to(PACKAGE)) for file in found - needed) == []
    assert sum(file.stat().st_size for file in found) < 250_000
