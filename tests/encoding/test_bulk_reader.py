"""The bulk reader against the parser: the same rows, reasons, texts, clauses and values."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from matchmill.encoding.clause_encoder import Encoded
from matchmill.encoding.cut_points import StringRun
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.numbers import exact_number
from matchmill.encoding.texts import Texts, texts_to_strings
from matchmill.engine.loading import Load
from matchmill.engine.state import NewRows, Store
from matchmill.errors import MatchmillError
from matchmill.index.registry import index_class
from matchmill.io.subscription_chunks import RowBatches, RowChunk, RowItems
from matchmill.io.subscription_files import SubscriptionRow
from matchmill.settings import Settings
from tests.support.odd_texts import mixed_text, odd_ids, odd_text
from tests.support.tiers import first_cases

Outcome = tuple[list[Any], list[Any], NewRows | None]


def chunk_of(ids: list[Any], sources: list[Any]) -> RowChunk:
    return RowItems(map(SubscriptionRow, ids, sources)).take(len(ids))


def loaded(
    chunks: list[RowChunk], settings: Settings, *, in_bulk: bool, store: Store | None = None
) -> Outcome:
    load = Load(store or Store(index_class("scan"), settings), replace=False)
    rejected: list[Any] = []

    def reject(i: int, row: SubscriptionRow, error: MatchmillError) -> None:
        rejected.append((i, repr(row.id), error.summary))

    for chunk in chunks:
        if in_bulk:
            load.read_rows(chunk, reject)
        else:
            load.read_each(chunk, reject)
    return rejected, load.warnings, load.rows() if load.ids else None


def values_of(dimensions: Dimensions) -> dict[tuple[int, int], Any]:
    """Return what each label of a dimension stands for."""
    meanings: dict[tuple[int, int], Any] = {}
    for number, tables in enumerate(dimensions.tables):
        for region, table in tables.items():
            run = table.merged()
            if isinstance(run, StringRun):
                values: list[Any] = texts_to_strings(Texts(run.offsets, run.data))
            else:
                pairs = zip(run.whole.tolist(), run.part.tolist(), strict=True)
                values = [exact_number(whole, part) for whole, part in pairs]
            for label, value in zip(run.labels.tolist(), values, strict=True):
                for step in (-1, 0, 1):
                    meanings[number, label + step] = (region, value, step)
    return meanings


def clauses_of(encoded: Encoded) -> list[Any]:
    """Return each clause with the values that its keys stand for."""
    meanings = values_of(encoded.dimensions)
    table, keys = encoded.table, encoded.dimensions.keys
    out = []
    for c in range(table.n_clauses):
        clause = []
        for p in range(table.clause_offsets[c], table.clause_offsets[c + 1]):
            number = int(table.dimensions[p])
            bounds = range(table.interval_offsets[p], table.interval_offsets[p + 1])
            pairs = [(int(table.lows[k]), int(table.highs[k])) for k in bounds]
            assert pairs == sorted(pairs)
            assert all(a[1] + 1 < b[0] for a, b in zip(pairs, pairs[1:], strict=False))
            named = [tuple(meanings.get((number, key), key) for key in pair) for pair in pairs]
            clause.append((keys[number], named))
        numbers = [keys.index(dimension) for dimension, _ in clause]
        assert numbers == sorted(set(numbers))
        out.append((int(table.clause_ids[c]), sorted(clause)))
    return out


def check(chunks: list[RowChunk], settings: Settings | None = None) -> NewRows | None:
    settings = settings or Settings()
    quick, slow = (loaded(chunks, settings, in_bulk=in_bulk) for in_bulk in (True, False))
    assert quick[0] == slow[0]
    assert quick[1] == slow[1]
    made, expected = quick[2], slow[2]
    if made is None or expected is None:
        assert made is expected
        return None
    assert list(made.identifiers) == list(expected.identifiers)
    assert texts_to_strings(made.texts) == texts_to_strings(expected.texts)
    np.testing.assert_array_equal(made.n_clauses, expected.n_clauses)
    np.testing.assert_array_equal(made.is_exact, expected.is_exact)
    assert clauses_of(made.encoded) == clauses_of(expected.encoded)
    return made


def compared(seed: int, n: int, make: Any) -> None:
    rng = Random(seed)
    texts = [make(rng) for _ in range(n)]
    ids: list[Any] = odd_ids(rng, n) if seed % 4 == 0 else list(range(n))
    half = n // 2
    check([chunk_of(ids[:half], texts[:half]), chunk_of(ids[half:], texts[half:])])


@pytest.mark.parametrize("seed", first_cases(3, range(100)))
def test_odd_texts(seed: int) -> None:
    compared(seed, 2000, odd_text)


@pytest.mark.parametrize("seed", first_cases(3, range(100)))
def test_texts_that_are_mostly_plain(seed: int) -> None:
    compared(seed, 2000, mixed_text)
