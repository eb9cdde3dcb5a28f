"""Plain conditions in bulk: from the bytes of a million texts straight to flat arrays."""
