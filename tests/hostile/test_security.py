"""What the threat notes say: rows name no code, nothing is unpickled, and what is hidden stays hidden."""

import io
import json
import logging
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

import django_jobs
from django_jobs import job, operations, registry
from django_jobs.backend import JobsBackend
from django_jobs.models import Job, Schedule
from django_jobs.redaction import HIDDEN
from django_jobs.store import django_store
from django_jobs.testing import run_jobs
from django_jobs.worker.parts import one_line
from django_jobs.worker.ticker import Ticker
from tests.admin.conftest import admin, told, url
from tests.hostile.damage import quoted
from tests.waiting import eventually
from tests.worker.conftest import live
from tests.workload.jobs import nothing

__all__ = ["admin", "live"]

SOURCES = sorted(Path(django_jobs.__file__).parent.rglob("*.py"))
BAIT = "tests.hostile.bait.run"
SECRET = "hunter22-and-longer"


def lines(expression: str) -> dict[str, list[str]]:
    """The lines of the package in which something is, by file."""
    pattern = re.compile(expression)
    assert len(SOURCES) > 100
    found = {
        path.name: [line for line in path.read_text("utf-8").splitlines() if pattern.search(line)]
        for path in SOURCES
    }
    return {file: some for file, some in found.items() if some}


class TestTheCode:
    def test_unpickles_and_evaluates_nothing(self):
        assert not lines(r"^\s*(import|from)\s+(pickle|marshal|shelve|dill|cloudpickle|yaml)\b")
        assert not lines(r"(?<![\w.])(eval|exec|compile|__import__)\(")

    def test_imports_by_name_what_settings_and_apps_name_and_nothing_else(self):
        # The modules of installed apps, middleware in the settings, a task that the site itself unpickles: no row has a
        # part in the name. Where there is another one, say here, and in the threat notes, where it comes from.
        assert set(lines(r"\b(import_string|import_module|autodiscover_modules)\(")) == IMPORTING

    def test_marks_little_as_safe_and_no_template_turns_escaping_off(self):
        templates = list((Path(django_jobs.__file__).parent / "templates").rglob("*.html"))
        assert len(templates) > 10
        for template in templates:
            text = template.read_text("utf-8")
            assert "|safe" not in text, template
            assert "autoescape off" not in text, template
        marked = lines(r"\bmark_safe\(")
        assert marked
        assert not lines(r"""\bmark_safe\((?!"[^"{}]*"\))"""), (
            "what is marked as safe is a text of the code's own"
        )
        assert not lines(r"\bSafeString\(")


IMPORTING = {"apps.py", "tasks.py", "middleware.py", "checks.py"}


@pytest.mark.django_db
class TestARowThatNamesCode:
    @pytest.fixture
    def row(self) -> Job:
        row = nothing.enqueue()
        Job.objects.filter(pk=row.id).update(name=BAIT)
        return Job.objects.get(pk=row.id)

    def test_is_shown_retried_edited_and_deleted_but_imports_nothing(self, admin: Client, row: Job):
        with_name = admin.get(url("job_change", row.pk))
        assert BAIT in with_name.content.decode()
        assert "No function of this name is registered" in with_name.content.decode()
        assert admin.get(url("job_changelist"), {"name": BAIT}).status_code == 200
        call_command("jobs", "show", str(row.pk), stdout=io.StringIO())

        form = admin.get(url("job_edit", row.pk)).context["form"]
        assert "args" not in form.fields, "nothing could check them"
        data = {name: form[name].value() for name in ("queue_name", "max_attempts", "seen")}
        sent = {**data, "priority": 7, "run_after": form["run_after"].value().strftime("%Y-%m-%dT%H:%M:%S")}
        assert admin.post(url("job_edit", row.pk), sent).status_code == 302
        assert Job.objects.get(pk=row.pk).priority == 7

        Job.objects.filter(pk=row.pk).update(state="failed", finalized_at=timezone.now())
        for action, answer in (
            ("retry", "1 job will run again."),
            ("cancel", "1 job cancelled, or asked to stop."),
        ):
            form = {"action": action, "job": [row.pk], "confirmed": "yes"}
            assert told(admin.post(url("job_act"), form, follow=True))[-1] == answer
        form = {"action": "delete", "job": [row.pk], "confirmed": "yes"}
        assert told(admin.post(url("job_act"), form, follow=True))[-1] == "1 job deleted."
        assert not Job.objects.filter(pk=row.pk).exists()
        assert "tests.hostile.bait" not in sys.modules

    def test_by_operations_and_as_a_task(self, row: Job):
        Job.objects.filter(pk=row.pk).update(state="failed", finalized_at=timezone.now())
        assert operations.retry(row.pk).done == 1
        with pytest.raises(Exception, match="no task that this process knows"):
            JobsBackend("default", {"QUEUES": []}).get_result(str(row.pk))
        assert operations.cancel(row.pk).done == 1
        assert operations.delete(row.pk).done == 1
        assert "tests.hostile.bait" not in sys.modules

    def test_in_a_schedule(self, admin: Client):
        now = timezone.now()
        times = {"owed_after": now, "next_tick": now, "created_at": now, "updated_at": now}
        schedule = Schedule.objects.create(key="bait", name=BAIT, expression="every 300 s", **times)
        Ticker("default", lambda _queue: None).run(django_store("default"))
        schedule.refresh_from_db()
        assert "No job is registered" in schedule.last_error
        answer = admin.post(url("schedule_run", schedule.pk), follow=True)
        assert "No job is registered" in told(answer)[0]
        assert not Job.objects.exists()
        assert "tests.hostile.bait" not in sys.modules


@pytest.mark.django_db(transaction=True)
def test_a_worker_imports_nothing_for_a_row(live: Callable[..., Any]):
    row = nothing.enqueue()
    Job.objects.filter(pk=row.id).update(name=BAIT)
    live()
    eventually(lambda: Job.objects.get(pk=row.id).error_class == "django_jobs.NotRegistered")
    assert "tests.hostile.bait" not in sys.modules


@pytest.mark.django_db
class TestWhatIsHidden:
    @pytest.fixture
    def failing(self):
        """A schedule's job whose unique key can't be made; the error tells the arguments."""

        def key(user, password):
            raise ValueError(f"no key of {user} and {password}")

        made = job(name="tests.hostile.secret", unique=key)(lambda user, password: None)
        yield made
        registry.remove(made)

    def test_does_not_come_again_in_a_schedules_error(self, admin: Client, failing, caplog):
        now = timezone.now()
        times = {"owed_after": now, "next_tick": now, "created_at": now, "updated_at": now}
        schedule = Schedule.objects.create(
            key="secret", name=failing.name, expression="every 300 s", args=["ann", SECRET], **times
        )
        with caplog.at_level(logging.DEBUG, "django_jobs"):
            Ticker("default", lambda _queue: None).run(django_store("default"))
        schedule.refresh_from_db()
        assert schedule.last_error.endswith(f"no key of ann and {HIDDEN}")
        shown = [admin.get(url("schedule_change", schedule.pk)).content.decode()]
        shown += [admin.get(url(page)).content.decode() for page in ("schedule_changelist", "job_overview")]
        for options in ([], ["--json"]):
            out = io.StringIO()
            call_command("jobs", "schedules", *options, stdout=out)
            shown.append(out.getvalue())
        assert all(f"no key of ann and {HIDDEN}" in text for text in shown[:3])
        assert SECRET not in "".join(shown) + caplog.text

    def test_does_not_stand_in_what_the_worker_logs_of_a_job_that_does_well(self, caplog):
        made = job(name="tests.hostile.quiet")(lambda user, password: {"token": SECRET})
        try:
            with caplog.at_level(logging.DEBUG, "django_jobs"):
                row = made.enqueue("ann", password=SECRET)
                run_jobs()
            assert Job.objects.get(pk=row.id).state == "completed"
            assert SECRET not in caplog.text
        finally:
            registry.remove(made)


@pytest.mark.django_db
def test_an_error_of_the_database_is_logged_without_the_row(database_name):
    from django.db import DatabaseError, connection, transaction

    row = nothing.enqueue()
    with pytest.raises(DatabaseError) as raised, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE django_jobs_job SET state = 'x', kwargs = {quoted(json.dumps({'a': SECRET}))} WHERE id = {row.id}"
        )
    assert (SECRET in str(raised.value)) == (database_name == "postgresql"), "PostgreSQL tells the row"
    assert SECRET not in one_line(raised.value)
    assert "constraint" in one_line(raised.value)


@pytest.mark.postgresql
def test_a_password_of_the_database_is_not_logged(run_manage):
    url_with = f"postgres://somebody:{SECRET}@127.0.0.1:9/nowhere"
    environment = {"DATABASE_URL": url_with, "LOG_LEVEL": "DEBUG"}
    listing = run_manage("jobs", "list", env=environment)
    assert listing.wait() == 1
    worker = run_manage("runjobs", "--skip-checks", env=environment)
    worker.wait_for_output("can't register|refused|failed")
    worker.end()
    assert "refused" in listing.output
    assert SECRET not in listing.output + worker.output
