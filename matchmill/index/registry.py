"""All indexes by name. A new one costs its file and one line here.

A class is imported when it is asked for, so that nobody waits for indexes that are not used.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module

from matchmill.errors import InputError
from matchmill.index.base import Index

__all__ = ["DEFAULT_INDEX", "INDEXES", "index_class"]


class _Classes(MutableMapping[str, type[Index]]):
    """The class of each index."""

    def __init__(self, places: dict[str, str]) -> None:
        self._known: dict[str, str | type[Index]] = {**places}

    def __getitem__(self, name: str) -> type[Index]:
        known = self._known[name]
        if not isinstance(known, str):
            return known
        module, _, class_name = known.partition(":")
        found: type[Index] = getattr(import_module(f"matchmill.{module}"), class_name)
        return found

    def __setitem__(self, name: str, index: type[Index]) -> None:
        self._known[name] = index

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


INDEXES: MutableMapping[str, type[Index]] = _Classes(
    {
        "scan": "index.scan:Scan",
        "mill": "index.mill:Mill",
        "be_tree": "papers.be_tree:BeTree",
        "counting": "papers.baselines.counting:Counting",
        "counting_bits": "papers.two_stage.counting_bits:CountingBits",
        "counting_bytes": "papers.two_stage.counting_bytes:CountingBytes",
        "gryphon": "papers.baselines.gryphon:Gryphon",
        "k_index": "papers.baselines.k_index:KIndex",
        "op_index": "papers.op_index:OpIndex",
        "propagation": "papers.baselines.propagation:Propagation",
        "pst_bloom": "papers.ps_tree.bloom_index:PSTBloom",
        "pst_hash": "papers.ps_tree.hash_index:PSTHash",
        "sift": "papers.baselines.sift:Sift",
        "sql_grouped": "papers.two_stage.sql:SqlGrouped",
        "sql_pivot": "papers.two_stage.sql:SqlPivot",
        "sql_sequential": "papers.two_stage.sql:SqlSequential",
    }
)

DEFAULT_INDEX = "mill"


def index_class(name: str) -> type[Index]:
    """The class of an index, by its name."""
    if not isinstance(name, str) or name not in INDEXES:
        raise InputError(f"unknown index {name!r}; there are: {', '.join(sorted(INDEXES))}")
    return INDEXES[name]
