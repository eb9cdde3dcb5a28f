"""A page on one paper: for each figure its claim, what we measured, and whether the claim holds.

<folder>/<name>.toml     by hand: introduction = "…", and for each experiment
                         [fig06_workload_size]
                         verdict = "holds in part"      # must be what follows from the checks
                         why_this_size = "…"            # where sizes are not the paper's
                         reason = "…"                   # an explanation that was measured
                         guess = "…"                    # an explanation that was not
                         facts = ["be_tree.bytes"]      # tables of facts.json to show
                         [[fig06_workload_size.checks]] # parts of the claim, see claims.py
<folder>/<name>.json     the figures, see kept_results.py
<folder>/facts.json      see facts.py
<folder>/<name>.md       written: the above, with tables and pictures
<folder>/plots/…svg      written where there are fresh results
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matchmill.errors import InputError
from matchmill.lab.experiments.claims import (
    VERDICTS,
    Judged,
    judge,
    read_parts,
    verdict_of,
)
from matchmill.lab.experiments.facts import Facts, read_facts
from matchmill.lab.experiments.kept_results import kept, kept_with, write_kept
from matchmill.lab.experiments.plots import caption, draw, styles_of
from matchmill.lab.experiments.report import markdown_table, problem_lines
from matchmill.lab.experiments.report_tables import Table, number_text, problems, tables
from matchmill.lab.experiments.results import Results
from matchmill.lab.experiments.section import machine_text
from matchmill.lab.experiments.sizes import sizes_text

__all__ = ["check_paper_page", "paper_page", "write_paper_page"]

_KEYS = {"verdict", "why_this_size", "reason", "guess", "facts", "checks"}
_OUTCOMES = {True: "yes", False: "**no**", None: "not decided"}


class _Figure(NamedTuple):
    """One experiment: what was measured and what is said of it."""

    results: Results
    said: Mapping[str, Any]
    judged: Sequence[Judged]
    verdict: str


def write_paper_page(folder: Path, name: str, fresh: Sequence[Results] = ()) -> Path:
    """Write the page, with fresh results in the place of older figures; its path.

    Fresh results are kept in <name>.json, and their pictures drawn.
    """
    _said(folder, name)
    if fresh:
        entries = kept_with(folder / f"{name}.json", fresh)
        write_kept(folder / f"{name}.json", entries)
        _draw(folder / "plots", fresh, kept(folder / f"{name}.json"))
    page = folder / f"{name}.md"
    page.write_text(paper_page(folder, name), encoding="utf-8")
    return page


def check_paper_page(folder: Path, name: str) -> list[str]:
    """Return what is wrong with a page: verdicts, or a text that is not made from its figures."""
    try:
        text = paper_page(folder, name)
    except InputError as error:
        return [str(error)]
    page = folder / f"{name}.md"
    if not page.is_file() or page.read_text(encoding="utf-8") != text:
        return [f"{page} is not what its figures say; write it again: matchmill bench page {name}"]
    return []


def paper_page(folder: Path, name: str) -> str:
    """Return the text of the page; a verdict that does not follow from its figures is an error."""
    source, said = _said(folder, name)
    facts = read_facts(folder / "facts.json")
    results = kept(folder / f"{name}.json")
    figures = []
    for experiment, own in sorted(results.items()):
        short = experiment.rpartition("/")[2]
        if short not in said:
            raise InputError(f"{source} says nothing of {short}")
        figures.append(_figure(own, said[short], facts, f"{source}, {short}"))
    papers = {f.results.experiment.paper for f in figures}
    if len(papers) != 1:
        raise InputError(f"a page is on one paper, not on {', '.join(sorted(papers)) or 'none'}")
    lines = [f"# {papers.pop()}: experiments", "", said["introduction"].strip(), ""]
    lines += _overview(figures)
    for figure in figures:
        lines += _section(figure, facts, folder)
    if "end" in said:
        lines += [said["end"].strip(), ""]
    return "\n".join(lines).rstrip() + "\n"


def _said(folder: Path, name: str) -> tuple[Path, dict[str, Any]]:
    source = folder / f"{name}.toml"
    if not source.is_file():
        raise InputError(f"{source} is missing; write it first, with a verdict per experiment")
    said = tomllib.loads(source.read_text(encoding="utf-8"))
    if not isinstance(said.get("introduction"), str):
        raise InputError(f"{source} has no introduction")
    return source, said


def _figure(results: Results, said: Any, facts: Facts, where: str) -> _Figure:
    if not isinstance(said, dict):
        raise InputError(f"{where} is not a table")
    unknown = sorted(set(said) - _KEYS)
    if unknown:
        raise InputError(f"{where}: {unknown[0]} is unknown; there are: {', '.join(sorted(_KEYS))}")
    parts = read_parts(said.get("checks"), results.experiment.measures, where)
    judged = judge(results, parts, facts, where)
    verdict = verdict_of(judged)
    if said.get("verdict") not in VERDICTS:
        raise InputError(f"{where}: a verdict is one of {', '.join(VERDICTS)}")
    if said["verdict"] != verdict:
        raise InputError(
            f"{where}: the verdict is {said['verdict']!r}, but the figures say {verdict!r}: "
            + "; ".join(f"{j.part.says}: {_measured(j)}, {_outcome(j)}" for j in judged)
        )
    if verdict != "holds" and not (said.get("reason") or said.get("guess")):
        raise InputError(f"{where}: it {verdict}: say why, as `reason` or as `guess`")
    return _Figure(results, said, judged, verdict)


# -- text -----------------------------------------------------------------------------------------


def _overview(figures: Sequence[_Figure]) -> Iterator[str]:
    yield from ("| shows | claim | verdict | parts that hold |", "|---|---|---|---|")
    for figure in figures:
        experiment = figure.results.experiment
        claim = experiment.claim.replace("|", "\\|")
        parts = f"{sum(j.holds is True for j in figure.judged)} of {len(figure.judged)}"
        link = f"[{experiment.shows}](#{_anchor(figure)})"
        yield f"| {link} | {claim} | {figure.verdict} | {parts} |"
    yield ""


def _title(figure: _Figure) -> str:
    return f"{figure.results.experiment.shows}: {figure.results.experiment.title}"


def _anchor(figure: _Figure) -> str:
    """Return the address that Markdown gives to the heading."""
    kept_letters = (c for c in _title(figure).lower() if c.isalnum() or c in " -_")
    return "".join(kept_letters).replace(" ", "-")


def _section(figure: _Figure, facts: Facts, folder: Path) -> Iterator[str]:
    results, said = figure.results, figure.said
    experiment = results.experiment
    yield from (f"## {_title(figure)}", "")
    yield from (f"**Claim.** {experiment.claim}", "")
    yield from (f"**Verdict.** {figure.verdict[0].upper()}{figure.verdict[1:]}.", "")
    yield from _parts(figure.judged)
    for key, head in (("reason", "Why"), ("guess", "A guess, not measured")):
        if key in said:
            yield from (f"**{head}.** {said[key].strip()}", "")
    for name in said.get("facts", ()):
        yield from _fact(facts, name)
    for i, plot in enumerate(experiment.plots):
        file = f"plots/{_picture(results, i)}"
        if (folder / file).is_file():
            yield from (f"![{caption(plot)}]({file})", "")
    for table in tables(results):
        yield from markdown_table(table)
    yield from problem_lines(list(problems(results)))
    note = experiment.note(results.scale)
    size = sizes_text(results, said.get("why_this_size", ""))
    yield from (f"*Sizes.* {size} {note}".rstrip(), "")
    digits = _digits(results)
    yield from (f"`{experiment.name}`, {results.scale}. {machine_text(results)}{digits}", "")


def _parts(judged: Sequence[Judged]) -> Iterator[str]:
    yield from ("| the paper says | compared | paper | measured | holds |", "|---|---|--:|--:|---|")
    for j in judged:
        part = j.part
        if part.undecided:
            yield f"| {_cell(part.says)} | | | {_cell(part.undecided)} | not decided |"
            continue
        where = _labels(part.at)
        compared = f"`{part.value}`" + (f", {where}" if where else "")
        compared += f", along {part.along}" if part.along else ""
        cells = (part.says, compared, part.paper_text, _measured(j), _outcome(j))
        yield f"| {' | '.join(map(_cell, cells))} |"
    yield ""


def _outcome(j: Judged) -> str:
    return _OUTCOMES[j.holds]


def _measured(j: Judged) -> str:
    """Write the value at the worst point, and where that is."""
    if j.value is None:
        return j.part.undecided
    text = f"{j.value:,.0f}" if abs(j.value) >= 1000 else f"{j.value:.3g}"
    if j.n_points == 1:
        return text
    names = {k: v for k, v in j.labels.items() if k not in j.part.at or _is_list(j.part.at[k])}
    return f"{text} at {_labels(names)}; holds at {j.n_good} of {j.n_points}"


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _labels(labels: Mapping[str, Any]) -> str:
    texts = []
    for key, value in labels.items():
        values = value if isinstance(value, list) else [value]
        texts.append(f"{key} {' or '.join(map(number_text, values))}")
    return ", ".join(texts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _fact(facts: Facts, name: str) -> Iterator[str]:
    fact = facts.table(name)
    rows = [[number_text(cell) for cell in row] for row in fact.rows]
    yield from markdown_table(Table(fact.title, fact.header, rows, set(), 1, []))
    yield from (f"`{fact.how}`. {fact.machine}".rstrip(), "")


def _digits(results: Results) -> str:
    if "digits" not in results.run:
        return ""
    n = results.run["digits"]
    rounded = f", of {n} digits," if n else ""
    return (
        f" The file of this run is gone: its figures{rounded} were taken from the tables that had"
        " been printed from it."
    )


# -- pictures -------------------------------------------------------------------------------------


def _picture(results: Results, number: int) -> str:
    anchor = f"{results.experiment.name.replace('/', '.')}.{results.scale}"
    return f"{anchor}.{number}.svg"


def _draw(folder: Path, fresh: Sequence[Results], everything: Mapping[str, Results]) -> None:
    """Draw the pictures of fresh results, in the colours that the page has for contenders."""
    names = {c.name for r in everything.values() for c in r.experiment.contenders}
    styles = styles_of(sorted(names))
    folder.mkdir(parents=True, exist_ok=True)
    for results in fresh:
        for i, plot in enumerate(results.experiment.plots):
            picture = draw(results, plot, styles)
            if picture is not None:
                (folder / _picture(results, i)).write_text(picture.svg, encoding="utf-8")
