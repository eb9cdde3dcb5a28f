from matchmill.index.mill.index import Mill

__all__ = ["Mill"]
