"""The workloads of the OpIndex paper: many attributes, few of them in each subscription.

    op_index(spec)         conjunctions (sections 4.4, 7.1, Table 3) and, with max_clauses > 1,
                           the disjunctions of conjunctions of section 7.6
    op_index_prefix(spec)  equality and prefixes of words (section 7.7)
    cnf(spec)              the conjunctions of disjunctions of section 7.6, as a CnfWorkload

Sizes are uniform between their bounds, attributes differ within a clause and within an event, and
ranks are drawn uniformly (exponent 0) or by Zipf's law: rank r has a weight of r ** -exponent.
Rank r is attribute r - 1 and code r, for subscriptions and for events alike, so that what is
popular with the ones is popular with the others.

What the paper leaves open, and what we do:

- Which settings of Table 3 are the defaults (it marks them by bold print), but for the 20,000
  attributes: the middle one of each row, and no skew.
- The smallest event: one attribute, as for subscriptions. Section 5 computes with events of
  exactly m attributes; min_event_size = max_event_size gives these.
- Section 7.6 tells the most clauses only (5). Their number is uniform from 1, and the size of a
  clause is what the size of a subscription is in section 7.1.
- Section 7.7 takes the words of Wikipedia. Ours are made up, with letters of unequal frequency,
  and their popularity follows Zipf's law. An operator is drawn first: a prefix goes to a text
  attribute, an equality to any. A fixed share of an event's attributes is text; were all
  attributes alike, one in a hundred would be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, TypeVar

import numpy as np

from matchmill.errors import InputError
from matchmill.language.expression import literal_text, name_text
from matchmill.workload.flat import Domain, FlatEvents, FlatSubscriptions, IntegerDomain, Workload
from matchmill.workload.spec import WorkloadSpec

__all__ = [
    "CnfWorkload",
    "PrefixDomain",
    "choice_of",
    "cnf",
    "cnf_texts",
    "distinct_per_group",
    "draw_ranks",
    "offsets_of",
    "op_index",
    "op_index_prefix",
    "prefix_texts",
    "ranged",
    "read_parameters",
    "zipf_weights",
]

_BLOCK = 1 << 20  # numbers drawn at a time: bounds the memory for what is passing
_ROUNDS = 300  # of drawing again what was drawn twice, before the exact way takes over

# -- parameters -----------------------------------------------------------------------------------

_P = TypeVar("_P")


def ranged(default: float, low: float = 0, high: float | None = None) -> Any:
    """A number among the parameters of a generator, between low and high."""
    return field(default=default, metadata={"low": low, "high": high})


def choice_of(*values: str) -> Any:
    """A word among the parameters of a generator; the first one is the default."""
    return field(default=values[0], metadata={"choices": values})


def read_parameters(spec: WorkloadSpec, kind: type[_P]) -> _P:
    """The parameters of a spec as a dataclass whose fields are `ranged` or `choice_of`."""
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    for name, value in spec.parameters.items():
        if name not in known:
            raise InputError(
                f"unknown parameter {name!r} of {spec.generator}; there are: {', '.join(known)}"
            )
        _check(name, value, known[name].default, known[name].metadata)
    return kind(**spec.parameters)


def _check(name: str, value: Any, default: Any, limits: Any) -> None:
    if "choices" in limits:
        if value not in limits["choices"]:
            raise InputError(f"{name} must be one of {', '.join(limits['choices'])}, not {value!r}")
        return
    low, high = limits["low"], limits["high"]
    kinds = (int,) if isinstance(default, int) else (int, float)
    if (
        not isinstance(value, kinds)
        or isinstance(value, bool)
        or not low <= value <= (np.inf if high is None else high)
    ):
        what = "a whole number" if isinstance(default, int) else "a number"
        bounds = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise InputError(f"{name} must be {what} {bounds}, not {value!r}")


def _check_order(smallest: int, largest: int, what: str) -> None:
    if smallest > largest:
        raise InputError(f"min_{what} is {smallest}, more than max_{what}, which is {largest}")


# -- drawing --------------------------------------------------------------------------------------


def offsets_of(sizes: np.ndarray) -> np.ndarray:
    """Where groups of these sizes begin and end, when they lie one after the other."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def zipf_weights(n: int, exponent: float) -> np.ndarray:
    """Weights of the ranks 1 … n, of which the first is 1."""
    return np.arange(1, n + 1, dtype=np.float64) ** -exponent


def draw_ranks(random: np.random.Generator, n: int, n_ranks: int, exponent: float) -> np.ndarray:
    """n ranks, counted from 0."""
    if exponent == 0:
        return random.integers(n_ranks, size=n)
    return _Drawer(random, zipf_weights(n_ranks, exponent)).draw(n)


class _Drawer:
    """Draws numbers in proportion to weights."""

    def __init__(self, random: np.random.Generator, weights: np.ndarray) -> None:
        self.random = random
        self.weights = weights
        self.is_uniform = bool((weights == weights[0]).all())
        self.cumulative = np.cumsum(weights)
        self.cumulative /= self.cumulative[-1]

    def draw(self, n: int) -> np.ndarray:
        if self.is_uniform:
            return self.random.integers(len(self.weights), size=n)
        return np.searchsorted(self.cumulative, self.random.random(n), side="right")

    def draw_distinct(self, sizes: np.ndarray) -> np.ndarray:
        """For each group, that many different numbers in ascending order; exact but slow.

        The numbers with the smallest exponential(weight) variables are those that drawing one
        after the other without replacement gives.
        """
        n = len(self.weights)
        keys = self.random.standard_exponential((len(sizes), n)) / self.weights
        chosen = np.zeros(keys.shape, np.bool_)
        np.put_along_axis(chosen, np.argsort(keys, axis=1), np.arange(n) < sizes[:, None], axis=1)
        return np.nonzero(chosen)[1]


def distinct_per_group(
    random: np.random.Generator, sizes: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """For each group, so many different numbers below len(weights), ascending; flat.

    Numbers are drawn in proportion to their weights; those that a group has already are drawn
    again. Where groups take a good part of all numbers, that would take long, and a slower method
    is the faster one.
    """
    support = np.flatnonzero(weights > 0).astype(np.int32)
    largest = int(sizes.max(initial=0))
    if largest > len(support):
        raise InputError(f"{largest} different attributes are wanted, there are {len(support)}")
    drawer = _Drawer(random, weights[support])
    offsets = offsets_of(sizes)
    out = np.empty(offsets[-1], np.int32)
    is_dense = len(support) <= 4 * largest
    step = max(1, _BLOCK // (len(support) if is_dense else max(1, largest)))
    for start in range(0, len(sizes), step):
        block = sizes[start : start + step]
        found = drawer.draw_distinct(block) if is_dense else _distinct_sparse(drawer, block)
        out[offsets[start] : offsets[start + len(block)]] = support[found]
    return out


def _distinct_sparse(drawer: _Drawer, sizes: np.ndarray) -> np.ndarray:
    n = len(drawer.weights)
    bases = np.repeat(np.arange(len(sizes)) * n, sizes)
    keys: np.ndarray = bases + drawer.draw(len(bases))
    keys.sort()
    slots = np.flatnonzero(_is_open(keys, bases))  # of the groups that have a number twice
    for _ in range(_ROUNDS):
        if not len(slots):
            break
        some = keys[slots]
        repeated = _repeated(some)
        some[repeated] = bases[slots[repeated]] + drawer.draw(len(repeated))
        some.sort()
        keys[slots] = some
        slots = slots[_is_open(some, bases[slots])]
    if len(slots):
        open_sizes, step = sizes[np.unique(bases[slots] // n)], max(1, _BLOCK // n)
        blocks = [open_sizes[start : start + step] for start in range(0, len(open_sizes), step)]
        keys[slots] = bases[slots] + np.concatenate([drawer.draw_distinct(b) for b in blocks])
    keys -= bases
    return keys


def _is_open(keys: np.ndarray, bases: np.ndarray) -> np.ndarray:
    return np.isin(bases, bases[_repeated(keys)])


def _repeated(keys: np.ndarray) -> np.ndarray:
    return np.flatnonzero(keys[1:] == keys[:-1]) + 1


# -- conjunctions, and disjunctions of them -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Parameters:
    n_attributes: int = ranged(20_000, 1)
    min_size: int = ranged(1, 1)
    max_size: int = ranged(12, 1)
    min_event_size: int = ranged(1, 0)
    max_event_size: int = ranged(60, 0)
    equality_ratio: float = ranged(0.6, 0, 1)
    cardinality: int = ranged(800, 1)
    attribute_zipf: float = ranged(0.0, 0, 10)
    value_zipf: float = ranged(0.0, 0, 10)
    max_clauses: int = ranged(1, 1)

    def __post_init__(self) -> None:
        _check_order(self.min_size, self.max_size, "size")
        _check_order(self.min_event_size, self.max_event_size, "event_size")


def op_index(spec: WorkloadSpec) -> Workload:
    """Conjunctions of `=`, `<=` and `>=` (OpIndex, sections 4.4 and 7.1); DNF (section 7.6)."""
    parameters = read_parameters(spec, _Parameters)
    weights = zipf_weights(parameters.n_attributes, parameters.attribute_zipf)
    random = spec.random("op_index subscriptions")
    owners = _owners(random, spec.n_subscriptions, parameters.max_clauses)
    offsets, attributes, lows, highs = _groups(random, len(owners), parameters, weights)
    subscriptions = FlatSubscriptions(
        owners, offsets, attributes, np.arange(len(lows) + 1, dtype=np.int64), lows, highs
    )
    domain = IntegerDomain(parameters.n_attributes, parameters.cardinality)
    return Workload(spec, domain, subscriptions, *_measured_and_training(spec, parameters))


def _owners(random: np.random.Generator, n_subscriptions: int, max_clauses: int) -> np.ndarray:
    numbers = np.arange(n_subscriptions, dtype=np.int64)
    if max_clauses == 1:
        return numbers
    return np.repeat(numbers, random.integers(1, max_clauses + 1, size=n_subscriptions))


def _groups(
    random: np.random.Generator, n_groups: int, parameters: _Parameters, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Groups of predicates on different attributes: offsets, attributes, lows, highs."""
    sizes = random.integers(parameters.min_size, parameters.max_size + 1, size=n_groups)
    attributes = distinct_per_group(random, sizes, weights)
    lows, highs = np.empty(len(attributes), np.int64), np.empty(len(attributes), np.int64)
    for start in range(0, len(attributes), _BLOCK):
        span = slice(start, start + _BLOCK)
        n = len(lows[span])
        operands = draw_ranks(random, n, parameters.cardinality, parameters.value_zipf) + 1
        # Two halves of what equality leaves, so that the operator is one draw.
        operator = random.random(n)
        is_equality = operator < parameters.equality_ratio
        is_at_most = ~is_equality & (operator < (1 + parameters.equality_ratio) / 2)
        lows[span] = np.where(is_at_most, 1, operands)
        highs[span] = np.where(is_at_most | is_equality, operands, parameters.cardinality)
    return offsets_of(sizes), attributes, lows, highs


def _measured_and_training(
    spec: WorkloadSpec, parameters: _Parameters
) -> tuple[FlatEvents, FlatEvents]:
    weights = zipf_weights(parameters.n_attributes, parameters.attribute_zipf)

    def events(stream: str, n: int) -> FlatEvents:
        random = spec.random(stream)
        smallest, largest = parameters.min_event_size, parameters.max_event_size
        sizes = random.integers(smallest, largest + 1, size=n)
        attributes = distinct_per_group(random, sizes, weights)
        ranks = draw_ranks(random, len(attributes), parameters.cardinality, parameters.value_zipf)
        return FlatEvents(offsets_of(sizes), attributes, ranks + 1)

    return (
        events("op_index events", spec.n_events),
        events("op_index training", spec.n_training_events),
    )


# -- conjunctions of disjunctions -----------------------------------------------------------------


class CnfWorkload(NamedTuple):
    """Subscriptions that are conjunctions of disjunctions.

    subscription s   groups group_offsets[s] … group_offsets[s + 1], all of which must hold
    group g          predicates predicate_offsets[g] … [g + 1], one of which must hold
    predicate p      lows[p] <= code of attributes[p] <= highs[p]
    """

    spec: WorkloadSpec
    domain: Domain
    group_offsets: np.ndarray  # int64
    predicate_offsets: np.ndarray  # int64
    attributes: np.ndarray  # int32
    lows: np.ndarray  # int64
    highs: np.ndarray  # int64
    events: FlatEvents
    training: FlatEvents

    @property
    def n_subscriptions(self) -> int:
        return len(self.group_offsets) - 1

    def to_dnf_size(self) -> np.ndarray:
        """How many conjunctions each subscription has when multiplied out; at most 2 ** 62."""
        sizes, starts = np.diff(self.predicate_offsets), self.group_offsets[:-1]
        exact = np.multiply.reduceat(sizes, starts)
        about = np.multiply.reduceat(sizes.astype(np.float64), starts)
        return np.where(about < 2.0**62, exact, 2**62)


@dataclass(frozen=True, slots=True)
class _CnfParameters(_Parameters):
    max_clauses: int = ranged(5, 1)


def cnf(spec: WorkloadSpec) -> CnfWorkload:
    """Conjunctions of 1 … max_clauses disjunctions (OpIndex, sections 6.1 and 7.6)."""
    parameters = read_parameters(spec, _CnfParameters)
    weights = zipf_weights(parameters.n_attributes, parameters.attribute_zipf)
    random = spec.random("op_index cnf")
    n_groups = random.integers(1, parameters.max_clauses + 1, size=spec.n_subscriptions)
    group_offsets = offsets_of(n_groups)
    groups = _groups(random, int(group_offsets[-1]), parameters, weights)
    domain = IntegerDomain(parameters.n_attributes, parameters.cardinality)
    events = _measured_and_training(spec, parameters)
    return CnfWorkload(spec, domain, group_offsets, *groups, *events)


def cnf_texts(
    workload: CnfWorkload, start: int = 0, stop: int | None = None
) -> Iterator[tuple[int, str]]:
    """(number, expression) of the subscriptions start … stop."""
    last = workload.n_subscriptions
    for number in range(start, last if stop is None else min(stop, last)):
        groups = range(int(workload.group_offsets[number]), int(workload.group_offsets[number + 1]))
        yield number, " and ".join(_group_text(workload, g) for g in groups)


def _group_text(workload: CnfWorkload, g: int) -> str:
    span = slice(int(workload.predicate_offsets[g]), int(workload.predicate_offsets[g + 1]))
    columns = (workload.attributes, workload.lows, workload.highs)
    predicates = zip(*(column[span].tolist() for column in columns), strict=True)
    texts = [_comparison_text(workload.domain, *predicate) for predicate in predicates]
    return texts[0] if len(texts) == 1 else f"({' or '.join(texts)})"


def _comparison_text(domain: Domain, attribute: int, low: int, high: int) -> str:
    name = name_text(domain.name(attribute))
    if low == high:
        return f"{name} = {literal_text(domain.value(attribute, low))}"
    if low == 1:
        return f"{name} <= {literal_text(domain.value(attribute, high))}"
    return f"{name} >= {literal_text(domain.value(attribute, low))}"


# -- prefixes -------------------------------------------------------------------------------------


class PrefixDomain(NamedTuple):
    """Attributes n0, n1, … with the integers 0 … cardinality - 1, then t0, t1, … with words."""

    n_numbers: int
    cardinality: int
    n_texts: int
    words: list[str]  # ascending

    @property
    def n_attributes(self) -> int:
        return self.n_numbers + self.n_texts

    def name(self, attribute: int) -> str:
        is_number = attribute < self.n_numbers
        return f"n{attribute}" if is_number else f"t{attribute - self.n_numbers}"

    def n_values(self, attribute: int) -> int:
        return self.cardinality if attribute < self.n_numbers else len(self.words)

    def value(self, attribute: int, code: int) -> int | str:
        return code - 1 if attribute < self.n_numbers else self.words[code - 1]


@dataclass(frozen=True, slots=True)
class _PrefixParameters:
    n_numbers: int = ranged(10_000, 0)
    n_texts: int = ranged(100, 1)
    n_words: int = ranged(10_000, 1, 1_000_000)
    prefix_ratio: float = ranged(0.5, 0, 1)
    prefix_length: int = ranged(3, 1)
    min_size: int = ranged(1, 1)
    max_size: int = ranged(12, 1)
    min_event_size: int = ranged(1, 0)
    max_event_size: int = ranged(60, 0)
    event_text_ratio: float = ranged(0.2, 0, 1)
    cardinality: int = ranged(800, 1)
    value_zipf: float = ranged(0.0, 0, 10)
    word_zipf: float = ranged(1.0, 0, 10)

    def __post_init__(self) -> None:
        _check_order(self.min_size, self.max_size, "size")
        _check_order(self.min_event_size, self.max_event_size, "event_size")

    def weights(self, text_ratio: float) -> np.ndarray:
        """Weights of all attributes, when so many of the draws are to be text attributes."""
        if not self.n_numbers:
            return np.ones(self.n_texts)
        shares = [(1 - text_ratio) / self.n_numbers, text_ratio / self.n_texts]
        return np.repeat(shares, [self.n_numbers, self.n_texts])

    @property
    def text_equality_ratio(self) -> float:
        """Share of the predicates that are equalities on text attributes."""
        return (1 - self.prefix_ratio) * self.n_texts / (self.n_numbers + self.n_texts)


def op_index_prefix(spec: WorkloadSpec) -> Workload:
    """Conjunctions of `=` and of prefixes of words (OpIndex, sections 6.2 and 7.7).

    A prefix is the interval of the words that begin with it. `subscription_texts` prints it as
    such, `prefix_texts` as `like 'abc%'`; on words of the domain they mean the same.
    """
    parameters = read_parameters(spec, _PrefixParameters)
    words = _words(spec.random("op_index words"), parameters.n_words)
    # Which word is popular has nothing to do with its place in the alphabet.
    by_rank = spec.random("op_index popular words").permutation(len(words)) + 1
    heads = words.astype(f"<U{parameters.prefix_length}")
    first = np.searchsorted(words, heads) + 1
    last = np.searchsorted(words, np.char.add(heads, "\U0010ffff"))

    random = spec.random("op_index prefix subscriptions")
    sizes = random.integers(parameters.min_size, parameters.max_size + 1, size=spec.n_subscriptions)
    text_ratio = parameters.prefix_ratio + parameters.text_equality_ratio
    attributes = distinct_per_group(random, sizes, parameters.weights(text_ratio))
    codes = _codes(random, attributes, parameters, by_rank)
    is_prefix = _is_prefix(spec, parameters, attributes)
    lows, highs = codes.copy(), codes
    lows[is_prefix], highs[is_prefix] = first[codes[is_prefix] - 1], last[codes[is_prefix] - 1]

    subscriptions = FlatSubscriptions(
        np.arange(spec.n_subscriptions, dtype=np.int64),
        offsets_of(sizes),
        attributes,
        np.arange(len(lows) + 1, dtype=np.int64),
        lows,
        highs,
    )
    domain = PrefixDomain(
        parameters.n_numbers, parameters.cardinality, parameters.n_texts, words.tolist()
    )
    return Workload(
        spec,
        domain,
        subscriptions,
        _prefix_events(spec, "op_index prefix events", spec.n_events, by_rank),
        _prefix_events(spec, "op_index prefix training", spec.n_training_events, by_rank),
    )


def _prefix_events(spec: WorkloadSpec, stream: str, n: int, by_rank: np.ndarray) -> FlatEvents:
    parameters, random = read_parameters(spec, _PrefixParameters), spec.random(stream)
    sizes = random.integers(parameters.min_event_size, parameters.max_event_size + 1, size=n)
    weights = parameters.weights(parameters.event_text_ratio)
    attributes = distinct_per_group(random, sizes, weights)
    codes = _codes(random, attributes, parameters, by_rank)
    return FlatEvents(offsets_of(sizes), attributes, codes)


def _codes(
    random: np.random.Generator,
    attributes: np.ndarray,
    parameters: _PrefixParameters,
    by_rank: np.ndarray,
) -> np.ndarray:
    is_text = attributes >= parameters.n_numbers
    n_texts = int(np.count_nonzero(is_text))
    codes = np.empty(len(attributes), np.int64)
    n_numbers = len(attributes) - n_texts
    codes[~is_text] = draw_ranks(random, n_numbers, parameters.cardinality, parameters.value_zipf)
    codes[~is_text] += 1
    codes[is_text] = by_rank[draw_ranks(random, n_texts, len(by_rank), parameters.word_zipf)]
    return codes


def _is_prefix(
    spec: WorkloadSpec, parameters: _PrefixParameters, attributes: np.ndarray
) -> np.ndarray:
    """Which predicates are prefixes. A stream of its own, so that the texts can ask again."""
    share = parameters.prefix_ratio / max(
        1e-300, parameters.prefix_ratio + parameters.text_equality_ratio
    )
    drawn = spec.random("op_index prefix operators").random(len(attributes)) < share
    return drawn & (attributes >= parameters.n_numbers)


def _words(random: np.random.Generator, n: int) -> np.ndarray:
    """n different made-up words of 3 … 12 letters, ascending."""
    length = 12
    found = np.empty(0, f"<U{length}")
    while len(found) < n:
        letters = draw_ranks(random, 2 * n * length, 26, 0.7).reshape(-1, length)
        points = (letters + ord("a")).astype("<u4")
        points[np.arange(length) >= random.integers(3, length + 1, size=(len(points), 1))] = 0
        found = np.union1d(found, points.view(f"<U{length}").ravel())
    return found[np.sort(random.permutation(len(found))[:n])]


def prefix_texts(
    workload: Workload, start: int = 0, stop: int | None = None
) -> Iterator[tuple[int, str]]:
    """(number, expression) of a workload of `op_index_prefix`, prefixes as `like 'abc%'`."""
    parameters = read_parameters(workload.spec, _PrefixParameters)
    flat, domain = workload.subscriptions, workload.domain
    is_prefix = _is_prefix(workload.spec, parameters, flat.attributes)
    last = flat.n_clauses
    for number in range(start, last if stop is None else min(stop, last)):
        texts = []
        for p in range(int(flat.clause_offsets[number]), int(flat.clause_offsets[number + 1])):
            attribute, low = int(flat.attributes[p]), int(flat.lows[p])
            name, value = name_text(domain.name(attribute)), domain.value(attribute, low)
            if is_prefix[p]:  # all words of the interval begin alike
                texts.append(f"{name} like '{str(value)[: parameters.prefix_length]}%'")
            else:
                texts.append(f"{name} = {literal_text(value)}")
        yield number, " and ".join(texts)
