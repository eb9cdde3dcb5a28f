"""A page on one paper: for each figure its claim, what we measured, and whether the claim holds.

<folder>/<name>.toml     by hand: introduction = "…", and for each experiment
                         [fig06_workload_size]
                         verdict = "holds"        # of VERDICTS
                         measured = "one or two sentences"
                         reason = "…"             # needed where it does not simply hold
<folder>/<name>.md       written: the above with tables and pictures
<folder>/plots/…svg      written
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from matchmill.errors import InputError
from matchmill.lab.experiments.plots import styles_of
from matchmill.lab.experiments.report import markdown_figures
from matchmill.lab.experiments.results import Results
from matchmill.lab.experiments.section import Section, section_of

__all__ = ["VERDICTS", "write_paper_page"]

VERDICTS = ("holds", "holds in part", "does not hold", "cannot be decided")


def write_paper_page(results: Sequence[Results], folder: Path, name: str) -> Path:
    """Write the page from results and from what stands in <name>.toml; its path."""
    source = folder / f"{name}.toml"
    if not source.is_file():
        raise InputError(f"{source} is missing; write it first, with a verdict per experiment")
    with source.open("rb") as file:
        said = tomllib.load(file)
    papers = {r.experiment.paper for r in results}
    if len(papers) != 1:
        raise InputError(f"a page is on one paper, not on {', '.join(sorted(papers)) or 'none'}")
    names = dict.fromkeys(c.name for r in results for c in r.experiment.contenders)
    styles = styles_of(sorted(names))
    ordered = sorted(results, key=lambda r: r.experiment.name)
    sections = {_short(r.experiment.name): section_of(r, styles) for r in ordered}
    _check(said, sections, source)
    (folder / "plots").mkdir(parents=True, exist_ok=True)
    lines = [f"# {papers.pop()}: experiments", "", said["introduction"].strip(), ""]
    lines += _overview(said, sections)
    for short, section in sections.items():
        lines += _section(section, said[short], folder)
    page = folder / f"{name}.md"
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return page


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _check(said: Mapping[str, Any], sections: Mapping[str, Section], source: Path) -> None:
    if not isinstance(said.get("introduction"), str):
        raise InputError(f"{source} has no introduction")
    missing = [short for short in sections if short not in said]
    if missing:
        raise InputError(f"{source} says nothing of {', '.join(missing)}")
    for short in sections:
        own = said[short]
        if own.get("verdict") not in VERDICTS:
            raise InputError(f"{source}, {short}: a verdict is one of {', '.join(VERDICTS)}")
        if own["verdict"] != "holds" and not own.get("reason"):
            raise InputError(f"{source}, {short}: it {own['verdict']}: say why, as `reason`")
        if not own.get("measured"):
            raise InputError(f"{source}, {short}: say what was `measured`")


def _overview(said: Mapping[str, Any], sections: Mapping[str, Section]) -> Iterator[str]:
    yield from ("| shows | claim | verdict |", "|---|---|---|")
    for short, section in sections.items():
        claim = section.claim.replace("|", "\\|")
        yield f"| [{section.shows}](#{_anchor(section)}) | {claim} | {said[short]['verdict']} |"
    yield ""


def _title(section: Section) -> str:
    return f"{section.shows}: {section.title}"


def _anchor(section: Section) -> str:
    """Return the address that Markdown gives to the heading."""
    kept = (c for c in _title(section).lower() if c.isalnum() or c in " -_")
    return "".join(kept).replace(" ", "-")


def _section(section: Section, said: Mapping[str, str], folder: Path) -> Iterator[str]:
    yield from (f"## {_title(section)}", "")
    yield from (f"**Claim.** {section.claim}", "")
    yield from (f"**Measured.** {said['measured'].strip()}", "")
    verdict = said["verdict"][0].upper() + said["verdict"][1:]
    yield from (f"**Verdict.** {verdict}. {said.get('reason', '').strip()}".rstrip(), "")
    for i, picture in enumerate(section.pictures):
        file = f"plots/{section.anchor}.{i}.svg"
        (folder / file).write_text(picture.svg, encoding="utf-8")
        yield from (f"![{picture.caption}]({file})", "")
    yield from markdown_figures(section)
    if section.note:
        yield from (f"*Sizes.* {section.note}", "")
    yield from (f"`{section.name}`, {section.scale}. {section.machine}", "")
