"""Folders with wrong contents: damaged by a disk, or written by somebody on purpose."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest

import matchmill as mm
from matchmill.storage.array_folder import read_manifest
from tests.support.engine_folders import change_array, replace_array, settings

EVENTS = [{"x": n, "t": f"a{n}", "tags": ["p", "q"], "z": n / 3} for n in range(20)]


def built(folder: Path, n: int = 60) -> None:
    """Make a folder with a built segment, a fresh one, deletions, lists and texts."""
    with mm.Engine.open(folder, create=True, settings=settings(background=False)) as engine:
        engine.subscribe_many((f"s{k}", f"x = {k % 20} and z >= {k / 7}") for k in range(n))
        engine.subscribe_many(
            (f"t{k}", f"t like 'a{k}%' or x in ({k}, {k + 5})") for k in range(n // 2)
        )
        engine.subscribe_many(
            (f"l{k}", f"tags = 'p' and x > {k} and t >= 'a{k}'") for k in range(9)
        )
        engine.unsubscribe_many([f"s{k}" for k in range(0, n // 4, 3)])
        engine.save()


def used(folder: Path, *, verify: bool) -> list[set[object]] | str:
    """Open a folder and do with it what one does; what matches, or the error."""
    try:
        with mm.Engine.open(folder, read_only=True, verify=verify) as engine:
            found = [engine.match(event) for event in EVENTS]
            engine.match_many(EVENTS)
            for one in engine.subscriptions():
                engine.get(one.id)  # what somebody wrote may hold an id twice
            engine.match_expression("x between 3 and 9")
            engine.explain(next(iter(engine)), EVENTS[0])
            engine.compact()
            return found
    except mm.MatchmillError as error:
        return type(error).__name__


def crafted(folder: Path, seed: int) -> str:
    """Change an array as somebody would who wants a crash, and make the checksums fit."""
    draw = Random(seed)
    manifest = read_manifest(folder)
    name = draw.choice(sorted(manifest.arrays))
    file = folder / manifest.data / f"{name}.npy"
    array = np.load(file)
    kind = draw.choice(("value", "value", "value", "shorter", "longer", "dtype", "all"))
    if kind == "value" and array.size:
        flat = array.reshape(-1)
        bad = draw.choice((-1, -(2**31), 2**31 - 1, 2**20, 2**40, 7, 0, len(flat), 2**62))
        with np.errstate(all="ignore"):
            flat[draw.randrange(len(flat))] = np.array([bad]).astype(array.dtype)[0]
    elif kind == "shorter":
        array = array[: max(0, len(array) - draw.choice((1, 1, len(array) // 2)))]
    elif kind == "longer":
        array = np.concatenate((array, array))
    elif kind == "dtype":
        array = array.astype(draw.choice((np.int8, np.int32, np.int64, np.float64, np.uint8)))
    elif kind == "all":
        array = np.full_like(array, draw.choice((0, 1, 127)))
    replace_array(folder, name, array)
    return f"{name}: {kind}"


PROGRAM = """
import pathlib, shutil, sys
from tests.faults.test_damage import crafted, flipped, used
source, work, first, last, way = sys.argv[1:]
for seed in range(int(first), int(last)):
    folder = pathlib.Path(work) / str(seed)
    shutil.copytree(source, folder)
    what = (crafted if way == "crafted" else flipped)(folder, seed)
    print(f"{seed} {what} ...", flush=True)
    try:
        outcome = used(folder, verify=way == "crafted")
    except Exception as error:
        outcome = f"RAW {error!r}"
    print("   ", outcome if isinstance(outcome, str) else "matches", flush=True)
    shutil.rmtree(folder)
"""


def flipped(folder: Path, seed: int) -> str:
    """Flip bits of a large array, as a disk does; nobody looks at its checksum."""
    draw = Random(seed)
    manifest = read_manifest(folder)
    large = [name for name, entry in manifest.arrays.items() if entry["bytes"] > 1 << 16]
    name = draw.choice(sorted(large))
    file = folder / manifest.data / f"{name}.npy"
    content = bytearray(file.read_bytes())
    for _ in range(draw.choice((1, 1, 8))):
        content[draw.randrange(128, len(content))] ^= 1 << draw.randrange(8)
    file.write_bytes(content)
    return name


def outcomes(source: Path, work: Path, first: int, last: int, way: str) -> dict[str, int]:
    """Count outcomes; a process that crashes is one, and the next goes on after it."""
    found: dict[str, int] = {}
    work.mkdir(exist_ok=True)
    while first < last:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(source), str(work), str(first), str(last), way],
            check=False,
            capture_output=True,
            text=True,
        )
        lines = done.stdout.splitlines()
        for what, line in zip(lines[::2], lines[1::2], strict=False):  # the last may have crashed
            kind = line.split()[0]
            found[kind] = found.get(kind, 0) + 1
            if kind == "RAW":
                print(what, line)
        first += len(lines[1::2])
        if done.returncode:
            found["crash"] = found.get("crash", 0) + 1
            print(done.returncode, lines[-1:], done.stderr[-300:])
            first += 1
    return found


def check_crafted(tmp_path: Path, first: int, last: int) -> dict[str, int]:
    built(tmp_path / "e")
    found = outcomes(tmp_path / "e", tmp_path / "work", first, last, "crafted")
    # A folder may hold a text that is no expression; that shows when it is needed.
    assert set(found) <= {"FolderError", "ExpressionError", "matches"}, found
    assert found["FolderError"] > (last - first) // 4
    return found


@pytest.mark.slow
def test_some_crafted_folders_are_rejected_or_work(tmp_path: Path) -> None:
    check_crafted(tmp_path, 0, 40)


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 3000, 500))
def test_crafted_folders_are_rejected_or_work(tmp_path: Path, first: int) -> None:
    print(check_crafted(tmp_path, first, first + 500))


def swap(array: np.ndarray) -> None:
    array[[1, 2]] = array[[2, 1]]


def repeat(array: np.ndarray) -> None:
    array[2] = array[1]


def negate(array: np.ndarray) -> None:
    array *= -1


def not_finite(array: np.ndarray) -> None:
    array[0] = np.nan


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("number_whole", swap, "do not ascend"),
        ("number_labels", repeat, "do not ascend"),
        ("number_labels", negate, "do not ascend"),
        ("number_part", not_finite, "do not ascend"),
        ("string_labels", repeat, "do not ascend"),
        ("string_heads", swap, "are not those of the texts"),
        ("string_data", lambda data: data.fill(data[0]), "are not those of the texts"),
        ("id_data", lambda data: data.fill(data[0]), "an id is there twice"),
    ],
)
def test_cut_points_and_ids_in_a_wrong_order_are_rejected(
    tmp_path: Path, name: str, change: Callable[[np.ndarray], None], reason: str
) -> None:
    built(tmp_path / "e", 12)
    change_array(tmp_path / "e", name, change)
    with pytest.raises(mm.FolderError, match=reason):
        mm.Engine.open(tmp_path / "e", verify=True)


@pytest.mark.parametrize("name", ["id_slots", "text_offsets", "row_of_clause", "first_clause"])
def test_an_array_that_points_outside_is_rejected(tmp_path: Path, name: str) -> None:
    built(tmp_path / "e", 12)

    def point_outside(array: np.ndarray) -> None:
        array[len(array) // 2] = 2**30

    change_array(tmp_path / "e", name, point_outside)
    for verify in (False, True):
        with pytest.raises(mm.FolderError, match=f"not a complete saved engine: '{name}'"):
            mm.Engine.open(tmp_path / "e", verify=verify)


@pytest.mark.long
def test_flipped_bits_are_found_with_verify(tmp_path: Path) -> None:
    """Without it they may do anything; how often is printed, not promised."""
    built(tmp_path / "e", 20_000)
    print(outcomes(tmp_path / "e", tmp_path / "work", 0, 150, "flipped"))
    for seed in range(10):
        folder = tmp_path / f"e{seed}"
        built(folder, 20_000)
        flipped(folder, seed)
        with pytest.raises(mm.FolderError, match="its checksum does not fit"):
            mm.Engine.open(folder, verify=True)
