"""The examples in docstrings run and print what they say."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from matchmill.language import builder, evaluate, explain, explanation, expression, parser

MODULES = [builder, evaluate, explain, explanation, expression, parser]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
