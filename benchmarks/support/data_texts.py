"""Rows of `script/bench data`: conditions on texts."""

from __future__ import annotations

import random
from collections.abc import Callable

import matchmill as mm
from benchmarks.support.data_rows import TURNS, Measured, Size, as_list, row

# -- text -----------------------------------------------------------------------------------------

_WORDS = [f"{a}{b}{c}" for a in "bdfgklmn" for b in "aeiou" for c in "rstxz"]


def _phrases(n: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(_WORDS, k=8)) for _ in range(n)]


def _texts(pattern: Callable[[random.Random], str], n: int) -> Callable[[Size], Measured]:
    def prepare(size: Size) -> Measured:
        draw = random.Random(5)
        engine = mm.Engine({i: pattern(draw) for i in range(size.of(n))})
        events = [{"title": title} for title in _phrases(TURNS * size.n_events, 6)]
        return as_list(engine, events)

    return prepare


def _two(draw: random.Random) -> str:
    return f"{draw.choice(_WORDS)} {draw.choice(_WORDS)}"


row("title like 'x%' at 5k, new texts")(_texts(lambda d: f"title like '{_two(d)}%'", 5000))
row("title like '%x' at 5k, new texts")(_texts(lambda d: f"title like '%{_two(d)}'", 5000))
row("title ilike '%x%' at 5k, new texts")(_texts(lambda d: f"title ilike '%{_two(d)}%'", 5000))
row("title like 'x%y_z%' at 5k, new texts")(
    _texts(lambda d: f"title like '{d.choice(_WORDS)}%{_two(d)}_{d.choice('bdf')}%'", 5000)
)
row("title rlike 'x.*y' at 500, new texts")(
    _texts(lambda d: f"title rlike '{d.choice(_WORDS)}[a-m]? {d.choice(_WORDS)}$'", 500)
)


@row("title ilike '%x%' at 5k, texts that repeat: list of dicts")
def repeated_texts(size: Size) -> Measured:
    draw = random.Random(5)
    engine = mm.Engine({i: f"title ilike '%{_two(draw)}%'" for i in range(size.of(5000))})
    phrases = _phrases(200, 6)
    events = [{"title": draw.choice(phrases)} for _ in range(TURNS * size.n_events)]
    return as_list(engine, events)


@row("title rlike at 500, texts that repeat: list of dicts")
def repeated_regexes(size: Size) -> Measured:
    draw = random.Random(5)
    words = [(draw.choice(_WORDS), draw.choice(_WORDS)) for _ in range(size.of(500))]
    engine = mm.Engine({i: f"title rlike '{a}[a-m]? {b}$'" for i, (a, b) in enumerate(words)})
    phrases = _phrases(200, 6)
    events = [{"title": draw.choice(phrases)} for _ in range(TURNS * size.n_events)]
    return as_list(engine, events)


@row("load 10,000 ilike '%…%' alternatives and match once", 1, "s")
def load_alternatives(size: Size) -> Measured:
    n = size.of(10_000)
    text = " or ".join(f"title ilike '%x{i}y%'" for i in range(n))

    def load() -> None:
        engine = mm.Engine(settings=mm.Settings(max_conditions=n, max_clauses=n))
        engine.subscribe("all", text)
        assert engine.match({"title": "the X7Y of it"}) == {"all"}

    return load, 1_000_000
