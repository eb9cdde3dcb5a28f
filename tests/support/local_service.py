from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.running_service import Caller, Local, local_service


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Local]:
    """A new service in this process, with a clock that stands still."""
    with local_service(tmp_path / "served") as service:
        yield service


@pytest.fixture
def caller(local: Local) -> Caller:
    """A key of the tenant `acme` that may do everything."""
    return local.caller()
