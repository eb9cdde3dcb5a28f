"""Bytes on disk: folders of arrays, the log of changes, the lock. Knows nothing of engines."""
