"""Generated patterns of EventBridge, and events: few names and values, so that they meet."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.support.event_ruler import holds, rules_of

TEXTS = [
    "",
    "a",
    "A",
    "ab",
    "aB",
    "b",
    "ki",
    "KI",
    "K\u0130",
    "\u212aI",
    "a*b",
    "a%b",
    "\\",
    "ß",
    "SS",
    "ς",
    "Σ",
]
TEXTS += ["null", "true", "5", "10.0.0.1", "10.0.0.9", "10.0.1.1", "::1", "0:0:0:0:0:0:0:1"]
NUMBERS: list[int | float] = [0, 1, 5, 5.0, -1, 0.5, 2.25, 300, 3e2, 5e9, -5e9, 12345678901, 1e300]
NUMBERS += [
    2**53,
    2**53 + 1,
    2**53 + 2,
    2**53 - 1,
    9.007199254740993e15,
    2**63 - 1,
    2.0**63,
    -(2**63),
]
NAMES = ["a", "b", "c", "d"]
NETWORKS = [
    "10.0.0.0/8",
    "10.0.0.7/24",
    "10.0.0.1/31",
    "0.0.0.0/0",
    "::/0",
    "::1/127",
    "10.0.0.8/30",
]
WILDCARDS = ["*", "a*", "*b", "a*b", "a\\*b", "*\\\\", "", "k*", "*a*b*"]


class Cases:
    """A stream of patterns and events that depends on the seed alone."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def _few(self, values: list[Any], most: int = 3) -> list[Any]:
        return [self._random.choice(values) for _ in range(self._random.randint(1, most))]

    # -- events

    def event(self) -> dict[str, Any]:
        return self._object(0)

    def _object(self, depth: int) -> dict[str, Any]:
        names = self._random.sample(NAMES, self._random.randint(0 if depth else 1, 3))
        return {name: self._value(depth + 1) for name in names}

    def _value(self, depth: int) -> Any:
        kind = self._random.random()
        if depth < 4 and kind < 0.2:
            return self._object(depth)
        if depth < 4 and kind < 0.45:
            n = self._random.randint(0, 3)
            if self._random.random() < 0.8:
                return [self._object(depth) for _ in range(n)]
            return [self._value(depth + 1) for _ in range(n)]
        if kind < 0.55:
            return [self._scalar() for _ in range(self._random.randint(0, 3))]
        return self._scalar()

    def _scalar(self) -> Any:
        kind = self._random.random()
        if kind < 0.15:
            return None
        if kind < 0.3:
            return self._random.random() < 0.5
        return self._random.choice(NUMBERS if kind < 0.55 else TEXTS)

    def event_near(self, pattern: str) -> dict[str, Any]:
        """An event with the fields of a pattern, most of whose values match, often in arrays."""
        event = self._object(2) if self._random.random() < 0.3 else {}
        rule = self._random.choice(rules_of(pattern))
        is_careless = self._random.random() < 0.3
        for name, alternatives in rule.items():
            if self._random.random() < 0.05:
                continue
            drawn = [self._scalar() for _ in range(1 if is_careless else 12)]
            fitting = [v for v in drawn if any(holds(one, v) for one in alternatives)]
            if fitting or is_careless:
                self._put(event, name.split("."), self._random.choice(fitting or drawn))
        return event

    def _put(self, node: dict[str, Any], path: list[str], value: Any) -> None:
        r = self._random
        name, below = path[0], path[1:]
        known = node.get(name)
        if not below:
            is_list = r.random() < 0.2
            node[name] = [self._scalar(), value] if is_list else value
        elif isinstance(known, list) and known and isinstance(known[-1], dict):
            if r.random() < 0.3:
                known.append({})
            self._put(r.choice([one for one in known if isinstance(one, dict)]), below, value)
        elif isinstance(known, dict):
            self._put(known, below, value)
        else:
            inner: dict[str, Any] = {}
            node[name] = [inner] if r.random() < 0.5 else inner
            self._put(inner, below, value)

    # -- patterns

    def pattern(self) -> str:
        return self._fields(0, False)

    def _fields(self, depth: int, in_or: bool) -> str:
        r = self._random
        parts = []
        for _ in range(r.randint(1, 3)):
            name = json.dumps(r.choice(NAMES))
            kind = r.random()
            if depth < 2 and kind < 0.35:
                parts.append(f"{name}: {self._fields(depth + 1, in_or)}")
            elif depth < 2 and kind < 0.45:
                branches = (self._fields(depth + 1, True) for _ in range(r.randint(2, 3)))
                parts.append(f'"$or": [{", ".join(branches)}]')
            else:
                if r.random() < 0.1:
                    name = json.dumps(f"{r.choice(NAMES)}.{r.choice(NAMES)}")
                alternatives = [self._alternative() for _ in range(r.choice((1, 1, 1, 2, 3)))]
                parts.append(f"{name}: {json.dumps(alternatives)}")
        return "{" + ", ".join(parts) + "}"

    def _alternative(self) -> Any:
        r = self._random
        kind = r.choice(
            ("value", "value", "exists", "part", "case", "wild", "number", "cidr", "but")
        )
        if kind == "value":
            return self._scalar()
        if kind == "exists":
            return {"exists": r.random() < 0.5}
        if kind == "part":
            text = r.choice(TEXTS)
            if r.random() < 0.4:
                return {r.choice(("prefix", "suffix")): {"equals-ignore-case": text}}
            return {r.choice(("prefix", "suffix", "exactly")): text}
        if kind == "case":
            return {"equals-ignore-case": r.choice(TEXTS)}
        if kind == "wild":
            return {"wildcard": r.choice(WILDCARDS)}
        if kind == "number":
            if r.random() < 0.5:
                return {"numeric": [r.choice(("=", "<", "<=", ">", ">=")), r.choice(NUMBERS)]}
            low, high = sorted(r.sample(NUMBERS, 2))
            if float(low) == float(high):
                return {"numeric": [">=", low]}
            return {"numeric": [r.choice((">", ">=")), low, r.choice(("<", "<=")), high]}
        if kind == "cidr":
            return {"cidr": r.choice(NETWORKS)}
        return {"anything-but": self._excluded()}

    def _excluded(self) -> Any:
        r = self._random
        kind = r.choice(("text", "number", "prefix", "suffix", "wildcard", "equals-ignore-case"))
        if kind == "number":
            return r.choice((r.choice(NUMBERS), self._few(NUMBERS)))
        values = WILDCARDS if kind == "wildcard" else TEXTS[1:]
        argument = r.choice((r.choice(values), self._few(values)))
        return argument if kind == "text" else {kind: argument}
