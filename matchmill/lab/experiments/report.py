"""Reports from files of results: `index.html`, which holds everything, and `report.md` with plots.

<folder>/index.html
<folder>/report.md
<folder>/plots/<experiment>.<scale>.<n>.png, .svg
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from matchmill.errors import InputError
from matchmill.lab.experiments.html_report import html_page
from matchmill.lab.experiments.plots import styles_of
from matchmill.lab.experiments.report_tables import Table
from matchmill.lab.experiments.results import Results
from matchmill.lab.experiments.section import Section, section_of
from matchmill.lab.experiments.spec import PAPERS

__all__ = ["markdown_figures", "markdown_table", "problem_lines", "write_report"]

TITLE = "matchmill: measurements"


def write_report(results: Sequence[Results], folder: Path) -> Path:
    """Write the report of some results; the path of its page."""
    if not results:
        raise InputError("there are no results to report")
    names = dict.fromkeys(c.name for r in results for c in r.experiment.contenders)
    styles = styles_of(sorted(names))
    ordered = sorted(
        results, key=lambda r: (PAPERS.index(r.experiment.paper), r.experiment.name, r.scale)
    )
    sections = [section_of(r, styles) for r in ordered]
    (folder / "plots").mkdir(parents=True, exist_ok=True)
    for section in sections:
        for i, picture in enumerate(section.pictures):
            place = folder / "plots" / f"{section.anchor}.{i}"
            place.with_name(place.name + ".svg").write_text(picture.svg, encoding="utf-8")
            place.with_name(place.name + ".png").write_bytes(picture.png)
    (folder / "report.md").write_text(markdown(TITLE, sections), encoding="utf-8")
    page = folder / "index.html"
    page.write_text(html_page(TITLE, sections), encoding="utf-8")
    return page


def markdown(title: str, sections: Sequence[Section]) -> str:
    lines = [f"# {title}", ""]
    paper = ""
    for section in sections:
        if section.paper != paper:
            paper = section.paper
            lines += [f"## {paper}", ""]
        lines += _markdown_section(section)
    return "\n".join(lines)


def _markdown_section(section: Section) -> Iterator[str]:
    yield from (f"### {section.title}", "")
    yield from (f"{section.shows}; `{section.name}`, {section.scale}. {section.claim}", "")
    if section.note:
        yield from (section.note, "")
    for i, picture in enumerate(section.pictures):
        yield from (f"![{picture.caption}](plots/{section.anchor}.{i}.png)", "")
    yield from markdown_figures(section)
    yield from (section.machine, "")


def markdown_figures(section: Section) -> Iterator[str]:
    """Write the tables of a section, and what could not be measured, as lines of Markdown."""
    for table in section.tables:
        yield from markdown_table(table)
    yield from problem_lines(section.problems)


def problem_lines(found: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Write what could not be measured, and why, as lines of Markdown."""
    if found:
        yield from ("Not measured, or not to be trusted:", "")
        yield from (f"- {what}: {why}" for what, why in found)
        yield ""


def markdown_table(table: Table) -> Iterator[str]:
    """Write a table as lines of Markdown."""
    yield from (f"**{table.title}**", "")
    yield _markdown_row(table.header)
    n = table.n_label_columns
    yield _markdown_row([":--"] * n + ["--:"] * (len(table.header) - n))
    for r, row in enumerate(table.rows):
        yield _markdown_row([f"**{x}**" if (r, i) in table.best else x for i, x in enumerate(row)])
    yield ""
    for note in table.notes:
        yield from (note.replace("*", "\\*"), "")


def _markdown_row(cells: Sequence[str]) -> str:
    escaped = (c.replace("|", "\\|").replace(" *", " \\*") for c in cells)
    return f"| {' | '.join(escaped)} |"
