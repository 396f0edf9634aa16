"""The part of a store's contract that is about workers: their leases, and which of them leads."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django_jobs.serialization import decode, parse_timestamp
from django_jobs.store.answers import Heartbeat
from django_jobs.store.part import StorePart
from django_jobs.store.rows import WORKER_COLUMNS, LeadershipRow, WorkerRow
from django_jobs.stored_values import text, whole

_WORKER_WIDTH = len(WORKER_COLUMNS)
# A leadership that ends later than in so many seconds was written by a clock that has been set back since. (Another
# worker may have other settings, and a longer lease; that two lead for a while harms nothing.)
LONGEST_LEADERSHIP = 600.0
# A heartbeat that comes from so many seconds in the future was written by such a clock, too.
FUTURE = 60.0


class WorkerStatements(StorePart):
    """What a store does with workers, each method one statement."""

    def register_worker(
        self,
        host: str,
        pid: int,
        queues: str,
        concurrency: int,
        version: str,
        lease: float,
        now: dt.datetime | None = None,
    ) -> WorkerRow:
        """A new worker, with a lease of ``lease`` seconds; ``queues`` is JSON."""
        rows = self._run(
            "register_worker",
            now,
            host=host,
            pid=pid,
            queues=queues,
            concurrency=concurrency,
            version=version,
            lease=self._after(now, lease),
        )
        return _worker(rows[0])

    def heartbeat(
        self,
        worker_id: int,
        lease: float,
        running: int = 0,
        completed: int = 0,
        failed: int = 0,
        skew: float = 0.0,
        memory: int | None = None,
        leads: bool = False,
        epoch: int = 0,
        now: dt.datetime | None = None,
    ) -> Heartbeat | None:
        """Renew a worker's lease. None: it was given up, and must not go on under this id.

        :param running: how many jobs it runs; ``completed`` and ``failed`` attempts it has had since its start.
        :param skew: seconds that its host's clock is ahead of the database's.
        :param memory: bytes that its process holds.
        :param leads: whether it does the maintenance at present.
        :param epoch: claims of earlier epochs take nothing from now on.
        """
        rows = self._run(
            "heartbeat",
            now,
            worker_id=worker_id,
            lease=self._after(now, lease),
            running=running,
            completed=completed,
            failed=failed,
            skew=skew,
            memory=memory,
            leads=leads,
            epoch=epoch,
        )
        if not rows:
            return None
        moment, paused, cancelled = rows[0][_WORKER_WIDTH:]
        at = parse_timestamp(moment)
        assert at is not None
        return Heartbeat(
            _worker(rows[0][:_WORKER_WIDTH]),
            at,
            frozenset(self._names(paused) if paused else ()),
            frozenset(decode(cancelled) if cancelled else ()),
        )

    def _names(self, paused: str) -> list[str]:
        """Queues' names, as a heartbeat brings them."""
        names: list[str] = decode(paused)
        return names

    def lose_workers(self, now: dt.datetime | None = None, witness: int | None = None) -> list[WorkerRow]:
        """Take workers whose lease ran out for lost; the next :meth:`rescue` ends their claims.

        :param witness: the worker that says so. When its own lease is over by then, nobody is lost.
        """
        return [
            _worker(row)
            for row in self._run("lose_workers", now, witness=witness, future=self._after(now, FUTURE))
        ]

    def lose_worker(self, worker_id: int, now: dt.datetime | None = None) -> WorkerRow | None:
        """Take one worker for lost: its process has ended. None: it was lost, or had stopped, already."""
        rows = self._run("lose_worker", now, worker_id=worker_id)
        return _worker(rows[0]) if rows else None

    def stop_worker(self, worker_id: int, now: dt.datetime | None = None) -> WorkerRow | None:
        """Note that a worker has stopped."""
        rows = self._run("stop_worker", now, worker_id=worker_id)
        return _worker(rows[0]) if rows else None

    def ask_worker(
        self,
        worker_id: int,
        quiet: bool | None = None,
        stop: bool = False,
        now: dt.datetime | None = None,
    ) -> WorkerRow | None:
        """Ask a worker to claim nothing (``quiet`` True), to claim again (False), to stop. None: it is gone."""
        rows = self._run("ask_worker", now, worker_id=worker_id, quiet=quiet, stop=stop)
        return _worker(rows[0]) if rows else None

    def purge_workers(self, older_than: float, now: dt.datetime | None = None) -> list[WorkerRow]:
        """Forget workers that stopped, or were lost, ``older_than`` seconds ago or earlier."""
        rows = self._run("purge_workers", now, older_than=self._before(now, older_than))
        return [_worker(row) for row in rows]

    # -- leadership ------------------------------------------------------------------------------------------------

    def acquire_leadership(
        self, name: str, holder: str, lease: float, now: dt.datetime | None = None
    ) -> LeadershipRow | None:
        """Become, or remain, the leader for ``lease`` seconds. None: another one leads."""
        return _leadership(
            self._run(
                "acquire_leadership",
                now,
                name=name,
                holder=holder,
                lease=self._after(now, lease),
                longest=self._after(now, max(lease, LONGEST_LEADERSHIP)),
            )
        )

    def resign_leadership(
        self, name: str, holder: str, now: dt.datetime | None = None
    ) -> LeadershipRow | None:
        """Stop leading, so that another one can at once. None: ``holder`` did not lead."""
        return _leadership(self._run("resign_leadership", now, name=name, holder=holder))


def _worker(row: tuple[Any, ...]) -> WorkerRow:
    # Of what is said of it in words; SQLite takes anything from somebody's SQL.
    id_, host, pid, *times = row
    return WorkerRow(id_, text(host), whole(pid), *times)


def _leadership(rows: list[tuple[Any, ...]]) -> LeadershipRow | None:
    if not rows:
        return None
    name, holder, term, expires_at = rows[0]
    until = parse_timestamp(expires_at)
    assert until is not None
    return LeadershipRow(name, holder, term, until)
