"""The report as one HTML page that holds all it needs: style, tables, pictures; no script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from matchmill.io.html_page import page_of
from matchmill.lab.experiments.report_tables import Table
from matchmill.lab.experiments.section import Section

__all__ = ["html_page"]

_BAD = {"wrong", "failed", "slow", "memory", "no workload"}


def html_page(title: str, sections: Sequence[Section]) -> str:
    """Return the report as one page."""
    return page_of(title, "\n".join(_body(title, sections)))


def _body(title: str, sections: Sequence[Section]) -> Iterator[str]:
    yield f"<h1>{escape(title)}</h1>"
    yield "<nav><ul>"
    for section in sections:
        bad = f' <span class="bad">{escape(section.verdict)}</span>' if section.verdict else ""
        yield (
            f'<li><a href="#{section.anchor}">{escape(section.paper)}, {escape(section.shows)}: '
            f'{escape(section.title)}</a> <span class="dim">{section.scale}</span>{bad}</li>'
        )
    yield "</ul></nav>"
    for paper, inside in groupby(sections, key=lambda section: section.paper):
        yield f"<h2>{escape(paper)}</h2>"
        for section in inside:
            yield from _section(section)


def _section(section: Section) -> Iterator[str]:
    yield f'<section id="{section.anchor}">'
    yield f"<h3>{escape(section.title)}</h3>"
    yield (
        f'<p class="dim">{escape(section.paper)}, {escape(section.shows)} · '
        f"{escape(section.name)}, {section.scale}</p>"
    )
    yield f"<p>{escape(section.claim)}</p>"
    if section.note:
        yield f'<p class="note">{escape(section.note)}</p>'
    for picture in section.pictures:
        yield f"<figure>{picture.svg}<figcaption>{escape(picture.caption)}</figcaption></figure>"
    for table in section.tables:
        yield from _table(table)
    if section.problems:
        yield '<div class="problems"><strong>Not measured, or not to be trusted</strong><ul>'
        for what, why in section.problems:
            yield f"<li>{escape(what)}: <span class=dim>{escape(why)}</span></li>"
        yield "</ul></div>"
    yield "<details><summary>All figures</summary>"
    yield from _table(section.figures, heading=False)
    yield "</details>"
    yield f'<p class="note">{escape(section.machine)}</p>'
    yield (
        "<details><summary>The experiment as it was run</summary>"
        f"<pre>{escape(section.spec_text)}</pre></details></section>"
    )


def _table(table: Table, heading: bool = True) -> Iterator[str]:
    if heading:
        yield f"<h4>{escape(table.title)}</h4>"
    yield '<div class="wide"><table><thead><tr>'
    yield "".join(
        _cell("th", text, i < table.n_label_columns) for i, text in enumerate(table.header)
    )
    yield "</tr></thead><tbody>"
    for r, row in enumerate(table.rows):
        cells = (
            _cell("td", text, i < table.n_label_columns, (r, i) in table.best)
            for i, text in enumerate(row)
        )
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"
    for note in table.notes:
        yield f'<p class="note">{escape(note)}</p>'


def _cell(tag: str, text: str, is_label: bool, is_best: bool = False) -> str:
    classes = ["label"] * is_label + ["best"] * is_best + ["bad"] * (text in _BAD)
    classes += ["dim"] * (text == "absent")
    attribute = f' class="{" ".join(classes)}"' if classes else ""
    return f"<{tag}{attribute}>{escape(text.replace('_', ' ') if tag == 'th' else text)}</{tag}>"
