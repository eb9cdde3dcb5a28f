"""All structures for the predicates of one dimension, by name.

A class is imported when it is asked for, so that nobody waits for structures that are not used.
"""

from __future__ import annotations

from importlib import import_module

from matchmill.errors import InputError
from matchmill.papers.predicate_index.base import PredicateStructure

__all__ = ["STRUCTURES", "structure_class"]

STRUCTURES: dict[str, str] = {
    "scan": "predicate_index.scan:PredicateScan",
    "interval_tree": "predicate_index.interval_tree:IntervalTree",
    "segment_tree": "predicate_index.segment_tree:SegmentTree",
    "ps_tree": "ps_tree.predicate_tree:PSTree",
    "ordered_list": "two_stage.ordered_list:OrderedList",
    "domain_table": "two_stage.domain_table:DomainTable",
}


def structure_class(name: str) -> type[PredicateStructure]:
    """The class of a structure, by its name."""
    if name not in STRUCTURES:
        raise InputError(f"unknown structure {name!r}; there are: {', '.join(sorted(STRUCTURES))}")
    module, _, class_name = STRUCTURES[name].partition(":")
    found: type[PredicateStructure] = getattr(
        import_module(f"matchmill.papers.{module}"), class_name
    )
    return found
