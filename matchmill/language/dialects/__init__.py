"""Patterns and rules of other systems, each of which is a dialect of subscriptions."""
