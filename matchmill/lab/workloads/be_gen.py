"""BE-Gen: subscriptions derived from the events that they shall match.

After BE-Tree, section 7.1 with Tables 2 and 3; the ranges of PS-Tree, section 7.1 with Table 1.

    bases            what events and subscriptions come from: `be_gen_bases.py`
    a subscription   some predicates of one base, each kept as `=` or replaced by another predicate
                     that it implies: `be_gen_predicates.py`

There are K active bases, the largest number for which the share q of subscriptions that come from
them need not be above 1: the paper's example, 100 bases for 1%, is q = 1.

Deviations: events have extra pairs, so that hardly two are the same and training events are others
than those measured with. Below a probability of 1 / 2048 active bases get no more, and the silent
ones have most of the subscriptions. For those of predicates see their file.

Subscription i is the same however many are asked for: they are drawn in blocks, each from a stream
of its own, and placed on bases by multiples of the golden ratio, which spread evenly at any length.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.errors import InputError
from matchmill.lab.workloads.be_gen_bases import (
    Bases,
    active_share,
    base_places,
    chance,
    draw_bases,
    draw_events,
    event_bases,
)
from matchmill.lab.workloads.be_gen_predicates import (
    ABOVE,
    BELOW,
    BETWEEN,
    IN,
    NOT_EQUAL,
    NOT_IN,
    Block,
    Shape,
    derived,
    joined,
    subsets,
)
from matchmill.lab.workloads.flat import FlatEvents, IntegerDomain, Workload
from matchmill.lab.workloads.parameters import read_parameters, within
from matchmill.lab.workloads.sampling import evenly, picked, words
from matchmill.lab.workloads.spec import WorkloadSpec

__all__ = ["BLOCK", "BeGenParameters", "be_gen"]

BLOCK = 16_384  # subscriptions drawn at once
MAX_ACTIVE = 2048
N_SILENT = 1024

# Table 2(a), without equality; twice what has a strict and an inclusive form.
OPERATORS: dict[str, tuple[int, ...]] = {
    "min": (),
    "low": (IN,),
    "med": (BELOW, BELOW, ABOVE, ABOVE, IN, BETWEEN),
    "high": (BELOW, BELOW, ABOVE, ABOVE, IN, BETWEEN, NOT_EQUAL, NOT_IN),
}


class BeGenParameters(NamedTuple):
    """Defaults are the first column of BE-Tree's Table 3."""

    n_dimensions: int = 400
    cardinality: int = 48
    subscription_size: int = 7  # the mean
    subscription_spread: int = -1  # sizes are the mean ± this; -1 is a third of the mean
    event_size: int = 15  # the mean; of this about a fifth are extra pairs
    equality_ratio: float = 0.3
    predicate_range: float = 0.12  # mean share of the domain that `between` covers
    operators: str = "med"  # "min", "low", "med" or "high": what equality is replaced by
    zipf: float = 0.0  # exponent of the popularity of attributes
    value_zipf: float = 0.0  # exponent of the popularity of values
    matching_probability: float = 0.01  # of an event and a subscription


def be_gen(spec: WorkloadSpec) -> Workload:
    """Make the workload of a spec whose parameters are those of `BeGenParameters`."""
    asked = _checked(BeGenParameters(**read_parameters(spec, BeGenParameters()._asdict())))
    shape = _shape(asked)
    bases = _bases(spec, asked, shape)
    share = _active_share(spec, asked, shape, bases)
    blocks = [
        _block(spec.random(f"subscriptions {b}"), shape, bases, _places(spec, b, share, bases))
        for b in range(-(-spec.n_subscriptions // BLOCK))
    ]
    return Workload(
        spec,
        IntegerDomain(asked.n_dimensions, asked.cardinality),
        joined(blocks, spec.n_subscriptions),
        _events(spec.random("events"), shape, bases, spec.n_events),
        _events(spec.random("training"), shape, bases, spec.n_training_events),
    )


# -- parameters -----------------------------------------------------------------------------------


def _checked(asked: BeGenParameters) -> BeGenParameters:
    if asked.operators not in OPERATORS:
        raise InputError(f"operators must be min, low, med or high, not {asked.operators!r}")
    if asked.operators == "min":
        asked = asked._replace(equality_ratio=1.0)
    within("n_dimensions", asked.n_dimensions, 1, 1_000_000)
    within("cardinality", asked.cardinality, 1, 2**30)
    within("event_size", asked.event_size, 1, asked.n_dimensions)
    within("subscription_size", asked.subscription_size, 1, asked.event_size)
    within("subscription_spread", asked.subscription_spread, -1, asked.subscription_size - 1)
    within("equality_ratio", asked.equality_ratio, 0, 1)
    within("predicate_range", asked.predicate_range, 0, 1)
    within("zipf", asked.zipf, 0, 10)
    within("value_zipf", asked.value_zipf, 0, 10)
    within("matching_probability", asked.matching_probability, 0, 1)
    least = 4 if asked.operators == "low" else 3
    if asked.equality_ratio < 1 and asked.cardinality < least:
        raise InputError(
            f"other predicates than equality need a cardinality of at least {least}, not "
            f"{asked.cardinality}; raise it or set equality_ratio=1"
        )
    return asked


def _shape(asked: BeGenParameters) -> Shape:
    size, event_size = asked.subscription_size, asked.event_size
    spread = size // 3 if asked.subscription_spread < 0 else asked.subscription_spread
    spread = min(spread, event_size - size)
    base_size = max(size + spread, event_size - event_size // 5)
    extras = event_size - base_size
    wobble = min(extras, asked.n_dimensions - event_size, event_size // 10)
    return Shape(
        np.full(asked.n_dimensions, asked.cardinality, np.int32),
        np.arange(1, asked.n_dimensions + 1, dtype=np.float64) ** asked.zipf,
        asked.value_zipf,
        asked.equality_ratio,
        asked.predicate_range,
        np.array(OPERATORS[asked.operators], np.int8),
        size - spread,
        size + spread,
        base_size,
        extras - wobble,
        extras + wobble,
    )


# -- bases and subscriptions ----------------------------------------------------------------------


def _bases(spec: WorkloadSpec, asked: BeGenParameters, shape: Shape) -> Bases:
    p = asked.matching_probability
    n_active = MAX_ACTIVE if p * MAX_ACTIVE <= 1 else int(1 / p + 1e-9)
    return draw_bases(spec.random("bases"), shape, n_active, N_SILENT)


def _events(rng: np.random.Generator, shape: Shape, bases: Bases, n: int) -> FlatEvents:
    return draw_events(rng, shape, bases, event_bases(rng, bases, n))


def _active_share(spec: WorkloadSpec, asked: BeGenParameters, shape: Shape, bases: Bases) -> float:
    def draw(rng: np.random.Generator, base_of: np.ndarray) -> Block:
        return _block(rng, shape, bases, base_of)

    target = asked.matching_probability
    if target == 0:
        return 0.0
    by_chance = chance(spec.random("pilot"), shape, bases, draw, 0.01 * target)
    return active_share(target, bases.n_active, by_chance)


def _places(spec: WorkloadSpec, block: int, share: float, bases: Bases) -> np.ndarray:
    """Return the bases that the subscriptions of a block are derived from."""
    start = int(spec.random("places").integers(0, 2**63))
    return base_places(evenly(start, block * BLOCK, BLOCK), share, bases)


def _block(rng: np.random.Generator, shape: Shape, bases: Bases, base_of: np.ndarray) -> Block:
    choices = shape.max_size - shape.min_size + 1
    sizes = shape.min_size + picked(words(rng, len(base_of)), choices)
    rows, columns = subsets(rng, sizes, np.full(len(sizes), shape.base_size, np.int32))
    attributes = bases.attributes[base_of[rows], columns]
    codes = bases.codes[base_of[rows], columns]
    return Block(sizes, attributes, *derived(rng, shape, attributes, codes))
