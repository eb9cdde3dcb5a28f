"""The index `bitmaps`: which of 512 clauses may hold is one row of bits per range of values."""

from matchmill.index.bitmaps.index import Bitmaps

__all__ = ["Bitmaps"]
