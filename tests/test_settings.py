"""Tables of settings: each default stands once; names and values are checked."""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import dataclass

import pytest

from matchmill.errors import InputError
from matchmill.settings import (
    DEFAULT_SETTINGS,
    UNLIMITED,
    Settings,
    list_settings,
    make_settings,
    parse_setting,
    parse_settings,
    setting,
    settings_table,
)


@settings_table
@dataclass(frozen=True, slots=True, kw_only=True)
class Small:
    """A second table, as the service has one."""

    size: int = setting(10, "how large", group="sizes", minimum=2, maximum=20)
    is_quick: bool = setting(False, "quickly", group="work")
    colour: str = setting("red", "which", group="work", choices=("red", "blue"))
    name: str = setting("", "whose", group="work")


def test_fields_carry_everything_once() -> None:
    size, is_quick, colour, name = list_settings(Small)
    assert size == ("size", 10, "how large", "sizes", (), 2, 20)
    assert (is_quick.default, colour.choices, name.group) == (False, ("red", "blue"), "work")
    assert Small() == Small(size=10, is_quick=False, colour="red", name="")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("size", 1, "setting size must be a whole number of at least 2 and at most 20, not 1"),
        ("size", 21, "at most 20"),
        ("size", True, "whole number"),
        ("size", "3", "whole number"),
        ("size", 3.0, "whole number"),
        ("is_quick", 1, "True or False"),
        ("colour", "green", "one of red, blue"),
        ("name", None, "text"),
        ("sise", 3, "unknown setting 'sise'; did you mean 'size'"),
        ("zzzzzz", 3, "there are: colour, is_quick, name, size"),
    ],
)
def test_bad_names_and_values(name: str, value: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Small(**{name: value})  # type: ignore[arg-type]
    with pytest.raises(InputError, match=words):
        make_settings(Small, {name: value})
    with pytest.raises(InputError, match=words):
        dataclasses.replace(Small(), **{name: value})


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("size=12", ("size", 12)),
        (" size = 1_2 ", ("size", 12)),
        ("is_quick=True", ("is_quick", True)),
        ("is_quick=false", ("is_quick", False)),
        ("colour=blue", ("colour", "blue")),
        ("name=a=b", ("name", "a=b")),
        ("name=", ("name", "")),
    ],
)
def test_texts_are_read(text: str, pair: tuple[str, object]) -> None:
    assert parse_setting(Small, text) == pair


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("size", "a setting is written name=value, not 'size'"),
        ("sise=3", "did you mean 'size'"),
        ("size=many", "whole number of at least 2 and at most 20, not 'many'"),
        ("is_quick=yes", "True or False, not 'yes'"),
        ("colour=green", "one of red, blue"),
    ],
)
def test_bad_texts(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_setting(Small, text)


def test_several_texts_make_an_object() -> None:
    assert parse_settings(Small, ["size=3", "is_quick=true"]) == Small(size=3, is_quick=True)


def test_settings_show_what_differs_and_can_be_pickled() -> None:
    assert repr(Settings()) == "Settings()"
    settings = Settings(max_clauses=16, sync="never")
    assert repr(settings) == "Settings(max_clauses=16, sync='never')"
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert dataclasses.asdict(DEFAULT_SETTINGS)["max_clauses"] == 64
    assert UNLIMITED.max_depth == 200


def test_positions_are_no_names() -> None:
    with pytest.raises(TypeError):
        Settings(16)  # type: ignore[misc]
