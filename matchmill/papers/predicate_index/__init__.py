"""Structures for the predicates of one dimension."""
