"""What several measurements use."""
