"""Engines whose index changes in place: sequences of changes, files, threads, options."""

from __future__ import annotations

import threading
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import matchmill as mm
from matchmill.index.in_place import View
from matchmill.index.registry import index_class
from matchmill.index.segment_arrays import segments_to_arrays
from matchmill.index.segments import Segment, Snapshot
from matchmill.index.tombstones import NO_TOMBSTONES
from tests.support.in_place_checks import IN_PLACE, check_engine, structure_of
from tests.support.in_place_sequences import run_sequence
from tests.support.tiers import first_cases

_PER_CASE = 250


@pytest.mark.parametrize("index", IN_PLACE)
@pytest.mark.bounds
@pytest.mark.parametrize("first_seed", first_cases(1, range(0, 10_000, _PER_CASE)))
def test_sequences(index: str, first_seed: int) -> None:
    """All cases of an index are 10,000 sequences; the first one of them has few."""
    for seed in range(first_seed, first_seed + (_PER_CASE if first_seed else 12)):
        run_sequence(index, seed)


def test_halves_that_were_cut_again_are_not_merged() -> None:
    """Of this sequence BE-Tree once kept a node that was in no bucket any more."""
    run_sequence("be_tree", 3409)


def subscriptions(n: int, seed: int = 1) -> dict[int, str]:
    rng = Random(seed)
    return {
        k: f"a = {rng.randrange(8)} and b < {rng.randrange(100)} and c != {rng.randrange(5)}"
        for k in range(n)
    }


EVENTS = [{"a": a, "b": b, "c": c} for a in range(8) for b in (0, 20, 50, 99) for c in range(5)]


def answers(engine: mm.Engine) -> list[set[int]]:
    return list(engine.match_many(EVENTS))


def expected(texts: dict[int, str]) -> list[set[int]]:
    parsed = {key: mm.parse(text) for key, text in texts.items()}
    return [{k for k, e in parsed.items() if mm.evaluate(e, event) is True} for event in EVENTS]


@pytest.mark.parametrize("index", IN_PLACE)
def test_a_folder_keeps_the_index_as_it_is(index: str, tmp_path: Path) -> None:
    texts = subscriptions(120)
    with mm.Engine.open(tmp_path / "e", create=True, index=index) as engine:
        engine.subscribe_many({k: texts[k] for k in range(80)})
        for k in range(80, 120):
            engine.subscribe(k, texts[k])
        for k in range(0, 120, 7):
            engine.unsubscribe(k)
            del texts[k]
        engine.save()
        engine.subscribe(1000, "a = 3")  # only in the log
        texts[1000] = "a = 3"
        wanted = expected(texts)
        assert answers(engine) == wanted
    for verify in (False, True):
        with mm.Engine.open(tmp_path / "e", verify=verify) as again:
            assert answers(again) == wanted
            check_engine(again)
            again.subscribe(2000, "a = 4")
            assert 2000 in again.match({"a": 4})
            again.unsubscribe(2000)
            check_engine(again)
    assert answers(mm.Engine.open(tmp_path / "e", read_only=True)) == wanted


@pytest.mark.parametrize("index", IN_PLACE)
def test_segments_of_earlier_versions_become_one(index: str, tmp_path: Path) -> None:
    """Earlier versions built several indexes, in wide keys, and scanned the newest clauses."""
    texts = subscriptions(40)
    engine = mm.Engine(texts, index="scan", settings=mm.Settings(fresh_clauses=8))
    engine.unsubscribe_many([3, 4])
    segments = engine._store.segmented.snapshot.segments
    built = tuple(Segment(index_class(index).build(s.table), s.table, s.dead) for s in segments)
    wanted = answers(engine)
    store = engine._store
    store.segmented.index_class = index_class(index)
    store.segmented.snapshot = Snapshot(built)
    store.publish()
    engine.save(tmp_path / "old")
    with mm.Engine.open(tmp_path / "old") as again:
        check_engine(again)
        assert again.index == index
        assert answers(again) == wanted


def test_another_index_is_built_from_the_clauses(tmp_path: Path) -> None:
    texts = subscriptions(60)
    mm.Engine(texts, index="be_tree").save(tmp_path / "e")
    for index in ("mill", "pst_hash", "op_index", "be_tree"):
        with mm.Engine.open(tmp_path / "e", index=index) as engine:
            assert {one.index for one in engine.stats().index} == {index}
            assert answers(engine) == expected(texts)
            engine.save()


@pytest.mark.parametrize("index", ["pst_bloom", "pst_hash"])
def test_options_that_are_in_no_array_survive(index: str, tmp_path: Path) -> None:
    engine = mm.Engine(subscriptions(20), index=index, index_options={"ahead": False})
    engine.save(tmp_path / "e")
    again = mm.Engine.open(tmp_path / "e", read_only=True)
    structure: Any = structure_of(again)
    assert structure.index._ahead is False


def test_single_changes_are_made_in_the_index_that_is_there() -> None:
    engine = mm.Engine(subscriptions(500), index="be_tree")
    structure = structure_of(engine)
    assert structure is not None
    index = structure.index
    for key, text in subscriptions(300, seed=2).items():
        engine.subscribe(1000 + key, text)
        engine.unsubscribe(key)
    assert structure_of(engine) is structure
    assert structure.index is index
    assert len(engine.stats().index) == 1
    check_engine(engine)


def test_threads_that_match_have_the_tree_adjust_itself() -> None:
    """Partitions on what all events have, and no clause that they satisfy, rank low."""
    engine = mm.Engine(index="be_tree", index_options={"max_capacity": 2})
    engine.subscribe_many({k: f"a between 1 and {50 + k % 3} and b = {k}" for k in range(400)})
    structure: Any = structure_of(engine)
    n_adjusted: list[int] = []
    adjust = structure.index.adjust
    structure.index.adjust = lambda: n_adjusted.append(adjust())
    events = [{"a": 5, "b": k % 500} for k in range(3000)]
    wanted = [{b for b in (event["b"],) if b < 400} for event in events]
    failed: list[object] = []

    def match() -> None:
        for _ in range(6):
            if list(engine.match_many(events, threads=2)) != wanted:
                failed.append("wrong")

    threads = [threading.Thread(target=match) for _ in range(3)]
    for thread in threads:
        thread.start()
    for k in range(400, 450):
        engine.subscribe(k + 1000, f"a = 60 and b = {k}")
    for thread in threads:
        thread.join()
    assert not failed
    assert len(n_adjusted) >= 3
    check_engine(engine)


def test_codes_are_renewed_in_the_background() -> None:
    settings = mm.Settings(fresh_clauses=4, background=False)
    engine = mm.Engine(index="pst_hash", settings=settings)
    for k in range(200):
        engine.subscribe(k, f"x between {k * 7 % 200}.5 and {k * 7 % 200 + 10}.25")
        assert k in engine.match({"x": k * 7 % 200 + 1})
    structure = structure_of(engine)
    assert structure is not None
    assert structure.contents.n_doubtful <= 4 + 200 / 4 + 1
    check_engine(engine)


def test_capturing_copies_what_changes() -> None:
    engine = mm.Engine(subscriptions(50), index="op_index")
    state = engine._store.state
    frozen = engine._store.segmented.frozen(state.snapshot)
    before, names = segments_to_arrays(frozen)
    copied = {name: array.copy() for name, array in before.items()}
    for k in range(50):
        engine.unsubscribe(k)
        engine.subscribe(100 + k, f"a = {k}")
    assert names == ["op_index in place"]
    assert all(np.array_equal(copied[name], before[name]) for name in copied)
    (segment,) = frozen.segments
    assert isinstance(segment.built, View)
    assert segment.dead is NO_TOMBSTONES
