"""JSON patterns for bulk loads: plain, odd, damaged; as objects and as text."""

from __future__ import annotations

import json
from random import Random
from typing import Any

__all__ = ["odd_pattern"]

_NAMES = ("a", "b", "c", "state", "größe", "a b", "in", "a.b", 'q"q', "x'", "Date", "prefix", "_1")
_ODD_NAMES = ("", "$or", "numeric", "exists", "\ud800", "a\n", "$", "$of", "\u212a")
_TEXTS = (
    *("x", "y", "", "running", "stop", "it's", "50%", "a_b", "back\\slash", "Zürich", "ĸK", "KIk"),
    *(
        "\U0001f600",
        "a\tb",
        "null",
        "10.0.0.1",
        "::1",
        "dead.beef",
        "fe80::1%a",
        "1.2",
        "\x7f",
        "~",
    ),
    *("ab", "abc", "ba", "ÿ", "\ud7ff", "\U0010ffff", "/", "a/b", "?x", "'", '"', "\u2028", "AB"),
)
_NUMBERS = (
    *(0, 1, -1, 5, 5.0, 0.5, -0.0, 2.5, 1e300, -1e300, 5e-324, 0.1, 1e16, 1e15, 123456.789, 2**52),
    *(2**53, 2**53 + 1, 2.0**53, -(2**53) - 1, 2**63 - 1, -(2**63), 2**63, 2.0**63, -(2.0**63)),
    *(4.999999999999999, 1e-5, 1e22, 2**31, -(2**31), 2**30, 2**45 + 1, 2**60, 2**61 + 7, 1.5e17),
)
_OPERATORS = ("<", "<=", ">", ">=", "=")
_TYPES = ("prefix", "suffix", "equals-ignore-case", "anything-but", "numeric", "exists", "exactly")
_RARE_TYPES = ("wildcard", "cidr", "regexp", "Prefix", "x")


class _Patterns:
    def __init__(self, rng: Random, oddness: float) -> None:
        self._rng = rng
        self._oddness = oddness

    def _is_odd(self) -> bool:
        return self._rng.random() < self._oddness

    def _name(self) -> str:
        return self._rng.choice(_ODD_NAMES if self._is_odd() else _NAMES)

    def _text(self) -> str:
        rng = self._rng
        kind = rng.random()
        if kind < 0.4:
            return rng.choice("abcdefgh") * rng.randint(1, 2)
        return rng.choice(_TEXTS) if kind < 0.9 else rng.choice(_TEXTS) + rng.choice(_TEXTS)

    def _number(self) -> Any:
        rng = self._rng
        kind = rng.random()
        if kind < 0.4:
            return rng.randint(-20, 20)
        if kind < 0.6:
            return rng.choice((rng.random(), rng.uniform(-1e6, 1e6), rng.randint(-80, 80) / 4))
        return rng.choice(_NUMBERS)

    def _scalar(self) -> Any:
        rng = self._rng
        kind = rng.random()
        if self._is_odd():
            return rng.choice((float("nan"), float("inf"), [1], 10**30, "\ud800", {}, (1,)))
        if kind < 0.6:
            return self._text()
        return self._number() if kind < 0.9 else rng.random() < 0.5

    def _numeric(self) -> Any:
        rng = self._rng
        if self._is_odd():
            return rng.choice(([">"], ["!=", 5], [">", "5"], [">", True], 5, ["<", 1, ">", 0], []))
        if rng.random() < 0.5:
            return [rng.choice(_OPERATORS), self._number()]
        low, high = self._number(), self._number()
        if rng.random() < 0.8:
            low, high = min(low, high), max(low, high)
        return [rng.choice((">", ">=")), low, rng.choice(("<", "<=")), high]

    def _type(self) -> dict[str, Any]:
        rng = self._rng
        kind = rng.choice(_RARE_TYPES if self._is_odd() else _TYPES)
        argument: Any = self._text()
        if kind == "numeric":
            argument = self._numeric()
        elif kind == "exists":
            argument = rng.random() < 0.5
        elif kind == "anything-but":
            make = rng.choice((self._text, self._number, self._scalar))
            argument = make() if rng.random() < 0.4 else [make() for _ in range(rng.randint(1, 4))]
            if rng.random() < 0.1:
                argument = {"prefix": argument}
        elif kind in ("prefix", "suffix") and rng.random() < 0.3:
            argument = {"equals-ignore-case": argument}
        if self._is_odd():
            argument = rng.choice((None, 5, [], ["x"], {}, {"a": 1}, [["x"]]))
        return {kind: argument} if not self._is_odd() else {kind: argument, "prefix": "x"}

    def _alternative(self) -> Any:
        kind = self._rng.random()
        if kind < 0.05:
            return None
        return self._scalar() if kind < 0.6 else self._type()

    def _field(self) -> Any:
        rng = self._rng
        if self._is_odd():
            return rng.choice((5, "x", None, [], {}, True))
        n = rng.choice((1, 1, 1, 2, 2, 3, 5)) if rng.random() < 0.95 else 40
        return [self._alternative() for _ in range(n)]

    def fields(self, depth: int) -> dict[str, Any]:
        rng = self._rng
        pattern: dict[str, Any] = {}
        for _ in range(rng.choice((1, 1, 2, 2, 3, 4))):
            if depth < 6 and rng.random() < (0.6 if self._is_odd() else 0.2):
                pattern[self._name()] = self.fields(depth + 1)
            else:
                pattern[self._name()] = self._field()
        if self._is_odd():
            pattern["$or"] = [self.fields(depth + 1), {"z": [1]}]
        return pattern


def odd_pattern(rng: Random, oddness: float = 0.02) -> Any:
    """Return a pattern: an object, or JSON, which may be damaged."""
    pattern = _Patterns(rng, oddness).fields(0)
    if rng.random() < 0.5:
        return pattern
    text = json.dumps(
        pattern,
        ensure_ascii=rng.random() < 0.5,
        indent=rng.choice((None, None, 1)),
        separators=rng.choice((None, (",", ":"), (" , ", " : "))),
    )
    if rng.random() < 4 * oddness:
        at = rng.randrange(len(text))
        kind = rng.randrange(3)
        inserted = rng.choice('{}[]",:\\ 0-e.n\t\x01') if kind else ""
        text = text[:at] + inserted + text[at + (kind < 2) :]
    if rng.random() < oddness:  # a name twice
        text = text.replace("}", f', "{rng.choice(_NAMES[:3])}": [1]}}', 1)
    return text if rng.random() > oddness else rng.choice((" ", "\n", "\ufeff", "\u00a0")) + text
