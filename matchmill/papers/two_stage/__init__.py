"""Two-stage: first the predicates that an event satisfies, then the subscriptions.

    section 3               predicate_stage.py: the first stage, a bit vector of predicates
    section 3.1             ordered_list.py: predicates in sorted lists
    section 3.2             domain_table.py: predicates in a table of all values of a domain
    section 3.3             counting_matrix.py: the second stage over a matrix
    section 3.3             counting_bytes.py, counting_bits.py: its two forms
    section 4               sql/: matching inside a database

Deviations:

- An interval of keys takes the part of an operator, so ranges with two ends have their own list.
- Lists are arrays with binary search, not linked lists searched from the start.
- A slot of the domain table chains equal predicates; the paper has one per slot. A dimension gets a
  table if its largest key is below 4096 ("several thousand").
- Bits are counted by adding words bit by bit, or by excluding the rows of predicates that do not
  hold, whichever is less; the paper does not say how it counts.
- 64 events at a time go through a part of the matrix that stays in the cache.
"""
