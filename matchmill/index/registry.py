"""All indexes by name. A new one costs its file, one line here, and its options (`options.py`).

A class is imported when it is first used: nobody waits for the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import TypeGuard

from matchmill.errors import InputError, did_you_mean, shown
from matchmill.index.base import DynamicIndex, Index
from matchmill.index.options import OPTIONS, IndexOption

__all__ = [
    "DEFAULT_INDEX",
    "INDEXES",
    "changes_in_place",
    "check_index_options",
    "index_class",
    "index_options",
]


class _Classes(MutableMapping[str, type[Index]]):
    """The class of each index, or where it is as "module:Class"."""

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
        "auto": "index.auto:Auto",
        "scan": "index.scan:Scan",
        "mill": "index.mill:Mill",
        "mask_tree": "index.mask_tree:MaskTree",
        "bitmaps": "index.bitmaps:Bitmaps",
        "lists": "index.lists:ListIndex",
        "be_tree": "papers.be_tree:BeTree",
        "counting": "papers.baselines.counting:Counting",
        "counting_bits": "papers.two_stage.counting_bits:CountingBits",
        "counting_bytes": "papers.two_stage.counting_bytes:CountingBytes",
        "counting_lists": "papers.two_stage.counting_lists:CountingLists",
        "gryphon": "papers.baselines.gryphon:Gryphon",
        "hem": "papers.baselines.hem:Hem",
        "k_index": "papers.baselines.k_index:KIndex",
        "op_index": "papers.op_index:OpIndex",
        "op_index_cnf": "papers.op_index.cnf.clauses:OpIndexCnfClauses",
        "propagation": "papers.baselines.propagation:Propagation",
        "pst_bloom": "papers.ps_tree.bloom_index:PSTBloom",
        "pst_hash": "papers.ps_tree.hash_index:PSTHash",
        "rein": "papers.baselines.rein:Rein",
        "sift": "papers.baselines.sift:Sift",
        "sql_grouped": "papers.two_stage.sql:SqlGrouped",
        "sql_pivot": "papers.two_stage.sql:SqlPivot",
        "sql_sequential": "papers.two_stage.sql:SqlSequential",
    }
)

DEFAULT_INDEX = "auto"


def index_class(name: str) -> type[Index]:
    """Return the class of an index, by its name."""
    _check_name(name)
    return INDEXES[name]


def changes_in_place(index: type[Index]) -> TypeGuard[type[DynamicIndex]]:
    """Tell whether engines change an index in place, as its class says."""
    return bool(getattr(index, "in_place", False))


def index_options(name: str) -> tuple[IndexOption, ...]:
    """Return the options that an index declares."""
    _check_name(name)
    if name in OPTIONS:
        return OPTIONS[name]
    declared: tuple[IndexOption, ...] = getattr(INDEXES[name], "options", ())
    return declared


def check_index_options(name: str, options: Mapping[str, object]) -> None:
    """Raise InputError unless the index has all of these options and accepts their values."""
    known = {option.name: option for option in index_options(name)}
    for option, value in options.items():
        if option not in known:
            listed = f"; it has: {', '.join(known)}" if known else "; it has none"
            hint = did_you_mean(str(option), known) if isinstance(option, str) else ""
            raise InputError(f"index {shown(name)} has no option {shown(option)}{listed}{hint}")
        known[option].check(value)


def _check_name(name: str) -> None:
    if not isinstance(name, str) or name not in INDEXES:
        hint = did_you_mean(name, INDEXES) if isinstance(name, str) else ""
        known = ", ".join(sorted(INDEXES))
        raise InputError(f"unknown index {shown(name)}; there are: {known}{hint}")
