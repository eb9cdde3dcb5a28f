"""Sigma rules against a reference of Sigma's own semantics; loading, rejections, the command."""

from __future__ import annotations

import json
import lzma
import random
import tarfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sigma.rule")
import yaml
from sigma.rule import SigmaRule

import matchmill as mm
from matchmill import sigma
from matchmill.cli import main
from tests.support.sigma_reference import holds
from tests.support.tiers import first_cases

DATA = Path(__file__).parents[3] / "shared" / "data" / "sigma"  # beside the repository


def rule(detection: str, **more: Any) -> str:
    """The YAML of a rule with these lines as its detection."""
    head = {"title": "T", "status": "test", "logsource": {"product": "windows"}, "level": "high"}
    lines = "\n".join(f"  {line}" for line in detection.strip("\n").splitlines())
    return yaml.safe_dump(head | more) + f"detection:\n{lines}\n"


EVENTS: list[dict[str, Any]] = [
    {},
    {"a": None},
    {"a": "x"},
    {"a": "X"},
    {"a": "abc.EXE", "b": "/tmp/x"},
    {"a": "-foo bar", "b": "10.1.2.3"},
    {"a": "/foo bar", "b": "11.1.2.3"},
    {"a": 7, "b": "fe80::1"},
    {"a": "7", "b": 7},
    {"a": 7.0},
    {"a": 6},
    {"a": ""},
    {"a": "50%_\\*?", "b": "line\nbreak"},
    {"a": True, "b": "TRUE"},
    {"a": "false", "b": False},
    {"c": "run MimiKatz now", "n": 12345},
    {"c": "dABlAHMAdAA=", "a": "VGVzdA=="},
    {"c": "12345"},
    {"a": "x", "b": "x", "c": "y"},
]

DETECTIONS = {
    "equals": "s: {a: x}\ncondition: s",
    "missing": "s: {a: x}\ncondition: not s",
    "missing of two": "s: {a: x, b: x}\ncondition: not s",
    "list": "s: {a: [x, 7, '7', 'abc.exe']}\ncondition: s",
    "number": "s: {a: 7}\ncondition: s",
    "number as text": "s: {a: '7'}\ncondition: s",
    "contains": "s: {'a|contains': [FOO, '50%_']}\ncondition: s",
    "contains all": "s: {'a|contains|all': [foo, BAR]}\ncondition: s",
    "startswith": "s: {'a|startswith': abc}\ncondition: s",
    "endswith": "s: {'a|endswith': ['.exe', bar]}\ncondition: s",
    "wildcards": "s: {a: '?bc*e'}\ncondition: s",
    "escaped wildcards": "s: {a: '50%_*\\*\\?'}\ncondition: s",
    "cased": "s: {'a|cased': x}\ncondition: s",
    "cased contains": "s: {'a|contains|cased': EXE}\ncondition: s",
    "windash": "s: {'a|windash|startswith': '-foo'}\ncondition: s",
    "windash contains": "s: {'a|windash|contains': '-foo'}\ncondition: s",
    "re": "s: {'a|re': '^[a-c]+\\.EXE$'}\ncondition: s",
    "re i": "s: {'a|re|i': '^[a-c]+\\.exe$'}\ncondition: s",
    "re s": "s: {'b|re|s': 'line.break'}\ncondition: s",
    "re m": "s: {'b|re|m': '^break$'}\ncondition: s",
    "cidr": "s: {'b|cidr': ['10.0.0.0/8', 'fe80::/10']}\ncondition: s",
    "base64": "s: {'a|base64': Test}\ncondition: s",
    "base64offset": "s: {'a|base64offset|contains': est}\ncondition: s",
    "wide base64": "s: {'c|wide|base64offset|contains': test}\ncondition: s",
    "wide": "s: {'c|wide|base64': test}\ncondition: s",
    "exists": "s: {'a|exists': true}\ncondition: s",
    "not exists": "s: {'a|exists': false}\ncondition: s",
    "null": "s: {a: null}\ncondition: s",
    "empty": "s: {a: ''}\ncondition: s",
    "lt": "s: {'a|lt': 7}\ncondition: s",
    "gte": "s: {'a|gte': 6.5}\ncondition: s",
    "boolean": "s: {a: true}\ncondition: s",
    "boolean false": "s: {b: false}\ncondition: s",
    "keywords": "s: [mimikatz, '12345']\ncondition: s",
    "keywords all": "s: {'|all': [mimikatz, now]}\ncondition: s",
    "not keywords": "s: [mimikatz]\ncondition: not s",
    "one of them": "s1: {a: x}\ns2: {a: '7'}\ncondition: 1 of them",
    "all of": "s1: {a: x}\ns2: {b: x}\ncondition: all of s*",
    "one of": "s1: {a: x}\ns2: {b: x}\nf: {c: y}\ncondition: 1 of s* and not f",
    "list of maps": "s:\n  - a: x\n  - b: 'TRUE'\ncondition: s",
    "deep": "s: {a: x}\nf1: {b: x}\nf2: {c: y}\ncondition: s and not (f1 and not f2)",
    "fields": "s: {'a|fieldref': b}\ncondition: s",
    "not fields": "s: {'a|fieldref': b}\ncondition: not s",
    "not not": "s: {a: x}\ncondition: not (not s)",
}


@pytest.mark.parametrize("detection", DETECTIONS.values(), ids=DETECTIONS.keys())
def test_every_modifier_means_what_sigma_says(detection: str) -> None:
    text = rule(detection)
    parsed = SigmaRule.from_yaml(text)
    expected = [holds(parsed, event) for event in EVENTS]
    assert True in expected
    expression = sigma.convert(text)
    assert [mm.evaluate(expression, event) is True for event in EVENTS] == expected
    engine = mm.Engine()
    engine.subscribe("r", text, dialect="sigma")
    assert [bool(found) for found in engine.match_many(EVENTS)] == expected
    assert [bool(engine.match(event)) for event in EVENTS] == expected
    assert engine["r"].expression == str(expression)


def test_what_is_rejected_and_why(tmp_path: Path) -> None:
    bad = {
        "fields": rule("s: {'a|fieldref|startswith': b}\ncondition: s"),
        "placeholder": rule("s: {'a|expand': '%servers%'}\ncondition: s"),
        "regex": rule("s: {'a|re': '(?=x)y'}\ncondition: s"),
        "correlation": "title: T\ncorrelation: {type: event_count, rules: [r]}\n",
        "yaml": "title: [",
        "twice": rule("s: {a: x}\ns: {a: y}\ncondition: s"),
        "list": "- a\n- b\n",
        "nothing": "title: T\n",
        "laughs": "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(
            f"{c}: &{c} [{', '.join([f'*{p}'] * 10)}]\n"
            for p, c in ("ab", "bc", "cd", "de", "ef", "fg")
        )
        + "detection: {s: {x: *g}, condition: s}\n",
        "condition": rule("s: {a: x}\ncondition: s and"),
    }
    for name, text in bad.items():
        (tmp_path / f"{name}.yml").write_text(text)
    (tmp_path / "good.yml").write_text(rule("s: {a: x}\ncondition: s"))
    loaded = sigma.load(tmp_path)
    assert [one.subscription_id for one in loaded] == ["good"]
    reasons = {one.id: one.reason for one in loaded.rejected}
    assert set(reasons) == set(bad)
    for name, words in {
        "fields": "in another field",
        "placeholder": "%servers%",
        "regex": "Regular expression",
        "correlation": "several events",
        "yaml": "not valid YAML",
        "twice": "given twice",
        "list": "a mapping",
        "nothing": "detection",
        "laughs": "aliases expand",
    }.items():
        assert words in reasons[name], reasons[name]


def test_ids_hits_and_summaries(tmp_path: Path) -> None:
    uuid = "5af54681-df95-4c26-854f-2565e13cfab0"
    (tmp_path / "a.yml").write_text(
        rule("s: {a: x}\ncondition: s", id=uuid, tags=["attack.t1086"], author="A")
    )
    (tmp_path / "sub").mkdir()
    two = rule("s: {a: x}\nt: {b: 1}\ncondition:\n  - s\n  - t", level="low")
    (tmp_path / "sub" / "b.yaml").write_text(two)
    (tmp_path / "sub" / "c.yml").write_text(rule("s: {a: y}\ncondition: s", id=uuid))
    rules = mm.sigma.load(tmp_path)
    assert [one.subscription_id for one in rules] == [uuid, "b"]
    assert "occurs twice" in rules.rejected[0].reason
    assert rules.rule(uuid).tags == ["attack.t1086"]
    engine = mm.Engine(rules)
    matches = engine.match_many([{"a": "X"}, {"b": "1"}, {}], event_id=None)
    hits = rules.hits(matches).to_pylist()
    assert [(row["event_id"], row["title"], row["level"]) for row in hits] == [
        (0, "T", "high"), (0, "T", "low"), (1, "T", "low"),
    ]  # fmt: skip
    assert [row["n_matches"] for row in rules.summary(matches).to_pylist()] == [2, 1]


def test_pipelines(tmp_path: Path) -> None:
    text = rule("s: {CommandLine: x}\ncondition: s")
    (tmp_path / "r.yml").write_text(
        text.replace("product: windows", "product: windows\n  category: process_creation")
    )
    (tmp_path / "p.yaml").write_text(
        "name: p\ntransformations:\n- type: field_name_mapping\n  mapping: {CommandLine: cmd}\n"
    )
    (found,) = sigma.load(tmp_path / "r.yml", pipelines=["windows", str(tmp_path / "p.yaml")])
    event = {"Channel": "Microsoft-Windows-Sysmon/Operational", "EventID": 1, "cmd": "X"}
    assert mm.evaluate(found.expression, event) is True
    assert mm.evaluate(found.expression, event | {"EventID": "1"}) is True
    assert mm.evaluate(found.expression, event | {"EventID": 2}) is not True
    assert mm.evaluate(found.expression, event | {"Channel": "Security"}) is not True
    with pytest.raises(
        mm.InputError, match=r"there is no pipeline 'windws'.*did you mean 'windows'"
    ):
        sigma.load(tmp_path / "r.yml", pipelines="windws")


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, events = tmp_path / "rules", tmp_path / "events.jsonl"
    rules.mkdir()
    (rules / "a.yml").write_text(rule("s: {'a|contains': oo}\ncondition: s", tags=["attack.t1"]))
    (rules / "bad.yml").write_text(rule("s: {'a|expand': '%servers%'}\ncondition: s"))
    events.write_text('{"event_id": "e1", "a": "FOO"}\n{"event_id": "e2"}\n')
    out = tmp_path / "hits.jsonl"
    code = main(
        ["match", str(rules), str(events), "--dialect", "sigma", "--event-id", "event_id",
         "--out", str(out)]
    )  # fmt: skip
    said = capsys.readouterr().err
    assert code == 3
    assert [json.loads(line) for line in out.read_text().splitlines()] == [
        {
            "event_id": "e1",
            "subscription_id": "a",
            "title": "T",
            "level": "high",
            "tags": ["attack.t1"],
        }
    ]
    assert "high: 1 matches of 1 rules" in said
    assert "%servers%" in said
    assert main(["check", str(rules), "--dialect", "sigma"]) == 1
    assert "%servers%" in capsys.readouterr().out


# -- real rules and real logs ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[sigma.SigmaRules, list[Any]]:
    if not DATA.is_dir():
        pytest.skip(f"there are no rules and logs in {DATA}")
    folder = tmp_path_factory.mktemp("rules")
    with tarfile.open(DATA / "rules.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    with lzma.open(DATA / "events.jsonl.xz", "rt", encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines]
    return sigma.load(folder), events


@pytest.mark.slow
@pytest.mark.parametrize("seed", first_cases(1, range(40)))
def test_real_rules_match_real_logs_as_the_reference_does(
    real: tuple[sigma.SigmaRules, list[Any]], seed: int
) -> None:
    rules, events = real
    assert len(rules) > 2200
    assert len(rules.rejected) < 20
    chosen = random.Random(seed).sample(events, 8)
    engine = mm.Engine(rules)
    parsed = {
        one.subscription_id: SigmaRule.from_yaml(Path(one.file or "").read_text(encoding="utf-8"))
        for one in random.Random(seed).sample(list(rules), 300)
    }
    n_found = 0
    for event, found in zip(chosen, engine.match_many(chosen), strict=True):
        expected = {id for id, one in parsed.items() if holds(one, event)}
        assert found & set(parsed) == expected
        n_found += len(found)
    assert n_found
