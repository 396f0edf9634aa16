"""Workers: what is shown of them, and asking them to be quiet or to stop."""

import datetime as dt
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from django_jobs.models import Job, Leadership, Worker
from tests.admin.conftest import entries, text_of, told, url, user_with
from tests.factories import JobFactory

pytestmark = pytest.mark.django_db

SECOND = dt.timedelta(seconds=1)


def make(**columns: Any) -> Worker:
    now = timezone.now()
    common = {
        "host": "web-1",
        "pid": 7,
        "queues": ["mail", "*"],
        "concurrency": 10,
        "started_at": now,
        "heartbeat_at": now,
        "expires_at": now + 60 * SECOND,
    }
    return Worker.objects.create(**{**common, **columns})


def shown(client: Client) -> dict[int, Any]:
    page = client.get(url("worker_changelist"))
    return {each.worker.pk: each for each in [*page.context["live_workers"], *page.context["gone_workers"]]}


def test_the_state_of_a_worker_in_a_word(admin: Client) -> None:
    now = timezone.now()
    words = {
        make().pk: "alive",
        make(quiet_requested_at=now).pk: "quiet",
        make(quiet_requested_at=now, stop_requested_at=now).pk: "stopping",
        make(expires_at=now - 5 * SECOND, stop_requested_at=now).pk: "late",
        make(expires_at=now - 5 * SECOND, lost_at=now).pk: "lost",
        make(stopped_at=now, quiet_requested_at=now).pk: "stopped",
    }

    assert {id_: each.word for id_, each in shown(admin).items()} == words


def test_the_leader_is_told_while_it_holds_the_office(admin: Client) -> None:
    now = timezone.now()
    leader, other, gone = make(leads=True), make(), make(leads=True, stopped_at=now)
    office = Leadership.objects.create(
        name="keeper", holder="x", acquired_at=now, expires_at=now + 10 * SECOND
    )

    assert {id_ for id_, each in shown(admin).items() if each.leads} == {leader.pk}
    assert other.pk not in {id_ for id_, each in shown(admin).items() if each.leads}
    assert gone.pk in shown(admin)

    office.expires_at = now - SECOND
    office.save()
    assert not [each for each in shown(admin).values() if each.leads]


def test_what_a_worker_runs(admin: Client) -> None:
    now = timezone.now()
    busy, idle = make(running=7, memory=131_400_000), make()
    jobs = [
        JobFactory(
            state="running",
            worker=busy,
            created_at=now,
            run_after=now,
            attempted_at=now,
            name=f"app.task{number}",
        )
        for number in range(7)
    ]
    JobFactory(created_at=now, run_after=now)

    workers = shown(admin)

    assert [job.id for job in workers[busy.pk].jobs] == [job.pk for job in jobs[:5]]
    assert workers[busy.pk].more == 2
    assert workers[idle.pk].jobs == []
    text = text_of(admin.get(url("worker_changelist")))
    assert "125.3\N{NO-BREAK SPACE}MB" in text
    assert '<span title="app.task0">task0</span>' in text
    assert "7 of 20 slots busy" in text
    one = admin.get(url("worker_change", busy.pk))
    assert [job.id for job in one.context["shown"].jobs] == [job.pk for job in jobs]


def test_a_worker_of_which_nothing_is_right(admin: Client) -> None:
    worker = make(host="<script>alert(1)</script>", queues="<i>", version="<b>", concurrency=0, running=-3)

    for page in (admin.get(url("worker_changelist")), admin.get(url("worker_change", worker.pk))):
        assert page.status_code == 200
        for tag in ("<script>alert", "<i>", "<b>"):
            assert tag not in text_of(page)


def test_quiet_and_back(admin: Client) -> None:
    worker = make()
    address = url("worker_change", worker.pk)

    answer = admin.post(url("worker_quiet", worker.pk), {"next": address}, follow=True)

    worker.refresh_from_db()
    assert worker.quiet_requested_at is not None
    assert answer.redirect_chain[-1][0] == address
    assert told(answer) == [
        f"Worker web-1:7 ({worker.pk}) claims no more jobs from its next heartbeat on; what it runs goes on."
    ]
    assert ">Unquiet</button>" in text_of(answer)

    admin.post(url("worker_unquiet", worker.pk))

    worker.refresh_from_db()
    assert worker.quiet_requested_at is None
    name = f"web-1:7 ({worker.pk})"
    assert entries() == [
        (str(worker.pk), name, "Asked to be quiet."),
        (str(worker.pk), name, "Asked to claim jobs again."),
    ]
    assert "Asked to be quiet." in text_of(admin.get(url("worker_history", worker.pk)))


def test_a_stop_is_asked_for_first(admin: Client) -> None:
    worker = make()

    page = admin.get(url("worker_stop", worker.pk))

    worker.refresh_from_db()
    assert worker.stop_requested_at is None
    assert "Stop the worker web-1:7" in text_of(page)

    answer = admin.post(url("worker_stop", worker.pk), {"confirmed": "yes"}, follow=True)

    worker.refresh_from_db()
    assert worker.stop_requested_at is not None
    assert "stops after its next heartbeat" in told(answer)[0]
    assert entries() == [(str(worker.pk), f"web-1:7 ({worker.pk})", "Asked to stop.")]
    assert ">Stop</a>" not in text_of(answer), "it is on its way"


def test_who_is_gone_is_asked_nothing(admin: Client) -> None:
    stopped = make(stopped_at=timezone.now())

    for id_ in (stopped.pk, 10**12):
        answer = admin.post(url("worker_quiet", id_), follow=True)
        assert told(answer) == [f"There is no worker {id_} that is alive."]
    assert entries() == []
    assert "dj-button-danger" not in text_of(admin.get(url("worker_change", stopped.pk)))


@pytest.mark.parametrize("view", ["quiet", "unquiet", "stop"])
def test_each_needs_the_permission_a_post_and_a_token(view: str) -> None:
    worker = make(quiet_requested_at=timezone.now()) if view == "unquiet" else make()
    before = Worker.objects.values().get()
    address = url(f"worker_{view}", worker.pk)

    client = Client()
    client.force_login(user_with("view_worker", "pause_queue", "purge_job", "cancel_job", "run_schedule"))
    assert client.post(address).status_code == 403
    assert client.get(address).status_code == (403 if view == "stop" else 405)
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user_with("view_worker", "control_worker"))
    assert strict.post(address).status_code == 403
    assert strict.get(address).status_code == (200 if view == "stop" else 405)
    assert Worker.objects.values().get() == before
    assert entries() == []
    allowed = Client()
    allowed.force_login(user_with("view_worker", "control_worker"))
    assert allowed.post(address).status_code == 302
    assert Worker.objects.values().get() != before


@pytest.mark.parametrize("id_", ["999999", "0", "abc", "9" * 30])
def test_there_is_no_such_worker(admin: Client, id_: str) -> None:
    assert admin.get(f"/admin/django_jobs/worker/{id_}/change/").status_code == 404


def test_no_row_is_added_changed_or_deleted_by_hand(admin: Client) -> None:
    worker = make()
    assert admin.get(url("worker_add")).status_code == 403
    assert admin.post(url("worker_change", worker.pk), {"host": "x"}).status_code == 403
    assert admin.post(url("worker_delete", worker.pk), {"post": "yes"}).status_code == 403
    assert Worker.objects.get().host == "web-1"
    assert Job.objects.count() == 0


def test_it_says_so_when_nobody_works(admin: Client) -> None:
    assert "manage.py runjobs" in text_of(admin.get(url("worker_changelist")))
