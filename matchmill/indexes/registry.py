"""All indexes by name. A new one costs its file and one line here."""

from __future__ import annotations

from matchmill.errors import InputError
from matchmill.indexes.base import Index
from matchmill.indexes.counting import Counting
from matchmill.indexes.grouped import Grouped
from matchmill.indexes.mill import Mill
from matchmill.indexes.scan import Scan

__all__ = ["DEFAULT_INDEX", "INDEXES", "index_class"]

INDEXES: dict[str, type[Index]] = {
    Scan.name: Scan,
    Counting.name: Counting,
    Grouped.name: Grouped,
    Mill.name: Mill,
}

DEFAULT_INDEX = Mill.name


def index_class(name: str) -> type[Index]:
    """The class of an index, by its name."""
    if not isinstance(name, str) or name not in INDEXES:
        raise InputError(f"unknown index {name!r}; there are: {', '.join(sorted(INDEXES))}")
    return INDEXES[name]
