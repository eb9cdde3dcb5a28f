"""Tables that were encoded apart say the same in shared keys."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from matchmill.encoding.clause_encoder import encode_clauses
from matchmill.encoding.conjunction_table import ONE_KEY, ConjunctionTable, is_nested
from matchmill.encoding.dimension_arrays import dimensions_from_arrays, dimensions_to_arrays
from matchmill.encoding.dimension_union import DimensionUnion, into_shared
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events.read import read_events
from matchmill.index.mixed import build_index
from matchmill.index.scan import Scan
from matchmill.language.evaluate import evaluate
from matchmill.language.expression import Expression
from matchmill.language.normal_form import normalize
from tests.support.generators import cases


def encoded(expressions: list[Expression]) -> tuple[Dimensions, ConjunctionTable, np.ndarray]:
    """The clauses of some expressions in keys of their own, and the expression of each."""
    clauses, owners = [], []
    for number, expression in enumerate(expressions):
        own = normalize(expression, 10_000, nested=True).clauses
        clauses += own
        owners += [number] * len(own)
    result = encode_clauses(Dimensions(), clauses, np.arange(len(clauses)))
    return result.dimensions, result.table, np.array(owners, np.int64)


@pytest.mark.parametrize("seed", range(4))
def test_one_encoding_of_events_serves_all_shards(seed: int) -> None:
    expressions, events = cases(seed, 120, 60)
    shards = [expressions[:40], expressions[40:50], expressions[50:]]
    tables = [encoded(shard) for shard in shards]
    union = DimensionUnion()
    for dimensions, _, _ in tables:
        union.add(dimensions)
    # Through a file, as they come to another process.
    shared = dimensions_from_arrays(dimensions_to_arrays(union.finish()))
    n_cuts = shared.n_cuts
    batch = encode_events(shared, read_events(events).columns())
    for shard, (dimensions, table, owners) in zip(shards, tables, strict=True):
        moved = into_shared(table, dimensions, shared)
        for i in np.flatnonzero(~is_nested(moved)):
            start, stop = moved.clause_offsets[i], moved.clause_offsets[i + 1]
            rises = np.diff(moved.dimensions[start:stop])
            assert (rises >= (moved.all_quantifiers()[start:stop][1:] == ONE_KEY)).all()
        matches = build_index(Scan, moved).match_batch(batch)
        for e, event in enumerate(events):
            found = matches.clause_ids[matches.offsets[e] : matches.offsets[e + 1]]
            wanted = {k for k, x in enumerate(shard) if evaluate(x, event) is True}
            assert set(owners[found].tolist()) == wanted
    assert shared.n_cuts == n_cuts


def test_the_order_of_shards_changes_no_key_order() -> None:
    """Each cut point once, ascending, with room between their labels."""
    expressions, _ = cases(9, 200, 0)
    parts = [encoded(expressions[k::4])[0] for k in range(4)]
    Random(1).shuffle(parts)
    union = DimensionUnion()
    for part in parts:
        union.add(part)
    shared, whole = union.finish(), encoded(expressions)[0]
    assert set(shared.keys) == set(whole.keys)
    assert shared.n_cuts == whole.n_cuts
    for tables in shared.tables:
        for table in tables.values():
            assert (np.diff(table.merged().labels) >= 3).all()


def test_nothing_at_all() -> None:
    shared = DimensionUnion().finish()
    assert len(shared) == 0
