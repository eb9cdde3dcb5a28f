"""The default index; docs/MILL.md describes it."""

from matchmill.index.mill.index import Mill

__all__ = ["Mill"]
