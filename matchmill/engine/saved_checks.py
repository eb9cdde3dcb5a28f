"""Check saved arrays before any kernel uses what is in them as an address.

    lengths    dtypes, shapes, lengths that have to agree, the two ends of all offsets: always, by
               reading a few numbers of each array
    values     every offset, row, number and dimension is inside of what it points into, and all
               that ascends does: of small arrays always, of large ones with `every_value`

Checksums find what a disk or a wire has damaged. They do not find what somebody has written on
purpose: then the values have to be checked, and what cannot be checked is made again. Those are the
indexes and the hash table of ids (`saved_state.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from matchmill.encoding.conjunction_table import NONE, ONE_KEY, QUANTIFIER_BITS
from matchmill.encoding.cut_points import region_ceiling, region_floor
from matchmill.encoding.flat_dictionary import are_slots
from matchmill.encoding.texts import text_heads
from matchmill.engine.subscription_table import EXACT_WITHOUT_LISTS
from matchmill.language.values import Region

__all__ = ["check_saved"]

_SMALL = 1 << 13  # items
_ASCENDING_AT_ONCE = 1 << 20
_NUMBER_REGIONS = (Region.NUMBER, Region.DATE, Region.TIMESTAMP)


def check_saved(
    arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], *, every_value: bool
) -> None:
    """Raise ValueError, or KeyError, that names an array which cannot be right."""
    check = _Check(arrays, every_value)
    n_clauses = check.subscriptions(meta["id_type"])
    n_dimensions = check.dimensions()
    for n in range(len(meta["segments"])):
        check.table(f"segment{n}_", n_clauses, n_dimensions)
    if every_value:
        n_live = int((arrays["row_of_number"] >= 0).sum())
        if meta["n_subscriptions"] != n_live:
            raise ValueError(f"it has {n_live} subscriptions, not {meta['n_subscriptions']!r}")


class _Check:
    def __init__(self, arrays: Mapping[str, np.ndarray], every_value: bool) -> None:
        self._arrays = arrays
        self._every_value = every_value

    # groups of arrays

    def subscriptions(self, id_type: object) -> int:
        """Check ids, texts and rows; return how many clauses there are."""
        n_ids = self._texts("id", is_utf8=id_type == "str")
        if id_type == "int" and self._is_read("id_offsets"):
            if (np.diff(self._arrays["id_offsets"]) != 8).any():
                raise ValueError("'id_offsets' are not those of integers")
        n_rows = self._texts("text", is_utf8=True)
        slots = self._array("id_slots", np.int32)
        look = self._is_read("id_slots")
        if not are_slots(slots, n_ids, look=look):
            raise ValueError(f"'id_slots' are no slots of {n_ids:,} ids")
        self._numbers("row_of_number", np.int32, n_ids, -1, n_rows)
        self._numbers("number_of_row", np.int32, n_rows, 0, n_ids)
        self._numbers("is_exact", np.uint8, n_rows, 0, EXACT_WITHOUT_LISTS + 1)
        n_clauses = len(self._array("row_of_clause", np.int32))
        self._offsets("first_clause", n_rows, n_clauses)
        self._numbers("row_of_clause", np.int32, n_clauses, 0, n_rows)
        return n_clauses

    def dimensions(self) -> int:
        """Check dimensions and their cut points; return how many dimensions there are."""
        n_dimensions = self._texts("dimension_name", is_utf8=True)
        tables = self._arrays["cut_tables"]
        if tables.dtype != np.int64 or tables.shape[1:] != (3,):
            raise ValueError("'cut_tables' has another form")
        is_text = tables[:, 1] == Region.STRING
        if not (is_text | np.isin(tables[:, 1], _NUMBER_REGIONS)).all() or (tables < 0).any():
            raise ValueError("'cut_tables' has a table of no type")
        if (tables[:, 0] >= n_dimensions).any():
            raise ValueError("'cut_tables' has a dimension that there is not")
        n_numbers, n_texts = int(tables[~is_text, 2].sum()), int(tables[is_text, 2].sum())
        for name, dtype, n in (
            ("number_whole", np.int64, n_numbers),
            ("number_part", np.float64, n_numbers),
            ("number_labels", np.int64, n_numbers),
            ("string_heads", np.uint64, n_texts),
            ("string_labels", np.int64, n_texts),
            ("string_offsets", np.int64, n_texts + int(is_text.sum())),
        ):
            self._array(name, dtype, n)
        self._text_tables(tables[is_text, 2])
        if self._every_value:
            self._names()
            self._labels("number_labels", tables[~is_text])
            self._labels("string_labels", tables[is_text])
            self._order_of_numbers(tables[~is_text, 2])
            self._order_of_texts(tables[is_text, 2])
        return n_dimensions

    def _text_tables(self, counts: np.ndarray) -> None:
        """Check the offsets of all tables of texts; those of each table begin at 0."""
        offsets = self._arrays["string_offsets"]
        ends = np.cumsum(counts + 1) - 1
        starts = ends - counts
        n_bytes = offsets[ends]
        if (offsets[starts] != 0).any() or (n_bytes < 0).any():
            raise ValueError("'string_offsets' do not begin at 0")
        if self._is_read("string_offsets"):
            is_start = np.zeros(len(offsets), bool)
            is_start[starts] = True
            if not (is_start[1:] | (offsets[1:] >= offsets[:-1])).all():
                raise ValueError("'string_offsets' do not ascend")
        self._array("string_data", np.uint8, int(n_bytes.sum()))

    def _labels(self, name: str, tables: np.ndarray) -> None:
        """Check that labels ascend within each table, with gaps, and inside of their region."""
        labels = self._arrays[name]
        regions: Any = np.repeat(tables[:, 1], tables[:, 2])
        is_inside = (labels > region_floor(regions)) & (labels < region_ceiling(regions))
        is_first = _first_of_each(tables[:, 2])
        if not is_inside.all() or not (is_first[1:] | (labels[1:] > labels[:-1] + 1)).all():
            raise ValueError(f"{name!r} do not ascend")

    def _order_of_numbers(self, counts: np.ndarray) -> None:
        whole, part = self._arrays["number_whole"], self._arrays["number_part"]
        is_above = (whole[1:] > whole[:-1]) | ((whole[1:] == whole[:-1]) & (part[1:] > part[:-1]))
        if not np.isfinite(part).all() or not (_first_of_each(counts)[1:] | is_above).all():
            raise ValueError("'number_whole' and 'number_part' do not ascend")

    def _order_of_texts(self, counts: np.ndarray) -> None:
        heads, offsets, data = (self._arrays[f"string_{x}"] for x in ("heads", "offsets", "data"))
        cut = offset = byte = 0
        for n in counts.tolist():
            ends = offsets[offset : offset + n + 1]
            texts = np.ascontiguousarray(data[byte : byte + ends[-1]])
            found = heads[cut : cut + n]
            if not (found == text_heads(np.ascontiguousarray(ends), texts)).all():
                raise ValueError("'string_heads' are not those of the texts")
            if not (found[1:] >= found[:-1]).all():
                raise ValueError("'string_data' does not ascend")
            for k in np.flatnonzero(found[1:] == found[:-1]).tolist():
                low, middle, high = ends[k : k + 3].tolist()
                if texts[low:middle].tobytes() >= texts[middle:high].tobytes():
                    raise ValueError("'string_data' does not ascend")
            cut, offset, byte = cut + n, offset + n + 1, byte + int(ends[-1])

    def _names(self) -> None:
        offsets, data = (self._arrays[f"dimension_name_{part}"] for part in ("offsets", "data"))
        ends = offsets.tolist()
        whole = data.tobytes()
        seen = set()
        for start, stop in pairwise(ends):
            name = json.loads(whole[start:stop])
            if not isinstance(name, list) or [type(part) for part in name] != [str, str, str]:
                raise ValueError(f"{name!r} is no dimension")
            seen.add(tuple(name))
        if len(seen) != len(ends) - 1:
            raise ValueError("a dimension is there twice")

    def table(self, prefix: str, n_clauses: int, n_dimensions: int) -> None:
        """Check the clauses of a segment, and which of them were deleted."""
        ids = f"{prefix}table_clause_ids"
        n = len(self._numbers(ids, np.int64, None, 0, n_clauses))
        dimensions = self._arrays[f"{prefix}table_dimensions"]
        lows, highs = (self._array(f"{prefix}table_{end}", np.int64) for end in ("lows", "highs"))
        self._offsets(f"{prefix}table_clause_offsets", n, len(dimensions))
        self._numbers(f"{prefix}table_dimensions", np.int32, None, 0, n_dimensions)
        self._offsets(f"{prefix}table_interval_offsets", len(dimensions), len(lows))
        self._array(f"{prefix}table_highs", np.int64, len(lows))
        quantifiers = self._array(f"{prefix}table_quantifiers", np.uint8)
        if len(quantifiers) not in (0, len(dimensions)):
            raise ValueError(f"{prefix}table_quantifiers has not one item per predicate")
        dead = self._numbers(f"{prefix}dead_ids", np.int64, None, 0, n_clauses)
        clause_ids = self._arrays[ids]
        if len(dead) and (n == 0 or dead[0] < clause_ids[0] or dead[-1] > clause_ids[-1]):
            raise ValueError(f"{prefix}dead_ids has clauses of other segments")
        for name in (ids, f"{prefix}dead_ids"):
            if self._is_read(name) and not _ascends(self._arrays[name], strictly=True):
                raise ValueError(f"{name!r} does not ascend")
        if not self._every_value:
            return
        if not np.isin(dead, clause_ids, assume_unique=True).all():
            raise ValueError(f"{prefix}dead_ids has clauses of other segments")
        starts = self._arrays[f"{prefix}table_clause_offsets"]
        self._joins(prefix, starts, quantifiers)
        if not _ascends_within(dimensions, starts, quantifiers):
            raise ValueError(f"{prefix}table_dimensions does not ascend within clauses")
        parts = self._arrays[f"{prefix}table_interval_offsets"]
        if (np.diff(parts) == 0).any() or (lows < 0).any() or (highs < lows).any():
            raise ValueError(f"{prefix}table_lows has an interval without keys")
        if len(lows) > 1:
            is_first = np.zeros(len(lows), bool)
            is_first[parts[:-1]] = True
            if not (is_first[1:] | (lows[1:] > highs[:-1])).all():
                raise ValueError(f"{prefix}table_lows does not ascend within predicates")

    def _joins(self, prefix: str, starts: np.ndarray, quantifiers: np.ndarray) -> None:
        firsts = starts[:-1][starts[:-1] < starts[1:]]
        if len(quantifiers) and (
            (quantifiers & QUANTIFIER_BITS > NONE).any() or (quantifiers[firsts] > NONE).any()
        ):
            raise ValueError(f"{prefix}table_quantifiers has something else than quantifiers")

    # single arrays

    def _is_read(self, name: str) -> bool:
        return self._every_value or len(self._arrays[name]) <= _SMALL

    def _array(self, name: str, dtype: Any, n: int | None = None) -> np.ndarray:
        array = self._arrays[name]
        if array.dtype != dtype or array.ndim != 1 or n not in (None, len(array)):
            wanted = "" if n is None else f" {n:,}"
            raise ValueError(
                f"{name!r} must have{wanted} items of {np.dtype(dtype)}, not {array.shape} of"
                f" {array.dtype}"
            )
        return array

    def _numbers(self, name: str, dtype: Any, n: int | None, low: int, stop: int) -> np.ndarray:
        array = self._array(name, dtype, n)
        if len(array) and self._is_read(name):
            if not (low <= int(array.min()) and int(array.max()) < stop):
                raise ValueError(f"{name!r} has numbers beyond {low:,} … {stop - 1:,}")
        return array

    def _offsets(self, name: str, n: int, n_items: int) -> None:
        """Check where each of n rows begins and ends among some items."""
        offsets = self._array(name, np.int64, n + 1)
        if offsets[0] != 0 or offsets[-1] != n_items:
            raise ValueError(f"{name!r} must begin at 0 and end at {n_items:,}")
        if self._is_read(name) and not _ascends(offsets):
            raise ValueError(f"{name!r} does not ascend")

    def _texts(self, name: str, *, is_utf8: bool) -> int:
        """Check offsets and bytes of texts; return how many texts there are."""
        offsets, data = self._arrays[f"{name}_offsets"], self._array(f"{name}_data", np.uint8)
        if offsets.ndim != 1 or len(offsets) == 0:
            raise ValueError(f"'{name}_offsets' must have one dimension, and items")
        self._offsets(f"{name}_offsets", len(offsets) - 1, len(data))
        if is_utf8 and self._every_value:
            data.tobytes().decode()  # an error says where
            inner = offsets[offsets < len(data)]
            if ((data[inner] & 0xC0) == 0x80).any():
                raise ValueError(f"'{name}_offsets' cut characters into pieces")
        return len(offsets) - 1


def _first_of_each(counts: np.ndarray) -> np.ndarray:
    """Return for each item of some tables, one after the other, whether it is its table's first."""
    starts = np.cumsum(counts) - counts
    is_first = np.zeros(int(counts.sum()), bool)
    is_first[starts[counts > 0]] = True
    return is_first


def _ascends(array: np.ndarray, *, strictly: bool = False) -> bool:
    """Tell whether numbers ascend; without a second array that is as large."""
    for start in range(0, len(array) - 1, _ASCENDING_AT_ONCE):
        part = array[start : start + _ASCENDING_AT_ONCE + 1]
        is_above = part[1:] > part[:-1] if strictly else part[1:] >= part[:-1]
        if not is_above.all():
            return False
    return True


def _ascends_within(values: np.ndarray, offsets: np.ndarray, quantifiers: np.ndarray) -> bool:
    """Tell whether values ascend between two offsets, which ascend themselves.

    Strictly, but for values with a quantifier. Those of nested clauses need not.
    """
    if len(values) < 2:
        return True
    is_first = np.zeros(len(values), bool)
    inner = offsets[:-1]
    is_first[inner[inner < len(values)]] = True
    rises = values[1:] > values[:-1]
    if len(quantifiers):
        rises |= (values[1:] == values[:-1]) & (quantifiers[1:] != ONE_KEY)
        n_joined = np.append(0, np.cumsum(quantifiers > QUANTIFIER_BITS))[offsets]
        rises |= np.repeat(np.diff(n_joined) > 0, np.diff(offsets))[1:]
    return bool((is_first[1:] | rises).all())
