"""The options of all indexes: name, accepted values, default and help, in one table.

An index takes its options as keyword arguments of `build`. Indexes that are registered at run time
may declare theirs as a class attribute `options`, a tuple of `IndexOption`.
"""

from __future__ import annotations

from types import NoneType
from typing import Any, NamedTuple

from matchmill.errors import InputError, shown

__all__ = ["OPTIONS", "IndexOption"]


class IndexOption(NamedTuple):
    """One option of an index."""

    name: str
    types: tuple[type, ...]
    default: Any
    help: str
    choices: tuple[str, ...] = ()  # of a text
    minimum: float | None = None  # of a number
    maximum: float | None = None
    is_power_of_two: bool = False

    @property
    def wanted(self) -> str:
        """Describe the values that are accepted."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        names = " or ".join(_TYPE_NAMES[t] for t in self.types)
        if self.is_power_of_two:
            names += ", a power of two"
        if self.maximum is not None:
            return f"{names} from {self.minimum} to {self.maximum}"
        return names if self.minimum is None else f"{names}, at least {self.minimum}"

    def check(self, value: object) -> None:
        """Raise InputError unless the value is accepted."""
        accepted = type(value) in self.types or (type(value) is int and float in self.types)
        if accepted and self.choices:
            accepted = value in self.choices
        if accepted and self.minimum is not None and type(value) in (int, float):
            accepted = value >= self.minimum  # type: ignore[operator]
        if accepted and self.maximum is not None and type(value) in (int, float):
            accepted = value <= self.maximum  # type: ignore[operator]
        if accepted and self.is_power_of_two and type(value) is int:
            accepted = value > 0 and value & (value - 1) == 0
        if not accepted:
            raise InputError(f"index option {self.name} must be {self.wanted}, not {shown(value)}")


_TYPE_NAMES: dict[type, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    NoneType: "None",
}


def _share(name: str, default: float, text: str) -> IndexOption:
    return IndexOption(name, (float,), default, text, minimum=0, maximum=1)


_AHEAD = IndexOption(
    "ahead", (bool,), True, "load the memory of coming events in advance while matching"
)
_MAX_POSTINGS = IndexOption(
    "max_postings", (int,), 400_000_000, "posting entries before building is given up", minimum=1
)
_MATRIX_BYTES = IndexOption(
    "matrix_bytes", (int,), 4 << 30, "memory of the matrix before building is given up", minimum=1
)
_BUCKETS = IndexOption("buckets", (int,), 1000, "buckets of an attribute's bounds", minimum=1)
_PREDICATES = IndexOption(
    "predicates",
    (str,),
    "auto",
    "structure of the predicates of a dimension: a table of ranks, ordered lists, the paper's "
    "linked lists; auto: a table while it is small, then lists",
    choices=("auto", "table", "list", "linked"),
)
_SEGMENTS = IndexOption(
    "segments",
    (int, bool),
    True,
    "segments of a long list, a power of two; True: a good number; False: OpIndex-BS",
    is_power_of_two=True,
)
_SQL = (
    IndexOption(
        "database",
        (str,),
        "duckdb",
        "where tables are kept",
        choices=("duckdb", "sqlite", "postgresql"),
    ),
    IndexOption("path", (str, NoneType), None, "a file of DuckDB or SQLite; None: in memory"),
    IndexOption("dsn", (str, NoneType), None, "how to connect with a PostgreSQL server"),
    IndexOption("prefix", (str, NoneType), None, "of the names of tables; None: the index's name"),
    IndexOption("temporary", (bool,), False, "remove the tables together with the index"),
    IndexOption("replace", (bool,), False, "replace tables that are there already"),
    IndexOption("events_per_query", (int, NoneType), None, "most events of one query", minimum=1),
)

_KERNEL = IndexOption(
    "kernel",
    (str,),
    "auto",
    "match one event at a time, many (64) at a time, or what is quicker on the events",
    choices=("auto", "one", "many"),
)

OPTIONS: dict[str, tuple[IndexOption, ...]] = {
    "auto": (_KERNEL,),
    "mill": (_KERNEL,),
    "mask_tree": (),
    "bitmaps": (),
    "lists": (),
    "scan": (),
    "be_tree": (
        IndexOption(
            "max_capacity",
            (int, NoneType),
            None,
            "clauses in a leaf before it is cut; None: by matching_probability",
            minimum=1,
        ),
        IndexOption(
            "matching_probability",
            (float, NoneType),
            None,
            "the share of clauses that an event matches, to choose max_capacity by",
        ),
        IndexOption("min_size", (int,), 3, "clauses of a new partition, at least", minimum=1),
        IndexOption("self_adjust", (bool,), True, "recycle partitions that rank low"),
        IndexOption(
            "build",
            (str,),
            "batch",
            "insert the first clauses all at once, or one at a time",
            choices=("batch", "single"),
        ),
        IndexOption(
            "first",
            (str,),
            "popular",
            "the dimensions that partition a leaf first",
            choices=("popular", "rare"),
        ),
        IndexOption(
            "windows",
            (str,),
            "changes",
            "what fills the window after which a partition is ranked: changes, or all operations",
            choices=("changes", "operations"),
        ),
        IndexOption(
            "threshold",
            (float, NoneType),
            None,
            "recycle partitions of a lower rank; None: 0, or losing twice the usual",
        ),
        _share("alpha_subsumed", 1.0, "what a subsumed predicate counts in Gain"),
        _share("alpha_covered", 1.0, "what a covered predicate counts in Gain"),
        _share("beta", 1.0, "what Gain counts in Rank"),
        _share("gamma", 1.0, "what Loss counts in Rank"),
        IndexOption(
            "histogram_buckets",
            (int,),
            0,
            "buckets of the histogram that estimates the Loss of a new partition; 0: no Loss",
            minimum=0,
        ),
        _share("exploration", 0.0, "the share of choices of a partition that are made at random"),
        IndexOption(
            "reinsert",
            (bool,),
            False,
            "insert clauses again for which another partition has come to rank higher",
        ),
        IndexOption(
            "adjust_capacity", (bool,), False, "choose max_capacity again by what has matched"
        ),
        _AHEAD,
    ),
    "counting": (
        IndexOption(
            "fresh_clauses",
            (int,),
            1024,
            "clauses that are gathered before they are built into a part",
            minimum=1,
        ),
    ),
    "counting_bits": (_MATRIX_BYTES, _PREDICATES),
    "counting_bytes": (_MATRIX_BYTES, _PREDICATES),
    "counting_lists": (_PREDICATES,),
    "gryphon": (IndexOption("rare_first", (bool,), True, "test rare dimensions first"),),
    "k_index": (_MAX_POSTINGS,),
    "op_index": (_SEGMENTS,),
    "op_index_cnf": (_SEGMENTS,),
    "hem": (
        _BUCKETS,
        IndexOption(
            "cells", (int,), 16, "cells of an attribute, with bits of their own", minimum=1
        ),
        IndexOption("bits_bytes", (int,), 4 << 30, "memory of the bits, at most", minimum=1),
    ),
    "rein": (_BUCKETS,),
    "propagation": (
        IndexOption("equality_only", (bool,), False, "cluster by equality predicates alone"),
    ),
    "pst_bloom": (
        IndexOption(
            "signatures",
            (str,),
            "two",
            "ask the signatures of two predicates of a clause before it is read, or of all",
            choices=("two", "all"),
        ),
        IndexOption(
            "signature_bits",
            (int, NoneType),
            1 << 17,
            "the most bits of a signature, rounded down to a power of two; None: no limit",
            minimum=64,
        ),
        _AHEAD,
    ),
    "pst_hash": (
        IndexOption("n_access", (int,), 2, "access predicates of a clause", minimum=1),
        _AHEAD,
    ),
    "sift": (_MAX_POSTINGS,),
    "sql_grouped": _SQL,
    "sql_pivot": _SQL,
    "sql_sequential": _SQL,
}
