"""All generators by name, and the workloads that everything is measured with.

A generator is a function from a WorkloadSpec to a Workload; a new one costs its file and one line.
"""

from __future__ import annotations

from collections.abc import Callable

from matchmill.errors import InputError
from matchmill.workload.flat import Workload
from matchmill.workload.spec import WorkloadSpec

__all__ = ["GENERATORS", "generate"]

GENERATORS: dict[str, Callable[[WorkloadSpec], Workload]] = {}


def generate(spec: WorkloadSpec) -> Workload:
    """The workload that a spec describes."""
    if spec.generator not in GENERATORS:
        known = ", ".join(sorted(GENERATORS))
        raise InputError(f"unknown generator {spec.generator!r}; there are: {known}")
    return GENERATORS[spec.generator](spec)
