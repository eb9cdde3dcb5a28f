"""Dimensions as a fixed number of flat arrays, to be saved.

dimension_name_*       one JSON text [attribute, derivation, argument] per dimension
cut_tables             one row (dimension, region, number of cut points) per table
number_*, string_*     the runs of all tables, one table after the other
"""

from __future__ import annotations

import json

import numpy as np

from matchmill.encoding.cut_points import CutTable, NumberRun, StringRun
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.flat_dictionary import TextPool
from matchmill.encoding.texts import Texts, strings_to_texts
from matchmill.language.normal_form import Dimension
from matchmill.language.values import Region

__all__ = ["dimensions_from_arrays", "dimensions_to_arrays"]


def dimensions_to_arrays(dimensions: Dimensions) -> dict[str, np.ndarray]:
    """Return the arrays of some dimensions, by name."""
    names = strings_to_texts([json.dumps(list(d)) for d in dimensions.keys])
    rows: list[tuple[int, int, int]] = []
    numbers: list[NumberRun] = []
    strings: list[StringRun] = []
    for dimension_id, tables in enumerate(dimensions.tables):
        for region, table in sorted(tables.items()):
            run = table.merged()
            rows.append((dimension_id, int(region), len(run.labels)))
            (strings if region == Region.STRING else numbers).append(run)
    return {
        "dimension_name_offsets": names.offsets,
        "dimension_name_data": names.data,
        "cut_tables": np.array(rows, np.int64).reshape(-1, 3),
        "number_whole": _joined([r.whole for r in numbers], np.int64),
        "number_part": _joined([r.part for r in numbers], np.float64),
        "number_labels": _joined([r.labels for r in numbers], np.int64),
        "string_heads": _joined([r.heads for r in strings], np.uint64),
        "string_offsets": _joined([r.offsets for r in strings], np.int64),
        "string_data": _joined([r.data for r in strings], np.uint8),
        "string_labels": _joined([r.labels for r in strings], np.int64),
    }


def _joined(arrays: list[np.ndarray], dtype: type[np.generic]) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype), *arrays]).astype(dtype, copy=False)


def dimensions_from_arrays(arrays: dict[str, np.ndarray]) -> Dimensions:
    """Return the dimensions of such arrays; large ones are shared, not copied."""
    dimensions = Dimensions()
    names = TextPool(Texts(arrays["dimension_name_offsets"], arrays["dimension_name_data"]))
    for n in range(len(names)):
        dimensions.id_of(Dimension(*json.loads(names[n])))
    number = string = offset = byte = 0
    for dimension_id, region, n_cuts in arrays["cut_tables"].tolist():
        if region == Region.STRING:
            offsets = arrays["string_offsets"][offset : offset + n_cuts + 1]
            stop = byte + int(offsets[-1])
            run = StringRun(
                arrays["string_heads"][string : string + n_cuts],
                offsets,
                arrays["string_data"][byte:stop],
                arrays["string_labels"][string : string + n_cuts],
            )
            offset, string, byte = offset + n_cuts + 1, string + n_cuts, stop
            dimensions.set_table(dimension_id, CutTable(region, run))
            continue
        cuts = slice(number, number + n_cuts)
        fields = ("number_whole", "number_part", "number_labels")
        dimensions.set_table(
            dimension_id, CutTable(region, NumberRun(*(arrays[f][cuts] for f in fields)))
        )
        number += n_cuts
    dimensions.all_are_needed()
    return dimensions
