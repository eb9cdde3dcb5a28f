"""Two-stage: first the predicates that an event satisfies, then the subscriptions.

    section 2               publication_types.py: declared domains, checked in front of an engine
    section 3               predicate_stage.py: the first stage, a bit vector of predicates
    section 3.1             ordered_list.py: predicates in sorted lists, in arrays
    section 3.1             linked_list.py: the same as linked lists, as in the paper
    section 3.2             domain_table.py: predicates in a table of all values of a domain
    section 3.2             ranked_table.py: the same over the ranks of keys, for an engine's keys
    section 3.3             counting_matrix.py: the second stage; what its three forms share
    section 3.3             counting_bytes.py, counting_bits.py: over a matrix
    section 3.3             counting_lists.py: over lists from predicates to subscriptions
    section 4               sql/: matching inside a database

The option `predicates` of the three forms says which structure the first stage has.

Deviations, section by section:

- 2: attributes have domains only where a user puts a PublicationType in front of an engine.
  Subscriptions are any expressions over values of the domains, not conjunctions alone.
- 3.1: an interval of keys takes the part of an operator, so ranges with two ends have their own
  list, and `!=` is two intervals. By default lists are arrays with binary search; linked lists
  searched from the start are `predicates="linked"`.
- 3.2: a slot of the domain table chains equal predicates; the paper has one per slot. Engines give
  large keys with gaps, so their table has a slot per rank instead of per value; it is taken while
  the predicates of a dimension tell up to 4096 keys apart ("several thousand").
- 3.3: bits are counted by adding words bit by bit, or by excluding the rows of predicates that do
  not hold, whichever is less; the paper does not say how it counts. Over matrices 64 events at a
  time go through a part that stays in the cache.
- 3.3: the room of a list is doubled when it is full; the paper adds a constant.
- 4: three SQL databases instead of Kdb, and events in batches; `events_per_query=1` asks once per
  event, as the paper does.
"""
