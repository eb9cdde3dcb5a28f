"""Settings: a frozen dataclass whose fields carry their default, help and group once.

    @settings_table
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Settings:
        max_clauses: int = setting(64, "clauses of one expression that are indexed", group="…")

Everything else is made from the fields: the checks of an object's values, the reading of
`max_clauses=16` from a command line, the documentation. The service has a second table.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

from matchmill.errors import InputError, did_you_mean, shown

__all__ = [
    "DEFAULT_SETTINGS",
    "UNLIMITED",
    "Setting",
    "Settings",
    "list_settings",
    "make_settings",
    "parse_setting",
    "parse_settings",
    "setting",
    "settings_table",
]

Table = TypeVar("Table")
Value = int | bool | str


class Setting(NamedTuple):
    """One setting: its name, default, help and limits."""

    name: str
    default: Value
    help: str
    group: str
    choices: tuple[str, ...] = ()  # of a text
    minimum: int = 1  # of a number
    maximum: int | None = None

    @property
    def wanted(self) -> str:
        """Describe the values that are accepted."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if isinstance(self.default, bool):
            return "True or False"
        if isinstance(self.default, str):
            return "text"
        most = "" if self.maximum is None else f" and at most {self.maximum}"
        return f"a whole number of at least {self.minimum}{most}"

    def accepts(self, value: object) -> bool:
        """Tell whether a value has the right type and is within the limits."""
        if type(value) is not type(self.default):
            return False
        if self.choices:
            return value in self.choices
        if type(value) is not int:
            return True
        return self.minimum <= value and (self.maximum is None or value <= self.maximum)

    def check(self, value: object) -> None:
        """Raise InputError unless the value is accepted."""
        if not self.accepts(value):
            raise InputError(f"setting {self.name} must be {self.wanted}, not {shown(value)}")

    def parse(self, text: str) -> Value:
        """Read a value from text, as on a command line."""
        value: Value = text
        if isinstance(self.default, bool):
            value = {"true": True, "false": False}.get(text.strip().lower(), text)
        elif isinstance(self.default, int):
            with suppress(ValueError):  # `check` says what is wanted
                value = int(text)
        self.check(value)
        return value


def setting(
    default: Value,
    help: str,
    *,
    group: str,
    choices: tuple[str, ...] = (),
    minimum: int = 1,
    maximum: int | None = None,
) -> Any:
    """Make a field of a settings table."""
    figures = {
        "help": help,
        "group": group,
        "choices": choices,
        "minimum": minimum,
        "maximum": maximum,
    }
    return dataclasses.field(default=default, metadata={"setting": figures})


def settings_table(table: type[Table]) -> type[Table]:
    """Have a dataclass of settings check names and values whenever an object is made."""
    plain_init = table.__init__

    @functools.wraps(plain_init)
    def checked_init(self: Any, **values: Any) -> None:
        _check_values(table, values)
        plain_init(self, **values)

    table.__init__ = checked_init  # type: ignore[method-assign]
    return table


@functools.cache
def _settings_by_name(table: type) -> dict[str, Setting]:
    return {
        field.name: Setting(field.name, cast(Value, field.default), **field.metadata["setting"])
        for field in dataclasses.fields(table)
    }


def list_settings(table: type) -> tuple[Setting, ...]:
    """List the settings of a table, in the order in which they are declared."""
    return tuple(_settings_by_name(table).values())


def _check_values(table: type, values: Mapping[str, object]) -> None:
    known = _settings_by_name(table)
    for name, value in values.items():
        _known(known, name).check(value)


def _known(known: dict[str, Setting], name: str) -> Setting:
    if name not in known:
        listed = "; there are: " + ", ".join(sorted(known))
        raise InputError(f"unknown setting {shown(name)}{did_you_mean(name, known) or listed}")
    return known[name]


def make_settings(table: type[Table], values: Mapping[str, object]) -> Table:
    """Make an object of a settings table from names and values."""
    return table(**values)


def parse_setting(table: type, text: str) -> tuple[str, Value]:
    """Read `name=value`."""
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"a setting is written name=value, not {shown(text)}")
    return name.strip(), _known(_settings_by_name(table), name.strip()).parse(value)


def parse_settings(table: type[Table], texts: Iterable[str]) -> Table:
    """Make an object of a settings table from texts such as `max_clauses=16`."""
    return make_settings(table, dict(parse_setting(table, text) for text in texts))


_EXPRESSIONS, _EVENTS = "expressions", "events"
_FOLDER, _WORK, _TUNING, _OPERATORS = "folder", "work", "tuning", "operators"


@settings_table
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Limits and sizes of an engine. They are saved with it.

    Parameters
    ----------
    **values
        Settings by name; all others keep their defaults. An unknown name or a value that is not
        accepted is an `InputError`.

    Examples
    --------
    >>> import matchmill as mm
    >>> settings = mm.Settings(max_clauses=16, sync="seconds")
    >>> settings.max_clauses
    16
    >>> settings
    Settings(max_clauses=16, sync='seconds')
    >>> engine = mm.Engine(settings=settings)
    """

    max_expression_length: int = setting(
        1_000_000, "characters in the text of one expression", group=_EXPRESSIONS
    )
    max_depth: int = setting(
        64,
        "nesting of parentheses, `not`, `and` and `or` in one expression",
        group=_EXPRESSIONS,
        maximum=200,
    )
    max_conditions: int = setting(10_000, "conditions in one expression", group=_EXPRESSIONS)
    max_values: int = setting(
        100_000, "literals in one expression, lists included", group=_EXPRESSIONS
    )
    max_pattern_length: int = setting(10_000, "characters in one like pattern", group=_EXPRESSIONS)
    max_pattern_program: int = setting(
        20_000, "instructions that one rlike pattern compiles to", group=_EXPRESSIONS
    )
    max_clauses: int = setting(
        64, "clauses of the normal form of one expression that are indexed", group=_EXPRESSIONS
    )
    max_event_values: int = setting(
        1_000_000, "values in one event, list elements included", group=_EVENTS
    )
    max_event_depth: int = setting(64, "nesting of objects and lists in one event", group=_EVENTS)
    max_pattern_work: int = setting(
        1 << 28,
        "bytes of text in an attribute, times instructions of all like and rlike patterns on it;"
        " the sum over the attributes of one event",
        group=_EVENTS,
    )
    sync: str = setting(
        "always",
        "when a change in a folder is written to the disk, safe from a crash of the machine",
        group=_FOLDER,
        choices=("always", "seconds", "never"),
    )
    checkpoint_bytes: int = setting(
        32 << 20, "size of the log at which the engine is saved again", group=_FOLDER
    )
    background: bool = setting(
        True, "merge and save in a background thread, not in the calls", group=_WORK
    )
    fresh_clauses: int = setting(
        128, "new clauses that are scanned before an index is built from them", group=_TUNING
    )
    merge_factor: int = setting(
        16,
        "how much larger a segment is than all newer ones together",
        group=_TUNING,
        minimum=2,
    )
    operator_order: str = setting(
        "adaptive",
        "the order in which operators are called",
        group=_OPERATORS,
        choices=("adaptive", "sub_order", "greedy_path", "sequential", "naive"),
    )
    max_join_steps: int = setting(
        100_000,
        "values that are tried for the variables of one subscription's operators, for one event",
        group=_OPERATORS,
    )
    event_class: str = setting(
        "", "an attribute that divides events into classes, for that order", group=_OPERATORS
    )

    def __repr__(self) -> str:
        changed = (
            f"{one.name}={getattr(self, one.name)!r}"
            for one in list_settings(Settings)
            if getattr(self, one.name) != one.default
        )
        return f"Settings({', '.join(changed)})"


DEFAULT_SETTINGS = Settings()

UNLIMITED = Settings(  # to read again what was accepted once, whatever the limits were then
    max_expression_length=2**60,
    max_depth=200,
    max_conditions=2**60,
    max_values=2**60,
    max_pattern_length=2**60,
    max_pattern_program=2**60,
    max_pattern_work=2**60,
)
