"""What a workload is, as data: a generator's name, its parameters, sizes and a seed.

    spec = WorkloadSpec("be_gen", n_subscriptions=1_000_000, n_events=1000,
                        parameters={"n_dimensions": 400, "equality_ratio": 0.3})
    workload = matchmill.lab.workloads.generate(spec)

The same spec gives the same bytes, on another run and another machine: generators draw from
`numpy.random.Generator(PCG64)` in a fixed order and use no library whose draws may change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

import numpy as np

from matchmill.errors import InputError

__all__ = ["Parameter", "WorkloadSpec"]

Parameter: TypeAlias = int | float | str | bool


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """One workload. `parameters` are the generator's own; unknown ones are an error there."""

    generator: str
    n_subscriptions: int
    n_events: int
    n_training_events: int = 512
    seed: int = 1
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("n_subscriptions", "n_events", "n_training_events", "seed"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise InputError(f"{name} must be a whole number of at least 0, not {value!r}")

    def changed(self, **changes: Any) -> WorkloadSpec:
        """Return the same workload with some things changed.

        Fields, or parameters of the generator.
        """
        own = {f.name for f in fields(self)} - {"parameters"}
        outer = {k: v for k, v in changes.items() if k in own}
        inner = {k: v for k, v in changes.items() if k not in own}
        return replace(self, **outer, parameters={**self.parameters, **inner})

    def random(self, stream: str) -> np.random.Generator:
        """Return an independent generator of random numbers for one part of the workload."""
        words = [self.seed, *stream.encode()]
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))

    def as_dict(self) -> dict[str, Any]:
        """All of it, flat, for files of results."""
        outer = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "parameters"}
        return {**outer, **self.parameters}
