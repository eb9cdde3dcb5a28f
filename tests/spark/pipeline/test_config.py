"""Configs: what `init` writes, and every mistake at once, with its line. No Spark."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from matchmill.cli import main
from matchmill.errors import InputError
from matchmill.index.registry import DEFAULT_INDEX
from matchmill.settings import Settings
from matchmill.spark.pipeline.config import Config, check_config, read_config
from matchmill.spark.pipeline.config_keys import SECTIONS, example_config

GOOD = """\
output = "out"

[subscriptions]
path = "alerts.csv"

[events]
path = "flights.parquet"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "alerts.csv").write_text("subscription_id,expression\n1,a = 1\n")
    (tmp_path / "flights.parquet").write_bytes(b"PAR1")
    return tmp_path


def config_of(folder: Path, text: str) -> Config:
    return read_config(write(folder, text))


def write(folder: Path, text: str) -> Path:
    path = folder / "p.toml"
    path.write_text(text)
    return path


def mistakes_of(folder: Path, text: str) -> list[str]:
    return list(map(str, check_config(write(folder, text))[1]))


def test_a_short_config_has_all_defaults(folder: Path) -> None:
    config = config_of(folder, GOOD)
    assert config.output == str(folder / "out")
    assert config["events"]["path"] == str(folder / "flights.parquet")
    assert config["events"]["format"] == "parquet"
    assert config["build"] == {
        "index": DEFAULT_INDEX, "index_options": {}, "shards": 0, "keep": 2, "strict": False,
    }  # fmt: skip
    assert config["statistics"] == {"enabled": False}
    assert config.settings == Settings()
    assert not config.has_stream


def test_a_stream_takes_after_the_events(folder: Path) -> None:
    (folder / "incoming").mkdir()
    config = config_of(folder, GOOD + 'event_id = "n"\n[stream]\npath = "incoming"\n')
    assert config.has_stream
    stream = config["stream"]
    assert (stream["event_id"], stream["format"], stream["layout"]) == ("n", "parquet", "wide")


def test_the_example_is_good_once_its_files_are_there(tmp_path: Path) -> None:
    assert main(["pipeline", "init", str(tmp_path / "new"), "--quiet"]) == 0
    path = tmp_path / "new" / "pipeline.toml"
    assert len(check_config(path)[1]) == 2  # the two files
    (tmp_path / "new" / "subscriptions.csv").write_text("subscription_id,expression\n")
    (tmp_path / "new" / "events.parquet").write_bytes(b"")
    read_config(path)


def test_the_example_names_every_key_with_its_default() -> None:
    lines = example_config().splitlines()
    opened = "\n".join(
        line[1:] if line.startswith("#") and not line.startswith("# ") else line for line in lines
    )
    found = tomllib.loads(opened)
    for name, section in SECTIONS.items():
        assert set(section.keys) == set((found[name] if name else found) if name else ["output"])


def test_init_writes_over_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pipeline.toml").write_text("mine")
    assert main(["pipeline", "init", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert (tmp_path / "pipeline.toml").read_text() == "mine"


def test_all_mistakes_are_told_at_once(folder: Path) -> None:
    text = """\
output = 5
colour = "red"
[subscription]
path = "alerts.csv"
[subscriptions]
path = "nowhere.csv"
integer_ids = "yes"
[events]
path = "flights.parquet"
layout = "broad"
atributes = ["a"]
[build]
index = "mil"
shards = -1
keep = 0
[stream]
trigger = "often"
[settings]
max_clauses = 0
"""
    found = mistakes_of(folder, text)
    expected = [
        "line 1, output: it must be a text in quotes, not 5",
        "line 2, colour: there is no such key",
        "line 3, subscription: there is no such section; did you mean 'subscriptions'?",
        f"line 6, subscriptions.path: {folder / 'nowhere.csv'} is not there",
        "line 7, subscriptions.integer_ids: it must be true or false, not 'yes'",
        "line 10, events.layout: 'broad' is none of wide, map, json, long",
        "line 11, events.atributes: there is no such key; did you mean 'attributes'?",
        "line 13, build.index: ",
        "line 14, build.shards: it must not be negative",
        "line 15, build.keep: at least one version",
        "line 16, stream.path: format 'parquet' needs a folder",
        "line 17, stream.trigger: 'often' is neither",
        "line 19, settings.max_clauses: setting max_clauses must be a whole number of at least 1",
    ]
    assert len(found) == len(expected), found
    for told, start in zip(found, expected, strict=True):
        assert told.startswith(start), told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "output: it is missing"),
        ("output = = 1\n", "line 1, TOML: "),
        (GOOD.replace("flights.parquet", "flights.xls"), "xls: write csv, jsonl, parquet or orc"),
        (GOOD + 'format = "xml"\n', "'xml' is none of csv, jsonl, parquet, orc"),
        (GOOD + 'format = "jsonl"\n', 'layout = "json"'),
        (GOOD + 'format = "csv"\nlayout = "map"\n', "CSV has no maps"),
        (GOOD + 'layout = "json"\nattributes = ["a", "b"]\n', "has events in one column"),
        (GOOD + "attributes = 'a'\n", "it is a list: ['a']"),
        (GOOD.replace('"out"', '"."'), "are read from it; choose another folder"),
        (GOOD.replace('"out"', '"alerts.csv"'), "is a file; name a folder"),
        (GOOD + '[stream]\npath = "alerts.csv"\n', "Spark watches folders"),
        (GOOD.replace("[events]", 'operators = ["no.such_module"]\n[events]'), "no module"),
        ("events = 3\n" + GOOD.replace("[events]", "[spark.x]"), "it is a section"),
    ],
)
def test_mistakes(folder: Path, text: str, told: str) -> None:
    assert any(told in mistake for mistake in mistakes_of(folder, text)), mistakes_of(folder, text)


@pytest.mark.parametrize(
    ("section", "key", "meant"),
    [
        ("subscriptions", "id_column", "subscription_id"),
        ("subscriptions", "id", "subscription_id"),
        ("events", "columns", "attributes"),
        ("build", "name", "index"),
        ("match", "distributed", "plan"),
        ("match", "arrays", "per_event"),
        ("spark", "settings", "conf"),
    ],
)
def test_what_people_write_for_a_key(folder: Path, section: str, key: str, meant: str) -> None:
    header = f"[{section}]"
    text = GOOD if header in GOOD else f"{GOOD}{header}\n"
    (mistake,) = mistakes_of(folder, text.replace(header, f"{header}\n{key} = 'x'"))
    assert mistake.endswith(f"{section}.{key}: there is no such key; did you mean '{meant}'?")
    (mistake,) = mistakes_of(folder, GOOD + "[index]\nshards = 2\n")
    assert mistake == "line 8, index: there is no such section; did you mean 'build'?"


def test_paths_that_only_spark_knows_are_left_to_it(folder: Path) -> None:
    text = GOOD.replace("flights.parquet", "s3a://bucket/flights.parquet").replace(
        '"out"', '"hdfs://host/out"'
    )
    config = config_of(folder, text)
    assert config.output == "hdfs://host/out"
    assert config["events"]["path"] == "s3a://bucket/flights.parquet"


def test_check_tells_by_its_exit_code(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = str(write(folder, GOOD))
    assert main(["pipeline", "check", good]) == 0
    assert "no mistakes" in capsys.readouterr().out
    bad = str(write(folder, GOOD + "layot = 1\n"))
    assert main(["pipeline", "check", bad]) == 1
    assert capsys.readouterr().out == (
        "line 8, events.layot: there is no such key; did you mean 'layout'?\n"
    )
    assert main(["pipeline", "check", bad, "--format", "json"]) == 1
    (mistake,) = json.loads(capsys.readouterr().out)
    assert (mistake["line"], mistake["key"]) == (8, "events.layot")
    assert main(["pipeline", "run", bad]) == 2
    assert "p.toml has a mistake:\n  line 8, events.layot" in capsys.readouterr().err
    assert main(["pipeline", "check", str(folder / "none.toml")]) == 2
    assert "pipeline init" in capsys.readouterr().err


def test_reading_a_bad_config_is_an_error(folder: Path) -> None:
    with pytest.raises(InputError, match="has 2 mistakes"):
        config_of(folder, "x = 1\n" + GOOD + "y = 2\n")
