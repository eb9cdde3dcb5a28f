"""Clauses to tables, and tables to new labels."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from matchmill.encoding.clause_encoder import ClauseEncoder, encode_clauses, relabel_table
from matchmill.encoding.conjunction_table import concatenate, empty_table, take_clauses
from matchmill.encoding.dimension_arrays import dimensions_from_arrays, dimensions_to_arrays
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events.dicts import DictEvents
from matchmill.index.scan import Scan
from matchmill.language.normal_form import Clause, disjunctions_of, normalize
from matchmill.language.parser import parse
from tests.support.conformance_kit import matched
from tests.support.generators import cases

pytestmark = pytest.mark.kernels


def clauses_of(*texts: str) -> list[Clause]:
    return [clause for text in texts for clause in normalize(parse(text)).clauses]


def encode(dimensions: Dimensions, *texts: str):  # type: ignore[no-untyped-def]
    clauses = clauses_of(*texts)
    return encode_clauses(dimensions, clauses, np.arange(len(clauses)))


def test_shape_of_a_table() -> None:
    encoded = encode(Dimensions(), "x = 1 and y in (2, 3)", "true", "x is null or x > 5")
    table = encoded.table
    assert table.clause_offsets.tolist() == [0, 2, 2, 3]
    assert table.dimensions.tolist() == [0, 1, 0]
    assert np.diff(table.interval_offsets).tolist() == [1, 2, 2]
    assert table.lows[3] == 0  # absent
    assert table.highs[3] == 0
    assert (table.lows <= table.highs).all()
    assert (table.n_clauses, table.n_predicates, table.n_dimensions) == (3, 3, 2)


def test_chunks_make_no_difference() -> None:
    some, _ = cases(3, 80, 1)
    clauses = [c for e in some for c in normalize(e).clauses]
    at_once = encode_clauses(Dimensions(), clauses, np.arange(len(clauses)))
    encoder = ClauseEncoder(Dimensions())
    for clause in clauses:
        encoder.add([clause])
        encoder._pack()
    in_pieces = encoder.finish(np.arange(len(clauses)))
    for a, b in zip(at_once.table, in_pieces.table, strict=True):
        assert a.tolist() == b.tolist()


def test_relabelling_keeps_every_answer() -> None:
    """Fill one gap until it is relabelled: old clauses in new labels match as before."""
    dimensions = Dimensions()
    first = encode(dimensions, "x > 0", "x >= 0", "x < 1", "x <= 1", "x = 1", "x != 1", "x is null")
    table, n_relabelled = first.table, 0
    high = 1.0
    events = [{"x": v} for v in (-1, 0, 1e-9, 0.5, 1, 2, "a", True)] + [{}]
    columns = DictEvents(events).columns()
    expected = matched(Scan.build(table).match_batch(encode_events(dimensions, columns)))
    for _ in range(100):
        high /= 2
        encoded = encode(dimensions, f"x < {high!r}")
        if encoded.relabellings:
            n_relabelled += 1
            assert encoded.dimensions is not dimensions  # readers keep the old one
            before = encode_events(dimensions, columns)
            assert matched(Scan.build(table).match_batch(before)) == expected
            table = relabel_table(table, encoded.relabellings)
        dimensions = encoded.dimensions
        batch = encode_events(dimensions, columns)
        assert matched(Scan.build(table).match_batch(batch)) == expected
    assert n_relabelled >= 2


def test_tables_can_be_cut_and_joined() -> None:
    some, happened = cases(5, 40, 20)
    clauses = [c for e in some for c in normalize(e).clauses]
    encoded = encode_clauses(Dimensions(), clauses, np.arange(len(clauses)))
    batch = encode_events(encoded.dimensions, DictEvents(happened).columns())
    half = len(clauses) // 2
    parts = [
        take_clauses(encoded.table, np.arange(half, len(clauses))),
        empty_table(),
        take_clauses(encoded.table, np.arange(half)),
    ]
    whole = matched(Scan.build(encoded.table).match_batch(batch))
    assert matched(Scan.build(concatenate(parts)).match_batch(batch)) == whole
    assert concatenate([]).n_clauses == 0


def test_dimensions_survive_being_saved() -> None:
    some, happened = cases(6, 60, 30)
    clauses = [c for e in some for c in normalize(e).clauses]
    encoded = encode_clauses(Dimensions(), clauses, np.arange(len(clauses)))
    again = dimensions_from_arrays(dimensions_to_arrays(encoded.dimensions))
    assert again.keys == encoded.dimensions.keys
    assert again.n_cuts == encoded.dimensions.n_cuts
    columns = DictEvents(happened).columns()
    one, two = encode_events(encoded.dimensions, columns), encode_events(again, columns)
    for a, b in zip(one, two, strict=True):
        assert a.tolist() == b.tolist()


def test_a_copy_of_dimensions_grows_alone() -> None:
    """A reader of the old dimensions hears nothing of what is added to a copy."""
    known = encode_clauses(Dimensions(), clauses_of("name = 'a'"), np.arange(1)).dimensions
    copy = known.copy()
    for text in ("name ilike '%x'", "name like '%yz%'", "name rlike 'q+'", "other = 3"):
        copy = encode_clauses(copy, clauses_of(text), np.arange(1)).dimensions
    columns = DictEvents([{"name": "a", "other": 3}]).columns()
    assert encode_events(known, columns).dimensions.tolist() == [0]
    assert len(encode_events(copy, columns).dimensions) > 2


# -- conjunctions of disjunctions -----------------------------------------------------------------

LITERALS = ("0", "-0.0", "3", "3.0", "2.5", "9007199254740993", "1e300", "'a'", "'3'", "''")


def random_conjunction(rng: Random) -> str:
    def comparison() -> str:
        op = rng.choice(("=", "!=", "<", "<=", ">", ">="))
        return f"{rng.choice('abcdefgh')} {op} {rng.choice(LITERALS)}"

    groups = [" or ".join(comparison() for _ in range(rng.randint(1, 3))) for _ in range(6)]
    return " and ".join(f"({group})" for group in groups)


def test_the_direct_way_makes_what_the_normal_form_does() -> None:
    rng, n_direct = Random(11), 0
    for max_clauses in (4, 64):
        for _ in range(400):
            parsed = parse(random_conjunction(rng))
            groups = disjunctions_of(parsed, max_clauses)
            if groups is None:
                continue
            normal = normalize(parsed, max_clauses, nested=True)
            assert (len(normal.clauses), normal.exact, normal.is_nested) == (1, True, True)
            if any(len({part.name for part in group}) < len(group) for group in groups):
                continue
            n_direct += 1
            one, other = ClauseEncoder(Dimensions()), ClauseEncoder(Dimensions())
            one.add(normal.clauses)
            other.add_disjunctions(groups)
            a, b = one.finish(np.zeros(1)), other.finish(np.zeros(1))
            assert a.dimensions.keys == b.dimensions.keys
            for x, y in zip(a.table, b.table, strict=True):
                assert np.array_equal(x, y)
    assert n_direct > 100


@pytest.mark.parametrize(
    "text",
    [
        "(a = 1 or b = 2) and (c = 3 or d = 4)",  # multiplied out
        "a = 1 or b = 2",
        " and ".join(f"(a = {n} or a > {n + 2})" for n in range(6)),
        " and ".join(["(a = 1 or b = 2 or c = 3)"] * 4 + ["d = 1", "d = 2"]),
        " and ".join(["(a = 1 or b in (2, 3) or c = 3)"] * 4),
        " and ".join(["(a = 1 or b = 2 or any(c) = 3)"] * 4),
        " and ".join(["(a = 1 or b = 2 or c = date '2020-01-01')"] * 4),
    ],
)
def test_other_forms_are_left_to_the_normal_form(text: str) -> None:
    assert disjunctions_of(parse(text)) is None
