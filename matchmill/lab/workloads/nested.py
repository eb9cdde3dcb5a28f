"""Expressions that are no plain conjunctions, as texts, with events as dicts.

    cnf3 … cnf6    (a or b or c) and (…) and (…): conjunctions of 3 to 6 disjunctions of 3 to 6
    deep           trees of and, or, not, 3 to 5 levels high; all conditions drawn apart
    deep_shared    the same, but parts are drawn from 1,000 common ones, as advertisers' segments
    or_among       one disjunction of 100 conditions, all others are plain alerts
    cnf_among      one conjunction of 5 disjunctions of 3, all others are plain alerts
    plain          the plain alerts alone: 2 to 4 conditions, one of them an equality

Conditions compare 40 whole numbers, n0 to n39 with 0 to 999, and 10 texts, k0 to k9, with one of
50 values each. An event has them all. A workload of a seed is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from matchmill.errors import InputError, did_you_mean, shown

__all__ = ["NESTED", "NestedWorkload", "nested", "nested_events"]

_N_NUMBERS, _N_TEXTS = 40, 10
_TOP, _KINDS = 1000, 50
_N_COMMON = 1000
_N_AMONG = 100  # conditions of the one disjunction

Event = dict[str, int | str]


class NestedWorkload(NamedTuple):
    """Expressions, the events to measure with, and others to learn from."""

    expressions: list[str]
    events: list[Event]
    training: list[Event]


def nested(name: str, n_subscriptions: int, n_events: int, seed: int = 1) -> NestedWorkload:
    """Return a workload by its name."""
    if name not in NESTED:
        hint = did_you_mean(name, NESTED)
        raise InputError(f"no workload {shown(name)}; there are: {', '.join(NESTED)}{hint}")
    draw = Random(f"{name} {seed}")
    expressions = NESTED[name](draw, n_subscriptions)
    return NestedWorkload(expressions, nested_events(n_events, seed), nested_events(512, -1 - seed))


def nested_events(n: int, seed: int = 1) -> list[Event]:
    """Return events that all of these workloads take."""
    draw = Random(f"events {seed}")
    return [
        {f"n{i}": draw.randrange(_TOP) for i in range(_N_NUMBERS)}
        | {f"k{i}": f"v{draw.randrange(_KINDS)}" for i in range(_N_TEXTS)}
        for _ in range(n)
    ]


# -- conditions -----------------------------------------------------------------------------------


def _condition(draw: Random, likely: float) -> str:
    """Return a condition that holds for about that share of the events."""
    if draw.random() < 0.2:
        name, n = f"k{draw.randrange(_N_TEXTS)}", max(1, round(likely * _KINDS))
        values = ", ".join(f"'v{v}'" for v in draw.sample(range(_KINDS), n))
        return f"{name} in ({values})"
    name, share = f"n{draw.randrange(_N_NUMBERS)}", likely * (0.5 + draw.random())
    kind = draw.randrange(3)
    if kind == 0:
        return f"{name} < {max(1, round(share * _TOP))}"
    if kind == 1:
        return f"{name} >= {min(_TOP - 1, round((1 - share) * _TOP))}"
    width = max(1, round(share * _TOP))
    low = draw.randrange(max(1, _TOP - width))
    return f"{name} between {low} and {low + width - 1}"


def _any(draw: Random, n: int, likely: float) -> str:
    return "(" + " or ".join(_condition(draw, likely / n) for _ in range(n)) + ")"


def _plain(draw: Random) -> str:
    first = f"k{draw.randrange(_N_TEXTS)} = 'v{draw.randrange(_KINDS)}'"
    others = [_condition(draw, 0.3) for _ in range(draw.randint(1, 3))]
    return " and ".join([first, *others])


# -- expressions ----------------------------------------------------------------------------------


def _product(size: int) -> Callable[[Random, int], list[str]]:
    likely = 0.01 ** (1 / size)  # of each disjunction, so that about 1 % of all hold

    def expressions(draw: Random, n: int) -> list[str]:
        return [" and ".join(_any(draw, size, likely) for _ in range(size)) for _ in range(n)]

    return expressions


def _tree(draw: Random, levels: int, likely: float, leaf: Callable[[float], str]) -> str:
    if levels == 0 or (levels < 3 and draw.random() < 0.2):
        return leaf(likely)
    n = draw.randint(2, 3)
    if draw.random() < 0.15:
        return f"not ({_tree(draw, levels - 1, 1 - likely, leaf)})"
    if draw.random() < 0.5:
        parts = [_tree(draw, levels - 1, likely ** (1 / n), leaf) for _ in range(n)]
        return "(" + " and ".join(parts) + ")"
    parts = [_tree(draw, levels - 1, 1 - (1 - likely) ** (1 / n), leaf) for _ in range(n)]
    return "(" + " or ".join(parts) + ")"


def _deep(draw: Random, n: int) -> list[str]:
    def leaf(likely: float) -> str:
        return _condition(draw, likely)

    return [_tree(draw, draw.randint(3, 5), 0.02, leaf) for _ in range(n)]


def _deep_shared(draw: Random, n: int) -> list[str]:
    def leaf(likely: float) -> str:
        return _condition(draw, likely)

    common = [_tree(draw, 2, 0.3, leaf) for _ in range(_N_COMMON)]
    own = [_tree(draw, 1, 0.1, leaf) for _ in range(n)]
    return [
        " and ".join([part, *(f"({draw.choice(common)})" for _ in range(draw.randint(1, 3)))])
        for part in own
    ]


def _plain_ones(draw: Random, n: int) -> list[str]:
    return [_plain(draw) for _ in range(n)]


def _or_among(draw: Random, n: int) -> list[str]:
    wide = " or ".join(_condition(draw, 0.004) for _ in range(_N_AMONG))
    return [*_plain_ones(draw, n - 1), wide][-n:]


def _cnf_among(draw: Random, n: int) -> list[str]:
    product = " and ".join(_any(draw, 3, 0.4) for _ in range(5))
    return [*_plain_ones(draw, n - 1), product][-n:]


NESTED: dict[str, Callable[[Random, int], list[str]]] = {
    **{f"cnf{size}": _product(size) for size in (3, 4, 5, 6)},
    "deep": _deep,
    "deep_shared": _deep_shared,
    "or_among": _or_among,
    "cnf_among": _cnf_among,
    "plain": _plain_ones,
}
