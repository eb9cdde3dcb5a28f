"""Rows of subscriptions that are good at a glance: column by column, with no look at a row.

    id          there, not empty, of the wanted type
    expression  a plain text, which `encoding/bulk/` reads by kernels; kept as it is, but for blanks
                around it
    both        without the mark of bytes that were no UTF-8

Whatever is not good at a glance is checked row by row (`subscription_rows.py`), which also finds
the reasons. So a row that is left out here costs time, and nothing else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchmill.encoding.bulk.scan import TextReader
from matchmill.encoding.texts import texts_of
from matchmill.language.dialects.registry import MATCHMILL
from matchmill.settings import Settings

__all__ = ["REPLACED", "PlainReader", "PlainRows"]

REPLACED = "\ufffd"  # what Spark writes for bytes that are not UTF-8
_FEWEST = 2000  # rows of a batch for which kernels are worth loading
_BLANKS = " \t\r\n"
_INTEGER = r"^-?[0-9]{1,18}$"


class PlainRows(NamedTuple):
    """The rows of a batch that are good at a glance."""

    rows: np.ndarray  # their numbers, ascending
    ids: pa.Array
    expressions: pa.Array


class PlainReader:
    """Finds such rows in batches with the columns id, expression and problem."""

    def __init__(self, settings: Settings, dialect: str, *, integer_ids: bool) -> None:
        self._texts = TextReader(settings) if dialect == MATCHMILL else None
        self._integer_ids = integer_ids

    def read(self, batch: pa.RecordBatch) -> PlainRows | None:
        """Return the rows that are good at a glance; None if the batch is not read so."""
        if self._texts is None or not self._texts.is_useful or batch.num_rows < _FEWEST:
            return None
        ids = self._ids(batch.column("id"))
        if ids is None:
            return None
        expressions = pc.utf8_trim(batch.column("expression").cast(pa.large_string()), _BLANKS)
        is_good = pc.and_(ids.is_valid(), batch.column("problem").is_null())
        for texts in (ids, expressions):
            if not pa.types.is_integer(texts.type):
                is_good = pc.and_(is_good, pc.invert(pc.match_substring(texts, REPLACED)))
        read = self._texts.read(texts_of(expressions.fill_null("")))
        rows = np.flatnonzero(_flags(is_good) & (read.n_clauses > 0))
        places = pa.array(rows)
        return PlainRows(rows, ids.take(places), expressions.take(places).cast(pa.string()))

    def _ids(self, ids: pa.Array) -> pa.Array | None:
        """Return ids of the wanted type, null where that needs a look."""
        if not self._integer_ids:
            if not pa.types.is_string(ids.type):
                return None
            return pc.if_else(pc.equal(ids, ""), None, ids)
        if pa.types.is_integer(ids.type):
            return ids.cast(pa.int64())
        if not pa.types.is_string(ids.type):
            return None
        is_integer = pc.match_substring_regex(ids, _INTEGER)
        return pc.if_else(is_integer, ids, None).cast(pa.int64())


def _flags(values: pa.Array) -> Any:
    return values.fill_null(False).to_numpy(zero_copy_only=False)
