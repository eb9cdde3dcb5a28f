"""Two-sided ranges on continuous numbers: boxes, of which no two have a bound in common.

    a0 between 12.3456789 and 17.2938475 and a1 between …          events are points

Attributes have 0 to 360 with seven decimals, so that constants are practically all distinct. The
widths of a box are drawn so that about `share` of the boxes hold for an event.

shape        centres                        widths
uniform      anywhere                       0.5 to 1.5 of the mean
normal       around the middle, as events   0.5 to 1.5 of the mean
correlated   along a diagonal, as events    0.5 to 1.5 of the mean
heavy        anywhere                       Pareto: most are small, some cover everything
one_huge     anywhere                       1 of 64 covers 90 % of each attribute
drift        anywhere; events wander from one end to the other, training is at its beginning

`n_used` attributes of all are drawn for each box; `n_intervals` ranges of one predicate lie apart;
`absent` is the share of predicates that also accept absence, and of values that events lack.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matchmill.lab.workloads.columns import Column, ColumnDomain, flat_events, flat_subscriptions
from matchmill.lab.workloads.flat import FlatSubscriptions, Workload
from matchmill.lab.workloads.parameters import choice_of, ranged, read_record
from matchmill.lab.workloads.spec import WorkloadSpec

__all__ = ["Boxes", "boxes", "drawn_attributes"]

_N_VALUES = 3_600_000_000
_HUGE = 64  # one of so many boxes
_SPREAD = 0.02  # of correlated centres around the diagonal


@dataclass(frozen=True, slots=True)
class Boxes:
    """The parameters of this generator."""

    n_dimensions: int = ranged(2, 1, 1000)
    n_used: int = ranged(0, 0, 1000)  # 0: all of them
    share: float = ranged(0.001, 0, 1)
    shape: str = choice_of("uniform", "normal", "correlated", "heavy", "one_huge", "drift")
    n_intervals: int = ranged(1, 1, 16)
    absent: float = ranged(0.0, 0, 1)


def boxes(spec: WorkloadSpec) -> Workload:
    """Make the workload of a spec whose parameters are those of `Boxes`."""
    asked = read_record(spec, Boxes)
    columns = tuple(
        Column(f"a{d}", _N_VALUES, decimals=7, first=-1) for d in range(asked.n_dimensions)
    )
    return Workload(
        spec,
        ColumnDomain(columns),
        _subscriptions(spec.random("subscriptions"), asked, spec.n_subscriptions),
        flat_events(_points(spec.random("events"), asked, spec.n_events, (0.0, 1.0))),
        flat_events(_points(spec.random("training"), asked, spec.n_training_events, (0.0, 0.0))),
    )


def drawn_attributes(random: np.random.Generator, n: int, n_all: int, n_used: int) -> np.ndarray:
    """Return n rows of n_used different attributes."""
    if n_used == n_all:
        return np.tile(np.arange(n_all), (n, 1))
    rows = [
        np.argpartition(random.random((min(4096, n - start), n_all)), n_used - 1)[:, :n_used]
        for start in range(0, n, 4096)
    ]
    return np.concatenate([np.empty((0, n_used), np.int64), *rows])


def _subscriptions(random: np.random.Generator, asked: Boxes, n: int) -> FlatSubscriptions:
    n_used = asked.n_used or asked.n_dimensions
    shape = (n, n_used, asked.n_intervals)
    attributes = drawn_attributes(random, n, asked.n_dimensions, n_used)
    mean = asked.share ** (1 / n_used) / asked.n_intervals
    widths = _widths(random, asked, shape, mean)
    centres = _centres(random, asked, widths)
    lows = _inside(random, centres - widths / 2).ravel()
    highs = np.maximum(lows, _inside(random, centres + widths / 2).ravel())
    owners = np.repeat(np.arange(n), n_used * asked.n_intervals)
    attributes = np.repeat(attributes.ravel(), asked.n_intervals)
    if asked.absent:
        some = np.repeat(random.random(n * n_used) < asked.absent, asked.n_intervals)
        zeros = np.zeros(some.sum(), np.int64)
        owners, attributes = (
            np.append(owners, owners[some]),
            np.append(attributes, attributes[some]),
        )
        lows, highs = np.append(lows, zeros), np.append(highs, zeros)
    return flat_subscriptions(n, owners, attributes, lows, highs)


def _centres(random: np.random.Generator, asked: Boxes, widths: np.ndarray) -> np.ndarray:
    if asked.shape == "normal":
        return random.normal(0.5, 0.15, widths.shape)
    if asked.shape == "correlated":
        return random.random((len(widths), 1, 1)) + random.normal(0, _SPREAD, widths.shape)
    centres: np.ndarray = widths / 2 + random.random(widths.shape) * (1 - widths)
    return centres


def _inside(random: np.random.Generator, bounds: np.ndarray) -> np.ndarray:
    """Return bounds as codes; one beyond the ends becomes some code near that end, not the same."""
    near = 0.001 * random.random(bounds.shape)
    bounds = np.where(bounds <= 0, near, np.where(bounds >= 1, 1 - near, bounds))
    codes: np.ndarray = np.clip(bounds * _N_VALUES, 2, _N_VALUES - 1).astype(np.int64)
    return codes


def _widths(
    random: np.random.Generator, asked: Boxes, shape: tuple[int, ...], mean: float
) -> np.ndarray:
    if asked.shape == "heavy":
        return np.minimum(mean / 4 * (1 + random.pareto(1.0, shape)), 0.999)
    widths = np.minimum(mean * (0.5 + random.random(shape)), 0.999)
    if asked.shape == "one_huge":
        widths[random.integers(_HUGE, size=shape[0]) == 0] = 0.9
    return widths


def _points(
    random: np.random.Generator, asked: Boxes, n: int, drift: tuple[float, float]
) -> np.ndarray:
    shape = (n, asked.n_dimensions)
    if asked.shape == "normal":
        points = random.normal(0.5, 0.15, shape)
    elif asked.shape == "correlated":
        points = random.random((n, 1)) + random.normal(0, _SPREAD, shape)
    elif asked.shape == "drift":
        points = 0.8 * np.linspace(*drift, n)[:, None] + 0.2 * random.random(shape)
    else:
        points = random.random(shape)
    codes = np.clip(points * _N_VALUES, 1, _N_VALUES).astype(np.int64)
    if asked.absent:
        codes[random.random(shape) < asked.absent] = 0
    return codes
