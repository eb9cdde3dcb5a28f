"""Random sequences of all that an engine does, with an index that changes in place.

After each step the engine's answers are those of the oracle, and the structure is whole. As a
program it runs many sequences of one index, and prints how many:

    python -m tests.support.in_place_sequences INDEX N_SEQUENCES [FIRST_SEED]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import matchmill as mm
from matchmill.engine.loading import Load
from matchmill.engine.state import Change
from tests.support.generators import random_event, random_expression
from tests.support.in_place_checks import check_engine, structure_of

__all__ = ["OPTIONS", "Sequence", "run_sequence"]

OPTIONS: dict[str, dict[str, list[Any]]] = {
    "be_tree": {
        "max_capacity": [1, 2, 5, None],
        "min_size": [1, 3],
        "self_adjust": [True, False],
        "build": ["batch", "single"],
        "first": ["popular", "rare"],
        "windows": ["changes", "operations"],
        "exploration": [0.0, 0.0, 0.3],
        "reinsert": [False, True],
        "adjust_capacity": [False, True],
    },
    "counting": {"fresh_clauses": [1, 3, 1024]},
    "counting_bits": {"predicates": ["auto", "table", "list", "linked"]},
    "counting_bytes": {"predicates": ["auto", "table", "list", "linked"]},
    "counting_lists": {"predicates": ["auto", "table", "list", "linked"]},
    "op_index": {"segments": [True, False, 2]},
    "op_index_cnf": {"segments": [True, False, 2]},
    "pst_bloom": {"signatures": ["two", "all"]},
    "pst_hash": {"n_access": [1, 2, 3]},
}


class Refused(Exception):
    """What the log of a change raises that is to fail."""


class RefusingLog:
    """A log that has no room."""

    def append(self, change: object) -> None:
        raise Refused

    def take_back(self) -> None:
        raise AssertionError("nothing was appended")


class Sequence:
    """One engine and a dictionary of what it should have."""

    def __init__(self, index: str, seed: int) -> None:
        self.rng = rng = Random(seed)
        self.index = index
        self.options = {name: rng.choice(of) for name, of in OPTIONS.get(index, {}).items()}
        self.settings = mm.Settings(
            fresh_clauses=rng.choice((1, 3, 20)), background=False, sync="never"
        )
        self.folder = Path(tempfile.mkdtemp()) if seed % 8 == 0 else None
        self.model: dict[int, mm.Expression] = {}
        self.top = rng.choice((6, 30, 1000))
        self.is_odd = rng.random() < 0.15  # expressions of all kinds, which take longer
        self.engine = self.opened()

    def opened(self) -> mm.Engine:
        how: dict[str, Any] = {
            "index": self.index, "index_options": self.options, "settings": self.settings,
        }  # fmt: skip
        if self.folder is None:
            return mm.Engine(**how)
        if (self.folder / "e").exists():
            return mm.Engine.open(self.folder / "e", verify=self.rng.random() < 0.3)
        return mm.Engine.open(self.folder / "e", create=True, **how)

    def end(self) -> None:
        self.engine.close()
        if self.folder is not None:
            shutil.rmtree(self.folder)

    # what is stored

    def condition(self) -> str:
        rng, name = self.rng, self.rng.choice("abcdef")
        v, w = rng.randrange(self.top), rng.randrange(self.top)
        return rng.choice(
            [
                *[f"{name} = {v}"] * 3,
                f"{name} < {v}",
                f"{name} >= {v}",
                f"{name} between {min(v, w)} and {max(v, w)}",
                f"{name} in ({v}, {w}, {(v + w) // 2})",
                f"{name} != {v}",
                f"{name} is null",
                f"{name} is not null",
                f"({name} = {v} or {name} is null)",
                f"{name} = '{v}'",
                f"{name} like '{v % 7}%'",
                f"not ({name} > {v} and {name} < 'b')",
            ]
        )

    def expression(self) -> mm.Expression:
        if self.is_odd and self.rng.random() < 0.5:
            return random_expression(self.rng, depth=2)
        n = self.rng.choice((1, 1, 2, 2, 3, 5))
        joined = " and " if self.rng.random() < 0.8 else " or "
        return mm.parse(joined.join(self.condition() for _ in range(n)))

    def event(self) -> dict[str, Any]:
        rng = self.rng
        if self.is_odd and rng.random() < 0.5:
            return random_event(rng)
        value = [lambda: rng.randrange(self.top), lambda: str(rng.randrange(self.top))]
        return {
            name: rng.choice(value)() if rng.random() < 0.3 else rng.randrange(self.top)
            for name in "abcdef"
            if rng.random() < 0.7
        }

    # steps

    def subscribe(self) -> None:
        key, expression = self.rng.randrange(40), self.expression()
        self.engine.subscribe(key, expression, replace=True)
        self.model[key] = expression

    def subscribe_many(self) -> None:
        keys = self.rng.sample(range(40), self.rng.choice((2, 5, 20)))
        some = {key: self.expression() for key in keys}
        assert not self.engine.subscribe_many(some, replace=True).rejected
        self.model |= some

    def unsubscribe(self) -> None:
        if self.model:
            key = self.rng.choice(sorted(self.model))
            self.engine.unsubscribe(key)
            del self.model[key]

    def unsubscribe_many(self) -> None:
        n = self.rng.choice((3, 10, len(self.model)))
        keys = self.rng.sample(sorted(self.model), min(n, len(self.model)))
        self.engine.unsubscribe_many(keys)
        for key in keys:
            del self.model[key]

    def fail(self) -> None:
        """A change that cannot be logged."""
        store = self.engine._store
        load = Load(store, replace=True)
        self._add_some(load)
        with store.changing():
            try:
                load.prepare(RefusingLog())  # type: ignore[arg-type]
            except Refused:
                return
        raise AssertionError("it did not fail")

    def give_up(self) -> None:
        """A change whose call ends after it was made ready; a reader matches meanwhile."""
        store, change = self.engine._store, Change()
        with store.changing():
            load = Load(store, replace=True)
            self._add_some(load)
            change.prepared = load.prepare(None)
            store.wait_for(change)
        self.match()
        change.is_given_up = True
        store.settle()

    def _add_some(self, load: Load) -> None:
        keys = self.rng.sample(range(40), self.rng.choice((1, 3, 40)))
        for key in keys:
            load.read(key, str(self.expression()))

    def relabel(self) -> None:
        high, text = 100.0, ""
        for _ in range(36):
            high /= 2
            text = f"a < {high!r}"
            self.engine.subscribe(0, text, replace=True)
        self.model[0] = mm.parse(text)

    def compact(self) -> None:
        self.engine.compact()

    def open_again(self) -> None:
        if self.folder is None:
            with tempfile.TemporaryDirectory() as folder:
                self.engine.save(folder)
                self._check_answers(mm.Engine.open(folder, read_only=True), 2)
        else:
            if self.rng.random() < 0.5:
                self.engine.save()
            self.engine.close()
            self.engine = self.opened()

    def match(self) -> None:
        self._check_answers(self.engine, 3)

    def match_expression(self) -> None:
        v = self.rng.randrange(self.top)
        found = self.engine.match_expression(f"a = {v} and b = {v // 2}")
        event = {"a": v, "b": v // 2}
        assert found == self.expected(event), event

    def adjust(self) -> None:
        """The time has come for the index to adjust itself."""
        structure = structure_of(self.engine)
        if structure is not None:
            structure._n_matched = 1 << 40
            self.match()

    # what must hold

    def expected(self, event: dict[str, Any]) -> set[int]:
        return {key for key, one in self.model.items() if mm.evaluate(one, event) is True}

    def _check_answers(self, engine: mm.Engine, n: int) -> None:
        events = [self.event() for _ in range(n)]
        for event, found in zip(events, engine.match_many(events), strict=True):
            wanted = self.expected(event)
            assert found == wanted, (event, found ^ wanted)
        assert engine.match(events[0]) == self.expected(events[0])

    def check(self) -> None:
        assert set(self.engine) == set(self.model)
        check_engine(self.engine)


COMMON = [
    *("subscribe", "subscribe", "subscribe", "unsubscribe", "unsubscribe", "match"),
    *("subscribe_many", "unsubscribe_many", "give_up"),
]
RARE = ["fail", "compact", "open_again", "match_expression", "adjust", "relabel"]


def run_sequence(index: str, seed: int) -> int:
    """Run one sequence; return how many steps it had."""
    sequence = Sequence(index, seed)
    rng = sequence.rng
    n_steps = rng.choice((8, 12, 20))
    done: list[str] = []
    try:
        for _ in range(n_steps):
            done.append(rng.choice(COMMON if rng.random() < 0.85 else RARE))
            step: Callable[[], None] = getattr(sequence, done[-1])
            step()
            sequence.check()
        sequence.match()
        sequence.engine.unsubscribe_many(list(sequence.model))
        sequence.model = {}
        sequence.check()
        sequence.match()
    except Exception as error:
        error.add_note(f"index {index}, seed {seed}, options {sequence.options}, steps {done}")
        raise
    finally:
        sequence.end()
    return n_steps


def main() -> None:
    """Run sequences and print how many there were."""
    index, n = sys.argv[1], int(sys.argv[2])
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    n_steps = sum(run_sequence(index, seed) for seed in range(first, first + n))
    print(f"{index}: {n:,} sequences of {n_steps:,} steps, no difference and no error")


if __name__ == "__main__":
    main()
