"""The example of docs/RANGES.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from matchmill.index.bitmaps import Bitmaps
from matchmill.index.bitmaps.arrays import BitmapArrays
from matchmill.index.mask_tree import MaskTree
from matchmill.index.mask_tree.arrays import N_EDGES, MaskTreeArrays
from matchmill.kernels.intrinsics import LANES, ROW_WORDS
from tests.support.conformance_kit import batch_of, matched, table_of

_PAGE = (Path(__file__).parents[2] / "docs" / "RANGES.md").read_text(encoding="utf-8")
_LAST = (1 << 63) - 1
_TABLE = table_of([{0: [(20, 29)], 1: [(1, 50)]}, {0: [(25, 60)]}, {0: [(0, 9)], 1: [(40, _LAST)]}])
_EVENTS = batch_of([{0: 27, 1: 45}, {1: 45}])


def test_the_tree() -> None:
    index = MaskTree.build(_TABLE)
    arrays = MaskTreeArrays(**index.arrays())
    for j, n in enumerate((6, 3)):
        codes = arrays.codes[j * N_EDGES : j * N_EDGES + n].tolist()
        assert f"codes of dimension {j} = {codes}" in _PAGE
        low, high = arrays.blocks.reshape(2, 2, LANES)[j, :, :3].tolist()
        ranges = "; ".join(f"clause {i} is {low[i]}, {high[i]}" for i in range(3))
        assert f"low and high codes on dimension {j}: {ranges}" in _PAGE
    assert matched(index.match_batch(_EVENTS)) == [[0, 1], [2]]


def test_the_bitmaps() -> None:
    index = Bitmaps.build(_TABLE)
    arrays = BitmapArrays(**index.arrays())
    assert arrays.ids[:3].tolist() == [2, 0, 1]
    words = arrays.rows.reshape(-1, ROW_WORDS)[:, 0].tolist()
    rows = ["".join(str(word >> lane & 1) for lane in range(3)) for word in words]
    for j, own in enumerate(np.split(np.array(rows), arrays.row_starts[1:-1])):
        assert f"rows of dimension {j} = {' '.join(own)} " in _PAGE
    assert matched(index.match_batch(_EVENTS)) == [[0, 1], [2]]
