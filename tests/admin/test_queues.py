"""Queues: what is shown, pause and resume, and emptying one."""

import datetime as dt

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.utils import timezone

from django_jobs.models import Job, Queue, Worker
from tests.admin.conftest import entries, text_of, told, url, user_with
from tests.factories import AdminFactory, JobFactory

pytestmark = pytest.mark.django_db

HOSTILE = "<b>'mail'</b>/\"&?#é_2F"


def waiting(queue: str, count: int = 1, age: float = 0.0, **columns: object) -> list[Job]:
    due = timezone.now() - dt.timedelta(seconds=age)
    return JobFactory.create_batch(count, queue_name=queue, created_at=due, run_after=due, **columns)


def test_a_queue_is_shown_with_what_waits_and_who_serves_it(admin: Client) -> None:
    now = timezone.now()
    worker = Worker.objects.create(
        host="web-1",
        pid=7,
        queues=["mail"],
        started_at=now,
        heartbeat_at=now,
        expires_at=now + dt.timedelta(minutes=1),
    )
    waiting("mail", 3, age=125)
    waiting("reports")

    page = admin.get(url("queue_changelist"))

    shown = {each.status.name: each for each in page.context["queues"]}
    assert sorted(shown) == ["mail", "reports"]
    assert (shown["mail"].status.available.number, shown["mail"].is_late) == (3, True)
    assert [each.id for each in shown["mail"].workers] == [worker.pk]
    assert shown["reports"].workers == []
    text = text_of(page)
    assert '<a href="' + url("worker_change", worker.pk) + '">web-1:7</a>' in text
    assert "no worker" in text
    assert "2 min 5 s" in text
    assert 'href="/admin/django_jobs/job/?queue=mail&amp;state=available">3</a>' in text


@pytest.mark.parametrize("page", ["queue_changelist", "job_overview"])
def test_of_very_many_queues_those_in_need_are_listed(admin: Client, page: str) -> None:
    """There may be one for each user of the site."""
    now = timezone.now()
    times = {"created_at": now, "updated_at": now}
    Queue.objects.bulk_create(Queue(name=f"user {number:03}", **times) for number in range(210))
    waiting("user 209", 1, age=600)
    waiting("user 003", 2)

    shown = admin.get(url(page))

    names = [each[0].name if page == "job_overview" else each.status.name for each in shown.context["queues"]]
    assert (len(names), names == sorted(names)) == (200, True)
    assert {"user 003", "user 209"} <= {*names}
    assert "More were found than are shown." in text_of(shown)
    Queue.objects.filter(name__lt="user 100").delete()
    assert "More were found" not in text_of(admin.get(url(page)))
    assert admin.get(url("queue_change", "user 150")).status_code == 200


def test_pause_and_resume(admin: Client) -> None:
    waiting("mail")
    address = url("queue_change", "mail")

    answer = admin.post(url("queue_pause"), {"queue": "mail", "next": address}, follow=True)

    assert answer.redirect_chain[-1][0] == address
    assert told(answer) == [
        "The queue mail is paused: no job of it starts from the workers' next heartbeats on."
    ]
    assert Queue.objects.get(name="mail").paused_at is not None
    assert ">Resume</button>" in text_of(answer)

    answer = admin.post(url("queue_resume"), {"queue": "mail"}, follow=True)

    assert answer.redirect_chain[-1][0] == url("queue_changelist")
    assert Queue.objects.get(name="mail").paused_at is None
    assert entries() == [("mail", "mail", "Paused."), ("mail", "mail", "Resumed.")]
    history = text_of(admin.get(url("queue_history", "mail")))
    assert "Paused." in history
    assert "Resumed." in history


def test_emptying_asks_what(admin: Client) -> None:
    waiting("mail", 3)
    waiting("mail", 2, failed=True)
    waiting("other")

    page = admin.get(url("queue_purge"), {"queue": "mail"})

    counts = {choice.state: (choice.number.number, choice.is_preset) for choice in page.context["choices"]}
    assert counts["available"] == (3, True)
    assert counts["failed"] == (2, False)
    assert Job.objects.count() == 6, "nothing is deleted by asking"

    answer = admin.post(
        url("queue_purge"), {"queue": "mail", "state": ["available", "scheduled"]}, follow=True
    )

    assert told(answer) == ["3 jobs of the queue mail were deleted."]
    assert answer.redirect_chain[-1][0] == url("queue_change", "mail")
    assert sorted(Job.objects.values_list("queue_name", "state")) == [
        ("mail", "failed"),
        ("mail", "failed"),
        ("other", "available"),
    ]
    assert entries() == [(None, "queue mail", "Deleted 3 jobs of the queue: available, scheduled.")]


def test_emptying_nothing(admin: Client) -> None:
    waiting("mail")

    answer = admin.post(url("queue_purge"), {"queue": "mail", "state": ["running", "nonsense"]})

    assert told(answer) == ["Nothing was deleted: no state was chosen."]
    assert Job.objects.count() == 1
    assert entries() == []


def test_running_jobs_are_never_deleted(admin: Client) -> None:
    now = timezone.now()
    worker = Worker.objects.create(host="a", pid=1, started_at=now, heartbeat_at=now, expires_at=now)
    waiting("mail", state="running", worker=worker)

    admin.post(url("queue_purge"), {"queue": "mail", "state": ["available", "running"]})

    assert Job.objects.count() == 1


def test_one_request_deletes_so_many_and_says_that_there_is_more(admin: Client, monkeypatch) -> None:
    monkeypatch.setattr("django_jobs.admin.queues.STEPS", 1)
    waiting("mail", 1200)

    answer = admin.post(url("queue_purge"), {"queue": "mail", "state": ["available"]}, follow=True)

    assert told(answer) == [
        "1,000 jobs of the queue mail were deleted.",
        "There may be more: ask again to delete those, too.",
    ]
    assert answer.redirect_chain[-1][0] == f"{url('queue_purge')}?queue=mail"
    assert Job.objects.count() == 200


@pytest.mark.parametrize(
    ("view", "permission"), [("pause", "pause_queue"), ("resume", "pause_queue"), ("purge", "purge_job")]
)
def test_each_needs_its_permission_a_post_and_a_token(view: str, permission: str) -> None:
    waiting("mail")
    waiting("mail", failed=True)
    fields = {"queue": "mail", "state": ["available"]}
    viewing = ["view_queue", "view_job", "view_worker"]
    others = {"pause_queue", "purge_job", "cancel_job", "retry_job", "edit_job", "control_worker"} - {
        permission
    }

    client = Client()
    client.force_login(user_with(*viewing, *others))
    assert client.post(url(f"queue_{view}"), fields).status_code == 403

    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user_with(*viewing, permission))
    assert strict.post(url(f"queue_{view}"), fields).status_code == 403
    if view != "purge":
        assert strict.get(url(f"queue_{view}"), fields).status_code == 405
    assert (Job.objects.count(), Queue.objects.count(), entries()) == (2, 0, [])

    allowed = Client()
    allowed.force_login(user_with(*viewing, permission))
    assert allowed.post(url(f"queue_{view}"), fields).status_code == 302
    page = text_of(allowed.get(url("queue_changelist"), headers={"X-Django-Jobs-Live": "1"}))
    assert ("Purge</a>" in page) == (permission == "purge_job")
    assert (">Pause</button>" in page or ">Resume</button>" in page) == (permission == "pause_queue")


def test_a_hostile_name_is_no_more_than_a_name(admin: Client) -> None:
    waiting(HOSTILE, 2)
    address = url("queue_change", quote(HOSTILE))

    for page in (
        admin.get(url("queue_changelist")),
        admin.get(address),
        admin.get(url("queue_purge"), {"queue": HOSTILE}),
    ):
        assert page.status_code == 200
        assert "<b>'mail'" not in text_of(page)
    admin.post(url("queue_pause"), {"queue": HOSTILE, "next": address})
    assert Queue.objects.get().name == HOSTILE
    assert "Paused." in text_of(admin.get(url("queue_history", quote(HOSTILE))))
    answer = admin.post(url("queue_purge"), {"queue": HOSTILE, "state": "available"}, follow=True)
    assert answer.redirect_chain[-1][0] == address
    assert Job.objects.count() == 0


@pytest.mark.parametrize("name", ["", "x" * 101, "a\x00b"])
def test_what_can_be_no_queue_is_not_found(admin: Client, name: str) -> None:
    assert admin.post(url("queue_pause"), {"queue": name}).status_code == 404
    assert admin.get(url("queue_purge"), {"queue": name}).status_code == 404
    if name:
        assert admin.get(url("queue_change", quote(name))).status_code == 404
        assert admin.get(url("queue_history", quote(name))).status_code == 404


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_nobody_is_sent_to_another_site(admin: Client, target: str) -> None:
    answer = admin.post(url("queue_pause"), {"queue": "mail", "next": target})

    assert answer["Location"] == url("queue_changelist")


def test_no_row_is_added_changed_or_deleted_by_hand(admin: Client) -> None:
    Queue.objects.create(name="mail", created_at=timezone.now(), updated_at=timezone.now())
    assert admin.get(url("queue_add")).status_code == 403
    assert admin.post(url("queue_change", "mail"), {"name": "x"}).status_code == 403
    assert admin.post(url("queue_delete", "mail"), {"post": "yes"}).status_code == 403
    assert Queue.objects.get().name == "mail"


def test_a_queue_that_nothing_is_known_of(admin: Client) -> None:
    page = admin.get(url("queue_change", "nowhere"))

    assert page.status_code == 200
    assert "no worker" in text_of(page)
    assert admin.get(url("queue_history", "nowhere")).status_code == 200


def test_notes_of_a_queue_are_shown(admin: Client) -> None:
    AdminFactory()
    now = timezone.now()
    Queue.objects.create(name="mail", metadata={"owner": "<i>post</i>"}, created_at=now, updated_at=now)

    page = text_of(admin.get(url("queue_change", "mail")))

    assert "&lt;i&gt;post&lt;/i&gt;" in page
    assert "<i>post" not in page
