"""Rows of `script/bench data`: a nightly job of the command line, from file to file."""

from __future__ import annotations

import atexit
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.support.data_rows import Measured, Size, row

# -- a nightly job --------------------------------------------------------------------------------

_PRODUCTS_PER_EVENT = 500  # of the option --events: a million by default
_MEGABYTE = 1024  # in the units of ru_maxrss


def _product_files(size: Size, folder: Path, *, lists: bool) -> tuple[Path, Path]:
    """Write searches and products; return their paths."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(7)
    n, at_once = size.n_events * _PRODUCTS_PER_EVENT, 50_000
    tags = np.array([f"tag-{i}" for i in range(2000)])
    often = 1.0 / np.arange(1, 2001)
    products = folder / "products.parquet"
    writer = None
    for start in range(0, n, at_once):
        k = min(at_once, n - start)
        columns = {
            "sku": [f"sku-{i}" for i in range(start, start + k)],
            "title": [f"product number {i} of the shop" for i in range(start, start + k)],
            "brand": [f"brand-{i}" for i in draw.integers(0, 500, k)],
            "category": [f"category-{i}" for i in draw.integers(0, 200, k)],
            "price": np.round(draw.lognormal(3, 1, k), 2),
        }
        if lists:
            columns["tags"] = list(tags[draw.choice(2000, (k, 5), p=often / often.sum())])
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(products, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    pick = random.Random(8)
    searches = folder / "searches.jsonl"
    with searches.open("w") as file:
        for i in range(size.of(50_000)):
            low = round(pick.lognormvariate(3, 1), 2)
            some = [f"'tag-{pick.randrange(2000)}'" for _ in range(2)]
            what = f"tags contains any ({', '.join(some)}) and " if lists else ""
            text = (
                f"{what}category = 'category-{pick.randrange(200)}'"
                f" and price between {low} and {round(1.3 * low, 2)}"
            )
            file.write(json.dumps({"subscription_id": f"search-{i}", "expression": text}) + "\n")
    return searches, products


def _nightly(*, lists: bool, memory: bool) -> Callable[[Size], Measured]:
    def prepare(size: Size) -> Measured:
        folder = Path(tempfile.mkdtemp(prefix="matchmill-bench-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        searches, products = _product_files(size, folder, lists=lists)
        command = [sys.executable, "-m", "matchmill", "match", searches, products, "--quiet"]

        def match() -> float | None:
            subprocess.run([*command, "--out", folder / "hits.parquet"], check=True)
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / _MEGABYTE
            return peak if memory else None

        return match, 1_000_000

    return prepare


row("nightly job: 50k searches, 1M products, no lists", 30, "s")(
    _nightly(lists=False, memory=False)
)
row("its peak of memory", 1000, "MB")(_nightly(lists=False, memory=True))
row("nightly job with `tags contains any`", 30, "s")(_nightly(lists=True, memory=False))
row("its peak of memory with `tags contains any`", 1000, "MB")(_nightly(lists=True, memory=True))
