"""All that a config can say: one table of keys, to check configs and to write examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from matchmill.language.dialects.registry import DIALECTS, MATCHMILL
from matchmill.settings import Settings, list_settings

__all__ = [
    "LAYOUTS",
    "RENAMED",
    "REQUIRED",
    "SECTIONS",
    "STEP_NAMES",
    "Key",
    "Section",
    "example_config",
]

REQUIRED = object()
LAYOUTS = ("wide", "map", "json", "long")
STEP_NAMES = ("ingest", "statistics", "build", "match", "stream")
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
    """One section: what it is about, and its keys."""

    about: str
    keys: dict[str, Key]
    is_optional: bool = False


_LAYOUT_KEYS = {
    "layout": Key(str, "wide", "wide: one column per attribute; map; json; long: one row per\n"
                  "attribute of an event", choices=LAYOUTS),
    "event_id": Key(str, "event_id", "the column, or in JSON lines the attribute, with the id"),
    "attributes": Key(str, [], "wide: the attributes (default: all columns); map, json: the one\n"
                      "column with the events", is_list=True),
    "attribute": Key(str, "attribute", "long: the column with names"),
    "value": Key(str, "value", "long: the column with values"),
    "types": Key(dict, {}, "what attributes are read as: timestamp, date, number, text, boolean,\n"
                 'as { ts = "timestamp" }'),
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
        "subscription_id": Key(str, "subscription_id", "the column with the ids"),
        "expression": Key(str, "expression", "the column with the expressions"),
        "dialect": Key(str, MATCHMILL, "matchmill, or eventbridge for JSON patterns that mean\n"
                       "what Amazon EventBridge says", choices=tuple(DIALECTS)),
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
    "statistics": Section("Count the events, and build the engine for such events", {
        "enabled": Key(bool, False, "answers do not depend on it, their speed may"),
    }),
    "build": Section("The engine that workers match with", {
        "index": Key(str, "auto", "the algorithm"),
        "index_options": Key(dict, {}, "options of the algorithm"),
        "shards": Key(int, 0, "how many (default, or 0: by the number of subscriptions)"),
        "keep": Key(int, 2, "how many versions stay"),
        "strict": Key(bool, False, "stop if a subscription cannot be read"),
    }),
    "match": Section("Matching", {
        "plan": Key(str, "auto", "driver: this process matches, without an engine; events: the\n"
                    "workers match; auto: by the numbers of subscriptions and events",
                    choices=("auto", "driver", "events")),
        "per_event": Key(bool, False, "one row per event with a list of ids, not one per match"),
    }),
    "stream": Section("More events as they come; without this section there is no such step", {
        "format": Key(str, "", "any streaming source of Spark's (default: the events' format)"),
        "path": Key(str, "", "the folder to watch, for sources that are files", example="incoming"),
        "trigger": Key(str, "available-now", "available-now: what is there, then stop; or an\n"
                       'interval such as "10 seconds", until it is interrupted'),
        "stop_after_seconds": Key(int, 0, "stop after so many seconds (0: do not)"),
        "select": Key(str, [], "SQL of the columns, if the source has others, as for Kafka:\n"
                      '["cast(key as string) as event_id", "cast(value as string) as event"]',
                      is_list=True),
        **{name: key._replace(default=None, about="as in [events], which is the default")
           for name, key in _LAYOUT_KEYS.items()},
        "options": Key(dict, {}, "options of the source, as { maxFilesPerTrigger = 1 }"),
    }, is_optional=True),
    "settings": Section("Limits of expressions and events, and other settings of matchmill", {
        one.name: Key(type(one.default), one.default, one.help, None, one.choices)
        for one in list_settings(Settings)
    }),
    "spark": Section("Spark itself", {
        "master": Key(str, "local[*]", "where it runs"),
        "conf": Key(dict, {}, 'Spark\'s own settings, as { "spark.driver.memory" = "4g" }'),
    }),
}  # fmt: skip
# What people write for a key that has another name here.
RENAMED: dict[str, str] = {
    "index": "build",
    "id": "subscription_id",
    "id_column": "subscription_id",
    "expression_column": "expression",
    "columns": "attributes",
    "name": "index",
    "distributed": "plan",
    "arrays": "per_event",
    "seconds": "stop_after_seconds",
    "settings": "conf",
}


def example_config() -> str:
    """Write a config with all keys; those that need not be given are comments."""
    return "\n".join(_example_lines()) + "\n"


def _example_lines() -> Iterator[str]:
    yield "# A pipeline of matchmill: give this file to `matchmill pipeline check` and `run`."
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
