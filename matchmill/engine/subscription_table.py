"""All subscriptions: ids, texts of expressions, and which clauses belong to which subscription.

    number    the position of an id in the dictionary; it never changes while the engine is open
    row       one version of a subscription; subscribing again under the same id makes a new row

    row_of_number[number]      the current row, or -1
    number_of_row[row]         the id that it belongs to
    first_clause[row]          its clauses are first_clause[row] … first_clause[row + 1]
    is_exact[row]              0 if a candidate must be confirmed with the expression itself, EXACT
                               if not, NESTED if not because a clause is nested, which
                               is exact for events, not for expressions
    texts[row]                 the expression
    row_of_clause[clause]      from a clause that matched back to its row

The object is a value: a change makes another one, which shares the memory (`flat_dictionary.py`).
Rows and clauses are only added, so a reader with an older object finds all that it needs. Only
`row_of_number` changes in place, at the moment when a new object takes effect: a `RowsChange` says
how. Rows that are no longer current stay until `compaction.py` copies the others.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from matchmill.encoding.flat_dictionary import FlatDictionary, Growable, TextPool
from matchmill.encoding.texts import Texts, strings_to_texts, texts_of
from matchmill.engine.known_ids import KnownIds
from matchmill.errors import FolderError, InputError, UnknownIdError, shown
from matchmill.kernels.csr import take_ranges
from matchmill.language.expression import Expression
from matchmill.language.parser import parse
from matchmill.language.values import INT64_MAX, INT64_MIN
from matchmill.settings import UNLIMITED

__all__ = [
    "EXACT",
    "EXACT_WITHOUT_LISTS",
    "NESTED",
    "Id",
    "RowsChange",
    "Subscriptions",
    "check_id",
    "plain_id",
    "text_array",
    "unknown_id",
]

Id: TypeAlias = str | int

# What `is_exact` says of a row; 0 is that its clauses are a superset, which is confirmed.
EXACT, NESTED, EXACT_WITHOUT_LISTS = 1, 2, 3
_SURE = (EXACT, NESTED)

_UNSURE = object()  # in place of an id: the clause does not decide alone


def plain_id(identifier: object) -> object:
    """Return an id of a related type as a plain string or integer; all else as it is."""
    if type(identifier) is str or type(identifier) is int:
        return identifier
    if isinstance(identifier, str):
        return str.__str__(identifier)  # its value; a class may print itself in another way
    if isinstance(identifier, np.integer) and identifier.dtype.kind in "iu":  # no time span
        return int(identifier)
    if isinstance(identifier, int) and not isinstance(identifier, bool):
        return int.__int__(identifier)
    return identifier


def check_id(identifier: object) -> Id:
    """Return an id that is a string or an int64; anything else is an error."""
    identifier = plain_id(identifier)
    if type(identifier) is str:
        if identifier == "":
            raise InputError("a subscription's id must not be empty")
        try:
            identifier.encode()
        except UnicodeEncodeError:
            raise InputError(
                f"the id {shown(identifier)} has a lone surrogate, which is not valid Unicode"
            ) from None
        return identifier
    if type(identifier) is int:
        if INT64_MIN <= identifier <= INT64_MAX:
            return identifier
        raise InputError(f"the id {shown(identifier)} is beyond 64 bits")
    raise InputError(
        f"a subscription's id is a string or an integer, not {type(identifier).__name__}"
    )


def unknown_id(identifier: object) -> UnknownIdError:
    """Return the error for an id that no subscription has."""
    return UnknownIdError(f"there is no subscription {shown(identifier)}")


class RowsChange(NamedTuple):
    """New subscriptions, and what has to be written to `row_of_number` when they take effect."""

    subscriptions: Subscriptions
    numbers: np.ndarray
    rows: np.ndarray  # of each of these numbers, -1 if it has none any more

    def made(self) -> Subscriptions:
        """Let the change take effect at once, where nobody else sees the old object."""
        new = self.subscriptions
        new.row_of_number.data[self.numbers] = self.rows
        return new


class Subscriptions:
    """All subscriptions of an engine: ids, texts, and which clauses belong to which."""

    def __init__(self, texts: TextPool | None = None) -> None:
        self.id_type: type[str] | type[int] | None = None  # set by the first subscription
        self.ids = FlatDictionary()
        self.row_of_number = Growable(np.int32)
        self.number_of_row = Growable(np.int32)
        self.first_clause = Growable(np.int64, np.zeros(1, np.int64))
        self.is_exact = Growable(np.uint8)
        self.texts = TextPool() if texts is None else texts
        self.row_of_clause = Growable(np.int32)
        self.n_live = 0
        self._known_ids = KnownIds()
        self._parser = _Parser(self.texts)
        self.expression_of_row = self._parser.expression_of_row

    def _copy(self) -> Subscriptions:
        """Return an object with the same contents, to be changed before anybody sees it."""
        other = Subscriptions.__new__(Subscriptions)
        other.__dict__.update(self.__dict__)
        return other

    @property
    def n_rows(self) -> int:
        """How many rows there are, removed ones included."""
        return self.number_of_row.n

    # identifiers

    def check_id_type(self, identifier: Id) -> None:
        """Raise unless the id has the type of all others."""
        if self.id_type is not None and type(identifier) is not self.id_type:
            wanted = "strings" if self.id_type is str else "integers"
            raise InputError(
                f"the ids of this engine are {wanted}, and {shown(identifier)} is not one of them"
            )

    def _encode(self, identifiers: Sequence[Id]) -> Texts:
        if self.id_type is int:
            values = np.array(identifiers, np.int64)
            return Texts(np.arange(len(values) + 1, dtype=np.int64) * 8, values.view(np.uint8))
        return strings_to_texts(identifiers)  # type: ignore[arg-type]

    def current_row(self, identifier: object) -> int:
        """Return the row of a subscription, or -1. Its id is plain (`plain_id`)."""
        if type(identifier) is not self.id_type:
            return -1
        try:
            encoded = self._encode([identifier])
        except (OverflowError, UnicodeEncodeError):  # no id is like this
            return -1
        number = int(self.ids.lookup(encoded)[0])
        return -1 if number < 0 else int(self.row_of_number.data[number])

    def current_rows(self, identifiers: Sequence[Id]) -> np.ndarray:
        """Return the rows of many ids of the right type; -1 where there is none."""
        if not len(identifiers) or self.id_type is None:
            return np.full(len(identifiers), -1, np.int64)
        numbers = self.ids.lookup(self._encode(identifiers))
        rows = np.full(len(numbers), -1, np.int64)
        known = numbers >= 0
        rows[known] = self.row_of_number.data[numbers[known]]
        return rows

    def rows_of(self, identifiers: Sequence[object]) -> np.ndarray:
        """Return the rows of plain ids; UnknownIdError if one of them is not there."""
        rows = None
        if all(type(identifier) is self.id_type for identifier in identifiers):
            with suppress(OverflowError, UnicodeEncodeError):  # which one it is, is found below
                rows = self.current_rows(identifiers)  # type: ignore[arg-type]
        if rows is None:
            rows = np.array([self.current_row(identifier) for identifier in identifiers], np.int64)
        missing = np.flatnonzero(rows < 0)
        if len(missing):
            raise unknown_id(identifiers[int(missing[0])])
        return rows

    def ids_of_numbers(self, numbers: np.ndarray) -> pa.Array:
        """Return ids as an Arrow array."""
        texts = self.ids.pool.texts
        if self.id_type is int:
            values = texts.data.view(np.int64)
            return pa.array(values[numbers], pa.int64())
        if len(numbers) == 0:
            return pa.array([], pa.large_string())
        buffers = [None, pa.py_buffer(texts.offsets), pa.py_buffer(texts.data)]
        known = pa.Array.from_buffers(pa.large_string(), texts.n_texts, buffers)
        return known.take(pa.array(numbers))

    def id_list(self, numbers: np.ndarray) -> list[Id]:
        """Return ids as a list of Python objects, which are kept for the next time."""
        if self.id_type is int:
            return list(self.ids.pool.texts.data.view(np.int64)[numbers].tolist())
        return self._known_ids.of_number.list_of(numbers, len(self.ids), self._made_ids)

    def id_set(self, numbers: np.ndarray) -> set[Id]:
        """Return ids as a set of Python objects, which are kept for the next time."""
        if self.id_type is int:
            return set(self.ids.pool.texts.data.view(np.int64)[numbers].tolist())
        return self._known_ids.of_number.set_of(numbers, len(self.ids), self._made_ids)

    def ids_of_clauses(self, clauses: np.ndarray) -> set[Id] | None:
        """Return the ids that clauses belong to; None if one has to be confirmed."""
        n_clauses = len(self.row_of_clause.data)
        found = self._known_ids.of_clause.set_of(clauses, n_clauses, self._ids_by_clause)
        return None if _UNSURE in found else found

    def _made_ids(self, numbers: np.ndarray) -> list[Id]:
        return list(self.ids_of_numbers(numbers).to_pylist())

    def _ids_by_clause(self, clauses: np.ndarray) -> list[Any]:
        rows = self.row_of_clause.data[clauses]
        ids = self.id_list(self.number_of_row.data[rows])
        exactness = self.is_exact.data[rows].tolist()
        return [id if e in _SURE else _UNSURE for id, e in zip(ids, exactness, strict=True)]

    def live_numbers(self) -> np.ndarray:
        """Return the numbers of all current subscriptions, in order of first arrival."""
        return np.flatnonzero(self.row_of_number.array >= 0)

    # rows

    def added(
        self,
        identifiers: Sequence[Id],
        texts: Texts,
        n_clauses: np.ndarray,
        is_exact: np.ndarray,
    ) -> RowsChange:
        """Add rows for distinct ids of one type; they replace those with the same id."""
        new = self._copy()
        new.id_type = type(identifiers[0])
        return new._with_rows(new._encode(identifiers), texts, n_clauses, is_exact)

    def with_rows_of(self, other: Subscriptions, rows: np.ndarray) -> Subscriptions:
        """Copy rows of another object, which have distinct ids."""
        new = self._copy()
        new.id_type = other.id_type
        first = other.first_clause.data
        return new._with_rows(
            _taken(other.ids.pool.texts, other.number_of_row.data[rows]),
            _taken(other.texts.texts, rows),
            first[rows + 1] - first[rows],
            other.is_exact.data[rows],
        ).made()

    def with_ids_of(self, other: Subscriptions, numbers: np.ndarray) -> Subscriptions:
        """Give these ids their numbers in this order, whatever the order of their rows will be."""
        new = self._copy()
        new.row_of_number = self.row_of_number.padded(len(self.ids) + len(numbers), -1)
        new.ids = self.ids.with_new(_taken(other.ids.pool.texts, numbers))
        return new

    def _with_rows(
        self, encoded: Texts, texts: Texts, n_clauses: np.ndarray, is_exact: np.ndarray
    ) -> RowsChange:
        """Fill a copy."""
        numbers = self.ids.lookup(encoded)
        unknown = np.flatnonzero(numbers < 0)
        if len(unknown):
            n_known = len(self.ids)
            numbers[unknown] = np.arange(n_known, n_known + len(unknown))
            self.row_of_number = self.row_of_number.padded(n_known + len(unknown), -1)
        first_row = self.number_of_row.n
        rows = np.arange(first_row, first_row + encoded.n_texts)
        self.texts = self.texts.extended(texts)
        self._parser.texts = self.texts
        self.is_exact = self.is_exact.extended(is_exact)
        self.row_of_clause = self.row_of_clause.extended(np.repeat(rows, n_clauses))
        firsts = self.first_clause.array[-1] + np.cumsum(n_clauses)
        self.first_clause = self.first_clause.extended(firsts)
        self.number_of_row = self.number_of_row.extended(numbers)
        self.n_live += int((self.row_of_number.data[numbers] < 0).sum())
        if len(unknown):  # last, because nothing after it can fail: it takes slots
            are_all = len(unknown) == len(numbers)
            self.ids = self.ids.with_new(encoded if are_all else _taken(encoded, unknown))
        return RowsChange(self, numbers, rows)

    def removed(self, rows: np.ndarray) -> RowsChange:
        """Remove the subscriptions whose current rows are among these."""
        numbers = self.number_of_row.data[rows]
        numbers = numbers[self.row_of_number.data[numbers] == rows]
        new = self._copy()
        new.n_live -= len(numbers)
        return RowsChange(new, numbers, np.full(len(numbers), -1, np.int64))

    def is_current(self, row: int) -> bool:
        """Tell whether a row is the latest version of a subscription that is still there."""
        if row >= self.n_rows:  # of a later object: nothing is known of it here
            return True
        return bool(self.row_of_number.data[self.number_of_row.data[row]] == row)

    def clauses_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the clause ids of some rows."""
        return take_ranges(self.first_clause.data, rows)[1]

    @property
    def n_bytes(self) -> int:
        """How many bytes all arrays take."""
        growables = (
            self.row_of_number,
            self.number_of_row,
            self.first_clause,
            self.is_exact,
            self.row_of_clause,
        )
        return self.ids.n_bytes + self.texts.n_bytes + sum(g.data.nbytes for g in growables)

    # files

    def arrays(self) -> dict[str, np.ndarray]:
        """Return everything as it is now; copies only what changes in place."""
        return {
            "id_offsets": self.ids.pool.texts.offsets,
            "id_data": self.ids.pool.texts.data,
            "id_slots": self.ids.slots.copy(),
            "row_of_number": self.row_of_number.array.copy(),
            "number_of_row": self.number_of_row.array,
            "first_clause": self.first_clause.array,
            "is_exact": self.is_exact.array,
            "text_offsets": self.texts.texts.offsets,
            "text_data": self.texts.texts.data,
            "row_of_clause": self.row_of_clause.array,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], id_type: str, n_live: int) -> Subscriptions:
        """Read what `arrays` returned."""
        if id_type not in ("str", "int", "none"):
            raise FolderError(f"the saved engine has ids of an unknown type {id_type!r}")
        new = cls(TextPool(Texts(arrays["text_offsets"], arrays["text_data"])))
        new.id_type = {"str": str, "int": int, "none": None}[id_type]
        pool = TextPool(Texts(arrays["id_offsets"], arrays["id_data"]))
        new.ids = FlatDictionary(pool, arrays["id_slots"])
        new.row_of_number = Growable(np.int32, arrays["row_of_number"])
        new.number_of_row = Growable(np.int32, arrays["number_of_row"])
        new.first_clause = Growable(np.int64, arrays["first_clause"])
        new.is_exact = Growable(np.uint8, arrays["is_exact"])
        new.row_of_clause = Growable(np.int32, arrays["row_of_clause"])
        new.n_live = n_live
        return new


def text_array(known: Subscriptions) -> pa.Array:
    """Return the expressions of a table of subscriptions, by row, without copying them."""
    texts = known.texts.texts
    buffers = [None, pa.py_buffer(texts.offsets), pa.py_buffer(texts.data)]
    return pa.Array.from_buffers(pa.large_string(), texts.n_texts, buffers)


class _Parser:
    """The expressions of rows, the latest of them parsed; all objects of one engine share it.

    It knows the latest texts alone: a cycle would keep all arrays of a dropped object alive.
    """

    def __init__(self, texts: TextPool) -> None:
        self.texts = texts
        self.expression_of_row = _cached_parser(weakref.ref(self))


def _cached_parser(parser: weakref.ref[_Parser]) -> Callable[[int], Expression]:
    @lru_cache(maxsize=4096)
    def expression_of_row(row: int) -> Expression:
        known = parser()
        assert known is not None
        return parse(known.texts[row], UNLIMITED)

    return expression_of_row


def _taken(texts: Texts, rows: np.ndarray) -> Texts:
    """Return some of the texts, by their number."""
    buffers = [None, pa.py_buffer(texts.offsets), pa.py_buffer(texts.data)]
    known = pa.Array.from_buffers(pa.large_binary(), texts.n_texts, buffers)
    return texts_of(known.take(pa.array(rows)))
