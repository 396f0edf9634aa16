"""How a batch of attempts is written, and what became of each: also where the answer was lost, or the job is gone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Sequence

from django_jobs.serialization import timestamp_text
from django_jobs.store.answers import Ended
from django_jobs.store.base import Store
from django_jobs.store.outcomes import CANCELLED, COMPLETED, FAILED, RETRY, SNOOZED
from django_jobs.store.rows import (
    ATTEMPT,
    CLAIMS,
    ERROR_CLASS,
    ERRORS,
    FINALIZED_AT,
    HOLDS_KEY,
    MAX_ATTEMPTS,
    RESULT,
    STATE,
    JobRow,
    Outcome,
)
from django_jobs.worker.attempted import Attempted
from django_jobs.worker.followers import is_followed
from django_jobs.worker.retention import Retention

# What a job can be after an outcome was stored; cancelled by request, too.
_STATES_AFTER = {
    COMPLETED: ("completed",),
    FAILED: ("failed", "cancelled"),
    CANCELLED: ("cancelled",),
    RETRY: ("scheduled", "available", "failed", "cancelled"),
    SNOOZED: ("scheduled", "available", "cancelled"),
}


def finish(store: Store, batch: Sequence[Attempted], retention: Retention) -> list[Ended]:
    """Store the outcomes of a batch, and delete with it what is not kept: one statement, or one of each kind."""
    whole_rows = is_followed(batch)  # who follows jobs gets the rows as stored; nobody else needs them
    if not retention.deletes_at_once:
        return _finish(store, [attempted.outcome for attempted in batch], whole_rows)
    kept: list[Outcome] = []
    going: list[Outcome] = []
    unkept: dict[int, Collection[str]] = {}
    for attempted in batch:
        if _has_deleted_itself(attempted):
            continue
        if states := retention.unkept(attempted):
            unkept[attempted.outcome.id] = states
            going.append(attempted.outcome)
        else:
            kept.append(attempted.outcome)
    ended = _finish(store, kept, whole_rows) if kept else []
    if going:
        ended += store.finish_and_delete(going, unkept, whole_rows=whole_rows)
    return ended


def _finish(store: Store, outcomes: Sequence[Outcome], whole_rows: bool) -> list[Ended]:
    return store.finish(outcomes, whole_rows=True) if whole_rows else store.finish(outcomes)


def reconcile(
    batch: Sequence[Attempted],
    ended: Sequence[Ended],
    repeated: bool,
    retention: Retention,
    is_lost: Callable[[JobRow], bool],
) -> dict[int, Ended]:
    """What became of each job of a batch that was finished, by id; one that is not in it was gone before.

    :param repeated: whether an earlier try may have stored the batch, and its answer was lost.
    :param is_lost: whether the worker may have lost the claim of a job.
    """
    by_id = {item.id: item for item in ended}
    if repeated:
        for attempted in batch:
            item = by_id.get(attempted.outcome.id)
            if item is None:
                state = _deleted_as(attempted, retention) if retention.deletes_at_once else None
                if state is not None and not is_lost(attempted.job):
                    job = _as_deleted(attempted, state)
                    by_id[job.id] = Ended(job.id, state, True, job)
            elif (
                # The claim is the same, and over.
                item.job is not None
                and not item.stored
                and item.state in _STATES_AFTER[attempted.outcome.kind]
                and item.job.values[CLAIMS] == attempted.outcome.claims
            ):
                by_id[item.id] = item._replace(stored=True)
    unstored = [item for item in ended if not item.stored]
    if unstored:
        claims = {attempted.outcome.id: attempted.outcome.claims for attempted in batch}
        for item in unstored:
            # Completed in this very claim: the job's own transaction has done that, though the attempt does not know,
            # since the answer to its commit was lost, or it was given up before.
            if (
                item.state == "completed"
                and item.job is not None
                and item.job.values[CLAIMS] == claims.get(item.id)
            ):
                by_id[item.id] = item._replace(stored=True)
    for attempted in batch:
        if attempted.stored:
            # The job has completed itself, and has committed that; the finish found it so, or it is deleted by now.
            id_ = attempted.outcome.id
            item = by_id.get(id_)
            row = attempted.job if _has_deleted_itself(attempted) else None
            by_id[id_] = Ended(
                id_, "completed", True, item.job if item and item.state == "completed" else row
            )
    return by_id


def _has_deleted_itself(attempted: Attempted) -> bool:
    """Whether the job's own completion has deleted it: then its row is the one that was stored."""
    return attempted.stored and attempted.job.values[STATE] == "completed"


def _deleted_as(attempted: Attempted, retention: Retention) -> str | None:
    """The state in which an attempt has ended its job, if that is gone because of it.

    Nobody deletes a job that runs; so, as long as the claim was this worker's, the finish itself has deleted it.
    """
    unkept = retention.unkept(attempted)
    job, kind = attempted.job.values, attempted.outcome.kind
    last = kind == FAILED or (kind == RETRY and job[ATTEMPT] >= job[MAX_ATTEMPTS])
    state = "completed" if kind == COMPLETED else "failed" if last else "cancelled"
    if state in unkept:
        return state
    return "cancelled" if "cancelled" in unkept else None


def _as_deleted(attempted: Attempted, state: str) -> JobRow:
    """The row as it was stored and deleted, but for the moment of it, which the lost answer had."""
    outcome = attempted.outcome
    values = list(attempted.job.values)
    values[STATE] = state
    values[FINALIZED_AT] = timestamp_text(dt.datetime.now(dt.UTC))
    values[HOLDS_KEY] = False
    values[RESULT] = outcome.result
    values[ERRORS] = outcome.errors or values[ERRORS]
    values[ERROR_CLASS] = None if state == "completed" else outcome.error_class or values[ERROR_CLASS]
    return JobRow(tuple(values))
