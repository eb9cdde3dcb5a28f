"""Three ways to match in SQL: their tables, and the statements that change and ask them.

In all of them the events of a batch are the relation `pairs (event, attr, val)`, rows to be
inserted are `incoming` and the ids of clauses to be deleted `doomed (sid)`; the columns are those
of `rows.py`. A query answers with rows (event, sid), and one row (-1, n): n clauses were looked at.

    SEQUENTIAL    subs (sid, attr, low, high, sign, opens)
                  Two-stage, section 4.1: every predicate with every event, counted per subscription
                  and compared with the number of its predicates, which is counted as well.
    GROUPED       subs (sid, cnt), preds (pid, attr, low, high, sign), subs_preds (sid, pid)
                  Two-stage, section 4.2: a predicate is stored and evaluated once, whoever has it.
    PIVOT         point_pivots (attr, val, sid, needed, n_rest)
                  range_pivots (attr, low, high, sid, needed, n_rest)
                  rest         (sid, attr, low, high, sign)
                  Not in the paper: what one would write today. The events are joined with the
                  most selective predicate of each subscription, points by equality; what remains
                  of the subscriptions found that way is checked.

The paper writes an event into the text of its query, and an operator into a row. Here a batch of
events is a relation to join with, and an operator is an interval (two for !=), so a predicate that
is shared in `preds` is an interval.

`CROSS JOIN … WHERE` is an inner join to every planner; to SQLite it is the order of joining, too.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["GROUPED", "PIVOT", "SEQUENTIAL", "Form"]

_COUNTED = "SELECT -1, COUNT(*) FROM"


class Form(NamedTuple):
    """The tables and statements of one way to match."""

    tables: dict[str, tuple[str, ...]]  # their columns, all of them integers
    indexes: dict[str, tuple[tuple[str, ...], ...]]  # for databases that look rows up
    scratch: dict[str, tuple[str, ...]]  # temporary tables, empty when a change begins
    insert: tuple[str, ...]
    delete: tuple[str, ...]
    match: str
    holders: tuple[str, ...]  # tables that together have a row of each clause
    share_counted: float  # of the first table's rows, about, that a query holds for each event
    keys: str = ""  # a query for some (attr, key) of the clauses, if pivots have to be chosen


_SCRATCH = {"pairs": ("event", "attr", "val"), "doomed": ("sid",)}

SEQUENTIAL = Form(
    tables={"subs": ("sid", "attr", "low", "high", "sign", "opens")},
    indexes={"subs": (("sid",),)},
    scratch=_SCRATCH | {"incoming": ("sid", "attr", "low", "high", "sign", "opens")},
    insert=("INSERT INTO {subs} SELECT sid, attr, low, high, sign, opens FROM {incoming}",),
    delete=("DELETE FROM {subs} WHERE sid IN (SELECT sid FROM {doomed})",),
    match="""
        WITH needed AS MATERIALIZED (
            SELECT sid, SUM(opens) AS cnt FROM {subs} GROUP BY sid
        ), counted AS (
            SELECT p.event, s.sid, SUM(s.sign) AS n
            FROM {subs} s JOIN {pairs} p ON p.attr = s.attr AND p.val BETWEEN s.low AND s.high
            GROUP BY p.event, s.sid
        )
        SELECT c.event, c.sid FROM counted c JOIN needed d ON d.sid = c.sid AND d.cnt = c.n
        UNION ALL
        SELECT -1, (SELECT COUNT(*) FROM needed) * (SELECT COUNT(DISTINCT event) FROM {pairs})
    """,
    holders=("subs",),
    share_counted=1.0,
)

GROUPED = Form(
    tables={
        "subs": ("sid", "cnt"),
        "preds": ("pid", "attr", "low", "high", "sign"),
        "subs_preds": ("sid", "pid"),
    },
    indexes={
        "subs": (("sid",),),
        "preds": (("attr", "low", "high", "sign", "pid"), ("pid",)),
        "subs_preds": (("pid", "sid"), ("sid",)),
    },
    scratch=_SCRATCH
    | {"incoming": ("sid", "attr", "low", "high", "sign", "cnt"), "idle": ("pid",)},
    insert=(
        """
        INSERT INTO {preds}
        SELECT (SELECT COALESCE(MAX(pid), 0) FROM {preds})
                 + ROW_NUMBER() OVER (ORDER BY i.attr, i.low, i.high, i.sign),
               i.attr, i.low, i.high, i.sign
        FROM (SELECT DISTINCT attr, low, high, sign FROM {incoming}) i
        WHERE NOT EXISTS (
            SELECT 1 FROM {preds} p
            WHERE p.attr = i.attr AND p.low = i.low AND p.high = i.high AND p.sign = i.sign
        )
        """,
        """
        INSERT INTO {subs_preds}
        SELECT i.sid, p.pid FROM {incoming} i CROSS JOIN {preds} p
        WHERE p.attr = i.attr AND p.low = i.low AND p.high = i.high AND p.sign = i.sign
        """,
        "INSERT INTO {subs} SELECT DISTINCT sid, cnt FROM {incoming}",
    ),
    delete=(
        """
        INSERT INTO {idle}
        SELECT DISTINCT pid FROM {subs_preds} WHERE sid IN (SELECT sid FROM {doomed})
        """,
        "DELETE FROM {subs_preds} WHERE sid IN (SELECT sid FROM {doomed})",
        """
        DELETE FROM {preds} WHERE pid IN (
            SELECT i.pid FROM {idle} i
            WHERE NOT EXISTS (SELECT 1 FROM {subs_preds} s WHERE s.pid = i.pid)
        )
        """,
        "DELETE FROM {subs} WHERE sid IN (SELECT sid FROM {doomed})",
    ),
    match=f"""
        WITH satisfied AS MATERIALIZED (
            SELECT p.event, q.pid, q.sign FROM {{pairs}} p CROSS JOIN {{preds}} q
            WHERE q.attr = p.attr AND p.val BETWEEN q.low AND q.high
        ), counted AS MATERIALIZED (
            SELECT s.event, t.sid, SUM(s.sign) AS n
            FROM satisfied s CROSS JOIN {{subs_preds}} t WHERE t.pid = s.pid
            GROUP BY s.event, t.sid
        )
        SELECT c.event, c.sid FROM counted c CROSS JOIN {{subs}} b
        WHERE b.sid = c.sid AND b.cnt = c.n
        UNION ALL {_COUNTED} counted
    """,
    holders=("subs",),
    share_counted=1.0,
)

_PIVOTS = ("sid", "needed", "n_rest")

PIVOT = Form(
    tables={
        "point_pivots": ("attr", "val", *_PIVOTS),
        "range_pivots": ("attr", "low", "high", *_PIVOTS),
        "rest": ("sid", "attr", "low", "high", "sign"),
    },
    indexes={
        "point_pivots": (("attr", "val"), ("sid",)),
        "range_pivots": (("attr", "low", "high"), ("sid",)),
        "rest": (("sid",),),
    },
    scratch=_SCRATCH
    | {"incoming": ("sid", "attr", "low", "high", "sign", "cnt", "n_rest", "is_pivot")},
    insert=(
        """
        INSERT INTO {point_pivots} SELECT attr, low, sid, cnt - 1, n_rest FROM {incoming}
        WHERE is_pivot = 1 AND low = high
        """,
        """
        INSERT INTO {range_pivots} SELECT attr, low, high, sid, cnt - 1, n_rest FROM {incoming}
        WHERE is_pivot = 1 AND low <> high
        """,
        """
        INSERT INTO {rest} SELECT sid, attr, low, high, sign FROM {incoming} WHERE is_pivot = 0
        """,
    ),
    delete=(
        "DELETE FROM {point_pivots} WHERE sid IN (SELECT sid FROM {doomed})",
        "DELETE FROM {range_pivots} WHERE sid IN (SELECT sid FROM {doomed})",
        "DELETE FROM {rest} WHERE sid IN (SELECT sid FROM {doomed})",
    ),
    match=f"""
        WITH candidates AS MATERIALIZED (
            SELECT p.event, v.sid, v.needed, v.n_rest FROM {{pairs}} p CROSS JOIN {{point_pivots}} v
            WHERE v.attr = p.attr AND v.val = p.val
            UNION ALL
            SELECT p.event, v.sid, v.needed, v.n_rest FROM {{pairs}} p CROSS JOIN {{range_pivots}} v
            WHERE v.attr = p.attr AND p.val BETWEEN v.low AND v.high
        )
        SELECT event, sid FROM candidates WHERE n_rest = 0
        UNION ALL
        SELECT c.event, c.sid
        FROM candidates c CROSS JOIN {{rest}} r
        LEFT JOIN {{pairs}} p
            ON p.event = c.event AND p.attr = r.attr AND p.val BETWEEN r.low AND r.high
        WHERE r.sid = c.sid AND c.n_rest > 0
        GROUP BY c.event, c.sid, c.needed
        HAVING SUM(CASE WHEN p.event IS NULL THEN 0 ELSE r.sign END) = c.needed
        UNION ALL {_COUNTED} candidates
    """,
    holders=("point_pivots", "range_pivots"),
    share_counted=0.01,
    keys="""
        SELECT attr, val FROM {point_pivots} WHERE attr >= 0
        UNION ALL SELECT attr, low FROM {range_pivots} WHERE attr >= 0
        UNION ALL SELECT attr, low FROM {rest} WHERE attr >= 0
    """,
)
