"""All settings: one table of name, default and help; a frozen `Settings` object carries them.

A setting that the documentation does not mention fails a test.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from matchmill.errors import InputError

__all__ = ["DEFAULT_SETTINGS", "SETTINGS", "UNLIMITED", "Setting", "Settings"]


class Setting(NamedTuple):
    name: str
    default: int | str
    help: str
    choices: tuple[str, ...] = ()  # of a text; a number is at least 1, a truth value either


SETTINGS: tuple[Setting, ...] = (
    Setting("max_expression_length", 1_000_000, "characters in one expression's text"),
    Setting("max_depth", 64, "nesting of parentheses, `not`, `and` and `or` in one expression"),
    Setting("max_conditions", 10_000, "predicates in one expression"),
    Setting("max_values", 100_000, "literals in one expression, lists included"),
    Setting("max_pattern_length", 10_000, "characters in one like or rlike pattern"),
    Setting("max_clauses", 64, "clauses of one expression's normal form that are indexed"),
    Setting("max_event_values", 1_000_000, "values in one event, list elements included"),
    Setting("max_event_depth", 64, "nesting of objects and lists in one event"),
    Setting("fresh_clauses", 128, "new clauses that are scanned, before an index is built of them"),
    Setting("merge_factor", 16, "how much larger a segment is than all newer ones together"),
    Setting("background", True, "merge and save beside the calls, not in them"),
    Setting(
        "sync",
        "always",
        "when a change in a folder is made safe from a crash of the machine",
        ("always", "seconds", "never"),
    ),
    Setting("checkpoint_bytes", 32 << 20, "size of the log at which the engine is saved anew"),
    Setting(
        "operator_order",
        "adaptive",
        "the order in which operators are asked",
        ("adaptive", "sub_order", "sequential", "naive"),
    ),
    Setting("event_class", "", "an attribute whose values tell events apart, for that order"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits and sizes of an engine; `Settings(max_clauses=16)` changes one."""

    max_expression_length: int = 1_000_000
    max_depth: int = 64
    max_conditions: int = 10_000
    max_values: int = 100_000
    max_pattern_length: int = 10_000
    max_clauses: int = 64
    max_event_values: int = 1_000_000
    max_event_depth: int = 64
    fresh_clauses: int = 128
    merge_factor: int = 16
    background: bool = True
    sync: str = "always"
    checkpoint_bytes: int = 32 << 20
    operator_order: str = "adaptive"
    event_class: str = ""

    def __post_init__(self) -> None:
        for setting in SETTINGS:
            _check(setting, getattr(self, setting.name))
        if self.max_depth > 200:
            raise InputError("setting max_depth may be at most 200")
        if self.merge_factor < 2:
            raise InputError("setting merge_factor must be at least 2")

    def changed(self, **changes: Any) -> Settings:
        """The same settings with some changed."""
        known = {setting.name for setting in SETTINGS}
        for name in changes:
            if name not in known:
                raise InputError(f"unknown setting {name!r}; there are: {', '.join(sorted(known))}")
        return replace(self, **changes)


def _check(setting: Setting, value: object) -> None:
    if setting.choices:
        is_good, wanted = value in setting.choices, f"one of {', '.join(setting.choices)}"
    elif isinstance(setting.default, str):
        is_good, wanted = isinstance(value, str), "text"
    elif isinstance(setting.default, bool):
        is_good, wanted = isinstance(value, bool), "True or False"
    else:
        is_number = isinstance(value, int) and not isinstance(value, bool)
        is_good, wanted = is_number and value >= 1, "a whole number of at least 1"  # type: ignore[operator]
    if not is_good:
        raise InputError(f"setting {setting.name} must be {wanted}, not {value!r}")


DEFAULT_SETTINGS = Settings()

UNLIMITED = Settings(  # to read again what was accepted once, under whatever limits there were
    max_expression_length=2**60,
    max_depth=200,
    max_conditions=2**60,
    max_values=2**60,
    max_pattern_length=2**60,
)
