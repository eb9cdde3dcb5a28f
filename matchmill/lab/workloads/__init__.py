"""Subscriptions and events to try things on."""
