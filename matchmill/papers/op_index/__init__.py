"""OpIndex: pivots, lists by operator, counters. See `index.py`; `cnf.py` for conjunctions of
disjunctions."""

from matchmill.papers.op_index.cnf.index import OpIndexCnf
from matchmill.papers.op_index.index import OpIndex

__all__ = ["OpIndex", "OpIndexCnf"]
