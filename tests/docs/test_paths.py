"""The files that the documents name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted(
    [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *(REPOSITORY / "docs").rglob("*.md")]
)
FILE = re.compile(r"`((?:[\w.-]+/)+[\w-]+\.(?:py|toml|js|md))`")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
PLACE = re.compile(r"\]\(([^)#\s:]*)#([^)\s]+)\)")


def label(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def missing_files(text: str, *more_places: str) -> list[str]:
    """Paths in code type, relative to the repository or to the package, that lead nowhere."""
    places = [REPOSITORY / place for place in ("", "matchmill", *more_places)]
    return [name for name in FILE.findall(text) if not any((p / name).exists() for p in places)]


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_named_files_exist(page: Path) -> None:
    more_places = ["matchmill/index/mill"] if page.name == "MILL.md" else []
    assert missing_files(page.read_text(encoding="utf-8"), *more_places) == []


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_links_lead_somewhere(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link and not link.startswith("mailto:")]
    assert [link for link in local if not (page.parent / link).exists()] == []


def anchors(page: Path) -> set[str]:
    """The places of a page that links lead to: its headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    texts = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w -]", "", text).replace(" ", "-") for text in texts}


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_links_lead_to_headings(page: Path) -> None:
    links = [
        (page.parent / file if file else page, place)
        for file, place in PLACE.findall(page.read_text(encoding="utf-8"))
    ]
    assert [(p.name, place) for p, place in links if place not in anchors(p)] == []


def test_a_wrong_path_is_found() -> None:
    assert missing_files("see `engine/engine.py` and `engine/no_such.py`") == ["engine/no_such.py"]
