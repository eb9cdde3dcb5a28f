"""Real text that workloads are made of: reading it, and numbering it.

    packages     Debian's package index, record by record
    lines        text files, one string or document a line, plain or gzip
    terms        distinct (attribute, value) pairs, numbered in their order:

        term                attribute   code
        ('boo', 'lea')          0         1
        ('boo', 'sts')          0         2      codes follow the order of values,
        ('vl', 'db')            1         1      attributes the order of names

    rows         term t occurs in row r: two arrays (r, t) make events or conjunctions

Files are read as streams; nothing here is downloaded. Package lists change from day to day, so a
workload made of them repeats exactly on the same list only.
"""

from __future__ import annotations

import gzip
import io
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from matchmill.errors import FileFormatError, InputError, MissingDependencyError
from matchmill.kernels.csr import offsets_of
from matchmill.lab.workloads.flat import FlatEvents, FlatSubscriptions, TextDomain
from matchmill.lab.workloads.spec import WorkloadSpec

__all__ = [
    "CodedTerms",
    "code_terms",
    "debian_packages",
    "equality_clauses",
    "first_per_attribute",
    "flat_events",
    "joined_subscriptions",
    "row_offsets",
    "shuffled",
    "split_rows",
    "text_lines",
    "weighted_draws",
    "words_of",
]

_GZIP_MAGIC = b"\x1f\x8b"
_WORD = re.compile(r"[^\W_]+")

NO_PACKAGES = (
    "this machine has no list of Debian packages; on Debian or Ubuntu run `apt-get update`,"
    " elsewhere give the file that `apt-cache dumpavail` or a Debian mirror's Packages.gz holds"
)


# -- parameters -----------------------------------------------------------------------------------


def joined_subscriptions(
    sizes: list[np.ndarray],
    attributes: list[np.ndarray],
    counts: list[np.ndarray],
    lows: list[np.ndarray],
    highs: list[np.ndarray],
) -> FlatSubscriptions:
    """Join blocks of one clause per subscription: sizes of clauses, of predicates, intervals."""
    n_predicates = np.concatenate(sizes)
    return FlatSubscriptions(
        np.arange(len(n_predicates), dtype=np.int64),
        np.append(0, np.cumsum(n_predicates)),
        np.concatenate(attributes).astype(np.int32),
        np.append(0, np.cumsum(np.concatenate(counts))),
        np.concatenate(lows),
        np.concatenate(highs),
    )


# -- files ----------------------------------------------------------------------------------------


def text_lines(path: str | Path) -> Iterator[str]:
    """Yield the lines of a file in UTF-8, plain or gzip, without their ends."""
    try:
        with open(path, "rb") as file:
            is_gzip = file.peek(2)[:2] == _GZIP_MAGIC
            content: Any = gzip.GzipFile(fileobj=file) if is_gzip else file
            with io.TextIOWrapper(content, encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    yield line.rstrip("\r\n")
    except (OSError, EOFError) as error:
        raise FileFormatError(f"cannot read {path}: {error}") from error


def words_of(line: str) -> list[str]:
    """Return the words of a text in lower case: runs of letters and digits."""
    return _WORD.findall(line.lower())


def debian_packages(path: str | Path | None = None) -> Iterator[dict[str, str]]:
    """Yield the records of a package index, field → text; lines of a longer field stay apart.

    Without a path it is what `apt-cache dumpavail` knows on this machine.
    """
    n_records = 0
    for record in _records(_dumpavail() if not path else text_lines(path)):
        n_records += 1
        yield record
    if not n_records:
        if path:
            raise FileFormatError(f"{path} holds no record of a package: no line `Package: …`")
        raise MissingDependencyError(NO_PACKAGES)


def _dumpavail() -> Iterator[str]:
    program = shutil.which("apt-cache")
    if program is None:
        raise MissingDependencyError(NO_PACKAGES)
    with subprocess.Popen(
        [program, "dumpavail"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                yield line.rstrip("\n")
        finally:
            process.kill()  # if the reader stops early; no harm if it has ended


def _records(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    record: dict[str, str] = {}
    field = ""
    for line in lines:
        if not line.strip():
            if "Package" in record:
                yield record
            record, field = {}, ""
        elif line[0] in " \t":
            if field:
                record[field] += "\n" + line.strip()
        else:
            field, _, text = line.partition(":")
            record[field] = text.strip()
    if "Package" in record:
        yield record


# -- draws ----------------------------------------------------------------------------------------
# All from `Generator.random`, whose stream NumPy has kept unchanged.


def shuffled(spec: WorkloadSpec, stream: str, n: int) -> np.ndarray:
    """Return the numbers 0 … n - 1 in random order."""
    return np.argsort(spec.random(stream).random(n), kind="stable")


def split_rows(spec: WorkloadSpec, n: int, what: str, stream: str = "events") -> list[np.ndarray]:
    """Rows of the measured events and of the training events: no row in both."""
    wanted = spec.n_events + spec.n_training_events
    if wanted > n:
        raise InputError(
            f"{wanted} events are asked for, {spec.n_training_events} of them for training,"
            f" but there are {n} {what}; ask for fewer"
        )
    return np.split(shuffled(spec, stream, n)[:wanted], [spec.n_events])


def weighted_draws(rng: np.random.Generator, counts: np.ndarray, n: int) -> np.ndarray:
    """Draw n places of an array of whole numbers, each as often as its number says."""
    cumulative = np.cumsum(counts, dtype=np.int64)
    places = (rng.random(n) * cumulative[-1]).astype(np.int64)
    drawn: np.ndarray = np.searchsorted(cumulative, places, side="right")
    return drawn


# -- terms and rows -------------------------------------------------------------------------------


class CodedTerms(NamedTuple):
    """What the distinct terms are in a workload; all arrays by the place in the list given."""

    domain: TextDomain
    attributes: np.ndarray  # int32
    codes: np.ndarray  # int64


def code_terms(terms: Sequence[tuple[str, int | str]]) -> CodedTerms:
    """Give numbers to distinct terms: attributes by their names, values of each by their order."""
    attributes = np.zeros(len(terms), np.int32)
    codes = np.zeros(len(terms), np.int64)
    names: list[str] = []
    values: list[Any] = []
    for place in sorted(range(len(terms)), key=terms.__getitem__):
        name, value = terms[place]
        if not names or names[-1] != name:
            names.append(name)
            values.append([])
        values[-1].append(value)
        attributes[place] = len(names) - 1
        codes[place] = len(values[-1])
    return CodedTerms(TextDomain(names, values), attributes, codes)


def row_offsets(rows: np.ndarray, n_rows: int) -> np.ndarray:
    """Where each row starts, of ascending row numbers, and the end."""
    return offsets_of(np.bincount(rows, minlength=n_rows))


def first_per_attribute(rows: np.ndarray, attributes: np.ndarray) -> np.ndarray:
    """Places in the order of (row, attribute), of several equal ones the first given."""
    order = np.lexsort((attributes, rows))  # stable
    row, attribute = rows[order], attributes[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = (row[1:] != row[:-1]) | (attribute[1:] != attribute[:-1])
    return order[is_first]


def flat_events(
    rows: np.ndarray, attributes: np.ndarray, codes: np.ndarray, n_rows: int
) -> FlatEvents:
    """Events; where an attribute occurs twice in a row, the first counts."""
    keep = first_per_attribute(rows, attributes)
    return FlatEvents(
        row_offsets(rows[keep], n_rows),
        attributes[keep].astype(np.int32),
        codes[keep].astype(np.int64),
    )


def equality_clauses(
    rows: np.ndarray, attributes: np.ndarray, codes: np.ndarray, n_rows: int
) -> FlatSubscriptions:
    """One conjunction of `attribute = value` a row; of an attribute that occurs twice the first."""
    events = flat_events(rows, attributes, codes, n_rows)
    return FlatSubscriptions(
        np.arange(n_rows, dtype=np.int64),
        events.offsets,
        events.attributes,
        np.arange(len(events.codes) + 1, dtype=np.int64),
        events.codes,
        events.codes.copy(),
    )
