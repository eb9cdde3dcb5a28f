"""The arguments of every command, their help, and the page of documentation made from it."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from matchmill.cli.arguments import EXIT_CODES
from matchmill.cli.arguments import add_common as _add_common
from matchmill.cli.arguments import add_format as _add_format
from matchmill.cli.arguments import formatted as _parser
from matchmill.cli.client_parser import add_client
from matchmill.cli.pipeline_parser import add_pipeline
from matchmill.cli.service_parser import add_backup, add_keys, add_serve

__all__ = ["build_parser", "documentation"]


def build_parser() -> argparse.ArgumentParser:
    parser = _parser(
        argparse.ArgumentParser,
        prog="matchmill",
        usage="matchmill [--version] [--help] COMMAND …",
        description="For each event, find all subscriptions that it satisfies.",
        epilog=f"`matchmill COMMAND --help` explains a command, with examples.\n\n{EXIT_CODES}",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(
        prog="matchmill", title="commands", metavar="COMMAND", required=True
    )
    for add in (_add_match, _add_check, _add_explain, _add_build, _add_bench, add_pipeline):
        add(commands)
    for add in (add_serve, add_keys, add_backup, add_client):
        add(commands)
    return parser


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from importlib.metadata import version

        print(f"matchmill {version('matchmill')}")
        parser.exit()


def _add_match(commands: Any) -> None:
    parser = _parser(
        commands.add_parser,
        "match",
        help="match events with subscriptions, files in, files out",
        usage="matchmill match SUBSCRIPTIONS EVENTS [--out FILE] [options]",
        description=(
            "Write one row (event, subscription) for every subscription that an event satisfies."
        ),
        epilog=_MATCH_EPILOG + EXIT_CODES,
    )
    _add_subscriptions(parser, "CSV, JSON lines or Parquet by suffix, or a folder made by build")
    parser.add_argument("events", metavar="EVENTS", help="CSV, JSON lines or Parquet by suffix")
    _add_columns(parser)
    group = parser.add_argument_group("events")
    group.add_argument(
        "--event-id",
        metavar="COLUMN",
        help="name events by this attribute (default: by their number, from 0)",
    )
    group.add_argument(
        "--null",
        metavar="WORD",
        action="append",
        default=[],
        help="in CSV, a cell with this word is null, as an empty one is; may be repeated",
    )
    group.add_argument(
        "--text",
        metavar="COLUMN",
        action="append",
        default=[],
        help="in CSV, this column is text, whatever it looks like; may be repeated",
    )
    group = parser.add_argument_group("output")
    group.add_argument(
        "--out", metavar="FILE", default="-", help="where to (default: -, standard output)"
    )
    group.add_argument(
        "--format",
        choices=("csv", "jsonl", "parquet"),
        help="of the output (default: by suffix; CSV for standard output)",
    )
    _add_load(parser)
    _add_common(parser, "match")


_MATCH_EPILOG = """\
The output has the columns `event` and `subscription`. A file is written beside its
place and renamed at the end: after a failure there is no half of one, and an older
file is still there.

Rows and events that cannot be used are set aside with the reason, and the others go on.
The summary shows the first few, --refused writes them all (kind, row, id, reason); row
is the line of a CSV or JSON lines file, the row of a Parquet file, from 1.

CSV files: the first line names the columns. In a file of events a column is boolean
(true, false), number (0.5), date (2013-01-31), timestamp (2013-01-31 10:00) if all its
cells are, else text; `007` is text. An empty cell is null.

examples:
  matchmill match alerts.csv flights.parquet --out matches.parquet
  matchmill match alerts.jsonl flights.csv --event-id flight --null NA > matches.csv
  matchmill match alerts.mill today.jsonl --out matches.jsonl --refused refused.csv

"""


def _add_check(commands: Any) -> None:
    parser = _parser(
        commands.add_parser,
        "check",
        help="look for mistakes in a file of subscriptions, or for damage",
        usage="matchmill check SUBSCRIPTIONS [options]",
        description=(
            "Report every row that cannot be used, with the place of the mistake, and the\n"
            "subscriptions that can never match or that match every event. Of a folder made by\n"
            "build, read every file against its checksum."
        ),
        epilog="examples:\n  matchmill check alerts.csv\n"
        "  matchmill check alerts.jsonl --format json > report.json\n"
        "  matchmill check alerts.mill\n\n" + EXIT_CODES,
    )
    _add_subscriptions(parser, "CSV, JSON lines or Parquet by suffix, or a folder made by build")
    _add_columns(parser)
    _add_format(parser)
    _add_common(parser, "check")


def _add_explain(commands: Any) -> None:
    parser = _parser(
        commands.add_parser,
        "explain",
        help="show why an event satisfies an expression, or what is missing",
        usage=(
            "matchmill explain [options] EXPRESSION EVENT\n"
            "       matchmill explain [options] --subscriptions FILE --id ID EVENT"
        ),
        description="Show the truth of every part of an expression for one event.",
        epilog=(
            "examples:\n"
            "  matchmill explain \"price <= 580 and origin = 'JFK'\" '{\"price\": 590}'\n"
            "  matchmill explain --subscriptions alerts.csv --id u42 '{\"price\": 590}'\n"
            "  head -1 events.jsonl | matchmill explain --format json 'price < 5' -\n\n"
        )
        + EXIT_CODES,
    )
    parser.add_argument(
        "expression", metavar="EXPRESSION", nargs="?", help="an expression or a JSON pattern"
    )
    parser.add_argument(
        "event", metavar="EVENT", help="a JSON object; - reads it from standard input"
    )
    parser.add_argument(
        "--subscriptions", metavar="FILE", help="take the expression from this file or folder"
    )
    parser.add_argument("--id", metavar="ID", help="the subscription to take")
    _add_columns(parser)
    _add_format(parser)
    _add_common(parser, "explain")


def _add_build(commands: Any) -> None:
    parser = _parser(
        commands.add_parser,
        "build",
        help="save an engine with its index, for match",
        usage="matchmill build SUBSCRIPTIONS FOLDER [options]",
        description="Read subscriptions, index them and save the engine to a folder.",
        epilog=(
            "An engine that was saved in the folder before is replaced in one step.\n\n"
            "examples:\n  matchmill build alerts.parquet alerts.mill\n"
            "  matchmill match alerts.mill flights.csv --out matches.csv\n\n"
        )
        + EXIT_CODES,
    )
    _add_subscriptions(parser, "CSV, JSON lines or Parquet by suffix")
    parser.add_argument("folder", metavar="FOLDER", help="a new or empty folder, or a saved engine")
    _add_columns(parser)
    _add_load(parser)
    _add_common(parser, "build")


def _add_bench(commands: Any) -> None:
    parser = _parser(
        commands.add_parser,
        "bench",
        prog="matchmill bench",
        help="measure indexes on experiments, compare runs, make reports",
        usage="matchmill bench run|list|compare|report|page …",
        description="Experiments are data, results are files, reports are made from the files.",
        epilog="`matchmill bench ACTION --help` explains an action.\n\n" + EXIT_CODES,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for add in (
        _add_bench_run,
        _add_bench_list,
        _add_bench_compare,
        _add_bench_report,
        _add_bench_page,
    ):
        add(actions)


def _add_bench_run(actions: Any) -> None:
    parser = _parser(
        actions.add_parser,
        "run",
        prog="matchmill bench run",
        help="measure, and write a file of results for each experiment",
        usage="matchmill bench run SPEC … --out FOLDER [options]",
        description=(
            "Measure all contenders of an experiment at every point of its grid. Contenders run\n"
            "interleaved, and all must give the same matches."
        ),
        epilog=_BENCH_RUN_EPILOG + EXIT_CODES,
    )
    parser.add_argument(
        "specs",
        metavar="SPEC",
        nargs="+",
        help="an experiment's name (see list), a folder of them, `all`, or a path *.toml",
    )
    parser.add_argument("--out", metavar="FOLDER", required=True, help="where results go")
    parser.add_argument(
        "--scale",
        choices=("small", "full"),
        default="small",
        help="seconds, or the sizes of the papers (default: small)",
    )
    parser.add_argument(
        "--indexes", metavar="A,B", help="only these contenders (default: all of the experiment)"
    )
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        dest="changes",
        help="change the workload at every point, such as path=trace.txt.gz; may be repeated",
    )
    parser.add_argument(
        "--rounds", metavar="N", type=int, default=5, help="how often to measure (default: 5)"
    )
    parser.add_argument(
        "--budget-seconds",
        metavar="S",
        type=float,
        default=60.0,
        help="for a contender at a point, to build and again to match (default: 60)",
    )
    parser.add_argument(
        "--budget-gib",
        metavar="G",
        type=float,
        help="memory for a contender (default: half of what is free)",
    )
    parser.add_argument(
        "--sparse",
        action="store_true",
        help="only the first, the last and one point between of each line of a grid",
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--resume", action="store_true", help="go on with a run that was stopped")
    group.add_argument("--overwrite", action="store_true", help="replace older results")
    _add_common(parser, "bench")
    parser.set_defaults(action="run")


_BENCH_RUN_EPILOG = """\
A contender that fails, takes too long or too much memory is recorded with the reason,
and the others go on; so is one whose matches differ from those of a scan. One that is
too slow for all events is measured on the first ones. An index that is not there is
recorded as absent. What another experiment in the folder has measured already is taken
from there. The file of results is written after every point: stop with Ctrl-C, go on
with --resume.

examples:
  matchmill bench run all --out results
  matchmill bench run be_tree --scale full --out results --resume
  matchmill bench run my.toml --indexes scan,counting --rounds 9 --out results

"""


def _add_bench_list(actions: Any) -> None:
    parser = _parser(
        actions.add_parser,
        "list",
        prog="matchmill bench list",
        help="show all experiments",
        usage="matchmill bench list [options]",
        description="List the experiments that come with matchmill: name, figure, title.",
        epilog=EXIT_CODES,
    )
    _add_format(parser)
    _add_common(parser, "bench")
    parser.set_defaults(action="list")


def _add_bench_compare(actions: Any) -> None:
    parser = _parser(
        actions.add_parser,
        "compare",
        prog="matchmill bench compare",
        help="say what got faster or slower between two runs, and what is noise",
        usage="matchmill bench compare A B [options]",
        description=(
            "Compare two files of results, or two folders of them. A difference counts if medians\n"
            "and minima differ by 5 %, quartiles do not overlap, and a rank test agrees."
        ),
        epilog="example:\n  matchmill bench compare before after --fail-on-slower\n\n" + EXIT_CODES,
    )
    parser.add_argument("before", metavar="A", help="results of before, a file or a folder")
    parser.add_argument("after", metavar="B", help="results of after")
    parser.add_argument(
        "--fail-on-slower",
        action="store_true",
        help="exit code 1 if anything is slower, broken or gone",
    )
    parser.add_argument("--all", action="store_true", help="list what is noise, too")
    _add_format(parser)
    _add_common(parser, "bench")
    parser.set_defaults(action="compare")


def _add_bench_report(actions: Any) -> None:
    parser = _parser(
        actions.add_parser,
        "report",
        prog="matchmill bench report",
        help="make tables and plots from results",
        usage="matchmill bench report RESULTS --out FOLDER [options]",
        description=(
            "Write index.html (one page with everything in it), report.md and its plots.\n"
            "Needs matplotlib: pip install 'matchmill[report]'."
        ),
        epilog="example:\n  matchmill bench report results --out report\n\n" + EXIT_CODES,
    )
    parser.add_argument("results", metavar="RESULTS", help="a folder of results, or one file")
    parser.add_argument("--out", metavar="FOLDER", required=True, help="where the report goes")
    _add_common(parser, "bench")
    parser.set_defaults(action="report")


def _add_bench_page(actions: Any) -> None:
    parser = _parser(
        actions.add_parser,
        "page",
        prog="matchmill bench page",
        help="write the page on the experiments of one paper",
        usage="matchmill bench page PAPER RESULTS [options]",
        description=(
            "Write PAPER.md and its plots: for each figure of a paper its claim, what was\n"
            "measured, and whether the claim holds. The verdicts are read from PAPER.toml, which\n"
            "is written by hand. Needs matplotlib: pip install 'matchmill[report]'."
        ),
        epilog="example:\n  matchmill bench page ps_tree results\n\n" + EXIT_CODES,
    )
    parser.add_argument("paper", metavar="PAPER", help="the first part of the experiments' names")
    parser.add_argument("results", metavar="RESULTS", help="a folder of results, or one file")
    parser.add_argument(
        "--out",
        metavar="FOLDER",
        default="docs/experiments",
        help="where PAPER.toml is and the page goes (default: %(default)s)",
    )
    _add_common(parser, "bench")
    parser.set_defaults(action="page")


def _add_subscriptions(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("subscriptions", metavar="SUBSCRIPTIONS", help=text)


def _add_columns(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("subscriptions")
    group.add_argument(
        "--id-column", metavar="NAME", default="id", help="column of the ids (default: id)"
    )
    group.add_argument(
        "--expression-column",
        metavar="NAME",
        default="expression",
        help="column of the expressions (default: expression)",
    )
    group.add_argument(
        "--integer-ids", action="store_true", help="in CSV, ids are integers (default: text)"
    )
    group.add_argument(
        "--operators",
        metavar="MODULE",
        action="append",
        default=[],
        help="import this module, which registers operators; may be repeated",
    )


def _add_load(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how")
    group.add_argument("--index", metavar="NAME", help="the index to use (default: the best one)")
    group.add_argument(
        "--refused", metavar="FILE", help="write what was set aside, as CSV or JSON lines"
    )
    group.add_argument(
        "--strict", action="store_true", help="stop at the first bad row, write nothing"
    )


def documentation() -> str:
    """docs/CLI.md: what `--help` says, command by command."""
    parser = build_parser()
    parts = ["# The command line\n", _DOC_HEAD, _block(parser.format_help())]
    for name, command in _subcommands(parser):
        parts += [f"## matchmill {name}\n", _block(command.format_help())]
        for action, inner in _subcommands(command):
            parts += [f"### matchmill {name} {action}\n", _block(inner.format_help())]
    return "\n".join(parts)


def _subcommands(parser: argparse.ArgumentParser) -> list[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return list(action.choices.items())
    return []


_DOC_HEAD = """\
This page is made from the commands' own `--help`; `python -m matchmill` is the same
command. After a change: `python -c "import matchmill.cli.parser as p; print(p.documentation(),
end='')" > docs/CLI.md`.
"""


def _block(text: str) -> str:
    return f"```text\n{text.strip()}\n```\n"
