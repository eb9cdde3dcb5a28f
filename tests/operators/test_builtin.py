"""The operators that come with matchmill, each against another way to the same answer."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchmill as mm
from matchmill.operators.builtin.geography import EARTH_KM, great_circle_km, is_inside, read_polygon
from matchmill.operators.builtin.text_distance import edits, hamming
from matchmill.operators.outcome import Outcome
from matchmill.operators.registry import Variable, find_operator
from matchmill.operators.safe_call import ask, frozen_event


def outcome(name: str, event: dict[str, Any], *arguments: Any) -> Outcome:
    operator = find_operator(name)
    assert operator is not None
    return ask(operator, frozen_event(event), arguments).outcome


# -- distances ------------------------------------------------------------------------------------

latitudes = st.floats(-90, 90, allow_nan=False)
longitudes = st.floats(-180, 180, allow_nan=False)


def by_vectors(lat_1: float, lon_1: float, lat_2: float, lon_2: float) -> float:
    """The angle between two directions in space."""
    a, b = (
        np.array([
            math.cos(math.radians(lat)) * math.cos(math.radians(lon)),
            math.cos(math.radians(lat)) * math.sin(math.radians(lon)),
            math.sin(math.radians(lat)),
        ])
        for lat, lon in ((lat_1, lon_1), (lat_2, lon_2))
    )  # fmt: skip
    return EARTH_KM * math.atan2(float(np.linalg.norm(np.cross(a, b))), float(a @ b))


@given(latitudes, longitudes, latitudes, longitudes)
def test_distances_are_angles_in_space(a: float, b: float, c: float, d: float) -> None:
    # Near the other side of the globe haversine loses digits, some metres at worst.
    assert great_circle_km(a, b, c, d) == pytest.approx(by_vectors(a, b, c, d), abs=0.5)


def test_known_distances() -> None:
    """A quarter of the equator; New York to London, as atlases have it."""
    assert great_circle_km(0, 0, 0, 90) == pytest.approx(EARTH_KM * math.pi / 2)
    assert great_circle_km(40.7128, -74.0060, 51.5074, -0.1278) == pytest.approx(5570, abs=5)
    assert great_circle_km(10, 20, 10, 380) == pytest.approx(0, abs=1e-6)


def test_within_and_distance() -> None:
    event = {"lat": 40.0, "lon": -74.0}
    assert outcome("within_km", event, 40.0, -74.1, 9).truth is True
    assert outcome("within_km", event, 40.0, -74.1, 8).truth is False
    ((km,),) = outcome("distance_km", event, 40.0, -74.1, Variable(0)).bindings
    assert isinstance(km, float)
    assert 8 < km < 9
    assert outcome("within_km", {"a": 40, "b": -74}, 40.0, -74.1, 9, "a", "b").truth is True
    for lat, lon in ((None, 1), (40, None), ("40", 1), (91, 1), (True, 1), (40, 361)):
        bad = {"lat": lat, "lon": lon}
        assert outcome("within_km", bad, 40.0, -74.0, 9) == Outcome(None)
    assert "within_km" in outcome("distance_km", event, 40.0, -74.1, 5).error


# -- polygons -------------------------------------------------------------------------------------

corners = st.tuples(st.integers(-6, 6), st.integers(-6, 6))


def winding(point: tuple[int, int], ring: list[tuple[int, int]]) -> int | None:
    """How often a ring goes around a point, in whole numbers; None if the point is on it."""
    x, y = point
    turns = 0
    for (x_1, y_1), (x_2, y_2) in zip(ring, ring[1:] + ring[:1], strict=True):
        side = (x_2 - x_1) * (y - y_1) - (x - x_1) * (y_2 - y_1)
        between = min(x_1, x_2) <= x <= max(x_1, x_2) and min(y_1, y_2) <= y <= max(y_1, y_2)
        if side == 0 and between:
            return None
        if y_1 <= y < y_2 and side > 0:
            turns += 1
        elif y_2 <= y < y_1 and side < 0:
            turns -= 1
    return turns


def crossings(point: tuple[int, int], ring: list[tuple[int, int]]) -> int:
    """How often a ray that meets no corner crosses a ring: its slope is no fraction of theirs."""
    x, y = point
    slope = Fraction(1, 1009)
    n = 0
    for (x_1, y_1), (x_2, y_2) in zip(ring, ring[1:] + ring[:1], strict=True):
        above_1 = y_1 - y - slope * (x_1 - x)
        above_2 = y_2 - y - slope * (x_2 - x)
        if (above_1 > 0) != (above_2 > 0):
            share = above_1 / (above_1 - above_2)
            n += x_1 + share * (x_2 - x_1) > x
    return n


@given(st.lists(corners, min_size=3, max_size=7, unique=True), corners)
def test_points_in_polygons(ring: list[tuple[int, int]], point: tuple[int, int]) -> None:
    floats = tuple((float(x), float(y)) for x, y in ring)
    inside = is_inside((float(point[0]), float(point[1])), (floats,))
    if winding(point, ring) is None:
        assert inside  # on its border
    else:
        assert inside == (crossings(point, ring) % 2 == 1)


def test_polygons_as_text() -> None:
    square = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 3 1, 3 3, 1 3))"
    assert len(read_polygon(square)) == 2
    places = {(0.5, 0.5): True, (2, 2): False, (5, 2): False, (4, 2): True}
    for (x, y), truth in places.items():
        assert outcome("in_polygon", {"lon": x, "lat": y}, square).truth is truth
    assert outcome("in_polygon", {}, square) == Outcome(None)


@pytest.mark.parametrize(
    "text",
    ["", "POLYGON", "POINT (1 1)", "POLYGON ((0 0, 1 1))", "POLYGON ((0 0, 1, 2 2))",
     "POLYGON ((0 0, 1 1, 2 0) (1 1, 2 2, 3 3))", "POLYGON ((0 0, 1 1, 2 x))"],
)  # fmt: skip
def test_what_is_no_polygon_is_an_error(text: str) -> None:
    assert outcome("in_polygon", {"lat": 1, "lon": 1}, text).error


# -- words ----------------------------------------------------------------------------------------

words = st.text("abc", max_size=6)


@cache
def recursive_edits(a: str, b: str) -> int:
    if not a or not b:
        return len(a) + len(b)
    if a[0] == b[0]:
        return recursive_edits(a[1:], b[1:])
    return 1 + min(
        recursive_edits(a[1:], b), recursive_edits(a, b[1:]), recursive_edits(a[1:], b[1:])
    )


@given(words, words, st.integers(0, 7))
def test_edits_and_hamming(a: str, b: str, most: int) -> None:
    assert edits(a, b, most) == min(recursive_edits(a, b), most + 1)
    same_places = sum(x == y for x, y in zip(a, b, strict=False))
    expected = len(a) - same_places if len(a) == len(b) else most + 1
    assert hamming(a, b, most) == min(expected, most + 1)


@given(st.lists(words, min_size=1, max_size=5), words.filter(bool))
def test_the_nearest_word_counts(found: list[str], wanted: str) -> None:
    event = {"title": " ".join(found).upper() + "!"}
    known = [word for word in found if word]
    nearest = min((recursive_edits(word, wanted) for word in known), default=None)
    bound = outcome("edit_distance", event, "title", wanted, Variable(0))
    assert bound.bindings == (() if nearest is None else ((nearest,),))
    for most in range(4):
        truth = outcome("within_edits", event, "title", wanted, most).truth
        assert truth is (nearest is not None and nearest <= most)
    alike = [hamming(word, wanted, 9) for word in known if len(word) == len(wanted)]
    bound = outcome("hamming_distance", event, "title", wanted, Variable(0))
    assert bound.bindings == (((min(alike),),) if alike else ())
    truth = outcome("within_hamming", event, "title", wanted, 1).truth
    assert truth is (bool(alike) and min(alike) <= 1)


def test_words_of_lists_and_of_nothing() -> None:
    event = {"tags": ["Colours of", "the wind"], "n": 5}
    assert outcome("within_edits", event, "tags", "colour", 1).truth is True
    assert outcome("within_edits", event, "n", "colour", 1) == Outcome(None)
    assert outcome("within_edits", event, "missing", "colour", 1) == Outcome(None)
    assert "binds a distance" in outcome("edit_distance", event, "tags", "colour", 1).error


# -- attributes -----------------------------------------------------------------------------------


def test_attributes_for_constraints() -> None:
    engine = mm.Engine()
    engine.subscribe_many(
        {
            "cheaper": "attribute('price', ?p) and attribute('old', ?o) and ?p < 0.8 * ?o",
            "elements": "attribute('tags', ?a) and attribute('wanted', ?a)",
            "equal": "attribute('price', 5)",
        }
    )
    assert engine.match({"price": 5.0, "old": 10}) == {"cheaper", "equal"}
    assert engine.match({"price": 9, "old": 10, "tags": ["a", "b"], "wanted": "b"}) == {"elements"}
    assert engine.match({"price": 9, "tags": ["a"], "wanted": ["b"]}) == set()
