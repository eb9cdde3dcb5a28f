"""One idea has one name in library, command line, Spark, pipeline configs, service and client."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import pytest

# idea: (the name, where it must occur, words that it replaced and that must not occur anywhere)
NAMES: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "id of a subscription": (
        "subscription_id",
        ("library", "command line", "spark", "config", "service", "client"),
        ("identifier", "identifiers", "id_column"),
    ),
    "id of an event": (
        "event_id",
        ("library", "command line", "spark", "config", "service", "client"),
        ("event_column", "events_id"),
    ),
    "the condition of a subscription": (
        "expression",
        ("library", "command line", "spark", "config", "service", "client"),
        ("expression_column", "predicate_text"),
    ),
    "the language of a condition": (
        "dialect",
        ("library", "command line", "spark", "config", "service", "client"),
        ("language_name", "flavor", "flavour"),
    ),
    "input that was not accepted": (
        "rejected",
        ("library", "command line", "service", "client"),
        ("refused", "refusal", "refusals", "set_aside", "n_set_aside", "n_refused"),
    ),
    "stop at the first bad row": ("strict", ("library", "command line", "spark", "config"), ()),
    "several in one call": ("match_many", ("library",), ("match_batch", "batch_matches")),
    "end a subscription": (
        "unsubscribe",
        ("library", "command line", "client"),
        ("cancel", "cancelled", "cancellation"),
    ),
    "change a subscription": ("update", ("library", "client"), ()),
    "how long it lasts": (
        "ttl_seconds",
        ("command line", "service", "client"),
        ("valid_seconds", "lasts", "validity"),
    ),
    "when it ends": ("expires_at", ("service", "client"), ()),
    "number of matches": ("n_matches", ("library", "service", "client"), ("matched_count",)),
    "does it match": ("matched", ("library", "spark", "service"), ("is_match",)),
    "conditions to change": ("n_missing", ("library", "spark", "service"), ()),
    "one row per event": (
        "per_event",
        ("library", "command line", "spark", "config"),
        ("as_arrays", "keep_empty", "arrays"),
    ),
    "columns of an event table": ("attributes", ("spark", "config"), ()),
    "the algorithm": ("index", ("library", "command line", "spark", "config"), ()),
    "its options": ("index_options", ("library", "spark", "config"), ()),
    "where Spark matches": ("plan", ("spark", "config"), ("distributed",)),
    "threads": ("threads", ("library", "command line"), ("match_threads", "n_jobs", "workers")),
    "progress": ("progress", ("library",), ()),
    "longest expression": (
        "max_expression_length",
        ("library",),
        ("max_text_length",),
    ),
    "most conditions": ("max_conditions", ("library",), ("max_predicates",)),
    "price of an operator": ("cost_ms", ("library",), ()),
    "longest call of an operator": ("timeout", ("library",), ("time_limit",)),
    "publish, receive": ("publish", ("command line", "client"), ()),
    "learn from events": ("learn", ("library", "command line", "spark"), ()),
}
DROPPED = (
    "BatchMatches", "Refused", "Refusal", "RefusedChange", "Free", "unregister", "read_json_lines",
    "parse_json_pattern", "SavedIndexError", "match_column", "match_function", "register_match",
    "ChangeColumns", "EventFiles", "read_event_files", "read_subscriptions", "sample_events",
    "to_statistics", "generate", "stream_matches", "stream_progress", "open_index", "Subscribed",
    "Checked", "Explained", "LiveMatch", "publish_stream", "insights",
)  # fmt: skip


# -- what each door shows -------------------------------------------------------------------------


def names_of(value: Any) -> Iterator[str]:
    """The parameters of a function; of a class also its fields, methods and theirs."""
    with suppress(TypeError, ValueError):
        yield from inspect.signature(value).parameters
    if inspect.isclass(value):
        if dataclasses.is_dataclass(value):
            yield from (field.name for field in dataclasses.fields(value))
        for name, member in inspect.getmembers(value):
            if not name.startswith("_"):
                yield name
                if callable(member) and not inspect.isclass(member):
                    yield from names_of(member)


def names_of_package(package: str) -> set[str]:
    module = importlib.import_module(package)
    found: set[str] = set(module.__all__)
    for name in module.__all__:
        value = getattr(module, name)
        if callable(value) and not inspect.ismodule(value):
            found.update(names_of(value))
    return found


def library() -> set[str]:
    return names_of_package("matchmill")


def client() -> set[str]:
    return names_of_package("matchmill.client")


def spark() -> set[str]:
    pytest.importorskip("pyspark")
    from matchmill.spark.explaining import COLUMN_NAMES

    return names_of_package("matchmill.spark") | set(COLUMN_NAMES)


def command_line() -> set[str]:
    from matchmill.cli.documentation import documentation

    text = documentation()
    options = {name.replace("-", "_") for name in re.findall(r"--([a-z][a-z-]*)", text)}
    return options | set(re.findall(r"[a-z_]+", text))


def config() -> set[str]:
    from matchmill.spark.pipeline.config_keys import SECTIONS

    return {key for section in SECTIONS.values() for key in section.keys} | set(SECTIONS)


def service() -> set[str]:
    pytest.importorskip("starlette")
    from matchmill.service.endpoints import endpoints
    from matchmill.service.openapi import describe
    from matchmill.service.schemas import Forms
    from matchmill.service.settings import ServiceSettings

    return set(words_in(describe(endpoints(Forms(ServiceSettings())), "0")))


def words_in(document: Any) -> Iterator[str]:
    """All keys and path segments of a JSON document, without the prose."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from re.findall(r"\w+", key)
            if key not in ("description", "summary", "title"):
                yield from words_in(value)
    elif isinstance(document, list):
        for item in document:
            yield from words_in(item)
    elif isinstance(document, str):
        yield document


DOORS = {
    "library": library,
    "command line": command_line,
    "spark": spark,
    "config": config,
    "service": service,
    "client": client,
}


# -- the table ------------------------------------------------------------------------------------


@pytest.mark.parametrize("door", DOORS)
def test_every_idea_has_its_name(door: str) -> None:
    shown = DOORS[door]()
    wanted = {name for name, doors, _ in NAMES.values() if door in doors}
    assert wanted - shown == set()


@pytest.mark.parametrize("door", DOORS)
def test_no_old_name_is_shown(door: str) -> None:
    old: Iterable[str] = {word for _, _, words in NAMES.values() for word in words}
    assert DOORS[door]() & {*old, *DROPPED} == set()


@pytest.mark.parametrize("package", ["matchmill", "matchmill.spark", "matchmill.client"])
def test_counts_are_named_alike(package: str) -> None:
    """`n_*`, not `num_*`, `*_count` or `*_number`."""
    if package == "matchmill.spark":
        pytest.importorskip("pyspark")
    odd = {n for n in names_of_package(package) if re.fullmatch(r"(num|nr|no)_.*|.*_count", n)}
    assert odd == set()


def test_an_old_name_would_be_found() -> None:
    def subscribe(identifier: str, *, valid_seconds: int) -> None: ...

    assert set(names_of(subscribe)) == {"identifier", "valid_seconds"}
    assert "refused" in set(words_in({"properties": {"refused": {"type": "array"}}}))
