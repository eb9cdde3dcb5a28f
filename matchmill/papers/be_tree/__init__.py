"""BE-Tree (paper *BE-Tree*): two-phase space cutting over clauses, changing in place.

records.py      a clause as it lies in a leaf
tree.py         the pools of nodes, and what is done to one node
directories.py  from dimensions to p-nodes
cutting.py      space partitioning and space clustering
insertion.py    the way of a clause down the tree
deletion.py     the way out, underflow, and taking a subtree apart
ranking.py      Loss, Gain and the window of a p-node
updates.py      insertion and deletion of many, which stop where memory has to grow
matching.py     events of keys;  wide_matching.py  events of intervals
slots.py        from clause ids to clauses
index.py        the index
"""

from matchmill.papers.be_tree.index import BeTree

__all__ = ["BeTree"]
