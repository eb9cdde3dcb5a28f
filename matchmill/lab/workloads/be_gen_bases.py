"""The bases of BE-Gen: what events and subscriptions are derived from, and how much matches.

    base b          attributes[b, :] ascending, codes[b, :]: pairs, or equality predicates
    active bases    0 … n_active - 1; an event is an active base with extra pairs beside it
    silent bases    the rest; no event comes from them

A subscription is true on every event of its base. So with the share q of the subscriptions spread
evenly over K active bases, and events likewise, an event matches q / K of them, plus those of
other bases that are true by chance. Chance is measured on a pilot first (`chance`), and q is set to
make the sum what was asked for (`active_share`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from matchmill.errors import InputError
from matchmill.kernels.csr import offsets_of
from matchmill.lab.workloads.be_gen_predicates import Block, Shape, joined
from matchmill.lab.workloads.characteristics import clause_truths
from matchmill.lab.workloads.flat import FlatEvents
from matchmill.lab.workloads.sampling import evenly, picked, words

__all__ = [
    "Bases",
    "active_share",
    "base_places",
    "chance",
    "draw_bases",
    "draw_events",
    "event_bases",
    "popular",
    "zipf_codes",
]

_PILOT_ROUNDS = 48
_PILOT_EVENTS = 64
_PILOT_SUBSCRIPTIONS = 8192


class Bases(NamedTuple):
    """What events and subscriptions are derived from."""

    attributes: np.ndarray  # int32 [n, base size]
    codes: np.ndarray  # int32, of the same shape
    n_active: int


def draw_bases(rng: np.random.Generator, shape: Shape, n_active: int, n_silent: int) -> Bases:
    """Draw the bases."""
    nothing = np.empty((n_active + n_silent, 0), np.int64)
    attributes = np.sort(popular(rng, shape.rarities, shape.base_size, nothing), axis=1)
    return Bases(attributes, zipf_codes(rng, shape, attributes), n_active)


def zipf_codes(rng: np.random.Generator, shape: Shape, attributes: np.ndarray) -> np.ndarray:
    """Values of these attributes; the most popular one stands elsewhere in each.

    The distribution is the continuous one, rounded down: near enough, and one formula for all
    cardinalities.
    """
    n = shape.cardinalities[attributes]
    u = rng.random(attributes.shape)
    if shape.value_zipf == 0:
        ranks = u * n
    elif shape.value_zipf == 1:
        ranks = (n + 1.0) ** u - 1
    else:
        power = 1 - shape.value_zipf
        ranks = (1 + u * ((n + 1.0) ** power - 1)) ** (1 / power) - 1
    shifts = 7919 * attributes.astype(np.int64) if shape.value_zipf else 0
    codes: np.ndarray = (np.minimum(ranks.astype(np.int64), n - 1) + shifts) % n + 1
    return codes.astype(np.int32)


def popular(
    rng: np.random.Generator, rarities: np.ndarray, k: int, without: np.ndarray
) -> np.ndarray:
    """Draw k different attributes per row, by popularity, in the order drawn; none of `without`.

    A race: an attribute arrives after an exponential time as long as it is rare, and the first k
    are what drawing one after another without replacement gives (Gumbel's top k).
    """
    out = np.empty((len(without), k), np.int32)
    step = max(1, 2_000_000 // len(rarities))
    for i in range(0, len(out), step) if k else ():
        rows = without[i : i + step]
        arrivals = rng.standard_exponential((len(rows), len(rarities)))
        arrivals *= rarities
        np.put_along_axis(arrivals, rows, np.inf, axis=1)
        first = np.argpartition(arrivals, k - 1, axis=1)[:, :k]
        order = np.argsort(np.take_along_axis(arrivals, first, axis=1), axis=1)
        out[i : i + step] = np.take_along_axis(first, order, axis=1)
    return out


# -- events ---------------------------------------------------------------------------------------


def event_bases(rng: np.random.Generator, bases: Bases, n: int) -> np.ndarray:
    """Choose the base of each event, evenly."""
    start = int(rng.integers(0, 2**63))
    return (evenly(start, 0, n) * bases.n_active).astype(np.int64)


def draw_events(
    rng: np.random.Generator, shape: Shape, bases: Bases, base_of: np.ndarray
) -> FlatEvents:
    """One event for each of these bases, with extra pairs of its own."""
    own = bases.attributes[base_of]
    more = popular(rng, shape.rarities, shape.max_extras, own.astype(np.int64))
    attributes = np.concatenate([own, more], axis=1)
    codes = np.concatenate([bases.codes[base_of], zipf_codes(rng, shape, more)], axis=1)
    choices = shape.max_extras - shape.min_extras + 1
    n_pairs = own.shape[1] + shape.min_extras + picked(words(rng, len(own)), choices)
    attributes[np.arange(attributes.shape[1]) >= n_pairs[:, None]] = len(shape.rarities)
    order = np.argsort(attributes, axis=1)
    attributes = np.take_along_axis(attributes, order, axis=1)
    kept = attributes < len(shape.rarities)
    codes = np.take_along_axis(codes, order, axis=1)
    return FlatEvents(offsets_of(n_pairs), attributes[kept], codes[kept].astype(np.int64))


# -- how much matches -----------------------------------------------------------------------------


def chance(
    rng: np.random.Generator,
    shape: Shape,
    bases: Bases,
    draw: Callable[[np.random.Generator, np.ndarray], Block],
    error: float,
) -> tuple[float, float]:
    """How likely an event matches per subscription of another active base, and of a silent one.

    Counted on a pilot until the error is below the one given, or 1%, or the pilot long enough.
    """
    tried, hits = np.zeros(2), np.zeros(2)
    for _ in range(_PILOT_ROUNDS):
        base_of = picked(words(rng, _PILOT_SUBSCRIPTIONS), len(bases.codes)).astype(np.int64)
        flat = joined([draw(rng, base_of)], len(base_of))
        chosen = event_bases(rng, bases, _PILOT_EVENTS)
        events = draw_events(rng, shape, bases, chosen)
        silent = base_of >= bases.n_active
        for event_base, truth in zip(chosen, clause_truths(flat, events), strict=True):
            other = ~silent & (base_of != event_base)
            tried += np.count_nonzero(other), np.count_nonzero(silent)
            hits += np.count_nonzero(truth & other), np.count_nonzero(truth & silent)
        rates = hits / np.maximum(tried, 1)
        errors = np.sqrt(hits + 1) / np.maximum(tried, 1)
        if (errors < np.maximum(error, 0.01 * rates))[tried > 0].all():
            break
    other_active, all_silent = rates.tolist()
    return other_active, all_silent


def active_share(target: float, n_active: int, by_chance: tuple[float, float]) -> float:
    """Return the share of subscriptions to derive from active bases: q, with chance allowed for."""
    active, silent = by_chance
    own = 1 / n_active + (1 - 1 / n_active) * active
    if target < 0.97 * min(own, silent):
        raise InputError(
            f"matching_probability {target:g} is out of reach: with these parameters "
            f"{min(own, silent):.2g} match by chance; ask for more equality, longer subscriptions, "
            "more dimensions, a higher cardinality, or a higher probability"
        )
    if own <= silent:  # by an accident of the pilot: both are nearly the target
        return 1.0
    return min(max((target - silent) / (own - silent), 0.0), 1.0)


def base_places(x: np.ndarray, share: float, bases: Bases) -> np.ndarray:
    """Numbers in [0, 1) to bases: this share of them to active ones, the rest to silent ones."""
    n_silent = len(bases.codes) - bases.n_active
    active = x / max(share, 1e-300) * bases.n_active
    silent = (x - share) / max(1 - share, 1e-300) * n_silent
    active = np.minimum(active, bases.n_active - 1).astype(np.int64)
    silent = np.clip(silent, 0, n_silent - 1).astype(np.int64)
    return np.where(x < share, active, bases.n_active + silent)
