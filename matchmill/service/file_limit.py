"""How many files and connections this process may have open."""

from __future__ import annotations

import resource

__all__ = ["file_limit", "raise_file_limit"]

_MOST = 65_536  # more would only cost memory


def raise_file_limit() -> None:
    """Raise the limit as far as the process may, if it is low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def file_limit() -> int:
    """Return the present limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else soft
