"""Operators with a price: registered callables, joined over variables, asked as seldom as can."""
