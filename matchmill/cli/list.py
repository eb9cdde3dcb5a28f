"""`matchmill list`: the subscriptions of a folder or a service."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

from matchmill.cli.arguments import (
    TARGET_HELP,
    add_common,
    add_format,
    add_service_options,
    examples,
)
from matchmill.cli.exit_codes import ALL_GOOD
from matchmill.cli.output import print_json
from matchmill.cli.rejected import one_line, printable
from matchmill.cli.targets import is_url, open_client, open_engine
from matchmill.errors import InputError

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.usage = "matchmill list TARGET [options]"
    parser.description = (
        "List subscriptions. Of the formats csv, jsonl and parquet, the output is a file that\n"
        "match, build and subscribe read."
    )
    parser.epilog = examples(
        "matchmill list alerts.mill --attribute origin",
        "matchmill list http://127.0.0.1:8080 --format csv > alerts.csv",
        "matchmill list alerts.mill --format parquet --out alerts.parquet",
    )
    parser.add_argument("target", metavar="TARGET", help=TARGET_HELP)
    parser.add_argument(
        "--attribute", metavar="NAME", help="only those whose expression mentions it"
    )
    parser.add_argument("--limit", metavar="N", type=int, help="so many at most")
    parser.add_argument(
        "-o", "--out", metavar="FILE", default="-", help="where to (default: -, standard output)"
    )
    add_format(parser, "csv", "jsonl", "parquet")
    add_service_options(parser)
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """List subscriptions."""
    if arguments.limit is not None and arguments.limit < 1:
        raise InputError(f"--limit must be at least 1, not {arguments.limit}")
    if arguments.format == "parquet" and arguments.out == "-":
        raise InputError("Parquet needs a file: give --out FILE")
    rows = islice(_rows(arguments), arguments.limit)
    if arguments.format == "parquet":
        _write_parquet(arguments.out, rows)
    elif arguments.out == "-":
        _write(sys.stdout, arguments.format, rows)
    else:
        with open(arguments.out, "w", encoding="utf-8", newline="") as stream:
            _write(stream, arguments.format, rows)
    return ALL_GOOD


def _rows(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    if is_url(arguments.target):
        with open_client(arguments.target, arguments) as client:
            for one in client.subscriptions(attribute=arguments.attribute):
                yield {
                    "subscription_id": one.id,
                    "expression": one.expression,
                    "expires_at": one.expires_at,
                    "n_pending": one.n_pending,
                }
        return
    with open_engine(arguments.target, arguments, read_only=True) as engine:
        for stored in engine.subscriptions(attribute=arguments.attribute):
            yield {"subscription_id": stored.id, "expression": str(stored.expression)}


def _write(stream: Any, form: str, rows: Iterator[dict[str, Any]]) -> None:
    if form == "csv":
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(("subscription_id", "expression"))
        for row in rows:
            table.writerow((row["subscription_id"], row["expression"]))
        return
    for row in rows:
        if form in ("json", "jsonl"):
            print_json(row, file=stream)
        else:
            expires_at = row.get("expires_at")
            until = "" if expires_at is None else f"{expires_at:%Y-%m-%d %H:%M}  "
            pending = f"{row['n_pending']:,}  " if "n_pending" in row else ""
            expression = one_line(row["expression"])
            print(f"{printable(row['subscription_id'])}  {until}{pending}{expression}", file=stream)


def _write_parquet(path: str, rows: Iterator[dict[str, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from matchmill.io.writers import replacing

    found = list(rows)
    table = pa.table(
        {name: [row[name] for row in found] for name in ("subscription_id", "expression")}
    )
    with replacing(path) as stream:
        pq.write_table(table, stream)
