"""OpIndex: pivots, lists by operator, counters. See `index.py`; `cnf.py` for conjunctions of
disjunctions."""

from matchmill.indexes.op_index.cnf import OpIndexCnf
from matchmill.indexes.op_index.index import OpIndex

__all__ = ["OpIndex", "OpIndexCnf"]
