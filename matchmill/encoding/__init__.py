"""Values become keys: the encoding of clauses and events."""
