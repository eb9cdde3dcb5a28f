"""Places on the globe: distances along great circles, points in polygons.

    within_km(40.6892, -74.0445, 5)          the event is at most 5 km away from there
    distance_km(40.6892, -74.0445, ?km)      binds how far it is
    in_polygon('POLYGON ((-74.1 40.6, -73.9 40.6, -73.9 40.8, -74.1 40.6))')

The event says where it is by its attributes `lat` and `lon`, in degrees; other names may follow as
the last two arguments. An event without them, or off the globe, makes these unknown.

The earth is a ball of 6371.0088 km (its mean radius), which is right to half a percent. Polygons
are written as well-known text, longitude first, with holes as further rings; edges are straight on
the map of longitude and latitude, a polygon does not cross the date line, and its border is inside.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from math import asin, cos, radians, sin, sqrt
from typing import Any, TypeAlias

from matchmill.operators.registry import Variable, operator

__all__ = ["distance_km", "great_circle_km", "in_polygon", "is_inside", "read_polygon", "within_km"]

EARTH_KM = 6371.0088

Point: TypeAlias = tuple[float, float]  # x, y: longitude, latitude
Ring: TypeAlias = tuple[Point, ...]


def great_circle_km(lat_1: float, lon_1: float, lat_2: float, lon_2: float) -> float:
    """Return the distance by the haversine formula, which is exact for short distances, too."""
    a, b = radians(lat_1), radians(lat_2)
    half_lat, half_lon = (b - a) / 2, radians(lon_2 - lon_1) / 2
    chord = sin(half_lat) ** 2 + cos(a) * cos(b) * sin(half_lon) ** 2
    return 2 * EARTH_KM * asin(min(1.0, sqrt(chord)))


def _place(event: Mapping[str, Any], lat_name: str, lon_name: str) -> Point | None:
    """Latitude and longitude, or None."""
    lat, lon = _number(event.get(lat_name)), _number(event.get(lon_name))
    if lat is None or lon is None or abs(lat) > 90 or abs(lon) > 360:
        return None
    return lat, lon


def _number(value: object) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number else None  # type: ignore[return-value]


@operator(cost_ms=0.003)
def within_km(
    event: Mapping[str, Any],
    lat: float,
    lon: float,
    km: float,
    lat_name: str = "lat",
    lon_name: str = "lon",
) -> bool | None:
    """Tell whether the event is at most so many kilometres away."""
    place = _place(event, lat_name, lon_name)
    return None if place is None else great_circle_km(*place, lat, lon) <= km


@operator(cost_ms=0.003)
def distance_km(
    event: Mapping[str, Any],
    lat: float,
    lon: float,
    km: Variable,
    lat_name: str = "lat",
    lon_name: str = "lon",
) -> float | None:
    """Bind the distance of the event in kilometres."""
    if not isinstance(km, Variable):
        raise TypeError("distance_km binds a distance: write ?km there, or within_km")
    place = _place(event, lat_name, lon_name)
    return None if place is None else great_circle_km(*place, lat, lon)


@operator(cost_ms=0.01)
def in_polygon(
    event: Mapping[str, Any], polygon: str, lat_name: str = "lat", lon_name: str = "lon"
) -> bool | None:
    """Tell whether the event is inside of a polygon."""
    rings = read_polygon(polygon)
    place = _place(event, lat_name, lon_name)
    return None if place is None else is_inside((place[1], place[0]), rings)


_POLYGON = re.compile(r"\s*POLYGON\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)
_RING = re.compile(r"\s*\(([^()]*)\)\s*")


@lru_cache(maxsize=4096)
def read_polygon(text: str) -> tuple[Ring, ...]:
    """Read the rings of a polygon in well-known text; ValueError if it is none."""
    whole = _POLYGON.fullmatch(text)
    inside = whole.group(1) if whole else ""
    rings, at = [], 0
    while True:
        ring = _RING.match(inside, at)
        if ring is None:
            raise ValueError("a polygon is written 'POLYGON ((lon lat, lon lat, …))'")
        rings.append(_read_ring(ring.group(1)))
        at = ring.end()
        if at == len(inside):
            return tuple(rings)
        if inside[at] != ",":
            raise ValueError("the rings of a polygon are separated by commas")
        at += 1


def _read_ring(text: str) -> Ring:
    points = []
    for pair in text.split(","):
        numbers = pair.split()
        if len(numbers) != 2:
            raise ValueError(f"a corner is a longitude and a latitude, not {pair.strip()!r}")
        points.append((float(numbers[0]), float(numbers[1])))
    if len(points) > 1 and points[0] == points[-1]:
        points.pop()
    if len(points) < 3:
        raise ValueError("a ring has at least three corners")
    return tuple(points)


def is_inside(point: Point, rings: tuple[Ring, ...]) -> bool:
    """Tell whether a point is on a ring, or its ray crosses the rings an odd number of times."""
    x, y = point
    inside = False
    for ring in rings:
        for (x_1, y_1), (x_2, y_2) in zip(ring, (*ring[1:], ring[0]), strict=True):
            side = (x_2 - x_1) * (y - y_1) - (x - x_1) * (y_2 - y_1)
            in_box = min(x_1, x_2) <= x <= max(x_1, x_2) and min(y_1, y_2) <= y <= max(y_1, y_2)
            if side == 0 and in_box:
                return True
            if (y_1 > y) != (y_2 > y) and (side > 0) == (y_2 > y_1):
                inside = not inside
    return inside
