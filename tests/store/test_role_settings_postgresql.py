"""What a role, or a database, has set for its sessions does not reach a worker's own."""

import pytest
from django.db import connections

from django_jobs.serialization import encode
from django_jobs.store import own_store
from django_jobs.store.rows import NewJob
from django_jobs.store.statements import Statement

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]

ODD = {
    "DateStyle": "German", "IntervalStyle": "sql_standard", "TimeZone": "Pacific/Kiritimati", "array_nulls": "off",
    "idle_session_timeout": "100", "statement_timeout": "1", "lock_timeout": "1", "enable_indexscan": "off",
    "default_transaction_isolation": "serializable", "standard_conforming_strings": "off", "backslash_quote": "on",
}  # fmt: skip


def test_a_worker_goes_on_whatever_its_role_has_set(monkeypatch):
    set_up = " ".join(f"-c {name}={value}" for name, value in ODD.items())
    options = {**connections.settings["default"].get("OPTIONS", {}), "options": set_up}
    monkeypatch.setitem(connections.settings["default"], "OPTIONS", options)
    store = own_store("default")
    worker = store.register_worker("host", 1, '["*"]', 1, "1", 300.0).id

    jobs = store.insert_many(
        [NewJob("tests.odd", args=encode(["\\ \" ' é"])), NewJob("tests.odd", queue_name="a'b\\c")]
    )
    beat = store.heartbeat(worker, 30.0)
    claimed = store.claim(worker, "a'b\\c", 5)

    assert beat is not None
    assert [job.id for job in claimed] == [jobs[1].id]
    assert abs((claimed[0].attempted_at - beat.now).total_seconds()) < 60
    (idle,) = store.session.fetch(Statement("show", "SELECT current_setting('idle_session_timeout')", ""), {})
    assert idle == ("0",), "who waits for work is not ended for that"
    assert store.due_schedules().now is None
    assert store.session.connects == 1
    store.close()
