"""Check subscriptions and events when they come in."""
