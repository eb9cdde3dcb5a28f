"""PS-Tree: predicate spaces, and the two indexes PSTBloom and PSTHash over them.

    section 3.1, 4.5        typed_tree.py, typed_elements.py: operators, and values as elements
    section 3.3             access_predicates.py: which predicates a clause is filed under
    section 4.1, 4.3        forest.py: the tree, its leaves (predicate spaces), MatchPair (Alg. 3)
    section 4.2, 4.4        cuts.py: spaces are divided (Alg. 1, 2) and united
    section 7.5, Table 3    predicate_tree.py: the tree as an index of predicates; leaf_lists.py
    section 5.1             bloom_signatures.py: the Bloom filter of a leaf
    section 5.2, Alg. 4     bloom_insertion.py, bloom_bulk_load.py, bloom_deletion.py
    section 5.3, Alg. 5     bloom_index.py: PSTBloom
    section 6.1             hash_records.py: from N leaves to clauses
    section 6.2, Alg. 6     hash_insertion.py, hash_deletion.py
    section 6.3, Alg. 7     hash_index.py: PSTHash
    sections 5.3, 6.3       clauses.py: checking a candidate
    (none)                  index_base.py: what the two indexes share as classes

Deviations:

- Keys (64-bit integers) are 16 elements of 4 bits; leading zeros take no nodes, and look-ups follow
  stored ways without comparing.
- What the paper leaves to a report of its own (GetRNode, PartitionLeafNode, DeletePredicate,
  deletion from PSTBloom) is ours, described in `forest.py`, `cuts.py` and `bloom_deletion.py`.
- PSTBloom asks two signatures per candidate, not those of all predicates; then the clause itself
  is checked, which is exact. It loads many clauses dimension by dimension.
- PSTHash files a clause whose combinations of spaces are more than 4096 by one predicate; a clause
  that would get so many by later cuts is filed again.
- Memory is prefetched (`ahead=False` is without it); of this the paper says nothing.
- A predicate of several intervals covers the spaces of all of them. One that accepts absence is
  never an access predicate; clauses without any other are checked with every event.
"""
