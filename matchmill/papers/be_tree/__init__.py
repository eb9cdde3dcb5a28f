"""BE-Tree: two-phase space cutting over clauses, changing in place.

    section 3               interval_matching.py: events that are expressions themselves
    section 3               stored_events.py: events that are stored, and subscriptions that come in
    section 4.1             tree.py: the pools of nodes, and what is done to one node
    section 4.2             directories.py: from dimensions to p-nodes
    section 6, Alg. 1, 2    matching.py
    section 6, Alg. 3, 4    insertion.py: the way of a clause down the tree
    section 6, Alg. 5, 6    cutting.py: space partitioning (4.2) and space clustering (4.3)
    section 4.2, 4.3        deletion.py: underflow, the merge rule, taking a subtree apart
    section 5               ranking.py: Loss, Gain and the window of a p-node
    section 5               reinsertion.py: clauses that are inserted again, each by itself
    section 5               clause_records.py: a clause in a leaf, subsumed predicates last
    section 7.3.1, Table 4  capacity.py: leaf capacity, given or from what has matched
    (none)                  index.py: BeTree; parameters.py: its options as arrays
    (none)                  updates.py, scratch.py: changes that stop where memory has to grow
    (none)                  compaction.py: a tree copied into memory without gaps
    (none)                  slots.py: from clause ids to the numbers by which the tree knows clauses

What is as printed, what is an option, and what deviates:

Section 3, the language and its meaning. As printed: a match of events that are expressions
(`match_intervals`), and the same with events stored (`match_stored`; `both_ways` asks in both
directions). Deviates: a predicate may be any set of keys, and may accept absence; the paper's
accept no absence.

Section 4.2, partitioning. As printed: each dimension once on a way down, at least `min_size`
clauses (3), extended leaves, the capacity after a partitioning, directories that are hash tables,
empty nodes removed upwards. Deviates:

- A dimension on which absence is accepted is no candidate: an event without it would not come by.
- An extended leaf grows by `max_capacity`, or by an eighth where that is more: a long leaf of
  clauses that nothing tells apart would be counted again and again.
- Of the two ways for an l-node that underflows, its clauses are inserted again; the paper prefers
  that one. A p-node below `min_size` is taken apart, since it would not have been made.
- `first="rare"` partitions by the dimensions that fewest clauses have, which the paper does not.

Section 4.3, clustering. As printed: halving, the insertion rule, the forced split, the merge rule,
the intervals of Table 1. Deviates: the buckets are dyadic over 63 bits, and below the top they are
the smallest ones around what is in them (the paper's minimal boundary, made part of the structure),
since a domain is not declared.

Section 5, self-adjustment. Options:

- `alpha_subsumed`, `alpha_covered`, `beta`, `gamma`: the weights of Gain and Rank, 1 as the paper
  ends up with.
- `histogram_buckets`: Loss of a new p-node from a histogram. 0 is the paper's optimistic approach.
  The paper does not say how many buckets there are, nor over which range; here it is what the
  clauses of the leaf ask for.
- `windows="operations"`: windows of insertions, deletions and matches. By default only changes
  fill them, and one event of eight is counted, because matching runs in any number of threads.
- `threshold`: recycling below this Rank. The paper's value is 0. By default a loss per clause of
  twice the usual one is too much as well.
- `exploration`, `reinsert`: the paper names these two strategies and describes them elsewhere. What
  they do here is our reading: choices of p-nodes made at random, and clauses inserted again for
  which another p-node has come to rank higher.

Deviates: a window has 16 operations at least, a tenth of the clauses beyond that. A match ends no
window: matches that have filled one are seen by `is_adjustment_due`, and `adjust` ends it. Loss is
counted where a test of a clause is made, so that p-nodes and buckets have none of their own.

Section 6, the algorithms. Deviates: matching has a queue, and cutting a list of work, instead of
recursion. Memory is prefetched (`ahead=False` is without it). With `build="batch"` (BE-B) all
clauses are cut at once, with `build="single"` (BE) they are inserted one after the other.

Section 7.3.1. As printed: Table 4, by `matching_probability`. Option: `adjust_capacity` goes on
choosing by Table 4 from what has matched, for cuts to come. Without either it is 20.

All of it as printed, as a contender of an experiment:

    [contenders.be_tree_printed]
    index = "be_tree"
    build = "single"
    windows = "operations"
    threshold = 0.0
    ahead = false
"""

from matchmill.papers.be_tree.index import BeTree

__all__ = ["BeTree"]
