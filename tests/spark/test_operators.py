"""Operators with a price, through Spark: the same matches as the library gives."""

from __future__ import annotations

import random
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import matchmill as mm
from matchmill import spark as ms
from matchmill.cli import main

MODULE = "priced_operators_for_spark"
SOURCE = """\
from matchmill import operator


@operator(cost_ms=5)
def near(event, x, y, most):
    return abs(event["x"] - x) + abs(event["y"] - y) <= most


@operator(cost_ms=50)
def remainder(event, n, rest):
    return event["x"] * 7 % n == rest
"""


@pytest.fixture
def module(spark: Any, tmp_path: Path) -> Any:
    """The module, known here and to workers."""
    file = tmp_path / f"{MODULE}.py"
    file.write_text(SOURCE)
    spark.sparkContext.addPyFile(str(file))
    import_module(MODULE)
    yield MODULE
    for name in ("near", "remainder"):
        mm.unregister_operator(name)
    del sys.modules[MODULE]


def rules(rng: random.Random) -> list[tuple[str, str]]:
    found = []
    for i in range(60):
        place = f"near({rng.randrange(20)}, {rng.randrange(20)}, {rng.randrange(1, 9)})"
        rest = f"remainder({rng.randrange(2, 5)}, {rng.randrange(2)})"
        plain = f"x > {rng.randrange(20)}"
        found.append(
            (
                f"r{i}",
                rng.choice(
                    [
                        f"{plain} and {place}",
                        f"{place} and {rest}",
                        f"not {rest} and {plain}",
                        f"{place} or y = 3 and {rest}",
                        plain,
                    ]
                ),
            )
        )
    return found


@pytest.mark.slow
def test_priced_operators_match_as_in_the_library(spark: Any, module: str, tmp_path: Path) -> None:
    rng = random.Random(5)
    some = rules(rng)
    rows = spark.createDataFrame(some, "subscription_id string, expression string")
    points = [(i, rng.randrange(20), rng.randrange(20)) for i in range(150)]
    events = spark.createDataFrame(points, "event_id int, x int, y int")
    engine = mm.Engine()
    assert engine.subscribe_many(some).n_accepted == len(some)
    wanted = {(i, found) for i, x, y in points for found in engine.match({"x": x, "y": y})}
    assert wanted
    for plan in ("events", "driver"):
        matches = ms.match(rows, events, operators=module, plan=plan)
        assert {tuple(row) for row in matches.collect()} == wanted

    engine.save(tmp_path / "saved.mill")
    saved = ms.match(tmp_path / "saved.mill", events, operators=module)
    assert {tuple(row) for row in saved.collect()} == wanted

    rows.coalesce(1).write.parquet(str(tmp_path / "rules.parquet"))
    events.coalesce(1).write.parquet(str(tmp_path / "events.parquet"))
    config = tmp_path / "p.toml"
    config.write_text(
        'output = "out"\n[subscriptions]\npath = "rules.parquet"\n'
        f'operators = ["{module}"]\n[events]\npath = "events.parquet"\n'
        '[match]\nplan = "events"\n'
    )
    assert main(["pipeline", "run", str(config), "--quiet"]) == 0
    table = spark.read.parquet(str(tmp_path / "out" / "match" / "0001"))
    assert {tuple(row) for row in table.select("event_id", "subscription_id").collect()} == wanted
