"""Crashes: at every step of a checkpoint, and processes killed in the middle of writing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

import matchmill as mm
from tests.support.engine_folders import contents, create
from tests.support.tiers import first_cases

# -- checkpoints ----------------------------------------------------------------------------------


class Crash(BaseException):
    """The process ends here; what follows is undone by taking the folder as it was."""


def test_a_crash_at_some_steps_of_a_checkpoint(tmp_path: Path, monkeypatch: Any) -> None:
    check_crashes(tmp_path, monkeypatch, stride=9)


@pytest.mark.long
def test_a_crash_at_any_step_of_a_checkpoint(tmp_path: Path, monkeypatch: Any) -> None:
    check_crashes(tmp_path, monkeypatch, stride=1)


def check_crashes(tmp_path: Path, monkeypatch: Any, stride: int) -> None:
    """Stop at each call that reaches the disk: the folder as it then is holds every change."""
    wanted = {n: f"x = {n}" for n in range(30) if n != 7}
    step = 1 - stride
    while True:
        step += stride
        folder, left = tmp_path / f"e{step}", tmp_path / f"left{step}"
        engine = create(folder, sync="never")
        for n in range(20):
            engine.subscribe(n, f"x = {n}")
        engine.save()
        engine.subscribe_many((n, f"x = {n}") for n in range(20, 30))
        engine.unsubscribe(7)
        n_calls = 0

        def counted(call: Any) -> Any:
            def counting(*arguments: Any, **options: Any) -> Any:
                nonlocal n_calls
                n_calls += 1
                if n_calls == step:  # noqa: B023 - used inside this turn of the loop
                    shutil.copytree(folder, left)  # noqa: B023
                    raise Crash
                return call(*arguments, **options)

            return counting

        for module, name in ((os, "fsync"), (os, "replace"), (os, "ftruncate"), (os, "unlink")):
            monkeypatch.setattr(module, name, counted(getattr(module, name)))
        try:
            engine.save()
        except Crash:
            pass
        else:
            break
        finally:
            monkeypatch.undo()
        engine.close()
        assert contents(left) == wanted
        with mm.Engine.open(left) as again:
            again.subscribe(100, "x = 100")
            again.save()
        assert contents(left) == wanted | {100: "x = 100"}
        assert len(list(left.glob("data-*"))) == len(list(left.glob("log-*"))) == 1
    assert step > 30
    assert contents(folder) == wanted
    engine.close()


# -- kill -9 --------------------------------------------------------------------------------------

CHILD = """
import sys
import matchmill as mm
from tests.engine.test_crashes import Script
folder, seed, sync = sys.argv[1], int(sys.argv[2]), sys.argv[3]
settings = mm.Settings(fresh_clauses=4, merge_factor=2, sync=sync, checkpoint_bytes=3000)
engine = mm.Engine.open(folder, create=True, settings=settings)
print("ready", flush=True)
for n, change in enumerate(Script(seed).changes(dict.fromkeys(engine, ""))):
    change(engine)
    print(n, flush=True)
"""


class Script:
    """Endless changes, the same for the same seed and start."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)

    def changes(self, live: dict[str, str]) -> Any:
        """Changes to an engine; `live` follows what they do."""
        rng = self._rng
        while True:
            draw = rng.random()
            if draw < 0.3 and live:
                gone = rng.sample(sorted(live), min(len(live), rng.choice((1, 1, 3))))
                yield lambda engine, gone=gone: engine.unsubscribe_many(gone)
                for key in gone:
                    del live[key]
            else:
                n_rows = rng.choice((1, 1, 1, 2, 40))
                some = {f"s{rng.randrange(200)}": f"x = {rng.randrange(50)}" for _ in range(n_rows)}
                yield lambda engine, some=some: engine.subscribe_many(some, replace=True)
                live.update(some)


def check_kill(folder: Path, seed: int, sync: str, before: dict[str, str]) -> dict[str, str]:
    """Let a process write until it is killed; returns what the folder then holds."""
    rng = Random(seed)
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), str(seed), sync],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    n_acknowledged = 0
    n_wanted = rng.randrange(60)
    while n_acknowledged < n_wanted:
        assert child.stdout.readline() == f"{n_acknowledged}\n"
        n_acknowledged += 1
    time.sleep(rng.random() * 0.01)
    child.kill()
    n_acknowledged += sum(line.endswith("\n") for line in child.stdout)
    child.wait()
    child.stdout.close()
    live = dict(before)
    # The child knows only the ids of what was there before it.
    script = Script(seed).changes(live)
    for _ in range(n_acknowledged + 1):  # the change after the last one is not yet made
        next(script)
    at_least = dict(live)
    next(script)
    found = contents(folder)
    assert found in (at_least, live)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("sync", ["always", "seconds", "never"])
@pytest.mark.parametrize("n_rounds", first_cases(1, [3, 12, 40]))
def test_killed_in_the_middle_of_writing(sync: str, n_rounds: int, tmp_path: Path) -> None:
    held: dict[str, str] = {}
    for seed in range(n_rounds):
        held = check_kill(tmp_path / "e", seed, sync, held)
    assert held


def test_killed_once(tmp_path: Path) -> None:
    check_kill(tmp_path / "e", 5, "always", {})
