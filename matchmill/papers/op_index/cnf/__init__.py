"""OpIndex over conjunctions of disjunctions (OpIndex, section 6.1).

    normal_form.py   from an expression to disjunctions, and how many there would be
    cnf_table.py     subscriptions as flat arrays
    filing.py        bits, pivots and rows of subscriptions
    index.py         OpIndexCnf
    matching.py      its kernels

Deviations: a disjunction that absence satisfies, or one beyond the 30 that fit a bitmap, is checked
in the table when all others hold. An event that has several pivots of a subscription reports it
once.
"""
