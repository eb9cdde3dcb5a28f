"""The bulk reader against the parser: the same rows, reasons, texts, clauses and values."""

from __future__ import annotations

from itertools import islice, pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import matchmill as mm
from matchmill.encoding.bulk.decimals import NO_ANSWER, double_of, powers
from matchmill.encoding.bulk.scan import TextReader
from matchmill.encoding.clause_encoder import Encoded
from matchmill.encoding.conjunction_table import NONE
from matchmill.encoding.cut_points import StringRun
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.numbers import exact_number
from matchmill.encoding.texts import Texts, strings_to_texts, texts_to_strings
from matchmill.engine import loading
from matchmill.engine.loading import Load
from matchmill.engine.state import NewRows, Store
from matchmill.errors import MatchmillError
from matchmill.index.registry import index_class
from matchmill.io.subscription_chunks import RowBatches, RowChunk, RowItems
from matchmill.io.subscription_files import SubscriptionRow
from matchmill.language.evaluate import evaluate
from matchmill.settings import Settings
from tests.support.odd_texts import mixed_text, odd_ids, odd_text
from tests.support.tiers import first_cases

Outcome = tuple[list[Any], list[Any], NewRows | None]


def chunk_of(ids: list[Any], sources: list[Any]) -> RowChunk:
    return RowItems(map(SubscriptionRow, ids, sources)).take(len(ids))


def loaded(
    chunks: list[RowChunk],
    settings: Settings,
    *,
    in_bulk: bool,
    dialect: str = "matchmill",
) -> Outcome:
    load = Load(Store(index_class("scan"), settings), replace=False, dialect=dialect)
    rejected: list[Any] = []

    def reject(i: int, row: SubscriptionRow, error: MatchmillError) -> None:
        rejected.append((i, repr(row.id), error.summary))

    for chunk in chunks:
        if in_bulk:
            load.read_rows(chunk, reject)
        else:
            load.read_each(chunk, reject)
    return rejected, load.warnings, load.rows() if load.ids else None


def values_of(dimensions: Dimensions) -> dict[tuple[int, int], Any]:
    """Return what each label of a dimension stands for."""
    meanings: dict[tuple[int, int], Any] = {}
    for number, tables in enumerate(dimensions.tables):
        for region, table in tables.items():
            run = table.merged()
            if isinstance(run, StringRun):
                values: list[Any] = texts_to_strings(Texts(run.offsets, run.data))
            else:
                pairs = zip(run.whole.tolist(), run.part.tolist(), strict=True)
                values = [exact_number(whole, part) for whole, part in pairs]
            for label, value in zip(run.labels.tolist(), values, strict=True):
                for step in (-1, 0, 1):
                    meanings[number, label + step] = (region, value, step)
    return meanings


def clauses_of(encoded: Encoded, n_clauses: np.ndarray) -> list[Any]:
    """Return the clauses of each row, in any order, with the values that their keys stand for."""
    meanings = values_of(encoded.dimensions)
    table, keys = encoded.table, encoded.dimensions.keys
    out = []
    for c in range(table.n_clauses):
        clause = []
        for p in range(table.clause_offsets[c], table.clause_offsets[c + 1]):
            number = int(table.dimensions[p])
            bounds = range(table.interval_offsets[p], table.interval_offsets[p + 1])
            pairs = [(int(table.lows[k]), int(table.highs[k])) for k in bounds]
            assert pairs == sorted(pairs)
            assert all(a[1] + 1 < b[0] for a, b in pairwise(pairs))
            named = [tuple(meanings.get((number, key), key) for key in pair) for pair in pairs]
            quantifier = int(table.quantifiers[p]) if len(table.quantifiers) else 0
            clause.append((keys[number], quantifier, named))
        if any(quantifier > NONE for _, quantifier, _ in clause):
            out.append((int(table.clause_ids[c]), clause))  # nested: the order says what is joined
            continue
        numbers = [keys.index(dimension) for dimension, *_ in clause]
        assert numbers == sorted(numbers)
        kinds = [quantifier for _, quantifier, _ in clause]
        of_one = [n for n, kind in zip(numbers, kinds, strict=True) if not kind]
        assert len(of_one) == len(set(of_one))
        out.append((int(table.clause_ids[c]), sorted(clause, key=repr)))
    assert [number for number, _ in out] == list(range(len(out)))
    clauses = iter(clause for _, clause in out)
    return [sorted(islice(clauses, n), key=repr) for n in n_clauses.tolist()]


def check(
    chunks: list[RowChunk], settings: Settings | None = None, dialect: str = "matchmill"
) -> NewRows | None:
    settings = settings or Settings()
    quick, slow = (
        loaded(chunks, settings, in_bulk=in_bulk, dialect=dialect) for in_bulk in (True, False)
    )
    assert quick[0] == slow[0]
    assert quick[1] == slow[1]
    made, expected = quick[2], slow[2]
    if made is None or expected is None:
        assert made is expected
        return None
    assert list(made.identifiers) == list(expected.identifiers)
    assert texts_to_strings(made.texts) == texts_to_strings(expected.texts)
    np.testing.assert_array_equal(made.n_clauses, expected.n_clauses)
    np.testing.assert_array_equal(made.is_exact, expected.is_exact)
    found, wanted = (clauses_of(rows.encoded, rows.n_clauses) for rows in (made, expected))
    assert found == wanted
    return made


def compared(seed: int, n: int, make: Any) -> None:
    rng = Random(seed)
    texts = [make(rng) for _ in range(n)]
    ids: list[Any] = odd_ids(rng, n) if seed % 4 == 0 else list(range(n))
    half = n // 2
    check([chunk_of(ids[:half], texts[:half]), chunk_of(ids[half:], texts[half:])])


@pytest.mark.parametrize("seed", first_cases(3, range(100)))
def test_odd_texts(seed: int) -> None:
    compared(seed, 2000, odd_text)


@pytest.mark.parametrize("seed", first_cases(3, range(100)))
def test_texts_that_are_mostly_plain(seed: int) -> None:
    compared(seed, 2000, mixed_text)


PLAIN = [
    *("a = 1", "a=1", " a  =  -0.0 ", "a == .5 and b <> 'it''s'", "x < 10 and x > 3"),
    *("x >= 5 and x <= 5", "x.y in (3, 1, 2, 3)", "a NOT IN ('x', '')", "a not between 1 and 2"),
    *("a != true and b and not c", "a is null and b is not null", "a like 'ab%' and b = 'c'"),
    *("not (a = 1 or b in (2, 3))", "(a = 1 or a = 2) and (b < 3 or c > 'x' or d) and not e = 5"),
    *("a = 1 or b = 2 or a = 3", '"in" = 1', "date > 5 and e = 1e300", "größe > 5", "a"),
    *("a between date '2012-02-29' and date '2012-03-01'", "t > timestamp '2013-01-31 10:00Z'"),
    *("t = DATE'2013-01-31' and t != 'x'", "not t <= timestamp '2013-01-31T10:00:00.5+01:30'"),
    *("t >= date '2013-01-31' and t < date '2013-03-01'", "t = timestamp '2013-01-31' or t = 1"),
    *("a != 1 and a not in (2, 3)", "a = 9223372036854775807 and b < 1e19 and c > -1e19"),
]
NOT_PLAIN = [
    *("a = 1 and", "a < 3 and a > 5", "a between 5 and 1", "a = 1e400", "a = 5and b = 1", ""),
    *("a = 12345678901234567890", "a in ()", "a in (1, 'x')", "?a > 1", "a = 'x?'", "f(a) = 'x'"),
    *("a contains 1", "a ilike 'x%'", "a like '%x'", "1 < a", "and = 1", "a = 1 and b or c = 1"),
    *("a = 'x", "a li\u212ae 'x'", "\u212a > 1 and li\u212ae = 3", "a = date '2013-02-29'", "true"),
    *("a < true", "a = 1 and a = 'x'", "(a = 1 and b = 2) or c = 3", "a in cidr '10.0.0.0/8'"),
    *("t = timestamp '2013-01-31 24:00'", "t > date '2013-01-31 10:00'", "t < timestamp '2013'"),
    *("t > timestamp '2013-01-31 10:00:00.1234560'", "t = timestamp '0001-01-01 00:00+01'"),
    *("t in (date '2013-01-31')", "t > date '2013-01-31' and t < timestamp '2013-02-01'"),
    *('größe > 5 and "größe" = 5', "a and a", "not not a", "(a = 1) or b", "a = 1 or (b)"),
]


def test_named_texts() -> None:
    reader = TextReader(Settings())
    assert reader.read(strings_to_texts(PLAIN)).n_clauses.all()
    assert not reader.read(strings_to_texts(NOT_PLAIN)).n_clauses.any()
    sources = PLAIN + NOT_PLAIN
    check([chunk_of(list(range(len(sources))), sources)])


@pytest.mark.parametrize(
    "limits",
    [
        {"max_conditions": 2},
        {"max_values": 3},
        {"max_expression_length": 20},
        {"max_depth": 1},
        {"max_clauses": 2},
        {"max_pattern_length": 2},
    ],
)
def test_limits_hold(limits: dict[str, int]) -> None:
    rng = Random(7)
    sources = [*PLAIN, *(odd_text(rng, 0.1) for _ in range(200))]
    check([chunk_of(list(range(len(sources))), sources)], Settings(**limits))


def test_wide_texts_are_for_the_parser() -> None:
    many = " and ".join(f"a{i} = {i}" for i in range(40))
    several = " and ".join(f"(a{i} = 1 or b{i} = 2)" for i in range(6))
    check([chunk_of([1, 2, 3], [many, several, "a = 1"])])


def test_other_expressions_among_texts() -> None:
    lists = ["tags contains 'x' and a = 1", "tags contains none ('x', 'y')", "a = 3 and b < 'x'"]
    sources: list[Any] = [
        *lists,
        "a = 1",
        {"a": [1]},
        '{"b": ["x"]}',
        mm.attr("a") > 2,
        5,
        None,
        "b = 'y'",
        "c = (",
    ]
    check([chunk_of(list(range(len(sources))), sources)])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_tables_with_nulls_and_types(kind: pa.DataType) -> None:
    texts = ["a = 1", None, "", " b = 2 ", "c = ", "d = 'Zürich'"]
    batch = pa.record_batch(
        {
            "id": pa.array([1, 2, 3, 4, None, 6], pa.int16()),
            "text": pa.array(texts, kind),
            "name": pa.array(["u", "", "v", "w", None, "u"], kind).dictionary_encode()
            if kind != pa.string_view()
            else pa.array(["u", "", "v", "w", None, "u"], kind),
            "number": pa.array(range(6)),
            "bytes": pa.array([b"a = 1", b"b = \xff", b"", b"c", None, b"d"]).cast(pa.binary()),
        }
    )

    def chunks(names: tuple[str, str]) -> list[RowChunk]:
        reader = RowBatches(iter([batch, batch.slice(0, 0), batch.slice(1, 3)]), names)
        return [reader.take(4), reader.take(4), reader.take(4)]

    for names in (("id", "text"), ("name", "text"), ("id", "number"), ("number", "text")):
        check(chunks(names))
    assert chunks(("id", "text"))[0].columns() is not None


def test_texts_that_are_not_utf8_are_rejected_one_by_one() -> None:
    data = pa.array([b"a = 1", b"b = '\xff'", b"c = 3"])
    texts = pa.Array.from_buffers(pa.string(), 3, data.buffers())
    batch = pa.record_batch({"id": pa.array([1, 2, 3]), "text": texts})
    made = check([RowBatches(iter([batch]), ("id", "text")).take(9)])
    assert made is not None
    assert list(made.identifiers) == [1, 3]


def test_labels_that_change_in_a_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that halve a gap again and again: the labels of all others change."""
    engines = [mm.Engine(), mm.Engine()]
    n_relabelled = 0
    step, values = 1.0, [0, 1, 2, 3, 0.5]
    for n in range(12):
        rows = [(f"{n} range", "a between 0 and 1 and b = 1"), (f"{n} bad", "a =")]
        for i in range(6):
            step /= 2
            rows.append((f"{n} {i}", f"a > {step!r} and b = {i}"))
            rows.append((f"{n} {i} like", f"a < {step * 1.25!r} and c like '%x'"))
            values += [step, step * 1.25, step * 1.1]
        for engine, many in zip(engines, (1, 1 << 60), strict=True):
            monkeypatch.setattr(loading, "_MANY", many)
            before = engine._store.state.dimensions
            report = engine.subscribe_many(rows, replace=True)
            assert (report.n_accepted, report.n_rejected) == (len(rows) - 1, 1)
            n_relabelled += n > 0 and engine._store.state.dimensions is not before
    assert n_relabelled >= 2  # each engine once
    for value in values:
        for b in range(6):
            event = {"a": value, "b": b, "c": "xx"}
            expected = {row.id for row in engines[1].subscriptions() if _holds(row, event)}
            assert engines[0].match(event) == engines[1].match(event) == expected


def _holds(row: Any, event: dict[str, Any]) -> bool:
    return evaluate(mm.parse(row.expression), event) is True


def test_decimals_are_the_nearest_doubles() -> None:
    rng = Random(11)
    tables = powers()
    n_decided = 0
    for _ in range(3000):
        digits = rng.choice((rng.randrange(1 << 63), rng.randrange(1 << 54), rng.randrange(10**6)))
        exponent = rng.choice((rng.randint(-340, 308), rng.randint(-30, 30), 0))
        value = double_of(digits, exponent, *tables)
        if value != NO_ANSWER:
            n_decided += 1
            assert value == float(f"{digits}e{exponent}")
    assert n_decided > 2000


@pytest.mark.kernels
def test_kernels_read_what_the_parser_reads() -> None:
    rng = Random(3)
    sources = [*PLAIN, *NOT_PLAIN, *(odd_text(rng, 0.2) for _ in range(60))]
    check([chunk_of(list(range(len(sources))), sources)])
