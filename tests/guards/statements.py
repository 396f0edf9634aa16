"""Guards that lie in statements: each database has a file of its own, so there is one guard for each."""

from collections.abc import Sequence

from tests.guards.guard import Edit, Guard


def postgresql(statement: str, old: str, new: str = "") -> Edit:
    """An edit of a statement on PostgreSQL."""
    return Edit(f"sql/postgresql/{statement}.sql", old, new)


def sqlite(statement: str, old: str, new: str = "") -> Edit:
    """An edit of a statement on SQLite."""
    return Edit(f"sql/sqlite/{statement}.sql", old, new)


def each_database(
    name: str, tests: Sequence[str], on_postgresql: Sequence[Edit], on_sqlite: Sequence[Edit]
) -> tuple[Guard, Guard]:
    """A guard that both databases have, and the same tests for both."""
    return (
        Guard(f"{name} (PostgreSQL)", on_postgresql, tests, ["postgresql"]),
        Guard(f"{name} (SQLite)", on_sqlite, tests, ["sqlite"]),
    )
