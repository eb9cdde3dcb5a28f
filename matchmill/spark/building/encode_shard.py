"""The first pass of a build, one task per shard: texts become clauses in keys of the shard's own.

Two subscriptions with one id are in one shard, so duplicates are found here, without a shuffle of
their own. Expressions that cannot be read are rejected with their reason.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from matchmill.encoding.dimension_arrays import dimensions_to_arrays
from matchmill.engine.loading import Load
from matchmill.engine.state import Store
from matchmill.engine.subscription_table import Subscriptions
from matchmill.errors import DuplicateIdError, MatchmillError
from matchmill.index.registry import DEFAULT_INDEX, index_class
from matchmill.io.subscription_chunks import RowItems
from matchmill.io.subscription_files import SubscriptionRow
from matchmill.language.expression import Expression
from matchmill.language.operator_calls import required_names
from matchmill.operators.modules import import_operators
from matchmill.settings import Settings
from matchmill.spark.building.array_rows import array_rows, json_row

__all__ = ["shard_encoder"]

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
        for batch in batches:
            shards, ids, expressions = (column.to_pylist() for column in batch.columns)
            if shards:
                self._shard = shards[0]
            rows = RowItems(map(SubscriptionRow, ids, expressions)).take(len(ids))
            self._load.read_rows_if_many(rows, self._reject, self._note_operators)
        if self._shard < 0:
            return  # no subscription has its hash here
        if self._load.ids:
            yield from self._arrays()
        yield json_row(
            self._shard,
            "summary",
            {
                "n_subscriptions": len(self._load.ids),
                "n_rejected": self._n_rejected,
                "rejected": self._rejected,
                "duplicates": self._duplicates,
                "operators": sorted(self._operators),
                "encode_seconds": time.perf_counter() - start,
                "encode_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            },
        )

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

    def _arrays(self) -> Iterator[pa.RecordBatch]:
        rows = self._load.rows()
        added = Subscriptions().added(rows.identifiers, rows.texts, rows.n_clauses, rows.is_exact)
        subscriptions = added.made()
        yield from array_rows(
            self._shard, "dimensions", dimensions_to_arrays(rows.encoded.dimensions)
        )
        yield from array_rows(self._shard, "subscriptions", subscriptions.arrays())
        yield from array_rows(self._shard, "table", rows.encoded.table._asdict())
