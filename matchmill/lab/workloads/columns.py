"""Values as people have them, as codes: decimals, whole numbers, times, texts.

    column      codes            values
    decimals=2  1, 2, 3, …       (first + code) / 100: 19.99 is one code above 19.98
    decimals=0  1, 2, 3, …       first + code, up to 64 bits
    timestamp   1, 2, 3, …       that many seconds after 2026-01-01
    text        1, 2, 3, …       'x0001', 'x0002', …

A code is the place of a value in its order, as everywhere in `flat.py`; here a column may have
billions of them. Example: price has two decimals and 100,000 values, so 19.99 is code 1999 and
`price between 19.98 and 19.99` is the interval 1998 … 1999.

`expressions` and `arrow_events` write a whole workload at once, without a loop over subscriptions
or events. They mean the same as `subscription_texts` and `event_dicts`, which tests compare.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchmill.kernels.csr import offsets_of
from matchmill.lab.workloads.flat import FlatEvents, FlatSubscriptions, Workload, predicate_text
from matchmill.language.expression import name_text

__all__ = [
    "Column",
    "ColumnDomain",
    "arrow_events",
    "expressions",
    "flat_events",
    "flat_subscriptions",
]

_START = dt.datetime(2026, 1, 1)


class Column(NamedTuple):
    """One attribute: what its values are."""

    name: str
    n_values: int
    kind: Literal["number", "timestamp", "text"] = "number"
    decimals: int = 0
    first: int = 0  # the value of code c is first + c, before the point is set

    def value(self, code: int) -> int | float | str | dt.datetime:
        """Return the value that a code stands for."""
        if self.kind == "text":
            return f"x{code:0{len(str(self.n_values))}}"
        if self.kind == "timestamp":
            return _START + dt.timedelta(seconds=code)
        return self.first + code if self.decimals == 0 else (self.first + code) / 10**self.decimals

    def values(self, codes: np.ndarray) -> pa.Array:
        """Return the values that codes stand for, all at once."""
        if self.kind == "text":
            width = len(str(self.n_values))
            digits = pc.utf8_lpad(pa.array(codes).cast(pa.string()), width, "0")
            return pc.binary_join_element_wise("x", digits, "")
        if self.kind == "timestamp":
            seconds = codes + int(_START.replace(tzinfo=dt.UTC).timestamp())
            return pa.array(seconds).cast(pa.timestamp("s"))
        numbers = codes + self.first
        return pa.array(numbers if self.decimals == 0 else numbers / 10**self.decimals)

    def literals(self, codes: np.ndarray) -> pa.Array:
        """Return the values that codes stand for, as expressions write them."""
        texts = self.values(codes).cast(pa.string())
        if self.kind == "number":
            return texts
        before = "timestamp '" if self.kind == "timestamp" else "'"
        return pc.binary_join_element_wise(before, texts, "'", "")


class ColumnDomain(NamedTuple):
    """Attributes that are columns."""

    columns: tuple[Column, ...]

    @property
    def n_attributes(self) -> int:
        """Number of attributes."""
        return len(self.columns)

    def name(self, attribute: int) -> str:
        """Return the name of an attribute."""
        return self.columns[attribute].name

    def n_values(self, attribute: int) -> int:
        """Return how many values an attribute has."""
        return self.columns[attribute].n_values

    def value(self, attribute: int, code: int) -> int | float | str | dt.datetime:
        """Return the value that a code stands for."""
        return self.columns[attribute].value(code)


# -- flat arrays from rows ------------------------------------------------------------------------


def flat_subscriptions(
    n: int, owners: np.ndarray, attributes: np.ndarray, lows: np.ndarray, highs: np.ndarray
) -> FlatSubscriptions:
    """Return n clauses from rows (owner, attribute, low, high) in any order.

    Rows of the same owner and attribute are intervals of one predicate; those that meet are joined.
    """
    order = np.argsort(owners * (int(attributes.max(initial=0)) + 1) + attributes, kind="stable")
    owners, attributes = owners[order], attributes[order]
    same = (owners[1:] == owners[:-1]) & (attributes[1:] == attributes[:-1])
    if (same & (lows[order][1:] < lows[order][:-1])).any():
        order = order[np.lexsort((lows[order], attributes, owners))]
    lows = lows[order]
    highs = _running_highs(same, highs[order])
    starts = np.ones(len(owners), bool)  # of an interval
    starts[1:] = ~same | (lows[1:] > highs[:-1] + 1)
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(owners)) - 1
    owners, attributes = owners[first], attributes[first]
    new = np.ones(len(first), bool)  # the first interval of a predicate
    new[1:] = (owners[1:] != owners[:-1]) | (attributes[1:] != attributes[:-1])
    predicates = np.flatnonzero(new)
    return FlatSubscriptions(
        np.arange(n, dtype=np.int64),
        offsets_of(np.bincount(owners[predicates], minlength=n)),
        attributes[predicates].astype(np.int32),
        np.append(predicates, len(first)).astype(np.int64),
        lows[first].astype(np.int64),
        highs[last].astype(np.int64),
    )


def _running_highs(same: np.ndarray, highs: np.ndarray) -> np.ndarray:
    """Return the highest bound so far of each predicate: an interval may hold the next one."""
    highs = highs.astype(np.int64)
    while True:
        lower = np.flatnonzero(same & (highs[1:] < highs[:-1]))
        if not len(lower):
            return highs
        highs[lower + 1] = highs[lower]


def flat_events(codes: np.ndarray) -> FlatEvents:
    """Return events from a matrix of codes, a row per event; 0 is absent."""
    rows, attributes = np.nonzero(codes)
    return FlatEvents(
        offsets_of(np.bincount(rows, minlength=len(codes))),
        attributes.astype(np.int32),
        codes[rows, attributes].astype(np.int64),
    )


# -- whole workloads ------------------------------------------------------------------------------


def arrow_events(workload: Workload, events: FlatEvents, start: int, stop: int) -> pa.Table:
    """Return some events as a table, a column per attribute; absent values are null."""
    columns = _columns(workload)
    first, last = events.offsets[start], events.offsets[stop]
    rows = np.repeat(np.arange(stop - start), np.diff(events.offsets[start : stop + 1]))
    codes = np.zeros((stop - start, len(columns)), np.int64, order="F")
    codes[rows, events.attributes[first:last]] = events.codes[first:last]
    arrays = []
    for column, own in zip(columns, codes.T, strict=True):
        values = column.values(own)
        arrays.append(values if own.all() else pc.if_else(pa.array(own != 0), values, None))
    return pa.table(arrays, names=[column.name for column in columns])


def expressions(workload: Workload) -> pa.LargeStringArray:
    """Return the texts of all subscriptions, each of one clause."""
    flat, columns = workload.subscriptions, _columns(workload)
    texts = np.empty(len(flat.attributes), object)
    single = np.diff(flat.interval_offsets) == 1
    starts = flat.interval_offsets[:-1]
    single &= flat.lows[np.minimum(starts, len(flat.lows) - 1)] > 0
    for attribute, column in enumerate(columns):
        mine = np.flatnonzero(single & (flat.attributes == attribute))
        if len(mine):
            own = _range_texts(column, flat.lows[starts[mine]], flat.highs[starts[mine]])
            texts[mine] = own.to_numpy(zero_copy_only=False)
    known: dict[tuple[object, ...], str] = {}  # long lists are shared
    for p in np.flatnonzero(~single).tolist():
        span = slice(*flat.interval_offsets[p : p + 2].tolist())
        key = int(flat.attributes[p]), flat.lows[span].tobytes(), flat.highs[span].tobytes()
        if key not in known:
            known[key] = predicate_text(workload, p)
        texts[p] = known[key]
    lists = pa.ListArray.from_arrays(
        pa.array(flat.clause_offsets, pa.int32()), pa.array(texts, pa.string())
    )
    return pc.binary_join(lists, " and ").cast(pa.large_string())


def _range_texts(column: Column, lows: np.ndarray, highs: np.ndarray) -> pa.Array:
    name = name_text(column.name)
    low, high = column.literals(lows), column.literals(highs)
    point = pc.binary_join_element_wise(name, low, " = ")
    above = pc.binary_join_element_wise(name, low, " >= ")
    below = pc.binary_join_element_wise(name, high, " <= ")
    bounds = pc.binary_join_element_wise(low, high, " and ")
    between = pc.binary_join_element_wise(name, bounds, " between ")
    cases: Sequence[np.ndarray] = (
        lows == highs,
        (lows == 1) & (highs == column.n_values),
        lows == 1,
        highs == column.n_values,
    )
    chosen = pc.make_struct(*map(pa.array, cases), field_names=list("abcd"))
    known = pa.scalar(f"{name} is not null")
    return pc.case_when(chosen, point, known, below, above, between)


def _columns(workload: Workload) -> tuple[Column, ...]:
    assert isinstance(workload.domain, ColumnDomain)
    return workload.domain.columns
