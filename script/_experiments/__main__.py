"""The page docs/experiments/<paper>.md from results, once docs/experiments/<paper>.toml is written.

matchmill bench run ps_tree --scale full --out results --resume
script/experiments ps_tree results
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from matchmill.errors import MatchmillError
from matchmill.lab.experiments.paper_page import write_paper_page
from matchmill.lab.experiments.results import read_results, result_files

ROOT = Path(__file__).parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="script/experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paper", help="ps_tree, be_tree, op_index, two_stage or operators")
    parser.add_argument("results", type=Path, help="the folder that `matchmill bench run` wrote")
    arguments = parser.parse_args()
    try:
        results = [read_results(file) for file in result_files(arguments.results)]
        own = [r for r in results if r.experiment.name.startswith(f"{arguments.paper}/")]
        page = write_paper_page(own, ROOT / "docs" / "experiments", arguments.paper)
    except MatchmillError as error:
        print(f"experiments: {error}", file=sys.stderr)
        return 2
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
