"""From a table to the arrays of the index, one file per step."""
