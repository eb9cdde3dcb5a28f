"""A catalogue of products with many sparse attributes: Debian's packages, and searches in it.

    event          {section: 'games', installed_size: 28591, interface: 'graphical',
                    n_depends: 27, needs:libc6: '2.34', needs:zlib1g: '1:1.2.0', …}
    subscription   needs:libc6 = '2.34' and installed_size <= 28591 and role in ('program', …)

In the manner of the eBay data of the OpIndex paper (section 7.1): ten thousand attributes and
more, of which a product has few, and very unequal in their frequencies. Attributes are fields of a
package (section, priority, maintainer, sizes in KiB, …), facets of its tags (`role::program` is
role = 'program'; of several tags of one facet the first counts) and each package it needs, with
the version wanted or 'any' (of alternatives the first counts).

Searches have `min_predicates` to `max_conditions` predicates. As in the paper an attribute that
occurs f times is chosen in proportion to the logarithm of f (of f + 1 here, so that each has a
chance). A share `derived_share` of the searches is made from a package and matches it; the others
combine attributes and values, by their frequencies, whether they occur together or not. Predicates
on numbers are ranges in a share `range_share`, on texts lists of two or three values in a share
`list_share`, else equalities. Measured and training events are different packages; searches come
from all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from matchmill.errors import InputError
from matchmill.lab.workloads.datasets import (
    code_terms,
    debian_packages,
    first_per_attribute,
    flat_events,
    joined_subscriptions,
    row_offsets,
    split_rows,
)
from matchmill.lab.workloads.flat import FlatEvents, FlatSubscriptions, TextDomain, Workload
from matchmill.lab.workloads.parameters import read_parameters
from matchmill.lab.workloads.spec import Parameter, WorkloadSpec

__all__ = ["DEFAULTS", "package_pairs", "products"]

DEFAULTS: dict[str, Parameter] = {
    "packages": "",  # a package index; this machine's if empty
    "needs": True,  # whether each package needed is an attribute
    "derived_share": 0.7,
    "range_share": 0.7,
    "list_share": 0.15,
    "min_predicates": 2,
    "max_conditions": 6,
}
_TEXT_FIELDS = ("Section", "Priority", "Architecture", "Multi-Arch", "Source")
_RANGE_WIDTH = 0.1  # at most, of an attribute's values, to each side
_BLOCK = 16_384  # searches made at once


def products(spec: WorkloadSpec) -> Workload:
    """Make the workload "products"."""
    options = read_parameters(spec, DEFAULTS)
    for name in ("derived_share", "range_share", "list_share"):
        if not 0 <= options[name] <= 1:
            raise InputError(f"{name} must be between 0 and 1, not {options[name]!r}")
    if not 1 <= options["min_predicates"] <= options["max_conditions"]:
        raise InputError("min_predicates must be at least 1 and at most max_conditions")
    catalogue = _read(options)
    events, training = (
        catalogue.take(rows) for rows in split_rows(spec, catalogue.n_products, "packages")
    )
    return Workload(spec, catalogue.domain, _searches(spec, catalogue, options), events, training)


# -- the catalogue --------------------------------------------------------------------------------


def package_pairs(record: dict[str, str], needs: bool = True) -> Iterator[tuple[str, int | str]]:
    """Return the attributes and values of a package; the first of an attribute counts."""
    for field in _TEXT_FIELDS:
        if record.get(field):
            yield field.lower().replace("-", "_"), record[field].partition(" (")[0]
    maintainer = record.get("Maintainer", "").partition("<")[0].strip()
    if maintainer:
        yield "maintainer", maintainer
    if record.get("Installed-Size", "").isdecimal():
        yield "installed_size", int(record["Installed-Size"])
    if record.get("Size", "").isdecimal():
        yield "size", -(-int(record["Size"]) // 1024)
    for tag in record.get("Tag", "").replace("\n", " ").split(","):
        facet, _, value = tag.strip().partition("::")
        if value:
            yield facet.lower(), value
    wanted = list(_wanted(record))
    yield "n_depends", len(wanted)
    if needs:
        yield from wanted


def _wanted(record: dict[str, str]) -> Iterator[tuple[str, str]]:
    for field in ("Pre-Depends", "Depends"):
        for alternatives in record.get(field, "").replace("\n", " ").split(","):
            first = alternatives.partition("|")[0]
            name, _, version = first.partition("(")
            if name.strip():
                version = version.partition(")")[0].strip(" <>=")
                yield f"needs:{name.strip().partition(':')[0]}", version or "any"


class _Catalogue(NamedTuple):
    """All products as events; the same pairs by attribute, to draw values by their frequency."""

    domain: TextDomain
    products: FlatEvents
    is_number: np.ndarray  # bool, of each attribute
    n_values: np.ndarray  # of each attribute
    value_offsets: np.ndarray  # attribute a has the codes values[value_offsets[a] … [a + 1]]
    values: np.ndarray

    @property
    def n_products(self) -> int:
        return self.products.n_events

    def occurrences(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For products, some more than once: places of their pairs, and which of the products."""
        offsets = self.products.offsets
        lengths = np.diff(offsets)[rows]
        row = np.repeat(np.arange(len(rows)), lengths)
        shift = offsets[:-1][rows] - (np.cumsum(lengths) - lengths)
        return np.arange(len(row)) + np.repeat(shift, lengths), row

    def take(self, rows: np.ndarray) -> FlatEvents:
        places, row = self.occurrences(rows)
        offsets = row_offsets(row, len(rows))
        return FlatEvents(offsets, self.products.attributes[places], self.products.codes[places])

    def value_of(self, attributes: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """Draw a code of each attribute, in proportion to its frequency."""
        starts = self.value_offsets[attributes]
        n = self.value_offsets[attributes + 1] - starts
        codes: np.ndarray = self.values[starts + (uniform * n).astype(np.int64)]
        return codes


def _read(options: dict[str, Any]) -> _Catalogue:
    numbers: dict[tuple[str, int | str], int] = {}
    lengths: list[int] = []
    terms: list[int] = []
    for record in debian_packages(options["packages"] or None):
        before = len(terms)
        pairs = package_pairs(record, options["needs"])
        terms.extend(numbers.setdefault(pair, len(numbers)) for pair in pairs)
        lengths.append(len(terms) - before)
    coded = code_terms(list(numbers))
    rows = np.repeat(np.arange(len(lengths)), lengths)
    of_pairs = np.array(terms, np.int64)
    products = flat_events(rows, coded.attributes[of_pairs], coded.codes[of_pairs], len(lengths))
    order = np.argsort(products.attributes, kind="stable")
    n_attributes = coded.domain.n_attributes
    return _Catalogue(
        coded.domain,
        products,
        np.array([isinstance(values[0], int) for values in coded.domain.values], bool),
        np.array([len(values) for values in coded.domain.values], np.int64),
        row_offsets(products.attributes[order], n_attributes),
        products.codes[order],
    )


# -- searches -------------------------------------------------------------------------------------


class _Points(NamedTuple):
    """Searches of equalities, before some are weakened."""

    rows: np.ndarray
    attributes: np.ndarray
    codes: np.ndarray


def _searches(
    spec: WorkloadSpec, catalogue: _Catalogue, options: dict[str, Any]
) -> FlatSubscriptions:
    rng = spec.random("searches")
    weights = np.log1p(np.diff(catalogue.value_offsets))
    sizes, attributes, counts, lows, highs = ([np.zeros(0, np.int64)] for _ in range(5))
    for start in range(0, spec.n_subscriptions, _BLOCK):
        n = min(_BLOCK, spec.n_subscriptions - start)
        points = _points(rng, catalogue, weights, n, options)
        predicate, low, high = _weakened(rng, catalogue, points, options)
        sizes.append(np.bincount(points.rows, minlength=n))
        attributes.append(points.attributes)
        counts.append(np.bincount(predicate, minlength=len(points.rows)))
        lows.append(low)
        highs.append(high)
    return joined_subscriptions(sizes, attributes, counts, lows, highs)


def _points(
    rng: np.random.Generator,
    catalogue: _Catalogue,
    weights: np.ndarray,
    n: int,
    options: dict[str, Any],
) -> _Points:
    fewest, most = options["min_predicates"], options["max_conditions"]
    which, size, product = rng.random((3, n))
    sizes = fewest + (size * (most - fewest + 1)).astype(np.int64)
    is_derived = which < options["derived_share"]
    derived, free = np.flatnonzero(is_derived), np.flatnonzero(~is_derived)

    # Weighted, without replacement: the pairs with the smallest exponential variates.
    chosen = (product[derived] * catalogue.n_products).astype(np.int64)
    places, row = catalogue.occurrences(chosen)
    times = -np.log1p(-rng.random(len(places))) / weights[catalogue.products.attributes[places]]
    order = np.lexsort((times, row))
    starts = np.searchsorted(row, np.arange(len(derived)))
    keep = order[np.arange(len(order)) - starts[row] < sizes[derived][row]]
    places = places[keep]

    # With replacement; repeated attributes are left out below.
    cumulative = np.cumsum(weights)
    free_rows = np.repeat(free, sizes[free])
    draws = rng.random((2, len(free_rows)))
    last = len(weights) - 1
    free_attributes = np.minimum(
        np.searchsorted(cumulative, draws[0] * cumulative[-1], side="right"), last
    )
    points = _Points(
        np.concatenate([derived[row[keep]], free_rows]),
        np.concatenate([catalogue.products.attributes[places], free_attributes]),
        np.concatenate(
            [catalogue.products.codes[places], catalogue.value_of(free_attributes, draws[1])]
        ),
    )
    kept = first_per_attribute(points.rows, points.attributes)
    return _Points(*(column[kept] for column in points))


def _weakened(
    rng: np.random.Generator, catalogue: _Catalogue, points: _Points, options: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the intervals of the predicates: predicate, first and last code, in order."""
    n = len(points.rows)
    chosen, kind, below, above, second, third = rng.random((6, n))
    number = catalogue.is_number[points.attributes]
    n_values = catalogue.n_values[points.attributes]
    lows, highs = points.codes.copy(), points.codes.copy()

    is_range = number & (chosen < options["range_share"])
    at_most, at_least = is_range & (kind < 0.4), is_range & (kind >= 0.4) & (kind < 0.7)
    between = is_range & (kind >= 0.7)
    lows[at_most] = 1
    highs[at_least] = n_values[at_least]
    reach = _RANGE_WIDTH * n_values
    lows[between] -= (below * reach).astype(np.int64)[between]
    highs[between] += (above * reach).astype(np.int64)[between]
    lows, highs = np.maximum(lows, 1), np.minimum(highs, n_values)

    listed = np.flatnonzero(~number & (chosen < options["list_share"]))
    three = listed[kind[listed] < 0.5]
    more = np.concatenate([listed, three])
    codes = catalogue.value_of(
        points.attributes[more], np.concatenate([second[listed], third[three]])
    )
    return _united(
        np.concatenate([np.arange(n), more]),
        np.concatenate([lows, codes]),
        np.concatenate([highs, codes]),
    )


def _united(
    predicates: np.ndarray, lows: np.ndarray, highs: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Intervals in order, those that touch made one. Only single values have company."""
    order = np.lexsort((lows, predicates))
    predicates, lows, highs = predicates[order], lows[order], highs[order]
    opens = np.ones(len(order), bool)
    opens[1:] = (predicates[1:] != predicates[:-1]) | (lows[1:] > highs[:-1] + 1)
    starts = np.flatnonzero(opens)
    ends = np.append(starts[1:], len(order))
    return predicates[starts], lows[starts], highs[ends - 1]
