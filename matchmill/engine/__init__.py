"""The engine: subscriptions, matching, folders, and the public functions."""
