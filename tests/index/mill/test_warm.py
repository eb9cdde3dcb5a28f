"""Compiling in advance: after `warm`, neither building nor matching compiles anything."""

from __future__ import annotations

import sys
from random import Random
from typing import Any

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import as_intervals
from matchmill.index.base import Warmable
from matchmill.index.mill import Mill
from matchmill.index.mill.warm import read_only
from matchmill.kernels.jit import JIT_DISABLED
from tests.support.conformance_kit import random_batch, random_table, statistics_of


def compiled() -> dict[str, int]:
    """Count the compiled versions of each kernel of the index."""
    counts = {}
    for name, module in list(sys.modules.items()):
        if name.startswith(("matchmill.index.", "matchmill.kernels.")):
            for function in vars(module).values():
                versions: Any = getattr(function, "signatures", None)
                if versions is not None and function.__module__ == name:
                    counts[f"{name}.{function.__name__}"] = len(versions)
    return counts


def test_mill_is_warmable() -> None:
    assert issubclass(Mill, Warmable)


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
def test_nothing_is_compiled_after_warming() -> None:
    Mill.warm()
    before = compiled()
    rng = Random(5)
    table = random_table(rng, 300, n_dimensions=6, top=40)
    batch = random_batch(rng, 1500, n_dimensions=6, top=40)
    saved = ConjunctionTable(*map(read_only, table))
    for index in (
        Mill.build(table),
        Mill.build(saved, statistics_of(batch, 6)),
        Mill.from_arrays({k: read_only(a) for k, a in Mill.build(table).arrays().items()}),
    ):
        index.match_batch(batch)
        index.match_pairs(np.array([0, 3, 1, 4]).tobytes())
        index.match_intervals(as_intervals(random_batch(rng, 5, n_dimensions=6, top=40)))
        index.clause_costs(batch)
    after = compiled()
    assert {name: n for name, n in after.items() if n != before.get(name, 0)} == {}
