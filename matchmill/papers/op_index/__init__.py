"""OpIndex: pivots, predicate lists by operator, counters.

    section 4.1             pivots.py: the dimension that a clause is filed under
    section 4.2             operator_kinds.py: which list an interval belongs to
    section 4.2             lists.py, list_block.py: lists, their segments and signatures
    section 4.3, Alg. 1     counters.py, filing.py: counter arrays, and how they and lists change
    section 4.3, Alg. 1     one_clause.py: the same for a single clause
    section 5, Alg. 2       search.py, index.py: OpIndex; `segments=False` is OpIndex-BS
    section 6.1             cnf/: conjunctions of disjunctions with bitmaps: OpIndexCnf over tables
                            of them, and the index `op_index_cnf` over the clauses of an engine
    section 6.2             operators/: predicate lists by operator that a user can add
    section 6.2             prefix_trie.py: prefixes as intervals, in the lists of `op_index`

Deviations, section by section:

- 4.1: ties between pivots are decided by an equality and then by position, of which the paper says
  nothing; without statistics a dimension is as frequent as subscribers ask for it.
- 4.2: an interval with two ends is one entry with both instead of two predicates; nested ones, such
  as prefixes, are climbed.
- 4.2: a list has n / 8 segments, 32 at most; the paper gives every list 32.
- 4.3: a predicate that accepts absence is stored as the keys that forbid it, and is no pivot.
  Clauses that no dimension is sure to lead to are looked at with every event.
- 5: searches prefetch what the next step reads.
- 6.1: see `cnf/__init__.py`.
- 6.2: in an engine prefixes and suffixes are intervals and other patterns are flags, found before
  pivots are known. Lists by operator, asked after pivots, stand apart: see `operators/__init__.py`.
"""

from matchmill.papers.op_index.cnf.index import OpIndexCnf
from matchmill.papers.op_index.index import OpIndex

__all__ = ["OpIndex", "OpIndexCnf"]
