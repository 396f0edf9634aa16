"""Schedules: in plain words, with what became of them; run now, pause, resume."""

import datetime as dt
import itertools
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from django_jobs import JobDefinition
from django_jobs.models import Job, Schedule
from tests.admin.conftest import entries, text_of, told, url, user_with
from tests.factories import JobFactory

pytestmark = pytest.mark.django_db


def make(key: str = "report", **columns: Any) -> Schedule:
    now = timezone.now()
    common = {
        "name": "tests.workload.jobs.nothing",
        "expression": "30 2 * * MON-FRI",
        "timezone": "Europe/Berlin",
        "owed_after": now,
        "created_at": now,
        "updated_at": now,
    }
    return Schedule.objects.create(key=key, **{**common, **columns})


def listed(client: Client) -> str:
    return text_of(client.get(url("schedule_changelist")))


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("30 2 * * MON-FRI", "At 02:30 on Monday through Friday"),
        ("@daily", "At 00:00 every day"),
        ("every 300 s", "Every 5 minutes"),
        ("every 3600 s", "Every hour"),
        ("every 5400 s", "Every 1 hour and 30 minutes"),
        ("every 1.5 s", "Every 1.5 seconds"),
        ("every 86400 s", "Every day"),
        ("no cron at all", "can&#x27;t be read"),
    ],
)
def test_when_it_runs_in_plain_words(admin: Client, expression: str, words: str) -> None:
    schedule = make(expression=expression, timezone="UTC" if "every" in expression else "Europe/Berlin")

    for page in (listed(admin), text_of(admin.get(url("schedule_change", schedule.pk)))):
        assert words.replace("&#x27;", "'") in page or words in page


def test_the_next_ticks_are_told(admin: Client) -> None:
    schedule = make(expression="every 3600 s", timezone="UTC")

    ticks = admin.get(url("schedule_change", schedule.pk)).context["shown"].next_ticks

    assert len(ticks) == 5
    assert ticks[0] > timezone.now()
    assert {later - sooner for sooner, later in itertools.pairwise(ticks)} == {dt.timedelta(hours=1)}
    Schedule.objects.update(paused_at=timezone.now())
    assert admin.get(url("schedule_change", schedule.pk)).context["shown"].next_ticks == []


def test_what_became_of_the_last_job(admin: Client) -> None:
    now = timezone.now()
    dead = JobFactory(failed=True, created_at=now, run_after=now)
    make("dead", last_job_id=dead.pk)
    make("deleted", last_job_id=10**9)
    make("never")
    make("failing", last_error="No job is registered as '<b>x</b>'.")

    page = listed(admin)

    assert (
        f'<a href="{url("job_change", dead.pk)}"><span class="dj-badge dj-failed">failed</span></a>' in page
    )
    assert "ValueError" in page
    assert "job 1000000000, deleted since" in page
    assert "none yet" in page
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert "<b>x" not in page


def test_secrets_among_the_arguments_are_hidden(admin: Client) -> None:
    schedule = make(kwargs={"api_key": "sk-very-secret", "kind": "sales"})

    page = text_of(admin.get(url("schedule_change", schedule.pk)))

    assert "sales" in page
    assert "sk-very-secret" not in page


def test_run_now(admin: Client) -> None:
    schedule = make(kwargs={"number": 3})

    answer = admin.post(url("schedule_run", schedule.pk), follow=True)

    job = Job.objects.get()
    assert (job.name, job.kwargs, job.metadata["schedule"]) == (schedule.name, {"number": 3}, "report")
    (message,) = told(answer)
    assert message == f'The schedule report has a job now: <a href="{url("job_change", job.pk)}">{job.pk}</a>'
    assert entries() == [(str(schedule.pk), "report", f"Run now: job {job.pk}.")]


def test_what_can_not_be_run_says_why(admin: Client) -> None:
    unknown, wrong = make("<i>unknown</i>", name="app.gone"), make("wrong", kwargs={"nonsense": 1})

    answer = admin.post(url("schedule_run", unknown.pk), follow=True)
    assert "No job is registered as 'app.gone'" in told(answer)[0]
    assert "<i>unknown" not in text_of(answer)
    answer = admin.post(url("schedule_run", wrong.pk), follow=True)
    assert "nonsense" in told(answer)[0]
    assert Job.objects.count() == 0
    assert entries() == []


def test_and_tells_nothing_that_is_hidden(admin: Client, define) -> None:
    def key(user: str, password: str) -> str:
        raise ValueError(f"no key of {user} and {password}")

    secret = make(name=define(lambda user, password: None, unique=key).name, args=["ann", "s3cret-and-long"])

    (message,) = told(admin.post(url("schedule_run", secret.pk), follow=True))

    assert message.endswith("no key of ann and [hidden]")


def test_one_at_a_time_is_one_at_a_time(admin: Client, define) -> None:
    once: JobDefinition[Any, Any] = define(lambda: None, unique="just one")
    schedule = make(name=once.name)
    admin.post(url("schedule_run", schedule.pk))

    answer = admin.post(url("schedule_run", schedule.pk), follow=True)

    assert "a live job holds the unique key" in told(answer)[-1]
    assert Job.objects.count() == 1
    assert len(entries()) == 1


def test_pause_and_resume(admin: Client) -> None:
    schedule = make(next_tick=timezone.now())

    answer = admin.post(url("schedule_pause", schedule.pk), follow=True)

    schedule.refresh_from_db()
    assert schedule.paused_at is not None
    assert told(answer) == ["The schedule report is paused: its ticks pass without a job."]
    assert ">Resume</button>" in text_of(answer)

    admin.post(url("schedule_resume", schedule.pk))

    schedule.refresh_from_db()
    assert schedule.paused_at is None
    assert [entry[2] for entry in entries()] == ["Paused.", "Resumed."]
    assert "Resumed." in text_of(admin.get(url("schedule_history", schedule.pk)))


def test_one_that_the_code_has_no_more_can_only_be_looked_at(admin: Client) -> None:
    schedule = make(removed_at=timezone.now())

    assert "1 schedule that the code declares no more" in listed(admin)
    page = text_of(admin.get(url("schedule_change", schedule.pk)))
    assert "dj-actions" not in page


@pytest.mark.parametrize("view", ["run", "pause", "resume"])
def test_each_needs_the_permission_a_post_and_a_token(view: str) -> None:
    schedule = make(paused_at=timezone.now() if view == "resume" else None)
    before = Schedule.objects.values().get()
    address = url(f"schedule_{view}", schedule.pk)

    client = Client()
    client.force_login(user_with("view_schedule", "view_job", "control_worker", "pause_queue", "edit_job"))
    assert client.post(address).status_code == 403
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user_with("view_schedule", "run_schedule"))
    assert strict.post(address).status_code == 403
    assert strict.get(address).status_code == 405
    assert (Schedule.objects.values().get(), Job.objects.count(), entries()) == (before, 0, [])
    allowed = Client()
    allowed.force_login(user_with("view_schedule", "run_schedule"))
    assert allowed.post(address).status_code == 302
    assert (Schedule.objects.values().get(), Job.objects.count()) != (before, 0)
    assert allowed.post(url(f"schedule_{view}", 10**9)).status_code == 404


def test_no_row_is_added_changed_or_deleted_by_hand(admin: Client) -> None:
    schedule = make()
    assert admin.get(url("schedule_add")).status_code == 403
    assert admin.post(url("schedule_change", schedule.pk), {"expression": "* * * * *"}).status_code == 403
    assert admin.post(url("schedule_delete", schedule.pk), {"post": "yes"}).status_code == 403
    assert Schedule.objects.get().expression == "30 2 * * MON-FRI"


def test_a_damaged_row_can_be_looked_at(admin: Client) -> None:
    schedule = make(
        "<b>",
        name="<i>" * 20,
        args={"no": "list"},
        kwargs=[1],
        options="text",
        missed="odd",
        timezone="No/Where",
    )

    for page in (listed(admin), text_of(admin.get(url("schedule_change", schedule.pk)))):
        assert "<i>" not in page
        assert "can't be read" in page or "can&#x27;t be read" in page
