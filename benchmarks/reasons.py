"""Why figures are what they are: small tables that the pages on the papers' experiments show.

Bytes by part, how full signatures are, building in one go and one by one, and the transition of
BE-Tree's Figure 13. They go into `docs/experiments/facts.json`, each in the place of an older one
of its name. Times are CPU times, so that neighbours of the machine disturb them less.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.drift import measure_drift
from benchmarks.normal_forms import both_forms
from matchmill.encoding.conjunction_table import ConjunctionTable, take_clauses
from matchmill.encoding.event_batch import EventBatch
from matchmill.errors import InputError
from matchmill.index.event_sample import build_statistics
from matchmill.index.registry import index_class
from matchmill.lab.experiments.machine_info import machine
from matchmill.lab.experiments.measure import event_batch, table_of
from matchmill.lab.experiments.order_contenders import ORDERS
from matchmill.lab.workloads.flat import Workload
from matchmill.lab.workloads.op_index import cnf
from matchmill.lab.workloads.registry import generate
from matchmill.lab.workloads.spec import WorkloadSpec
from matchmill.papers.be_tree import BeTree
from matchmill.papers.be_tree.clause_records import TESTS, record_words
from matchmill.papers.be_tree.tree import DIMENSION, DIRECTORY, HIGH, LEFT, LOW, ROOT
from matchmill.papers.ps_tree import bloom_index
from matchmill.papers.ps_tree.bloom_index import PSTBloom
from matchmill.papers.ps_tree.forest import EXTRA, EXTRA_SIZE

Table = dict[str, Any]
_MOST_BITS = 17  # the logarithm of the largest signature


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("names", nargs="*", help=f"default: all, {', '.join(TABLES)}")
    parser.add_argument("-n", type=int, help="subscriptions (default: each table's own)")
    parser.add_argument("--out", type=Path, default=Path("docs/experiments/facts.json"))


def run(arguments: argparse.Namespace) -> int:
    """Measure the tables, and write each as soon as it is there."""
    unknown = sorted(set(arguments.names) - set(TABLES))
    if unknown:
        raise SystemExit(f"there is no table {unknown[0]}; there are: {', '.join(TABLES)}")
    for name in arguments.names or TABLES:
        make, default = TABLES[name]
        n = arguments.n or default
        table = make(n)
        m = machine()
        table["how"] = f"script/bench reasons {name}" + (f" -n {n}" if n != default else "")
        table["machine"] = (
            f"{m['cpu']}, Python {m['python']}, Numba {m['numba']}, "
            f"matchmill {m['matchmill']} (sources {m['sources'][:8]})."
        )
        _write(arguments.out, name, table)
        print(f"{name}: {table['title']}", table["header"], *table["rows"], sep="\n", flush=True)
    return 0


def _write(path: Path, name: str, table: Table) -> None:
    tables = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    tables[name] = table
    entries = []
    for key, own in sorted(tables.items()):
        rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in own["rows"])
        head = ",\n".join(
            f"{json.dumps(k)}: {json.dumps(own[k], ensure_ascii=False)}"
            for k in ("title", "how", "machine", "header")
        )
        entries.append(f'{json.dumps(key)}: {{\n{head},\n"rows": [\n{rows}\n]}}')
    path.write_text("{\n" + ",\n".join(entries) + "\n}\n", encoding="utf-8")


# -- workloads ------------------------------------------------------------------------------------

_BE = {
    "n_dimensions": 400, "cardinality": 48, "subscription_size": 7, "event_size": 15,
    "equality_ratio": 0.3, "predicate_range": 0.12, "operators": "med",
    "matching_probability": 0.01,
}  # fmt: skip
_PS = {
    "n_dimensions": 100, "cardinality": 30, "subscription_size": 10, "event_size": 30,
    "equality_ratio": 0.6, "zipf": 0.0, "matching_probability": 0.001,
}  # fmt: skip
_OP = {
    "n_attributes": 20_000, "max_size": 12, "max_event_size": 60, "equality_ratio": 0.6,
    "cardinality": 800,
}  # fmt: skip


_ROUNDS = 7


def _table(generator: str, n: int, parameters: dict[str, Any]) -> ConjunctionTable:
    return table_of(_workload(generator, n, parameters, 1).subscriptions)


def _workload(generator: str, n: int, parameters: dict[str, Any], n_events: int = 200) -> Workload:
    return generate(WorkloadSpec(generator, n, n_events, parameters=parameters))


def _round(value: float) -> float:
    return float(f"{value:.4g}")


# -- BE-Tree --------------------------------------------------------------------------------------


def _be_tree_bytes(n: int) -> Table:
    columns = []
    for zipf in (0.0, 1.0):
        table = _table("be_gen", n, {**_BE, "zipf": zipf})
        tree = BeTree.build(table, max_capacity=20)
        parts = {name: array.nbytes for name, array in tree.arrays().items()}
        words = sum(record_words(table, i) for i in range(table.n_clauses))
        columns.append(
            {
                "records: heads": 4 * TESTS * table.n_clauses,
                "records: tests": 4 * (words - TESTS * table.n_clauses),
                "leaves: room that records may grow into": parts.pop("leaves_cells") - 4 * words,
                "identifiers and places": _take(parts, "slot"),
                "nodes": _take(parts, "nodes"),
                "partitions and directories": _take(parts, "partitions", "directories"),
                "the rest": sum(parts.values()),
            }
        )
    columns = [{**c, "together": sum(c.values())} for c in columns]
    return {
        "title": f"BE-Tree's bytes per subscription, by part, {n:,} subscriptions built at once",
        "header": ["part", "uniform", "Zipf"],
        "rows": [[part, *(_round(c[part] / n) for c in columns)] for part in columns[0]],
    }


def _take(parts: dict[str, int], *heads: str) -> int:
    return sum(parts.pop(name) for name in [*parts] if name.startswith(heads))


def _be_tree_drift(n: int) -> Table:
    variants = {"adjusting": {"self_adjust": True}, "not adjusting": {"self_adjust": False}}
    rows = []
    for start in ("uniform", "zipf"):
        steps = measure_drift(n, 1000, 4, 9, start, variants)
        for name in variants:
            for what in ("us", "n_candidates"):
                values = [float(getattr(step[name], what)) for step in steps]
                label = f"from {start}, {name}" + (", candidates" if what != "us" else "")
                shown = [_round(values[i]) for i in (0, 2, 4, 6, 8)]
                ratios = [_round(values[-1] / values[0]), _round(max(values) / values[0])]
                rows.append([label, *shown, *ratios])
    return {
        "title": f"Figure 13, {n:,} subscriptions replaced one by one and back: µs of CPU time per "
        "event, and candidates per event",
        "header": [
            "BE-Tree", "start", "half", "replaced", "half back", "end", "end / start",
            "worst / start",
        ],
        "rows": rows,
    }  # fmt: skip


def _be_tree_printed(n: int) -> Table:
    """BE-Tree as the experiments have it, beside the paper's dynamic form."""
    single = {"build": "single"}
    variants = {
        "ours: cut at once": {},
        "one by one": single,
        "one by one, as printed": {
            **single, "windows": "operations", "threshold": 0.0, "ahead": False,
        },
    }  # fmt: skip
    rows = []
    for popularity, zipf in (("uniform", 0.0), ("Zipf", 1.0)):
        workload = _workload("be_gen", n, {**_BE, "zipf": zipf})
        rows += _variants(popularity, workload, "be_tree", {"max_capacity": 20}, variants)
    return {
        "title": f"BE-Tree in its forms, {n:,} subscriptions of Figure 5: CPU seconds to build; "
        f"µs of CPU time per event, the least of {_ROUNDS} rounds that take turns; clauses looked "
        "at per event; bytes per subscription",
        "header": ["form", "build, s", "µs per event", "candidates", "bytes"],
        "rows": rows,
    }


_LOOKED_AT: dict[str, tuple[str, dict[str, Any]]] = {
    "be_tree": ("be_tree", {"max_capacity": 20}),
    "k_index": ("k_index", {}),
    "propagation": ("propagation", {}),
    "propagation_equality": ("propagation", {"equality_only": True}),
    "gryphon": ("gryphon", {}),
    "sift": ("sift", {}),
}


def _be_tree_candidates(n: int) -> Table:
    """Count what each index looks at, where Figures 5, 6, 7, 10 and 11 change something."""
    return _candidates_of(
        f"What is looked at per event, {n:,} subscriptions of Figure 5, one thing changed",
        n,
        {
            "as in Figure 5": {},
            "50 dimensions": {"n_dimensions": 50},
            "1,400 dimensions": {"n_dimensions": 1400},
            "66 predicates": {"subscription_size": 66, "event_size": 81},
            "equality alone": {"equality_ratio": 1.0},
            "0.01 % match": {"matching_probability": 0.0001},
        },
    )


def _be_tree_value_candidates(n: int) -> Table:
    """Count what each index looks at, where Figures 8 and 9 change something."""
    two = {"equality_ratio": 1.0, "operators": "min"}
    return _candidates_of(
        f"What is looked at per event, {n:,} subscriptions of Figures 8 and 9",
        n,
        {
            "48 values": {},
            "150,000 values": {"cardinality": 150_000},
            "ranges of 6 %": {"predicate_range": 0.06},
            "ranges of 50 %": {"predicate_range": 0.5},
            "2 values, equality": {**two, "cardinality": 2},
            "10 values, equality": {**two, "cardinality": 10},
        },
    )


def _candidates_of(title: str, n: int, cases: dict[str, dict[str, Any]]) -> Table:
    rows = []
    for popularity, zipf in (("uniform", 0.0), ("Zipf", 1.0)):
        columns = []
        for more in cases.values():
            workload = _workload("be_gen", n, {**_BE, "zipf": zipf, **more}, 100)
            columns.append(_looked_at(workload))
        for what in columns[0]:
            counts = (column[what] for column in columns)
            row = [None if count is None else _round(count) for count in counts]
            rows.append([f"{popularity}, {what}", *row])
    return {"title": title, "header": ["what", *cases], "rows": rows}


def _looked_at(workload: Workload) -> dict[str, float | None]:
    """Count candidates per event; None where an index cannot be built."""
    table, events = table_of(workload.subscriptions), event_batch(workload.events)
    known = build_statistics(event_batch(workload.training), table.n_dimensions)
    found: dict[str, float | None] = {}
    n_matches = 0
    for label, (name, options) in _LOOKED_AT.items():
        try:
            index = index_class(name).build(table, known, **options)
        except InputError:  # ranges would be written out, and are too many
            found[label] = None
            continue
        n_matches = len(index.match_batch(events).clause_ids)
        found[label] = (index.stats().candidates or 0) / events.n_events
    found["matches"] = n_matches / events.n_events
    return found


def _be_tree_capacity(n: int) -> Table:
    """Count what the capacity of leaves changes: steps down the tree, and subscriptions read."""
    rows = []
    for probability in (0.001, 0.05, 0.2):
        parameters = {**_BE, "zipf": 0.0, "matching_probability": probability}
        workload = _workload("be_gen", n, parameters, 20)
        table, events = table_of(workload.subscriptions), event_batch(workload.events)
        for capacity in (5, 20, 160):
            index = BeTree.build(table, max_capacity=capacity)
            index.match_batch(events)
            n_read = (index.stats().candidates or 0) / events.n_events
            visits = _nodes_visited(index, events) / events.n_events
            matches = probability * n
            rows.append([f"{probability:g}", capacity, *map(_round, (visits, n_read, matches))])
    return {
        "title": f"BE-Tree: nodes visited and subscriptions read per event, {n:,} subscriptions",
        "header": ["matching probability", "capacity", "nodes", "subscriptions", "matches"],
        "rows": rows,
    }


def _nodes_visited(index: BeTree, events: EventBatch) -> int:
    """Walk the tree as events do; count the nodes that they come to."""
    nodes, directories = index._tree.nodes.cells, index._tree.directories.cells
    n_visited = 0
    for e in range(events.n_events):
        part = slice(*events.offsets[e : e + 2].tolist())
        keys = dict(zip(events.dimensions[part].tolist(), events.keys[part].tolist(), strict=True))
        queue = [ROOT]
        while queue:
            node = nodes[queue.pop()]
            n_visited += 1
            if node[DIMENSION] >= 0:
                key = keys.get(int(node[DIMENSION]), 0)
                if not node[LOW] <= key <= node[HIGH]:
                    continue
                middle = node[LOW] + (node[HIGH] - node[LOW]) // 2
                child = int(node[LEFT + (key > middle)])
                if child >= 0:
                    queue.append(child)
            if node[DIRECTORY] >= 0:
                first = int(node[DIRECTORY]) + 1
                cells = directories[first : first + (2 << directories[first - 1])].reshape(-1, 2)
                queue += [int(top) for d, top in cells.tolist() if d and keys.get(d - 1)]
    return n_visited


def _variants(
    label: str,
    workload: Workload,
    index: str,
    options: dict[str, Any],
    variants: dict[str, dict[str, Any]],
) -> list[list[Any]]:
    """Build an index in some forms, and let them match by turns; all find the same."""
    table, events = table_of(workload.subscriptions), event_batch(workload.events)
    few = take_clauses(table, np.arange(100))
    built: dict[str, Any] = {}
    heads: dict[str, list[float]] = {}
    matches = -1
    for name, own in variants.items():
        index_class(index).build(few, None, **options, **own).match_batch(events)  # compiles
        start = time.process_time()
        built[name] = index_class(index).build(table, None, **options, **own)
        heads[name] = [time.process_time() - start]
        n_found = len(built[name].match_batch(events).clause_ids)
        assert matches in (-1, n_found), f"{name} finds other matches"
        matches = n_found
        seen = built[name].stats()
        heads[name] += [(seen.candidates or 0) / events.n_events, seen.n_bytes / table.n_clauses]
    least = dict.fromkeys(built, float("inf"))
    for _ in range(_ROUNDS):
        for name, one in built.items():
            start = time.process_time()
            one.match_batch(events)
            least[name] = min(least[name], time.process_time() - start)
    return [
        [f"{label}, {name}", *map(_round, (build, 1e6 * least[name] / events.n_events, *rest))]
        for name, (build, *rest) in heads.items()
    ]


# -- PS-Tree --------------------------------------------------------------------------------------


def _pst_bloom_printed(n: int) -> Table:
    """PSTBloom as the experiments have it, without a limit of signatures, and as in Alg. 5."""
    unlimited = {"signature_bits": None}
    variants = {
        "ours: two signatures, 2^17 bits at most": {},
        "signatures of any length": unlimited,
        "all signatures (Alg. 5), of any length": {**unlimited, "signatures": "all"},
        "the same, nothing prefetched (as printed)": {
            **unlimited, "signatures": "all", "ahead": False,
        },
    }  # fmt: skip
    rows = []
    for n_dimensions, size in ((100, n // 10), (100, n), (30_000, n // 3)):
        workload = _workload("be_gen", size, {**_PS, "n_dimensions": n_dimensions})
        label = f"{n_dimensions:,} dimensions, {size:,}"
        rows += _variants(label, workload, "pst_bloom", {}, variants)
    return {
        "title": "PSTBloom in its forms, subscriptions of Figure 6: CPU seconds to build; µs of "
        f"CPU time per event, the least of {_ROUNDS} rounds that take turns; clauses looked at per "
        "event; bytes per subscription",
        "header": ["form", "build, s", "µs per event", "candidates", "bytes"],
        "rows": rows,
    }


def _memory_parts(n: int) -> Table:
    table = _table("be_gen", n, _PS)
    own = {
        "pst_bloom": ("clauses",),
        "pst_hash": ("clauses",),
        "be_tree": ("leaves", "slots_ids"),
        "op_index": (),
        "propagation": ("blocks", "clause_ids"),
        "k_index": ("clause_ids",),
    }
    rows = []
    for name, heads in own.items():
        arrays = {k: a.nbytes for k, a in index_class(name).build(table).arrays().items()}
        together = sum(arrays.values())
        clauses = _take(arrays, *heads) if heads else 0
        rows.append([name, *(_round(v / n) for v in (clauses, together - clauses, together))])
    return {
        "title": f"Bytes per subscription, {n:,} subscriptions in 100 dimensions: what is kept to "
        "verify a subscription, and the rest (the lists of OpIndex and k-index are the "
        "subscriptions)",
        "header": ["index", "subscriptions", "the rest", "together"],
        "rows": rows,
    }


def _signature_fill(n: int) -> Table:
    rows = []
    for n_dimensions in (100, 30_000):
        for size in (n // 10, n // 3, n):
            table = _table("be_gen", size, {**_PS, "n_dimensions": n_dimensions})
            arrays = PSTBloom.build(table)._arrays
            leaves, words = arrays.forest.leaves.cells, arrays.signatures.cells
            leaves = leaves[leaves[:, EXTRA_SIZE] > 0]
            n_bits = 2 ** leaves[:, EXTRA_SIZE]
            starts = leaves[:, EXTRA]
            ends = starts + n_bits // 64
            counts = np.bitwise_count(words.view(np.uint64))
            set_bits = [int(counts[a:b].sum()) for a, b in zip(starts, ends, strict=True)]
            fill = np.array(set_bits) / n_bits
            at_most = float((leaves[:, EXTRA_SIZE] == _MOST_BITS).mean())
            rows.append(
                [f"{n_dimensions:,} dimensions, {size:,}", _round(float(fill.mean() * 100)),
                 _round(float(fill.max() * 100)), _round(100 * at_most)]
            )  # fmt: skip
    return {
        "title": "PSTBloom's signatures: percent of bits that are set, mean and most of the "
        "leaves, and percent of signatures that have the most bits, 2^17",
        "header": ["workload", "mean, %", "most, %", "of the largest size, %"],
        "rows": rows,
    }


_PS_LOOKED_AT = ("pst_bloom", "pst_hash", "be_tree", "op_index", "propagation")
_DIMENSIONS = (100, 1000, 30_000)


def _candidates(n: int) -> Table:
    """Count what each index looks at, and how soon a scan leaves a subscription."""
    cases = {f"{d:,} dimensions": {"n_dimensions": d} for d in _DIMENSIONS}
    columns = [_ps_looked_at(n, more) for more in cases.values()]
    return {
        "title": f"What is looked at per event, {n:,} subscriptions",
        "header": ["what", *cases],
        "rows": [[what, *(_round(column[what]) for column in columns)] for what in columns[0]],
    }


def _other_candidates(n: int) -> Table:
    """Count what each index looks at, where Figures 9 to 11 and 13 change something."""
    long = {"event_size": 42}
    cases: dict[str, dict[str, Any]] = {
        "3 values": {"cardinality": 3},
        "1,000 values": {"cardinality": 1000},
        "5 predicates": {**long, "subscription_size": 5},
        "30 predicates": {**long, "subscription_size": 30},
        "90 pairs": {"event_size": 90},
        "no equality": {"equality_ratio": 0.0},
        "equality alone": {"equality_ratio": 1.0},
    }
    rows = []
    for n_dimensions in (100, 30_000):
        columns = [
            _ps_looked_at(n, {**more, "n_dimensions": n_dimensions}) for more in cases.values()
        ]
        rows += [
            [f"{n_dimensions:,} dimensions, {what}", *(_round(column[what]) for column in columns)]
            for what in columns[0]
        ]
    return {
        "title": f"What is looked at per event, {n:,} subscriptions, one thing changed",
        "header": ["what", *cases],
        "rows": rows,
    }


def _ps_looked_at(n: int, more: dict[str, Any]) -> dict[str, float]:
    workload = _workload("be_gen", n, {**_PS, **more}, 100)
    table, events = table_of(workload.subscriptions), event_batch(workload.events)
    known = build_statistics(event_batch(workload.training), table.n_dimensions)
    found: dict[str, float] = {}
    n_matches = 0
    for name in _PS_LOOKED_AT:
        index = index_class(name).build(table, known)
        n_matches = len(index.match_batch(events).clause_ids)
        found[f"{name}: candidates"] = (index.stats().candidates or 0) / events.n_events
    found["matches"] = n_matches / events.n_events
    read = _predicates_read(table, events, range(0, n, max(1, n // 1000)))
    found["scan: predicates of a subscription that it tests"] = read
    return found


def _predicates_read(table: ConjunctionTable, events: EventBatch, clauses: range) -> float:
    """Count the predicates of a clause that are tested, up to the first that fails."""
    n_tests = 0
    for e in range(events.n_events):
        part = slice(*events.offsets[e : e + 2].tolist())
        keys = dict(zip(events.dimensions[part].tolist(), events.keys[part].tolist(), strict=True))
        for clause in clauses:
            for p in range(*table.clause_offsets[clause : clause + 2].tolist()):
                n_tests += 1
                key = keys.get(int(table.dimensions[p]), 0)
                inside = slice(*table.interval_offsets[p : p + 2].tolist())
                if not ((table.lows[inside] <= key) & (key <= table.highs[inside])).any():
                    break
    return n_tests / (events.n_events * len(clauses))


@contextmanager
def _timed(module: Any, names: list[str]) -> Iterator[dict[str, float]]:
    """Measure the CPU time of functions that a module calls by these names."""
    seconds = dict.fromkeys(names, 0.0)
    old = {name: getattr(module, name) for name in names}

    def wrap(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*arguments: Any) -> Any:
            start = time.process_time()
            try:
                return function(*arguments)
            finally:
                seconds[name] += time.process_time() - start

        return timed

    for name, function in old.items():
        setattr(module, name, wrap(name, function))
    try:
        yield seconds
    finally:
        for name, function in old.items():
            setattr(module, name, function)


_STEPS = {
    "ranked": "choosing access predicates",
    "bulk_of": "putting predicates in order",
    "cut_predicates": "cutting spaces",
    "count_filings": "counting what lists and signatures will hold",
    "prepare_leaves": "making room for them",
    "file_clauses": "writing subscriptions and lists",
    "sign_predicates": "writing signatures",
}


def _build_parts(n: int) -> Table:
    table = _table("be_gen", n, _PS)
    PSTBloom.build(take_clauses(table, np.arange(100)))  # compiles
    with _timed(bloom_index, [*_STEPS]) as seconds:
        start = time.process_time()
        PSTBloom.build(table)
        together = time.process_time() - start
    rows = [[words, seconds[name]] for name, words in _STEPS.items()]
    rows.append(["the rest", together - sum(seconds.values())])
    rows.append(["together", together])
    return {
        "title": f"PSTBloom: CPU seconds to build {n:,} subscriptions in 100 dimensions, by step",
        "header": ["step", "seconds", "percent"],
        "rows": [[name, _round(s), _round(100 * s / together)] for name, s in rows],
    }


def _filings(n: int) -> Table:
    table = _table("be_gen", n, _PS)
    counts: list[tuple[int, int]] = []
    count = bloom_index.count_filings

    def counted(forest: Any, table: Any, bulk: Any, listed: Any, covering: Any) -> None:
        count(forest, table, bulk, listed, covering)
        counts.append((int(listed.sum()), int(covering.sum())))

    bloom_index.count_filings = counted
    try:
        PSTBloom.build(table)
    finally:
        bloom_index.count_filings = count
    ((listed, covering),) = counts
    rows = [
        ["leaves that list it", listed / n],
        ["leaves whose signature has it", (covering - listed) / n],
    ]
    return {
        "title": f"PSTBloom: where a subscription is written, on average, {n:,} subscriptions in "
        "100 dimensions",
        "header": ["what", "per subscription"],
        "rows": [[name, _round(value)] for name, value in rows],
    }


# -- one by one -----------------------------------------------------------------------------------


def _one_by_one(title: str, table: ConjunctionTable, contenders: dict[str, Any]) -> Table:
    rows = []
    for label, (name, options) in contenders.items():
        few = np.arange(100)
        cls: Any = index_class(name)
        cls.build(take_clauses(table, few), **options)
        start = time.process_time()
        cls.build(table, **options)
        at_once = time.process_time() - start
        ones = [take_clauses(table, np.array([i])) for i in range(table.n_clauses)]
        index = cls.build(take_clauses(table, np.empty(0, np.int64)), **options)
        for one in ones[:100]:
            index.insert(one)
        start = time.process_time()
        for one in ones[100:]:
            index.insert(one)
        seconds = (time.process_time() - start) * len(ones) / (len(ones) - 100)
        each = 1e6 * seconds / len(ones)
        rows.append([label, *map(_round, (at_once, seconds, each))])
    return {
        "title": title,
        "header": ["index", "at once, s", "one by one, s", "µs per insertion"],
        "rows": rows,
    }


def _ps_one_by_one(n: int) -> Table:
    names = ("op_index", "pst_bloom", "pst_hash", "be_tree")
    return _one_by_one(
        f"CPU seconds to build an index of {n:,} subscriptions in 100 dimensions, at once and by "
        "insertions of one subscription, each of which leaves the index up to date (with the call "
        "from Python)",
        _table("be_gen", n, _PS),
        {name: (name, {}) for name in names},
    )


def _op_one_by_one(n: int) -> Table:
    return _one_by_one(
        f"CPU seconds to build an index of {n:,} subscriptions in 20,000 attributes, at once and "
        "by insertions of one subscription (with the call from Python)",
        _table("op_index", n, _OP),
        {
            "op_index": ("op_index", {}),
            "op_index_bs": ("op_index", {"segments": False}),
            "be_tree": ("be_tree", {"max_capacity": 5}),
        },
    )


def _normal_forms(n: int) -> Table:
    sizes, clauses = (n // 10, n), (1, 9)
    found: dict[str, list[float]] = {}
    for size, most in [*((size, 5) for size in sizes), *((n // 10, most) for most in clauses)]:
        for form, match in both_forms(size, most, 100).items():
            match()
            seconds = []
            for _ in range(7):
                start = time.process_time()
                match()
                seconds.append(time.process_time() - start)
            found.setdefault(form, []).append(1e6 * min(seconds) / 100)
    return {
        "title": "Figure 13: µs of CPU time per event, the least of seven rounds of 100 events",
        "header": [
            "form",
            *(f"{size:,} subscriptions, 5 clauses at most" for size in sizes),
            "most / fewest subscriptions",
            *(f"{n // 10:,} subscriptions, {most} clauses at most" for most in clauses),
            "most / fewest clauses",
        ],
        "rows": [
            [form, *map(_round, (a, b, b / a, c, d, d / c))] for form, (a, b, c, d) in found.items()
        ],
    }


def _single_predicates(n: int) -> Table:
    """Count conjunctions of disjunctions that have a disjunction of one predicate."""
    most_clauses = (1, 5, 9)
    shares = []
    for most in most_clauses:
        workload = cnf(WorkloadSpec("op_index", n, 1, parameters={"max_clauses": most}))
        is_single = np.diff(workload.predicate_offsets) == 1
        has_single = np.logical_or.reduceat(is_single, workload.group_offsets[:-1])
        shares.append(_round(100 * float(has_single.mean())))
    return {
        "title": f"{n:,} conjunctions of disjunctions: percent that have a disjunction of one "
        "predicate",
        "header": ["what", *(f"{most} clauses at most" for most in most_clauses)],
        "rows": [["percent", *shares]],
    }


_PREFIXES = {"n_numbers": 10_000, "n_texts": 100}


def _prefixes(n: int) -> Table:
    """Match prefixes at the paper's size; CPU time does not suffer from a busy machine as much."""
    cases = {f"{share:.0%} prefixes": {"prefix_ratio": share} for share in (0.0, 0.4, 1.0)}
    cases |= {f"length {length}": {"prefix_length": length} for length in (1, 3, 5)}
    rows = []
    for name, more in cases.items():
        spec = WorkloadSpec("op_index_prefix", n, 200, parameters={**_PREFIXES, **more})
        workload = generate(spec)
        index = index_class("op_index").build(table_of(workload.subscriptions))
        events = event_batch(workload.events)
        found = index.match_batch(events)
        seconds = []
        for _ in range(7):
            start = time.process_time()
            index.match_batch(events)
            seconds.append(time.process_time() - start)
        us = 1e6 * min(seconds) / events.n_events
        rows.append([name, _round(us), _round(len(found.clause_ids) / events.n_events)])
    return {
        "title": f"Figure 14 with {n:,} subscriptions: µs of CPU time per event, the least of "
        "seven rounds of 200 events",
        "header": ["subscriptions", "µs per event", "matches per event"],
        "rows": rows,
    }


# -- operators ------------------------------------------------------------------------------------


def _other_workloads(n: int) -> Table:
    """Evaluate Figure 4's orders on its stated workload, and on one that comes close to it."""
    orders: dict[str, tuple[str, bool, int | None]] = {
        "Naive, rare first": ("naive", True, 36_000),
        "Naive, any order": ("naive", False, None),
        "Sequential, rare first": ("sequential", True, 7761),
        "Sequential, any order": ("sequential", False, None),
        "Sub-Order": ("sub_order", False, 7037),
        "Adaptive (ours)": ("adaptive", False, None),
    }
    workloads: dict[str, dict[str, Any]] = {"uniform, as stated": {"popularity": "uniform"}}
    workloads |= {f"Zipf {z}": {"popularity": "zipf", "zipf": z} for z in (0.8, 0.9, 1.0)}
    found: dict[str, list[int]] = {name: [] for name in orders}
    for more in workloads.values():
        fixed = {"min_size": 3, "max_size": 5, "n_predicates": n // 2, "matched_ratio": 0.002}
        workload = generate(WorkloadSpec("operators", n, 4, 512, parameters={**fixed, **more}))
        table = table_of(workload.subscriptions)
        known = build_statistics(event_batch(workload.training), table.n_dimensions)
        events = event_batch(workload.events)
        for name, (order, rare_first, _) in orders.items():
            built = ORDERS[order].build(table, known, rare_first=rare_first)
            built.match_batch(events)
            found[name].append(round((built.stats().candidates or 0) / events.n_events))
    return {
        "title": f"Figure 4 at {n:,} subscriptions: predicates evaluated for an event, by the "
        "popularity of predicates (the paper's Naive is read off its plot)",
        "header": ["order", "the paper", *workloads],
        "rows": [[name, orders[name][2], *values] for name, values in found.items()],
    }


TABLES: dict[str, tuple[Callable[[int], Table], int]] = {
    "be_tree.bytes": (_be_tree_bytes, 1_000_000),
    "be_tree.candidates": (_be_tree_candidates, 100_000),
    "be_tree.capacity": (_be_tree_capacity, 100_000),
    "be_tree.drift": (_be_tree_drift, 100_000),
    "be_tree.printed": (_be_tree_printed, 1_000_000),
    "be_tree.value_candidates": (_be_tree_value_candidates, 100_000),
    "ps_tree.memory_parts": (_memory_parts, 1_000_000),
    "ps_tree.signature_fill": (_signature_fill, 3_000_000),
    "ps_tree.candidates": (_candidates, 300_000),
    "ps_tree.build_parts": (_build_parts, 1_000_000),
    "ps_tree.filings": (_filings, 1_000_000),
    "ps_tree.other_candidates": (_other_candidates, 100_000),
    "ps_tree.one_by_one": (_ps_one_by_one, 100_000),
    "ps_tree.printed": (_pst_bloom_printed, 3_000_000),
    "op_index.one_by_one": (_op_one_by_one, 100_000),
    "op_index.normal_forms": (_normal_forms, 300_000),
    "op_index.single_predicates": (_single_predicates, 30_000),
    "op_index.prefixes": (_prefixes, 1_000_000),
    "operators.other_workloads": (_other_workloads, 80_000),
}
