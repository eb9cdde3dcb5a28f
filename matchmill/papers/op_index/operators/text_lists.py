"""Predicate lists of three operators on texts: prefixes, suffixes, regular expressions.

    PrefixList    a trie; the root has a branch for each attribute, so that a path is the paper's
                  "attribute # prefix" letter by letter
    SuffixList    a PrefixList of texts turned round
    RegexList     of each attribute all expressions, found in one pass over a text (`re2.Set`)

    trie of        name: 7 "ab", 8 "a", 9 "abc"         code: 4 ""
    match name "abd"    root → name → a (8) → b (7) → no d

A regular expression may fit anywhere in the text, as `rlike`. Expressions of an attribute are
compiled together when it is next asked for, so that changes that come together cost once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from matchmill.encoding.text_patterns import RegexIndex
from matchmill.errors import InputError, shown
from matchmill.language.patterns import compile_regex

__all__ = ["PrefixList", "RegexList", "SuffixList"]


def _text(operand: Any) -> str:
    if not isinstance(operand, str):
        raise InputError(f"the operand of an operator on texts is a text, not {shown(operand)}")
    return operand


class _Node:
    __slots__ = ("children", "predicates")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.predicates: list[int] = []


class PrefixList:
    """`attribute` begins with the operand."""

    def __init__(self) -> None:
        self._root = _Node()

    def insert(self, predicate: int, attribute: str, operand: Any) -> None:
        """Add a predicate."""
        node = self._root
        for step in (attribute, *_text(operand)):
            node = node.children.setdefault(step, _Node())
        node.predicates.append(predicate)

    def delete(self, predicate: int, attribute: str, operand: Any) -> None:
        """Remove a predicate, and the nodes that nothing is left below."""
        path = [self._root]
        steps = (attribute, *_text(operand))
        for step in steps:
            path.append(path[-1].children[step])
        path[-1].predicates.remove(predicate)
        for above, step in zip(reversed(path[:-1]), reversed(steps), strict=True):
            node = above.children[step]
            if node.children or node.predicates:
                break
            del above.children[step]

    def match(self, attribute: str, value: Any) -> Iterator[int]:
        """Yield the predicates whose operand is a prefix of a text."""
        if not isinstance(value, str):
            return
        node = self._root.children.get(attribute)
        for letter in (*value, None):
            if node is None:
                return
            yield from node.predicates
            node = node.children.get(letter) if letter is not None else None


class SuffixList:
    """`attribute` ends with the operand."""

    def __init__(self) -> None:
        self._reversed = PrefixList()

    def insert(self, predicate: int, attribute: str, operand: Any) -> None:
        """Add a predicate."""
        self._reversed.insert(predicate, attribute, _text(operand)[::-1])

    def delete(self, predicate: int, attribute: str, operand: Any) -> None:
        """Remove a predicate."""
        self._reversed.delete(predicate, attribute, _text(operand)[::-1])

    def match(self, attribute: str, value: Any) -> Iterable[int]:
        """Return the predicates whose operand is a suffix of a text."""
        return self._reversed.match(attribute, value[::-1]) if isinstance(value, str) else ()


class RegexList:
    """A regular expression of RE2 fits somewhere in `attribute`."""

    def __init__(self) -> None:
        self._predicates: dict[str, dict[str, list[int]]] = {}  # attribute → expression → …
        self._compiled: dict[str, tuple[list[str], RegexIndex]] = {}

    def insert(self, predicate: int, attribute: str, operand: Any) -> None:
        """Add a predicate."""
        compile_regex(_text(operand))
        known = self._predicates.setdefault(attribute, {})
        if operand not in known:
            self._compiled.pop(attribute, None)
        known.setdefault(operand, []).append(predicate)

    def delete(self, predicate: int, attribute: str, operand: Any) -> None:
        """Remove a predicate."""
        known = self._predicates[attribute]
        known[operand].remove(predicate)
        if not known[operand]:
            del known[operand]
            self._compiled.pop(attribute, None)
        if not known:
            del self._predicates[attribute]

    def match(self, attribute: str, value: Any) -> Iterator[int]:
        """Yield the predicates whose expression fits somewhere in a text."""
        known = self._predicates.get(attribute)
        if known is None or not isinstance(value, str):
            return
        if attribute not in self._compiled:
            expressions = list(known)
            self._compiled[attribute] = expressions, RegexIndex(expressions)
        expressions, compiled = self._compiled[attribute]
        for n in compiled.patterns_of(value):
            yield from known[expressions[n]]
