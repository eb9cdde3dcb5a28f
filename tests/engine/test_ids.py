"""An id that one call accepts means the same in every other; all else is an error with a reason."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchmill as mm


class Name(str):
    """A text of another class, which prints itself in another way."""

    __slots__ = ()

    def __str__(self) -> str:
        return "another"


class Colour(str, enum.Enum):  # noqa: UP042 - `str` of its members is not their value
    RED = "u1"


class Level(enum.IntEnum):
    LOW = 7


class Number(int):
    pass


class Nameless:
    def __repr__(self) -> str:
        raise RuntimeError("this object has no name")

    def __hash__(self) -> int:
        raise RuntimeError("this object has no hash")


SAME: list[tuple[str | int, Any]] = [
    *(("u1", same) for same in (Name("u1"), np.str_("u1"), Colour.RED)),
    *((7, same) for same in (np.int64(7), np.int8(7), np.uint16(7), Level.LOW, Number(7))),
]


@pytest.mark.parametrize(("plain", "same"), SAME, ids=lambda value: type(value).__name__)
def test_an_id_of_a_related_type_means_the_same_everywhere(plain: Any, same: Any) -> None:
    engine = mm.Engine({plain: "x = 1"})
    assert same in engine
    assert engine[same] == mm.Subscription(plain, "x = 1")
    assert type(engine[same].id) is type(plain)
    assert engine.get(same) == engine[plain]
    explanation = engine.explain(same, {"x": 1})
    assert (explanation.id, type(explanation.id)) == (plain, type(plain))
    engine.update(same, expression="x = 2")
    with pytest.raises(mm.DuplicateIdError):
        engine.subscribe(same, "x = 3")
    engine.subscribe(same, "x = 3", replace=True)
    assert dict(engine.items()) == {plain: mm.Subscription(plain, "x = 3")}
    assert engine.match({"x": 3}) == {plain}
    assert engine.subscribe_many([(same, "x = 4")], replace=True).n_replaced == 1
    assert engine.update_many([(same, "x = 5")]).n_accepted == 1
    engine.unsubscribe(same)
    engine.subscribe(plain, "x = 1")
    engine.unsubscribe_many([same, plain, same])
    assert len(engine) == 0


@pytest.mark.parametrize(("plain", "same"), SAME, ids=lambda value: type(value).__name__)
def test_an_id_of_a_related_type_is_stored_as_a_plain_one(
    plain: Any, same: Any, tmp_path: Path
) -> None:
    with mm.Engine.open(tmp_path / "e", create=True) as engine:
        engine.subscribe(same, "x = 1")
        engine.subscribe_many([(type(plain)("2"), "x = 1")])
        engine.unsubscribe(np.array([plain])[0])
        engine.subscribe(same, "x = 2")
        engine.save()
        engine.update(same, expression="x = 3")
    with mm.Engine.open(tmp_path / "e") as engine:
        assert [(id, type(id)) for id in engine] == [
            (id, type(plain)) for id in (plain, type(plain)("2"))
        ]
        engine.unsubscribe(same)
    with mm.Engine.open(tmp_path / "e", read_only=True) as engine:
        assert list(engine) == [type(plain)("2")]


NO_IDS: list[Any] = [
    *(True, 1.0, None, b"u1", [], (), {}, object(), Nameless(), "", "\ud800", "u\udfff1"),
    *(2**63, -(2**63) - 1, 10**5000, np.uint64(2**63), np.float64(7), np.bool_(True)),
    *(np.timedelta64(7, "s"), np.array([7]), np.array(7), Number(2**70)),
]


@pytest.mark.parametrize("plain", ["u1", 7])
@pytest.mark.parametrize("n", range(len(NO_IDS)))
def test_what_cannot_be_an_id_is_none(plain: Any, n: int) -> None:
    engine, other = mm.Engine({plain: "x = 1"}), NO_IDS[n]
    assert other not in engine
    assert engine.get(other) is None
    for ask in (
        lambda: engine[other],
        lambda: engine.unsubscribe(other),
        lambda: engine.unsubscribe_many([plain, other]),
        lambda: engine.explain(other, {}),
    ):
        with pytest.raises(mm.UnknownIdError, match="there is no subscription "):
            ask()
    for change in (
        lambda: engine.subscribe(other, "x = 2"),
        lambda: engine.update(other, expression="x = 2"),
        lambda: engine.subscribe_many([(other, "x = 2")], strict=True),
        lambda: mm.Engine().subscribe(other, "x = 2"),
    ):
        with pytest.raises(mm.InputError, match="id"):
            change()
    assert len(str(engine.subscribe_many([(other, "x = 2")]).rejected[0])) < 500
    assert dict(engine.items()) == {plain: mm.Subscription(plain, "x = 1")}
