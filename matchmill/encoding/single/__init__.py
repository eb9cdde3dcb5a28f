"""The short way for one event."""
