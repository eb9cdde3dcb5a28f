"""PS-Tree: predicate spaces, and the two indexes PSTBloom and PSTHash over them.

    section 3.1, 4.5        typed_tree.py, typed_elements.py: operators, and values as elements;
                            typed_matcher.py: subscriptions and events over typed attributes
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

Deviations, by section:

- 3.3: operators are told from intervals; a range has one end if it reaches the end of all keys or
  of a type's. A predicate of several intervals covers the spaces of all of them. One that accepts
  absence is never an access predicate; clauses without any other are checked with every event.
- 4.1: keys (64-bit integers) are 16 elements of 4 bits; leading zeros take no nodes, and look-ups
  follow stored ways without comparing. The paper's elements are those of `TypedMatcher`.
- 4.2, 4.4: what the paper leaves to a report of its own (GetRNode, PartitionLeafNode,
  DeletePredicate, deletion from PSTBloom) is ours, described in `forest.py`, `cuts.py` and
  `bloom_deletion.py`.
- 4.5: a character is the elements of its UTF-8 form, not one element. `TypedMatcher` numbers the
  spaces of typed trees, and the index cuts the numbers again: two trees per attribute, one answer.
- 5.1: signatures have eight to sixteen bits per predicate, 2**17 at most: longer ones spare a few
  checks but leave the cache, which costs more. `signature_bits=None` is without a limit.
- 5.2: many clauses are loaded dimension by dimension; one by one is `insert`.
- 5.3, Alg. 5: two signatures are asked per candidate; `signatures="all"` asks those of all
  predicates, as printed. Then the clause itself is checked, which is exact.
- 6.2: a clause whose combinations of spaces are more than 4096 is filed under one predicate. One
  that would get so many by later cuts is filed again, and stays so.
- Memory is prefetched (`ahead=False` is without it); of this the paper says nothing.
"""
