"""Where machine code is kept, and when it may be used again.

Numba's own cache notices a change of the file that defines a kernel. It does not notice a
change of a kernel or a constant that comes from *another* file, and then runs stale code. So
each kernel is cached in a folder that is named after the module and a hash of the module's
*import closure*: its source and the sources of all modules of this package that it imports,
directly or not. An edit of the command line recompiles nothing; an edit of one index recompiles
that index.

    <base>/<module>-<hash>/<function>-<line>.py311.nbi    Numba's index of the compiled versions
    <base>/<module>-<hash>/<function>-<line>.py311.1.nbc  one compiled version

Machine code is read from any of these bases that has it, and written to the first one that can
be written to:

    $MATCHMILL_CACHE_DIR, $NUMBA_CACHE_DIR, $XDG_CACHE_HOME/matchmill/kernels
    (or ~/.cache/matchmill/kernels), a private folder among the temporary files

So a cache that was baked into an image may be read-only, and environments with the same version
of matchmill share one. The hash covers contents, not paths and times. Numba itself keeps apart
versions of Python and kinds of CPU inside a folder.

Every file ends with a checksum: machine code with a wrong bit would do anything. A damaged file is
removed and counts as missing. No error of the cache reaches the caller: if nothing can be written,
one warning says so, and every process compiles for itself.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import os
import pickle
import re
import shutil
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock

from matchmill.kernels.forks import ForkLock

__all__ = ["KernelCache", "cache_bases", "closure_hash", "forget_bases", "import_closure", "prune"]

_PACKAGE = Path(__file__).parents[1]
_KEPT_PER_MODULE = 3
_UNUSED_SECONDS = 30 * 86_400.0
_GRACE_SECONDS = 600.0  # a process this young may still be compiling
_REMOVING = "removing-"
_CHECKSUM_BYTES = 16


# -- the key --------------------------------------------------------------------------------------

# Only imports at the margin: kernels use globals of their module, and what is imported inside of a
# function or for type checkers is none.
_IMPORTS = re.compile(
    r"^(?:from[ \t]+(?P<source>[\w.]+)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n]*)"
    r"|import[ \t]+(?P<module>[\w.]+))",
    re.MULTILINE,
)


def import_closure(file: Path, package: Path = _PACKAGE) -> list[Path]:
    """List a source file and all files of the package that it imports, directly or not."""
    closure = {file}
    pending = [file]
    while pending:
        for found in _imported(pending.pop(), package):
            if found not in closure:
                closure.add(found)
                pending.append(found)
    return sorted(closure)


def closure_hash(file: Path, package: Path = _PACKAGE) -> str:
    """Hash all that the machine code of a file's kernels depends on."""
    options = (
        numba.__version__,
        str(numba.config.BOUNDSCHECK),
        str(numba.config.OPT),
        os.environ.get("MATCHMILL_CHECKED", ""),  # compiles checks into kernels
    )
    digest = hashlib.blake2b("\0".join(options).encode(), digest_size=12)
    for member in import_closure(file, package):
        name = member.relative_to(package) if member.is_relative_to(package) else member.name
        digest.update(f"\0{name}\0".encode())
        digest.update(_content_hash(member))
    return digest.hexdigest()


@cache
def _content_hash(file: Path) -> bytes:
    return hashlib.blake2b(file.read_bytes(), digest_size=16).digest()


@cache
def _imported(file: Path, package: Path) -> tuple[Path, ...]:
    """List the files of the package that a file imports itself."""
    found: set[Path] = set()
    for match in _IMPORTS.finditer(file.read_text(encoding="utf-8")):
        source = match["source"] or match["module"]
        if source.partition(".")[0] != package.name:
            continue
        place = package.joinpath(*source.split(".")[1:])
        found.update(_files_of(place, package))
        for name in re.findall(r"\w+", match["names"] or ""):
            found.update(_files_of(place / name, package))
    return tuple(found)


def _files_of(place: Path, package: Path) -> Iterator[Path]:
    """Yield the file of a module or package, except that of the whole package, which is lazy."""
    if place != package:
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                yield file


# -- the folders ----------------------------------------------------------------------------------


class _Bases:
    """The folders to read from, in order, and the one to write to, chosen at the first write."""

    def __init__(self, candidates: list[Path]) -> None:
        self.candidates = candidates
        self._lock = ForkLock()
        self._writable: Path | None = None
        self._is_chosen = False

    def readable(self) -> list[Path]:
        chosen = [self._writable] if self._writable is not None else []
        return [*self.candidates, *(base for base in chosen if base not in self.candidates)]

    def writable(self) -> Path | None:
        with self._lock:
            if not self._is_chosen:
                self._is_chosen = True
                self._writable = next(filter(_can_write, self._all()), None)
                if self._writable is None:
                    warn_once("none of the folders for it can be written to")
            return self._writable

    def _all(self) -> Iterator[Path]:
        yield from self.candidates
        with suppress(OSError):
            yield _temporary_base()


_bases: _Bases | None = None
_bases_lock = ForkLock()


def cache_bases() -> _Bases:
    """Return the folders of this process; the environment is read at the first call."""
    global _bases  # noqa: PLW0603 - once in the life of a process
    with _bases_lock:
        if _bases is None:
            _bases = _Bases(_candidates())
        return _bases


def forget_bases() -> None:
    """Read the environment again at the next use; for tests."""
    global _bases, _has_warned
    with _bases_lock:
        _bases, _has_warned = None, False


def _candidates() -> list[Path]:
    candidates = [
        Path(os.environ[variable]).absolute()
        for variable in ("MATCHMILL_CACHE_DIR", "NUMBA_CACHE_DIR")
        if os.environ.get(variable)
    ]
    home_cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    # Without a home "~" stays as it is, and the specification says to ignore relative paths.
    if os.path.isabs(home_cache):
        candidates.append(Path(home_cache) / "matchmill" / "kernels")
    with suppress(OSError):
        temporary = _temporary_path()
        if _is_private(temporary):
            candidates.append(temporary)
    return candidates


def _can_write(base: Path) -> bool:
    try:
        base.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=base).close()
    except OSError:
        return False
    return True


def _temporary_path() -> Path:
    return Path(tempfile.gettempdir()) / f"matchmill-kernels-{os.getuid()}"


def _is_private(base: Path) -> bool:
    """Tell whether a folder is ours and closed to others: loading a cache runs code from it."""
    try:
        found = base.lstat()
    except OSError:
        return False
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return is_ours and not found.st_mode & 0o077


def _temporary_base() -> Path:
    """Return a folder among the temporary files that nobody else can write to."""
    base = _temporary_path()
    with suppress(FileExistsError):
        base.mkdir(mode=0o700)
    if _is_private(base):
        return base
    return Path(tempfile.mkdtemp(prefix="matchmill-kernels-"))


def prune(
    base: Path,
    module: str,
    *,
    keep: int = _KEPT_PER_MODULE,
    grace_seconds: float = _GRACE_SECONDS,
    unused_seconds: float = _UNUSED_SECONDS,
) -> None:
    """Remove old folders of a module, and folders of any module that were not used for a month.

    Other processes may use, create and remove folders here at the same time; what is gone is
    compiled again. Renaming before removing lets them see a folder whole or not at all.
    """
    now = time.time()
    used: list[tuple[float, Path]] = []
    for folder in base.glob("*-*"):
        with suppress(OSError):
            if re.fullmatch(r"[\w.]+-[0-9a-f]{24}", folder.name):
                used.append((folder.stat().st_mtime, folder))
    used.sort(reverse=True)
    n_kept = 0
    for last_used, folder in used:
        is_same_module = folder.name.rpartition("-")[0] == module
        n_kept += is_same_module
        is_surplus = is_same_module and n_kept > keep and now - last_used >= grace_seconds
        if is_surplus or now - last_used >= unused_seconds:
            with suppress(OSError):
                folder.rename(base / f"{_REMOVING}{folder.name}-{os.getpid()}")
    for doomed in base.glob(f"{_REMOVING}*"):  # also of processes that were cut short
        shutil.rmtree(doomed, ignore_errors=True)


# -- files with checksums -------------------------------------------------------------------------


class _CheckedFiles(IndexDataCacheFile):  # type: ignore[misc]  # Numba has no types
    """The files of one kernel, each followed by its checksum."""

    def save(self, key: Any, data: Any) -> None:
        """Write a compiled version, and then say in the index where it is."""
        index = Path(self._index_path)
        versions = self._load_index()
        name = versions.get(key) or self._free_name(set(versions.values()))
        _write_checked(Path(self._data_path(name)), self._dump(data))
        if versions.get(key) != name:
            content = (self._version, self._source_stamp, {**versions, key: name})
            _write_checked(index, self._dump(content))

    def load(self, key: Any) -> Any:
        """Return a compiled version, or None."""
        name = self._load_index().get(key)
        return None if name is None else _read_checked(Path(self._data_path(name)))

    def flush(self) -> None:
        """Forget all versions."""
        Path(self._index_path).unlink(missing_ok=True)

    def _load_index(self) -> dict[Any, str]:
        content = _read_checked(Path(self._index_path))
        if content is None or content[:2] != (self._version, self._source_stamp):
            return {}
        versions: dict[Any, str] = content[2]
        return versions

    def _free_name(self, taken: set[str]) -> str:
        names = (self._data_name(n) for n in itertools.count(1))
        return str(next(name for name in names if name not in taken))


def _write_checked(path: Path, content: bytes) -> None:
    """Write a file under another name and rename it, so that no process reads half of it."""
    temporary = path.with_name(f"{path.name}.tmp.{uuid4().hex[:16]}")
    try:
        temporary.write_bytes(content + _checksum(content))
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _read_checked(path: Path) -> Any:
    """Return what a file holds; None if there is none. A damaged one is removed."""
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    content = whole[:-_CHECKSUM_BYTES]
    if whole[-_CHECKSUM_BYTES:] == _checksum(content):
        return pickle.loads(content)
    with suppress(OSError):
        path.unlink()
    return None


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_CHECKSUM_BYTES).digest()


# -- one kernel's cache ---------------------------------------------------------------------------


class _CompileResult(CompileResultCacheImpl):  # type: ignore[misc]  # Numba has no types
    """How a compiled version is written and read; Numba asks for nothing else of it here."""

    def __init__(self, py_func: Any, file: Path) -> None:
        self._lineno = py_func.__code__.co_firstlineno
        self._locator = self
        self._py_file = str(file)


class KernelCache(FunctionCache):  # type: ignore[misc]
    """The cache of one kernel. Hashes and looks at folders only when the kernel is first called."""

    def __init__(self, py_func: Any) -> None:
        self._py_func = py_func
        self._name = repr(py_func)
        self._file = Path(inspect.getfile(py_func)).absolute()
        self._impl = _CompileResult(py_func, self._file)
        self._enabled = True

    @property
    def cache_path(self) -> str:
        """The folder that compiled versions are written to, or would be read from."""
        bases = cache_bases()
        base = bases.writable() or next(iter(bases.candidates), Path())
        return str(base / self._folder())

    def flush(self) -> None:
        """Forget all compiled versions in the folder that is written to."""
        base = cache_bases().writable()
        if base is not None:
            self._index(base).flush()

    def _folder(self) -> str:
        return f"{self._py_func.__module__}-{_closure_hash(self._file)}"

    def _index(self, base: Path) -> _CheckedFiles:
        version = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
        name = self._py_func.__qualname__.replace("<", "").replace(">", "")
        filename = f"{name}-{self._impl._lineno}.{version}"
        return _CheckedFiles(
            cache_path=str(base / self._folder()),
            filename_base=filename,
            source_stamp=_closure_hash(self._file),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled version for these types from the first base that has it, or None."""
        target_context.refresh()
        if not self._enabled:
            return None
        key = self._index_key(sig, target_context.codegen())
        for base in cache_bases().readable():
            try:
                data = self._index(base).load(key)
                if data is not None:
                    _mark_used(base / self._folder())
                    return self._impl.rebuild(target_context, data)
            except Exception:
                continue
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled version, or warn once that this is not possible."""
        folder = "compiled kernels"
        try:
            base = cache_bases().writable() if self._enabled else None
            if base is None or not self._impl.check_cachable(data):
                return
            folder = str(base / self._folder())
            if not os.path.isdir(folder):
                os.makedirs(folder, exist_ok=True)
                prune(base, self._py_func.__module__)
            key = self._index_key(sig, data.codegen)
            self._index(base).save(key, self._impl.reduce(data))
        except Warning:
            raise  # warnings are errors here
        except Exception as error:  # whatever it is, the kernel is compiled and works
            warn_once(f"{folder}: {getattr(error, 'strerror', None) or error!r}")


@cache
def _closure_hash(file: Path) -> str:
    return closure_hash(file)


@cache
def _mark_used(folder: Path) -> None:
    """Note that the folder is in use, once per process, so that pruning spares it."""
    with suppress(OSError):  # a read-only cache
        os.utime(folder)


_has_warned = False


def warn_once(problem: str) -> None:
    """Warn, once per process, that compiled kernels are not kept."""
    global _has_warned  # noqa: PLW0603
    if not _has_warned:
        _has_warned = True
        warnings.warn(
            f"compiled kernels cannot be cached ({problem}); every process compiles them again. "
            "Set MATCHMILL_CACHE_DIR to a folder that can be written to.",
            RuntimeWarning,
            stacklevel=2,
        )


# -- forks ----------------------------------------------------------------------------------------

_FORK_WAITS_SECONDS = 120.0  # no kernel takes that long to compile


class _CompilerAtForks:
    """Let no fork begin while another thread compiles: the child would have half a compiler."""

    def __init__(self) -> None:
        self._is_held = False

    def before(self) -> None:
        self._is_held = global_compiler_lock._lock.acquire(timeout=_FORK_WAITS_SECONDS)

    def after(self) -> None:
        if self._is_held:
            self._is_held = False
            global_compiler_lock._lock.release()


_at_forks = _CompilerAtForks()
os.register_at_fork(
    before=_at_forks.before, after_in_parent=_at_forks.after, after_in_child=_at_forks.after
)
