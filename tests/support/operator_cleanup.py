"""Operators of a test are gone when it ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import matchmill as mm


@pytest.fixture(autouse=True)
def operators_of_the_test() -> Iterator[None]:
    before = set(mm.operator_names())
    yield
    for name in set(mm.operator_names()) - before:
        mm.unregister_operator(name)
