"""OpIndex's workloads: the shares that were asked for, and text that means what the arrays mean."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

import matchmill as mm
from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.lab.workloads.flat import FlatEvents, Workload, event_dicts, subscription_texts
from matchmill.lab.workloads.op_index import (
    CnfWorkload,
    PrefixDomain,
    cnf,
    cnf_texts,
    distinct_per_group,
    op_index,
    op_index_prefix,
    prefix_texts,
)
from matchmill.lab.workloads.spec import WorkloadSpec
from tests.support.conformance_kit import brute_force


def small_spec(n_subscriptions: int = 200, n_events: int = 60, **parameters: Any) -> WorkloadSpec:
    return WorkloadSpec("tested", n_subscriptions, n_events, 20, parameters=parameters)


def digest(*arrays: np.ndarray) -> str:
    content = sha256()
    for array in arrays:
        content.update(f"{array.dtype.str} {array.shape}".encode() + array.tobytes())
    return content.hexdigest()[:16]


def workload_digest(workload: Workload) -> str:
    return digest(*workload.subscriptions, *workload.events, *workload.training)


def matches_of_arrays(workload: Workload) -> list[set[int]]:
    flat = workload.subscriptions
    table = ConjunctionTable(np.arange(flat.n_clauses), *flat[1:])
    by_event = brute_force(table, EventBatch(*workload.events))
    return [{int(flat.owners[c]) for c in clauses} for clauses in by_event]


def matches_of_texts(
    texts: Iterable[tuple[int, str]], events: Iterable[dict[str, Any]]
) -> list[set[int]]:
    parsed = [(number, mm.parse(text)) for number, text in texts]
    return [{n for n, e in parsed if mm.evaluate(e, event) is True} for event in events]


def check_events(events: FlatEvents, workload: Workload | CnfWorkload) -> None:
    """Attributes ascend within an event, codes are values of their attribute."""
    rising = np.diff(events.attributes) > 0
    rising[(events.offsets[1:-1] - 1)[np.diff(events.offsets)[1:] > 0]] = True
    assert rising.all()
    n_values = np.array([workload.domain.n_values(a) for a in events.attributes.tolist()])
    assert ((events.codes >= 1) & (events.codes <= n_values)).all()
    assert [a.dtype.name for a in events] == ["int64", "int32", "int64"]


def check_form(workload: Workload) -> None:
    """What flat.py says of all workloads."""
    flat = workload.subscriptions
    assert [a.dtype.name for a in flat] == ["int64", "int64", "int32", "int64", "int64", "int64"]
    rising = np.diff(flat.attributes) > 0
    rising[flat.clause_offsets[1:-1] - 1] = True
    assert rising.all()
    assert (flat.lows <= flat.highs).all()
    assert (np.diff(flat.interval_offsets) >= 1).all()
    assert len(workload.events.offsets) == workload.spec.n_events + 1
    assert len(workload.training.offsets) == workload.spec.n_training_events + 1
    check_events(workload.events, workload)
    check_events(workload.training, workload)


SMALL = {"n_attributes": 12, "max_size": 4, "max_event_size": 10, "cardinality": 9}
SMALL_PREFIX = {"n_numbers": 5, "n_texts": 4, "n_words": 300, "max_size": 3, "max_event_size": 9,
                "cardinality": 4, "event_text_ratio": 0.5}  # fmt: skip


def slope(counts: np.ndarray) -> float:
    """Of the counts of the ranks 1 … 30, on logarithmic axes."""
    ranks = np.arange(1, 31)
    return float(np.polyfit(np.log(ranks), np.log(counts[:30]), 1)[0])


# -- drawing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [0.0, 1.0, 6.0])
@pytest.mark.parametrize("n", [6, 60])  # the slow way, the quick way
def test_numbers_of_a_group_differ(n: int, exponent: float) -> None:
    random = np.random.default_rng(1)
    sizes = random.integers(0, 6, size=500)
    weights = np.arange(1, n + 1) ** -exponent
    weights[2] = 0
    drawn = distinct_per_group(random, sizes, weights)
    for group in np.split(drawn, np.cumsum(sizes)[:-1]):
        assert (np.diff(group) > 0).all()
    counts = np.bincount(drawn, minlength=n)
    assert counts[2] == 0
    assert (counts[0] > counts[-1]) == (exponent > 0) or n == 6


def test_both_ways_to_draw_agree() -> None:
    """Pairs out of 5 and, by the quick way, of these 5 among others of next to no weight."""
    sizes = np.full(20_000, 2)
    weights = np.array([8.0, 4, 2, 1, 1])
    slow = distinct_per_group(np.random.default_rng(1), sizes, weights)
    padded = np.concatenate((weights, np.full(20, 1e-12)))
    quick = distinct_per_group(np.random.default_rng(2), sizes, padded)
    np.testing.assert_allclose(
        np.bincount(slow) / len(slow), np.bincount(quick) / len(quick), atol=0.01
    )


def test_more_than_there_are_is_an_error() -> None:
    with pytest.raises(mm.InputError, match="4 different attributes are wanted, there are 3"):
        op_index(small_spec(n_attributes=3, max_size=4))


# -- conjunctions and DNF -------------------------------------------------------------------------


def test_defaults_are_as_asked() -> None:
    workload = op_index(small_spec(20_000, 500))
    check_form(workload)
    flat, domain = workload.subscriptions, workload.domain
    assert domain.n_attributes == 20_000
    sizes = np.diff(flat.clause_offsets)
    assert (sizes.min(), sizes.max()) == (1, 12)
    assert sizes.mean() == pytest.approx(6.5, abs=0.1)
    event_sizes = np.diff(workload.events.offsets)
    assert event_sizes.min() >= 1
    assert event_sizes.max() == 60
    assert event_sizes.mean() == pytest.approx(30.5, abs=2.5)
    counts = np.bincount(flat.attributes, minlength=20_000)
    assert counts.max() < 30  # 6.5 on average


@pytest.mark.parametrize("ratio", [0.0, 0.2, 1.0])
def test_operators_have_their_shares(ratio: float) -> None:
    # Operands at the ends make one operator look like another; 10,000 values make them rare.
    workload = op_index(small_spec(5_000, 0, equality_ratio=ratio, cardinality=10_000))
    flat = workload.subscriptions
    is_equality = flat.lows == flat.highs
    assert is_equality.mean() == pytest.approx(ratio, abs=0.01)
    assert (~is_equality & (flat.lows == 1)).mean() == pytest.approx((1 - ratio) / 2, abs=0.01)
    assert (~is_equality & (flat.highs == 10_000)).mean() == pytest.approx(
        (1 - ratio) / 2, abs=0.01
    )


@pytest.mark.parametrize("exponent", [0.4, 1.0])
def test_popularity_falls_by_the_exponent(exponent: float) -> None:
    spec = small_spec(40_000, 2_000, attribute_zipf=exponent, value_zipf=exponent,
                      n_attributes=1_000, equality_ratio=1.0, max_size=2, cardinality=500,
                      max_event_size=2)  # fmt: skip
    workload = op_index(spec)
    check_form(workload)
    flat = workload.subscriptions
    # An attribute occurs once in a clause, which flattens the head a little.
    assert slope(np.bincount(flat.attributes)) == pytest.approx(-exponent, abs=0.1)
    assert slope(np.bincount(flat.lows)[1:]) == pytest.approx(-exponent, abs=0.1)
    events = op_index(spec.changed(n_events=40_000)).events
    assert slope(np.bincount(events.attributes)) == pytest.approx(-exponent, abs=0.1)
    assert slope(np.bincount(events.codes)[1:]) == pytest.approx(-exponent, abs=0.1)


def test_long_events_of_skewed_attributes() -> None:
    workload = op_index(small_spec(
        10, 50, attribute_zipf=3.0, n_attributes=2_000, min_event_size=100, max_event_size=100
    ))  # fmt: skip
    check_form(workload)
    assert np.diff(workload.events.offsets).tolist() == [100] * 50


@pytest.mark.parametrize("max_clauses", [1, 4])
@pytest.mark.parametrize("exponent", [0.0, 1.0])
def test_text_means_what_the_arrays_mean(max_clauses: int, exponent: float) -> None:
    spec = small_spec(
        **SMALL, max_clauses=max_clauses, attribute_zipf=exponent, value_zipf=exponent
    )
    workload = op_index(spec)
    check_form(workload)
    owners = workload.subscriptions.owners
    assert sorted(set(owners.tolist())) == list(range(200))
    assert np.bincount(owners).max() == max_clauses
    expected = matches_of_arrays(workload)
    assert 100 < sum(map(len, expected)) < 6_000
    assert matches_of_texts(subscription_texts(workload), event_dicts(workload)) == expected


# -- CNF ------------------------------------------------------------------------------------------


def cnf_matches(workload: CnfWorkload) -> list[set[int]]:
    out = []
    for e in range(workload.events.n_events):
        codes = np.zeros(workload.domain.n_attributes, np.int64)
        span = slice(*workload.events.offsets[e : e + 2])
        codes[workload.events.attributes[span]] = workload.events.codes[span]
        code = codes[workload.attributes]
        holds = (workload.lows <= code) & (code <= workload.highs)
        groups = np.logical_or.reduceat(holds, workload.predicate_offsets[:-1])
        matched = np.logical_and.reduceat(groups, workload.group_offsets[:-1])
        out.append(set(np.flatnonzero(matched).tolist()))
    return out


def test_cnf_text_means_what_the_arrays_mean() -> None:
    workload = cnf(small_spec(**SMALL, max_clauses=3))
    check_events(workload.events, workload)
    expected = cnf_matches(workload)
    assert 500 < sum(map(len, expected)) < 9_000
    events = event_dicts(workload)  # type: ignore[arg-type] # has the same events and domain
    assert matches_of_texts(cnf_texts(workload), events) == expected
    assert [n for n, _ in cnf_texts(workload, 195, 400)] == [195, 196, 197, 198, 199]
    n_groups = np.diff(workload.group_offsets)
    assert (n_groups.min(), n_groups.max()) == (1, 3)


def test_cnf_multiplied_out() -> None:
    workload = cnf(small_spec(50, 0))
    sizes = np.split(np.diff(workload.predicate_offsets), workload.group_offsets[1:-1])
    assert workload.to_dnf_size().tolist() == [int(np.prod(s)) for s in sizes]
    assert np.diff(workload.group_offsets).max() == 5
    huge = cnf(small_spec(20, 0, max_clauses=200, min_size=12))
    assert huge.to_dnf_size().max() == 2**62


# -- prefixes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 3, 5])
def test_prefixes_as_like_and_as_intervals(length: int) -> None:
    workload = op_index_prefix(small_spec(**SMALL_PREFIX, prefix_length=length))
    check_form(workload)
    expected = matches_of_arrays(workload)
    assert sum(map(len, expected)) > 100
    events = list(event_dicts(workload))
    assert matches_of_texts(subscription_texts(workload), events) == expected
    texts = list(prefix_texts(workload))
    assert matches_of_texts(texts, events) == expected
    assert sum("like '" in text for _, text in texts) > 80
    assert list(prefix_texts(workload, 10, 12)) == texts[10:12]


@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
def test_prefixes_have_their_share(ratio: float) -> None:
    workload = op_index_prefix(small_spec(2_000, 300, prefix_ratio=ratio, max_size=4))
    texts = " and ".join(text for _, text in prefix_texts(workload)).split(" and ")
    assert np.mean(["like" in text for text in texts]) == pytest.approx(ratio, abs=0.03)
    domain = workload.domain
    assert isinstance(domain, PrefixDomain)
    assert domain.n_attributes == 10_100
    is_text = workload.events.attributes >= domain.n_numbers
    assert is_text.mean() == pytest.approx(0.2, abs=0.03)
    assert domain.words == sorted(set(domain.words))
    assert len(domain.words) == 10_000


def test_words_alone() -> None:
    workload = op_index_prefix(small_spec(100, 20, n_numbers=0))
    check_form(workload)
    assert all(text.startswith("t") for _, text in prefix_texts(workload))


def test_longer_prefixes_match_less() -> None:
    spec = small_spec(300, 100, **SMALL_PREFIX, prefix_ratio=1.0)
    sums = [
        sum(map(len, matches_of_arrays(op_index_prefix(spec.changed(prefix_length=n)))))
        for n in (1, 2, 4)
    ]
    assert sums[0] > 2 * sums[1] > 2 * sums[2] > 0


# -- the same bytes, and bad parameters -----------------------------------------------------------


def test_the_bytes_stay() -> None:
    """Figures that were measured on one seed can be compared as long as this holds."""
    skewed = small_spec(3_000, 50, attribute_zipf=1.0, value_zipf=0.8, max_clauses=3)
    found = [
        workload_digest(op_index(small_spec(3_000, 50))),
        workload_digest(op_index(skewed)),
        workload_digest(op_index_prefix(small_spec(3_000, 50))),
    ]
    workload = cnf(small_spec(3_000, 50))
    found.append(digest(*workload[2:7], *workload.events, *workload.training))
    assert found == ["b372973ed2cdbbb0", "2e38e3d1f4cbc394", "faf5ce3f24d84c9d", "90867c49f5093bb9"]
    assert workload_digest(op_index(small_spec(3_000, 50).changed(seed=2))) != found[0]


@pytest.mark.parametrize("generator", [op_index, op_index_prefix])
def test_nothing_is_a_workload_too(generator: Any) -> None:
    workload = generator(WorkloadSpec("tested", 0, 0, 0))
    assert (workload.subscriptions.n_clauses, workload.events.n_events) == (0, 0)
    assert list(subscription_texts(workload)) == []
    assert cnf(WorkloadSpec("tested", 0, 0, 0)).to_dnf_size().tolist() == []


@pytest.mark.parametrize("generator", [op_index, op_index_prefix, cnf])
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sice": 3}, "unknown parameter 'sice' of tested; there are: .*max_size"),
        ({"cardinality": 0}, "cardinality must be a whole number of at least 1, not 0"),
        ({"cardinality": 2.5}, "cardinality must be a whole number"),
        ({"max_size": True}, "max_size must be a whole number"),
        ({"value_zipf": -1}, "value_zipf must be a number from 0 to 10, not -1"),
        ({"value_zipf": "high"}, "value_zipf must be a number"),
        ({"value_zipf": float("nan")}, "value_zipf must be a number"),
        ({"min_size": 30}, "min_size is 30, more than max_size, which is 12"),
        ({"min_event_size": 90}, "min_event_size is 90, more than max_event_size"),
    ],
)
def test_bad_parameters(generator: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(mm.InputError, match=message):
        generator(small_spec(**parameters))
