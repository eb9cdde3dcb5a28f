"""The tests of indexes run in the checked mode: arrays are compared with their declarations."""

from collections.abc import Iterator

import pytest

from matchmill.kernels.addresses import set_checked


@pytest.fixture(autouse=True)
def _arrays_are_checked() -> Iterator[None]:
    before = set_checked(True)
    yield
    set_checked(before)
