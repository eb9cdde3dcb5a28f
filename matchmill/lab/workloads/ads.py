"""Advertisements: the shape that PS-Tree, section 7.4, gives of its real workload.

3 million subscriptions of 1 to 56 predicates, 8 on average, over 122 dimensions; events of 20
pairs; and, which the paper leaves open, popularities after Zipf's law for attributes and for their
values, flags beside attributes with thousands of values, and equality, lists and ranges mixed.

    base b      attributes[b, :] and codes[b, :] in the order drawn, popular ones mostly first;
                the first base_size columns are what events are made of
    silent      as in `be_gen`: bases that no event comes from

How it differs from `be_gen`: about half of the subscriptions come from silent bases, since those
longer than an event have to, and short ones ask for rare things. A subscription of one to three
predicates takes the attributes of its base with the most values, and asks for single values or
lists; else those of one predicate alone would match more than all others together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.errors import InputError
from matchmill.lab.workloads.be_gen import BLOCK
from matchmill.lab.workloads.be_gen_bases import (
    Bases,
    active_share,
    base_places,
    chance,
    draw_events,
    event_bases,
    popular,
    zipf_codes,
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
from matchmill.lab.workloads.flat import FlatEvents, Workload
from matchmill.lab.workloads.parameters import read_parameters, within
from matchmill.lab.workloads.sampling import evenly
from matchmill.lab.workloads.spec import WorkloadSpec

__all__ = ["AdsDomain", "AdsParameters", "ads"]

N_SILENT = 1536
MAX_ACTIVE = 2048
_SHORT = 3  # predicates of a subscription that asks for rare things

# Repeated over the attributes: flags, small and large categories, numbers with many values.
_CARDINALITIES = (2, 1000, 12, 200, 2, 5000, 30, 6, 100, 3000, 3, 50, 2, 400, 8, 2000)

_OPERATORS = (IN, IN, IN, BELOW, ABOVE, BETWEEN, BETWEEN, NOT_EQUAL, NOT_IN)


class AdsParameters(NamedTuple):
    """The parameters of the generator `ads`."""

    n_dimensions: int = 122
    subscription_size: float = 8.0  # the mean
    max_subscription_size: int = 56
    event_size: int = 20  # the mean; about a third are extra pairs
    equality_ratio: float = 0.4  # of what is free to choose: flags and short ones have more
    predicate_range: float = 0.12  # mean share of the domain that `between` covers
    zipf: float = 1.0  # exponent of the popularity of attributes
    value_zipf: float = 1.0
    matching_probability: float = 0.001


class AdsDomain(NamedTuple):
    """Attributes with few values are texts, those with many are whole numbers."""

    cardinalities: tuple[int, ...]

    @property
    def n_attributes(self) -> int:
        """Number of attributes."""
        return len(self.cardinalities)

    def name(self, attribute: int) -> str:
        """Return the name of an attribute."""
        n = self.cardinalities[attribute]
        return f"{'flag' if n == 2 else 'kind' if n <= _MOST_TEXTS else 'number'}_{attribute}"

    def n_values(self, attribute: int) -> int:
        """Return how many values an attribute has."""
        return self.cardinalities[attribute]

    def value(self, attribute: int, code: int) -> int | str:
        """Return the value that a code stands for."""
        if self.cardinalities[attribute] == 2:
            return ("no", "yes")[code - 1]
        if self.cardinalities[attribute] <= _MOST_TEXTS:
            return f"k{code:04d}"  # of one length, so that their order is that of the codes
        return code


_MOST_TEXTS = 400


def ads(spec: WorkloadSpec) -> Workload:
    """Make the workload of a spec whose parameters are those of `AdsParameters`."""
    asked = _checked(AdsParameters(**read_parameters(spec, AdsParameters()._asdict())))
    cardinalities = np.resize(np.array(_CARDINALITIES, np.int32), asked.n_dimensions)
    recipe = _recipe(spec, asked, cardinalities)
    start = int(spec.random("places").integers(0, 2**63))
    blocks = []
    for b in range(-(-spec.n_subscriptions // BLOCK)):
        places = base_places(evenly(start, b * BLOCK, BLOCK), recipe.active, recipe.bases)
        blocks.append(_block(spec.random(f"subscriptions {b}"), recipe, places))
    return Workload(
        spec,
        AdsDomain(tuple(cardinalities.tolist())),
        joined(blocks, spec.n_subscriptions),
        _events(spec.random("events"), recipe, spec.n_events),
        _events(spec.random("training"), recipe, spec.n_training_events),
    )


def _checked(asked: AdsParameters) -> AdsParameters:
    within("n_dimensions", asked.n_dimensions, 2, 1_000_000)
    within("event_size", asked.event_size, 2, asked.n_dimensions)
    most = asked.max_subscription_size
    within("max_subscription_size", most, 1, asked.n_dimensions)
    within("subscription_size", asked.subscription_size, 1, (1 + most) / 2)
    within("equality_ratio", asked.equality_ratio, 0, 1)
    within("predicate_range", asked.predicate_range, 0, 1)
    within("zipf", asked.zipf, 0, 10)
    within("value_zipf", asked.value_zipf, 0, 10)
    within("matching_probability", asked.matching_probability, 0, 0.5)
    return asked


class _Recipe(NamedTuple):
    shape: Shape
    bases: Bases
    by_cardinality: np.ndarray  # int64 [n, base size]: columns, those with most values first
    active: float  # the share of subscriptions derived from active bases
    active_sizes: np.ndarray  # float64: up to each size, the share of those subscriptions
    silent_sizes: np.ndarray  # and of the others


def _recipe(spec: WorkloadSpec, asked: AdsParameters, cardinalities: np.ndarray) -> _Recipe:
    shape = _shape(asked, cardinalities)
    target = asked.matching_probability
    # Half of the subscriptions on active bases, if chance were nothing.
    n_active = MAX_ACTIVE if target * MAX_ACTIVE <= 0.5 else int(0.5 / target + 1e-9)
    bases = _bases(spec.random("bases"), shape, n_active)
    fewer = cardinalities[bases.attributes[:, : shape.base_size]]
    order = np.argsort(-fewer, axis=1, kind="stable")
    sizes = _size_shares(asked.subscription_size, asked.max_subscription_size)
    active = 0.5 if target else 0.0
    for attempt in range(3):  # what matches by chance depends a little on the share
        recipe = _Recipe(shape, bases, order, active, *_split(sizes, active, shape.base_size))
        if target and attempt < 2:
            error = (0.1, 0.02)[attempt] * target
            active = _active_share(spec.random(f"pilot {attempt}"), recipe, target, error)
    return recipe


def _shape(asked: AdsParameters, cardinalities: np.ndarray) -> Shape:
    extras = asked.event_size // 3
    wobble = min(extras, asked.event_size // 5, asked.n_dimensions - asked.event_size)
    return Shape(
        cardinalities,
        np.arange(1, asked.n_dimensions + 1, dtype=np.float64) ** asked.zipf,
        asked.value_zipf,
        asked.equality_ratio,
        asked.predicate_range,
        np.array(_OPERATORS, np.int8),
        1,
        asked.max_subscription_size,
        asked.event_size - extras,
        extras - wobble,
        extras + wobble,
    )


def _bases(rng: np.random.Generator, shape: Shape, n_active: int) -> Bases:
    width = max(shape.max_size, shape.base_size)
    nothing = np.empty((n_active + N_SILENT, 0), np.int64)
    attributes = popular(rng, shape.rarities, width, nothing)
    return Bases(attributes, zipf_codes(rng, shape, attributes), n_active)


def _events(rng: np.random.Generator, recipe: _Recipe, n: int) -> FlatEvents:
    bases = _event_part(recipe)
    return draw_events(rng, recipe.shape, bases, event_bases(rng, bases, n))


def _event_part(recipe: _Recipe) -> Bases:
    attributes, codes, n_active = recipe.bases
    width = recipe.shape.base_size
    return Bases(attributes[:, :width], codes[:, :width], n_active)


def _active_share(rng: np.random.Generator, recipe: _Recipe, target: float, error: float) -> float:
    def draw(rng: np.random.Generator, base_of: np.ndarray) -> Block:
        return _block(rng, recipe, base_of)

    by_chance = chance(rng, recipe.shape, _event_part(recipe), draw, error)
    return active_share(target, recipe.bases.n_active, by_chance)


# -- sizes ----------------------------------------------------------------------------------------


def _size_shares(mean: float, most: int) -> np.ndarray:
    """Shares of the sizes 1 … most: size × ratio ** size, the ratio such that the mean is right."""
    sizes = np.arange(1, most + 1, dtype=np.float64)
    low, high = 0.0, 1.0
    for _ in range(60):
        ratio = (low + high) / 2
        weights = sizes * ratio ** (sizes - 1)
        if (weights * sizes).sum() < mean * weights.sum():
            low = ratio
        else:
            high = ratio
    shares: np.ndarray = weights / weights.sum()
    return shares


def _split(shares: np.ndarray, active: float, base_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Sizes for subscriptions of active bases, which are short enough, and for the others.

    As running sums; mixed in their proportion the two give the shares.
    """
    short = np.where(np.arange(len(shares)) < base_size, shares, 0)
    short /= short.sum()
    rest = np.maximum(shares - active * short, 0)
    if rest.sum() < 1 - active - 1e-9:
        raise InputError("subscription_size is too large for so high a matching_probability")
    return np.cumsum(short), np.cumsum(rest / rest.sum())


# -- subscriptions --------------------------------------------------------------------------------


def _block(rng: np.random.Generator, recipe: _Recipe, base_of: np.ndarray) -> Block:
    shape, bases = recipe.shape, recipe.bases
    active = base_of < bases.n_active
    u = rng.random(len(base_of))
    sizes = 1 + np.where(
        active,
        np.searchsorted(recipe.active_sizes, u, side="right"),
        np.searchsorted(recipe.silent_sizes, u, side="right"),
    )
    sizes = np.minimum(sizes, shape.max_size)
    short = sizes <= min(_SHORT, shape.base_size)
    # As popular as those of events: columns stand in the order drawn.
    reach = np.minimum(np.maximum(sizes * 3 // 2, shape.base_size), bases.codes.shape[1])
    n_columns = np.where(active, shape.base_size, reach)
    n_columns = np.where(short, np.minimum(sizes + 2, shape.base_size), n_columns)
    rows, columns = subsets(rng, sizes, n_columns)
    rare = short[rows]
    columns[rare] = recipe.by_cardinality[base_of[rows[rare]], columns[rare]]
    attributes = bases.attributes[base_of[rows], columns]
    order = np.argsort(rows * len(shape.rarities) + attributes)
    attributes = attributes[order]
    codes = bases.codes[base_of[rows], columns][order]
    return Block(sizes.astype(np.int32), attributes, *derived(rng, shape, attributes, codes, rare))
