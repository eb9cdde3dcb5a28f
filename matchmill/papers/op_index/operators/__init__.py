"""OpIndex with predicate lists by operator that a user can add (OpIndex, section 6.2).

    predicate_list.py    the interface of a list: insert, delete, match
    ordered_lists.py     =, <=, >=, in
    text_lists.py        prefix, suffix, regex: the first three that go beyond the paper's core
    index.py             ExtensibleOpIndex: pivots, lists of their own for each, counters

A new operator is a class with three methods. This one finds numbers that an operand divides:

    >>> class DividesList:
    ...     def __init__(self):
    ...         self._predicates = {}  # attribute → operand → predicates
    ...
    ...     def insert(self, predicate, attribute, operand):
    ...         if not isinstance(operand, int) or operand < 1:
    ...             raise ValueError(f"a divisor is a whole number from 1 on, not {operand!r}")
    ...         known = self._predicates.setdefault(attribute, {})
    ...         known.setdefault(operand, []).append(predicate)
    ...
    ...     def delete(self, predicate, attribute, operand):
    ...         self._predicates[attribute][operand].remove(predicate)
    ...
    ...     def match(self, attribute, value):
    ...         if isinstance(value, int):
    ...             for operand, predicates in self._predicates.get(attribute, {}).items():
    ...                 if value % operand == 0:
    ...                     yield from predicates

    >>> from matchmill.papers.op_index.operators import ExtensibleOpIndex
    >>> index = ExtensibleOpIndex({"divided by": DividesList})
    >>> index.subscribe("u1", [("number", "divided by", 3), ("street", "prefix", "Park")])
    >>> index.subscribe("u2", [("number", "divided by", 2), ("zip", "=", "10001")])
    >>> index.subscribe("u3", [("street", "regex", "Ave(nue)?$")])
    >>> sorted(index.match({"number": 12, "street": "Park Avenue"}))
    ['u1', 'u3']
    >>> index.match({"number": 12, "zip": "10001"})
    {'u2'}

Deviations:

- These lists see values as they are, so the index is apart from engines, whose indexes see keys: an
  engine evaluates the patterns of an attribute together, for every event that has it, before the
  index is asked. It is plain Python, for operators that cost more than it does.
- A list holds the predicates of all attributes, as the paper's "A#o"; what is satisfied is counted
  here and not in the list, so that `matchSub` need not be written for each operator.
- `!=` is no operator, because what is satisfied by nearly everything is found by no list.
- The trie has a step per letter and is not compressed. For regular expressions the paper names the
  RE-tree; here all expressions of an attribute are one automaton of RE2.
"""

from matchmill.papers.op_index.operators.index import OPERATORS, Condition, ExtensibleOpIndex
from matchmill.papers.op_index.operators.predicate_list import PredicateList

__all__ = ["OPERATORS", "Condition", "ExtensibleOpIndex", "PredicateList"]
