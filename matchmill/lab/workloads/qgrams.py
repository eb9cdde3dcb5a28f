"""Strings as conjunctions of q-grams, after the real data of the BE-Tree paper (section 7.1).

    'string'  →  str tri rin ing  →  st = 'r' and tr = 'i' and ri = 'n' and in = 'g'

Strings are put in lower case, accents taken off, duplicates left out, and cut into words at
anything but a letter; a q-gram lies within a word. The paper does not say whether it does; two
words of six letters have 8 such grams, the size of author names in its Table 3, so it seems likely.
An attribute is the first q - 1 letters, its value the last one: 26 ** (q - 1) attributes with 26
values (the paper counts one attribute more). Of several grams with one attribute the first counts,
in expressions and events.

With match_probability = 0 subscriptions are strings, all predicates equalities, and events other
strings or the same: the columns "DBLP" of Table 3. Each event matches its own string, if that is
subscribed, and strings whose grams it has.

Else, as in the columns "Match Prob", 1 / match_probability *base expressions* are made, each of
`strings_per_event` strings. Events are bases. A subscription is derived from a base, in turn: a
predicate is kept with probability `keep`, and of the kept ones all but `equality_ratio` are
weakened, in the ways of `operators` (Table 2):

    low     in (…)                        up to 6 values, no two of them neighbours
    medium  also <=, >=, between          between: 12 % of the values
    high    also !=, not in (…)

What would come out as one value, or as all, becomes a list of two. So a subscription matches its
base, and others by chance. Chance is not taken off: with two names per base, 0.01 asked for gave
0.0111 and 0.0001 gave 0.0007. Training events are bases that are not measured, as far as there are
enough.

The strings are the names or descriptions of Debian's packages, of this machine's list or the file
`packages`; or the lines of the file `path`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import product
from string import ascii_lowercase
from typing import Any, NamedTuple

import numpy as np

from matchmill.errors import FileFormatError, InputError
from matchmill.lab.workloads.datasets import (
    debian_packages,
    equality_clauses,
    flat_events,
    joined_subscriptions,
    row_offsets,
    shuffled,
    split_rows,
    text_lines,
)
from matchmill.lab.workloads.flat import FlatEvents, FlatSubscriptions, TextDomain, Workload
from matchmill.lab.workloads.parameters import read_parameters
from matchmill.lab.workloads.spec import Parameter, WorkloadSpec

__all__ = ["DEFAULTS", "qgrams"]

DEFAULTS: dict[str, Parameter] = {
    "source": "descriptions",  # of packages: names, descriptions, maintainers
    "packages": "",  # a package index; this machine's if empty
    "path": "",  # instead of packages: a file with one string a line
    "q": 3,
    "match_probability": 0.0,  # 0: strings against strings
    "strings_per_event": 1,  # from here on: of derived subscriptions
    "keep": 0.5,
    "equality_ratio": 0.3,
    "operators": "medium",  # low, medium, high
}
_FIELDS = {"names": "Package", "descriptions": "Description", "maintainers": "Maintainer"}
_OPERATORS = {"low": 1, "medium": 4, "high": 6}  # how many of the ways in _weakened
_CARDINALITY = 26
_MAX_LISTED = 6
_RANGE_SHARE = 0.12
_BLOCK = 32_768  # subscriptions derived at once


def qgrams(spec: WorkloadSpec) -> Workload:
    """Make the workload "qgrams"."""
    options = _options(spec)
    texts = _texts(options)
    n_bases = 0
    if options["match_probability"]:
        n_bases = round(1 / options["match_probability"])
        texts = _bases(spec, texts, n_bases, options["strings_per_event"])
    grams = _grams(texts, options["q"])
    heads = product(ascii_lowercase, repeat=options["q"] - 1)
    letters = list(ascii_lowercase)
    domain = TextDomain(["".join(head) for head in heads], [letters] * 26 ** (options["q"] - 1))
    subscriptions = (
        _derived(spec, grams, options) if n_bases else _strings(spec, grams, options["source"])
    )
    events, training = (grams.take(rows) for rows in _event_rows(spec, grams.n_rows, n_bases > 0))
    return Workload(spec, domain, subscriptions, events, training)


def _options(spec: WorkloadSpec) -> dict[str, Any]:
    options = read_parameters(spec, DEFAULTS)
    for name, allowed in (("source", _FIELDS), ("operators", _OPERATORS)):
        if options[name] not in allowed:
            raise InputError(f"{name} must be one of {', '.join(allowed)}, not {options[name]!r}")
    for name in ("match_probability", "keep", "equality_ratio"):
        if not 0 <= options[name] <= 1:
            raise InputError(f"{name} must be between 0 and 1, not {options[name]!r}")
    if not 2 <= options["q"] <= 4:
        raise InputError(f"q must be 2, 3 or 4, not {options['q']}")
    if options["strings_per_event"] < 1:
        raise InputError("strings_per_event must be at least 1")
    if options["path"] and options["packages"]:
        raise InputError("give path or packages, not both")
    return options


# -- strings --------------------------------------------------------------------------------------


def _texts(options: dict[str, Any]) -> list[str]:
    """Return the distinct strings that have a gram, plain."""
    q = options["q"]
    plain = dict.fromkeys(_plain(text) for text in _raw(options))
    texts = [text for text in plain if any(len(word) >= q for word in text.split())]
    if not texts:
        raise FileFormatError(f"no string with a word of {q} letters in {options['path']}")
    return texts


def _raw(options: dict[str, Any]) -> Iterator[str]:
    if options["path"]:
        yield from text_lines(options["path"])
        return
    field = _FIELDS[options["source"]]
    for record in debian_packages(options["packages"] or None):
        text = record.get(field, "").partition("\n")[0]  # of a description the headline
        yield text.partition("<")[0] if field == "Maintainer" else text


_NOT_LETTERS = {code: " " for code in range(128) if chr(code) not in ascii_lowercase}


def _plain(text: str) -> str:
    """Words of the letters a … z, with one space between."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return " ".join(text.lower().translate(_NOT_LETTERS).split())


def _bases(spec: WorkloadSpec, texts: list[str], n_bases: int, n_strings: int) -> list[str]:
    if n_bases * n_strings > len(texts):
        raise InputError(
            f"match_probability {spec.parameters['match_probability']} takes {n_bases} bases of"
            f" {n_strings} strings, but there are {len(texts)} strings; raise it or give more"
        )
    order = shuffled(spec, "bases", len(texts))[: n_bases * n_strings].reshape(n_bases, n_strings)
    return [" ".join(texts[i] for i in row) for row in order.tolist()]


# -- grams ----------------------------------------------------------------------------------------


class _Grams(NamedTuple):
    """All strings as events."""

    offsets: np.ndarray
    attributes: np.ndarray
    codes: np.ndarray

    @property
    def n_rows(self) -> int:
        return len(self.offsets) - 1

    def occurrences(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For rows, some more than once: the places in the arrays, and which of the rows."""
        lengths = np.diff(self.offsets)[rows]
        row = np.repeat(np.arange(len(rows)), lengths)
        ends = np.cumsum(lengths)
        shift = self.offsets[:-1][rows] - (ends - lengths)
        return np.arange(len(row)) + np.repeat(shift, lengths), row

    def take(self, rows: np.ndarray) -> FlatEvents:
        places, row = self.occurrences(rows)
        offsets = row_offsets(row, len(rows))
        return FlatEvents(offsets, self.attributes[places], self.codes[places])


def _grams(texts: list[str], q: int) -> _Grams:
    characters = np.frombuffer("\n".join(texts).encode(), np.uint8)
    rows = np.cumsum(characters == ord("\n"))
    letters = characters.astype(np.int64) - ord("a")
    n = max(len(letters) - q + 1, 0)
    inside = np.ones(n, bool)
    head = np.zeros(n, np.int64)
    for k in range(q):
        letter = letters[k : k + n]
        inside &= letter >= 0  # what is no letter here sorts before them
        if k < q - 1:
            head = head * _CARDINALITY + letter
    codes = letters[q - 1 : q - 1 + n] + 1
    return _Grams(*flat_events(rows[:n][inside], head[inside], codes[inside], len(texts)))


def _event_rows(spec: WorkloadSpec, n_rows: int, reuse: bool) -> list[np.ndarray]:
    wanted = spec.n_events + spec.n_training_events
    if not reuse or wanted <= n_rows:
        return split_rows(spec, n_rows, "strings")
    # The probability sets the number of bases: measure each, and go round if they do not suffice.
    order = np.resize(shuffled(spec, "events", n_rows), wanted)
    return np.split(order, [spec.n_events])


# -- subscriptions --------------------------------------------------------------------------------


def _strings(spec: WorkloadSpec, grams: _Grams, source: str) -> FlatSubscriptions:
    if spec.n_subscriptions > grams.n_rows:
        raise InputError(
            f"{spec.n_subscriptions} subscriptions are asked for, but there are {grams.n_rows}"
            f" distinct strings ({source}); with a match_probability they are derived, any number"
        )
    rows = shuffled(spec, "subscriptions", grams.n_rows)[: spec.n_subscriptions]
    places, row = grams.occurrences(rows)
    return equality_clauses(row, grams.attributes[places], grams.codes[places], len(rows))


def _derived(spec: WorkloadSpec, grams: _Grams, options: dict[str, Any]) -> FlatSubscriptions:
    rng = spec.random("subscriptions")
    sizes, attributes, counts, lows, highs = ([np.zeros(0, np.int64)] for _ in range(5))
    for start in range(0, spec.n_subscriptions, _BLOCK):
        numbers = np.arange(start, min(start + _BLOCK, spec.n_subscriptions))
        places, row = grams.occurrences(numbers % grams.n_rows)
        draws = rng.random(len(places))
        least = np.minimum.reduceat(draws, np.searchsorted(row, np.arange(len(numbers))))
        kept = (draws < options["keep"]) | (draws == least[row])  # at least one
        places = places[kept]
        values = _weakened(rng, grams.codes[places], options)
        of_predicate, low, high = _intervals(values)
        sizes.append(np.bincount(row[kept], minlength=len(numbers)))
        attributes.append(grams.attributes[places])
        counts.append(np.bincount(of_predicate, minlength=len(places)))
        lows.append(low)
        highs.append(high)
    return joined_subscriptions(sizes, attributes, counts, lows, highs)


def _weakened(rng: np.random.Generator, codes: np.ndarray, options: dict[str, Any]) -> np.ndarray:
    """Draw sets of values as rows of 26 flags, each with its code in it."""
    n = len(codes)
    letters = np.arange(1, _CARDINALITY + 1)
    own = letters == codes[:, None]
    chosen, way, end = rng.random((3, n))
    listed = rng.random((_MAX_LISTED - 1, n))
    weaken = chosen >= options["equality_ratio"]
    way = np.where(weaken, (way * _OPERATORS[options["operators"]]).astype(np.int64), -1)

    # The value and up to five others, for `in`; without the value, for `not in`.
    n_listed = 1 + (end * (_MAX_LISTED - 1)).astype(np.int64)
    others = np.zeros((n, _CARDINALITY), bool)
    for k in range(_MAX_LISTED - 1):
        wanted = np.flatnonzero(n_listed > k)
        others[wanted, (listed[k][wanted] * _CARDINALITY).astype(np.int64)] = True
    others &= ~own
    _part_neighbours(own, others)
    at_most = codes + (end * (_CARDINALITY + 1 - codes)).astype(np.int64)
    at_least = codes - (end * codes).astype(np.int64)
    # Three values on average: 12 % of 26.
    mean_width = _RANGE_SHARE * _CARDINALITY
    width = 2 + (listed[0] * (2 * mean_width - 3)).astype(np.int64)
    first = np.clip(codes - (end * width).astype(np.int64), 1, _CARDINALITY + 1 - width)
    another = (codes + (listed[1] * (_CARDINALITY - 1)).astype(np.int64)) % _CARDINALITY + 1
    distant = (codes + 1 + (listed[1] * (_CARDINALITY - 3)).astype(np.int64)) % _CARDINALITY + 1
    ways = (
        own | others,
        letters <= at_most[:, None],
        letters >= at_least[:, None],
        (letters >= first[:, None]) & (letters < (first + width)[:, None]),
        letters != another[:, None],
        ~others,
    )
    values: np.ndarray = own
    for number, flags in enumerate(ways):
        values = np.where((way == number)[:, None], flags, values)
    # A single value would be an equality after all, and all values no condition.
    size = values.sum(axis=1)
    trivial = weaken & ((size == 1) | (size == _CARDINALITY))
    values[trivial] = (own | (letters == distant[:, None]))[trivial]
    return values


def _part_neighbours(own: np.ndarray, others: np.ndarray) -> None:
    """Take values out of lists so that no two are neighbours: those would be a range."""
    others[:, :-1] &= ~own[:, 1:]
    for letter in range(1, _CARDINALITY):
        others[:, letter] &= ~(own[:, letter - 1] | others[:, letter - 1])


def _intervals(flags: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the runs of true flags: their rows, first and last codes."""
    wide = np.zeros((len(flags), _CARDINALITY + 2), np.int8)
    wide[:, 1:-1] = flags
    steps = np.diff(wide, axis=1)
    rows, lows = np.nonzero(steps == 1)
    _, ends = np.nonzero(steps == -1)
    return rows, lows + 1, ends
