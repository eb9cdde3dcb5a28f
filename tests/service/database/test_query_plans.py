"""What a request does often is looked up in the right index, and never reads a whole tenant.

Every statement of a scenario is recorded and then explained by the database itself: with the tables
full and the planner's statistics as they are in a new store, and again after ANALYZE.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from matchmill.service.database.reads import Reads
from matchmill.service.database.rows import Publication, Retention
from matchmill.service.database.store import Store
from matchmill.service.database.writes import Writes
from tests.service.database.test_store import NOW, subscribe, tenant_of

_N = 20_000
_LARGE = "subscriptions|mailboxes|entries|events|changes|webhooks|dead_letters"


class Recording:
    """A connection that notes its statements."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.statements: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def rows(self, sql: str, *values: Any) -> Any:
        self.statements.append((sql, values))
        return self._connection.rows(sql, *values)

    def run(self, sql: str, *values: Any) -> Any:
        self.statements.append((sql, values))
        return self._connection.run(sql, *values)

    def run_many(self, sql: str, rows: Any) -> None:
        self.statements += [(sql, row) for row in rows[:1]]
        self._connection.run_many(sql, rows)

    def bad_plans(self, is_postgres: bool) -> list[str]:
        found = []
        for sql, values in self.statements:
            if re.match(r"\s*(SELECT|UPDATE|DELETE)", sql) and re.search(_LARGE, sql):
                plan = self._plan(sql, values, is_postgres)
                found += [f"{sql}: {line}" for line in plan if _is_bad(line)]
        return found

    def _plan(self, sql: str, values: tuple[Any, ...], is_postgres: bool) -> list[str]:
        if not is_postgres:
            return [row[3] for row in self._connection.rows(f"EXPLAIN QUERY PLAN {sql}", *values)]
        ((plan,),) = self._connection.rows(f"EXPLAIN (FORMAT JSON) {sql}", *values)
        return _lines((plan if isinstance(plan, list) else json.loads(plan))[0]["Plan"])


# Rows that a part of the query has made.
_NO_TABLES = r"given|json_each|due|page|\(subquery"


def _lines(plan: dict[str, Any]) -> list[str]:
    line = f"{plan['Node Type']} {plan.get('Relation Name', '')} {plan.get('Index Cond', '')}"
    return [line, *(text for part in plan.get("Plans", []) for text in _lines(part))]


def _is_bad(line: str) -> bool:
    """Whether all of a table is read, or all that a tenant has in it."""
    if re.match(rf"Seq Scan ({_LARGE})", line) or re.match(rf"SCAN (?!{_NO_TABLES})", line):
        return True
    return bool(re.search(r"\((?:\(tenant = [^ ]*\)|tenant=\?)\)?$", line))


def fill(store: Store, tenant: int) -> None:
    """One tenant with many rows, made by the database."""
    with store._transaction() as connection:
        series = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {_N})"
        connection.run(
            f"INSERT INTO subscriptions (number, tenant, id, expression, ticket, created_at,"
            f" expires_at) {series} SELECT i + 1000, {tenant}, 's' || i, ?, ?, 0, {NOW + 10**9}"
            " FROM n WHERE i > 0",
            *(b"x > 3", b"t"),
        )
        connection.run(
            "INSERT INTO mailboxes (subscription, n_pending, n_dropped)"
            f" {series} SELECT i + 1000, 0, 0 FROM n WHERE i > 0"
        )
        connection.run(
            "INSERT INTO events (tenant, seq, event_id, body, published_at, n_matches)"
            f" {series} SELECT {tenant}, i, 'old' || i, '{{}}', 0, 0 FROM n WHERE i > 0"
        )
        connection.run(
            "INSERT INTO entries (subscription, seq, matched_at)"
            f" {series} SELECT 1000 + i, i, 0 FROM n WHERE i > 0"
        )
        connection.run(
            "INSERT INTO dead_letters (subscription, seq, matched_at, n_attempts, reason,"
            f" failed_at) {series} SELECT 1000 + i, i, 0, 1, '', 0 FROM n WHERE i > 0"
        )
        connection.run(
            "INSERT INTO webhooks (subscription, url, nonce, n_attempts, next_at)"
            f" {series} SELECT i + 1000, 'http://h/', ?, 0, {2**62} FROM n WHERE i > 0",
            b"n",
        )
        connection.run(
            "INSERT INTO changes (seq, tenant, number, is_end)"
            f" {series} SELECT i + 1000, {tenant}, i + 1000, 0 FROM n WHERE i > 0"
        )
        connection.run(f"UPDATE tenants SET last_event = {_N}")
        connection.run(f"UPDATE counters SET value = {_N + 1000} WHERE name = 'change'")


def scenario(writing: Writes, tenant: int, name: str) -> None:
    """What requests do."""
    assert len(writing.live(tenant, range(1001, 1011), NOW)) == 10
    publications = [Publication(f"{name} {n}", "{}", [1001 + n, 5000]) for n in range(9)]
    writing.publish(tenant, publications, NOW, 5)
    writing.publish(tenant, [Publication("old7", "{}", [1001])], NOW, 5)
    writing.acknowledge(1001, 5)
    assert writing.subscription(tenant, "s7", NOW) is not None
    assert writing.by_ticket("s7", b"t", NOW) is not None
    writing.page(5000, 0, 10, NOW)
    writing.changes(tenant, _N + 990, 100)
    writing.due_webhooks(NOW, 8, 8)
    writing.subscriptions(tenant, "s3", 10, NOW)
    writing.remove_expired(NOW, 10)
    assert writing.forgettable(tenant, Retention(_N - 50, 1, 1), None, 10).steps
    assert writing.holders(tenant, 50, "s3", 100)[1] is not None
    writing.drop_matches([1002, 1003], 50)
    assert writing.delete_events(tenant, 50) == 50
    assert writing.delete_changes(_N, 10) == 1


@pytest.mark.slow
@pytest.mark.parametrize("is_analyzed", [False, True], ids=["new", "analyzed"])
def test_what_requests_do_is_looked_up(store: Store, is_analyzed: bool) -> None:
    tenant = tenant_of(store)
    subscribe(store, tenant, "first")
    fill(store, tenant)
    is_postgres = store.is_shared
    if is_analyzed:
        with store._transaction() as connection:
            connection.run("ANALYZE")
    with store._transaction() as connection:
        recording = Recording(connection)
        scenario(Writes(recording), tenant, "new")
        assert len(recording.statements) > 20
        assert recording.bad_plans(is_postgres) == []


def test_a_bad_plan_is_noticed(store: Store) -> None:
    bad: list[Callable[[Reads], Any]] = [
        lambda r: r._connection.rows("SELECT * FROM entries WHERE matched_at = ?", 7),
        lambda r: r._connection.rows("SELECT * FROM changes WHERE tenant = ?", 7),
    ]
    for question in bad:
        with store._transaction() as connection:
            if store.is_shared:
                connection.run("SET LOCAL enable_bitmapscan = off")
            recording = Recording(connection)
            question(Reads(recording))
            assert recording.bad_plans(store.is_shared) != []
