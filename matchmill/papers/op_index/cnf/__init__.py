"""OpIndex over conjunctions of disjunctions (OpIndex, section 6.1).

    cnf_table.py     subscriptions as flat arrays
    normal_form.py   from an expression to disjunctions, and how many there would be
    filing.py        bits, pivots and rows of subscriptions
    index.py         OpIndexCnf, over a table of subscriptions
    matching.py      its kernels
    products.py      from the clauses of an engine back to conjunctions of disjunctions
    clauses.py       the index `op_index_cnf`, over the clauses of an engine

How an expression reaches `op_index_cnf`. An engine gives every index conjunctions of value sets.
There are three ways for a disjunction of several dimensions:

- What is small is multiplied out by the engine, up to 16 clauses, or as many as there are
  alternatives, and the product stands in the table row after row. `products.py` finds it
  again: it becomes one subscription with a bitmap, with as few entries as the paper's. Only
  the *matches* go back to clauses.
- What is larger is a nested clause, which the engine gives to its own index `nested`.
- What is no product, such as `a or (b and c)`, stays clauses of its own, and so does a part of a
  product that was deleted or replaced.

All of it is exact, because a product says no more and no less than its clauses. Nothing of the
engine had to change, and segments, files and updates are those of any index. `OpIndexCnf` takes
whole expressions in CNF (`to_cnf`, `encode_cnf`), without an engine and without these limits.

Deviations: a disjunction that absence satisfies, or one beyond the 30 that fit a bitmap, is checked
in the table when all others hold. An event that has several pivots of a subscription reports it
once. Clauses of different subscriptions that stand next to each other and make up a product share
one bitmap.
"""
