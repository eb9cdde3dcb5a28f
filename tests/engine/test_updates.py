"""Changes of every kind, one at a time, in bulk, during merges and compactions, against a dict of
expressions and the oracle; and readers that must never see anything in between."""

from __future__ import annotations

import gc
import itertools
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import matchmill as mm
from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.engine import compaction
from matchmill.index.segments import Merge, Segment, Segmented
from tests.support.generators import random_event, random_expression
from tests.support.in_place_checks import IN_PLACE
from tests.support.strategies import events, expressions
from tests.support.tiers import first_cases

SMALL = {"fresh_clauses": 3, "merge_factor": 2}
ids = st.sampled_from([f"s{n}" for n in range(12)])
several = st.dictionaries(ids, expressions(max_leaves=4), min_size=1, max_size=6)


def expected(subscriptions: dict[Any, mm.Expression], event: dict[str, Any]) -> set[Any]:
    return {key for key, e in subscriptions.items() if mm.evaluate(e, event) is True}


class Lives(RuleBasedStateMachine):
    """An engine in a folder, whose merges and compactions are interrupted by other changes."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.subscriptions: dict[str, mm.Expression] = {}
        self.meanwhile: list[Callable[[], None]] = []  # what to do during the next builds
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(compaction, "_FEW_ROWS", 2)
        self.patch.setattr(Segmented, "built", self._interrupted(Segmented.built))

    def _interrupted(self, built: Any) -> Any:
        def while_building(segmented: Segmented, table: ConjunctionTable, known: Any) -> Segment:
            # Another thread would have to wait for the lock.
            is_locked = self.engine._store.lock.is_held()
            if self.meanwhile and not is_locked:
                self.meanwhile.pop()()
            segment: Segment = built(segmented, table, known)
            return segment

        return while_building

    @initialize()
    def start(self) -> None:
        self.settings = mm.Settings(**SMALL, background=False, sync="never")
        self.engine = mm.Engine.open(self.folder / "e", create=True, settings=self.settings)

    def teardown(self) -> None:
        self.patch.undo()
        self.engine.close()
        shutil.rmtree(self.folder)

    def _subscribe(self, some: dict[str, mm.Expression]) -> None:
        self.subscriptions |= some  # first, since others may follow before the call ends
        if len(some) == 1:
            ((key, expression),) = some.items()
            self.engine.subscribe(key, expression, replace=True)
        else:
            assert not self.engine.subscribe_many(some, replace=True).rejected

    def _unsubscribe(self, some: set[str]) -> None:
        known = sorted(some & set(self.subscriptions))
        for key in known:
            del self.subscriptions[key]
        self.engine.unsubscribe_many(known)

    @rule(key=ids, expression=expressions(max_leaves=4))
    def subscribe(self, key: str, expression: mm.Expression) -> None:
        self._subscribe({key: expression})

    @rule(some=several)
    def subscribe_many(self, some: dict[str, mm.Expression]) -> None:
        self._subscribe(some)

    @rule(some=st.sets(ids, max_size=5))
    def unsubscribe(self, some: set[str]) -> None:
        self._unsubscribe(some)

    @rule(high=st.sampled_from([1.0, 100.0]))
    def relabel(self, high: float) -> None:
        """Halve until the labels in between run out."""
        for _ in range(35):
            high /= 2
            self.engine.subscribe("s0", mm.attr("price") < high, replace=True)
        self.subscriptions["s0"] = mm.parse(f"price < {high!r}")

    @rule(changed=several, gone=st.sets(ids, max_size=3))
    def compact(self, changed: dict[str, mm.Expression], gone: set[str]) -> None:
        self.meanwhile = [lambda: self._unsubscribe(gone), lambda: self._subscribe(changed)]
        self.engine.compact()
        self.meanwhile = []
        assert self.engine.stats().n_deleted <= len(gone) + 2 * len(changed)

    @rule(changed=several, some=several)
    def merge(self, changed: dict[str, mm.Expression], some: dict[str, mm.Expression]) -> None:
        # Whether a merge comes before the change or after it depends on the thread.
        others = {key: changed[key] for key in changed.keys() - some.keys()}
        self.meanwhile = [lambda: self._subscribe(others)] if others else []
        self._subscribe(some)
        self.meanwhile = []

    @rule()
    def save(self) -> None:
        self.engine.save()
        assert self.engine.stats().log_bytes < 20

    @rule(verify=st.booleans())
    def open_again(self, verify: bool) -> None:
        self.engine.close()
        self.engine = mm.Engine.open(self.folder / "e", verify=verify, settings=self.settings)

    @rule(event=events())
    def match(self, event: dict[str, Any]) -> None:
        assert self.engine.match(event) == expected(self.subscriptions, event)

    @invariant()
    def has_what_was_subscribed(self) -> None:
        if hasattr(self, "engine"):
            assert set(self.engine) == set(self.subscriptions)
            assert len(self.engine) == len(self.subscriptions)
            assert self.engine.stats().background_error is None


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=6, stateful_step_count=25)


@pytest.mark.long
def test_many_lives() -> None:
    run_state_machine_as_test(Lives, settings=settings(max_examples=40, stateful_step_count=50))


@pytest.mark.slow
@pytest.mark.parametrize("seed", first_cases(1, range(4)))
def test_long_lives(seed: int) -> None:
    """Thousands of changes with the thread at work; what is dead is forgotten."""
    rng = Random(seed)
    engine = mm.Engine(settings=mm.Settings(fresh_clauses=8, merge_factor=4))
    subscriptions: dict[int, mm.Expression] = {}
    with engine:
        for step in range(4000):
            key = rng.randrange(150)
            if key in subscriptions and rng.random() < 0.4:
                engine.unsubscribe(key)
                del subscriptions[key]
            else:
                subscriptions[key] = random_expression(rng, depth=2)
                engine.subscribe(key, subscriptions[key], replace=True)
            if step % 20 == 0:
                event = random_event(rng)
                assert engine.match(event) == expected(subscriptions, event)
    assert engine.stats().n_deleted < 2000


# -- readers --------------------------------------------------------------------------------------


class History:
    """The answers to some events after each of many changes, and how far the writer is."""

    def __init__(self, seed: int, n_changes: int) -> None:
        rng = Random(seed)
        self.events = [random_event(rng) for _ in range(4)]
        self.changes: list[tuple[str, str, mm.Expression | None]] = []
        live: dict[str, set[int]] = {}  # id → the events that it matches
        self.answers = [self._answer(live)]
        for _ in range(n_changes):
            key = f"s{rng.randrange(60)}"
            if key in live and rng.random() < 0.45:
                self.changes.append(("unsubscribe", key, None))
                del live[key]
            else:
                expression = random_expression(rng, depth=2)
                self.changes.append(("subscribe", key, expression))
                live[key] = {
                    n for n, e in enumerate(self.events) if mm.evaluate(expression, e) is True
                }
            self.answers.append(self._answer(live))
        self.n_begun = self.n_done = 0
        self.was_read = threading.Event()

    def _answer(self, live: dict[str, set[int]]) -> list[set[str]]:
        return [{key for key, hits in live.items() if n in hits} for n in range(len(self.events))]

    def write(self, engine: mm.Engine) -> None:
        for action, key, expression in self.changes:
            if self.n_begun % 20 == 0:  # readers get their turn on a busy machine, too
                self.was_read.clear()
                assert self.was_read.wait(120)
            self.n_begun += 1
            if action == "subscribe":
                engine.subscribe(key, expression, replace=True)
            else:
                engine.unsubscribe(key)
            self.n_done += 1

    def read(self, engine: mm.Engine) -> None:
        first = self.n_done
        got = list(engine.match_many(self.events))
        last = self.n_begun
        self.was_read.set()
        assert got in self.answers[first : last + 1]


def run_together(*jobs: Callable[[], None]) -> None:
    """Run jobs at once; raise what one of them raised."""
    problems: list[BaseException] = []

    def guarded(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive()
    if problems:
        raise problems[0]


@pytest.mark.parametrize("seed", range(2))
def test_readers_see_states_and_nothing_in_between(seed: int) -> None:
    check_readers(seed, 300)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 8))
def test_many_readers_and_changes(seed: int) -> None:
    check_readers(seed, 3000)


@pytest.mark.parametrize("n_changes", first_cases(1, [80, 3000]))
@pytest.mark.parametrize("index", IN_PLACE)
def test_readers_of_an_index_that_changes_in_place(index: str, n_changes: int) -> None:
    check_readers(11, n_changes, index)


def check_readers(seed: int, n_changes: int, index: str = "mill") -> None:
    history = History(seed, n_changes)
    engine = mm.Engine(index=index, settings=mm.Settings(**SMALL))
    is_over = threading.Event()

    def write() -> None:
        try:
            history.write(engine)
        finally:
            is_over.set()

    def read() -> None:
        while not is_over.is_set():
            history.read(engine)

    def compact() -> None:
        while not is_over.wait(0.02):
            engine.compact()

    run_together(write, read, read, compact)
    assert list(engine.match_many(history.events)) == history.answers[-1]
    engine.close()


def test_no_reader_and_no_writer_waits_for_a_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge that does not end until told to: matching and subscribing go on."""
    is_building, may_end = threading.Event(), threading.Event()
    build = Segmented.build

    def slow(segmented: Segmented, merge: Merge) -> Segment:
        is_building.set()
        assert may_end.wait(60)
        return build(segmented, merge)

    monkeypatch.setattr(Segmented, "build", slow)
    engine = mm.Engine(settings=mm.Settings(**SMALL))
    for n in itertools.count():
        engine.subscribe(n, f"x = {n}")
        if is_building.is_set():
            break
    for n in range(1000, 1100):
        engine.subscribe(n, f"x = {n}")
        assert engine.match({"x": n}) == {n}
        engine.unsubscribe(n - 1000 if n - 1000 in engine else n)
    assert engine.match({"x": 0}) == set()
    may_end.set()
    engine.close()
    assert engine.match({"x": 0}) == set()
    assert engine.match({"x": 1099}) == ({1099} if 1099 in engine else set())


# -- the thread -----------------------------------------------------------------------------------


def maintenance_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "matchmill maintenance"]


def fill(engine: mm.Engine, first: int = 0, n: int = 200) -> None:
    for k in range(first, first + n):
        engine.subscribe(k, f"x = {k}")


def test_close_ends_the_thread() -> None:
    before = maintenance_threads()
    with mm.Engine(settings=mm.Settings(**SMALL)) as engine:
        fill(engine)
        assert len(maintenance_threads()) == len(before) + 1
    assert maintenance_threads() == before
    assert engine.match({"x": 7}) == {7}
    for change in (
        lambda: engine.subscribe("a", "x = 1"),
        lambda: engine.subscribe_many({"a": "x = 1"}),
        lambda: engine.unsubscribe(7),
    ):
        with pytest.raises(mm.ReadOnlyError, match="closed"):
            change()
    engine.close()  # once more does nothing


def test_a_forgotten_engine_ends_its_thread() -> None:
    before = maintenance_threads()
    engine = mm.Engine(settings=mm.Settings(**SMALL))
    fill(engine)
    (thread,) = set(maintenance_threads()) - set(before)
    gone = weakref.ref(engine)
    store = weakref.ref(engine._store)
    del engine
    gc.collect()
    thread.join(60)
    assert gone() is None
    assert not thread.is_alive()
    gc.collect()
    assert store() is None


def test_no_thread_without_background() -> None:
    before = maintenance_threads()
    engine = mm.Engine(settings=mm.Settings(**SMALL, background=False))
    fill(engine)
    assert maintenance_threads() == before
    assert len(engine.stats().index) < 8


@pytest.fixture
def failing_merges(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def full(*_: object) -> None:
        raise MemoryError("no room to merge")

    monkeypatch.setattr(Segmented, "build", full)
    yield
    monkeypatch.undo()


@pytest.mark.usefixtures("failing_merges")
@pytest.mark.parametrize("background", [True, False])
def test_a_failure_in_the_background_is_raised_by_the_next_write(background: bool) -> None:
    engine = mm.Engine(settings=mm.Settings(**SMALL, background=background))
    with pytest.raises(mm.BackgroundError, match="no room to merge") as caught:
        fill(engine, n=10_000)
    assert isinstance(caught.value.__cause__, MemoryError)
    n = len(engine)
    assert n not in engine  # the call that raised changed nothing
    assert engine.match({"x": n}) == set()
    assert engine.match({"x": n - 1}) == {n - 1}


@pytest.mark.usefixtures("failing_merges")
def test_a_failure_in_the_background_is_shown_and_raised_by_close() -> None:
    engine = mm.Engine(settings=mm.Settings(**SMALL, background=False))
    n = 0
    # In another thread than the main one, what is due is done after the change that made it so.
    with ThreadPoolExecutor(1) as pool:
        while engine.stats().background_error is None:
            pool.submit(engine.subscribe, n, f"x = {n}").result()
            n += 1
    assert "no room to merge" in str(engine.stats().background_error)
    with pytest.raises(mm.BackgroundError, match="no room to merge"):
        engine.close()
    engine.close()


def test_rows_must_not_change_the_engine_that_reads_them(tmp_path: Path) -> None:
    engine = mm.Engine.open(tmp_path / "e", create=True)
    engine.subscribe("a", "x = 1")

    def rows(change: Callable[[], None]) -> Iterator[tuple[str, str]]:
        yield "b", "x = 1"
        assert engine.match({"x": 1}) == {"a"}
        change()

    for change in (
        lambda: engine.subscribe("c", "x = 1"),
        lambda: engine.unsubscribe("a"),
        engine.compact,
        engine.save,
    ):
        with pytest.raises(mm.InputError, match="from inside the rows"):
            engine.subscribe_many(rows(change))
        assert list(engine) == ["a"]
    engine.subscribe("c", "x = 1")
    engine.close()


def test_dead_rows_are_forgotten_in_the_background() -> None:
    with mm.Engine(settings=mm.Settings(fresh_clauses=4, merge_factor=2)) as engine:
        engine.subscribe("kept", "x = 0")
        for n in range(1500):
            engine.subscribe("replaced", f"x = {n}", replace=True)
    stats = engine.stats()
    assert stats.n_deleted < 1000
    assert list(engine) == ["kept", "replaced"]
    assert engine.match({"x": 1499}) == {"replaced"}


def test_the_order_of_ids_survives_a_compaction() -> None:
    engine = mm.Engine()
    engine.subscribe_many((f"s{n}", "x = 1") for n in range(10))
    engine.subscribe("s3", "x = 2", replace=True)
    engine.unsubscribe("s5")
    before = list(engine)
    engine.compact()
    assert list(engine) == before
    assert engine.stats().n_deleted == 0
    assert engine.match({"x": 2}) == {"s3"}
    assert len(engine.match({"x": 1})) == 8


def test_an_empty_engine_can_be_compacted() -> None:
    engine = mm.Engine()
    engine.compact()
    engine.subscribe("a", "x = 1 and x = 2")  # no clause at all
    engine.compact()
    assert list(engine) == ["a"]
    engine.unsubscribe("a")
    engine.compact()
    assert (len(engine), engine.match({"x": 1})) == (0, set())
