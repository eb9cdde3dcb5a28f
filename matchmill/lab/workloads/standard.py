"""The workloads that everything is measured with, by name.

be1, be01   BE-Tree's Table 3, first column: 1% and 0.1% match
dense       PS-Tree's Table 1: few dimensions, long events
30k         the same with 30,000 dimensions
zipf        be01 with Zipf's popularity of attributes, exponent 1
eq0         no equality, wide ranges, 1% match
ads         PS-Tree, section 7.4: 3 million subscriptions, mixed operators
flights     real flights and made-up alerts; fewer of them, since their texts are parsed
"""

from __future__ import annotations

from matchmill.errors import InputError
from matchmill.lab.workloads.spec import Parameter, WorkloadSpec

__all__ = ["STANDARD", "standard"]

_BE: dict[str, Parameter] = {
    "n_dimensions": 400,
    "cardinality": 48,
    "subscription_size": 7,
    "event_size": 15,
    "equality_ratio": 0.3,
    "matching_probability": 0.01,
}

_DENSE: dict[str, Parameter] = {
    "n_dimensions": 100,
    "cardinality": 30,
    "subscription_size": 10,
    "event_size": 30,
    "equality_ratio": 0.6,
    "matching_probability": 0.001,
}


def _be_gen(parameters: dict[str, Parameter], **changes: Parameter) -> WorkloadSpec:
    return WorkloadSpec("be_gen", 1_000_000, 2000, parameters={**parameters, **changes})


STANDARD: dict[str, WorkloadSpec] = {
    "be1": _be_gen(_BE),
    "be01": _be_gen(_BE, matching_probability=0.001),
    "dense": _be_gen(_DENSE),
    "30k": _be_gen(_DENSE, n_dimensions=30_000),
    "zipf": _be_gen(_BE, matching_probability=0.001, zipf=1.0),
    "eq0": _be_gen(_BE, equality_ratio=0.0, predicate_range=0.5),
    "ads": WorkloadSpec("ads", 3_000_000, 2000),
    "flights": WorkloadSpec("flights", 100_000, 2000),
}


def standard(name: str, scale: float = 1.0) -> WorkloadSpec:
    """Return a standard workload, with this share of its subscriptions (at least one)."""
    if name not in STANDARD:
        raise InputError(f"unknown workload {name!r}; there are: {', '.join(STANDARD)}")
    if not scale > 0:
        raise InputError(f"scale must be above 0, not {scale!r}")
    spec = STANDARD[name]
    return spec.changed(n_subscriptions=max(1, round(spec.n_subscriptions * scale)))
