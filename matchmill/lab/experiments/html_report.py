"""The report as one HTML page that holds all it needs: style, tables, pictures; no script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from matchmill.experiments.section import Section
from matchmill.experiments.tables import Table

__all__ = ["html_page", "page_of"]

_STYLE = """\
:root { color-scheme: light dark; --ink: #1d2126; --dim: #5c6670; --back: #fff; --line: #d9dee3;
  --card: #f6f7f9; --bad: #b3261e; --good: #14693a; --link: #1f5fa8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ea; --dim: #9aa4ae; --back: #14171a;
  --line: #333a41; --card: #1c2024; --bad: #ff8a80; --good: #7ddba3; --link: #8ab8ee; } }
body { color: var(--ink); background: var(--back); font: 16px/1.5 system-ui, sans-serif;
  max-width: 68rem; margin: 0 auto; padding: 1rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
h3 { margin: 2.2rem 0 .3rem; } h4 { margin: 1.2rem 0 .3rem; font-size: .95rem; }
a { color: var(--link); } .dim { color: var(--dim); } .bad { color: var(--bad); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .86rem; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right;
  white-space: nowrap; font-variant-numeric: tabular-nums; }
th { color: var(--dim); font-weight: 600; } .label { text-align: left; }
.best { color: var(--good); font-weight: 700; }
figure { margin: 1rem 0; } figure svg { display: block; max-width: 100%; height: auto; }
figcaption, .note { color: var(--dim); font-size: .86rem; }
.problems { background: var(--card); border-left: 3px solid var(--bad); padding: .5rem 1rem;
  font-size: .9rem; } .problems ul { margin: .2rem 0; padding-left: 1.2rem; }
details { margin: .8rem 0; font-size: .9rem; } summary { cursor: pointer; color: var(--dim); }
pre { background: var(--card); padding: .8rem; overflow-x: auto; font-size: .8rem; }
"""

_BAD = {"wrong", "failed", "slow", "memory", "no workload"}


def html_page(title: str, sections: Sequence[Section]) -> str:
    return page_of(title, "\n".join(_body(title, sections)))


def page_of(title: str, body: str) -> str:
    """A whole page around what stands in it, with the style of all our pages."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


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
