"""The attributes that expressions ask for: at all others of an event nobody looks.

    expressions    geo.lat < 41 and price < 20
    attributes     geo.lat, price
    roots          geo                    before the first dot
    heads          geo.lat, price, geo, geo.x, …

A *head* is a name in an event that can hold an attribute: the attribute itself, or what begins with
the same root, because it may be an object. What an event has under other names costs no more than a
look-up of the name. If an event has far more names than there are attributes, and none of these has
a dot, not even that: the attributes are looked up in the event.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeAlias

from matchmill.encoding.dimensions import Dimensions
from matchmill.language.flatten import Pairs

__all__ = ["FEW_OF", "Asked", "Wanted"]

_FEW = 256  # attributes; from there on, listing them takes longer than an event
_MOST_KNOWN = 100_000
FEW_OF = 2  # times as many names in an event make attributes few


class Asked:
    """What the expressions of some dimensions ask for, at this moment at least."""

    def __init__(self, *dimensions: Dimensions, names: Iterable[str] = ()) -> None:
        """Take all attributes of some dimensions, and some others by name."""
        parts: list[tuple[Collection[str], Collection[str]]] = [
            (each.plans, each.roots) for each in dimensions
        ]
        others = frozenset(names)
        if others:
            parts.append((others, {root for root, dot, _ in map(_split, others) if dot}))
        self._parts = parts
        self._heads = _Heads(self)

    def __call__(self, name: str) -> bool:
        """Whether this is the name of an attribute that is asked for."""
        return any(name in attributes for attributes, _ in self._parts)

    def is_head(self, name: object) -> bool:
        """Whether an event can have what is asked for under this name."""
        if any(name in attributes for attributes, _ in self._parts):
            return True
        if not isinstance(name, str):
            return False
        root = _split(name)[0]
        return any(root in roots for _, roots in self._parts)

    def heads_if_few(self, n_names: int) -> list[str] | None:
        """Return all heads, if they are few for an event with so many names, and known."""
        n_heads = sum(len(attributes) for attributes, _ in self._parts)
        if n_heads > _FEW or n_heads * FEW_OF > n_names:
            return None
        if any(roots for _, roots in self._parts):
            return None
        return list(dict.fromkeys(name for names, _ in self._parts for name in list(names)))

    def part_of(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the part of an event that has all that is asked for."""
        heads = self._heads
        pairs = [(name, value) for name, value in event.items() if heads[name]]
        return dict(pairs) if type(event) is dict else Pairs(pairs)


def _split(name: str) -> tuple[str, str, str]:
    return name.partition(".")


class _Heads(dict[Any, bool]):
    """Whether a name is a head, once somebody has asked."""

    def __init__(self, asked: Asked) -> None:
        super().__init__()
        self._asked = asked

    def __missing__(self, name: object) -> bool:
        if len(self) >= _MOST_KNOWN:  # there is no end of the names that nobody asks for
            self.clear()
        is_head = self[name] = self._asked.is_head(name)
        return is_head


Wanted: TypeAlias = Asked | Callable[[str], bool] | None
"""The attributes of interest: those that are asked for, those that a function says, or all."""
