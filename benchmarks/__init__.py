"""Measurements for developers, run by `script/bench`; not installed."""
