"""An engine under churn stays as small as a fresh one: compaction forgets constants, too."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import pytest

import matchmill as mm

ONE_THREAD = mm.Settings(background=False)


def expression(rng: random.Random, n: int) -> str:
    """Return an expression with constants that no other one has."""
    parts = [
        f"any(tags) > {n}",
        f"price between {n}.25 and {n + rng.randrange(9)}.5",
        f"name like '%part{n}%'",
        f"name like 'a{n}%b'",
        f"name rlike 'r{n}+'",
        f"name like '%end{n}' or city = 'c{n}'",
        f"day > timestamp '2024-01-01 00:00:{n % 60:02}' and tags contains 't{n}'",
        " and ".join(f"(x{i} = {n} or y{i} = {n} or z{i} = {n})" for i in range(6)),
        f"attr{n} is not null",
    ]
    return f"({rng.choice(parts)}) or kind = 'k{n}' and {rng.choice(parts)}"


def events(rng: random.Random, numbers: list[int]) -> list[dict[str, Any]]:
    found = []
    for _ in range(40):
        n = rng.choice(numbers) + rng.choice((0, 0, 0, 1))
        found.append(
            {
                "tags": [n + 1, f"t{n}", -5],
                "price": n + rng.choice((0.25, 0.3, 3)),
                "name": rng.choice((f"a{n}..b", f"..part{n}..", f"r{n}", f"..end{n}")),
                "city": f"c{n}",
                "kind": f"k{n}",
                f"attr{n}": 1,
                **{f"{rng.choice('xyz')}{i}": n for i in range(6)},
            }
        )
    return found


def churned(engine: mm.Engine, rng: random.Random, n_live: int, n_rounds: int) -> dict[str, str]:
    """Replace all subscriptions again and again, with ever new constants."""
    live: dict[str, str] = {}
    for n in range(n_rounds):
        live = {f"u{k}": expression(rng, n * n_live + k) for k in range(n_live)}
        engine.subscribe_many(live, replace=True, strict=True)
    return live


def size(engine: mm.Engine) -> tuple[int, int, int]:
    stats = engine.stats()
    return stats.n_cut_points, stats.n_dimensions, stats.n_attributes


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("index", ["mill", "scan"])
def test_after_compaction_an_engine_is_as_small_as_a_fresh_one(index: str, tmp_path: Path) -> None:
    rng = random.Random(5)
    engine = mm.Engine(index=index, settings=ONE_THREAD)
    live = churned(engine, rng, 40, 6)
    fresh = mm.Engine(live, index=index, settings=ONE_THREAD)
    fresh.compact()
    some = events(rng, list(range(190, 241)))
    expected = fresh.match_many(some)
    assert list(engine.match_many(some)) == list(expected)
    assert size(engine)[0] > 3 * size(fresh)[0]
    engine.compact()
    assert size(engine) == size(fresh)
    assert list(engine.match_many(some)) == list(expected)
    assert [engine.match(event) for event in some] == list(expected)
    assert expected.n_matches > 50
    engine.save(tmp_path / "churned")
    fresh.save(tmp_path / "fresh")
    assert folder_bytes(tmp_path / "churned") < 1.2 * folder_bytes(tmp_path / "fresh")
    again = mm.Engine.open(tmp_path / "churned", read_only=True)
    assert list(again.match_many(some)) == list(expected)
    churned(engine, rng, 40, 2)  # it goes on from there
    engine.subscribe_many(live, replace=True, strict=True)
    assert list(engine.match_many(some)) == list(expected)


def test_what_is_known_of_events_is_kept() -> None:
    rng = random.Random(6)
    engine = mm.Engine(settings=ONE_THREAD)
    live = churned(engine, rng, 40, 4)
    some = [{"price": n % 50 + 120.3, "kind": f"k{n % 160}", "old": n} for n in range(600)]
    engine.learn(some)
    before = engine.stats().n_sampled_events
    engine.compact()
    assert engine.stats().n_sampled_events == before
    assert engine.stats().drift == 0.0
    then = engine._store.segmented.statistics
    fresh = mm.Engine(live, settings=ONE_THREAD)
    fresh.learn(some)
    fresh.compact()
    now = fresh._store.segmented.statistics
    assert then is not None
    assert now is not None
    assert sorted(then.dimension_counts) == sorted(now.dimension_counts)
    assert len(then.sample_keys) == len(now.sample_keys)


def test_churn_triggers_it_even_if_few_rows_have_many_constants() -> None:
    engine = mm.Engine({"u": "x = 1"}, settings=ONE_THREAD)
    for n in range(12):
        values = ", ".join(str(n * 10_000 + k) for k in range(10_000))
        engine.subscribe("wide", f"x in ({values})", replace=True)
    assert engine.stats().n_cut_points < 100_000
    assert engine.match({"x": 115_000}) == {"wide"}


@pytest.mark.long
def test_readers_and_writers_go_on_meanwhile() -> None:
    """Whoever matches while constants come and go, and while it is compacted, is never wrong."""
    rng = random.Random(7)
    engine = mm.Engine({"always": "price > 0", "never": "price < 0"}, settings=ONE_THREAD)
    churned(engine, rng, 60, 3)
    wrong: list[Any] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            for event in events(random.Random(1), list(range(900))):
                found = engine.match(event)
                if "always" not in found or "never" in found:
                    wrong.append(found)
            batch = engine.match_many(events(random.Random(1), list(range(900))))
            wrong.extend(one for one in batch if "always" not in one or "never" in one)

    def compact() -> None:
        while not stop.wait(0.01):  # a pause, or writers never get the lock
            engine.compact()

    threads = [threading.Thread(target=read), threading.Thread(target=compact)]
    for thread in threads:
        thread.start()
    live: dict[str, str] = {}
    for n in range(4):
        for k in range(60):
            live[f"u{k}"] = expression(rng, 900 + n * 60 + k)
            engine.subscribe(f"u{k}", live[f"u{k}"], replace=True)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
    some = events(rng, list(range(1080, 1140)))
    fresh = mm.Engine(live)
    engine.compact()
    expected = [found | {"always"} for found in fresh.match_many(some)]
    kept = {*live, "always", "never"}
    assert [found & kept for found in engine.match_many(some)] == expected
