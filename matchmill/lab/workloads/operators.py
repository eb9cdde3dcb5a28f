"""The workload of the paper on expensive operators: predicates shared by many subscriptions.

    predicate t       costs[t] to evaluate; true for an event with probability selectivities[t]
    subscription s    predicate_ids[subscription_offsets[s] … subscription_offsets[s + 1]]
    event e           truths[e, t]: whether predicate t is true for it

The predicates of a subscription differ and ascend. Each is drawn in proportion to its popularity
weight (section 5.2, Table 1), which is uniform in [0, 1] or follows Zipf's law with predicate 0 as
the most popular.

What the paper leaves open, and what we do:

- How events come to match a given share of the subscriptions. Predicates are independent, as in
  the paper's problem statement (the remarks before Theorem 1). Each has a number uniform in
  (0, 1), or one half if selectivities are to be equal, and its selectivity is that number to a
  power. The power is the one at which the expected share of matches is matched_ratio.
- Costs that differ (section 4.3): uniform from 1 to max_cost. Equal ones are 1.
- Which numbers of predicates and subscriptions go together varies by experiment; the defaults are
  those of sections 5.3.3 and 5.3.4 (5,000 predicates, 3 to 5 in a subscription, Zipf's law with
  exponent 1; the paper has 20,000 subscriptions there).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from matchmill.errors import InputError
from matchmill.kernels.csr import offsets_of
from matchmill.lab.workloads.flat import FlatEvents, FlatSubscriptions, Workload
from matchmill.lab.workloads.parameters import choice_of, ranged, read_record
from matchmill.lab.workloads.sampling import distinct_per_group, zipf_weights
from matchmill.lab.workloads.spec import WorkloadSpec

__all__ = ["BooleanDomain", "OperatorWorkload", "as_workload", "operator_workload"]

FALSE, TRUE = 1, 2  # codes

_BLOCK = 1 << 21


class OperatorWorkload(NamedTuple):
    """Subscriptions and events over unique predicates."""

    spec: WorkloadSpec
    costs: np.ndarray  # float64
    selectivities: np.ndarray  # float64
    weights: np.ndarray  # float64: popularity
    subscription_offsets: np.ndarray  # int64
    predicate_ids: np.ndarray  # int32
    truths: np.ndarray  # bool, events × predicates
    training_truths: np.ndarray  # the same for the events to learn from

    @property
    def n_predicates(self) -> int:
        """Number of predicates."""
        return len(self.costs)

    @property
    def n_subscriptions(self) -> int:
        """Number of subscriptions."""
        return len(self.subscription_offsets) - 1


class BooleanDomain(NamedTuple):
    """Attributes p0, p1, …, each false or true."""

    n_attributes: int

    def name(self, attribute: int) -> str:
        """Return the name of an attribute."""
        return f"p{attribute}"

    def n_values(self, attribute: int) -> int:
        """Return how many values an attribute has."""
        return 2

    def value(self, attribute: int, code: int) -> bool:
        """Return the value that a code stands for."""
        return code == TRUE


@dataclass(frozen=True, slots=True)
class _Parameters:
    n_predicates: int = ranged(5_000, 1)
    popularity: str = choice_of("zipf", "uniform")
    zipf: float = ranged(1.0, 0, 10)
    min_size: int = ranged(3, 1)
    max_size: int = ranged(5, 1)
    matched_ratio: float = ranged(0.002, 1e-9, 0.999)
    selectivity: str = choice_of("varied", "equal")
    costs: str = choice_of("equal", "varied")
    max_cost: float = ranged(10.0, 1)

    def __post_init__(self) -> None:
        if not self.min_size <= self.max_size <= self.n_predicates:
            raise InputError(
                "min_size must not exceed max_size, nor max_size n_predicates:"
                f" {self.min_size}, {self.max_size}, {self.n_predicates}"
            )


def operator_workload(spec: WorkloadSpec) -> OperatorWorkload:
    """Make predicates, subscriptions that share them and events (Expensive operators, 5.2)."""
    parameters = read_record(spec, _Parameters)
    n = parameters.n_predicates
    weights = (
        zipf_weights(n, parameters.zipf)
        if parameters.popularity == "zipf"
        else 1 - spec.random("operators weights").random(n)  # none of them zero
    )
    random = spec.random("operators subscriptions")
    sizes = random.integers(parameters.min_size, parameters.max_size + 1, size=spec.n_subscriptions)
    predicate_ids = distinct_per_group(random, sizes, weights)
    offsets = offsets_of(sizes)
    selectivities = _selectivities(spec, parameters, offsets, predicate_ids)
    costs = np.ones(n)
    if parameters.costs == "varied":
        costs += spec.random("operators costs").random(n) * (parameters.max_cost - 1)
    return OperatorWorkload(
        spec,
        costs,
        selectivities,
        weights,
        offsets,
        predicate_ids,
        _truths(spec.random("operators events"), spec.n_events, selectivities),
        _truths(spec.random("operators training"), spec.n_training_events, selectivities),
    )


def _selectivities(
    spec: WorkloadSpec, parameters: _Parameters, offsets: np.ndarray, predicate_ids: np.ndarray
) -> np.ndarray:
    """Probabilities at which an event is expected to match the wanted share of subscriptions."""
    n = parameters.n_predicates
    numbers = np.full(n, 0.5)
    if parameters.selectivity == "varied":
        numbers = 1 - spec.random("operators selectivities").random(n)
    if len(offsets) == 1:
        return numbers
    # A subscription is true with the product of its predicates' numbers, to the common power.
    logarithms = np.add.reduceat(np.log(numbers)[predicate_ids], offsets[:-1])
    below, above = 0.0, 1.0
    while np.exp(above * logarithms).mean() > parameters.matched_ratio:
        below, above = above, 2 * above
    for _ in range(40):
        middle = (below + above) / 2
        if np.exp(middle * logarithms).mean() > parameters.matched_ratio:
            below = middle
        else:
            above = middle
    # Rounded, so that machines whose powers differ in the last bit agree; none of them zero.
    return np.maximum(np.round(numbers**above, 9), 1e-9)


def _truths(random: np.random.Generator, n_events: int, selectivities: np.ndarray) -> np.ndarray:
    truths = np.empty((n_events, len(selectivities)), np.bool_)
    step = max(1, _BLOCK // len(selectivities))
    for start in range(0, n_events, step):
        rows = truths[start : start + step]
        np.less(random.random(rows.shape), selectivities, out=rows)
    return truths


def as_workload(workload: OperatorWorkload, *, with_false: bool = False) -> Workload:
    """Return the same as conjunctions of boolean attributes, one per predicate, that must be true.

    An event holds the predicates that are true for it and, if wanted, the others as false; for
    the matches that makes no difference, for the size of the events a great one.
    """
    n_subscriptions, n = workload.n_subscriptions, len(workload.predicate_ids)
    subscriptions = FlatSubscriptions(
        np.arange(n_subscriptions, dtype=np.int64),
        workload.subscription_offsets,
        workload.predicate_ids,
        np.arange(n + 1, dtype=np.int64),
        np.full(n, TRUE, np.int64),
        np.full(n, TRUE, np.int64),
    )
    return Workload(
        workload.spec,
        BooleanDomain(workload.n_predicates),
        subscriptions,
        _events(workload.truths, with_false),
        _events(workload.training_truths, with_false),
    )


def _events(truths: np.ndarray, with_false: bool) -> FlatEvents:
    held = np.ones_like(truths) if with_false else truths
    offsets = offsets_of(np.count_nonzero(held, axis=1))
    attributes = np.nonzero(held)[1].astype(np.int32)
    return FlatEvents(offsets, attributes, np.where(truths[held], TRUE, FALSE).astype(np.int64))
