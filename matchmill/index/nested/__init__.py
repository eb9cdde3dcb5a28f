"""Clauses with alternatives inside of them, evaluated as they stand."""

from matchmill.index.nested.index import NestedIndex

__all__ = ["NestedIndex"]
