"""`matchmill check`: bad rows with their places, warnings, damage."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]

SECOND_LOOK = """\
1 never true:
  u3: no event can satisfy it; its conditions contradict each other
1 always true:
  u4: every event satisfies it; its conditions are always true
"""


def test_nothing_is_wrong(run: Run) -> None:
    result = run("check", "subs.csv")
    assert result.code == 0
    assert result.out == "5 accepted, 0 rejected\n" + SECOND_LOOK
    assert run("check", "subs.csv", "--quiet").out == ""


def test_the_place_of_a_mistake(run: Run) -> None:
    with open("subs.csv", "a") as stream:
        stream.write('u6,price <= and x = 1\nu1,price > 0\nu7,a,b\n"u\x1b[2J",prise\x07 =\n')
    result = run("check", "subs.csv")
    assert result.code == 1
    lines = result.out.splitlines()
    assert lines[0].startswith("subs.csv:7: u6: ")
    place = lines.index("    price <= and x = 1")
    assert lines[place + 1].strip() == "^"
    assert "subs.csv:8: u1: the id 'u1' occurs twice: first in subs.csv:2" in lines
    assert any(line.startswith("subs.csv:9: u7: ") for line in lines)
    assert "5 accepted, 4 rejected" in lines
    assert "\x1b" not in result.out
    assert "\x07" not in result.out


def test_it_agrees_with_the_engine(run: Run) -> None:
    lines = [
        '{"subscription_id": 1, "expression": "a = 1"}',
        '{"subscription_id": "x", "expression": "a = 1"}',
        '{"subscription_id": 2.5, "expression": "a = 1"}',
        '{"subscription_id": true, "expression": "a = 1"}',
        '{"subscription_id": 9223372036854775808, "expression": "a = 1"}',
        '{"subscription_id": 2, "expression": 5}',
        '{"subscription_id": 3, "expression": {"a": 1}}',
        '{"subscription_id": 4, "expression": {"a": [1]}}',
        "nonsense",
        '{"subscription_id": 1, "expression": "a = 2"}',
        '{"subscription_id": 5, "expression": "a = 1 and a = 2"}',
    ]
    Path("subs.jsonl").write_text("\n".join(lines))
    report = json.loads(run("check", "subs.jsonl", "--format", "json").out)
    assert run("match", "subs.jsonl", "events.csv", "--rejected", "r.jsonl").code == 3
    rejected = [json.loads(line) for line in Path("r.jsonl").read_text().splitlines()]
    assert [row["line"] for row in report["rejected"]] == [row["line"] for row in rejected]
    assert [row["row"] for row in report["rejected"]] == [row["row"] for row in rejected]
    assert [row["line"] for row in rejected] == [2, 3, 4, 5, 6, 7, 9, 10]
    assert (report["ok"], report["n_subscriptions"]) == (False, 3)
    assert [(one["id"], one["kind"]) for one in report["warnings"]] == [(5, "never")]


def test_every_file_of_a_folder_is_read(run: Run) -> None:
    assert run("build", "subs.csv", "saved").code == 0
    result = run("check", "saved")
    assert (result.code, result.out) == (0, "5 subscriptions; every file is whole\n" + SECOND_LOOK)
    found = json.loads(run("check", "saved", "--format", "json").out)
    assert (found["ok"], found["n_subscriptions"], found["rejected"]) == (False, 5, [])
    assert run("check", "saved", "--quiet").out == ""
    file = next(Path("saved").glob("data-*/text_data.npy"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    result = run("check", "saved")
    assert result.code == 2
    assert "text_data.npy is damaged" in result.err


def test_typos_are_heard(run: Run) -> None:
    Path("typos.csv").write_text("subscription_id,expression\nu1,prize < 20\nu2,price < 20\n")
    result = run("check", "typos.csv", "--events", "events.csv")
    assert result.code == 1
    assert result.out == (
        "2 accepted, 0 rejected\n"
        "events: 3 looked at, 0 rejected\n"
        "1 ask for an attribute that the events do not have:\n"
        "  u1: the events have no column prize; did you mean 'price'?\n"
    )
    assert run("build", "typos.csv", "saved").code == 0
    report = json.loads(run("check", "saved", "--events", "events.csv", "--format", "json").out)
    assert [one["kind"] for one in report["warnings"]] == ["unknown_attribute"]
    assert run("check", "typos.csv").code == 0


def test_only_some_findings_are_shown(run: Run) -> None:
    rows = "".join(f"u{n},prize < {n}\n" for n in range(7))
    Path("typos.csv").write_text("subscription_id,expression\n" + rows)
    lines = run("check", "typos.csv", "--events", "events.csv").out.splitlines()
    assert lines[2].startswith("7 ask for an attribute")
    assert lines[-1] == "  … and 2 more; --format json has them all"
    assert len(lines) == 9


def test_events_that_cannot_be_read(run: Run) -> None:
    Path("bad.jsonl").write_text('{"price": 1}\nnonsense\n')
    result = run("check", "subs.csv", "--events", "bad.jsonl")
    assert result.code == 1
    assert "bad.jsonl:2: " in result.out
    assert "events: 1 looked at, 1 rejected" in result.out


def test_what_cannot_be_checked(run: Run) -> None:
    result = run("check", "events.csv")
    assert result.code == 2
    assert "no column 'subscription_id'; it has: flight, price" in result.err
    assert run("check", ".").code == 2


def test_several_files_of_events(run: Run) -> None:
    Path("more.csv").write_text("flight,price\nB1,3\n")
    once = run("check", "subs.csv", "--events", "events.csv", "more.csv")
    assert "events: 4 looked at, 0 rejected" in once.out
    twice = run("check", "subs.csv", "--events", "events.csv", "--events", "more.csv")
    assert twice.out == once.out
