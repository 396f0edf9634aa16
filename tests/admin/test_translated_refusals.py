"""What is refused, what goes wrong and what was done is told in the language of the page, too, and so is the log: in a
language in which every marked string is bracketed, nothing stands outside of brackets."""

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from django_jobs import scheduling, timing
from django_jobs.admin.log import message_of
from django_jobs.exceptions import InvalidJob, InvalidSchedule
from django_jobs.models import Schedule, Worker
from django_jobs.redaction import HIDDEN
from django_jobs.schedule_errors import redacted, stored
from django_jobs.serialization import Undecodable, shown
from django_jobs.states import State
from tests.admin.brackets import WORD, bare, words_left

pytestmark = pytest.mark.django_db

# Addresses of the list that can't be meant.
ADDRESSES = [
    {"state": "nonsense"}, {"priority": "999"}, {"priority": "x"}, {"worker": "9" * 30}, {"worker": "-"},
    {"since": "x"}, {"since": "1000-01-01"}, {"since": "0001-01-01T00:00:00+14:00"},
    {"since": "9999-12-31T23:59:59-14:00"}, {"since": "99999d"}, {"since": "36000d"}, {"queue": "q" * 300},
    {"name": "n\0"}, {"key": "k" * 300}, {"tag": "t" * 300}, {"error": "e\0"}, {"q": "w" * 300},
    {"q": "a" * 1001, "in": "arguments"}, {"q": "\0", "in": "arguments"}, {"after": "x"},
    {"after": "0_9999_1__", "state": "available"},
]  # fmt: skip
# What is no word of a language: what the code calls things, and how it writes them.
NAMES = (
    "tests.admin.0 (user, password=None, *, note='') [hidden] inf DJANGO_JOBS datetime tzinfo zoneinfo ZoneInfo UTC "
    "queue_name priority Priority run_after operations.update operations.pause @yearly @annually @monthly @weekly "
    "@daily @midnight @hourly key max_attempts using unique unique_key unique_for on_duplicate pending tags timeout "
    "backoff"
)
# What is wrong with a form of a job that waits.
ARGS = [
    "{}", "[1 2]", "[1", "[] 5", "[NaN]", "[Infinity]", "[1e999]", "[" * 100_000, "[" * 250 + "]" * 250,
    "[" + "9" * 5000 + "]", '["\\u0000"]', '["\\ud800"]', '[{"\\u0000": 1}]', '["a\\', "[1, 2, 3, 4]", "[]",
    '["a", "[hidden]"]', '["' + "a" * 1200 + '"]',
]  # fmt: skip
KWARGS = [
    "[]", '{"a" 1}', "{a: 1}", '{"a": 1,}', '{"nota": 1}', '{"user": 1}', '{"queue_name": "b"}',
]  # fmt: skip
EDITS = [
    {"queue_name": "a,b"}, {"queue_name": "a\u202eb"}, {"run_after": "9999-01-01T00:00:00"},
    {"run_after": "1000-01-01T00:00:00"}, {"max_attempts": "2"}, {"seen": "x"},
    *({"args": text} for text in ARGS),
    *({"kwargs": text} for text in KWARGS),
]  # fmt: skip


def test_of_an_address(admin, make, bracketed):
    make("available")
    found = {}
    for given in ADDRESSES:
        reply = admin.get("/admin/django_jobs/job/", given)
        assert reply.context["query"].errors, given
        if words := words_left(reply, given):
            found[str(given)] = words

    assert found == {}


def test_a_field_is_called_as_the_page_calls_it(admin, make, settings):
    make("available")
    settings.LANGUAGE_CODE = "de"
    told = {
        name: admin.get("/admin/django_jobs/job/", {name: value}).context["query"].errors
        for name, value in {"q": "w" * 300, "key": "a\0", "since": "1000-01-01", "queue": "q" * 300}.items()
    }

    assert told == {
        "q": [f"Suche ist '{'w' * 96}...; es muss ein nicht leerer Text von höchstens 255 Zeichen sein."],
        "key": [
            (
                "eindeutiger Schlüssel: NUL-Zeichen an Position 1, das kein Text einer Datenbank enthalten kann. "
                "Es entfernen."
            )
        ],
        "since": ["„1000-01-01“ liegt nicht zwischen den Jahren 1970 und 9000."],
        "queue": [
            f"Warteschlange ist '{'q' * 96}...; es muss ein nicht leerer Text von höchstens 100 Zeichen sein."
        ],
    }


def test_of_a_form(admin, make, bracketed, settings):
    settings.DJANGO_JOBS = {**getattr(settings, "DJANGO_JOBS", {}), "MAX_ARGUMENT_BYTES": 1000}
    (id_,) = make("scheduled", attempt=2)
    page = f"/admin/django_jobs/job/{id_}/edit/"
    form = admin.get(page).context["form"]
    values = {field.html_name: field.value() for field in form}
    values["run_after"] = values["run_after"].strftime("%Y-%m-%dT%H:%M:%S")
    found = {}
    for given in EDITS:
        errors = admin.post(page, {**values, **given}).context["form"].errors
        assert errors, given
        told = " ".join(str(error) for each in errors.values() for error in each)
        words = {*WORD.findall(bare(told))} - {*WORD.findall(NAMES)}
        if words := {word for word in words if word not in str(given)}:
            found[str(given)[:80]] = words

    assert found == {}


@pytest.fixture
def periodic(make):
    """Makes a schedule."""

    def periodic(key, **columns):
        now = timezone.now()
        columns = {"name": "tests.admin.0", "expression": "@daily", "args": ["ann"], **columns}
        return Schedule.objects.create(key=key, owed_after=now, created_at=now, updated_at=now, **columns)

    return periodic


def refusal_of(schedule):
    """What the keeper writes of a schedule, as it does."""
    with pytest.raises((InvalidSchedule, InvalidJob)) as caught:
        timing.parse(schedule.expression, schedule.timezone)
        scheduling.prepared(schedule.name, schedule.args, schedule.kwargs, schedule.options)
    text = redacted(schedule.name, schedule.args, schedule.kwargs, str(caught.value))
    return stored(text)


@pytest.mark.parametrize(
    ("columns", "written"),
    [
        ({"name": "tests.gone"}, "No job is registered as 'tests.gone' in this process. Define it with @job in a "),
        ({"args": []}, "tests.admin.0: missing a required argument: 'user'; the parameters are ("),
        ({"args": ["a", "s3cret", 5]}, "tests.admin.0: too many positional arguments; the parameters are ("),
        ({"args": {}}, "The row's args, kwargs and options are {}, {} and {}. They must be a list, "),
        ({"options": {"priority": 101}}, "priority of tests.admin.0 is 101; it must be a whole number from -100 to "),
        ({"options": {"nonsense": 1}}, "There is no option 'nonsense'; there are "),
        ({"expression": "0 0 31 2 *"}, "The cron expression '0 0 31 2 *' "),
        ({"expression": "0 25 * * *"}, "The cron expression '0 25 * * *' can't be read: bad hour. It has five "),
        ({"expression": "every day"}, "every is 0.0. It must be a timedelta, "),
        ({"expression": "@never"}, "The cron expression '@never' is no nickname that is known. It "),
        ({"expression": "* *"}, "The cron expression '* *' has 2 fields. It has five fields, "),
        ({"timezone": "Mars/Olympus"}, "There is no time zone 'Mars/Olympus' on this host. Name one of "),
    ],
)  # fmt: skip
def test_of_a_schedule_that_can_not_run(admin, periodic, bracketed, columns, written):
    schedule = periodic("broken", **columns)
    schedule.last_error = refusal_of(schedule)
    assert schedule.last_error.startswith(written)
    schedule.save()
    # As of a database, of which no page knows more; that it would be refused, too, is another matter.
    periodic("other", args=[], last_error="OperationalError: the disk is full")

    for page in ("schedule/", f"schedule/{schedule.pk}/change/", "job/overview/"):
        reply = admin.get(f"/admin/django_jobs/{page}")
        Schedule.objects.filter(pk=schedule.pk).update(last_error="")
        assert words_left(reply, columns, NAMES) == set(), page
        schedule.save()
    assert "the disk is full" in admin.get("/admin/django_jobs/schedule/").text
    if {"expression", "timezone"} & {*columns}:
        return
    (message,) = admin.post(f"/admin/django_jobs/schedule/{schedule.pk}/run/", follow=True).context[
        "messages"
    ]
    assert {*WORD.findall(bare(str(message)))} - {*WORD.findall(f"broken {columns} {NAMES}")} == set()


def test_of_a_schedule_nothing_is_told_that_is_hidden(admin, periodic, bracketed):
    schedule = periodic("broken", args={"password": "s3cret-and-long"})
    schedule.last_error = refusal_of(schedule)
    schedule.save()
    assert "s3cret" not in schedule.last_error
    for page in ("schedule/", "job/overview/"):
        reply = admin.get(f"/admin/django_jobs/{page}").text
        assert "args, kwargs and options are ⟧{&#x27;password&#x27;: &#x27;[hidden]" in reply
        assert "s3cret" not in reply


def test_nor_where_something_does_not_decode(periodic):
    digits = Undecodable(f"[{'9' * 5000}]")  # which PostgreSQL takes for JSON
    schedule = periodic("broken", args=["ann", "s3cret-and-long"], kwargs=digits)
    assert f"are ['ann', '{HIDDEN}'], {shown(digits)} and " in refusal_of(schedule)

    broken = Undecodable('{"password": "s3cret-and-long"')
    told = f"The row's args, kwargs and options are {shown(broken)}, {{}} and {{}}."
    assert redacted(schedule.name, broken, {}, told) == told.replace(shown(broken), HIDDEN)


def test_where_it_would_run_here_the_error_is_as_it_was_written(admin, periodic, bracketed):
    periodic("elsewhere", last_error="No job is registered as 'tests.admin.0' in this process. Define it.")

    assert (
        "No job is registered as &#x27;tests.admin.0&#x27;" in admin.get("/admin/django_jobs/schedule/").text
    )


def test_of_what_a_worker_recorded(admin, make, settings):
    lost = {
        "number": 1,
        "attempt": 1,
        "class": "django_jobs.WorkerLost",
        "message": "The worker's lease ran out.",
    }
    (id_,) = make("failed", errors=[lost, {**lost, "class": "ValueError", "message": "as it was <b>"}])
    settings.LANGUAGE_CODE = "de"
    page = admin.get(f"/admin/django_jobs/job/{id_}/change/").text

    assert page.count("Die Lease des Workers lief ab.") == 2  # among its errors, and in its timeline
    assert "lease ran out" not in page
    assert page.count("as it was &lt;b&gt;") == 2


def test_of_actions_and_of_the_log(admin, make, periodic, bracketed):
    state = {name: make(name)[0] for name in State.values}
    (spent,) = make("scheduled", attempt=4)
    every = [*state.values(), spent, 10**9]
    schedule, worker = periodic("report"), Worker.objects.get()
    forms = [
        *(("job/act/", {"action": name, "job": every}) for name in ("retry", "run_now", "release")),
        ("job/act/", {"action": "update", "job": every, "to_queue": "mail", "to_priority": "5"}),
        ("job/act/", {"action": "update", "job": every, "to_queue": "a,b"}),
        ("job/act/", {"action": "update", "job": every, "to_priority": "500"}),
        ("job/act/", {"action": "update", "job": every, "to_priority": "x"}),
        ("job/act/", {"action": "update", "job": every}),
        ("job/act/", {"action": "cancel", "job": every, "confirmed": "yes"}),
        ("job/act/", {"action": "nonsense"}),
        ("job/act/", {"action": "retry"}),
        ("job/act/", {"action": "retry", "job": "x"}),
        ("job/act/", {"action": "retry", "job": range(600)}),
        ("job/act/", {"action": "delete", "job": [10**9]}),
        ("job/act/", {"action": "retry", "scope": "all", "query": "?state=running"}),
        ("job/act/", {"action": "retry", "scope": "all", "query": "?priority=999"}),
        ("job/act/", {"action": "retry", "scope": "all", "query": "?q=ann&in=arguments"}),
        ("job/act/", {"action": "retry", "scope": "all", "query": "?", "confirmed": "yes", "after": "x"}),
        ("job/act/", {"action": "retry", "scope": "all", "query": "?state=cancelled", "confirmed": "yes"}),
        ("queue/pause/", {"queue": "mail"}),
        ("queue/resume/", {"queue": "mail"}),
        ("queue/pause/", {"queue": "a,b"}),
        ("queue/purge/", {"queue": "mail"}),
        ("queue/purge/", {"queue": "default", "state": ["available", "failed"]}),
        ("job/act/", {"action": "delete", "job": every, "confirmed": "yes"}),
        *((f"schedule/{schedule.pk}/{name}/", {}) for name in ("run", "pause", "resume")),
        *((f"worker/{worker.pk}/{name}/", {}) for name in ("quiet", "unquiet", "stop")),
        *((f"worker/{number}/stop/", {}) for number in (10**9, 10**30)),
    ]
    found = {}
    for page, sent in forms:
        reply = admin.post(f"/admin/django_jobs/{page}", sent, follow=True)
        if words := words_left(reply, {**sent, "query": ""}, f"{NAMES} web"):
            found[f"{page} {sent}"] = words
    assert found == {}

    # And so is what is written of it into the log, as the pages of what operators did show it.
    told = {message_of(entry) for entry in LogEntry.objects.all()}
    assert len(told) >= 12
    assert {word for each in told for word in WORD.findall(bare(each))} == {"mail"}
    assert all(entry.get_change_message() for entry in LogEntry.objects.all())
