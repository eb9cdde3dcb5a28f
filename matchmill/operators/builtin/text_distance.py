"""Words that are nearly right: edit and Hamming distance on the words of a text.

    within_edits('title', 'colour', 1)        a word at most one edit from it: color, colours
    edit_distance('title', 'colour', ?d)      binds the distance of the nearest word
    within_hamming, hamming_distance          the same for words of the same length, counting places
                                              that differ

An edit is a character inserted, deleted or replaced (Levenshtein). Words are runs of letters and
digits, compared in lower case. The first argument is the attribute; a list of texts is one text. A
text without (such) words has no nearest one: false. An event without a text there: unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from matchmill.language.values import fold_case
from matchmill.operators.registry import Variable, operator

__all__ = [
    "edit_distance",
    "edits",
    "hamming",
    "hamming_distance",
    "within_edits",
    "within_hamming",
]

_WORD = re.compile(r"[^\W_]+")


def edits(a: str, b: str, most: int) -> int:
    """Count the edits between two words; `most` + 1 if there are more."""
    if abs(len(a) - len(b)) > most:
        return most + 1
    row = list(range(len(b) + 1))
    for i, c in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, d in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (c != d))
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def hamming(a: str, b: str, most: int) -> int:
    """Count the positions that differ; `most` + 1 if there are more, or if lengths differ."""
    if len(a) != len(b):
        return most + 1
    return min(sum(c != d for c, d in zip(a, b, strict=True)), most + 1)


_Distance = Callable[[str, str, int], int]


def _words(event: Mapping[str, Any], name: str) -> set[str] | None:
    found = event.get(name)
    texts: Iterable[Any] = found if isinstance(found, tuple) else (found,)
    known = [text for text in texts if isinstance(text, str)]
    if not known:
        return None
    return {word for text in known for word in _WORD.findall(fold_case(text))}


def _nearest(words: Iterable[str], wanted: str, most: int, distance: _Distance) -> int:
    """Return the distance of the nearest word, or `most` + 1."""
    best = most + 1
    for word in words:
        if best == 0:
            break
        best = min(best, distance(word, wanted, best - 1))
    return best


def _within(
    event: Mapping[str, Any], name: str, word: str, most: int, distance: _Distance
) -> bool | None:
    words = _words(event, name)
    return None if words is None else _nearest(words, fold_case(word), most, distance) <= most


def _bound(
    event: Mapping[str, Any], name: str, word: str, free: object, distance: _Distance
) -> Any:
    if not isinstance(free, Variable):
        raise TypeError("this operator binds a distance: write ?d there, or use within_…")
    words = _words(event, name)
    if words is None:
        return None
    most = max([len(word), *map(len, words)])
    nearest = _nearest(words, fold_case(word), most, distance)
    return [nearest] if nearest <= most else []


@operator(cost_ms=0.05)
def within_edits(event: Mapping[str, Any], name: str, word: str, most: int) -> bool | None:
    """Tell whether a word of the text is at most so many edits away."""
    return _within(event, name, word, most, edits)


@operator(cost_ms=0.1)
def edit_distance(event: Mapping[str, Any], name: str, word: str, distance: Variable) -> Any:
    """Bind the edit distance of the nearest word."""
    return _bound(event, name, word, distance, edits)


@operator(cost_ms=0.02)
def within_hamming(event: Mapping[str, Any], name: str, word: str, most: int) -> bool | None:
    """Tell whether a word of the same length differs in at most so many positions."""
    return _within(event, name, word, most, hamming)


@operator(cost_ms=0.02)
def hamming_distance(event: Mapping[str, Any], name: str, word: str, distance: Variable) -> Any:
    """Bind the Hamming distance of the nearest word."""
    return _bound(event, name, word, distance, hamming)
