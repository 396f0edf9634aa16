"""``manage.py jobs``: each subcommand, for people and as JSON lines, and what it says to bad input."""

import datetime as dt
import io
import json
import re

import pytest
from django.core.management import call_command, get_commands
from django.core.management.base import CommandError
from django.db import connection
from django.utils import timezone, translation

from django_jobs import job, operations, registry
from django_jobs.management.commands.jobs import SUBCOMMANDS
from django_jobs.management.jobs import output
from django_jobs.models import Job, Schedule, Worker

pytestmark = pytest.mark.django_db

HOUR = dt.timedelta(hours=1)


@pytest.fixture
def greet():
    definition = job(name="tests.command.greet")(lambda name="x", *, loud=False: None)
    yield definition
    registry.remove(definition)


class Ran:
    def __init__(self, out, err, code):
        self.out, self.err, self.code = out, err, code

    @property
    def records(self):
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def rows(self):
        return [re.split(r"\s{2,}", line) for line in self.out.splitlines()]


def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    code = 0
    try:
        call_command("jobs", *arguments, stdout=out, stderr=err)
    except SystemExit as end:
        code = end.code
    return Ran(out.getvalue(), err.getvalue(), code)


def fail(definition, error="ValueError", **columns):
    row = definition.enqueue("a")
    errors = [
        {
            "number": 1,
            "attempt": 1,
            "at": "2031-01-01",
            "class": error,
            "message": "no",
            "traceback": "Trace\n  it",
        }
    ]
    Job.objects.filter(pk=row.id).update(
        **{
            "state": "failed",
            "finalized_at": timezone.now(),
            "error_class": error,
            "errors": errors,
            "attempt": 1,
            **columns,
        }
    )
    return row.id


def test_is_a_command():
    assert get_commands()["jobs"] == "django_jobs"


def test_the_subcommands():
    assert set(SUBCOMMANDS) == {
        "list", "show", "retry", "cancel", "release", "purge", "pause", "resume", "stats", "enqueue", "schedules",
        "workers", "doctor",
    }  # fmt: skip


def test_without_one_it_says_which_there_are():
    with pytest.raises(CommandError, match=r"manage\.py jobs list, show, .*, doctor\. .*--help"):
        call_command("jobs")


@pytest.mark.parametrize("subcommand", SUBCOMMANDS)
def test_each_has_help(capsys, subcommand):
    with pytest.raises(SystemExit) as end:
        call_command("jobs", subcommand, "--help")
    assert end.value.code == 0
    assert "--database" in capsys.readouterr().out


class TestList:
    def test_for_people_in_aligned_columns(self, greet):
        greet.using(run_after=HOUR, queue_name="mail").enqueue()
        failed = fail(greet)

        lines = run("list").out.splitlines()

        assert lines[0].split() == ["id", "state", "queue", "name", "attempt", "when", "error"]
        place = lines[0].index("state")
        assert [line[place:].split()[0] for line in lines[1:]] == ["failed", "scheduled"]
        assert lines[1].startswith(f"{failed} ")
        assert lines[1].endswith("ValueError")

    def test_as_json_lines(self, greet):
        row = greet.enqueue("ä\x1b", loud=True)

        ran = run("list", "--json")

        (record,) = ran.records
        assert ran.out.isascii()
        assert (record["id"], record["args"], record["kwargs"]) == (row.id, ["ä\x1b"], {"loud": True})
        assert dt.datetime.fromisoformat(record["created_at"]) == row.created_at

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            (["--state", "failed"], ["f", "g"]),
            (["--state", "failed", "--state", "available"], ["a", "f", "g"]),
            (["--queue", "mail"], ["f"]),
            (["--error", "KeyError"], ["g"]),
            (["--name", "tests.nothing"], []),
            (["--created-before", "1d"], ["g"]),
            (["--created-after", "12h"], ["a", "f"]),
        ],
    )
    def test_by_filter(self, greet, options, expected):
        ids = {
            "a": greet.enqueue().id,
            "f": fail(greet, queue_name="mail"),
            "g": fail(greet, "KeyError", created_at=timezone.now() - 48 * HOUR),
        }

        found = {record["id"] for record in run("list", "--json", *options).records}

        assert found == {ids[each] for each in expected}

    def test_page_by_page(self, greet):
        ids = [greet.enqueue().id for _ in range(5)]
        seen, after = [], []
        while True:
            ran = run("list", "--json", "--limit", "2", *after)
            seen += [record["id"] for record in ran.records]
            match = re.search(r"--after (\S+)", ran.err)
            if not match:
                break
            after = ["--after", match[1]]

        assert seen == ids[::-1]

    def test_nothing(self):
        assert run("list").out == "There are no such jobs.\n"
        assert run("list", "--json").out == ""


class TestShow:
    def test_for_people(self, greet):
        shown = run("show", str(fail(greet))).out

        assert '["a"]' in shown
        assert "Error 1, attempt 1, 2031-01-01: ValueError: no\nTrace\n  it\n" in shown

    def test_what_a_job_carries_drives_no_terminal(self, greet):
        evil = "\x1b[2J\x07\x9b\u202e"
        id_ = fail(greet, evil, name=f"n{evil}", queue_name=f"q{evil}", metadata={evil: evil}, args=[evil])

        for out in (run("show", str(id_)).out, run("list").out, run("list", "--json").out, run("stats").out):
            assert all(each.isprintable() or each == "\n" for each in out), out

    def test_errors_that_somebody_wrote_otherwise(self, greet):
        id_ = greet.enqueue().id
        for errors in ({"a": 1}, ["text", 5], [{}]):
            Job.objects.filter(pk=id_).update(errors=errors)
            assert run("show", str(id_)).code == 0

    def test_as_json(self, greet):
        (record,) = run("show", "--json", str(fail(greet))).records
        assert record["errors"][0]["class"] == "ValueError"

    def test_one_of_two_that_is_not_there(self, greet):
        ran = run("show", str(greet.enqueue().id), "987654321")

        assert ran.code == 1
        assert ran.err == "There is no job 987654321.\n"

    def test_none_that_is_there(self):
        with pytest.raises(CommandError, match="Nothing to show"):
            run("show", "987654321")


class TestActions:
    def test_retry_by_filter(self, greet):
        id_ = fail(greet)
        fail(greet, "KeyError")

        ran = run("retry", "--error", "ValueError")

        assert (ran.out, ran.code) == ("1 job retried.\n", 0)
        assert operations.get(id_).state == "available"

    def test_some_ids_that_were_not_done_are_told_and_the_exit_code_is_1(self, greet):
        done, live = fail(greet), greet.enqueue().id

        ran = run("retry", str(done), str(live))

        assert ran.out == f"1 job retried; not 1: it has not ended: available ({live}).\n"
        assert ran.code == 1

    def test_as_json(self, greet):
        live = greet.enqueue().id

        (record,) = run("retry", "--json", str(live)).records

        reason = "it has not ended: available"
        assert record == {"done": 0, "skipped": {reason: 1}, "skipped_ids": {reason: [live]}}

    def test_cancel(self, greet):
        id_ = greet.enqueue().id

        assert run("cancel", "--yes", str(id_)).out == "1 job cancelled, or asked to stop.\n"
        assert operations.get(id_).state == "cancelled"

    def test_release(self, greet):
        id_ = greet.using(pending=True).enqueue().id

        run("release", "--all")

        assert operations.get(id_).state == "available"

    def test_purge_by_age(self, greet):
        old, new = fail(greet, finalized_at=timezone.now() - 48 * HOUR), fail(greet)

        assert run("purge", "--state", "failed", "--older-than", "1d", "--yes").out == "1 job deleted.\n"
        assert (operations.get(old), operations.get(new).state) == (None, "failed")

    @pytest.mark.parametrize("subcommand", ["retry", "cancel", "release", "purge"])
    def test_all_jobs_must_be_asked_for(self, greet, subcommand):
        greet.enqueue()
        with pytest.raises(CommandError, match="Which jobs"):
            run(subcommand)
        with pytest.raises(CommandError, match="--all means every job"):
            run(subcommand, "--all", "--queue", "mail")

    @pytest.mark.parametrize("subcommand", ["cancel", "purge"])
    def test_what_destroys_asks(self, greet, monkeypatch, subcommand):
        live, dead = greet.enqueue().id, fail(greet)
        asked = []
        answers = iter(["", "n", "y"])
        monkeypatch.setattr(output.sys, "stdin", type("Terminal", (), {"isatty": lambda self: True})())
        monkeypatch.setattr(output, "ask", lambda question: asked.append(question) or next(answers))

        for _ in range(2):
            with pytest.raises(CommandError, match="Nothing was done"):
                run(subcommand, "--queue", "default")
        assert (operations.get(live).state, operations.get(dead).state) == ("available", "failed")
        run(subcommand, "--queue", "default")

        assert [job and job.state for job in map(operations.get, (live, dead))] == (
            ["cancelled", "failed"] if subcommand == "cancel" else ["available", None]
        )
        assert "queue name default" in asked[0]

    @pytest.mark.parametrize(
        ("subcommand", "state"),
        [("retry", "running"), ("release", "failed"), ("cancel", "completed"), ("purge", "available")],
    )
    def test_what_it_can_never_be_done_to_is_told_before_anybody_is_asked(
        self, greet, monkeypatch, subcommand, state
    ):
        monkeypatch.setattr(output, "ask", lambda question: pytest.fail("it asks"))

        with pytest.raises(CommandError, match=rf"state is {state}; {subcommand}\(\) can't be done"):
            run(subcommand, "--state", state)

    def test_where_nobody_can_be_asked_it_is_refused(self, greet, monkeypatch):
        monkeypatch.setattr(output.sys, "stdin", io.StringIO())
        with pytest.raises(CommandError, match=r"ended 1w ago or earlier.*add --yes"):
            run("purge", "--all", "--older-than", "7d")


class TestQueues:
    def test_pause_and_resume(self):
        assert run("pause", "mail", "slow").out == "The queue mail is paused.\nThe queue slow is paused.\n"
        assert {queue.name for queue in operations.queues() if queue.paused_at} == {"mail", "slow"}
        assert run("resume", "mail").out == "The queue mail is not paused any more.\n"

    def test_a_queue_that_was_never_paused_is_perhaps_misspelled(self):
        with pytest.raises(
            CommandError, match=r"The queue 'mial' was never paused; manage\.py jobs stats lists"
        ):
            run("resume", "mial")
        assert not operations.queues()

    def test_stats(self, greet):
        greet.enqueue_many([()] * 12)
        fail(greet, queue_name="mail")
        operations.pause("quiet")

        rows = run("stats").rows
        by_queue = {row[0]: row for row in rows}
        assert (by_queue["default"][3], by_queue["mail"][5]) == ("12", "1")
        assert by_queue["quiet"][-1] == "yes"

        records = {record["queue"]: record for record in run("stats", "--json").records}
        assert set(records) == {"default", "mail", "quiet"}
        assert records["default"]["available"] == 12

    def test_how_long_jobs_have_waited_is_told_in_english(self, greet):
        greet.enqueue()
        Job.objects.update(run_after=timezone.now() - 72 * HOUR)
        with translation.override("de"):
            assert "3 days" in run("stats").out

    def test_no_jobs(self):
        assert run("stats").out == "There are no queues.\n"


class TestEnqueue:
    def test_a_call(self, greet):
        ran = run("enqueue", greet.name, "--args", '["a"]', "--kwargs", '{"loud": true}', "--queue", "mail",
                  "--priority", "5", "--max-attempts", "2", "--delay", "1h")  # fmt: skip

        row = operations.get(Job.objects.get().pk)
        assert (row.args, row.kwargs, row.queue_name, row.priority, row.max_attempts, row.state) == (
            ["a"], {"loud": True}, "mail", 5, 2, "scheduled",
        )  # fmt: skip
        assert ran.out == f"Job {row.id} is enqueued: tests.command.greet, scheduled in the queue mail.\n"

    def test_as_json(self, greet):
        (record,) = run("enqueue", greet.name, "--json").records
        assert (record["name"], record["state"]) == (greet.name, "available")

    def test_a_duplicate(self):
        once = job(name="tests.command.once", unique=True)(lambda: None)
        try:
            run("enqueue", once.name)
            assert "holds the same unique key already" in run("enqueue", once.name).out
        finally:
            registry.remove(once)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["tests.command.gret"], "Did you mean tests.command.greet"),
            (["tests.command.greet", "--args", "[1, 2, 3]"], "tests.command.greet: "),
            (["tests.command.greet", "1", "two"], r"""a JSON list: --args '\[1,"two"\]'$"""),
            (["tests.command.greet", "NaN", "1e999"], r"""a JSON list: --args '\["NaN","1e999"\]'$"""),
            (["tests.command.greet", "--args", "{}"], "is not JSON of the right kind; write '\\[1,"),
            (["tests.command.greet", "--kwargs", "[nonsense"], "is not JSON of the right kind"),
            (["tests.command.greet", "--priority", "101"], "priority of tests.command.greet is 101"),
            (["tests.command.greet", "--priority", "high"], "invalid"),
            (["tests.command.greet", "--queue", "a,b"], "queue_name='a,b'"),
        ],
    )
    def test_bad_input(self, greet, arguments, message):
        with pytest.raises(CommandError, match=message):
            run("enqueue", *arguments)
        assert not Job.objects.exists()


class TestWorkers:
    def make(self, **columns):
        now = timezone.now()
        times = {"started_at": now, "heartbeat_at": now, "expires_at": now + HOUR}
        return Worker.objects.create(**{"host": "h", "pid": 1, "queues": ["a", "*"], **times, **columns})

    def test_their_states(self):
        now = timezone.now()
        expected = {
            self.make().pk: "alive",
            self.make(expires_at=now - HOUR).pk: "late",
            self.make(quiet_requested_at=now).pk: "quiet",
            self.make(stop_requested_at=now).pk: "stopping",
            self.make(stopped_at=now).pk: "stopped",
            self.make(lost_at=now).pk: "lost",
        }

        assert {
            record["id"]: record["state"] for record in run("workers", "--json", "--all").records
        } == expected
        assert len(run("workers", "--json").records) == 4
        assert "a, *" in run("workers").out

    def test_one_is_asked_to_be_quiet_and_back_and_to_stop(self):
        worker, other = self.make(), self.make()

        assert run("workers", "--quiet", str(worker.pk)).out == (
            f"Worker {worker.pk} (h, process 1) claims no more jobs from its next heartbeat on.\n"
        )
        worker.refresh_from_db()
        assert worker.quiet_requested_at is not None
        run("workers", "--unquiet", str(worker.pk))
        assert run("workers", "--json", "--stop", str(worker.pk)).records == [
            {"id": worker.pk, "host": "h", "pid": 1}
        ]
        worker.refresh_from_db()
        assert worker.quiet_requested_at is None
        assert worker.stop_requested_at is not None
        other.refresh_from_db()
        assert (other.quiet_requested_at, other.stop_requested_at) == (None, None)

    def test_one_that_is_gone_is_asked_nothing(self):
        gone = self.make(stopped_at=timezone.now())
        for id_ in (gone.pk, 10**12):
            with pytest.raises(CommandError, match=f"There is no worker {id_} that is alive"):
                run("workers", "--stop", str(id_))
        with pytest.raises(CommandError, match="is no id of a worker"):
            run("workers", "--stop", "web-1")

    def test_none(self):
        assert run("workers").out == "No worker is alive. Start one: manage.py runjobs\n"


class TestSchedules:
    def test_none(self):
        assert run("schedules").out == "There are no schedules.\n"

    def test_one_that_does_not_exist(self):
        for option in ("--pause", "--resume", "--run-now"):
            with pytest.raises(CommandError, match="There is no schedule 'nightly'"):
                run("schedules", option, "nightly")

    def test_they_are_listed(self, make_schedule):
        make_schedule("nightly")
        make_schedule("old", removed_at=timezone.now())

        records = {record["key"]: record for record in run("schedules", "--json").records}
        assert (records["nightly"]["state"], records["old"]["state"]) == ("runs", "removed")
        assert "0 2 * * *" in run("schedules").out

    def test_pause_resume_and_run_now(self, greet, make_schedule):
        make_schedule("nightly", name=greet.name)

        assert run("schedules", "--pause", "nightly").out == "The schedule nightly is paused.\n"
        assert Schedule.objects.get().paused_at is not None
        assert run("schedules", "--resume", "nightly").out == "The schedule nightly is not paused any more.\n"
        assert Schedule.objects.get().paused_at is None
        run("schedules", "--run-now", "nightly")
        assert Job.objects.get().name == greet.name

    def test_run_now_without_the_function(self, make_schedule):
        make_schedule("nightly", name="tests.command.gone")

        with pytest.raises(CommandError, match=r"No job is registered as 'tests\.command\.gone'"):
            run("schedules", "--run-now", "nightly")

    def test_run_now_tells_nothing_that_is_hidden(self, make_schedule):
        def key(user, password):
            raise ValueError(f"no key of {user} and {password}")

        made = job(name="tests.command.secret", unique=key)(lambda user, password: None)
        try:
            make_schedule("nightly", name=made.name, args=["ann", "s3cret-and-long"])
            with pytest.raises(CommandError, match=r"no key of ann and \[hidden\]$"):
                run("schedules", "--run-now", "nightly")
        finally:
            registry.remove(made)


@pytest.fixture
def make_schedule():
    def make(key, **columns):
        now = timezone.now()
        moments = dict.fromkeys(("created_at", "updated_at", "owed_after"), now)
        columns = {"name": "tests.job", "expression": "0 2 * * *", **moments, **columns}
        return Schedule.objects.create(key=key, **columns)

    return make


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "invalid choice: 'nonsense'"),
        ([], "SUBCOMMAND"),
        (["list", "--state", "done"], "invalid choice: 'done'"),
        (["list", "--limit", "0"], "'0' is not a whole number from 1 to 1000"),
        (["list", "--limit", "²"], "is not a whole number"),
        (["list", "--after", "x"], "after is 'x'"),
        (["list", "abc"], "'abc' is no id of a job"),
        (["list", "9" * 20], "is no id of a job"),
        (["list", "--queue", ""], "queue_name is ''"),
        (["list", "--tag", "a\0"], "NUL"),
        (["list", "--worker", "-1"], "expected one argument|no id"),
        (["list", "--created-before", "yesterday"], "'yesterday' is no moment; write 2031"),
        (["list", "--created-before", "2031-02-31T00:00"], "is no moment"),
        (["list", "--database", "nowhere"], "There is no database 'nowhere'"),
        (["purge", "--all", "--yes", "--older-than", "7x"], "'7x' is no length of time; write 90s, 15m"),
        (["purge", "--all", "--yes", "--older-than", "-7d"], "expected one argument|no length of time"),
        (["purge", "--all", "--yes", "--older-than", "9999999w"], "up to a hundred years"),
        (["pause", "a,b"], "queue_name='a,b'"),
        (["pause"], "QUEUE"),
    ],
)
def test_bad_input_is_told_in_a_line(arguments, message):
    with pytest.raises(CommandError, match=message) as error:
        run(*arguments)
    assert "Traceback" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("15m", 900), ("1.5h", 5400), ("7d", 604_800), ("2w", 1_209_600), ("0", 0)],
)
def test_lengths_of_time(text, seconds):
    from django_jobs.management.jobs.arguments import age

    assert age(text).total_seconds() == seconds


def test_djangos_own_options_may_come_after_the_subcommand(greet):
    assert run("stats", "--no-color", "-v", "1", "--settings", "tests.settings").code == 0


@pytest.mark.django_db(transaction=True)
def test_without_tables_it_says_what_to_do():
    with connection.schema_editor() as editor:
        editor.execute("ALTER TABLE django_jobs_job RENAME TO django_jobs_elsewhere")
    try:
        with pytest.raises(CommandError, match=r"run manage\.py migrate"):
            run("list")
    finally:
        with connection.schema_editor() as editor:
            editor.execute("ALTER TABLE django_jobs_elsewhere RENAME TO django_jobs_job")


def test_says_the_same_whatever_the_language_of_the_site_is(greet, settings):
    """As Django's own commands: what reads it need not know the language."""
    settings.USE_THOUSAND_SEPARATOR = True
    now = timezone.now()
    (job_id,) = (greet.enqueue().id,)
    Job.objects.filter(pk=job_id).update(
        state="failed", finalized_at=now, attempt=1, error_class="ValueError"
    )
    columns = {"key": "s", "expression": "* *", "name": "gone", "last_error": "It has ended."}
    Schedule.objects.create(owed_after=now, created_at=now, updated_at=now, **columns)
    Worker.objects.create(host="a", pid=12_345, started_at=now, heartbeat_at=now, expires_at=now - HOUR)
    told = {}
    for language in ("en", "de", "es"):
        settings.LANGUAGE_CODE = language
        with translation.override(language):
            told[language] = [
                re.sub(r"\d+(\.\d+)? (ms|s)\b|\d\d:\d\d:\d\d(\.\d+)?", "", f"{ran.out}{ran.err}{ran.code}")
                for ran in (
                    run("list"), run("show", job_id), run("cancel", job_id, "--yes"),
                    run("retry", "--queue", "none"),
                    run("purge", "--state", "failed", "--older-than", "7d", "--yes"), run("pause", "mail"),
                    run("resume", "mail"), run("stats"), run("schedules"), run("workers"), run("doctor"),
                )
            ]  # fmt: skip
            for wrong in (("list", "--name", "n" * 300), ("pause", "a,b"), ("retry", "--state", "running")):
                with pytest.raises(CommandError) as refused:
                    run(*wrong)
                told[language].append(str(refused.value))

    assert told["de"] == told["en"]
    assert told["es"] == told["en"]
