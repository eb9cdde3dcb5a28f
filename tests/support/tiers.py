"""Which cases of a test run in every check, and which only before a release."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import pytest

__all__ = ["first_cases"]


def first_cases(n: int, cases: Iterable[Any]) -> list[Any]:
    """Keep the first cases of a parametrised test; mark all others as `long`."""
    remaining = iter(cases)
    kept = list(islice(remaining, n))
    return kept + [pytest.param(case, marks=pytest.mark.long) for case in remaining]
