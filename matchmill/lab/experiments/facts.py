"""Facts: small tables that were measured beside the experiments, to explain what these show.

    {"be_tree.bytes": {"title": "…", "how": "script/bench reasons be-tree", "machine": "…",
                       "header": ["part", "bytes per subscription"], "rows": [["records", 120.5]]}}

`benchmarks/reasons.py` writes them. A page shows those that its claims name, and a check may use a
number of theirs. The first cell of a row is its name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from matchmill.errors import InputError

__all__ = ["Fact", "Facts", "read_facts"]


class Fact(NamedTuple):
    """One table."""

    title: str
    how: str
    machine: str
    header: list[str]
    rows: list[list[Any]]


class Facts(NamedTuple):
    """All tables of a file, by name."""

    path: Path
    tables: Mapping[str, Fact]

    def table(self, name: str) -> Fact:
        """Return one of the tables."""
        if name not in self.tables:
            raise InputError(f"{self.path} has no table {name!r}; it has {', '.join(self.tables)}")
        return self.tables[name]

    def number(self, name: str, row: str, column: str) -> float:
        """Return one number of a table."""
        fact = self.table(name)
        rows = {str(cells[0]): cells for cells in fact.rows}
        if row not in rows or column not in fact.header[1:]:
            raise InputError(
                f"{self.path}, {name}: there is no {row!r}, {column!r}; rows are "
                f"{', '.join(rows)}, columns {', '.join(fact.header[1:])}"
            )
        value = rows[row][fact.header.index(column)]
        if not isinstance(value, int | float):
            raise InputError(f"{self.path}, {name}: {value!r} at {row!r}, {column!r} is no number")
        return float(value)


def read_facts(path: Path) -> Facts:
    """Read a file of facts; without it there are none."""
    if not path.is_file():
        return Facts(path, {})
    data = json.loads(path.read_text(encoding="utf-8"))
    return Facts(path, {name: Fact(**table) for name, table in data.items()})
