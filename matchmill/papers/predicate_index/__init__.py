"""Indexes of the predicates of one dimension: what PS-Tree, section 7.5, compares.

    base.py             the protocol: predicates by id, and which of them a key satisfies
    registry.py         all of them by name, with those of ps_tree/ and two_stage/
    scan.py             every interval, one after the other
    interval_tree.py    an interval tree, balanced as a scapegoat tree
    segment_tree.py     a segment tree that also takes insertions and deletions
    interval_table.py   the intervals of predicates by id, for their deletion

Deviations: the paper does not say which form of interval tree it means, and its segment tree does
not change.
"""
