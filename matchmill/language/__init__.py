"""What an expression means: its values, text, patterns, and truth for an event."""
