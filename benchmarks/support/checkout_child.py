"""The child of `script/bench standard --against`: one version of matchmill, on a saved workload.

    python -P checkout_child.py CHECKOUT WORKLOAD CLOCK

CHECKOUT is the folder of a checkout, WORKLOAD a folder of arrays that `against.py` saved, CLOCK is
`cpu` (the process's own time, which other processes hardly touch) or `wall`. Commands
come as lines of JSON on standard input; each is answered by one line of JSON on standard output:

    {"do": "build", "contender": {…}}     {"seconds": …, "n_bytes": …}
    {"do": "warm_up"}                     {"n_matches": …, "digest": …, "repeats": …}
    {"do": "match", "repeats": n}         {"seconds": … per repeat, "is_same": …}

Both versions run this one file, so the same code times them and digests their matches. It imports
nothing but NumPy and what `imported` finds in the checkout, under its present or its earlier name.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

# What each part is called: now, and before the packages were laid out again.
NAMES = {
    "ConjunctionTable": ("encoding.conjunction_table",),
    "EventBatch": ("encoding.event_batch",),
    "build_statistics": ("index.event_sample", "indexes.event_sample"),
    "index_class": ("index.registry", "indexes.registry"),
}
ENGINE = "engine"  # a contender: texts and dicts through the public engine
SHORTEST_SECONDS = 0.05  # of a round; shorter calls are repeated
COMPILE_CLAUSES = 64
CLOCKS = {"cpu": time.process_time, "wall": time.perf_counter}


def imported(name: str) -> Any:
    """Import a part from the module of the checkout that has it."""
    for module in NAMES[name]:
        full = f"matchmill.{module}"
        try:
            return getattr(import_module(full), name)
        except ModuleNotFoundError as error:
            # A module that exists but cannot import another one is an error to show.
            if not full.startswith(str(error.name)):
                raise
    raise ImportError(f"this checkout has no {name}: looked in {', '.join(NAMES[name])}")


class IndexContender:
    """An index of the registry, built from the saved arrays."""

    def __init__(self, folder: Path, contender: dict[str, Any]) -> None:
        def saved(name: str) -> np.ndarray:
            return np.load(folder / f"{name}.npy", mmap_mode="r")

        flat = {
            name: np.ascontiguousarray(saved(name))
            for name in ("clause_offsets", "attributes", "interval_offsets", "lows", "highs")
        }
        self.n_clauses = len(flat["clause_offsets"]) - 1
        ids = np.arange(self.n_clauses, dtype=np.int64)
        self.table = imported("ConjunctionTable")(ids, *flat.values())
        self.events = _event_batch(saved, "events")
        training = _event_batch(saved, "training")
        self.statistics = None
        if contender["statistics"]:
            n_dimensions = int(flat["attributes"].max(initial=-1)) + 1
            self.statistics = imported("build_statistics")(training, n_dimensions)
        self.options = contender["options"]
        self.kind = imported("index_class")(contender["index"])
        few = self._first_clauses(COMPILE_CLAUSES)
        self.kind.build(few, self.statistics, **self.options).match_batch(self.events)

    def _first_clauses(self, n: int) -> Any:
        ids, clauses, dimensions, intervals, lows, highs = self.table[:6]
        n = min(n, self.n_clauses)
        p = int(clauses[n])
        k = int(intervals[p])
        return type(self.table)(
            ids[:n], clauses[: n + 1], dimensions[:p], intervals[: p + 1], lows[:k], highs[:k]
        )

    def build(self) -> int:
        """Build the index again and return its bytes."""
        self.index = self.kind.build(self.table, self.statistics, **self.options)
        return int(self.index.stats().n_bytes)

    def match(self) -> Any:
        """Match all events."""
        return self.index.match_batch(self.events)

    def pairs(self, matches: Any) -> tuple[np.ndarray, np.ndarray]:
        """Offsets per event, and the ids of clauses."""
        return matches.offsets, matches.clause_ids


def _event_batch(saved: Any, kind: str) -> Any:
    arrays = (saved(f"{kind}_{name}") for name in ("offsets", "attributes", "codes"))
    return imported("EventBatch")(*map(np.ascontiguousarray, arrays))


class EngineContender:
    """The public engine, which is given texts and dicts."""

    def __init__(self, folder: Path, contender: dict[str, Any]) -> None:
        import matchmill

        self.matchmill = matchmill
        self.texts = [(int(i), t) for i, t in _lines(folder / "subscriptions.jsonl")]
        self.events = list(_lines(folder / "events.jsonl"))
        self.engine: Any = None
        few = matchmill.Engine()
        few.subscribe_many(self.texts[:COMPILE_CLAUSES])
        self._match_many(few)

    def build(self) -> int:
        """Subscribe all texts to a new engine."""
        if self.engine is not None:
            self.engine.close()
        self.engine = self.matchmill.Engine()
        self.engine.subscribe_many(self.texts)
        return 0

    def match(self) -> Any:
        """Match all events."""
        return self._match_many(self.engine)

    def pairs(self, matches: Any) -> tuple[np.ndarray, np.ndarray]:
        """Offsets per event, and the ids of subscriptions."""
        offsets = np.concatenate(([0], np.cumsum(matches.counts)))
        return offsets, np.array([i for found in matches for i in found], np.int64)

    def _match_many(self, engine: Any) -> Any:
        match_many = getattr(engine, "match_many", None) or engine.match_batch
        return match_many(self.events, threads=1)


def _lines(path: Path) -> Any:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def digest_of(offsets: np.ndarray, ids: np.ndarray) -> str:
    """Digest all (event, id) pairs, whatever the order of the ids of an event."""
    events = np.repeat(np.arange(len(offsets) - 1, dtype=np.uint64), np.diff(offsets))
    mixed = _mixed(_mixed(events) ^ np.asarray(ids).astype(np.uint64))
    return f"{int(np.sum(mixed, dtype=np.uint64)):016x}"


def _mixed(values: np.ndarray) -> np.ndarray:
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: np.ndarray = mixed ^ (mixed >> np.uint64(31))
    return result


class Session:
    """Answer the commands about one contender."""

    def __init__(self, folder: Path, clock: str) -> None:
        self.folder = folder
        self.clock = CLOCKS[clock]
        self.contender: IndexContender | EngineContender | None = None

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do one command."""
        if command["do"] == "build":
            return self.build(command["contender"])
        assert self.contender is not None, "build comes first"
        return self.warm_up() if command["do"] == "warm_up" else self.match(command["repeats"])

    def build(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Build the contender again and time it."""
        if self.contender is None:
            kind = EngineContender if asked["index"] == ENGINE else IndexContender
            self.contender = kind(self.folder, asked)
            self.contender.build()  # loads kernels, touches the arrays; it does not count
        gc.collect()
        start = self.clock()
        n_bytes = self.contender.build()
        return {"seconds": self.clock() - start, "n_bytes": n_bytes}

    def warm_up(self) -> dict[str, Any]:
        """Match once, digest the matches, and choose how often a round repeats."""
        assert self.contender is not None
        offsets, ids = self.contender.pairs(self.contender.match())
        self.digest = digest_of(offsets, ids)
        start = self.clock()
        self.contender.match()
        seconds = self.clock() - start
        gc.collect()
        gc.disable()
        repeats = max(1, round(SHORTEST_SECONDS / max(seconds, 1e-7)))
        return {"n_matches": len(ids), "digest": self.digest, "repeats": repeats}

    def match(self, repeats: int) -> dict[str, Any]:
        """Match some times and time it."""
        assert self.contender is not None
        start = self.clock()
        for _ in range(repeats):
            matches = self.contender.match()
        seconds = (self.clock() - start) / repeats
        is_same = digest_of(*self.contender.pairs(matches)) == self.digest
        return {"seconds": seconds, "is_same": is_same}


def main() -> None:
    """Answer until standard input ends."""
    checkout, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    answers = sys.stdout
    sys.stdout = sys.stderr  # whatever else prints must not get between the answers
    sys.path.insert(0, str(checkout))
    import matchmill

    if checkout not in Path(matchmill.__file__).resolve().parents:
        raise SystemExit(f"imported {matchmill.__file__}, which is not in {checkout}")
    session = Session(folder, sys.argv[3])
    for line in sys.stdin:
        print(json.dumps(session.answer(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
