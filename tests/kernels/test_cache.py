"""The cache of compiled kernels: its key, its folders, and what happens when it is damaged."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numba
import pytest

import matchmill
from matchmill.kernels import cache
from matchmill.kernels.cache import closure_hash, import_closure, prune
from matchmill.kernels.jit import JIT_DISABLED, kernel
from tests.support.tiers import first_cases

needs_compiler = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled without the JIT")
PACKAGE = Path(matchmill.__file__).parent


# -- the key --------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path) -> Path:
    root = tmp_path / "package"
    files = {
        "__init__.py": "from package.api import run\n",
        "kernels.py": "from package.inner import b\nfrom package.inner.c import (\n  C,\n  D,\n)\n",
        "inner/__init__.py": "",
        "inner/b.py": "import package.inner.far\n",
        "inner/c.py": "def f():\n    from package import api\n",
        "inner/far.py": "FAR = 1\n",
        "api.py": "from package import kernels\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    cache._imported.cache_clear()
    cache._content_hash.cache_clear()
    return root


def key_of(package: Path) -> str:
    cache._imported.cache_clear()
    cache._content_hash.cache_clear()
    return closure_hash(package / "kernels.py", package)


def test_the_closure_is_what_a_module_imports_at_its_margin(package: Path) -> None:
    closure = {
        path.relative_to(package).as_posix()
        for path in import_closure(package / "kernels.py", package)
    }
    assert closure == {
        "kernels.py",
        "inner/__init__.py",
        "inner/b.py",
        "inner/c.py",
        "inner/far.py",
    }


@pytest.mark.parametrize("name", ["kernels.py", "inner/b.py", "inner/c.py", "inner/far.py"])
def test_the_key_changes_with_every_source_of_the_closure(package: Path, name: str) -> None:
    before = key_of(package)
    with (package / name).open("a") as file:
        file.write("# changed\n")
    assert key_of(package) != before


def test_the_key_depends_on_nothing_else(package: Path) -> None:
    before = key_of(package)
    os.utime(package / "kernels.py", (1, 1))
    (package / "api.py").write_text("# changed\n")
    (package / "notes.txt").write_text("not a source")
    assert key_of(package) == before


def test_the_key_is_the_same_in_another_place(package: Path, tmp_path: Path) -> None:
    before = key_of(package)
    moved = tmp_path / "elsewhere" / "package"
    moved.parent.mkdir()
    package.rename(moved)
    assert key_of(moved) == before


@pytest.mark.parametrize("what", ["numba", "checks", "checked mode"])
def test_the_key_changes_with_how_kernels_are_compiled(
    package: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    before = key_of(package)
    if what == "numba":
        monkeypatch.setattr(numba, "__version__", "0.0")
    elif what == "checks":
        monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    else:
        monkeypatch.setenv("MATCHMILL_CHECKED", "1")
    assert key_of(package) != before


def test_doors_are_no_part_of_the_closure_of_the_index() -> None:
    """An edit of the command line, Spark or the service compiles nothing again."""
    for file in sorted((PACKAGE / "index").rglob("*.py")):
        rooms = {
            path.relative_to(PACKAGE).parts[0]
            for path in import_closure(file)
            if path.is_relative_to(PACKAGE)
        }
        assert rooms.isdisjoint({"cli", "spark", "service", "client", "engine", "papers", "lab"}), (
            file
        )


# -- the folders ----------------------------------------------------------------------------------


@pytest.fixture
def bases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> cache._Bases:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return cache._Bases([])


def blocked(tmp_path: Path) -> Path:
    """A plain file where a folder should be, which stops even root."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file"


def test_the_first_base_that_can_be_written_to_is_taken(
    bases: cache._Bases, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    bases.candidates = [blocked(tmp_path), first, second]
    assert bases.writable() == first
    assert not second.exists()
    assert bases.readable() == bases.candidates


def test_without_one_a_private_temporary_folder_serves(bases: cache._Bases, tmp_path: Path) -> None:
    bases.candidates = [blocked(tmp_path)]
    folder = bases.writable()
    assert folder is not None
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder in bases.readable()
    assert cache._Bases([]).writable() == folder, "found again by the next process"


@pytest.mark.parametrize("kind", ["open to others", "a link"])
def test_a_temporary_folder_that_others_can_write_to_is_not_trusted(
    bases: cache._Bases, tmp_path: Path, kind: str
) -> None:
    planted = tmp_path / f"matchmill-kernels-{os.getuid()}"
    if kind == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        planted.symlink_to(tmp_path / "elsewhere")
    else:
        planted.mkdir()
        planted.chmod(0o777)
    assert bases.writable() != planted
    assert planted not in cache._candidates()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"XDG_CACHE_HOME": "xdg"}, ["xdg/matchmill/kernels"]),
        (
            {"XDG_CACHE_HOME": "xdg", "MATCHMILL_CACHE_DIR": "ours"},
            ["ours", "xdg/matchmill/kernels"],
        ),
        (
            {"MATCHMILL_CACHE_DIR": "ours", "NUMBA_CACHE_DIR": "numbas", "XDG_CACHE_HOME": ""},
            ["ours", "numbas", "home/.cache/matchmill/kernels"],
        ),
    ],
)
def test_the_environment_names_the_bases(
    variables: dict[str, str],
    expected: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("NUMBA_CACHE_DIR", "MATCHMILL_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name, value in variables.items():
        monkeypatch.setenv(name, value and str(tmp_path / value))
    assert cache._candidates() == [tmp_path / name for name in expected]


# -- pruning --------------------------------------------------------------------------------------


def make_folder(base: Path, name: str, age: float) -> str:
    module, _, digit = name.rpartition(" ")
    folder = base / f"{module}-{digit * 24}"
    folder.mkdir(parents=True)
    (folder / "code").write_bytes(b"code")
    os.utime(folder, (time.time() - age, time.time() - age))
    return folder.name


def names_in(base: Path) -> set[str]:
    return {path.name for path in base.iterdir()}


def test_pruning_keeps_the_three_of_a_module_that_were_used_last(tmp_path: Path) -> None:
    made = [make_folder(tmp_path, f"a.b {n}", age=(n + 1) * 3600.0) for n in range(5)]
    other = make_folder(tmp_path, "a.c 9", age=9 * 3600.0)
    prune(tmp_path, "a.b")
    assert names_in(tmp_path) == {*made[:3], other}


def test_pruning_spares_what_was_used_just_now(tmp_path: Path) -> None:
    made = {make_folder(tmp_path, f"a.b {n}", age=5.0) for n in range(5)}
    prune(tmp_path, "a.b")
    assert names_in(tmp_path) == made


def test_pruning_removes_modules_that_nobody_has_used_for_a_month(tmp_path: Path) -> None:
    make_folder(tmp_path, "gone 1", age=31 * 86_400.0)
    kept = make_folder(tmp_path, "rare 1", age=29 * 86_400.0)
    prune(tmp_path, "a.b")
    assert names_in(tmp_path) == {kept}


def test_pruning_touches_nothing_that_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "someone-else").mkdir()
    (tmp_path / "file").write_text("")
    make_folder(tmp_path, "a.b 1", age=3600.0)
    prune(tmp_path, "a.b", keep=0)
    assert names_in(tmp_path) == {"someone-else", "file"}


def test_pruning_survives_folders_that_vanish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(2):
        make_folder(tmp_path, f"a.b {n}", age=3600.0)
    real_rename = Path.rename

    def rename_after_another_process(self: Path, target: Path) -> Path:
        real_rename(self, tmp_path / f"gone {self.name[-1]}")
        return real_rename(self, target)

    monkeypatch.setattr(Path, "rename", rename_after_another_process)
    prune(tmp_path, "a.b", keep=0)
    assert names_in(tmp_path) == {"gone 0", "gone 1"}
    prune(tmp_path / "missing", "a.b", keep=0)


def test_pruning_finishes_what_another_process_began(tmp_path: Path) -> None:
    (tmp_path / "removing-key-1" / "kernels").mkdir(parents=True)
    prune(tmp_path, "a.b")
    assert names_in(tmp_path) == set()


# -- a kernel in processes of its own -------------------------------------------------------------

USE = """
import sys, warnings
import numpy as np
from numba.core.event import RecordingListener, install_listener
record = RecordingListener()
with warnings.catch_warnings(record=True) as caught, install_listener("numba:compile", record):
    warnings.simplefilter("always")
    from matchmill.kernels.sorting import sort_by_key
    sort_by_key(np.array([2, 1, 0, 0]), np.array([0, 1, 0, 0]), 2)
    from matchmill.kernels.searches import first_above
    first_above(np.arange(9), 3, 0, 9)
told = [str(w.message) for w in caught if w.category is RuntimeWarning]
print(len(record.buffer), *told, sep="|")
"""


def used(environment: dict[str, str], path: Path = PACKAGE.parent) -> list[str]:
    """How many events of compilation there were, and the warnings; nothing on stderr."""
    names = ("NUMBA_CACHE_DIR", "MATCHMILL_CACHE_DIR", "XDG_CACHE_HOME", "NUMBA_DISABLE_JIT")
    clean = {name: value for name, value in os.environ.items() if name not in names}
    with tempfile.TemporaryDirectory() as home:  # kernels are read from the home's cache, too
        done = subprocess.run(
            [sys.executable, "-c", USE],
            env=clean | {"PYTHONPATH": str(path), "HOME": home, "TMPDIR": home} | environment,
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stderr == ""
    return done.stdout.strip().split("|")


@needs_compiler
def test_a_kernel_is_compiled_quietly_and_once(tmp_path: Path) -> None:
    environment = {"MATCHMILL_CACHE_DIR": str(tmp_path)}
    assert int(used(environment)[0]) > 0
    assert used(environment) == ["0"]


@needs_compiler
def test_a_second_environment_shares_the_cache(tmp_path: Path) -> None:
    environment = {"MATCHMILL_CACHE_DIR": str(tmp_path / "cache")}
    used(environment)
    copy = tmp_path / "other" / "site-packages"
    for file in PACKAGE.rglob("*.py"):
        target = copy / "matchmill" / file.relative_to(PACKAGE)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    assert used(environment, copy) == ["0"]


@needs_compiler
def test_a_cache_that_was_baked_in_is_used_though_it_is_read_only(tmp_path: Path) -> None:
    baked = tmp_path / "baked"
    used({"MATCHMILL_CACHE_DIR": str(baked)})
    before = sorted(baked.rglob("*"))
    for path in [baked, *before]:
        path.chmod(path.stat().st_mode & ~0o222)
    home = {"XDG_CACHE_HOME": str(tmp_path / "home"), "MATCHMILL_CACHE_DIR": str(baked)}
    try:
        assert used(home) == ["0"]
        assert sorted(baked.rglob("*")) == before
    finally:
        for path in [baked, *before]:
            path.chmod(path.stat().st_mode | 0o700)


@needs_compiler
def test_where_nothing_else_can_be_written_the_temporary_folder_serves(tmp_path: Path) -> None:
    file = str(blocked(tmp_path))
    environment = {"MATCHMILL_CACHE_DIR": file, "XDG_CACHE_HOME": file, "TMPDIR": str(tmp_path)}
    assert int(used(environment)[0]) > 0
    assert used(environment) == ["0"]


def test_a_cache_that_cannot_be_written_costs_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_temporary_base", lambda: blocked(tmp_path))
    monkeypatch.setattr(cache, "_has_warned", False)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert cache._Bases([blocked(tmp_path)]).writable() is None
        assert cache._Bases([blocked(tmp_path)]).writable() is None
    assert ["MATCHMILL_CACHE_DIR" in str(warning.message) for warning in told] == [True]


@needs_compiler
def test_a_full_disk_costs_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(cache, "_write_checked", fail)
    monkeypatch.setattr(cache, "_has_warned", False)

    @kernel
    def double(x: int) -> int:
        return 2 * x

    with pytest.warns(RuntimeWarning, match="No space left"):
        assert double(21) == 42
    assert double(1.5) == 3.0


@needs_compiler
@pytest.mark.parametrize("kind", ["*.nbi", "*.nbc"])
@pytest.mark.parametrize(
    "damage", first_cases(2, ["cut short", "a bit", "other bytes", "empty", "zeros", "folder"])
)
def test_a_damaged_file_is_compiled_again(tmp_path: Path, kind: str, damage: str) -> None:
    environment = {"MATCHMILL_CACHE_DIR": str(tmp_path)}
    used(environment)
    for file in tmp_path.rglob(kind):
        content = file.read_bytes()
        if damage == "cut short":
            file.write_bytes(content[: len(content) // 2])
        elif damage == "zeros":
            file.write_bytes(bytes(len(content)))
        elif damage == "a bit":
            middle = len(content) // 2
            changed = bytes([content[middle] ^ 8])
            file.write_bytes(content[:middle] + changed + content[middle + 1 :])
        elif damage == "folder":
            file.unlink()
            file.mkdir()
        else:
            file.write_bytes(b"\x80\x04nonsense" if damage == "other bytes" else b"")
    n_compiled, *told = used(environment)
    assert int(n_compiled) > 0
    if damage == "folder":  # which is not removed: nobody knows what is in it
        assert ["cannot be cached" in line for line in told] == [True]
    else:
        assert (told, used(environment)) == ([], ["0"]), "it is whole again"


@needs_compiler
def test_any_error_of_the_cache_costs_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(cache, "_write_checked", fail)
    monkeypatch.setattr(cache, "_read_checked", fail)
    monkeypatch.setattr(cache, "_has_warned", False)

    @kernel
    def triple(x: int) -> int:
        return 3 * x

    with pytest.warns(RuntimeWarning, match="no such thing"):
        assert triple(14) == 42
    assert triple(1.5) == 4.5


@needs_compiler
def test_where_no_folder_can_be_written_everything_works(tmp_path: Path) -> None:
    """No home, no temporary folder, nowhere: one warning, and the import does not fail."""
    nowhere = "import tempfile\ntempfile._candidate_tempdir_list = lambda: ['/proc/nowhere']\n"
    names = ("NUMBA_CACHE_DIR", "MATCHMILL_CACHE_DIR", "XDG_CACHE_HOME", "NUMBA_DISABLE_JIT")
    clean = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", nowhere + USE],
        check=False,
        env=clean | {"PYTHONPATH": str(PACKAGE.parent), "HOME": "/proc/nowhere"},
        cwd="/proc",
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    n_compiled, *told = done.stdout.strip().split("|")
    assert int(n_compiled) > 0
    assert ["MATCHMILL_CACHE_DIR" in line for line in told] == [True]
