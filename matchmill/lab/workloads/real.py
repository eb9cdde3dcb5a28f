"""Workloads with the values that people have, by name: `script/bench real` measures them.

geo2, geo4, geo6              boxes of that many doubles, 0.1 % match, all constants distinct
geo2_normal, geo4_1           normally distributed; 1 % match
sensors_low, _mixed, _true    20 to 30 thresholds with three decimals; hardly any, some, many match
prices, prices_volume         windows to the cent, without and with a volume
timestamps, timestamps_place  windows to the second, without and with one of 100 places
ids                           equality on 64-bit ids, all distinct
long_lists                    `in` lists of 1,000 values
wide200, wide2000             events of 200 and 2,000 attributes, 20 of them asked for
many10, many50                10 % and 50 % match: ranges on up to 4 doubles
mixed                         a symbol, a price, a size, venues, a time
sparse_ranges                 3 ranges of 200 attributes, 20 per event
correlated, heavy, one_huge   boxes along a diagonal; with a heavy tail; huge ones among small ones
drift                         boxes; events wander away from those that were learned from
intervals, absence            several intervals per predicate; predicates that accept absence
"""

from __future__ import annotations

from matchmill.errors import InputError, did_you_mean, shown
from matchmill.lab.workloads.spec import Parameter, WorkloadSpec

__all__ = ["REAL", "real"]

_N = 100_000


def _spec(generator: str, n: int = _N, **parameters: Parameter) -> WorkloadSpec:
    return WorkloadSpec(generator, n, 2000, parameters=parameters)


REAL: dict[str, WorkloadSpec] = {
    "geo2": _spec("boxes", n_dimensions=2),
    "geo4": _spec("boxes", n_dimensions=4),
    "geo6": _spec("boxes", n_dimensions=6),
    "geo2_normal": _spec("boxes", n_dimensions=2, shape="normal"),
    "geo4_1": _spec("boxes", n_dimensions=4, share=0.01),
    "sensors_low": _spec("sensors", likely="low"),
    "sensors_mixed": _spec("sensors", likely="mixed"),
    "sensors_true": _spec("sensors", likely="true"),
    "prices": _spec("prices"),
    "prices_volume": _spec("prices", with_volume=1.0, width=0.01),
    "timestamps": _spec("windows"),
    "timestamps_place": _spec("windows", n_places=100),
    "ids": _spec("ids"),
    "long_lists": _spec("long_lists", 20_000),
    "wide200": _spec("wide", n_attributes=200),
    "wide2000": _spec("wide", n_attributes=2000),
    "many10": _spec("boxes", n_dimensions=4, n_used=2, share=0.1),
    "many50": _spec("boxes", n_dimensions=4, n_used=2, share=0.5),
    "mixed": _spec("mixed"),
    "sparse_ranges": _spec("sparse_ranges"),
    "correlated": _spec("boxes", n_dimensions=4, shape="correlated", share=1e-6),
    "heavy": _spec("boxes", n_dimensions=4, shape="heavy"),
    "one_huge": _spec("boxes", n_dimensions=4, shape="one_huge"),
    "drift": _spec("boxes", n_dimensions=4, shape="drift"),
    "intervals": _spec("boxes", n_dimensions=4, n_intervals=3),
    "absence": _spec("boxes", n_dimensions=4, absent=0.2),
}


def real(name: str, scale: float = 1.0) -> WorkloadSpec:
    """Return a workload by its name, with this share of its subscriptions (at least one)."""
    if name not in REAL:
        hint = did_you_mean(name, REAL)
        raise InputError(f"no workload {shown(name)}; there are: {', '.join(REAL)}{hint}")
    if not scale > 0:
        raise InputError(f"scale must be above 0, not {scale!r}")
    spec = REAL[name]
    return spec.changed(n_subscriptions=max(1, round(spec.n_subscriptions * scale)))
