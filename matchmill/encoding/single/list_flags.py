"""The flags of one list: the predicates that some element satisfies, or that none does.

    element  ──memo──►  the predicates it satisfies
    list     ──►        the union over its elements ──►  (dimension, TRUE) pairs as bytes

Elements repeat from list to list (tags, roles, codes), so the predicates of an element are cached.
New elements are looked up together, as a batch.
"""

from __future__ import annotations

import datetime as dt
import sys
from typing import Any

import numpy as np

from matchmill.encoding.dimensions import TRUE_KEY, AttributePlan
from matchmill.encoding.event_encoder import encode_events, matcher_of
from matchmill.encoding.events.dicts import DictEvents
from matchmill.encoding.pattern_work import list_instructions
from matchmill.encoding.single.value_readers import Awkward, longest_text
from matchmill.language.normal_form import ELEMENT_DERIVATIONS
from matchmill.settings import UNLIMITED

__all__ = ["ListFlags"]

_MOST_KEPT = 4096
_LONGEST_KEPT = 64
# Not timestamps: those of one zone compare equal in the hour that is repeated when summer ends.
_KEPT_KINDS = frozenset((str, int, float, bool, dt.date))


class ListFlags:
    """All predicates on the elements of one attribute at the time of creation."""

    def __init__(self, attribute: str, plan: AttributePlan, most_work: int) -> None:
        derivations = sorted(ELEMENT_DERIVATIONS.intersection(plan.patterns))
        self._longest = longest_text(list_instructions(plan), most_work)
        self._flags = [_Flags(attribute, plan, derivation) for derivation in derivations]

    def record(self, elements: list[Any]) -> bytes:
        """Return the pairs of a list of checked values."""
        if self._longest < sys.maxsize:
            texts = (element for element in elements if type(element) is str)
            if sum(map(len, texts)) > self._longest:
                raise Awkward
        return b"".join([flags.record(elements) for flags in self._flags])


class _Flags:
    """The predicates of one derivation."""

    def __init__(self, attribute: str, plan: AttributePlan, derivation: str) -> None:
        self._attribute = attribute
        self._wants_hits = derivation == "any"
        self._matcher, dimension_ids = matcher_of(plan, derivation)
        self._pairs = np.full((len(dimension_ids), 2), TRUE_KEY, np.int64)
        self._pairs[:, 0] = dimension_ids
        self._memo: dict[tuple[type, Any], list[int]] = {}

    def record(self, elements: list[Any]) -> bytes:
        is_hit = np.zeros(len(self._pairs), bool)
        new = []
        for element in elements:
            # Objects may have no hash, or one that is theirs.
            is_kept = type(element) in _KEPT_KINDS
            known = self._memo.get((type(element), element)) if is_kept else None
            if known is None:
                new.append(element)
            else:
                is_hit[known] = True
        for predicates in self._look_up(new) if new else ():
            is_hit[predicates] = True
        pairs: bytes = self._pairs[is_hit == self._wants_hits].tobytes()
        return pairs

    def _look_up(self, elements: list[Any]) -> list[list[int]]:
        """Return the predicates of each element."""
        events = DictEvents([{self._attribute: [element]} for element in elements], UNLIMITED)
        (column,) = events.columns().columns
        found: list[list[int]] = [[] for _ in elements]
        for event, predicate in self._matcher.find(column, encode_events).tolist():
            found[event].append(predicate)
        if len(self._memo) + len(elements) > _MOST_KEPT:
            self._memo = {}
        for element, predicates in zip(elements, found, strict=True):
            is_long = type(element) is str and len(element) > _LONGEST_KEPT
            if type(element) in _KEPT_KINDS and not is_long:
                self._memo[type(element), element] = predicates
        return found
