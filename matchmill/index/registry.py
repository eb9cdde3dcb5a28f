"""All indexes by name. A new one costs its file and one line here.

A class is imported when it is asked for, so that nobody waits for indexes that are not used.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module

from matchmill.errors import InputError, did_you_mean
from matchmill.index.base import Index

__all__ = ["DEFAULT_INDEX", "INDEXES", "check_index_options", "index_class", "index_options"]


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


def index_options(name: str) -> dict[str, object]:
    """Return the options of an index with their defaults: the keyword parameters of its `build`."""
    return {
        parameter.name: parameter.default
        for parameter in inspect.signature(index_class(name).build).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    }


def check_index_options(name: str, options: Mapping[str, object]) -> None:
    """Raise InputError unless the index has all of these options and accepts their values."""
    parameters = inspect.signature(index_class(name).build).parameters
    known = index_options(name)
    for option, value in options.items():
        if option not in known:
            listed = f"it has: {', '.join(known)}" if known else "it has none"
            near = did_you_mean(str(option), known)
            raise InputError(f"the index {name!r} has no option {option!r}; {listed}{near}")
        wanted = str(parameters[option].annotation)
        if type(value).__name__.replace("NoneType", "None") not in _accepted(wanted):
            raise InputError(f"the option {option!r} of {name!r} is {wanted}, not {value!r}")


def _accepted(annotation: str) -> set[str]:
    """Return the names of the types that an annotation such as `float | None` allows."""
    names = {name.strip() for name in annotation.split("|")}
    return names | {"int"} if "float" in names else names


def index_class(name: str) -> type[Index]:
    """The class of an index, by its name."""
    if not isinstance(name, str) or name not in INDEXES:
        raise InputError(f"unknown index {name!r}; there are: {', '.join(sorted(INDEXES))}")
    return INDEXES[name]
