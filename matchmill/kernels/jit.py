"""The one place where Numba is configured: `kernel` compiles a function and caches the result.

Numba's cache notices a change of the file that defines a kernel. It does not notice a change
of a kernel or a constant that this one takes from *another* file, and then runs stale machine
code. So the cache folder is keyed by a hash of all sources of this package:

    <base>/<hash of the sources>/last-used         touched at every import, for pruning
    <base>/<hash of the sources>/helped            a second process has been started
    <base>/<hash of the sources>/<folder>_<sha1>/  Numba's own files

`<base>` is the first of these that can be written to:

    $NUMBA_CACHE_DIR, $MATCHMILL_CACHE_DIR, $XDG_CACHE_HOME/matchmill/kernels
    (or ~/.cache/matchmill/kernels), a private folder for temporary files

Numba itself keeps apart Python versions and CPUs inside a folder.

The first kernel that is compiled into an empty folder is announced by a line on stderr, because all
of them together take some seconds ($MATCHMILL_QUIET=1 keeps it back).

A second process helps, where there is a second core: `start_helper`, once for each folder
($MATCHMILL_HELPER=0 keeps it from that).

The folder is handed to Numba only while a kernel is being defined: `numba.config` belongs to
the whole process, and kernels of other packages keep the cache they have.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.event import Listener, register

__all__ = [
    "JIT_DISABLED",
    "cache_folder",
    "int64",
    "kernel",
    "source_hash",
    "start_helper",
    "uint64",
]

JIT_DISABLED: bool = bool(numba.config.DISABLE_JIT)
"""True under NUMBA_DISABLE_JIT=1: kernels are then plain Python functions."""

# Conversions inside kernels: what they return is an integer like any other there, compiled or not.
int64: Any = np.int64
uint64: Any = np.uint64

_KEPT_FOLDERS = 3
_GRACE_SECONDS = 600.0  # a process this young may still be compiling
_MARK = "last-used"
_HELPED = "helped"
_REMOVING = "removing-"

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a function on its first call, for the types it is called with, and cache that.

    A kernel releases the interpreter lock, and dividing by zero gives what NumPy gives.
    """
    if JIT_DISABLED:
        return function
    with _numba_cache_folder(cache_folder()):
        # No C wrappers: nothing calls kernels but Python and other kernels.
        compiled = numba.njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)(
            function
        )
    _announcer.listen()
    return cast(F, compiled)


class _Announcer(Listener):  # type: ignore[misc]  # Numba has no types
    """Says once that kernels are being compiled, if none has been in this folder."""

    def __init__(self) -> None:
        self._listens = False
        self._has_said = False

    def listen(self) -> None:
        if not self._listens:
            self._listens = True
            is_empty = next(cache_folder().rglob("*.nbi"), None) is None
            if is_empty and not os.environ.get("MATCHMILL_QUIET"):
                register("numba:compile", self)

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if not self._has_said and function.__module__.startswith("matchmill."):
            self._has_said = True  # and stays registered: leaving now would make others miss this
            print(
                "matchmill: compiling its kernels for this machine, once; some 15 seconds …",
                file=sys.stderr,
                flush=True,
            )

    def on_end(self, event: Any) -> None:
        """Nothing."""


_announcer = _Announcer()


def start_helper(module: str) -> None:
    """Run a module that compiles kernels, in a process beside this one, if that was never done
    with this cache folder. It says nothing and nobody waits for it."""
    is_alone = len(os.sched_getaffinity(0)) < 2
    if JIT_DISABLED or is_alone or os.environ.get("MATCHMILL_HELPER") == "0":
        return
    folder = cache_folder()
    if not sys.executable or (folder / _HELPED).exists():
        return
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment["MATCHMILL_CACHE_DIR"] = str(folder.parent)
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    with suppress(OSError):  # another one was faster, or there is no room for a process
        (folder / _HELPED).touch(exist_ok=False)
        helper = subprocess.Popen(
            [sys.executable, "-P", "-m", module],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        Thread(target=helper.wait, daemon=True).start()  # so that it does not stay as a zombie


def source_hash(root: Path) -> str:
    """A hash of what machine code depends on: all Python files below root, Numba's version."""
    digest = hashlib.blake2b(numba.__version__.encode(), digest_size=16)
    for path in sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).as_posix()):
        name = path.relative_to(root).as_posix().encode()
        content = path.read_bytes()
        # The lengths keep "ab" + "c" apart from "a" + "bc".
        digest.update(b"%d %d " % (len(name), len(content)))
        digest.update(name)
        digest.update(content)
    return digest.hexdigest()


def cache_folder() -> Path:
    """Where this process caches machine code; chosen at the first call."""
    global _chosen_folder  # noqa: PLW0603 - once in the life of a process
    with _lock:
        if _chosen_folder is None:
            _chosen_folder = choose_folder(
                _base_candidates(), source_hash(Path(__file__).parents[1])
            )
        return _chosen_folder


_chosen_folder: Path | None = None
_lock = Lock()


def choose_folder(bases: list[Path], name: str) -> Path:
    """The folder of that name in the first base that works, else in a temporary one."""
    for base in bases:
        with suppress(OSError):
            return _take_into_use(base / name)
    return _take_into_use(_temporary_base() / name)


def prune(base: Path, *, keep: int, grace_seconds: float = _GRACE_SECONDS) -> None:
    """Remove all but the most recently used cache folders; those in use of late stay too.

    Other processes may use, create and remove folders here at the same time. Numba compiles
    anew what is gone. Renaming before removing lets them see a folder whole or not at all.
    """
    used: list[tuple[float, Path]] = []
    for mark in base.glob(f"*/{_MARK}"):
        with suppress(OSError):
            used.append((mark.stat().st_mtime, mark.parent))
    used.sort()
    for last_used, folder in used[: max(0, len(used) - keep)]:
        if time.time() - last_used >= grace_seconds:
            with suppress(OSError):
                folder.rename(base / f"{_REMOVING}{folder.name}-{os.getpid()}")
    for doomed in base.glob(f"{_REMOVING}*"):  # of processes that were cut short, too
        shutil.rmtree(doomed, ignore_errors=True)


def _base_candidates() -> list[Path]:
    candidates = [
        Path(os.environ[variable]).absolute()
        for variable in ("NUMBA_CACHE_DIR", "MATCHMILL_CACHE_DIR")
        if os.environ.get(variable)
    ]
    home_cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    # Without a home "~" stays as it is, and the specification says to ignore relative paths.
    if os.path.isabs(home_cache):
        candidates.append(Path(home_cache) / "matchmill" / "kernels")
    return candidates


def _take_into_use(folder: Path) -> Path:
    """Create the folder and mark it as used now; OSError where that is not allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()
    (folder / _MARK).touch()
    prune(folder.parent, keep=_KEPT_FOLDERS)
    return folder


def _temporary_base() -> Path:
    """A folder among the temporary files that nobody else can write to.

    Loading a cache runs code from it. Everyone may create names in the shared folder, so one
    that is there already is trusted only if it is a folder, ours, and closed to others.
    """
    base = Path(tempfile.gettempdir()) / f"matchmill-kernels-{os.getuid()}"
    with suppress(FileExistsError):
        base.mkdir(mode=0o700)
    found = base.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
        return base
    return Path(tempfile.mkdtemp(prefix="matchmill-kernels-"))


@contextmanager
def _numba_cache_folder(folder: Path) -> Iterator[None]:
    """Have kernels that are defined inside the block cached in this folder.

    Numba picks a kernel's folder when it is defined, not when it is compiled.
    """
    with _lock:
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(folder)
        try:
            yield
        finally:
            numba.config.CACHE_DIR = before
