"""Keyword queries and documents as expressions and events."""

from __future__ import annotations

import gzip
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchmill as mm
from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.lab.workloads.datasets import code_terms, text_lines
from matchmill.lab.workloads.flat import FlatEvents, Workload, event_dicts, subscription_texts
from matchmill.lab.workloads.query_log import query_log, split_word
from matchmill.lab.workloads.spec import WorkloadSpec
from tests.support.conformance_kit import brute_force

REPOSITORY = Path(__file__).parents[3]
TRACE = REPOSITORY.parent / "shared" / "data" / "sigmod2013" / "trace.txt.gz"
needs_trace = pytest.mark.skipif(
    not TRACE.is_file(), reason="the sample trace of the SIGMOD 2013 contest is not here"
)

SAMPLE = """\
s 1 0 0 2 boolean vldb
s 2 1 2 1 matching
m 1 9 boolean matching boosting boosting of the vldb expressions boolean
s 3 0 0 3 boosting boolean index
e 1
m 2 5 boosting boosting boolean vldb index
m 3 4 vldb in istanbul vldb
s 4 2 1 2 a vldb
m 4 6 a matching a day keeps mismatching
m 5 3 boolean expressions istanbul
e 2
"""


# -- for the tests of other workloads too ---------------------------------------------------------


def digest(workload: Workload) -> str:
    content = sha256()
    for array in (*workload.subscriptions, *workload.events, *workload.training):
        content.update(f"{array.dtype.str} {array.shape}".encode() + array.tobytes())
    return content.hexdigest()[:16]


def matches_of_arrays(workload: Workload) -> list[set[int]]:
    flat = workload.subscriptions
    table = ConjunctionTable(np.arange(flat.n_clauses), *flat[1:])
    by_event = brute_force(table, EventBatch(*workload.events))
    return [{int(flat.owners[c]) for c in clauses} for clauses in by_event]


def check_workload(workload: Workload) -> list[set[int]]:
    """The form that flat.py promises, and text that means the same; the matches by event."""
    flat, domain = workload.subscriptions, workload.domain
    assert [a.dtype.name for a in flat] == ["int64", "int64", "int32", "int64", "int64", "int64"]
    check_rising(flat.attributes, flat.clause_offsets)
    assert (flat.lows <= flat.highs).all()
    assert (np.diff(flat.interval_offsets) >= 1).all()
    apart = flat.lows[1:] > flat.highs[:-1] + 1
    apart[flat.interval_offsets[1:-1] - 1] = True
    assert apart.all()
    predicates = np.repeat(flat.attributes, np.diff(flat.interval_offsets))
    check_codes(domain, predicates, flat.highs)
    for events, n in (
        (workload.events, workload.spec.n_events),
        (workload.training, workload.spec.n_training_events),
    ):
        check_events(workload, events, n)
    found = matches_of_arrays(workload)
    texts = {number: mm.parse(text) for number, text in subscription_texts(workload)}
    assert sorted(texts) == sorted(set(flat.owners.tolist()))
    for event, numbers in zip(event_dicts(workload), found, strict=True):
        assert {n for n, e in texts.items() if mm.evaluate(e, event) is True} == numbers
    return found


def check_events(workload: Workload, events: FlatEvents, n: int) -> None:
    assert [a.dtype.name for a in events] == ["int64", "int32", "int64"]
    assert events.n_events == n
    check_rising(events.attributes, events.offsets)
    assert (events.codes >= 1).all()
    check_codes(workload.domain, events.attributes, events.codes)


def check_rising(attributes: np.ndarray, offsets: np.ndarray) -> None:
    assert offsets[0] == 0
    assert offsets[-1] == len(attributes)
    for start, end in zip(offsets.tolist(), offsets[1:].tolist(), strict=False):
        assert (np.diff(attributes[start:end]) > 0).all()


def check_codes(domain: Any, attributes: np.ndarray, codes: np.ndarray) -> None:
    n_values = np.array([domain.n_values(a) for a in range(domain.n_attributes)])
    assert (codes <= n_values[attributes]).all()
    for a in np.unique(attributes).tolist():
        values = [domain.value(a, code) for code in range(1, n_values[a] + 1)]
        assert values == sorted(set(values))


# -- the sample -----------------------------------------------------------------------------------


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "trace.txt"
    path.write_text(SAMPLE)
    return str(path)


def spec(path: str, n: int = 4, n_events: int = 5, n_training: int = 0, **more: Any) -> Any:
    return WorkloadSpec("query_log", n, n_events, n_training, parameters={"path": path, **more})


@pytest.mark.parametrize(
    ("word", "pair"),
    [
        ("boolean", ("boo", "lea")),
        ("vldb", ("vl", "db")),
        ("events", ("eve", "nts")),
        ("index", ("in", "dex")),
        ("to", ("t", "o")),
        ("a", ("a", "")),
    ],
)
def test_a_word_is_an_attribute_and_a_value(word: str, pair: tuple[str, str]) -> None:
    assert split_word(word) == pair


def texts_of(workload: Workload) -> set[str]:
    return {text for _, text in subscription_texts(workload)}


def test_split(trace: str) -> None:
    workload = query_log(spec(trace))
    check_workload(workload)
    assert texts_of(workload) == {
        "boo = 'lea' and vl = 'db'",
        "mat = 'chi'",
        "boo = 'sti' and \"in\" = 'dex'",  # `boolean` comes second
        "a = '' and vl = 'db'",
    }
    events = list(event_dicts(workload))
    # `boosting` as often as `boolean` in the first, more often in the second
    first = next(e for e in events if "exp" in e and "vl" in e)
    assert (first["boo"], first["mat"], first["t"]) == ("lea", "chi", "he")
    second = next(e for e in events if "in" in e and e["in"] == "dex")
    assert second == {"boo": "sti", "vl": "db", "in": "dex"}


def test_keywords_are_keyword_search(trace: str) -> None:
    workload = query_log(spec(trace, form="keyword"))
    found = check_workload(workload)
    assert "boolean = 1 and vldb = 1" in texts_of(workload)
    texts = dict(subscription_texts(workload))
    for event, numbers in zip(event_dicts(workload), found, strict=True):
        assert set(event.values()) == {1}
        for number, text in texts.items():
            words = [part.removesuffix(" = 1") for part in text.split(" and ")]
            assert (number in numbers) == all(word in event for word in words)


def test_frequencies(trace: str) -> None:
    workload = query_log(spec(trace, form="frequency"))
    check_workload(workload)
    assert {"boosting": 2, "boolean": 1, "vldb": 1, "index": 1} in list(event_dicts(workload))
    flat = workload.subscriptions
    most = [workload.domain.n_values(a) for a in flat.attributes.tolist()]
    assert flat.highs.tolist() == most
    check_workload(query_log(spec(trace, form="frequency", ranges="interval")))


def test_the_most_frequent_words_only(trace: str) -> None:
    workload = query_log(spec(trace, 3, 4, form="keyword", max_words=3))
    assert workload.domain.n_attributes == 3
    assert [workload.domain.name(a) for a in range(3)] == ["boolean", "boosting", "vldb"]
    check_workload(query_log(spec(trace, 3, 3, form="keyword", max_words=3)))
    assert query_log(spec(trace, form="keyword", max_words=0)).domain.n_attributes == 14


def test_lines_gzip_and_trace_are_the_same(trace: str, tmp_path: Path) -> None:
    lines = [line.split() for line in SAMPLE.splitlines()]
    (tmp_path / "q").write_text("\n".join(" ".join(w[5:]) for w in lines if w[0] == "s"))
    documents = "\n\n".join(", ".join(w[3:]).title() for w in lines if w[0] == "m")
    (tmp_path / "d.gz").write_bytes(gzip.compress(documents.encode()))
    (tmp_path / "trace.gz").write_bytes(gzip.compress(SAMPLE.encode()))
    parameters = {"queries": str(tmp_path / "q"), "documents": str(tmp_path / "d.gz")}
    by_line = query_log(WorkloadSpec("query_log", 4, 3, 2, parameters=parameters))
    zipped = query_log(spec(str(tmp_path / "trace.gz"), 4, 3, 2))
    plain = query_log(spec(trace, 4, 3, 2))
    assert digest(by_line) == digest(zipped) == digest(plain)


@pytest.mark.parametrize("form", ["split", "keyword", "frequency"])
@pytest.mark.parametrize("words", ["queries", "documents"])
def test_more_than_the_file_holds(trace: str, form: str, words: str) -> None:
    workload = query_log(spec(trace, 300, 40, 10, synthetic=True, form=form, words=words))
    check_workload(workload)
    assert workload.subscriptions.n_clauses == 300
    small = query_log(spec(trace, 4, 5, 0, form=form))
    if form != "frequency":
        assert texts_of(small) <= texts_of(workload)  # the file's own queries are among them
    assert len(texts_of(workload)) > 10


def test_documents_for_training_are_others(trace: str) -> None:
    workload = query_log(spec(trace, 4, 3, 2))
    both = [*event_dicts(workload), *event_dicts(workload, workload.training)]
    assert len({str(event) for event in both}) == 5


def test_these_bytes_stay(trace: str) -> None:
    """Figures that were measured once can be compared as long as this holds."""
    assert digest(query_log(spec(trace))) == "3df55fb74cbc8878"
    drawn = spec(trace, 500, 50, 20, synthetic=True, form="frequency", ranges="interval")
    assert digest(query_log(drawn)) == "d9bdb08cbef9618c"
    assert digest(query_log(drawn.changed(seed=2))) != digest(query_log(drawn))


def test_nothing_is_a_workload_too(trace: str) -> None:
    for form in ("split", "keyword", "frequency"):
        check_workload(query_log(spec(trace, 0, 0, form=form)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pth": "x"}, "no parameter 'pth'; there are: documents, form, max_words"),
        ({"form": "words"}, "form must be one of split, keyword, frequency"),
        ({"words": "all"}, "words must be one of"),
        ({"ranges": "some"}, "ranges must be one of"),
        ({"max_words": -1}, "max_words must be at least 0"),
        ({"max_words": "many"}, "must be a whole number"),
        ({"synthetic": 1}, "must be true or false"),
        ({"path": ""}, "give path"),
        ({"queries": "q"}, "give path"),
        ({"n_subscriptions": 5}, "there are 4 queries; synthetic = true"),
        ({"n_events": 6}, "but there are 5 documents \\(synthetic = true"),
    ],
)
def test_bad_parameters(trace: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(mm.InputError, match=message):
        query_log(spec(trace).changed(**changes))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("s 1 0 0 2 one\n", "line 1: expected"),
        ("s 1 0 0 1 one\nm 1 x one\n", "line 2: expected"),
        ("s 1 0 0 1 one\n\nq\n", "line 3: expected"),
        ("s 1\n", "line 1: expected"),
        ("s 1 0 0 1 one\n", "no document"),
        ("m 1 1 one\n", "no query"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad").write_text(text)
    with pytest.raises(mm.FileFormatError, match=message):
        query_log(spec(str(tmp_path / "bad")))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(mm.FileFormatError, match="cannot read"):
        list(text_lines(tmp_path / "missing"))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"some text\n" * 1000)[:40])
    with pytest.raises(mm.FileFormatError, match="cannot read"):
        list(text_lines(tmp_path / "cut.gz"))


def test_terms_are_numbered_in_order() -> None:
    coded = code_terms([("b", 7), ("a", "y"), ("b", 3), ("a", "x")])
    assert coded.domain == (["a", "b"], [["x", "y"], [3, 7]])
    assert coded.attributes.tolist() == [1, 0, 1, 0]
    assert coded.codes.tolist() == [2, 2, 1, 1]


# -- the trace ------------------------------------------------------------------------------------


@needs_trace
def test_the_sample_of_the_contest() -> None:
    whole = query_log(spec(str(TRACE), 1920, 960))
    sizes = np.diff(whole.events.offsets)
    assert whole.subscriptions.n_clauses == 1920
    assert np.median(sizes) == 93
    assert sizes.mean() == pytest.approx(202.3, abs=0.1)  # the paper's larger log has 93.07
    assert whole.domain.n_attributes == 3374
    few = query_log(spec(str(TRACE), 100, 15))
    check_workload(few)


@needs_trace
def test_keywords_of_the_contest() -> None:
    workload = query_log(spec(str(TRACE), 200, 20, form="keyword"))
    counts = Counter(map(len, matches_of_arrays(workload)))
    assert counts.total() == 20
    assert counts[0] < 20
