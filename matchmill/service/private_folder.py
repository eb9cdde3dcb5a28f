"""A folder that only its owner can look into: it holds secrets, subscriptions and events."""

from __future__ import annotations

import logging
from pathlib import Path

__all__ = ["make_private"]

logger = logging.getLogger("matchmill.service")


def make_private(folder: Path) -> None:
    """Make a folder, or take the rights of others away from one that exists."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not folder.stat().st_mode & 0o077:
        return
    try:
        folder.chmod(0o700)
    except PermissionError:
        logger.warning("others can look into %s, and only its owner can change that", folder)
    else:
        logger.warning("others could look into %s; its mode is 0700 now", folder)
