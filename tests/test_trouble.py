"""What is wrong at present, in words."""

import datetime as dt
import re

import pytest
from django.db import connections
from django.utils import translation

from django_jobs import operations
from django_jobs.models import Leadership, Queue, Schedule
from django_jobs.operations import Target
from django_jobs.operations.trouble import in_words
from tests.test_statistics import NOW, ago, counted, jobs, worker

pytestmark = pytest.mark.django_db

REFUSED = (
    "No job is registered as 'tests.job' in this process. Define it with @job in a module that the workers import, or "
    "remove the schedule."
)
IN_GERMAN = """\
Worker 1 (web2, Prozess 12): kein Lebenszeichen (40 s); bald werden ihm seine Jobs genommen.
Geplante Jobs sind überfällig (5 min) und werden nicht bereitgestellt.
Kein Worker übernimmt die Wartung: Nichts wird bereitgestellt, gerettet, gelöscht oder nach Zeitplan eingereiht.
Der Zeitplan broken konnte nicht ausgeführt werden: In diesem Prozess ist kein Job als 'tests.job' registriert. Ihn \
mit @job in einem Modul definieren, das die Worker importieren, oder den Zeitplan entfernen.
Der Zeitplan nightly ist verspätet (2 Tage).
Die Uhr von web3 geht gegenüber der Datenbank nach (2 h); stellen Sie sie (NTP).
Die Warteschlange mail wartet (3 Tage); 1 Worker bedient sie, wartende Jobs: 1.
Die Warteschlange default ist angehalten; wartende Jobs: 10.000+, längste Wartezeit: 24 h.
In der letzten Stunde endgültig gescheitert: 1.234 von 101.234 beendeten Jobs.
""".splitlines()


def found(**options):
    return [tuple(problem) for problem in operations.problems(now=NOW, **options)]


@pytest.fixture
def at_work():
    """A worker for all queues, which leads."""
    lead(NOW + dt.timedelta(seconds=10))
    return worker()


def lead(until):
    Leadership.objects.update_or_create(
        name="keeper", defaults={"holder": "x", "acquired_at": ago(hours=1), "expires_at": until}
    )


def schedule(**columns):
    return Schedule.objects.create(
        **{
            "key": "nightly", "name": "tests.job", "expression": "@daily", "owed_after": NOW, "created_at": NOW,
            "updated_at": NOW, **columns,
        }
    )  # fmt: skip


def test_nothing_is_wrong(at_work):
    jobs("available", 3, run_after=ago(seconds=59))
    jobs("scheduled", 1, run_after=NOW + dt.timedelta(hours=1))
    counted(ago(minutes=5), count=10_000)
    counted(ago(minutes=5), "failed", 99, error_class="E")
    schedule(next_tick=NOW + dt.timedelta(hours=1))
    schedule(key="paused", next_tick=ago(hours=1), paused_at=NOW)
    schedule(key="removed", next_tick=ago(hours=1), last_error="no", removed_at=NOW)

    assert found() == []


def test_no_worker():
    assert found() == [("warning", "No worker runs.", Target("workers"))]

    jobs("available")
    assert found() == [("error", "No worker runs, and jobs wait.", Target("workers"))]


def test_a_queue_that_nobody_serves(at_work):
    at_work.queues = ["default"]
    at_work.save()
    jobs("available", 2, queue_name="mail", run_after=ago(minutes=14))

    text = "Queue mail has waited 14 min; no worker serves it."
    assert found() == [("error", text, Target("queue", "mail"))]


def test_a_queue_whose_workers_do_not_get_on(at_work):
    jobs("available", 2, queue_name="mail", run_after=ago(seconds=61))

    text = "Queue mail has waited 61 s; 1 worker serves it; jobs that wait: 2."
    assert found() == [("warning", text, Target("queue", "mail"))]
    assert found(late=62) == []


def test_a_paused_queue(at_work):
    jobs("available", 2, queue_name="mail", run_after=ago(hours=3))
    Queue.objects.create(name="mail", paused_at=ago(hours=4), created_at=NOW, updated_at=NOW)

    text = "Queue mail is paused, and 2 jobs wait in it; the oldest for 3 h."
    assert found() == [("warning", text, Target("queue", "mail"))]


def test_many_queues_are_not_all_told(at_work):
    for number in range(12):
        jobs("available", queue_name=f"q{number:02}", run_after=ago(minutes=20 - number))

    texts = [text for _, text, _ in found()]
    assert len(texts) == 11
    assert texts[0].startswith("Queue q00 has waited 20 min")
    assert texts[-1] == "2 more queues wait."


def test_a_late_worker(at_work):
    late = worker(["mail"], host="web2", heartbeat_at=ago(seconds=40), expires_at=ago(seconds=10))

    who = f"Worker {late.pk} (web2, process 12)"
    text = f"{who} has not been heard of for 40 s; its jobs are about to be taken from it."
    assert found() == [("error", text, Target("worker", str(late.pk)))]


def test_all_are_quiet(at_work):
    at_work.quiet_requested_at = NOW
    at_work.save()

    assert found() == [("warning", "All workers are quiet: none takes a job.", Target("workers"))]


@pytest.mark.parametrize(
    ("skew", "words"), [(3.2, "3 s ahead of"), (-7200.0, "2 h behind"), (1.9, None), (-1.9, None)]
)
def test_a_wrong_clock(at_work, skew, words):
    at_work.skew = skew
    at_work.save()

    text = f"The clock of web1 is {words} the database's; set it (NTP)."
    assert found() == ([] if words is None else [("warning", text, Target("worker", str(at_work.pk)))])


def test_no_leader(at_work):
    text = "No worker does the maintenance: nothing is promoted, rescued, purged or scheduled."
    lead(ago(seconds=61))
    assert found() == [("error", text, Target("workers"))]

    Leadership.objects.all().delete()
    assert found() == [("error", text, Target("workers"))]

    at_work.started_at = ago(seconds=10)  # it has only begun
    at_work.save()
    assert found() == []


def test_due_and_not_made_available(at_work):
    jobs("scheduled", run_after=ago(minutes=5))

    text = "Scheduled jobs have been due for 5 min, and are not made available."
    assert found() == [("error", text, Target("jobs", "scheduled"))]


def test_many_dead_letters(at_work):
    counted(ago(minutes=59), "failed", 60, queue_name="a", error_class="E")
    counted(ago(minutes=1), "failed", 40, queue_name="b", error_class="E")
    counted(ago(minutes=61), "failed", 1000, error_class="E")
    counted(ago(minutes=2), "completed", 9900)

    text = "100 jobs have failed for good in the last hour, of 10,000 that ended."
    assert found() == [("warning", text, Target("failures"))]


@pytest.mark.parametrize(("dead", "completed", "told"), [(10, 90, True), (10, 91, False), (9, 0, False)])
def test_a_large_part_of_dead_letters(at_work, dead, completed, told):
    counted(ago(minutes=2), "failed", dead, error_class="E")
    counted(ago(minutes=2), "completed", completed)

    assert bool(found()) == told


def test_schedules(at_work):
    schedule(last_error="There is no job function 'x'.", next_tick=ago(hours=1))
    schedule(key="late", next_tick=ago(minutes=2))

    assert found() == [
        ("error", "Schedule late is 2 min late.", Target("schedule", "late")),
        (
            "error",
            "Schedule nightly could not run: There is no job function 'x'.",
            Target("schedule", "nightly"),
        ),
    ]


@pytest.mark.postgresql
def test_a_transaction_that_is_open_for_long(at_work, monkeypatch):
    from django_jobs.doctor import postgresql

    assert found() == []
    monkeypatch.setattr(postgresql, "OLD_SECONDS", 0.0)
    other = connections.create_connection("default")
    try:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (pid,) = cursor.fetchone()
        with connections["default"].cursor() as cursor:
            # Who is connected is looked up once in a transaction, and the test is in one.
            cursor.execute("SELECT pg_stat_clear_snapshot()")
        ((level, text, target),) = found()
        with translation.override("de"):
            assert f"offen (Prozess {pid}, " in found()[0][1]
    finally:
        other.close()

    assert (level, target) == ("warning", Target("jobs"))
    assert text.startswith("A transaction has been open for 0 s (process ")
    assert f"(process {pid}, " in text


def test_in_the_language_of_the_page(at_work):
    worker(["mail"], host="web2", heartbeat_at=ago(seconds=40), expires_at=ago(seconds=10))
    worker(["export"], host="web3", skew=-7200.0)
    lead(ago(seconds=61))
    jobs("available", 1, queue_name="mail", run_after=ago(days=3))
    jobs("available", 10_001, queue_name="default", run_after=ago(days=1))
    jobs("scheduled", run_after=ago(minutes=5))
    Queue.objects.create(name="default", paused_at=NOW, created_at=NOW, updated_at=NOW)
    counted(ago(minutes=2), "failed", 1234, error_class="E")
    counted(ago(minutes=2), "completed", 100_000)
    schedule(next_tick=ago(days=2))
    schedule(key="broken", last_error=REFUSED)

    with translation.override("de"):
        told = [text for _level, text, _target in found()]
    assert [re.sub(r"Worker \d+", "Worker 1", text) for text in told] == IN_GERMAN


def test_errors_come_first_and_the_number_of_statements_is_fixed(
    at_work, django_assert_num_queries, database_name
):
    for number in range(20):
        jobs("available", queue_name=f"q{number}", run_after=ago(hours=1))
        schedule(key=f"s{number}", next_tick=ago(hours=1))
        worker(["x"], skew=9, expires_at=ago(seconds=1))

    with django_assert_num_queries(11 if database_name == "postgresql" else 10):
        problems = operations.problems(now=NOW)

    levels = [problem.level for problem in problems]
    assert levels == sorted(levels)
    assert set(levels) == {"error", "warning"}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (89, "89 s"),
        (90, "2 min"),
        (840, "14 min"),
        (5399, "90 min"),
        (5400, "2 h"),
        (129_600, "2 days"),
    ],
)
def test_times_in_words(seconds, words):
    assert in_words(seconds) == words
