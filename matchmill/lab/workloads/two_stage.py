"""The workloads of the two-stage paper: predicates over domains of different size.

    w0 small    w1 medium    w2 big    w3 a third of the attributes from each
    subscriptions    conjunctions over a few attributes of few values

W0 … W3 (section 5.1.1) measure the first stage alone, in which all predicates that hold are found.
Here they are subscriptions of one predicate each, so that the match is the set of predicates that
hold, and every index can run them. Predicates differ from one another, for the paper stores equal
ones once; their number is therefore limited. The subscription workload is that of section 5.1.2.

Operators are `=`, `!=`, `<` and `>` (sections 3.2 and 4.1), equally frequent; values are uniform
(section 5.1). A `<` on the least value and a `>` on the greatest can never hold and are not drawn.

The copy of the paper at hand shows none of the numbers in section 5. What we take instead:

- Subscription workload: 10 attributes of 10 values. Section 5.1.2 gives 248 MB for the bit matrix
  of 5 million subscriptions, so there were about 400 different predicates, and 10 attributes × 10
  values × 4 operators are just that. Five predicates per subscription are our choice.
- W0 … W2: 100 attributes, values from 1 to 100, from 1,000 to 10,000 and from 100,000 to
  1,000,000. That fits the lengths of the unreadable numbers and the remark that W0 alone runs out
  of different predicates; it is a guess all the same, and n_attributes, lowest and highest change
  it.
- An event has a value for each attribute; event_size changes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from matchmill.errors import InputError
from matchmill.kernels.csr import offsets_of
from matchmill.lab.workloads.flat import FlatEvents, FlatSubscriptions, Workload
from matchmill.lab.workloads.parameters import choice_of, ranged, read_record
from matchmill.lab.workloads.sampling import distinct_per_group
from matchmill.lab.workloads.spec import WorkloadSpec

__all__ = ["WORKLOADS", "RangeDomain", "two_stage"]

EQUAL, NOT_EQUAL, LESS, GREATER = range(4)


class _Setting(NamedTuple):
    n_attributes: int
    bounds: tuple[tuple[int, int], ...]  # attribute a takes values between bounds[a % len(bounds)]
    size: int


_SMALL, _MEDIUM, _BIG = (1, 100), (1_000, 10_000), (100_000, 1_000_000)

WORKLOADS = {
    "w0": _Setting(100, (_SMALL,), 1),
    "w1": _Setting(100, (_MEDIUM,), 1),
    "w2": _Setting(100, (_BIG,), 1),
    "w3": _Setting(100, (_SMALL, _MEDIUM, _BIG), 1),
    "subscriptions": _Setting(10, ((1, 10),), 5),
}


class RangeDomain(NamedTuple):
    """Attributes a0, a1, …, each with the integers from its lowest to its highest."""

    lowest: tuple[int, ...]
    highest: tuple[int, ...]

    @property
    def n_attributes(self) -> int:
        """Number of attributes."""
        return len(self.lowest)

    def name(self, attribute: int) -> str:
        """Return the name of an attribute."""
        return f"a{attribute}"

    def n_values(self, attribute: int) -> int:
        """Return how many values an attribute has."""
        return self.highest[attribute] - self.lowest[attribute] + 1

    def value(self, attribute: int, code: int) -> int:
        """Return the value that a code stands for."""
        return self.lowest[attribute] + code - 1


@dataclass(frozen=True, slots=True)
class _Parameters:
    """Zero stands for what the workload says."""

    workload: str = choice_of(*WORKLOADS)
    n_attributes: int = ranged(0, 0)
    lowest: int = ranged(0, 0)
    highest: int = ranged(0, 0, 10**9)
    size: int = ranged(0, 0)
    event_size: int = ranged(0, 0)

    def setting(self) -> _Setting:
        named = WORKLOADS[self.workload]
        bounds = tuple((self.lowest or low, self.highest or high) for low, high in named.bounds)
        for low, high in bounds:
            if low >= high:
                raise InputError(f"lowest must be less than highest, not {low} and {high}")
        return _Setting(self.n_attributes or named.n_attributes, bounds, self.size or named.size)


def two_stage(spec: WorkloadSpec) -> Workload:
    """One of W0 … W3 or the subscription workload (Two-stage, section 5.1)."""
    parameters = read_record(spec, _Parameters)
    setting = parameters.setting()
    n_attributes = setting.n_attributes
    event_size = parameters.event_size or n_attributes
    for name, size in (("size", setting.size), ("event_size", event_size)):
        if size > n_attributes:
            raise InputError(f"{name} is {size}, more than the {n_attributes} attributes")
    bounds = [setting.bounds[a % len(setting.bounds)] for a in range(n_attributes)]
    domain = RangeDomain(tuple(low for low, _ in bounds), tuple(high for _, high in bounds))
    n_values = np.array([high - low + 1 for low, high in bounds], np.int64)

    random = spec.random("two_stage subscriptions")
    if setting.size == 1:
        predicates = _distinct_predicates(random, spec.n_subscriptions, n_values)
    else:
        sizes = np.full(spec.n_subscriptions, setting.size)
        attributes = distinct_per_group(random, sizes, np.ones(n_attributes))
        predicates = _Predicates(attributes, *_conditions(random, n_values[attributes]))
    subscriptions = _flat(predicates, setting.size, n_values)

    def events(stream: str, n: int) -> FlatEvents:
        random = spec.random(stream)
        sizes = np.full(n, event_size)
        attributes = distinct_per_group(random, sizes, np.ones(n_attributes))
        return FlatEvents(offsets_of(sizes), attributes, random.integers(n_values[attributes]) + 1)

    return Workload(
        spec,
        domain,
        subscriptions,
        events("two_stage events", spec.n_events),
        events("two_stage training", spec.n_training_events),
    )


class _Predicates(NamedTuple):
    attributes: np.ndarray  # int32
    operators: np.ndarray
    operands: np.ndarray  # codes


def _conditions(random: np.random.Generator, n_values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draw an operator and an operand for each of these numbers of values."""
    operators = random.integers(4, size=len(n_values))
    n_operands = n_values - (operators >= LESS)
    return operators, random.integers(n_operands) + 1 + (operators == LESS)


def _distinct_predicates(random: np.random.Generator, n: int, n_values: np.ndarray) -> _Predicates:
    """Draw n different predicates, one after the other; draw again those that are there."""
    limit = int((4 * n_values - 2).sum())
    if n > limit:
        raise InputError(
            f"there are {limit} different predicates over these attributes, fewer than"
            f" n_subscriptions = {n}; more attributes or a greater highest give more"
        )
    width = int(n_values.max()) + 1
    keys = np.empty(0, np.int64)
    while len(keys) < n:
        # Where most are taken, few of the draws are new: the second bound keeps the rounds few.
        n_draws = max(n - len(keys), n // 4) + 1024
        attributes = random.integers(len(n_values), size=n_draws)
        operators, operands = _conditions(random, n_values[attributes])
        drawn = np.concatenate((keys, (attributes * 4 + operators) * width + operands))
        _, first = np.unique(drawn, return_index=True)
        keys = drawn[np.sort(first)][:n]
    attributes, conditions = np.divmod(keys, 4 * width)
    return _Predicates(attributes.astype(np.int32), *np.divmod(conditions, width))


def _flat(predicates: _Predicates, size: int, n_values: np.ndarray) -> FlatSubscriptions:
    """Clauses of so many predicates; `!=` is one interval or, between the ends, two."""
    attributes, operators, operands = predicates
    last = n_values[attributes]
    is_split = (operators == NOT_EQUAL) & (operands > 1) & (operands < last)
    interval_offsets = offsets_of(1 + is_split)
    lows = np.empty(interval_offsets[-1], np.int64)
    highs = np.empty(interval_offsets[-1], np.int64)
    begins_after = (operators == GREATER) | ((operators == NOT_EQUAL) & (operands == 1))
    first = interval_offsets[:-1]
    lows[first] = np.where(operators == EQUAL, operands, np.where(begins_after, operands + 1, 1))
    highs[first] = np.where(
        operators == EQUAL, operands, np.where(begins_after, last, operands - 1)
    )
    second = first[is_split] + 1
    lows[second], highs[second] = operands[is_split] + 1, last[is_split]
    n = len(attributes) // size
    return FlatSubscriptions(
        np.arange(n, dtype=np.int64),
        np.arange(n + 1, dtype=np.int64) * size,
        attributes,
        interval_offsets,
        lows,
        highs,
    )
