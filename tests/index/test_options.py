"""Index options: unknown ones are rejected, and the table says what the classes take."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from random import Random
from typing import Any, ClassVar

import pytest

from matchmill.errors import InputError
from matchmill.index.mill import Mill
from matchmill.index.options import OPTIONS, IndexOption
from matchmill.index.registry import INDEXES, check_index_options, index_options
from matchmill.index.scan import Scan
from matchmill.index.segment_arrays import segments_from_arrays, segments_to_arrays
from matchmill.index.segments import Segmented
from tests.support.conformance_kit import random_table


@pytest.mark.parametrize("name", sorted(INDEXES))
def test_the_table_has_the_options_of_the_classes(name: str) -> None:
    taken = {
        parameter.name: parameter.default
        for parameter in inspect.signature(INDEXES[name].build).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name != "one_sided"
    }
    assert {option.name: option.default for option in index_options(name)} == taken
    for option in index_options(name):
        option.check(option.default)
        assert option.help


def test_there_is_no_option_of_an_index_that_does_not_exist() -> None:
    assert set(OPTIONS) == set(INDEXES)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "mill",
            {"kernal": "one"},
            "index 'mill' has no option 'kernal'; it has: kernel; did you mean 'kernel'?",
        ),
        ("mill", {"nonsense": 42}, "index 'mill' has no option 'nonsense'; it has: kernel"),
        ("scan", {"x": 1}, "index 'scan' has no option 'x'; it has none"),
        (
            "mill",
            {"kernel": "two"},
            "index option kernel must be one of auto, one, many, not 'two'",
        ),
        ("mill", {"kernel": None}, "index option kernel must be one of auto, one, many, not None"),
        ("pst_hash", {"n_access": True}, "n_access must be a whole number, at least 1, not True"),
        ("pst_hash", {"n_access": 0}, "n_access must be a whole number, at least 1, not 0"),
        ("gryphon", {"rare_first": 1}, "rare_first must be True or False, not 1"),
        ("mil", {}, "unknown index 'mil'; there are: .*; did you mean 'mill'?"),
        (3, {}, "unknown index 3; there are: "),
    ],
)
def test_wrong_options_are_rejected(name: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("?", "\\?")):
        check_index_options(name, options)


def test_right_options_are_accepted() -> None:
    check_index_options("mill", {})
    check_index_options("mill", {"kernel": "many"})
    check_index_options("op_index", {"segments": False})
    check_index_options("op_index", {"segments": 64})
    check_index_options("be_tree", {"max_capacity": None, "matching_probability": 1})


class Toy(Scan):
    """An index that is registered at run time."""

    name: ClassVar[str] = "toy"
    options: ClassVar[tuple[IndexOption, ...]] = (
        IndexOption("depth", (int,), 3, "how deep", minimum=1),
    )


@pytest.fixture
def _registered() -> Iterator[None]:
    INDEXES["toy"] = Toy
    yield
    del INDEXES["toy"]


@pytest.mark.usefixtures("_registered")
def test_registered_classes_declare_their_own_options() -> None:
    check_index_options("toy", {"depth": 5})
    with pytest.raises(InputError, match="index option depth must be a whole number"):
        check_index_options("toy", {"depth": "5"})


def test_options_are_given_to_indexes_that_were_saved() -> None:
    segmented = Segmented(Mill, fresh_clauses=2, options={"kernel": "many"})
    segmented.insert(random_table(Random(1), 30))
    arrays, names = segments_to_arrays(segmented.snapshot)
    (again,) = segments_from_arrays(arrays, names, {"kernel": "many"})
    assert isinstance(again.built, Mill)
    assert again.built.kernel == "many"
    (plain,) = segments_from_arrays(arrays, names)
    assert isinstance(plain.built, Mill)
    assert plain.built.kernel == "auto"
