"""What a worker keeps from task to task, and how it keeps that out of the garbage collector's way.

PySpark's workers collect garbage after each task. Such a collection visits every object that
modules have made, and Numba, pandas and PyArrow have made some hundred thousand: a tenth of a
second per task, far more than a small task itself takes. These objects live as long as the process,
so they are moved to where the collector does not look.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

__all__ = ["keep_out_of_collections", "worker_task"]

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_frozen_with: set[int] = set()  # how many modules there were when objects were moved


def worker_task(task: Task) -> Task:
    """Return the function for `mapInArrow`: the task, and then `keep_out_of_collections`."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from task(batches)
        finally:
            keep_out_of_collections()

    return run


def keep_out_of_collections() -> None:
    """Keep all objects that live now out of later collections, if modules were imported since.

    Garbage is collected before. An object that is freed by its reference count is freed as ever.
    """
    n_modules = len(sys.modules)
    if n_modules not in _frozen_with:
        gc.collect()
        gc.freeze()
        _frozen_with.add(n_modules)
