"""Matching inside a database: Two-stage, section 4, and what one would write today.

rows.py           clauses and events as relations, absence included
selectivity.py    which predicate of a clause the fewest events satisfy
forms.py          the tables and statements: sequential search, predicate grouping, pivots
database.py       what is asked of a database; duckdb.py, sqlite.py and postgresql.py answer
connect.py        opens one of the three
tables.py         a form in a database
index.py          the three indexes
user_table.py     subscriptions in a table of the user's own: `from_table`
"""

from matchmill.papers.two_stage.sql.index import SqlGrouped, SqlIndex, SqlPivot, SqlSequential
from matchmill.papers.two_stage.sql.user_table import (
    RejectedRow,
    TableMatches,
    TableSubscriptions,
    from_table,
)

__all__ = [
    "RejectedRow",
    "SqlGrouped",
    "SqlIndex",
    "SqlPivot",
    "SqlSequential",
    "TableMatches",
    "TableSubscriptions",
    "from_table",
]
