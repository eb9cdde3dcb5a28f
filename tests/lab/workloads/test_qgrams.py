"""Strings as conjunctions of q-grams."""

from __future__ import annotations

import gzip
import shutil
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchmill as mm
from matchmill.lab.workloads import datasets
from matchmill.lab.workloads.datasets import debian_packages
from matchmill.lab.workloads.flat import Workload, event_dicts, subscription_texts
from matchmill.lab.workloads.qgrams import qgrams
from matchmill.lab.workloads.spec import WorkloadSpec
from tests.lab.workloads.test_query_log import check_workload, digest, matches_of_arrays

TITLES = """\
String
Efficient string matching
An aid to bibliographic search
Indexing Boolean expressions
Boolean, expressions!
boolean EXPRESSIONS
Publish and subscribe
Matching in the presence of Zipf-distributed attributes
Über das Suchen
A tree for dynamic Boolean expression indexing

2013
to be or
Fast matching of subscriptions against events
"""


@pytest.fixture
def titles(tmp_path: Path) -> str:
    path = tmp_path / "titles.txt"
    path.write_text(TITLES, encoding="utf-8")
    return str(path)


def spec(path: str, n: int = 10, n_events: int = 10, n_training: int = 0, **more: Any) -> Any:
    return WorkloadSpec("qgrams", n, n_events, n_training, parameters={"path": path, **more})


def texts_of(workload: Workload) -> set[str]:
    return {text for _, text in subscription_texts(workload)}


def test_grams_of_a_string(titles: str) -> None:
    workload = qgrams(spec(titles))
    assert "\"in\" = 'g' and ri = 'n' and st = 'r' and tr = 'i'" in texts_of(workload)
    assert {"st": "r", "tr": "i", "ri": "n", "in": "g"} in list(event_dicts(workload))
    # grams stay within words, accents go, the first of two grams with one attribute counts
    assert {"ub": "e", "be": "r", "da": "s", "su": "c", "uc": "h", "ch": "e", "he": "n"} in list(
        event_dicts(workload)
    )


def test_duplicates_and_strings_without_a_gram_are_left_out(titles: str) -> None:
    assert len(texts_of(qgrams(spec(titles)))) == 10
    with pytest.raises(mm.InputError, match="there are 10 distinct strings"):
        qgrams(spec(titles, 11))


def test_an_event_matches_its_own_string_and_parts_of_it(titles: str) -> None:
    workload = qgrams(spec(titles))
    found = check_workload(workload)
    texts = dict(subscription_texts(workload))
    string = next(n for n, text in texts.items() if text.count("=") == 4)
    assert sum(string in numbers for numbers in found) == 2  # also in `Efficient string matching`
    assert all(found)


@pytest.mark.parametrize("q", [2, 3, 4])
def test_lengths_of_grams(titles: str, q: int) -> None:
    workload = qgrams(spec(titles, q=q))
    check_workload(workload)
    assert workload.domain.n_attributes == 26 ** (q - 1)
    assert {len(name) for event in event_dicts(workload) for name in event} == {q - 1}


@pytest.mark.parametrize("operators", ["low", "medium", "high"])
@pytest.mark.parametrize("strings_per_event", [1, 2])
def test_derived_subscriptions_match_their_base(
    titles: str, operators: str, strings_per_event: int
) -> None:
    options = {"operators": operators, "strings_per_event": strings_per_event}
    workload = qgrams(spec(titles, 300, 5, match_probability=0.2, **options))
    found = check_workload(workload)
    assert sum(map(len, found)) >= 300
    owners = [n for numbers in found for n in numbers]
    assert set(owners) == set(range(300))
    # A list of the first and the last letter reads `not between` those inside.
    joined = " ".join(texts_of(workload)).replace("not between", "")
    assert " in (" in joined
    assert (" between " in joined) == (operators != "low")
    assert ("!=" in joined) == (operators == "high")


def test_shares_are_as_asked(titles: str) -> None:
    workload = qgrams(spec(titles, 4000, 5, match_probability=0.2, keep=0.6, equality_ratio=0.4))
    flat = workload.subscriptions
    sizes = np.diff(workload.events.offsets)
    assert len(flat.attributes) / 4000 == pytest.approx(0.6 * sizes.mean(), rel=0.03)
    firsts, ends = flat.interval_offsets[:-1], flat.interval_offsets[1:]
    is_equality = (ends - firsts == 1) & (flat.lows[firsts] == flat.highs[firsts])
    assert is_equality.mean() == pytest.approx(0.4, abs=0.02)


def test_at_least_one_predicate(titles: str) -> None:
    workload = qgrams(spec(titles, 50, 5, match_probability=0.2, keep=0.0))
    assert np.diff(workload.subscriptions.clause_offsets).tolist() == [1] * 50


def test_more_events_than_bases_come_again(titles: str) -> None:
    workload = qgrams(spec(titles, 20, 12, 4, match_probability=0.2))
    events = [str(event) for event in event_dicts(workload)]
    assert len(events) == 12
    assert len(set(events)) == 5


def test_these_bytes_stay(titles: str) -> None:
    assert digest(qgrams(spec(titles))) == "38012fe378d09c13"
    derived = spec(titles, 2000, 5, match_probability=0.2, operators="high")
    assert digest(qgrams(derived)) == "a1ecc9901eb12767"
    assert digest(qgrams(derived.changed(seed=2))) != digest(qgrams(derived))


def test_nothing_is_a_workload_too(titles: str) -> None:
    check_workload(qgrams(spec(titles, 0, 0)))
    check_workload(qgrams(spec(titles, 0, 0, match_probability=0.2)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 3}, "no parameter 'n'; there are: equality_ratio, keep"),
        ({"q": 5}, "q must be 2, 3 or 4"),
        ({"source": "titles"}, "source must be one of names, descriptions, maintainers"),
        ({"operators": "all"}, "operators must be one of low, medium, high"),
        ({"keep": 1.5}, "keep must be between 0 and 1"),
        ({"strings_per_event": 0}, "strings_per_event must be"),
        ({"packages": "x"}, "path or packages"),
        ({"n_events": 11}, "there are 10 strings"),
        ({"match_probability": 0.01}, "takes 100 bases of 1 strings, but there are 10 strings"),
    ],
)
def test_bad_parameters(titles: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(mm.InputError, match=message):
        qgrams(spec(titles).changed(**changes))


def test_a_file_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("1\n2\n")
    with pytest.raises(mm.FileFormatError, match="no string with a word of 3 letters"):
        qgrams(spec(str(tmp_path / "empty")))


# -- packages -------------------------------------------------------------------------------------

INDEX = """\
Package: zoo
Maintainer: Ann Keeper <ann@example.org>
Description: animals behind
 a fence
Size: 4

Version: 1

Package: bee
Description: keeps bees
"""


def test_records_of_an_index(tmp_path: Path) -> None:
    path = tmp_path / "index.gz"
    path.write_bytes(gzip.compress(INDEX.encode()))
    first, second = debian_packages(path)
    assert first["Description"] == "animals behind\na fence"
    assert first["Size"] == "4"
    assert second == {"Package": "bee", "Description": "keeps bees"}
    parameters = {"packages": str(path), "source": "descriptions"}
    workload = qgrams(WorkloadSpec("qgrams", 2, 2, 0, parameters=parameters))
    assert "be = 'e' and ee = 'p' and ep = 's' and ke = 'e'" in texts_of(workload)
    parameters["source"] = "maintainers"
    assert len(texts_of(qgrams(WorkloadSpec("qgrams", 1, 1, 0, parameters=parameters)))) == 1


def test_no_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "none").write_text("Version: 1\n")
    with pytest.raises(mm.FileFormatError, match="no record of a package"):
        list(debian_packages(tmp_path / "none"))
    monkeypatch.setattr(datasets.shutil, "which", lambda name: None)
    with pytest.raises(mm.MissingDependencyError, match="apt-get update"):
        next(debian_packages())


def test_an_empty_list_says_how_to_fill_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "_dumpavail", lambda: iter(()))
    with pytest.raises(mm.MissingDependencyError, match="apt-get update"):
        next(debian_packages())


@pytest.fixture
def some_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The beginning of this machine's list of packages: the whole takes a second or two."""
    lines = list(islice(datasets._dumpavail(), 15_000)) if shutil.which("apt-cache") else []
    if sum(line.startswith("Package:") for line in lines) < 500:
        pytest.skip("this machine has no list of Debian packages")
    monkeypatch.setattr(datasets, "_dumpavail", lambda: iter(lines))


@pytest.mark.usefixtures("some_packages")
def test_names_of_packages() -> None:
    workload = qgrams(WorkloadSpec("qgrams", 100, 20, 20, parameters={"source": "names"}))
    check_workload(workload)
    derived = workload.spec.changed(match_probability=0.1, n_subscriptions=1000, n_events=10)
    assert sum(map(len, matches_of_arrays(qgrams(derived)))) >= 1000
