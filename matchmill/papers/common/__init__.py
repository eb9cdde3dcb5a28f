"""What indexes of several papers share.

array_index.py        the class of an index that is all arrays; arrays by name
id_table.py           from ids to places: a hash table that changes in place
pools.py              rows and spans of memory that are taken and given back
clause_intervals.py   the intervals of many clauses, one after the other
"""
