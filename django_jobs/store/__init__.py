"""The store: the job table of one database behind one contract (:class:`~django_jobs.store.base.Store`)."""

from __future__ import annotations

from collections.abc import Callable

from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from django_jobs import conf
from django_jobs.store.base import Store
from django_jobs.store.django_session import DjangoSession
from django_jobs.store.guarantees import Guarantees

#: What tests put around the stores on Django's connections: ``django_jobs.testing`` passes them its time.
around: Callable[[Store], Store] | None = None


def django_store(alias: str, notify: bool | None = None) -> Store:
    """The store on Django's connection of the calling thread, in whatever transaction the caller has open.

    Raises ImproperlyConfigured when the database is neither SQLite nor PostgreSQL.
    """
    session = DjangoSession(alias)
    store: Store
    if _vendor(alias) == "sqlite":
        from django_jobs.store.sqlite import SQLiteStore

        store = SQLiteStore(session)
    else:
        from django_jobs.store.postgresql import PostgreSQLStore

        store = PostgreSQLStore(session, conf.get("NOTIFY") if notify is None else notify)
    return store if around is None else around(store)


def own_store(
    alias: str, timeout: float | None = None, notify: bool | None = None, direct: bool = False
) -> Store:
    """A store on a connection of its own, for one thread; opened when first used. Close it.

    :param timeout: seconds that a statement may take; ``DJANGO_JOBS["STATEMENT_TIMEOUT"]`` by default.
    :param direct: whether no pooler stands between, whatever ``DJANGO_JOBS["PREPARED_STATEMENTS"]`` says.
    """
    timeout = conf.get("STATEMENT_TIMEOUT") if timeout is None else timeout
    if _vendor(alias) == "sqlite":
        from django_jobs.store.sqlite import SQLiteStore
        from django_jobs.store.sqlite_session import SQLiteSession

        return SQLiteStore(SQLiteSession(alias, timeout))
    from django_jobs.store.postgresql import PostgreSQLStore
    from django_jobs.store.postgresql_session import PostgreSQLSession

    return PostgreSQLStore(
        PostgreSQLSession(alias, timeout, direct), conf.get("NOTIFY") if notify is None else notify
    )


def _vendor(alias: str) -> str:
    connection = connections[alias]
    if connection.vendor not in ("sqlite", "postgresql"):
        raise ImproperlyConfigured(
            f"DATABASES[{alias!r}] is {connection.display_name}; jobs can be kept in SQLite or PostgreSQL only."
        )
    return connection.vendor


__all__ = ["Guarantees", "Store", "django_store", "own_store"]
