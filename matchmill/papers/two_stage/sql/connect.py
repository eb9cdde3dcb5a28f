"""Open one of the three databases, or take a connection of the user's.

A database is imported when it is asked for: DuckDB and psycopg are optional.
"""

from __future__ import annotations

from typing import Any

from matchmill.errors import InputError
from matchmill.papers.two_stage.sql.database import IN_MEMORY, Database

__all__ = ["DATABASES", "connect", "wrapped"]

DATABASES = ("duckdb", "sqlite", "postgresql")


def connect(database: str, path: str | None, dsn: str | None) -> Database:
    """Open a database: an embedded one in memory or in a file, or a server by its DSN."""
    if database not in DATABASES:
        raise InputError(f"unknown database {database!r}; there are: {', '.join(DATABASES)}")
    if database == "postgresql":
        from matchmill.papers.two_stage.sql.postgresql import PostgreSQL

        if path is not None:
            raise InputError("PostgreSQL has no path: say where it is by dsn='host=… dbname=…'")
        return PostgreSQL.connect(dsn or "")
    if dsn is not None:
        raise InputError(f"dsn is for PostgreSQL; {database} takes the path of a file")
    if database == "sqlite":
        from matchmill.papers.two_stage.sql.sqlite import SQLite

        return SQLite.connect(path or IN_MEMORY)
    from matchmill.papers.two_stage.sql.duckdb import DuckDB

    return DuckDB.connect(path or IN_MEMORY)


def wrapped(connection: Any) -> Database:
    """Take a connection of the user's, which stays the user's to close."""
    packages = {kind.__module__.lstrip("_").partition(".")[0] for kind in type(connection).__mro__}
    if "duckdb" in packages:
        from matchmill.papers.two_stage.sql.duckdb import DuckDB

        return DuckDB(connection.cursor())
    if "sqlite3" in packages:
        from matchmill.papers.two_stage.sql.sqlite import SQLite

        return SQLite(connection, is_own=False)
    if "psycopg" in packages:
        from matchmill.papers.two_stage.sql.postgresql import PostgreSQL

        return PostgreSQL(connection, is_own=False)
    raise InputError(
        "a connection is one of duckdb, sqlite3 or psycopg (version 3), not "
        f"{type(connection).__module__}.{type(connection).__qualname__}"
    )
