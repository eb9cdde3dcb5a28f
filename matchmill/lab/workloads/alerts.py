"""Subscriptions as people write them: prices, times, thresholds of sensors, ids, lists, mixtures.

    prices         price between 41.17 and 41.89                          log-normal, to the cent
    windows        at between timestamp '…' and timestamp '…'             to the second, in a year
    sensors        s3 >= 17.204 and s9 <= 88.311 and …                    20 to 30 of 60, all there
    ids            account = 4821093845203948571 [and amount >= 12.5]     64-bit, all distinct
    long_lists     item in (1,000 of 1,000,000) [and region = 3]          lists are shared
    sparse_ranges  a17 between … and a80 between …                        few attributes of many
    wide           w3 = 71 and w5 >= 0.123 …                              events of many attributes
    mixed          symbol = 'x042' and price between … and size >= 500    one of several forms

Each is a generator: a function from a spec to a workload, with a dataclass of its parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from matchmill.errors import InputError
from matchmill.lab.workloads.boxes import drawn_attributes
from matchmill.lab.workloads.columns import Column, ColumnDomain, flat_events, flat_subscriptions
from matchmill.lab.workloads.flat import Workload
from matchmill.lab.workloads.parameters import choice_of, ranged, read_record
from matchmill.lab.workloads.spec import WorkloadSpec

__all__ = ["ids", "long_lists", "mixed", "prices", "sensors", "sparse_ranges", "wide", "windows"]

_Random = np.random.Generator


class _Rows:
    """Rows (owner, attribute, low, high) that a generator collects."""

    def __init__(self) -> None:
        self._parts: list[tuple[np.ndarray, ...]] = []

    def add(self, owners: np.ndarray, attributes: Any, lows: Any, highs: Any) -> None:
        rows = np.broadcast_arrays(owners, attributes, lows, highs)
        self._parts.append(tuple(a.ravel().astype(np.int64) for a in rows))

    def workload(
        self,
        spec: WorkloadSpec,
        columns: list[Column],
        events: np.ndarray,
        training: np.ndarray,
    ) -> Workload:
        rows = [np.concatenate(part) for part in zip(*self._parts, strict=True)]
        return Workload(
            spec,
            ColumnDomain(tuple(columns)),
            flat_subscriptions(spec.n_subscriptions, *rows),
            flat_events(events),
            flat_events(training),
        )


def _clipped(values: np.ndarray, n_values: int) -> np.ndarray:
    codes: np.ndarray = np.clip(values, 1, n_values).astype(np.int64)
    return codes


# -- prices and times -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prices:
    """Parameters: mean width of a window, share of clauses that also ask for a volume."""

    width: float = ranged(0.002, 0, 1)
    with_volume: float = ranged(0.0, 0, 1)


_CENTS, _VOLUMES = 100_000, 1_000_000


def prices(spec: WorkloadSpec) -> Workload:
    """Make windows around prices, to the cent."""
    asked = read_record(spec, Prices)
    random, n = spec.random("subscriptions"), spec.n_subscriptions
    rows = _Rows()
    centres = _prices(random, n)
    half = centres * asked.width * (0.25 + 0.5 * random.random(n))
    lows = np.clip(centres - half, 2, _CENTS - 2)
    rows.add(np.arange(n), 0, lows, np.clip(centres + half, lows, _CENTS - 1))
    some = np.flatnonzero(random.random(n) < asked.with_volume)
    rows.add(some, 1, _volumes(random, len(some)), _VOLUMES)

    def events(stream: str, n: int) -> np.ndarray:
        random = spec.random(stream)
        return np.stack((_prices(random, n), _volumes(random, n)), 1)[:, : 1 + bool(len(some))]

    columns = [Column("price", _CENTS, decimals=2), Column("volume", _VOLUMES)]
    return rows.workload(
        spec,
        columns[: 1 + bool(len(some))],
        events("events", spec.n_events),
        events("training", spec.n_training_events),
    )


def _prices(random: _Random, n: int) -> np.ndarray:
    return _clipped(random.lognormal(np.log(5000), 0.8, n), _CENTS)


def _volumes(random: _Random, n: int) -> np.ndarray:
    return _clipped(random.lognormal(np.log(1000), 1.5, n), _VOLUMES)


@dataclass(frozen=True, slots=True)
class Windows:
    """Parameters: the longest window in seconds, number of places (0: without)."""

    longest: int = ranged(250_000, 60)
    n_places: int = ranged(0, 0)


_SECONDS = 365 * 86400


def windows(spec: WorkloadSpec) -> Workload:
    """Make windows of time to the second: a minute to days, more short ones than long ones."""
    asked = read_record(spec, Windows)
    random, n = spec.random("subscriptions"), spec.n_subscriptions
    rows = _Rows()
    lengths = 60 * np.exp(random.random(n) * np.log(asked.longest / 60))
    lows = np.clip(random.random(n) * _SECONDS, 2, _SECONDS - 2)
    rows.add(np.arange(n), 0, lows, np.clip(lows + lengths, 2, _SECONDS - 1))
    columns = [Column("at", _SECONDS, "timestamp")]
    if asked.n_places:
        places = random.integers(1, asked.n_places + 1, n)
        rows.add(np.arange(n), 1, places, places)
        columns.append(Column("place", asked.n_places, "text"))

    def events(stream: str, n: int) -> np.ndarray:
        random = spec.random(stream)
        times = random.integers(1, _SECONDS + 1, n)
        return np.stack((times, random.integers(1, max(2, asked.n_places + 1), n)), 1)[
            :, : len(columns)
        ]

    return rows.workload(
        spec, columns, events("events", spec.n_events), events("training", spec.n_training_events)
    )


# -- thresholds -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sensors:
    """Parameters: how many sensors, thresholds per rule, how likely each of them holds."""

    n_sensors: int = ranged(60, 1, 1000)
    fewest: int = ranged(20, 1, 1000)
    most: int = ranged(30, 1, 1000)
    likely: str = choice_of("low", "mixed", "true")


_LIKELY = {"low": 0.67, "mixed": 0.82, "true": 0.95}  # the mean of a threshold
_MILLI = 100_000  # 0 to 100 with three decimals


def sensors(spec: WorkloadSpec) -> Workload:
    """Make rules of many thresholds with three decimals; an event has all sensors."""
    asked = read_record(spec, Sensors)
    if not asked.fewest <= asked.most <= asked.n_sensors:
        raise InputError("fewest must be at most most, which must be at most n_sensors")
    random, n = spec.random("subscriptions"), spec.n_subscriptions
    rows = _Rows()
    attributes = drawn_attributes(random, n, asked.n_sensors, asked.most)
    sizes = random.integers(asked.fewest, asked.most + 1, n)
    chosen = np.arange(asked.most) < sizes[:, None]
    owners = np.repeat(np.arange(n), sizes)
    mean = _LIKELY[asked.likely]
    likely = np.clip(mean + (1 - mean) * (2 * random.random(len(owners)) - 1), 0.01, 0.99)
    above = random.random(len(owners)) < 0.5
    thresholds = _clipped(np.where(above, 1 - likely, likely) * _MILLI, _MILLI - 1)
    rows.add(
        owners,
        attributes[chosen],
        np.where(above, thresholds + 1, 1),
        np.where(above, _MILLI, thresholds),
    )

    def events(stream: str, n: int) -> np.ndarray:
        return spec.random(stream).integers(1, _MILLI + 1, (n, asked.n_sensors))

    columns = [Column(f"s{i}", _MILLI, decimals=3) for i in range(asked.n_sensors)]
    return rows.workload(
        spec, columns, events("events", spec.n_events), events("training", spec.n_training_events)
    )


# -- equality -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ids:
    """Parameters: share of events whose ids are asked for, share of clauses with an amount."""

    known: float = ranged(0.5, 0, 1)
    with_amount: float = ranged(0.3, 0, 1)


_IDS = 2**62


def ids(spec: WorkloadSpec) -> Workload:
    """Make equalities on 64-bit ids, practically all distinct: half on accounts, half on items."""
    asked = read_record(spec, Ids)
    random, n = spec.random("subscriptions"), spec.n_subscriptions
    rows = _Rows()
    values = random.integers(1, _IDS, n)
    side = random.integers(2, size=n)
    rows.add(np.arange(n), side, values, values)
    some = np.flatnonzero(random.random(n) < asked.with_amount)
    rows.add(some, 2, random.integers(2, _CENTS, len(some)), _CENTS)

    def events(stream: str, n: int) -> np.ndarray:
        random = spec.random(stream)
        codes = random.integers(1, _IDS, (n, 3))
        for attribute in (0, 1):
            known = values[side == attribute]
            chosen = random.random(n) < asked.known
            if len(known):
                codes[chosen, attribute] = random.choice(known, chosen.sum())
        codes[:, 2] = random.integers(1, _CENTS + 1, n)
        return codes

    columns = [Column("account", _IDS), Column("item", _IDS), Column("amount", _CENTS, decimals=2)]
    return rows.workload(
        spec, columns, events("events", spec.n_events), events("training", spec.n_training_events)
    )


@dataclass(frozen=True, slots=True)
class LongLists:
    """Parameters: values per list, different lists, items, regions that half of them ask for."""

    list_size: int = ranged(1000, 1)
    n_lists: int = ranged(500, 1)
    n_items: int = ranged(1_000_000, 1)
    n_regions: int = ranged(50, 1)


def long_lists(spec: WorkloadSpec) -> Workload:
    """Make `in` lists; a list is used by many subscriptions, as lists of products are."""
    asked = read_record(spec, LongLists)
    if asked.list_size * 2 > asked.n_items:
        raise InputError("n_items must be at least twice list_size")
    random, n = spec.random("subscriptions"), spec.n_subscriptions
    rows = _Rows()
    # Even codes only, so that no two values of a list touch and become a range.
    lists = np.stack(
        [
            np.sort(2 * random.choice(asked.n_items // 2, asked.list_size, replace=False) + 1)
            for _ in range(asked.n_lists)
        ]
    )
    chosen = lists[random.integers(asked.n_lists, size=n)]
    rows.add(np.arange(n)[:, None], 0, chosen, chosen)
    some = np.flatnonzero(random.random(n) < 0.5)
    regions = random.integers(1, asked.n_regions + 1, len(some))
    rows.add(some, 1, regions, regions)

    def events(stream: str, n: int) -> np.ndarray:
        random = spec.random(stream)
        items = random.choice(lists.ravel(), n)  # of some list
        return np.stack((items, random.integers(1, asked.n_regions + 1, n)), 1)

    columns = [Column("item", asked.n_items), Column("region", asked.n_regions)]
    return rows.workload(
        spec, columns, events("events", spec.n_events), events("training", spec.n_training_events)
    )


# -- many attributes ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SparseRanges:
    """Parameters: attributes, how many of them a clause and an event have, width of a range."""

    n_attributes: int = ranged(200, 1)
    n_used: int = ranged(3, 1)
    event_size: int = ranged(20, 1)
    width: float = ranged(0.3, 0, 1)


_MICRO = 1_000_000_000


def sparse_ranges(spec: WorkloadSpec) -> Workload:
    """Make few ranges per clause over many attributes, of which an event has few."""
    asked = read_record(spec, SparseRanges)
    if max(asked.n_used, asked.event_size) > asked.n_attributes:
        raise InputError("n_used and event_size must be at most n_attributes")
    random, n = spec.random("subscriptions"), spec.n_subscriptions
    rows = _Rows()
    attributes = drawn_attributes(random, n, asked.n_attributes, asked.n_used)
    lows = random.random(attributes.shape) * (1 - asked.width) * _MICRO
    highs = lows + asked.width * (0.5 + random.random(attributes.shape)) * _MICRO
    lows = np.clip(lows, 2, _MICRO - 2)
    rows.add(np.arange(n)[:, None], attributes, lows, np.clip(highs, lows, _MICRO - 1))

    def events(stream: str, n: int) -> np.ndarray:
        random = spec.random(stream)
        codes = np.zeros((n, asked.n_attributes), np.int64)
        chosen = drawn_attributes(random, n, asked.n_attributes, asked.event_size)
        np.put_along_axis(codes, chosen, random.integers(1, _MICRO + 1, chosen.shape), 1)
        return codes

    columns = [Column(f"a{i}", _MICRO, decimals=6) for i in range(asked.n_attributes)]
    return rows.workload(
        spec, columns, events("events", spec.n_events), events("training", spec.n_training_events)
    )


@dataclass(frozen=True, slots=True)
class Wide:
    """Parameters: attributes of an event, how many of them clauses ask for."""

    n_attributes: int = ranged(200, 20)
    n_asked: int = ranged(20, 4)


_KINDS = 100


def wide(spec: WorkloadSpec) -> Workload:
    """Make an equality and two ranges per clause; events have many attributes nobody asks for."""
    asked = read_record(spec, Wide)
    random, n = spec.random("subscriptions"), spec.n_subscriptions
    rows = _Rows()
    step, n_kinds = asked.n_attributes // asked.n_asked, asked.n_asked // 2
    equal = random.integers(n_kinds, size=n)
    values = random.integers(1, _KINDS + 1, n)
    rows.add(np.arange(n), equal * step, values, values)
    ranged_on = n_kinds + drawn_attributes(random, n, asked.n_asked - n_kinds, 2)
    lows = _clipped(random.random(ranged_on.shape) * 0.9 * _MILLI, _MILLI - 2) + 1
    highs = np.minimum(lows + 0.1 * _MILLI, _MILLI - 1)
    rows.add(np.arange(n)[:, None], ranged_on * step, lows, highs)

    def events(stream: str, n: int) -> np.ndarray:
        codes = spec.random(stream).integers(1, _MILLI + 1, (n, asked.n_attributes))
        codes[:, : n_kinds * step] %= _KINDS
        codes[:, : n_kinds * step] += 1
        return codes

    columns = [
        Column(f"w{i}", _KINDS) if i < n_kinds * step else Column(f"w{i}", _MILLI, decimals=3)
        for i in range(asked.n_attributes)
    ]
    return rows.workload(
        spec, columns, events("events", spec.n_events), events("training", spec.n_training_events)
    )


# -- mixtures -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mixed:
    """Parameters: symbols, and how their frequencies fall (Zipf's exponent)."""

    n_symbols: int = ranged(500, 1)
    zipf: float = ranged(0.7, 0, 10)


_SIZES, _VENUES = 10_000, 12


def mixed(spec: WorkloadSpec) -> Workload:
    """Make alerts of several forms on a symbol, a price, a size, a venue and a time."""
    asked = read_record(spec, Mixed)
    popularity = np.arange(1, asked.n_symbols + 1) ** -asked.zipf
    popularity /= popularity.sum()

    def symbols(random: _Random, n: int) -> np.ndarray:
        return random.choice(asked.n_symbols, n, p=popularity) + 1

    random, n = spec.random("subscriptions"), spec.n_subscriptions
    rows, everyone = _Rows(), np.arange(n)
    form = random.random(n)
    named = everyone[form < 0.85]  # the others watch all symbols
    values = symbols(random, len(named))
    rows.add(named, 0, values, values)
    centres = _prices(random, n)
    width = np.where(form < 0.85, 0.05, 0.002) * (0.5 + random.random(n))
    lows = np.clip(centres * (1 - width), 2, _CENTS - 2)
    rows.add(everyone, 1, lows, np.clip(centres * (1 + width), lows, _CENTS - 1))
    sized = everyone[random.random(n) < 0.5]
    rows.add(sized, 2, random.integers(2, _SIZES, len(sized)), _SIZES)
    placed = everyone[random.random(n) < 0.3]
    venues = random.integers(1, _VENUES + 1, (len(placed), 3))
    rows.add(placed[:, None], 3, venues, venues)
    timed = everyone[random.random(n) < 0.2]
    starts = random.integers(2, _SECONDS - 2, len(timed))
    rows.add(timed, 4, starts, _SECONDS)

    def events(stream: str, n: int) -> np.ndarray:
        random = spec.random(stream)
        return np.stack(
            (
                symbols(random, n),
                _prices(random, n),
                random.integers(1, _SIZES + 1, n),
                random.integers(1, _VENUES + 1, n),
                random.integers(1, _SECONDS + 1, n),
            ),
            1,
        )

    columns = [
        Column("symbol", asked.n_symbols, "text"),
        Column("price", _CENTS, decimals=2),
        Column("size", _SIZES),
        Column("venue", _VENUES, "text"),
        Column("at", _SECONDS, "timestamp"),
    ]
    return rows.workload(
        spec, columns, events("events", spec.n_events), events("training", spec.n_training_events)
    )
