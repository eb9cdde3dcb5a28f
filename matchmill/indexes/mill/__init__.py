from matchmill.indexes.mill.index import Mill

__all__ = ["Mill"]
