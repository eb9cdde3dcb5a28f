"""Expensive operators: in which order to evaluate conditions that cost much.

    section 4.1, Alg. 1     sequential.py: at most d times the evaluations of the best order
    section 4.2, 4.3        sub_order.py: linked chains, their costs and their order
    section 5.2             naive.py: subscriptions one by one, the paper's baseline

Sections 2 and 4.2.1 (models, links between chains) are `operators/`, which the product has. What
an order is stands in `operators/orders.py`; the product's own one is `operators/adaptive.py`.

Deviations: Sub-Order sums up over all other chains what the paper compares pair by pair, and does
not look for a path through the complete graph. Orders are kept while subscriptions come and go.
Sequential takes chains as they come.
"""
