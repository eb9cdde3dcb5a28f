"""Sources of many events, each read into typed columns."""
