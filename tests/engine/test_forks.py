"""Forked children: they match, whatever other threads of the parent were doing, and end."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import matchmill as mm
from tests.support.engine_folders import contents, create

pytestmark = pytest.mark.slow  # each starts a process

PROGRAM = """
import faulthandler, os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")  # of threads at a fork, which is what this is about
import matchmill as mm

def in_child(act):
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(120, exit=True)  # a child that hangs
        try:
            act()
        except BaseException as error:
            print("child:", type(error).__name__, error, flush=True)
            os._exit(1)
        sys.exit(0)  # with everything that is done at an exit
    return child

def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


def run(program: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + textwrap.dedent(program), *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def test_a_child_matches_while_its_parent_holds_every_lock(tmp_path: Path) -> None:
    run(
        """
        from numba.core.compiler_lock import global_compiler_lock

        folder = mm.Engine.open(sys.argv[1], create=True)
        memory = mm.Engine()
        for engine in (folder, memory):
            engine.subscribe("a", "x = 1 and t like '%b%'")
            assert engine.match({"x": 1, "t": "abc"}) == {"a"}
        locks = []
        for engine in (folder, memory):
            store = engine._store
            locks += [store.lock, store.sample._lock, engine._maintenance._turn]
            locks += [engine._operators._lock]
            locks += [plan.lock for plan in store.state.dimensions.plans.values()]
        locks.append(folder._folder._writer._sync_lock)
        held, may_end = threading.Event(), threading.Event()

        def hold():
            for lock in locks:
                lock.__enter__()
            held.set()
            may_end.wait()
            for lock in locks:
                lock.__exit__(None, None, None)

        thread = threading.Thread(target=hold, daemon=True)
        thread.start()
        held.wait()

        def act():
            for engine in (folder, memory):
                assert engine.match({"x": 1, "t": "abc"}) == {"a"}
                assert engine.match_many([{"x": 1, "t": "b"}] * 3)[2] == {"a"}
                try:
                    engine.subscribe("b", "x = 2")
                except mm.ReadOnlyError as error:
                    assert "fork" in str(error)
                else:
                    raise AssertionError("changed")
                engine.compact()
                engine.stats()
            new = mm.Engine({"n": "y = 1 and t like 'q%'"})
            assert new.match({"y": 1, "t": "qq"}) == {"n"}
            folder.close()

        codes = [ended(in_child(act))]
        codes.append(ended(in_child(lambda: folder.match({"x": 1, "t": "abc"}))))
        may_end.set()
        thread.join()
        assert codes == [0, 0]
        """,
        tmp_path / "e",
    )


def test_no_fork_begins_while_another_thread_compiles() -> None:
    """The child would have half a compiler."""
    run(
        """
        import numba
        from matchmill.kernels.jit import kernel
        from numba.core.compiler_lock import global_compiler_lock

        @numba.njit
        def double(x):
            return x * 2

        order = []
        compiling = threading.Event()

        def compile_slowly():
            with global_compiler_lock:
                compiling.set()
                time.sleep(0.2)
                order.append("compiled")

        threading.Thread(target=compile_slowly).start()
        compiling.wait()

        def act():
            assert order == ["compiled"]
            assert double(21) == 42

        assert ended(in_child(act)) == 0
        """
    )


def test_a_folder_is_free_when_its_engine_is_closed_though_a_child_lives(tmp_path: Path) -> None:
    run(
        """
        engine = mm.Engine.open(sys.argv[1], create=True)
        engine.subscribe("a", "x = 1")
        awake, wake = os.pipe()

        def act():
            os.close(wake)
            os.read(awake, 1)  # until the parent has done what follows
            assert engine.match({"x": 1}) == {"a"}

        child = in_child(act)
        engine.subscribe("b", "x = 1")
        engine.close()
        with mm.Engine.open(sys.argv[1]) as again:
            again.subscribe("c", "x = 1")
        os.close(wake)
        assert ended(child) == 0
        """,
        tmp_path / "e",
    )
    assert contents(tmp_path / "e") == dict.fromkeys("abc", "x = 1")


def test_a_folder_is_free_when_its_process_is_killed_though_a_child_lives(tmp_path: Path) -> None:
    """The child lives on after its parent, until nobody holds the other end of its input."""
    program = """
        engine = mm.Engine.open(sys.argv[1], create=True)
        engine.subscribe("a", "x = 1")
        child = in_child(lambda: sys.stdin.read())
        print(child, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM + textwrap.dedent(program), str(tmp_path / "e")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert parent.wait() < 0
        os.kill(child, 0)  # it lives
        with mm.Engine.open(tmp_path / "e") as engine:
            assert engine.match({"x": 1}) == {"a"}


def test_a_child_may_change_an_engine_in_memory() -> None:
    run(
        """
        engine = mm.Engine({"a": "x = 1"}, settings=mm.Settings(fresh_clauses=4, merge_factor=2))

        def act():
            for n in range(50):
                engine.subscribe(f"s{n}", "x = 1")
            engine.unsubscribe("a")
            engine.close()
            assert len(engine.match({"x": 1})) == 50

        assert ended(in_child(act)) == 0
        assert engine.match({"x": 1}) == {"a"}
        """
    )


@pytest.mark.long
def test_forks_under_load(tmp_path: Path) -> None:
    """Children of a process in which other threads match, subscribe, compile and save."""
    run(
        """
        folder = mm.Engine.open(sys.argv[1], create=True, settings=mm.Settings(
            fresh_clauses=8, merge_factor=2, checkpoint_bytes=2000, sync="seconds"))
        may_end = threading.Event()

        def subscribe():
            n = 0
            while not may_end.is_set():
                n += 1
                text = f"x = {n % 7} and t like '%a{n % 50}%'"
                folder.subscribe(f"s{n % 200}", text, replace=True)

        def match():
            while not may_end.is_set():
                folder.match({"x": 3, "t": "zzzaaa1"})
                folder.match_many([{"x": 3, "t": "zzzaaa1"}] * 100)

        threads = [threading.Thread(target=t) for t in (subscribe, match, match)]
        for thread in threads:
            thread.start()

        def act():
            for n in range(3):
                folder.match({"x": n, "t": f"aaa{n}"})
            assert len(folder) >= 0
            with mm.Engine({"n": "y = 1"}) as new:
                assert new.match({"y": 1}) == {"n"}

        for n in range(150):
            assert ended(in_child(act)) == 0, n
        may_end.set()
        for thread in threads:
            thread.join()
        folder.close()
        """,
        tmp_path / "e",
    )
    with mm.Engine.open(tmp_path / "e", verify=True) as engine:
        assert len(engine) <= 200


def test_a_process_of_another_number_may_match_but_not_write(tmp_path: Path) -> None:
    engine = create(tmp_path / "e")
    engine.subscribe("a", "x = 1")
    child = os.getpid() + 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "getpid", lambda: child)
        with pytest.raises(mm.ReadOnlyError, match="this is a fork of it"):
            engine.subscribe("b", "x = 1")
    engine.close()


@pytest.mark.parametrize("index", ["be_tree", "op_index"])
def test_a_child_forked_while_an_index_changes_in_place(index: str) -> None:
    """It builds the index again, which is half changed and locked for ever."""
    run(
        """
        engine = mm.Engine({n: f"x = {n}" for n in range(100)}, index=sys.argv[1])
        (segment,) = engine._store.segmented.snapshot.segments
        structure = segment.built.structure
        is_inside, may_go_on = threading.Event(), threading.Event()
        insert = structure.index.insert

        def slow(table):
            insert(table)
            is_inside.set()
            may_go_on.wait()

        structure.index.insert = slow
        writer = threading.Thread(target=engine.subscribe, args=(100, "x = 100"))
        writer.start()
        is_inside.wait()

        def act():
            assert engine.match({"x": 100}) == set()
            assert engine.match({"x": 7}) == {7}
            try:
                engine.subscribe(101, "x = 7")
            except mm.ReadOnlyError:
                pass
            else:
                raise AssertionError("it was changed")

        child = in_child(act)
        assert ended(child) == 0
        may_go_on.set()
        writer.join()
        assert engine.match({"x": 100}) == {100}
        """,
        index,
    )
