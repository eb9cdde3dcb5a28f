"""All generators by name.

A generator is a function from a WorkloadSpec to a Workload; a new one costs its file and one line.
"""

from __future__ import annotations

from collections.abc import Callable

from matchmill.errors import InputError
from matchmill.lab.workloads.ads import ads
from matchmill.lab.workloads.alerts import (
    ids,
    long_lists,
    mixed,
    prices,
    sensors,
    sparse_ranges,
    wide,
    windows,
)
from matchmill.lab.workloads.be_gen import be_gen
from matchmill.lab.workloads.boxes import boxes
from matchmill.lab.workloads.flat import Workload
from matchmill.lab.workloads.flights import flights
from matchmill.lab.workloads.op_index import op_index, op_index_prefix
from matchmill.lab.workloads.operators import as_workload, operator_workload
from matchmill.lab.workloads.products import products
from matchmill.lab.workloads.qgrams import qgrams
from matchmill.lab.workloads.query_log import query_log
from matchmill.lab.workloads.spec import WorkloadSpec
from matchmill.lab.workloads.two_stage import two_stage

__all__ = ["GENERATORS", "generate"]


def _operators(spec: WorkloadSpec) -> Workload:
    """Each operator predicate as a boolean attribute."""
    return as_workload(operator_workload(spec))


GENERATORS: dict[str, Callable[[WorkloadSpec], Workload]] = {
    "ads": ads,
    "be_gen": be_gen,
    "boxes": boxes,
    "flights": flights,
    "ids": ids,
    "long_lists": long_lists,
    "mixed": mixed,
    "op_index": op_index,
    "op_index_prefix": op_index_prefix,
    "operators": _operators,
    "prices": prices,
    "products": products,
    "qgrams": qgrams,
    "query_log": query_log,
    "sensors": sensors,
    "sparse_ranges": sparse_ranges,
    "two_stage": two_stage,
    "wide": wide,
    "windows": windows,
}


def generate(spec: WorkloadSpec) -> Workload:
    """Make the workload that a spec describes."""
    if spec.generator not in GENERATORS:
        known = ", ".join(sorted(GENERATORS))
        raise InputError(f"unknown generator {spec.generator!r}; there are: {known}")
    return GENERATORS[spec.generator](spec)
