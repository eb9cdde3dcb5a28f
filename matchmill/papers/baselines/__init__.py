"""What several of the papers compare with. Each is built once, and changes go by segments.

    counting.py, counting_part.py, key_postings.py
        Counting over lists (Yan and Garcia-Molina): a baseline of all papers. Changes in place.
    sift.py, enumerated_postings.py
        SIFT, counting over enumerated ranges: BE-Tree, section 7.2.
    k_index.py, enumerated_postings.py
        The k-index (Whang et al., VLDB 2009): BE-Tree, PS-Tree and OpIndex.
    propagation.py, propagation_clusters.py, key_postings.py
        Propagation (Fabret et al., SIGMOD 2001): BE-Tree, section 7.2, and PS-Tree.
    gryphon.py, gryphon_tree.py
        Gryphon (Aguilera et al., PODC 1999): BE-Tree, section 7.2.

Deviations:

- counting: wide ranges stand at few nodes of a hierarchy instead of at every value.
- sift, k_index: ranges are enumerated over codes (keys between two bounds are one code), within a
  budget that is checked before memory is taken. The k-index takes sizes in ascending order.
- propagation: clauses without an equality are filed under another predicate (`equality_only=True`
  is as in the paper), and clauses do not move between clusters while events come.
- gryphon: the equality form and the general form are one tree. Chains of "don't care" edges are
  joined. Rare dimensions are tested first (`rare_first=False` is the opposite).
- A predicate that accepts absence counts as true until a key speaks against it.
"""
