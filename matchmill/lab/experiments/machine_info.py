"""The machine and the versions that figures were measured on."""

from __future__ import annotations

import hashlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import matchmill
from matchmill.kernels.threads import n_processors

__all__ = ["available_bytes", "load_average", "machine"]


def machine() -> dict[str, str]:
    """Return what to say about this machine beside its figures; nothing that names it."""
    described = {
        "cpu": _first("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": str(n_processors()),
        "memory_gib": f"{_total_bytes() / 2**30:.1f}",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }
    for package in ("matchmill", "numpy", "numba", "pyarrow"):
        try:
            described[package] = version(package)
        except PackageNotFoundError:
            described[package] = "not installed"
    described["sources"] = _source_hash(Path(matchmill.__file__).parent)
    described["load_average"] = load_average()
    return described


def _first(path: str, key: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith(key):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return ""


def load_average() -> str:
    """Return the load of the last minutes, as text."""
    try:
        return " ".join(f"{load:.2f}" for load in os.getloadavg())
    except OSError:
        return ""


def _total_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def available_bytes() -> int:
    """Memory that can be had without swapping."""
    words = _first("/proc/meminfo", "MemAvailable").split()
    return int(words[0]) * 1024 if words else _total_bytes() // 2


def _source_hash(root: Path) -> str:
    """Hash all Python files below a folder, so that results name the code they are of."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(root.rglob("*.py")):
        digest.update(f"\0{path.relative_to(root).as_posix()}\0".encode())
        digest.update(hashlib.blake2b(path.read_bytes()).digest())
    return digest.hexdigest()
