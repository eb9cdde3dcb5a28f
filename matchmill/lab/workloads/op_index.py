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
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from matchmill.kernels.csr import offsets_of
from matchmill.lab.workloads.flat import (
    Domain,
    FlatEvents,
    FlatSubscriptions,
    IntegerDomain,
    Workload,
)
from matchmill.lab.workloads.parameters import check_order, ranged, read_record
from matchmill.lab.workloads.sampling import (
    BLOCK,
    distinct_per_group,
    draw_ranks,
    zipf_weights,
)
from matchmill.lab.workloads.spec import WorkloadSpec
from matchmill.language.expression import literal_text, name_text

__all__ = [
    "CnfWorkload",
    "PrefixDomain",
    "cnf",
    "cnf_texts",
    "op_index",
    "op_index_prefix",
    "prefix_texts",
]

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
        check_order(self.min_size, self.max_size, "size")
        check_order(self.min_event_size, self.max_event_size, "event_size")


def op_index(spec: WorkloadSpec) -> Workload:
    """Conjunctions of `=`, `<=` and `>=` (OpIndex, sections 4.4 and 7.1); DNF (section 7.6)."""
    parameters = read_record(spec, _Parameters)
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
    """Draw groups of predicates on different attributes: offsets, attributes, lows, highs."""
    sizes = random.integers(parameters.min_size, parameters.max_size + 1, size=n_groups)
    attributes = distinct_per_group(random, sizes, weights)
    lows, highs = np.empty(len(attributes), np.int64), np.empty(len(attributes), np.int64)
    for start in range(0, len(attributes), BLOCK):
        span = slice(start, start + BLOCK)
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
        """Number of subscriptions."""
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
    parameters = read_record(spec, _CnfParameters)
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
    """Yield (number, expression) of the subscriptions start … stop."""
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
        """Number of attributes."""
        return self.n_numbers + self.n_texts

    def name(self, attribute: int) -> str:
        """Return the name of an attribute."""
        is_number = attribute < self.n_numbers
        return f"n{attribute}" if is_number else f"t{attribute - self.n_numbers}"

    def n_values(self, attribute: int) -> int:
        """Return how many values an attribute has."""
        return self.cardinality if attribute < self.n_numbers else len(self.words)

    def value(self, attribute: int, code: int) -> int | str:
        """Return the value that a code stands for."""
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
        check_order(self.min_size, self.max_size, "size")
        check_order(self.min_event_size, self.max_event_size, "event_size")

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
    parameters = read_record(spec, _PrefixParameters)
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
    parameters, random = read_record(spec, _PrefixParameters), spec.random(stream)
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
    """Make n different words of 3 … 12 letters, ascending."""
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
    """Yield (number, expression) of a workload of `op_index_prefix`, prefixes as `like 'abc%'`."""
    parameters = read_record(workload.spec, _PrefixParameters)
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
