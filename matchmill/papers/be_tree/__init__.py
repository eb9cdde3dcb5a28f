"""BE-Tree: two-phase space cutting over clauses, changing in place.

    section 3               interval_matching.py: events that are expressions themselves
    section 4.1             tree.py: the pools of nodes, and what is done to one node
    section 4.2             directories.py: from dimensions to p-nodes
    section 6, Alg. 1, 2    matching.py
    section 6, Alg. 3, 4    insertion.py: the way of a clause down the tree
    section 6, Alg. 5, 6    cutting.py: space partitioning (4.2) and space clustering (4.3)
    section 4.2, 4.3        deletion.py: underflow, the merge rule, taking a subtree apart
    section 5               ranking.py: Loss, Gain and the window of a p-node
    section 5               clause_records.py: a clause in a leaf, subsumed predicates last
    section 7.3.1, Table 4  index.py: BeTree, its leaf capacity
    (none)                  updates.py, scratch.py: changes that stop where memory has to grow
    (none)                  compaction.py: a tree copied into memory without gaps
    (none)                  slots.py: from clause ids to the numbers by which the tree knows clauses

Deviations:

- Matching has a queue, and cutting a list of work, instead of recursion. Memory is prefetched
  (`ahead=False` is without it).
- Buckets are dyadic, and the smallest ones around what is in them, since keys have 64 bits.
- All weights of ranks are 1. The paper leaves open which Rank is too low; here a loss per clause of
  twice the usual one is, as well. Loss is sampled, since matching may run in several threads.
- Clauses of an l-node that underflows are inserted again; the paper has a second way.
- `first="rare"` partitions by the dimensions that fewest clauses have, which the paper does not.
- A dimension on which absence is accepted is no candidate for partitioning.
"""

from matchmill.papers.be_tree.index import BeTree

__all__ = ["BeTree"]
