"""Packages as products, and searches for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchmill as mm
from matchmill.lab.workloads.flat import Workload, event_dicts, subscription_texts
from matchmill.lab.workloads.products import package_pairs, products
from matchmill.lab.workloads.spec import WorkloadSpec
from tests.lab.workloads.test_qgrams import some_packages
from tests.lab.workloads.test_query_log import check_workload, digest

__all__ = ["some_packages"]  # a fixture

CHESS = """\
Package: chess
Source: games (1.2)
Installed-Size: 800
Size: 102401
Maintainer: Ann Player <ann@example.org>
Architecture: amd64
Depends: libc6 (>= 2.34), board-x11 | board:any, libx (<< 3),
 libx (>= 2)
Pre-Depends: dpkg (>= 1.15.6~)
Tag: game::board, interface::graphical, interface::x11, role::program,
 special
Section: games
Priority: optional
"""


def package(i: int) -> str:
    role = ("program", "data", "shared-lib", "documentation")[i % 4]
    wanted = ", ".join(f"lib{k} (>= {i % 3}.{k})" for k in range(i % 7))
    return (
        f"Package: p{i}\nSection: {('games', 'libs', 'doc')[i % 3]}\nPriority: optional\n"
        f"Installed-Size: {i * i % 101}\nSize: {5000 * i}\nMaintainer: {'AB'[i % 2]} <x>\n"
        + (f"Depends: {wanted}\n" if wanted else "")
        + (f"Tag: role::{role}, use::u{i % 5}\n" if i % 2 else "")
    )


INDEX = "\n".join([CHESS, *(package(i) for i in range(1, 60))])


@pytest.fixture
def index(tmp_path: Path) -> str:
    path = tmp_path / "index"
    path.write_text(INDEX)
    return str(path)


def spec(path: str, n: int = 200, n_events: int = 40, n_training: int = 20, **more: Any) -> Any:
    return WorkloadSpec("products", n, n_events, n_training, parameters={"packages": path, **more})


def predicates_of(workload: Workload) -> list[str]:
    return [part for _, text in subscription_texts(workload) for part in text.split(" and ")]


def test_pairs_of_a_package(index: str) -> None:
    workload = products(spec(index, 0, 60, 0))
    (chess,) = (event for event in event_dicts(workload) if event.get("game") == "board")
    assert chess == {
        "section": "games",
        "priority": "optional",
        "architecture": "amd64",
        "source": "games",
        "maintainer": "Ann Player",
        "installed_size": 800,
        "size": 101,  # KiB, rounded up
        "game": "board",
        "interface": "graphical",
        "role": "program",
        "n_depends": 5,
        "needs:dpkg": "1.15.6~",
        "needs:libc6": "2.34",
        "needs:board-x11": "any",
        "needs:libx": "3",
    }


def test_a_bare_package() -> None:
    assert list(package_pairs({"Package": "x", "Size": "?"})) == [("n_depends", 0)]


@pytest.mark.parametrize("derived_share", [0.0, 0.5, 1.0])
def test_text_means_what_the_arrays_mean(index: str, derived_share: float) -> None:
    found = check_workload(products(spec(index, derived_share=derived_share)))
    assert sum(map(len, found)) > 0


def test_derived_searches_match_a_package(index: str) -> None:
    found = check_workload(products(spec(index, 300, 60, 0, derived_share=1.0, list_share=0.5)))
    assert set().union(*found) == set(range(300))


def test_predicates(index: str) -> None:
    workload = products(spec(index, 1000, list_share=0.5))
    sizes = np.diff(workload.subscriptions.clause_offsets)
    assert sizes.max() == 6
    assert (sizes >= 2).mean() > 0.9  # a repeated attribute counts once
    parts = predicates_of(workload)
    for words in ("installed_size <= ", "size >= ", "use in (", "role = ", "size between "):
        assert any(part.startswith(words) for part in parts), words
    equal = predicates_of(products(spec(index, 500, list_share=0.0, range_share=0.0)))
    assert all(" = " in part for part in equal)


def test_frequent_attributes_are_asked_for_more_but_not_in_proportion(index: str) -> None:
    workload = products(spec(index, 20_000, 1, 0, derived_share=0.0, max_conditions=2))
    names = [workload.domain.name(a) for a in range(workload.domain.n_attributes)]
    counts = np.bincount(workload.subscriptions.attributes, minlength=len(names))
    share = counts[names.index("section")] / counts[names.index("game")]
    assert share == pytest.approx(np.log(61) / np.log(2), rel=0.15)  # 60 packages to 1


def test_without_needs(index: str) -> None:
    workload = products(spec(index, needs=False))
    names = [workload.domain.name(a) for a in range(workload.domain.n_attributes)]
    assert not [name for name in names if name.startswith("needs:")]
    assert "n_depends" in names
    check_workload(workload)


def test_packages_for_training_are_others(index: str) -> None:
    workload = products(spec(index, 0, 40, 20))
    both = [*event_dicts(workload), *event_dicts(workload, workload.training)]
    assert len({str(event) for event in both}) == 60


def test_these_bytes_stay(index: str) -> None:
    assert digest(products(spec(index, 3000))) == "22203d94c02d770f"
    other = spec(index, 3000).changed(seed=2)
    assert digest(products(other)) != digest(products(spec(index, 3000)))


def test_nothing_is_a_workload_too(index: str) -> None:
    check_workload(products(spec(index, 0, 0, 0)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 3}, "no parameter 'n'; there are: derived_share, list_share"),
        ({"list_share": 2}, "list_share must be between 0 and 1"),
        ({"min_predicates": 7}, "min_predicates must be"),
        ({"n_events": 41}, "61 events are asked for, 20 of them for training, but there are 60"),
    ],
)
def test_bad_parameters(index: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(mm.InputError, match=message):
        products(spec(index).changed(**changes))


@pytest.mark.usefixtures("some_packages")
def test_packages_of_this_machine() -> None:
    workload = products(WorkloadSpec("products", 150, 20, 30))
    found = check_workload(workload)
    assert len(found) == 20
