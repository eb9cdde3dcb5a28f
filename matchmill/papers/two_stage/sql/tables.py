"""The tables of one index: a form of `forms.py` under a prefix in one database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from matchmill.errors import InputError
from matchmill.papers.two_stage.sql.database import Database, quoted
from matchmill.papers.two_stage.sql.forms import Form
from matchmill.papers.two_stage.sql.rows import ClauseRows

__all__ = ["Tables"]

_LONGEST_PREFIX = 48  # bytes; PostgreSQL cuts names after 63


class Tables:
    """What a form's statements are about. All but `create…` and `load` want the tables to exist."""

    def __init__(
        self,
        database: Database,
        form: Form,
        prefix: str,
        *,
        schema: tuple[str, ...] = (),
        temporary: bool = False,
    ) -> None:
        if not 0 < len(prefix.encode()) <= _LONGEST_PREFIX:
            raise InputError(
                f"a table's name begins with a prefix of 1 to {_LONGEST_PREFIX} bytes, not with"
                f" {prefix!r}; choose one by prefix=…"
            )
        self.database = database
        self._form = form
        self._temporary = temporary or database.only_temporary
        self._prefix = prefix
        if self._temporary:
            schema = ()  # they have one of their own
        self._places = {name: (*schema, prefix + name) for name in form.tables}
        self._names = {name: quoted(*place) for name, place in self._places.items()}
        self._names |= {name: quoted(prefix + name) for name in form.scratch}
        self.n_rows = 0  # of the first table, when it was last counted

    # -- making them ------------------------------------------------------------------------------

    def create(self, *, replace: bool) -> None:
        """Create the tables, which must not be there unless they are to be replaced."""
        there = [name for name in self._form.tables if self._columns_of(name) is not None]
        if there and not replace:
            raise InputError(
                f"{self.database.name} has the tables {', '.join(self._listed(there))} already:"
                " `open` takes them as they are, replace=True makes them again, another prefix"
                " leaves them alone, and temporary=True makes tables for this index only"
            )
        for name in there:
            self._check_ours(name)  # before dropping a table that only has such a name
        for name in there:
            self.database.execute(f"DROP TABLE {self._names[name]}")
        kind = "TEMPORARY TABLE" if self._temporary else "TABLE"
        for name, columns in self._form.tables.items():
            self.database.create(kind, self._names[name], columns)

    def create_indexes(self) -> None:
        """Create indexes, and tell the planner, which has seen empty tables so far."""
        for name, indexes in self._form.indexes.items():
            for n, columns in enumerate(indexes):
                place = self._places[name]
                self.database.create_index(f"{self._prefix}{name}_{n}", place, columns)
        self.database.analyze([self._names[name] for name in self._form.tables])
        self._count()

    def check_there(self) -> None:
        """Raise unless the tables are there, with the columns of this form."""
        for name in self._form.tables:
            self._check_ours(name)
        self._count()

    def _check_ours(self, name: str) -> None:
        found, wanted = self._columns_of(name), self._form.tables[name]
        if found is None or set(found) != set(wanted):
            problem = "is not there" if found is None else f"has the columns {', '.join(found)}"
            raise InputError(
                f"the table {self._listed([name])[0]} {problem}; one that `build` makes has"
                f" {', '.join(wanted)}"
            )

    def _columns_of(self, name: str) -> tuple[str, ...] | None:
        return self.database.columns_of(self._names[name])

    def _listed(self, names: list[str]) -> list[str]:
        return [".".join(self._places[name]) for name in names]

    # -- asking and changing them -----------------------------------------------------------------

    def match(self, pairs: Mapping[str, np.ndarray]) -> Iterator[list[np.ndarray]]:
        """Match, and return what was found."""
        with self.database.transaction(writes=False):
            self.database.refill(self._names["pairs"], pairs)
            yield from self.database.stream(self._sql(self._form.match), 2)

    def insert(self, rows: ClauseRows) -> None:
        """Insert the clauses of a table."""
        columns = self._form.scratch["incoming"]
        incoming = self._names["incoming"]
        self.database.refill(incoming, {name: getattr(rows, name) for name in columns})
        for statement in self._form.insert:
            self.database.execute(self._sql(statement))
        self.database.refill(incoming, dict.fromkeys(columns, _NOTHING))
        self.n_rows += len(rows.sid)

    def hold_writers(self) -> None:
        """Let other writers of the table wait."""
        for name in self._form.tables:
            self.database.hold_writers(self._names[name])

    def n_known(self, clause_ids: np.ndarray) -> int:
        """How many of these ids there are; they are now the `doomed`."""
        for name, columns in self._form.scratch.items():
            if name not in ("doomed", "incoming", "pairs"):
                self.database.refill(self._names[name], dict.fromkeys(columns, _NOTHING))
        self.database.refill(self._names["doomed"], {"sid": clause_ids})
        return self._n_clauses(" WHERE sid IN (SELECT sid FROM {doomed})")

    def delete(self) -> None:
        """Those that `n_known` was asked for last, in the same transaction."""
        for statement in self._form.delete:
            self.database.execute(self._sql(statement))

    def n_clauses(self) -> int:
        """Return number of clauses."""
        return self._n_clauses("")

    def _n_clauses(self, condition: str) -> int:
        ids = " UNION ALL ".join(
            f"SELECT sid FROM {{{name}}}{condition}" for name in self._form.holders
        )
        return self.database.number(self._sql(f"SELECT COUNT(DISTINCT sid) FROM ({ids}) c"))

    def _count(self) -> None:
        first = next(iter(self._form.tables))
        self.n_rows = self.database.number(f"SELECT COUNT(*) FROM {self._names[first]}")

    def n_bytes(self) -> int:
        """Bytes of the arrays."""
        return self.database.n_bytes([self._names[name] for name in self._form.tables])

    def keys(self) -> list[np.ndarray]:
        """Dimensions and keys of the clauses."""
        return self.database.read(self._sql(self._form.keys), 2)

    def _sql(self, statement: str) -> str:
        return statement.format(**self._names)

    # -- as arrays --------------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all that `from_arrays` needs."""
        arrays = {"database": np.frombuffer(self.database.name.encode(), np.uint8)}
        for name, columns in self._form.tables.items():
            listed = ", ".join(columns)
            query = f"SELECT {listed} FROM {self._names[name]} ORDER BY {listed}"
            values = self.database.read(query, len(columns))
            arrays |= {f"{name}_{c}": v for c, v in zip(columns, values, strict=True)}
        return arrays

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Append rows."""
        for name, columns in self._form.tables.items():
            self.database.load(self._names[name], {c: arrays[f"{name}_{c}"] for c in columns})


_NOTHING = np.empty(0, np.int64)
