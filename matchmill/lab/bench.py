"""`matchmill bench run | list | compare | report | page`: measure the indexes."""

from __future__ import annotations

import argparse
from typing import Any

from matchmill.cli.actions import add_action, add_actions
from matchmill.cli.arguments import add_common, add_format, examples

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their arguments."""
    parser.usage = "matchmill bench run|list|compare|report|page …"
    parser.description = (
        "Measure indexes. Experiments are data, results are files, reports are made from files."
    )
    actions = add_actions(parser)
    _add_run(actions)
    _add_list(actions)
    _add_compare(actions)
    _add_report(actions)
    _add_page(actions)


_RUN = """\
Measure all contenders of an experiment at every point of its grid. Contenders run
interleaved, and all must find the same matches.

A contender that fails, takes too long or too much memory is recorded with the reason,
and the others go on; so is one whose matches differ from those of a scan. One that is
too slow for all events is measured on the first ones. An index that is not installed is
recorded as absent. What another experiment in the folder has measured already is taken
from there. The file of results is written after every point: stop with Ctrl-C, continue
with --resume."""


def _add_run(actions: Any) -> None:
    parser = add_action(
        actions,
        "bench",
        "run",
        "measure, and write a file of results for each experiment",
        usage="SPEC … --out FOLDER [options]",
        description=_RUN,
        epilog=examples(
            "matchmill bench run all --out results",
            "matchmill bench run be_tree --scale full --out results --resume",
            "matchmill bench run my.toml --indexes scan,counting --rounds 9 --out results",
        ),
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
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="what times are: wall time, or CPU time of all threads, which other work on the "
        "machine disturbs less (default: wall)",
    )
    parser.add_argument(
        "--sparse",
        action="store_true",
        help="only the first, the last and one point between of each line of a grid",
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--resume", action="store_true", help="continue a run that was stopped")
    group.add_argument("--overwrite", action="store_true", help="replace older results")
    add_common(parser, settings=False)


def _add_list(actions: Any) -> None:
    parser = add_action(
        actions,
        "bench",
        "list",
        "show all experiments",
        usage="[options]",
        description="List the experiments that come with matchmill: name, figure, title.",
        epilog=examples("matchmill bench list"),
    )
    add_format(parser)
    add_common(parser, settings=False)


def _add_compare(actions: Any) -> None:
    parser = add_action(
        actions,
        "bench",
        "compare",
        "say what got faster or slower between two runs, and what is noise",
        usage="A B [options]",
        description=(
            "Compare two files of results, or two folders of them. A difference counts if medians\n"
            "and minima differ by 5 %, quartiles do not overlap, and a rank test agrees."
        ),
        epilog=examples("matchmill bench compare before after --fail-on-slower"),
    )
    parser.add_argument("before", metavar="A", help="results of before, a file or a folder")
    parser.add_argument("after", metavar="B", help="results of after")
    parser.add_argument(
        "--fail-on-slower",
        action="store_true",
        help="exit code 1 if anything is slower, broken or gone",
    )
    parser.add_argument("--all", action="store_true", help="list what is noise, too")
    add_format(parser)
    add_common(parser, settings=False)


def _add_report(actions: Any) -> None:
    parser = add_action(
        actions,
        "bench",
        "report",
        "make tables and plots from results",
        usage="RESULTS --out FOLDER [options]",
        description=(
            "Write index.html (one page with everything in it), report.md and its plots.\n"
            "Needs matplotlib: pip install 'matchmill[report]'."
        ),
        epilog=examples("matchmill bench report results --out report"),
    )
    parser.add_argument("results", metavar="RESULTS", help="a folder of results, or one file")
    parser.add_argument("--out", metavar="FOLDER", required=True, help="where the report goes")
    add_common(parser, settings=False)


def _add_page(actions: Any) -> None:
    parser = add_action(
        actions,
        "bench",
        "page",
        "write the page on the experiments of one paper",
        usage="PAPER [RESULTS] [options]",
        description=(
            "Write PAPER.md and its plots: for each figure of a paper its claim, what was\n"
            "measured, and whether the claim holds. Figures are kept in PAPER.json; RESULTS take\n"
            "the place of older ones there, and their plots are drawn (this needs matplotlib:\n"
            "pip install 'matchmill[report]'). PAPER.toml is written by hand: the parts of each\n"
            "claim as checks, and a verdict, which must be the one that the checks give."
        ),
        epilog=examples(
            "matchmill bench page ps_tree results",
            "matchmill bench page ps_tree",
            "matchmill bench page ps_tree --check",
        ),
    )
    parser.add_argument("paper", metavar="PAPER", help="the first part of the experiments' names")
    parser.add_argument(
        "results",
        metavar="RESULTS",
        nargs="?",
        help="a folder of results, or one file (default: the figures that are kept)",
    )
    parser.add_argument(
        "--out",
        metavar="FOLDER",
        default="docs/experiments",
        help="where PAPER.toml is and the page goes (default: %(default)s)",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; exit code 1 if a verdict is not what the figures say, or the page "
        "is not made from them",
    )
    add_common(parser, settings=False)


def run(arguments: argparse.Namespace) -> int:
    """Run one action."""
    from matchmill.lab.bench_actions import run_action

    return run_action(arguments)
