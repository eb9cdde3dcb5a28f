"""The kernel decorator and the folder of its cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numba
import numpy as np
import pytest

from matchmill.kernels import jit as _jit
from matchmill.kernels.jit import JIT_DISABLED, choose_folder, kernel, prune, source_hash


@kernel
def add_up(values: np.ndarray, scale: float) -> float:
    total = 0.0
    for i in range(len(values)):
        total += values[i] / scale
    return total


@pytest.fixture
def package(tmp_path: Path) -> Path:
    root = tmp_path / "package"
    (root / "inner").mkdir(parents=True)
    (root / "a.py").write_text("A = 1\n")
    (root / "inner" / "b.py").write_text("B = 1\n")
    return root


def make_used_folder(base: Path, name: str, age: float) -> Path:
    folder = base / name
    (folder / "kernels").mkdir(parents=True)
    (folder / "kernels" / "data").write_bytes(b"code")
    mark = folder / "last-used"
    mark.touch()
    os.utime(mark, (time.time() - age, time.time() - age))
    return folder


def names_in(base: Path) -> set[str]:
    return {path.name for path in base.iterdir()}


# --- kernel ---------------------------------------------------------------------------


@pytest.mark.kernels
def test_a_kernel_computes() -> None:
    assert add_up(np.array([1.0, 2.0, 3.0]), 2.0) == 3.0


@pytest.mark.kernels
def test_a_kernel_is_a_plain_function_exactly_when_the_jit_is_off() -> None:
    assert (type(add_up) is type(lambda: 0)) == JIT_DISABLED
    assert JIT_DISABLED == (os.environ.get("NUMBA_DISABLE_JIT", "0") != "0")


@pytest.mark.skipif(JIT_DISABLED, reason="plain Python raises")
def test_division_by_zero_is_numpys() -> None:
    assert add_up(np.array([1.0]), 0.0) == np.inf


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is cached")
def test_kernels_are_cached_in_our_folder_and_others_are_left_alone() -> None:
    before = numba.config.CACHE_DIR
    cached_in = Path(kernel(lambda x: x).stats.cache_path)  # type: ignore[attr-defined]
    assert cached_in.parent == _jit.cache_folder()
    assert numba.config.CACHE_DIR == before


# --- the key --------------------------------------------------------------------------


def test_the_key_is_stable_and_depends_on_content_alone(package: Path) -> None:
    key = source_hash(package)
    os.utime(package / "a.py", (1, 1))
    (package / "notes.txt").write_text("not a source")
    assert source_hash(package) == key


def test_the_key_changes_with_any_source(package: Path) -> None:
    keys = [source_hash(package)]
    (package / "inner" / "b.py").write_text("B = 2\n")
    keys.append(source_hash(package))
    (package / "inner" / "c.py").write_text("")
    keys.append(source_hash(package))
    (package / "inner" / "c.py").rename(package / "c.py")
    keys.append(source_hash(package))
    assert len(set(keys)) == len(keys)


def test_the_key_changes_with_numba(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = source_hash(package)
    monkeypatch.setattr(numba, "__version__", "0.0")
    assert source_hash(package) != key


# --- the folder -----------------------------------------------------------------------


def test_the_first_usable_base_is_taken(tmp_path: Path) -> None:
    # A plain file where a folder should be refuses even root.
    blocked = tmp_path / "file"
    blocked.write_text("")
    first, second = tmp_path / "first", tmp_path / "second"
    assert choose_folder([blocked, first, second], "key") == first / "key"
    assert not second.exists()


def test_without_a_usable_base_a_private_temporary_folder_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    blocked = tmp_path / "file"
    blocked.write_text("")
    folder = choose_folder([blocked], "key")
    assert folder.parent.parent == tmp_path
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    assert choose_folder([blocked], "key") == folder, "found again by the next process"


def test_a_temporary_folder_that_others_can_write_to_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    planted = tmp_path / f"matchmill-kernels-{os.getuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    assert choose_folder([], "key").parent != planted

    planted.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    planted.symlink_to(tmp_path / "elsewhere")
    assert choose_folder([], "key").parent != planted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"XDG_CACHE_HOME": "xdg"}, "xdg/matchmill/kernels"),
        ({"XDG_CACHE_HOME": "xdg", "MATCHMILL_CACHE_DIR": "ours"}, "ours"),
        ({"MATCHMILL_CACHE_DIR": "ours", "NUMBA_CACHE_DIR": "numbas"}, "numbas"),
        ({"XDG_CACHE_HOME": ""}, "home/.cache/matchmill/kernels"),
    ],
)
def test_the_environment_chooses_the_base(
    variables: dict[str, str], expected: str, tmp_path: Path
) -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NUMBA_CACHE_DIR", "MATCHMILL_CACHE_DIR", "NUMBA_DISABLE_JIT")
    }
    environment["HOME"] = str(tmp_path / "home")
    environment |= {name: value and str(tmp_path / value) for name, value in variables.items()}
    program = (
        "from matchmill.kernels import jit as _jit\n"
        "kernel = _jit.kernel(_jit.source_hash)\n"
        "print(kernel.stats.cache_path)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert Path(done.stdout.strip()).parent.parent == tmp_path / expected


# --- pruning --------------------------------------------------------------------------


def test_pruning_keeps_the_three_used_last(tmp_path: Path) -> None:
    for hours, name in enumerate(("new", "recent", "older", "old", "oldest"), start=1):
        make_used_folder(tmp_path, name, age=hours * 3600.0)
    prune(tmp_path, keep=3)
    assert names_in(tmp_path) == {"new", "recent", "older"}


def test_pruning_spares_what_was_used_just_now(tmp_path: Path) -> None:
    for name in "abcde":
        make_used_folder(tmp_path, name, age=5.0)
    prune(tmp_path, keep=3)
    assert names_in(tmp_path) == set("abcde")


def test_pruning_touches_nothing_that_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "someone").mkdir()
    (tmp_path / "file").write_text("")
    make_used_folder(tmp_path, "ours", age=3600.0)
    prune(tmp_path, keep=0)
    assert names_in(tmp_path) == {"someone", "file"}


def test_pruning_survives_folders_that_vanish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        make_used_folder(tmp_path, name, age=3600.0)
    real_rename = Path.rename

    def rename_after_another_process(self: Path, target: Path) -> Path:
        real_rename(self, tmp_path / f"gone-{self.name}")
        return real_rename(self, target)

    monkeypatch.setattr(Path, "rename", rename_after_another_process)
    prune(tmp_path, keep=0)
    assert names_in(tmp_path) == {"gone-a", "gone-b"}
    prune(tmp_path / "missing", keep=0)


def test_pruning_finishes_what_another_process_began(tmp_path: Path) -> None:
    (tmp_path / "removing-key-1" / "kernels").mkdir(parents=True)
    prune(tmp_path, keep=3)
    assert names_in(tmp_path) == set()


def test_using_a_folder_makes_it_recent(tmp_path: Path) -> None:
    for hours, name in enumerate(("key", "b", "c", "d"), start=1):
        make_used_folder(tmp_path, name, age=(10 - hours) * 3600.0)
    choose_folder([tmp_path], "key")
    assert names_in(tmp_path) == {"key", "c", "d"}


FIRST_USE = """
import numpy as np
from matchmill.kernels.sorting import sort_by_key
sort_by_key(np.array([2, 1, 0, 0]), np.array([0, 1, 0, 0]), 2)
"""


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled without the JIT")
def test_the_first_compilation_is_announced(tmp_path: Path) -> None:
    """Once into an empty folder, not a second time, and not at all when asked to be quiet."""
    environment = {**os.environ, "MATCHMILL_CACHE_DIR": str(tmp_path / "a")}
    environment.pop("NUMBA_CACHE_DIR", None)
    quiet = {**environment, "MATCHMILL_CACHE_DIR": str(tmp_path / "b"), "MATCHMILL_QUIET": "1"}
    said = [
        subprocess.run(
            [sys.executable, "-c", FIRST_USE], env=env, capture_output=True, text=True, check=True
        ).stderr
        for env in (environment, environment, quiet)
    ]
    assert said[0].count("compiling its kernels") == 1
    assert said[1:] == ["", ""]


# -- the second process ---------------------------------------------------------------------------


@pytest.fixture
def helped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file to which the module `writes_a_line` appends; the cache folder is an empty one."""
    module = "import os, sys; print(os.environ['MATCHMILL_CACHE_DIR'], file=open({!r}, 'a'))"
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "writes_a_line.py").write_text(module.format(str(tmp_path / "lines")))
    (tmp_path / "base" / "key").mkdir(parents=True)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", "not this one")
    monkeypatch.delenv("MATCHMILL_HELPER", raising=False)
    monkeypatch.setattr(_jit, "JIT_DISABLED", False)
    monkeypatch.setattr(_jit, "cache_folder", lambda: tmp_path / "base" / "key")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    return tmp_path / "lines"


def lines_of(file: Path, *, at_least: int) -> list[str]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        lines = file.read_text().splitlines() if file.exists() else []
        if len(lines) >= at_least:
            return lines
        time.sleep(0.05)
    raise AssertionError(f"{at_least} lines were expected in {file}")


def test_a_folder_is_helped_once(helped: Path, tmp_path: Path) -> None:
    for _ in range(3):
        _jit.start_helper("writes_a_line")
    assert lines_of(helped, at_least=1) == [str(tmp_path / "base")]
    (tmp_path / "base" / "key" / "helped").unlink()
    _jit.start_helper("writes_a_line")
    assert lines_of(helped, at_least=2) == [str(tmp_path / "base")] * 2


@pytest.mark.parametrize("reason", ["one core", "told not to", "no compiler", "no interpreter"])
def test_no_help_where_there_is_a_reason(
    reason: str, helped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason == "one core":
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    elif reason == "told not to":
        monkeypatch.setenv("MATCHMILL_HELPER", "0")
    elif reason == "no compiler":
        monkeypatch.setattr(_jit, "JIT_DISABLED", True)
    else:
        monkeypatch.setattr(sys, "executable", "")
    _jit.start_helper("writes_a_line")
    assert names_in(tmp_path / "base" / "key") == set()


def test_help_that_cannot_be_started_is_done_without(
    helped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(helped.parent / "nothing"))
    _jit.start_helper("writes_a_line")
    assert not helped.exists()


COMPILED_BY_AN_ENGINE = """
import tempfile
from numba.core.event import RecordingListener, install_listener
import matchmill as mm
import numba
record = RecordingListener()
with install_listener("numba:compile", record):
    engine = mm.Engine(settings=mm.Settings(fresh_clauses=2))
    engine.subscribe_many([(str(k), f"a = {k} and b > 2 and note like '%x'") for k in range(9)])
    assert engine.match({"a": 1, "b": 3, "note": "x"}) == {"1"}
    engine.match_many([{"a": 1, "b": 3, "note": "x"}] * 9)
    def change(engine, k):
        engine.unsubscribe(str(k))
        engine.subscribe(f"new {k}", "a = 1 and c = 'z'")
        assert engine.match({"a": 1, "b": 3, "note": "x"}) == {"1"}
        engine.match_many([{"a": 1, "b": 3, "note": "x"}] * 9)
        engine.compact()
    change(engine, 2)
    with tempfile.TemporaryDirectory() as folder:
        engine.save(folder)
        with mm.Engine.open(folder, settings=mm.Settings(fresh_clauses=2)) as opened:
            change(opened, 3)
    @numba.njit
    def seen(number):
        return number
    seen(1)
names = {event.data["dispatcher"].py_func.__name__ for _, event in record.buffer}
print(*sorted(names))
"""


@pytest.mark.slow
@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled without the JIT")
def test_the_second_process_leaves_what_engines_need(tmp_path: Path) -> None:
    """They compile nothing then."""
    environment = {**os.environ, "MATCHMILL_CACHE_DIR": str(tmp_path), "MATCHMILL_HELPER": "0"}
    environment |= {"MATCHMILL_QUIET": "1"}
    environment.pop("NUMBA_CACHE_DIR", None)
    subprocess.run([sys.executable, "-m", "matchmill.engine.warm"], env=environment, check=True)
    done = subprocess.run(
        [sys.executable, "-c", COMPILED_BY_AN_ENGINE],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["seen"], done.stdout
