"""The first pass of a build, one task per shard: texts become clauses in keys of the shard's own.

Two subscriptions with one id are in one shard, so duplicates are found here, without a shuffle of
their own. Expressions that cannot be read are rejected with their reason.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from matchmill.encoding.dimension_arrays import dimensions_to_arrays
from matchmill.encoding.texts import Texts, gather_texts, texts_to_strings
from matchmill.engine.loading import Load, chunks_of
from matchmill.engine.state import NewRows, Store
from matchmill.engine.subscription_table import EXACT, Subscriptions
from matchmill.errors import DuplicateIdError, MatchmillError
from matchmill.index.registry import DEFAULT_INDEX, index_class
from matchmill.io.subscription_chunks import RowBatches
from matchmill.io.subscription_files import SubscriptionRow
from matchmill.language.expression import ANY_ATTRIBUTE, Expression
from matchmill.language.operator_calls import required_names
from matchmill.language.parser import parse
from matchmill.operators.modules import import_operators
from matchmill.settings import UNLIMITED, Settings
from matchmill.spark.building.array_rows import array_rows, json_row

__all__ = ["MOST_ATTRIBUTES", "shard_encoder"]

MOST_ATTRIBUTES = 2000  # that a manifest names
_MAX_NAMED = 20  # rejected rows and duplicates that a shard reports


def shard_encoder(
    settings: dict[str, Any], dialect: str, operator_modules: tuple[str, ...]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for `mapInArrow` on (shard, id, expression).

    All rows of a partition are of one shard.
    """

    def encode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import_operators(operator_modules)
        return _Encoder(Settings(**settings), dialect).run(batches)

    return encode


class _Encoder:
    def __init__(self, settings: Settings, dialect: str) -> None:
        store = Store(index_class(DEFAULT_INDEX), settings)
        self._load = Load(store, replace=False, dialect=dialect)
        self._rejected: list[tuple[Any, str]] = []
        self._n_rejected = 0
        self._duplicates: list[Any] = []
        self._operators: set[str] = set()
        self._shard = -1

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        start = time.perf_counter()
        reader = RowBatches(self._noting_shard(batches), ("id", "expression"))
        for chunk, is_bulk in chunks_of(reader):
            read = self._load.read_rows if is_bulk else self._load.read_each
            read(chunk, self._reject, self._note_operators)
        if self._shard < 0:
            return  # no subscription has its hash here
        attributes: set[str] = set()
        if self._load.ids:
            rows = self._load.rows()
            attributes = _attributes(rows)
            yield from self._arrays(rows)
        yield json_row(
            self._shard,
            "summary",
            {
                "n_subscriptions": len(self._load.ids),
                "n_rejected": self._n_rejected,
                "rejected": self._rejected,
                "duplicates": self._duplicates,
                "operators": sorted(self._operators),
                "attributes": None if self._operators else _known(attributes),
                "encode_seconds": time.perf_counter() - start,
                "encode_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            },
        )

    def _noting_shard(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                self._shard = batch.column("shard")[0].as_py()
            yield batch

    def _reject(self, _: int, row: SubscriptionRow, error: MatchmillError) -> None:
        if isinstance(error, DuplicateIdError):
            if len(self._duplicates) < _MAX_NAMED:
                self._duplicates.append(row.id)
            return
        self._n_rejected += 1
        if len(self._rejected) < _MAX_NAMED:
            self._rejected.append((row.id, error.summary))

    def _note_operators(self, calling: Expression) -> None:
        self._operators.update(required_names(calling))

    def _arrays(self, rows: NewRows) -> Iterator[pa.RecordBatch]:
        added = Subscriptions().added(rows.identifiers, rows.texts, rows.n_clauses, rows.is_exact)
        subscriptions = added.made()
        yield from array_rows(
            self._shard, "dimensions", dimensions_to_arrays(rows.encoded.dimensions)
        )
        yield from array_rows(self._shard, "subscriptions", subscriptions.arrays())
        yield from array_rows(self._shard, "table", rows.encoded.table._asdict())


def _attributes(rows: NewRows) -> set[str]:
    """Return the attributes that expressions mention.

    Those of an exact expression are those of its clauses; all others are read.
    """
    known = set(rows.encoded.dimensions.plans)
    inexact = np.flatnonzero(rows.is_exact != EXACT)
    if len(inexact):
        kept = Texts(*gather_texts(rows.texts.offsets, rows.texts.data, inexact))
        for text in texts_to_strings(kept):
            known |= parse(text, UNLIMITED).attributes
            if len(known) > MOST_ATTRIBUTES:
                break
    return known


def _known(attributes: set[str]) -> list[str] | None:
    """List attributes; None if they are all, or too many."""
    if ANY_ATTRIBUTE in attributes or len(attributes) > MOST_ATTRIBUTES:
        return None
    return sorted(attributes)
