"""Keyword queries as subscriptions, documents as events.

    form        query `boolean vldb`             document `boolean vldb boolean`
    split       boo = 'lea' and vl = 'db'        {boo: 'lea', vl: 'db'}
    keyword     boolean = 1 and vldb = 1         {boolean: 1, vldb: 1}
    frequency   boolean >= 2 and vldb >= 1       {boolean: 2, vldb: 1}

`split` is the transformation of the PS-Tree paper (section 7.1): of a word with more than six
characters the first three are the attribute and the next three the value, of a shorter one the
first half and the rest. `keyword` and `frequency` are those of the OpIndex paper (section 7.1),
which keeps the 50,000 most frequent words; `ranges` says whether a frequency has an upper end.

One value per attribute: words such as `boolean` and `boosting` share the attribute `boo`, and an
event holds one value of it. A document keeps the value of its most frequent word, the earlier of
two equally frequent ones. The paper is silent on it. Its events have 93.07 pairs on average; those
of the contest's small sample have 202, with a median of 93 (379 and 111 if all pairs were kept), so
the sample does not decide. A query keeps the first. So `split` matches fewer documents than
keyword search does where a value was displaced, and more where words agree in their first six
letters or where a query lost a word. `keyword` is keyword search by all words that are kept.

What is read: a trace of the SIGMOD 2013 contest (`path`), in which the beginning of a query counts
and not its end, nor its distance: words are compared exactly; or one query a line (`queries`) and
one document a line (`documents`). `synthetic` allows to ask for more than the files hold: lengths
are drawn from theirs, words by how often they occur, in `words` = "documents" (in how many of
them) or "queries". A log's few queries would else come back a thousand times each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from matchmill.errors import FileFormatError, InputError
from matchmill.kernels.csr import offsets_of
from matchmill.lab.workloads.datasets import (
    CodedTerms,
    code_terms,
    equality_clauses,
    first_per_attribute,
    flat_events,
    row_offsets,
    shuffled,
    split_rows,
    text_lines,
    weighted_draws,
    words_of,
)
from matchmill.lab.workloads.flat import FlatEvents, FlatSubscriptions, TextDomain, Workload
from matchmill.lab.workloads.parameters import read_parameters
from matchmill.lab.workloads.spec import Parameter, WorkloadSpec

__all__ = ["DEFAULTS", "query_log", "split_word"]

DEFAULTS: dict[str, Parameter] = {
    "path": "",  # a trace of queries and documents
    "queries": "",  # or two files of lines
    "documents": "",
    "form": "split",  # split, keyword, frequency
    "ranges": "at_least",  # of the form frequency: at_least, interval
    "max_words": 50_000,  # of the forms keyword and frequency: the most frequent, 0 for all
    "synthetic": False,  # draw what the files do not hold
    "words": "documents",  # what words are drawn from: documents, queries
}
_CHOICES = {
    "form": ("split", "keyword", "frequency"),
    "ranges": ("at_least", "interval"),
    "words": ("documents", "queries"),
}


def query_log(spec: WorkloadSpec) -> Workload:
    """Make the workload "query_log"."""
    options = read_parameters(spec, DEFAULTS)
    for name, allowed in _CHOICES.items():
        if options[name] not in allowed:
            raise InputError(f"{name} must be one of {', '.join(allowed)}, not {options[name]!r}")
    if options["max_words"] < 0:
        raise InputError("max_words must be at least 0, where 0 stands for all words")
    log = _read_log(options)
    if options["form"] != "split":
        log = _most_frequent(log, options["max_words"])
    queries = _queries(spec, log, options)
    documents = _documents(spec, log, options["synthetic"])
    if options["form"] == "split":
        return _split_form(spec, log.vocabulary, queries, documents)
    return _word_form(spec, log, options, queries, documents)


def split_word(word: str) -> tuple[str, str]:
    """Return the attribute and the value of a word.

    `boolean` is ('boo', 'lea'), `vldb` ('vl', 'db').
    """
    if len(word) > 6:
        return word[:3], word[3:6]
    half = max(1, len(word) // 2)  # an attribute's name is not empty
    return word[:half], word[half:]


# -- reading --------------------------------------------------------------------------------------


class _Rows(NamedTuple):
    """Words of queries or documents, as they come, by their numbers in the vocabulary."""

    offsets: np.ndarray
    words: np.ndarray

    @property
    def n_rows(self) -> int:
        return len(self.offsets) - 1

    @property
    def row_numbers(self) -> np.ndarray:
        return np.repeat(np.arange(self.n_rows), np.diff(self.offsets))

    def take(self, rows: np.ndarray) -> _Rows:
        lengths = np.diff(self.offsets)[rows]
        offsets = offsets_of(lengths)
        shift = np.repeat(self.offsets[:-1][rows] - offsets[:-1], lengths)
        return _Rows(offsets, self.words[np.arange(offsets[-1]) + shift])

    def renumbered(self, new_number: np.ndarray) -> _Rows:
        """Words by other numbers; those of number -1 are left out, and rows without a word."""
        words = new_number[self.words]
        _, rows = np.unique(self.row_numbers[words >= 0], return_inverse=True)
        n_rows = int(rows[-1]) + 1 if len(rows) else 0
        return _Rows(row_offsets(rows, n_rows), words[words >= 0])


class _Log(NamedTuple):
    vocabulary: list[str]
    queries: _Rows
    documents: _Rows


def _read_log(options: dict[str, Any]) -> _Log:
    by_line = (options["queries"], options["documents"])
    if bool(options["path"]) == any(by_line) or any(by_line) != all(by_line):
        raise InputError(
            "query_log reads files: give path, a trace of queries and documents, or both queries"
            " and documents, with one of them a line"
        )
    numbers: dict[str, int] = {}
    if options["path"]:
        queries, documents = _numbered_trace(options["path"], numbers)
    else:
        queries, documents = (
            _rows_of((words_of(line) for line in text_lines(path)), numbers) for path in by_line
        )
    log = _Log(list(numbers), queries, documents)
    for rows, what in ((log.queries, "query"), (log.documents, "document")):
        if not rows.n_rows:
            raise FileFormatError(f"there is no {what} in {options['path'] or by_line}")
    return log


def _rows_of(texts: Iterable[list[str]], numbers: dict[str, int]) -> _Rows:
    """Texts without a word are left out; new words get the next numbers."""
    lengths: list[int] = []
    words: list[int] = []
    for text in texts:
        if text:
            lengths.append(len(text))
            words += [numbers.setdefault(word, len(numbers)) for word in text]
    return _Rows(offsets_of(np.array(lengths, np.int64)), np.array(words, np.int64))


def _numbered_trace(path: str, numbers: dict[str, int]) -> tuple[_Rows, _Rows]:
    queries: list[list[str]] = []
    documents: list[list[str]] = []
    for kind, words in _trace(path):
        (queries if kind == "s" else documents).append(words)
    return _rows_of(queries, numbers), _rows_of(documents, numbers)


def _trace(path: str) -> Iterator[tuple[str, list[str]]]:
    """`s` with the words of a query and `m` with those of a document; endings are passed over."""
    for number, line in enumerate(text_lines(path), 1):
        kind, *fields = line.split() or ("",)
        if kind in ("", "e"):
            continue
        n_fields = {"s": 4, "m": 2}.get(kind, 0)
        words = fields[n_fields:]
        if not n_fields or fields[n_fields - 1 : n_fields] != [str(len(words))]:
            raise FileFormatError(
                f"{path}, line {number}: expected `s ID TYPE DISTANCE N words`, `e ID` or"
                f" `m ID N words` with N words, not {line[:60]!r}"
            )
        yield kind, words


def _most_frequent(log: _Log, n_words: int) -> _Log:
    """Only the n most frequent words (0: all), those of queries and documents counted together.

    They are renumbered in their order.
    """
    both = np.concatenate([log.queries.words, log.documents.words])
    counts = np.bincount(both, minlength=len(log.vocabulary))
    kept = np.argsort(-counts, kind="stable")[: n_words or None].tolist()
    kept.sort(key=log.vocabulary.__getitem__)
    new_number = np.full(len(counts), -1, np.int64)
    new_number[kept] = np.arange(len(kept))
    queries, documents = (rows.renumbered(new_number) for rows in (log.queries, log.documents))
    if not queries.n_rows:
        raise InputError(f"no query has any of the {n_words} most frequent words; raise max_words")
    return _Log([log.vocabulary[word] for word in kept], queries, documents)


# -- as many as asked for -------------------------------------------------------------------------


def _queries(spec: WorkloadSpec, log: _Log, options: dict[str, Any]) -> _Rows:
    """Draw a random part of the queries, or all of them and drawn ones after."""
    n_missing = spec.n_subscriptions - log.queries.n_rows
    if n_missing <= 0:
        rows = shuffled(spec, "queries", log.queries.n_rows)[: spec.n_subscriptions]
        return log.queries.take(rows)
    if not options["synthetic"]:
        raise InputError(
            f"{spec.n_subscriptions} subscriptions are asked for, but there are"
            f" {log.queries.n_rows} queries; synthetic = true draws more of their kind"
        )
    counts = _counts(log.queries, len(log.vocabulary))
    if options["words"] == "documents":
        counts = _document_frequency(log)
    return _joined(log.queries, _drawn(spec, "drawn queries", log.queries, counts, n_missing))


def _documents(spec: WorkloadSpec, log: _Log, synthetic: bool) -> list[_Rows]:
    """Measured and training documents."""
    n_missing = spec.n_events + spec.n_training_events - log.documents.n_rows
    documents = log.documents
    if n_missing > 0 and synthetic:
        counts = _counts(documents, len(log.vocabulary))
        drawn = _drawn(spec, "drawn documents", documents, counts, n_missing)
        documents = _joined(documents, drawn)
    what = "documents" + ("" if synthetic else " (synthetic = true draws more of their kind)")
    return [documents.take(rows) for rows in split_rows(spec, documents.n_rows, what)]


def _drawn(spec: WorkloadSpec, stream: str, rows: _Rows, counts: np.ndarray, n: int) -> _Rows:
    rng = spec.random(stream)
    every_row = np.ones(rows.n_rows, np.int64)
    offsets = offsets_of(np.diff(rows.offsets)[weighted_draws(rng, every_row, n)])
    return _Rows(offsets, weighted_draws(rng, counts, int(offsets[-1])))


def _joined(a: _Rows, b: _Rows) -> _Rows:
    offsets = np.concatenate([a.offsets, b.offsets[1:] + a.offsets[-1]])
    return _Rows(offsets, np.concatenate([a.words, b.words]))


def _counts(rows: _Rows, n_words: int) -> np.ndarray:
    return np.bincount(rows.words, minlength=n_words)


def _document_frequency(log: _Log) -> np.ndarray:
    """In how many documents each word occurs."""
    n_words = len(log.vocabulary)
    occurrences = np.unique(log.documents.row_numbers * n_words + log.documents.words)
    return np.bincount(occurrences % n_words, minlength=n_words)


# -- attribute and value in a word ----------------------------------------------------------------


def _split_form(
    spec: WorkloadSpec, vocabulary: list[str], queries: _Rows, documents: list[_Rows]
) -> Workload:
    numbers: dict[tuple[str, int | str], int] = {}
    term_of = np.array(
        [numbers.setdefault(split_word(word), len(numbers)) for word in vocabulary], np.int64
    )
    coded = code_terms(list(numbers))
    terms = term_of[queries.words]
    subscriptions = equality_clauses(
        queries.row_numbers, coded.attributes[terms], coded.codes[terms], queries.n_rows
    )
    events = [_most_frequent_values(part, term_of, coded) for part in documents]
    return Workload(spec, coded.domain, subscriptions, *events)


def _most_frequent_values(documents: _Rows, term_of: np.ndarray, coded: CodedTerms) -> FlatEvents:
    n_terms = len(coded.codes)
    keys, firsts, counts = np.unique(
        documents.row_numbers * n_terms + term_of[documents.words],
        return_index=True,
        return_counts=True,
    )
    order = np.lexsort((firsts, -counts))  # the most frequent one first, then the earliest
    rows, terms = keys[order] // n_terms, keys[order] % n_terms
    return flat_events(rows, coded.attributes[terms], coded.codes[terms], documents.n_rows)


# -- words as attributes --------------------------------------------------------------------------


def _word_form(
    spec: WorkloadSpec, log: _Log, options: dict[str, Any], queries: _Rows, documents: list[_Rows]
) -> Workload:
    """Make the workload of words: the vocabulary is sorted, so a word's number is its attribute."""
    rows, attributes = queries.row_numbers, queries.words
    keep = first_per_attribute(rows, attributes)
    rows, attributes = rows[keep], attributes[keep]
    events = [_frequencies(part) for part in documents]
    largest = np.ones(len(log.vocabulary), np.int64)
    if options["form"] == "keyword":
        events = [part._replace(codes=np.ones_like(part.codes)) for part in events]
        lows = highs = np.ones(len(rows), np.int64)
    else:
        in_log = _frequencies(log.documents)
        for part in (*events, in_log):
            np.maximum.at(largest, part.attributes, part.codes)
        lows, highs = _frequency_ranges(spec, in_log, attributes, largest, options["ranges"])
    numbers = {n: list(range(1, n + 1)) for n in set(largest.tolist())}
    subscriptions = FlatSubscriptions(
        np.arange(queries.n_rows, dtype=np.int64),
        row_offsets(rows, queries.n_rows),
        attributes.astype(np.int32),
        np.arange(len(rows) + 1, dtype=np.int64),
        lows,
        highs.copy(),
    )
    domain = TextDomain(log.vocabulary, [numbers[n] for n in largest.tolist()])
    return Workload(spec, domain, subscriptions, *events)


def _frequencies(documents: _Rows) -> FlatEvents:
    """Each document's words and how often they occur in it."""
    n_words = int(documents.words.max(initial=0)) + 1
    keys, counts = np.unique(documents.row_numbers * n_words + documents.words, return_counts=True)
    return flat_events(keys // n_words, keys % n_words, counts, documents.n_rows)


def _frequency_ranges(
    spec: WorkloadSpec, documents: FlatEvents, words: np.ndarray, largest: np.ndarray, ranges: str
) -> tuple[np.ndarray, np.ndarray]:
    """From a frequency that the word has in some document, to the most or to another such one."""
    rng = spec.random("ranges")
    order = np.argsort(documents.attributes, kind="stable")
    frequencies = np.append(documents.codes[order], 1)
    offsets = row_offsets(documents.attributes[order], len(largest))
    starts, n_documents = offsets[words], np.diff(offsets)[words]

    def drawn() -> np.ndarray:
        places = starts + (rng.random(len(words)) * n_documents).astype(np.int64)
        found: np.ndarray = np.where(n_documents > 0, frequencies[places], 1)
        return found

    first = drawn()
    if ranges == "at_least":
        return first, largest[words]
    second = drawn()
    return np.minimum(first, second), np.maximum(first, second)
