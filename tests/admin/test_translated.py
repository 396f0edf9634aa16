"""What the pages say is marked for translation, all of it: in a language in which every marked string is bracketed,
nothing stands outside of brackets but what comes from rows, and what is Django's."""

import pytest
from django.utils import timezone

from django_jobs import operations
from django_jobs.models import Job, Schedule, Worker
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
        if words := words_left(admin.get(f"/admin/django_jobs/{page}", follow=True)):
            found[page] = words

    assert found == {}


@pytest.mark.django_db
def test_what_is_said_of_states_and_reasons_is_marked(admin, make, bracketed, monkeypatch):
    (running,) = make("running")
    reply = admin.get(f"/admin/django_jobs/job/{running}/edit/", follow=True)
    assert "this one is ⟦running⟧" in reply.text
    asked = {"action": "delete", "scope": "all", "query": "?state=failed"}
    assert "⟦state ⟦failed⟧⟧" in admin.post("/admin/django_jobs/job/act/", asked).text
    asked["query"] = "?"
    assert "⟦completed⟧, ⟦failed⟧, ⟦cancelled⟧" in admin.post("/admin/django_jobs/job/act/", asked).text
    left = operations.Result()
    left.skip(running, text("it is %(state)s", state=state_text("running")))
    monkeypatch.setattr(operations, "delete", lambda *_, **__: left)
    purged = {"queue": "mail", "state": ["available"]}
    reply = admin.post("/admin/django_jobs/queue/purge/", purged, follow=True)
    assert "⟦it is ⟦running⟧⟧" in reply.text
