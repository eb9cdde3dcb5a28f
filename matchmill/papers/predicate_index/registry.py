"""All predicate indexes by name.

A class is imported when it is asked for, so that those not used cost nothing.
"""

from __future__ import annotations

from importlib import import_module

from matchmill.errors import InputError
from matchmill.papers.predicate_index.base import PredicateIndex

__all__ = ["PREDICATE_INDEXES", "predicate_index_class"]

PREDICATE_INDEXES: dict[str, str] = {
    "scan": "predicate_index.scan:PredicateScan",
    "interval_tree": "predicate_index.interval_tree:IntervalTree",
    "segment_tree": "predicate_index.segment_tree:SegmentTree",
    "ps_tree": "ps_tree.predicate_tree:PSTree",
    "ordered_list": "two_stage.ordered_list:OrderedList",
    "domain_table": "two_stage.domain_table:DomainTable",
    "linked_list": "two_stage.linked_list:LinkedList",
    "ranked_table": "two_stage.ranked_table:RankedTable",
}


def predicate_index_class(name: str) -> type[PredicateIndex]:
    """Return the class of a predicate index, by its name."""
    if name not in PREDICATE_INDEXES:
        raise InputError(
            f"unknown predicate index {name!r}; there are: {', '.join(sorted(PREDICATE_INDEXES))}"
        )
    module, _, class_name = PREDICATE_INDEXES[name].partition(":")
    found: type[PredicateIndex] = getattr(import_module(f"matchmill.papers.{module}"), class_name)
    return found
