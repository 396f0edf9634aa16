"""The overview, and what all pages of the room share: navigation, the live part, who may see what."""

import datetime as dt
from urllib.parse import quote

import pytest
from django.test import Client
from django.utils import timezone

from django_jobs import operations
from django_jobs.models import Job, Schedule, Stat, Worker
from django_jobs.operations import status
from testproject.demo.data import fill_history, fill_present
from tests.admin.conftest import text_of, url, user_with
from tests.factories import JobFactory

pytestmark = pytest.mark.django_db

OVERVIEW = "/admin/django_jobs/job/overview/"
PAGES = {
    "overview": OVERVIEW,
    "queues": "/admin/django_jobs/queue/",
    "queue": "/admin/django_jobs/queue/mail/change/",
    "workers": "/admin/django_jobs/worker/",
    "schedules": "/admin/django_jobs/schedule/",
}
# A user without all permissions costs two statements more than the page, and the session and the user two.
AROUND = 4
STATEMENTS = {"overview": 11, "queues": 6, "queue": 8, "workers": 3, "schedules": 2}


@pytest.fixture
def shop(db) -> dt.datetime:
    now = timezone.now()
    fill_history(now)
    fill_present(now)
    return now


@pytest.fixture
def viewer() -> Client:
    """Somebody who may look at everything, and do nothing."""
    client = Client()
    client.force_login(user_with("view_job", "view_queue", "view_worker", "view_schedule"))
    return client


def test_it_tells_how_many_jobs_there_are_and_leads_to_them(admin: Client, shop: dt.datetime) -> None:
    page = text_of(admin.get(OVERVIEW))

    for state, count in operations.counts().items():
        if state in ("available", "scheduled", "running", "failed"):
            assert f'href="/admin/django_jobs/job/?state={state}"' in page
            assert f'<span class="dj-card-number">{count}</span>' in page
    assert "9 of 24 slots busy" in page


def test_it_counts_what_waits_in_more_queues_than_are_looked_at(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "MOST_HEADS", 2)
    for name in ("a", "b", "c"):
        JobFactory(state="available", queue_name=name)

    cards = {card.kind: card.number for card in admin.get(OVERVIEW).context["cards"]}

    assert cards["available"] == 3


def test_it_tells_what_is_wrong_and_leads_there(admin: Client, shop: dt.datetime) -> None:
    page = text_of(admin.get(OVERVIEW))

    unserved = "Queue reports-eu has waited 14 min; no worker serves it."
    assert (
        f'<li class="dj-error"><a href="/admin/django_jobs/queue/reports-eu/change/">{unserved}</a></li>'
        in page
    )
    assert "Queue imports is paused, and 3 jobs wait in it" in page
    assert (
        '<li class="dj-error"><a href="/admin/django_jobs/schedule/">Schedule newsletter could not run'
        in page
    )


def test_it_says_so_when_nothing_is_wrong(admin: Client) -> None:
    now = timezone.now()
    Worker.objects.create(
        host="web-1",
        pid=1,
        queues=["*"],
        started_at=now,
        heartbeat_at=now,
        expires_at=now + dt.timedelta(minutes=1),
    )

    assert "All is well" in text_of(admin.get(OVERVIEW))


def test_charts_add_up_to_the_history(admin: Client) -> None:
    now = timezone.now()
    minute = now.replace(second=0, microsecond=0)
    for age, outcome, count in (
        (1, "completed", 1200),
        (30, "completed", 34),
        (30, "failed", 5),
        (90, "completed", 7),
    ):
        Stat.objects.create(
            minute=minute - dt.timedelta(minutes=age), queue_name="mail", name="a", outcome=outcome, count=count,
            run_total=count * 0.25, wait_total=count * 2.0,
        )  # fmt: skip

    hour, day = admin.get(OVERVIEW), admin.get(OVERVIEW, {"period": "day"})

    completed, failed, times = hour.context["charts"]
    assert [series.total for series in completed.series] == ["1,234"]
    assert [series.total for series in failed.series] == ["5", "0"]
    assert [words for _when, words in completed.rows] == [["1,200"], ["34"]]
    assert [words for _when, words in times.rows] == [["2.0 s", "250 ms"]] * 2
    assert [series.total for series in day.context["charts"][0].series] == ["1,241"]
    assert '<td class="dj-number">1,200</td>' in text_of(hour)


@pytest.mark.parametrize(("period", "steps"), [("hour", 60), ("day", 48), ("week", 84), ("nonsense", 60)])
def test_a_period_has_its_steps(admin: Client, period: str, steps: int) -> None:
    answer = admin.get(OVERVIEW, {"period": period})

    assert {len(chart.starts) for chart in answer.context["charts"]} == {steps}


def test_what_is_refreshed_comes_without_the_shell(admin: Client, shop: dt.datetime) -> None:
    whole = admin.get(OVERVIEW)
    live = admin.get(OVERVIEW, headers={"X-Django-Jobs-Live": "1"})

    assert text_of(live).strip().startswith('<div id="dj-live"')
    assert "<html" not in text_of(live)
    assert "Queue reports-eu" in text_of(live)
    assert "X-Django-Jobs-Live" in whole["Vary"], "no cache takes the one for the other"
    assert "no-store" in live["Cache-Control"]
    assert "no-store" in whole["Cache-Control"]


@pytest.mark.parametrize("page", PAGES)
def test_who_may_not_see_a_page_gets_none(page: str) -> None:
    client = Client()
    assert client.get(PAGES[page]).status_code == 302, "nobody is signed in"
    needed = {"overview": "view_job", "workers": "view_worker", "schedules": "view_schedule"}.get(
        page, "view_queue"
    )
    others = {"view_job", "view_queue", "view_worker", "view_schedule"} - {needed}
    client.force_login(user_with(*others))
    assert client.get(PAGES[page]).status_code == 403
    client.force_login(user_with(needed))
    assert client.get(PAGES[page]).status_code == 200


def test_the_navigation_has_what_one_may_see(client: Client) -> None:
    client.force_login(user_with("view_job", "view_worker"))

    titles = [entry["title"] for entry in client.get(OVERVIEW).context["sections"]]

    assert "Overview" in titles
    assert "Workers" in titles
    assert "Queues" not in titles
    assert "Schedules" not in titles


# A shop's week takes longer to make than all pages take to look at: these tests look at one after the other.


def test_who_may_only_look_sees_no_button_that_does_something(viewer: Client, shop: dt.datetime) -> None:
    for page, address in PAGES.items():
        live = text_of(viewer.get(address, headers={"X-Django-Jobs-Live": "1"}))

        assert "<form" not in live, page
        assert "<button" not in live, page
        assert "dj-button" not in live, page


def test_no_page_has_a_script_or_a_style_of_its_own(admin: Client, shop: dt.datetime) -> None:
    for page, address in PAGES.items():
        text = text_of(admin.get(address))

        assert "style=" not in text, page
        assert "<style" not in text, page
        assert " on" + "click" not in text, page
        assert "javascript:" not in text, page
        assert text.count("<script") == text.count("<script src="), page


def test_a_page_has_its_number_of_statements_however_much_there_is(
    viewer: Client, shop: dt.datetime, django_assert_num_queries, database_name: str
) -> None:
    worker, schedule = Worker.objects.get(leads=True).pk, Schedule.objects.get(key="nightly report").pk
    single = {"worker": url("worker_change", worker), "schedule": url("schedule_change", schedule)}
    pages = {**PAGES, **single}

    def look_at_each() -> None:
        for page, statements in {**STATEMENTS, "worker": 3, "schedule": 2}.items():
            # One that SQLite does not need: it looks for somebody's old transaction.
            more = page == "overview" and database_name == "postgresql"
            with django_assert_num_queries(statements + more + AROUND, info=page):
                assert viewer.get(pages[page]).status_code == 200

    for address in pages.values():
        viewer.get(address)  # what Django reads once
    look_at_each()
    now = timezone.now()
    for number in range(30):
        JobFactory.create_batch(3, queue_name=f"queue {number}", created_at=now, run_after=now)
        worker = Worker.objects.create(
            host=f"host {number}", pid=1, queues=[f"queue {number}"], started_at=now, heartbeat_at=now,
            expires_at=now + dt.timedelta(minutes=1), running=1,
        )  # fmt: skip
        JobFactory(
            state="running", worker=worker, queue_name=f"queue {number}", created_at=now, run_after=now
        )
        Schedule.objects.create(
            key=f"schedule {number}", name="a", expression="@daily", owed_after=now, created_at=now, updated_at=now,
            last_job_id=Job.objects.latest("pk").pk,
        )  # fmt: skip
    look_at_each()


def test_hostile_names_are_escaped_and_lead_where_they_say(admin: Client) -> None:
    name = "<script>alert('1')</script> \"x\" / ?q=1#é_2F"
    now = timezone.now()
    JobFactory(queue_name=name, created_at=now - dt.timedelta(hours=1), run_after=now - dt.timedelta(hours=1))

    page = admin.get(OVERVIEW)

    assert "<script>alert" not in text_of(page)
    ((queue, address),) = page.context["queues"]
    assert queue.name == name
    assert admin.get(address).context["title"] == name
    jobs = admin.get(f"/admin/django_jobs/job/?queue={quote(name)}&state=available")
    assert "1 of" in text_of(jobs) or "alert" in text_of(jobs)


def test_a_site_without_time_zones(admin: Client, settings, shop: dt.datetime) -> None:
    settings.USE_TZ = False
    settings.TIME_ZONE = "America/New_York"
    for page, address in PAGES.items():
        answer = admin.get(address)

        assert answer.status_code == 200, page
        assert 'data-dj-now="20' in text_of(answer), page
        offset = text_of(answer).partition('data-dj-now="')[2][:40]
        assert "+00:00" in offset or "-05:00" in offset or "-04:00" in offset, page


def test_the_apps_page_leads_to_the_overview(admin: Client) -> None:
    assert f'href="{url("job_overview")}"' in text_of(admin.get("/admin/django_jobs/"))


def test_each_page_answers_head_as_get_and_lets_no_row_be_posted(admin: Client, shop: dt.datetime) -> None:
    job, worker, schedule = Job.objects.all()[0].pk, Worker.objects.all()[0].pk, Schedule.objects.all()[0].pk
    rows = [
        url("job_change", job),
        PAGES["queue"],
        url("worker_change", worker),
        url("schedule_change", schedule),
    ]
    others = [
        url("job_changelist"),
        url("job_failures"),
        url("job_json", job, "args"),
        url("worker_stop", worker),
    ]

    for address in {*PAGES.values(), *rows, *others, f"{url('queue_purge')}?queue=mail"}:
        assert admin.get(address).status_code == 200, address
        answer = admin.head(address)
        assert (answer.status_code, answer.content) == (200, b""), address
    for address in rows:
        assert admin.post(address, {"name": "other"}).status_code == 403, address


def test_where_very_many_queues_wait_the_number_of_jobs_is_no_less(admin: Client, monkeypatch) -> None:
    monkeypatch.setattr("django_jobs.operations.counting.MOST_TOGETHER", 6)
    monkeypatch.setattr("django_jobs.operations.counting.LEAST", 1)
    for name in "abc":
        JobFactory.create_batch(9, queue_name=name)

    assert '<span class="dj-card-number">27</span>' in text_of(admin.get(OVERVIEW))
