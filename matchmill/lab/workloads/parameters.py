"""Parameters of generators: known names, right types, sensible ranges, or a clear error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, TypeVar

import numpy as np

from matchmill.errors import InputError
from matchmill.lab.workloads.spec import Parameter, WorkloadSpec

__all__ = ["check_order", "choice_of", "ranged", "read_parameters", "read_record", "within"]


def read_parameters(spec: WorkloadSpec, defaults: Mapping[str, Parameter]) -> dict[str, Any]:
    """Return the defaults with the spec's parameters put in.

    Whole numbers may stand for real ones.
    """
    read: dict[str, Any] = dict(defaults)
    for name, value in spec.parameters.items():
        if name not in read:
            known = ", ".join(sorted(read)) or "none"
            raise InputError(f"{spec.generator} has no parameter {name!r}; there are: {known}")
        kind = type(read[name])
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if type(value) is not kind:
            raise InputError(f"{name} must be {_KIND_NAMES[kind]}, not {value!r}")
        read[name] = value
    return read


_KIND_NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def within(name: str, value: float, low: float, high: float) -> None:
    """InputError unless the value lies between the two, inclusively."""
    if not low <= value <= high:
        raise InputError(f"{name} must be between {low:g} and {high:g}, not {value:g}")


_P = TypeVar("_P")


def ranged(default: float, low: float = 0, high: float | None = None) -> Any:
    """Declare a number among the parameters of a generator, between low and high."""
    return field(default=default, metadata={"low": low, "high": high})


def choice_of(*values: str) -> Any:
    """Declare a word among the parameters of a generator; the first one is the default."""
    return field(default=values[0], metadata={"choices": values})


def read_record(spec: WorkloadSpec, kind: type[_P]) -> _P:
    """Return the parameters of a spec as a dataclass whose fields are `ranged` or `choice_of`."""
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    for name, value in spec.parameters.items():
        if name not in known:
            raise InputError(
                f"unknown parameter {name!r} of {spec.generator}; there are: {', '.join(known)}"
            )
        _check(name, value, known[name].default, known[name].metadata)
    return kind(**spec.parameters)


def _check(name: str, value: Any, default: Any, limits: Any) -> None:
    if "choices" in limits:
        if value not in limits["choices"]:
            raise InputError(f"{name} must be one of {', '.join(limits['choices'])}, not {value!r}")
        return
    low, high = limits["low"], limits["high"]
    kinds = (int,) if isinstance(default, int) else (int, float)
    if (
        not isinstance(value, kinds)
        or isinstance(value, bool)
        or not low <= value <= (np.inf if high is None else high)
    ):
        what = "a whole number" if isinstance(default, int) else "a number"
        bounds = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise InputError(f"{name} must be {what} {bounds}, not {value!r}")


def check_order(smallest: int, largest: int, what: str) -> None:
    """Raise unless the smallest is not above the largest."""
    if smallest > largest:
        raise InputError(f"min_{what} is {smallest}, more than max_{what}, which is {largest}")
