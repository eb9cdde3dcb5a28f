"""Every system call that changes a folder fails in turn; so does the process, and so the power.

After each, the folder opens and holds every acknowledged change, and the engine that met the
failure goes on, or says why not. `tests/support/failing_files.py` is what fails.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import matchmill as mm
from tests.support.engine_folders import settings
from tests.support.failing_files import Disk, FailingFiles, Stopped

HOWS = ("error", "full", "short", "raise", "dead", "dead short")
Change = Callable[[mm.Engine], object]
Held = dict[object, str]

# Each step: what it does, and what the engine then holds, given what it held.
STEPS: dict[str, tuple[Change, Callable[[Held], Held]]] = {
    "subscribe": (lambda e: e.subscribe("n", "x = 9"), lambda held: held | {"n": "x = 9"}),
    "replace": (
        lambda e: e.subscribe("a", "x = 8", replace=True),
        lambda held: held | {"a": "x = 8"},
    ),
    "unsubscribe": (
        lambda e: e.unsubscribe("b"),
        lambda held: {key: text for key, text in held.items() if key != "b"},
    ),
    "subscribe_many": (
        lambda e: e.subscribe_many({f"m{n}": f"y = {n}" for n in range(30)}),
        lambda held: held | {f"m{n}": f"y = {n}" for n in range(30)},
    ),
    "save": (lambda e: e.save(), lambda held: held),
    "close": (lambda e: e.close(), lambda held: held),
}


def contents(folder: Path) -> Held:
    with mm.Engine.open(folder, read_only=True, verify=True) as engine:
        return {one.id: one.expression for one in engine.subscriptions()}


def prepared(folder: Path) -> Held:
    """Make a folder with arrays and a log; say what it holds."""
    if not (folder.parent / "prepared").is_dir():
        with mm.Engine.open(
            folder.parent / "prepared", create=True, settings=settings(background=False)
        ) as engine:
            engine.subscribe_many(dict.fromkeys("abc", "x = 1"))
            engine.save()
            engine.subscribe("d", "x = 2")
    shutil.copytree(folder.parent / "prepared", folder)
    return {"a": "x = 1", "b": "x = 1", "c": "x = 1", "d": "x = 2"}


def stopped(failing: FailingFiles, act: Callable[[], object]) -> BaseException | None:
    """Do something while files fail; return what it raised."""
    with failing:
        try:
            act()
        except (Stopped, OSError, mm.MatchmillError) as error:
            return error
    return None


def failing_files(folder: Path, at: int, how: str) -> FailingFiles:
    code = errno.ENOSPC if how == "full" else errno.EIO
    return FailingFiles(folder, at, {"full": "error"}.get(how, how), code)


def check_usable(folder: Path, wanted: list[Held]) -> None:
    """The folder opens, holds what it may hold, and goes on doing so through another life."""
    found = contents(folder)
    assert found in wanted
    with mm.Engine.open(folder) as engine:
        engine.subscribe("later", "z = 1")
    assert contents(folder) == found | {"later": "z = 1"}
    with mm.Engine.open(folder) as engine:
        engine.unsubscribe("later")
        engine.save()
    assert contents(folder) == found
    assert len(list(folder.glob("data-*"))) == len(list(folder.glob("log-*"))) == 1
    assert not list(folder.glob(".manifest*"))


def sweep_changes(tmp_path: Path, how: str, step: str, stride: int) -> int:
    """Let each call of one step fail; then the same engine goes on, and then the folder."""
    act, then = STEPS[step]
    at = 1
    while True:
        folder = tmp_path / f"{step} {how} {at}".replace(" ", "-")
        before = prepared(folder)
        after = then(before)
        engine = mm.Engine.open(folder)
        error = stopped(failing_files(folder, at, how), lambda: act(engine))  # noqa: B023
        if error is None and how != "raise":
            engine.close()
            assert contents(folder) == after
            break
        if "dead" in how:  # the folder is what a killed process leaves
            shutil.copytree(folder, left := folder.with_name(folder.name + "-left"))
            check_usable(left, [before, after])
        else:
            now = {one.id: one.expression for one in engine.subscriptions()}
            assert now in (before, after)
            if step != "close":
                check_goes_on(engine, folder, now, after)
        engine._finalizer.detach()
        close_quietly(engine)
        check_usable(folder, [before, after] if "dead" in how or step == "close" else
                     [contents(folder)])  # fmt: skip
        shutil.rmtree(folder)
        shutil.rmtree(folder.with_name(folder.name + "-left"), ignore_errors=True)
        if error is None:
            break
        at += stride
    return at


def check_goes_on(engine: mm.Engine, folder: Path, now: Held, after: Held) -> None:
    """Changes work, or say why not; what was acknowledged is in the folder."""
    acknowledged = [now, after]
    refused = ""
    try:
        engine.subscribe("next", "x = 5")
        acknowledged = [held | {"next": "x = 5"} for held in acknowledged]
        engine.save()
        engine.subscribe("last", "x = 6")
        acknowledged = [held | {"last": "x = 6"} for held in acknowledged]
    except mm.FolderError as error:
        refused = str(error)
    assert not refused or "could not" in refused
    assert contents(folder) in acknowledged


def close_quietly(engine: mm.Engine) -> None:
    """Close what may refuse to be closed, as a process does that ends."""
    with suppress(mm.MatchmillError, OSError, Stopped):
        engine._maintenance.stop(wait=True)
    assert engine._folder is not None
    engine._folder._lock.release()


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS)
def test_some_calls_of_a_checkpoint_fail(tmp_path: Path, how: str) -> None:
    assert sweep_changes(tmp_path, how, "save", stride=47) > 47


@pytest.mark.slow
@pytest.mark.parametrize("step", [step for step in STEPS if step != "save"])
def test_some_calls_of_a_change_fail(tmp_path: Path, step: str) -> None:
    assert sweep_changes(tmp_path, "short", step, stride=2) >= 1


@pytest.mark.long
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("step", STEPS)
def test_each_call_of_a_change_fails(tmp_path: Path, how: str, step: str) -> None:
    print(step, how, sweep_changes(tmp_path, how, step, stride=1), "points")


# -- opening and creating -------------------------------------------------------------------------


def sweep_opening(tmp_path: Path, how: str, kind: str, stride: int) -> int:
    """Let each call of opening, creating, or saving elsewhere fail."""
    at = 1
    while True:
        folder = tmp_path / f"{kind} {how} {at}".replace(" ", "-")
        wanted: list[Held] = [{}]
        if kind == "open":
            wanted = [prepared(folder)]
            torn = next(folder.glob("log-*"))
            torn.write_bytes(torn.read_bytes() + b"torn")
        elif kind == "open after a crash":
            wanted = [prepared(folder)]
            leave_half_a_checkpoint(folder)
        elif kind == "save over":
            wanted = [prepared(folder), {"s": "x = 1"}]
        else:
            folder.mkdir()
            wanted = [{}, {"s": "x = 1"}]

        def act() -> None:
            if kind.startswith("open"):
                mm.Engine.open(folder).close()  # noqa: B023
            elif kind == "create":
                mm.Engine.open(folder, create=True).close()  # noqa: B023
            else:
                mm.Engine({"s": "x = 1"}).save(folder)  # noqa: B023

        error = stopped(failing_files(folder, at, how), act)
        if kind in ("create", "save") and not (folder / "manifest.json").exists():
            assert error is not None
            mm.Engine.open(folder, create=True).close()  # what is left is no obstacle
        check_usable(folder, wanted)
        shutil.rmtree(folder)
        if error is None:
            return at
        at += stride


def leave_half_a_checkpoint(folder: Path) -> None:
    """A second log is published, and the process is killed before it goes on in it."""
    engine = mm.Engine.open(folder)
    with FailingFiles(folder, 9, "dead") as failing, pytest.raises(Stopped):
        engine.save()
    assert failing.names[-3:] == ["fsync", "replace", "fsync"]
    engine._finalizer.detach()
    close_quietly(engine)
    first = max(folder.glob("log-*"), key=lambda file: file.stat().st_size)
    first.write_bytes(first.read_bytes() + b"torn")


KINDS = ("open", "open after a crash", "create", "save", "save over")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_some_calls_of_opening_fail(tmp_path: Path, kind: str) -> None:
    assert sweep_opening(tmp_path, "dead", kind, stride=29) >= 1


@pytest.mark.long
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_call_of_opening_fails(tmp_path: Path, how: str, kind: str) -> None:
    print(kind, how, sweep_opening(tmp_path, how, kind, stride=1), "points")


# -- power failures -------------------------------------------------------------------------------


def check_power_failures(tmp_path: Path, seed: int, stride: int, rounds: int) -> int:
    """Cut the power at calls of a life of an engine; what was acknowledged is on the disk."""
    draw = Random(seed)
    n_states = 0
    at = 1 + seed % stride
    while True:
        folder = tmp_path / f"e{at}"
        held = prepared(folder)
        disk = Disk(folder, at)
        possible = [held]

        def live() -> None:
            nonlocal held
            with mm.Engine.open(folder) as engine:  # noqa: B023
                for step in ("subscribe", "save", "replace", "subscribe_many", "save", "close"):
                    act, then = STEPS[step]
                    possible.append(then(held))  # noqa: B023
                    act(engine)
                    held = then(held)
                    possible[:] = [held]  # noqa: B023

        with disk:
            try:
                live()
                is_over = True
            except Stopped:
                is_over = False
            for n in range(rounds):
                left = tmp_path / f"left{at}-{n}"
                with_real_files(disk, left, draw)
                n_states += 1
        for n in range(rounds):
            left = tmp_path / f"left{at}-{n}"
            check_usable(left, possible)
            shutil.rmtree(left)
        shutil.rmtree(folder)
        if is_over:
            return n_states
        at += stride


def with_real_files(disk: Disk, left: Path, draw: Random) -> None:
    """Make the folder of a power failure, with files that do not fail."""
    FailingFiles.__exit__(disk)
    disk.after_power_failure(left, draw)


@pytest.mark.slow
def test_some_power_failures(tmp_path: Path) -> None:
    assert check_power_failures(tmp_path, 5, stride=41, rounds=2) > 5


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_many_power_failures(tmp_path: Path, seed: int) -> None:
    print(check_power_failures(tmp_path, seed, stride=1, rounds=4), "states")
