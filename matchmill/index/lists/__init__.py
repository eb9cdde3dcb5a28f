"""The index of clauses with multi-valued dimensions; docs/LISTS.md describes it."""

from matchmill.index.lists.index import ListIndex

__all__ = ["ListIndex"]
