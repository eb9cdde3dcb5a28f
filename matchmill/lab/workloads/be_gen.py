"""BE-Gen: subscriptions derived from the events that they shall match.

After BE-Tree, section 7.1 with Tables 2 and 3; the ranges of PS-Tree, section 7.1 with Table 1.

    base b           attributes[b, :] ascending, codes[b, :]: pairs, or equality predicates
    active bases     0 … n_active - 1; an event is an active base with extra pairs beside it
    silent bases     the rest; no event comes from them
    a subscription   some predicates of one base, each kept as `=` or replaced by another predicate
                     that it implies (Table 2(b))

A subscription is true on every event of its base. So with the share q of the subscriptions spread
evenly over K active bases, and events likewise, an event matches q / K of them, plus those of
other bases that are true by chance. Chance is measured on a pilot first, and q is set to make the
sum what was asked for. K is the largest number that needs no q above 1: the paper's example, 100
bases for 1%, is q = 1.

Deviations: events have extra pairs, so that hardly two are the same and training events are others
than those measured with. A derived predicate is never a single value, nor all values: `a < 2` is
`a = 1` once it is a set, and the share of equality would not be what was asked for. Lists have 2
to 6 values, no two of them neighbours. Below a probability of 1 / 2048 active bases get no more,
and the silent ones have most of the subscriptions.

Subscription i is the same however many are asked for: they are drawn in blocks, each from a stream
of its own, and placed on bases by multiples of the golden ratio, which spread evenly at any length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from matchmill.errors import InputError
from matchmill.lab.workloads.characteristics import clause_truths
from matchmill.lab.workloads.flat import FlatEvents, FlatSubscriptions, IntegerDomain, Workload
from matchmill.lab.workloads.parameters import read_parameters, within
from matchmill.lab.workloads.spec import WorkloadSpec

__all__ = ["BeGenParameters", "be_gen"]

BLOCK = 16_384  # subscriptions drawn at once
MAX_ACTIVE = 2048
N_SILENT = 1024
_PILOT_ROUNDS = 48
_PILOT_EVENTS = 64
_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio

EQUAL, BELOW, ABOVE, BETWEEN, IN, NOT_EQUAL, NOT_IN = range(7)

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
    """The workload of a spec whose parameters are those of `BeGenParameters`."""
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


class Shape(NamedTuple):
    """What derivation needs to know of the parameters."""

    cardinalities: np.ndarray  # int32, of each attribute
    rarities: np.ndarray  # float64, of each attribute: one over its popularity
    value_zipf: float
    equality_ratio: float
    predicate_range: float
    operators: np.ndarray  # int8, what equality is replaced by, each as often
    min_size: int  # of subscriptions
    max_size: int
    base_size: int
    min_extras: int  # pairs of an event beside its base
    max_extras: int


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


# -- random numbers -------------------------------------------------------------------------------


def words(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Random 32-bit words. Whole numbers are made from them by whole arithmetic, which is the
    same on every machine, and half the work of doubles."""
    drawn: np.ndarray = rng.integers(0, 2**32, size=shape, dtype=np.uint32)
    return drawn


def picked(drawn: np.ndarray, n: np.ndarray | int) -> np.ndarray:
    """Words to numbers below n."""
    product = drawn.astype(np.uint64) * np.asarray(n).astype(np.uint64)
    return (product >> np.uint64(32)).astype(np.int32)


def evenly(start: int, first: int, n: int) -> np.ndarray:
    """Members first … first + n - 1 of a sequence in [0, 1) that is even at any length."""
    steps = np.arange(first, first + n, dtype=np.uint64) * np.uint64(_GOLDEN) + np.uint64(start)
    return (steps >> np.uint64(11)) * 2.0**-53


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
    """k different attributes a row, by popularity, in the order drawn; none of `without`.

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


# -- bases and events -----------------------------------------------------------------------------


class Bases(NamedTuple):
    attributes: np.ndarray  # int32 [n, base size]
    codes: np.ndarray  # int32, alike
    n_active: int


def _bases(spec: WorkloadSpec, asked: BeGenParameters, shape: Shape) -> Bases:
    p = asked.matching_probability
    n_active = MAX_ACTIVE if p * MAX_ACTIVE <= 1 else int(1 / p + 1e-9)
    return draw_bases(spec.random("bases"), shape, n_active, N_SILENT)


def draw_bases(rng: np.random.Generator, shape: Shape, n_active: int, n_silent: int) -> Bases:
    nothing = np.empty((n_active + n_silent, 0), np.int64)
    attributes = np.sort(popular(rng, shape.rarities, shape.base_size, nothing), axis=1)
    return Bases(attributes, zipf_codes(rng, shape, attributes), n_active)


def _events(rng: np.random.Generator, shape: Shape, bases: Bases, n: int) -> FlatEvents:
    return draw_events(rng, shape, bases, event_bases(rng, bases, n))


def event_bases(rng: np.random.Generator, bases: Bases, n: int) -> np.ndarray:
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
    return FlatEvents(offsets(n_pairs), attributes[kept], codes[kept].astype(np.int64))


def offsets(lengths: np.ndarray) -> np.ndarray:
    out = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


# -- how much matches -----------------------------------------------------------------------------


def _active_share(spec: WorkloadSpec, asked: BeGenParameters, shape: Shape, bases: Bases) -> float:
    def draw(rng: np.random.Generator, base_of: np.ndarray) -> Block:
        return _block(rng, shape, bases, base_of)

    target = asked.matching_probability
    if target == 0:
        return 0.0
    by_chance = chance(spec.random("pilot"), shape, bases, draw, 0.01 * target)
    return active_share(target, bases.n_active, by_chance)


def chance(
    rng: np.random.Generator,
    shape: Shape,
    bases: Bases,
    draw: Callable[[np.random.Generator, np.ndarray], Block],
    error: float,
) -> tuple[float, float]:
    """How likely an event matches a subscription of another active base, and of a silent one.

    Counted on a pilot until the error is below the one given, or 1%, or the pilot long enough.
    """
    tried, hits = np.zeros(2), np.zeros(2)
    for _ in range(_PILOT_ROUNDS):
        base_of = picked(words(rng, BLOCK // 2), len(bases.codes)).astype(np.int64)
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
    """The share of subscriptions to derive from active bases: q, with chance allowed for."""
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


def _places(spec: WorkloadSpec, block: int, share: float, bases: Bases) -> np.ndarray:
    """The bases that the subscriptions of a block are derived from."""
    start = int(spec.random("places").integers(0, 2**63))
    return base_places(evenly(start, block * BLOCK, BLOCK), share, bases)


def base_places(x: np.ndarray, share: float, bases: Bases) -> np.ndarray:
    """Numbers in [0, 1) to bases: this share of them to active ones, the rest to silent ones."""
    n_silent = len(bases.codes) - bases.n_active
    active = x / max(share, 1e-300) * bases.n_active
    silent = (x - share) / max(1 - share, 1e-300) * n_silent
    active = np.minimum(active, bases.n_active - 1).astype(np.int64)
    silent = np.clip(silent, 0, n_silent - 1).astype(np.int64)
    return np.where(x < share, active, bases.n_active + silent)


# -- subscriptions --------------------------------------------------------------------------------


class Block(NamedTuple):
    """Some subscriptions; small integers, since they are many."""

    sizes: np.ndarray  # predicates of each
    attributes: np.ndarray
    n_intervals: np.ndarray  # of each predicate
    lows: np.ndarray
    highs: np.ndarray


def _block(rng: np.random.Generator, shape: Shape, bases: Bases, base_of: np.ndarray) -> Block:
    choices = shape.max_size - shape.min_size + 1
    sizes = shape.min_size + picked(words(rng, len(base_of)), choices)
    rows, columns = subsets(rng, sizes, np.full(len(sizes), shape.base_size, np.int32))
    attributes = bases.attributes[base_of[rows], columns]
    codes = bases.codes[base_of[rows], columns]
    return Block(sizes, attributes, *derived(rng, shape, attributes, codes))


def subsets(
    rng: np.random.Generator, sizes: np.ndarray, n_columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For each row so many of its first n columns, all choices alike; as (rows, columns).

    Column by column: taken with the probability wanted / left, which meets the size exactly and
    leaves the columns in order.
    """
    width = int(n_columns.max(initial=1))
    drawn = words(rng, width, len(sizes))
    taken = np.empty((width, len(sizes)), np.bool_)
    wanted, left = sizes.astype(np.int32), n_columns.astype(np.int32)
    for column in range(width):
        np.less(picked(drawn[column], left), wanted, out=taken[column])
        wanted = wanted - taken[column]
        left = np.maximum(left - 1, 0)
    rows, columns = np.nonzero(np.ascontiguousarray(taken.T))
    return rows, columns


def derived(
    rng: np.random.Generator,
    shape: Shape,
    attributes: np.ndarray,
    codes: np.ndarray,
    narrow: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predicates that `attribute = code` implies: (intervals of each, lows, highs).

    BE-Tree, Table 2(b). Where `narrow` is set, what is wider than a list becomes equality.
    """
    n_values = shape.cardinalities[attributes]
    kinds = _kinds(rng, shape, codes, n_values)
    if narrow is not None:
        kinds[narrow & (kinds != IN)] = EQUAL
    drawn, widths = words(rng, len(codes)), words(rng, len(codes))
    lows, highs = codes.copy(), codes.copy()

    at = np.flatnonzero(kinds == BELOW)
    lows[at] = 1
    highs[at] = np.maximum(codes[at], 2)
    highs[at] += picked(drawn[at], n_values[at] - highs[at])

    at = np.flatnonzero(kinds == ABOVE)
    highs[at] = n_values[at]
    lows[at] = 2 + picked(drawn[at], np.minimum(codes[at], n_values[at] - 1) - 1)

    at = np.flatnonzero(kinds == BETWEEN)
    width = _widths(widths[at], n_values[at], shape.predicate_range)
    least = np.maximum(codes[at] - width + 1, 1)
    most = np.minimum(codes[at], n_values[at] - width + 1)
    lows[at] = least + picked(drawn[at], most - least + 1)
    highs[at] = lows[at] + width - 1

    listed = np.flatnonzero(kinds == IN)
    inner = _lists(rng, codes[listed], n_values[listed])
    excluding = np.flatnonzero(kinds >= NOT_EQUAL)
    outer = _exclusions(rng, codes[excluding], n_values[excluding], kinds[excluding])
    return _merged(len(codes), (lows, highs), [(listed, *inner), (excluding, *outer)])


def _kinds(
    rng: np.random.Generator, shape: Shape, codes: np.ndarray, n_values: np.ndarray
) -> np.ndarray:
    """The operator of each predicate, changed where it would be a point, or true of all values."""
    equal = words(rng, len(codes)).astype(np.float64) < shape.equality_ratio * 2.0**32
    kinds = np.full(len(codes), EQUAL, np.int8)
    if len(shape.operators):
        drawn = shape.operators[picked(words(rng, len(codes)), len(shape.operators))]
        kinds = np.where(equal | (n_values < 3), kinds, drawn)
    short = n_values == 3
    kinds[short & ((kinds == IN) | (kinds == NOT_IN))] = BELOW
    kinds[short & (kinds == NOT_EQUAL) & (codes == 2)] = BELOW
    below, above = kinds == BELOW, kinds == ABOVE
    kinds[below & (codes == n_values)] = ABOVE
    kinds[above & (codes == 1)] = BELOW
    return kinds


def _widths(drawn: np.ndarray, n_values: np.ndarray, share: float) -> np.ndarray:
    """Numbers of values with this share as their mean, from 2 to all but one."""
    most = n_values - 1.0
    mean = np.clip(share * n_values, 2, most)
    spread = np.minimum(mean - 2, most - mean)
    exact = mean + spread * (drawn * 2.0**-31 - 1)
    # Round by chance, with the low bits of the same word, so that the mean stays.
    return np.floor(exact + (drawn & np.uint32(0xFFFF)) * 2.0**-16).astype(np.int32)


def _lists(
    rng: np.random.Generator, codes: np.ndarray, n_values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """2 to 6 values with the code among them, no neighbours, going round from the code."""
    steps, valid = _steps(rng, n_values, 5, fixed=1)
    values = (codes[:, None] - 1 + 2 + steps) % n_values[:, None] + 1
    values = np.concatenate([codes[:, None], values], axis=1).astype(np.int32)
    valid = np.concatenate([np.ones((len(codes), 1), np.bool_), valid], axis=1)
    values[~valid] = np.iinfo(np.int32).max
    values = np.sort(values, axis=1)
    return values, values, values < np.iinfo(np.int32).max


def _exclusions(
    rng: np.random.Generator, codes: np.ndarray, n_values: np.ndarray, kinds: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All values but one that is neither the first, the last nor the code; or but 2 to 6."""
    steps, valid = _steps(rng, n_values, 6, fixed=0)
    values = ((codes[:, None] + steps) % n_values[:, None] + 1).astype(np.int32)
    inside = (codes > 1) & (codes < n_values)
    one = 2 + picked(words(rng, len(codes)), n_values - 2 - inside)
    one += inside & (one >= codes)
    single = kinds == NOT_EQUAL
    values[single, 0] = one[single]
    valid[single] = np.arange(6) == 0
    beyond = (n_values + 1)[:, None]
    values = np.sort(np.where(valid, values, beyond), axis=1)
    before, after = np.zeros_like(beyond), beyond
    lows = np.concatenate([before, values], axis=1) + 1
    highs = np.concatenate([values, after], axis=1) - 1
    return lows, highs, lows <= highs


def _steps(
    rng: np.random.Generator, n_values: np.ndarray, width: int, *, fixed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Ascending steps at least 2 apart, and which of them count.

    With m places on a ring of n, each with a free value behind it, n - 2m values are left over; a
    step is 2 for every place before it, and the number of left-over values before it. The code
    itself is the first place (`fixed=1`), or lies before it (`fixed=0`).
    """
    n_places = 2 + picked(words(rng, len(n_values)), np.minimum(6, n_values // 2) - 1)
    spare = n_values - 2 * n_places
    drawn = picked(words(rng, len(n_values), width), (spare + 1)[:, None])
    places = np.arange(width)
    valid = places < (n_places - fixed)[:, None]
    drawn[~valid] = np.iinfo(np.int32).max
    steps = np.sort(drawn, axis=1).astype(np.int64) + 2 * places
    return steps, valid


def _merged(
    n: int,
    ends: tuple[np.ndarray, np.ndarray],
    several: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predicates with one interval, and those with several in rows of a matrix, in order."""
    counts = np.ones(n, np.int32)
    for at, _, _, valid in several:
        counts[at] = np.count_nonzero(valid, axis=1)
    starts = offsets(counts)
    out_lows, out_highs = np.repeat(ends[0], counts), np.repeat(ends[1], counts)
    for at, lows, highs, valid in several:
        places = starts[at][:, None] + np.cumsum(valid, axis=1) - 1
        out_lows[places[valid]] = lows[valid]
        out_highs[places[valid]] = highs[valid]
    return counts, out_lows, out_highs


def joined(blocks: list[Block], n: int) -> FlatSubscriptions:
    """Blocks one after another, the first n subscriptions of them."""
    clause_offsets = offsets(_joined_column([b.sizes for b in blocks], np.int32)[:n])
    n_predicates = int(clause_offsets[-1])
    counts = _joined_column([b.n_intervals for b in blocks], np.int32)[:n_predicates]
    interval_offsets = offsets(counts)
    n_intervals = int(interval_offsets[-1])
    return FlatSubscriptions(
        np.arange(n, dtype=np.int64),
        clause_offsets,
        _joined_column([b.attributes for b in blocks], np.int32)[:n_predicates],
        interval_offsets,
        _joined_column([b.lows for b in blocks], np.int64)[:n_intervals],
        _joined_column([b.highs for b in blocks], np.int64)[:n_intervals],
    )


def _joined_column(parts: list[np.ndarray], dtype: type) -> np.ndarray:
    if not parts:
        return np.empty(0, dtype)
    return np.concatenate(parts, dtype=dtype)
