"""From events to the ids of the clauses that hold."""
