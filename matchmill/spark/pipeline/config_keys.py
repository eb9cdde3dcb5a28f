"""All that a config can say: one table of keys, to check configs by and to write examples from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["LAYOUTS", "REQUIRED", "SECTIONS", "Key", "Section", "example_config"]

REQUIRED = object()
LAYOUTS = ("wide", "map", "json", "long")
_FILES = ("csv", "jsonl", "parquet")


class Key(NamedTuple):
    """One key: its type (of a list, that of its items), default, meaning, and a value to show."""

    kind: type
    default: Any
    about: str
    example: Any = None
    choices: tuple[str, ...] = ()
    is_list: bool = False


class Section(NamedTuple):
    about: str
    keys: dict[str, Key]
    is_optional: bool = False


_LAYOUT_KEYS = {
    "layout": Key(str, "wide", "wide: a column an attribute; map; json; long: a row a pair",
                  choices=LAYOUTS),
    "event_id": Key(str, "event_id", "the column, or in JSON lines the attribute, with the id"),
    "columns": Key(str, [], "wide: the attributes (default: all columns); else the one with events",
                   is_list=True),
    "attribute": Key(str, "attribute", "long: the column with names"),
    "value": Key(str, "value", "long: the column with values"),
}  # fmt: skip

SECTIONS: dict[str, Section] = {
    "": Section("", {
        "output": Key(str, REQUIRED, "the folder, or a Hadoop path, for all that is written;\n"
                      "relative paths start at this file", example="output"),
    }),
    "subscriptions": Section("Where subscriptions come from", {
        "path": Key(str, REQUIRED, "a file, a folder, a pattern, or a path that Hadoop knows",
                    example="subscriptions.csv"),
        "format": Key(str, "", "csv, jsonl or parquet (default: what the path ends in)",
                      choices=_FILES),
        "id_column": Key(str, "id", "the column with the ids"),
        "expression_column": Key(str, "expression", "the column with the expressions"),
        "integer_ids": Key(bool, False, "ids in CSV and JSON lines are integers, not texts"),
        "latest_by": Key(str, "", "of rows with one id, the greatest in this column is taken"),
        "operators": Key(str, [], "modules that register operators", is_list=True),
    }),
    "events": Section("Where events come from", {
        "path": Key(str, REQUIRED, "a file, a folder, a pattern, or a path that Hadoop knows",
                    example="events.parquet"),
        "format": Key(str, "", "csv, jsonl, parquet or orc (default: what the path ends in)",
                      choices=(*_FILES, "orc")),
        **_LAYOUT_KEYS,
        "options": Key(dict, {}, "options of Spark's reader, as { nullValue = \"NA\" } for CSV"),
    }),
    "statistics": Section("Count the events, and build the index for such events", {
        "enabled": Key(bool, True, "answers do not depend on it, their speed may"),
    }),
    "index": Section("The published index", {
        "name": Key(str, "mill", "which index"),
        "shards": Key(int, 0, "how many (default, or 0: by the number of subscriptions)"),
        "keep": Key(int, 2, "how many versions stay"),
    }),
    "match": Section("Matching", {
        "distributed": Key(str, "auto", "auto: few events and few subscriptions are matched by\n"
                           "the driver, without an index; always; never",
                           choices=("auto", "always", "never")),
        "arrays": Key(bool, False, "a row an event with an array of ids, not a row a match"),
    }),
    "stream": Section("More events as they come; without this section there is no such step", {
        "format": Key(str, "", "any streaming source of Spark's (default: the events' format)"),
        "path": Key(str, "", "the folder to watch, for sources that are files", example="incoming"),
        "trigger": Key(str, "available-now", "available-now: what is there, then stop; or an\n"
                       'interval such as "10 seconds", until it is interrupted'),
        "seconds": Key(int, 0, "stop after so many seconds (0: do not)"),
        "select": Key(str, [], "SQL of the columns, if the source has others, as for Kafka:\n"
                      '["cast(key as string) as event_id", "cast(value as string) as event"]',
                      is_list=True),
        **{name: key._replace(default=None, about="as in [events], which is the default")
           for name, key in _LAYOUT_KEYS.items()},
        "options": Key(dict, {}, "options of the source, as { maxFilesPerTrigger = 1 }"),
    }, is_optional=True),
    "spark": Section("Spark itself", {
        "master": Key(str, "local[*]", "where it runs"),
        "settings": Key(dict, {}, 'Spark\'s own settings, as { "spark.driver.memory" = "4g" }'),
    }),
}  # fmt: skip


def example_config() -> str:
    """A config with all keys; those that need not be given are comments."""
    return "\n".join(_example_lines()) + "\n"


def _example_lines() -> Iterator[str]:
    yield "# A pipeline of matchmill: `matchmill pipeline check` and `run` take this file."
    yield "# Lines that begin with `#` show the defaults."
    for name, section in SECTIONS.items():
        yield ""
        if name:
            yield f"# {section.about}."
            yield f"#[{name}]" if section.is_optional else f"[{name}]"
        for key_name, key in section.keys.items():
            yield from (f"# {line}" for line in key.about.splitlines())
            value = key.example if key.example is not None else key.default
            if value is None:  # that of [events]
                value = SECTIONS["events"].keys[key_name].default
            mark = "" if key.default is REQUIRED else "#"
            yield f"{mark}{key_name} = {_toml(value)}"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return "{}" if isinstance(value, dict) else str(value)
