"""A config: read, and checked as a whole, so that all mistakes are reported at once.

    read_config(path)  →  Config, or InputError with every mistake: the line, the key, the remedy

Nothing here starts Spark. Files on this machine are looked for; paths with a scheme such as
`s3a://` are left to Spark.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from glob import glob, has_magic
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from matchmill.errors import InputError
from matchmill.index.registry import index_class
from matchmill.language.attribute_types import checked_types
from matchmill.settings import Settings
from matchmill.spark.pipeline.config_keys import RENAMED, REQUIRED, SECTIONS, Key

__all__ = ["Config", "Mistake", "check_config", "is_local", "local_files", "read_config"]

_INTERVAL = re.compile(r"\d+\s+(milli|micro)?(second|minute|hour|day)s?")
_KINDS = {
    str: "a text in quotes",
    int: "a whole number",
    bool: "true or false",
    dict: "a table: { name = value }",
}
_NO_FILES = ("kafka", "rate", "rate-micro-batch", "socket", "matchmill")


class Mistake(NamedTuple):
    """One mistake in a config: where it is, and what is wrong."""

    line: int | None
    key: str
    what: str

    def __str__(self) -> str:
        """Write it as one line."""
        where = "" if self.line is None else f"line {self.line}, "
        return f"{where}{self.key}: {self.what}"


@dataclass(frozen=True, slots=True)
class Config:
    """What a config says, with all defaults: `config["events"]["layout"]`."""

    path: Path
    values: dict[str, dict[str, Any]]

    def __getitem__(self, section: str) -> dict[str, Any]:
        """Return the keys of a section."""
        return self.values[section]

    @property
    def output(self) -> str:
        """The folder, or Hadoop path, for all that is written."""
        return str(self.values[""]["output"])

    @property
    def has_stream(self) -> bool:
        """Whether the pipeline has the step `stream`."""
        return "stream" in self.values

    @property
    def settings(self) -> Settings:
        """The settings of matchmill itself."""
        return Settings(**self.values["settings"])


def read_config(path: str | Path) -> Config:
    """Read the config in a file; raise InputError with all of its mistakes."""
    config, mistakes = check_config(path)
    if mistakes or config is None:
        counted = "a mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        raise InputError("\n  ".join([f"{path} has {counted}:", *map(str, mistakes)]))
    return config


def check_config(path: str | Path) -> tuple[Config | None, list[Mistake]]:
    """Read a config; return it, if it can be used, and its mistakes."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InputError(
            f"{path} cannot be read: {reason}; `matchmill pipeline init FOLDER` writes an example"
        ) from error
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        what = re.sub(r"\s*\(at [^)]*\)", "", str(error))
        return None, [
            Mistake(int(line[1]) if line else None, "TOML", f"{what}; correct the syntax")
        ]
    checks = _Checks(path, text)
    values = checks.run(given)
    mistakes = sorted(checks.mistakes, key=lambda m: (m.line is None, m.line or 0))
    return (None if mistakes else Config(path, values)), mistakes


class _Checks:
    def __init__(self, path: Path, text: str) -> None:
        self.mistakes: list[Mistake] = []
        self._folder = path.resolve().parent
        self._lines = _key_lines(text)

    def run(self, given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        own = {name: value for name, value in given.items() if name not in SECTIONS}
        for name in [n for n, value in own.items() if isinstance(value, dict)]:
            del own[name]
            self._add("", name, f"there is no such section{_meant(name, SECTIONS)}")
        values = {"": self._section("", own)}
        for name, section in SECTIONS.items():
            if name and (name in given or not section.is_optional):
                inside = given.get(name, {})
                if not isinstance(inside, dict):
                    self._add("", name, f"it is a section: write [{name}] and keys below it")
                    inside = {}
                values[name] = self._section(name, inside)
        self._relations(values)
        return values

    def _add(self, section: str, key: str, what: str) -> None:
        line = self._lines.get((section, key)) or self._lines.get((section, ""))
        if line is None and not section:
            line = self._lines.get((key, ""))
        self.mistakes.append(Mistake(line, f"{section}.{key}" if section else key, what))

    # -- one key ----------------------------------------------------------------------------------

    def _section(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        keys = SECTIONS[name].keys
        for unknown in [key for key in given if key not in keys]:
            self._add(name, unknown, f"there is no such key{_meant(unknown, keys)}")
        found = {}
        for key_name, key in keys.items():
            value = given.get(key_name, key.default)
            if value is REQUIRED:
                self._add(name, key_name, f"it is missing: {key.about.splitlines()[0]}")
                value = None
            elif key_name in given and (what := _wrong_with(key, value)):
                self._add(name, key_name, what)
                value = None if key.default is REQUIRED else key.default
            found[key_name] = value  # so that all that follows can be looked at, too
        return found

    # -- what keys have to do with each other -----------------------------------------------------

    def _relations(self, values: dict[str, dict[str, Any]]) -> None:
        if values[""]["output"] is not None:
            values[""]["output"] = self._resolved(values[""]["output"])
        for section in ("subscriptions", "events"):
            self._source(section, values[section])
        events = values["events"]
        self._layout("events", events, events["format"])
        build = values["build"]
        try:
            index_class(build["index"])
        except InputError as error:
            self._add("build", "index", str(error))
        if build["keep"] < 1:
            self._add("build", "keep", "at least one version, the current one, stays")
        self._settings(values["settings"])
        for module in values["subscriptions"]["operators"]:
            if not _is_module(module):
                self._add(
                    "subscriptions", "operators", f"there is no module {module!r} to import; "
                    "install it, or start where it is",
                )  # fmt: skip
        self._output(values)
        if "stream" in values:
            self._stream(values["stream"], events)

    def _settings(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            try:
                Settings(**{name: value})
            except InputError as error:
                self._add("settings", name, str(error))

    def _source(self, section: str, source: dict[str, Any]) -> None:
        given = source["path"]
        if given is None:
            return
        source["path"] = self._resolved(given)
        if not source["format"]:
            known = SECTIONS[section].keys["format"].choices
            ending = given.rstrip("/").removesuffix(".gz").rpartition(".")[2]
            source["format"] = "jsonl" if ending == "ndjson" else ending
            if source["format"] not in known:
                self._add(section, "format", f"it cannot be seen from {given}: write {_or(known)}")
        if is_local(source["path"]) and not local_files(source["path"]):
            exists = "has no files in it" if Path(source["path"]).is_dir() else "is not there"
            self._add(section, "path", f"{source['path']} {exists}")

    def _layout(self, section: str, source: Mapping[str, Any], format_name: str) -> None:
        layout, attributes = source["layout"], source["attributes"]
        try:
            checked_types(source["types"])
        except InputError as error:
            self._add(section, "types", str(error))
        if format_name == "jsonl" and layout != "json":
            self._add(section, "layout", 'JSON lines are events themselves: layout = "json"')
        elif format_name == "csv" and layout == "map":
            self._add(section, "layout", "CSV has no maps; it is wide, long, or json in one column")
        if layout in ("map", "json") and len(attributes) > 1:
            self._add(section, "attributes", f"layout {layout!r} has events in one column, not in"
                      f" {len(attributes)}")  # fmt: skip

    def _output(self, values: Mapping[str, Mapping[str, Any]]) -> None:
        output = values[""]["output"]
        if output is None or not is_local(output):
            return
        if Path(output).exists() and not Path(output).is_dir():
            self._add("", "output", f"{output} is a file; name a folder")
        for section in ("subscriptions", "events"):
            source = values[section]["path"]
            if source is None or not is_local(source):
                continue
            if Path(source).resolve().is_relative_to(Path(output).resolve()):
                self._add("", "output", f"{section} are read from it; choose another folder")

    def _stream(self, stream: dict[str, Any], events: Mapping[str, Any]) -> None:
        for name in ("layout", "event_id", "attributes", "attribute", "value", "types"):
            if stream[name] is None:
                stream[name] = events[name]
        stream["format"] = stream["format"] or events["format"]
        if stream["path"]:
            stream["path"] = self._resolved(stream["path"])
            if is_local(stream["path"]) and not Path(stream["path"]).is_dir():
                self._add("stream", "path", f"{stream['path']} is no folder; Spark watches folders")
        elif stream["format"] not in _NO_FILES and "path" not in stream["options"]:
            self._add("stream", "path", f"format {stream['format']!r} needs a folder to watch")
        trigger = stream["trigger"]
        if trigger != "available-now" and not _INTERVAL.fullmatch(trigger):
            self._add("stream", "trigger", f'{trigger!r} is neither "available-now" nor an interval'
                      ' such as "10 seconds"')  # fmt: skip
        if not stream["select"]:
            self._layout("stream", stream, stream["format"])

    def _resolved(self, path: str) -> str:
        return str(self._folder / path) if is_local(path) else path


def _wrong_with(key: Key, value: Any) -> str:
    """Say what is wrong with a value; nothing if it is good."""
    if key.is_list and not isinstance(value, list):
        return f"it is a list: [{value!r}]"
    for one in value if key.is_list else [value]:
        if type(one) is not key.kind:
            return f"it must be {_KINDS[key.kind]}, not {one!r}"
    if key.choices and value not in key.choices:
        return f"{value!r} is none of {', '.join(key.choices)}{_meant(value, key.choices)}"
    if key.kind is int and value < 0:
        return f"it must not be negative, as {value} is"
    return ""


def is_local(path: str) -> bool:
    """Return whether a path is on this machine, not one that only Spark can read."""
    return len(urlsplit(path).scheme) <= 1


def local_files(path: str) -> list[Path]:
    """List the files that a path stands for: itself, those of a folder, or of a pattern."""
    roots = [Path(found) for found in (sorted(glob(path)) if has_magic(path) else [path])]
    files: list[Path] = []
    for root in roots:
        inside = sorted(root.rglob("*")) if root.is_dir() else [root]
        files += [f for f in inside if f.is_file() and not f.name.startswith(("_", "."))]
    return files


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # of a package that is not there; of a name that is none
        return False


def _meant(name: object, known: Mapping[str, Any] | Sequence[str]) -> str:
    close = get_close_matches(str(name), [k for k in known if k], 1)
    other = RENAMED.get(str(name))
    if other is not None and other in known:
        close = [other]
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there are: {', '.join(k for k in known if k)}" if isinstance(known, dict) else ""


def _or(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _key_lines(text: str) -> dict[tuple[str, str], int]:
    """Find the line of each (section, key), and of (section, "") itself."""
    return dict(_found_keys(text))


def _found_keys(text: str) -> Iterator[tuple[tuple[str, str], int]]:
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[+\s*([\w.-]+)\s*\]", line):
            section, _, inner = header[1].partition(".")
            yield (section, inner), number
        elif key := re.match(r"\s*([\w-]+)\s*[.=]", line):
            yield (section, key[1]), number
