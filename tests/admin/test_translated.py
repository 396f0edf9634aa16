"""What the pages say is marked for translation, all of it: in a language in which every marked string is bracketed,
nothing stands outside of brackets but what comes from rows, and what is Django's."""

import datetime as dt

import pytest
from django.utils import timezone

from django_jobs import operations
from django_jobs.models import Job, Queue, Schedule, Worker
from django_jobs.states import State, state_text
from django_jobs.texts import text
from testproject.demo import data
from tests.admin.brackets import words_left


@pytest.mark.django_db
def test_all_is_marked(admin, bracketed):
    now = timezone.now()
    data.fill_history(now)
    data.fill_present(now)
    jobs = [Job.objects.filter(state=state).first() for state in State.values]
    waiting = Job.objects.filter(state="scheduled").first()
    pages = [
        *(f"job/{job.pk}/change/" for job in jobs if job is not None),
        f"job/{waiting.pk}/edit/",
        "job/overview/",
        "job/failures/",
        *("job/", "job/?q=%23&in=arguments", "job/?state=nonsense"),
        *("queue/", "queue/mail/change/", "queue/purge/?queue=mail"),
        *("worker/", f"worker/{Worker.objects.first().pk}/change/"),
        *("schedule/", f"schedule/{Schedule.objects.first().pk}/change/"),
    ]
    found = {}
    for page in pages:
        reply = admin.get(f"/admin/django_jobs/{page}", follow=True)
        if words := words_left(reply, known="nonsense Montag Freitag"):
            found[page] = words

    assert found == {}


@pytest.mark.django_db
def test_what_is_said_of_states_and_reasons_is_marked(admin, make, bracketed, monkeypatch):
    (running,) = make("running")
    reply = admin.get(f"/admin/django_jobs/job/{running}/edit/", follow=True)
    assert "this one is ⟧⟦running⟧" in reply.text
    asked = {"action": "delete", "scope": "all", "query": "?state=failed"}
    assert "⟦state ⟧⟦failed⟧" in admin.post("/admin/django_jobs/job/act/", asked).text
    asked["query"] = "?"
    assert "⟦completed⟧, ⟦failed⟧, ⟦cancelled⟧" in admin.post("/admin/django_jobs/job/act/", asked).text
    left = operations.Result()
    left.skip(running, text("it is %(state)s", state=state_text("running")))
    monkeypatch.setattr(operations, "delete", lambda *_, **__: left)
    purged = {"queue": "mail", "state": ["available"]}
    reply = admin.post("/admin/django_jobs/queue/purge/", purged, follow=True)
    assert "⟦it is ⟧⟦running⟧" in reply.text


@pytest.mark.django_db
def test_odd_rows_and_empty_pages(admin, make, define, worker, bracketed):
    now = timezone.now()
    soon = now + dt.timedelta(hours=1)
    hidden = define(lambda a: None, redact=True).using(run_after=dt.timedelta(hours=1)).enqueue(1).id
    (unknown,) = make("scheduled", name="tests.gone", run_after=soon)
    (large,) = make("scheduled", args=["x" * 300_000], run_after=soon)
    (odd,) = make("scheduled", errors={"odd": 1}, attempt=1, tags=5, metadata=[1], run_after=soon)
    (cancelling,) = make("running", cancel_requested_at=now, metadata={"progress": {"done": 1, "total": 3}})
    (keyed,) = make("completed", unique_key="k", holds_key=True, key_until=now)
    make("failed", unique_key="k", metadata={"schedule": "s"})
    Queue.objects.create(name="alone", paused_at=now, created_at=now, updated_at=now)
    ago = now - dt.timedelta(minutes=5)
    columns = {"host": "web1", "pid": 1, "started_at": ago, "heartbeat_at": ago, "expires_at": soon}
    workers = [
        Worker.objects.create(**{**columns, **more})
        for more in (
            {"quiet_requested_at": now}, {"stop_requested_at": now}, {"expires_at": ago}, {"lost_at": now},
            {"stopped_at": now}, {"queues": ["*", "a,b"], "leads": True, "memory": 10**8},
        )
    ]  # fmt: skip
    columns = {"name": "x", "owed_after": now, "created_at": now, "updated_at": now}
    schedules = [
        Schedule.objects.create(**{**columns, "key": f"s{number}", **more})
        for number, more in enumerate((
            {"expression": "nonsense"}, {"expression": "every 60 s", "paused_at": now}, {"expression": "7 7 7 7 *"},
            {"expression": "@daily", "removed_at": now, "missed": "none", "last_job_id": 10**9},
            {"expression": "@daily", "missed": "all", "last_job_id": keyed},
        ))
    ]  # fmt: skip
    pages = [
        *(f"job/{id_}/change/" for id_ in (unknown, large, odd, cancelling, keyed, 10**9)),
        *(f"job/{id_}/edit/" for id_ in (hidden, unknown, large, odd, cancelling)),
        *("job/?q=nothing", "job/?q=nothing&in=arguments", "job/?q=5", "job/?state=pending"),
        *("job/?tag=x&error=E&key=k", "job/failures/?by=week", "queue/", "queue/x/change/"),
        *("job/overview/?period=day", "job/overview/?period=week"),
        *("worker/", *(f"worker/{each.pk}/change/" for each in workers), f"worker/{workers[0].pk}/stop/"),
        *("schedule/", *(f"schedule/{each.pk}/change/" for each in schedules)),
    ]  # fmt: skip
    found = {}
    for page in pages:
        reply = admin.get(f"/admin/django_jobs/{page}", follow=True)
        if words := words_left(reply, known="nothing user hidden"):
            found[page] = words
    for sent in (
        {"action": "delete", "job": [unknown]}, {"action": "cancel", "scope": "all", "query": "?queue=default"},
        {"action": "update", "scope": "all", "query": "?state=scheduled", "to_queue": "mail", "to_priority": "5"},
    ):  # fmt: skip
        if words := words_left(admin.post("/admin/django_jobs/job/act/", sent), sent):
            found[str(sent)] = words

    assert found == {}
