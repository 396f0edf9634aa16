"""The peers: how each is installed, run, and watched."""

from __future__ import annotations

from typing import NamedTuple


class Watch(NamedTuple):
    """How a peer's table tells that a job is done.

    :param order: the column that jobs are worked off by.
    :param live: SQL that is true while a job is still to be done; jobs that are deleted need no more.
    """

    table: str
    order: str
    live: str = "true"


class Peer(NamedTuple):
    """One queue.

    :param requirements: for pip, or for npm where ``script`` ends in ``.mjs``; none: it is installed here.
    :param jobs: so many that it is busy with them for some ten seconds.
    :param how: how it is used, in few words.
    """

    name: str
    requirements: tuple[str, ...]
    script: str
    jobs: int
    watch: Watch | None
    how: str

    @property
    def is_node(self) -> bool:
        """Whether it runs on Node."""
        return self.script.endswith(".mjs")


PSYCOPG = "psycopg[binary]>=3.2"

PEERS = (
    Peer(
        "django_jobs",
        (),
        "django_jobs_peer.py",
        200_000,
        Watch("django_jobs_job", "id", "state IN ('available', 'running', 'scheduled')"),
        "runjobs with its defaults; history kept",
    ),
    Peer(
        "graphile-worker",
        ("graphile-worker",),
        "graphile_worker_peer.mjs",
        100_000,
        Watch("graphile_worker._private_jobs", "id"),
        "24 at once, local queue 500, completions in batches; rows deleted",
    ),
    Peer(
        "pg-boss",
        ("pg-boss",),
        "pg_boss_peer.mjs",
        100_000,
        Watch("pgboss.job", "created_on", "state < 'completed' AND name = 'noop'"),
        "ten workers, a call of the job function for each batch of 1,000, polling every 0.5 s; history kept",
    ),
    Peer(
        "pgqueuer",
        ("pgqueuer[asyncpg]",),
        "pgqueuer_peer.py",
        50_000,
        Watch("pgqueuer", "id"),
        "asyncpg, batches of 1,000; rows deleted",
    ),
    Peer(
        "oban",
        ("oban",),
        "oban_peer.py",
        20_000,
        Watch("oban_jobs", "id", "state IN ('available', 'executing', 'scheduled', 'retryable')"),
        "10 at once; history kept",
    ),
    Peer(
        "chancy",
        ("chancy[cli]", PSYCOPG),
        "chancy_peer.py",
        15_000,
        Watch("chancy_jobs", "created_at", "state IN ('pending', 'running', 'retrying')"),
        "async executor with its default of 100 at once, eager polling; history kept",
    ),
    Peer(
        "celery, Redis",
        ("celery[redis]",),
        "celery_peer.py",
        6_000,
        None,
        "prefork, a process per core, no results; jobs are not in a database",
    ),
    Peer(
        "procrastinate",
        ("procrastinate", PSYCOPG),
        "procrastinate_peer.py",
        4_000,
        Watch("procrastinate_jobs", "id", "status IN ('todo', 'doing')"),
        "async tasks, 10 at once; history kept",
    ),
    Peer(
        "dj-queue",
        ("dj-queue", PSYCOPG),
        "django_tasks_peer.py",
        2_000,
        Watch("dj_queue_jobs", "created_at", "finished_at IS NULL"),
        "its defaults; history kept",
    ),
    Peer(
        "django-ox",
        ("django-ox", PSYCOPG),
        "django_tasks_peer.py",
        2_000,
        Watch("django_ox_oxtask", "enqueued_at", "status IN ('READY', 'RUNNING')"),
        "4 threads; history kept",
    ),
    Peer(
        "django-tasks-db",
        ("django-tasks-db", PSYCOPG),
        "django_tasks_peer.py",
        2_000,
        Watch("django_tasks_database_dbtaskresult", "enqueued_at", "status IN ('READY', 'RUNNING')"),
        "its defaults; history kept",
    ),
)
