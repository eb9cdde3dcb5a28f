"""A guard against work that explodes: not a measurement of speed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 60.0  # of CPU; what explodes takes minutes or forever, however quick the machine is


@contextmanager
def ends_soon() -> Iterator[None]:
    """Fail if the block takes far longer than it could on any machine."""
    start = time.process_time()
    yield
    assert time.process_time() - start < SECONDS
