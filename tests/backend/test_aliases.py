"""Several aliases on one table, tasks of other backends that are sent here, what is found by name, and the checks."""

import sys
import types

import pytest
from django.core.checks import run_checks
from django.core.management import call_command

from django_jobs import periodic, registry
from django_jobs.backend import JobsBackend
from django_jobs.backend.definitions import TaskDefinition
from django_jobs.backend.framework import InvalidTask, TaskResultDoesNotExist, TaskResultStatus, task_backends
from django_jobs.models import Job
from django_jobs.schedules import schedules
from tests.workload import tasks


class TestAliases:
    def test_are_told_apart_by_their_queues(self, db):
        default = tasks.noop.enqueue()
        report = tasks.noop.using(backend="reports", queue_name="reports").enqueue()

        assert (default.backend, report.backend) == ("default", "reports")
        assert task_backends["reports"].get_result(report.id) == report
        assert task_backends["any"].get_result(report.id).id == report.id
        with pytest.raises(TaskResultDoesNotExist):
            task_backends["reports"].get_result(default.id)
        with pytest.raises(TaskResultDoesNotExist):
            task_backends["default"].get_result(report.id)

    def test_have_options_of_their_own(self, db, settings):
        settings.DJANGO_JOBS = {"MAX_ATTEMPTS": 4}
        settings.TASKS = {
            **settings.TASKS,
            "slow": {"BACKEND": "django_jobs.backend.JobsBackend", "QUEUES": [], "OPTIONS": {"timeout": 90}},
        }

        def row(task):
            return Job.objects.get(pk=task.enqueue().id)

        assert row(tasks.noop).max_attempts == 1
        assert row(tasks.noop.using(max_attempts=2)).max_attempts == 2
        assert row(tasks.noop.using(backend="any")).max_attempts == 4
        slow = tasks.noop.using(backend="slow")
        given = [{}, {"timeout": 5}, {"timeout": None}]
        assert [row(slow.using(**options)).timeout for options in given] == [90, 5, 0]

    def test_a_result_names_the_one_that_serves_its_queue(self, drain, sent):
        result = tasks.noop.using(backend="reports", queue_name="reports").enqueue()
        seen = []
        from django_jobs.backend.framework import signals

        def receive(task_result, **_):
            seen.append((task_result.backend, task_result.task))

        signals.task_finished.connect(receive)
        try:
            drain()
        finally:
            signals.task_finished.disconnect(receive)

        assert seen == [("reports", result.task)]

    def test_hold_nothing_beside_their_settings(self):
        assert set(vars(task_backends["default"])) == {"alias", "queues", "options"}


class TestTasksOfAnotherBackend:
    @pytest.fixture(autouse=True)
    def _unknown(self):
        known = registry.known(tasks.elsewhere.module_path)
        if known is not None:
            registry.remove(known)

    def test_a_worker_finds_one_that_was_sent_here(self, drain):
        result = tasks.elsewhere.using(backend="default").enqueue(1)
        registry.remove(registry.known(tasks.elsewhere.module_path))  # it was enqueued in another process
        drain()
        result.refresh()

        assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, 2)

    def test_only_tasks_are_found(self):
        assert registry.get("tests.workload.tasks.elsewhere").task is tasks.elsewhere
        for name in (
            "threading.Lock",
            "tests.workload.tasks.ran",
            "os.system",
            "tests.workload",
            "",
            ".",
            "x",
            5,
        ):
            assert registry.get(name) is None

    def test_nothing_is_imported(self, monkeypatch):
        lazy = types.ModuleType("lazy_module")
        asked = []
        lazy.__getattr__ = asked.append
        monkeypatch.setitem(sys.modules, "lazy_module", lazy)

        assert registry.get("lazy_module.task") is None
        assert asked == []
        assert registry.get("wsgiref.validate.check_input") is None
        assert "wsgiref.validate" not in sys.modules

    def test_none_is_found_where_no_backend_is_ours(self, settings):
        settings.TASKS = {"default": settings.TASKS["dummy"], "dummy": settings.TASKS["dummy"]}

        assert registry.get("tests.workload.tasks.elsewhere") is None

    def test_a_task_is_a_job_function(self):
        definition = registry.get("tests.workload.tasks.noop")

        assert isinstance(definition, TaskDefinition)
        assert definition in list(registry)


class TestTasksAsJobs:
    """What else makes jobs of registered functions makes them of tasks, too, as their alias says."""

    def test_the_command(self, db):
        call_command("jobs", "enqueue", "tests.workload.tasks.echo", "--args", "[5]", verbosity=0)

        row = Job.objects.get()
        assert (row.name, row.args, row.max_attempts) == ("tests.workload.tasks.echo", [5], 1)
        assert tasks.echo.get_result(str(row.pk)).args == [5]

    @pytest.mark.parametrize("above", [True, False])
    def test_schedules(self, above):
        function = types.FunctionType(tasks.noop.func.__code__, vars(tasks), "nightly")
        function.__module__, function.__qualname__ = "tests.workload.tasks", "nightly"
        every_night = periodic("0 3 * * *", key="tests.nightly")
        make = type(tasks.noop)
        task = every_night(make(func=function)) if above else make(func=every_night(function))
        try:
            declared, problems = schedules.collect()
            assert declared["tests.nightly"].name == "tests.workload.tasks.nightly"
            assert problems == {}
        finally:
            schedules.remove("tests.nightly")
            registry.remove(task.definition)


class TestDeclared:
    def test_again_by_a_reload(self):
        """The module is executed anew: other function objects by the same names."""
        before = registry.get("tests.workload.tasks.noop")
        namespace = types.FunctionType(tasks.noop.func.__code__, {**vars(tasks)}, "noop")
        namespace.__module__, namespace.__qualname__ = "tests.workload.tasks", "noop"
        try:
            again = type(tasks.noop)(func=namespace)
            assert registry.get("tests.workload.tasks.noop").task is again
        finally:
            registry.add(before)

    def test_two_functions_of_one_name(self):
        def other():
            pass

        other.__module__, other.__qualname__ = "tests.workload.tasks", "noop"
        with pytest.raises(InvalidTask, match="Two functions want"):
            type(tasks.noop)(func=other)


def check(settings, **alias):
    settings.TASKS = {"default": {"BACKEND": "django_jobs.backend.JobsBackend", **alias}}
    return [(message.id, message.msg, message.hint) for message in task_backends["default"].check()]


class TestChecks:
    def test_all_is_well(self, db, settings):
        assert (
            check(settings, QUEUES=["a"], OPTIONS={"database": "default", "max_attempts": 2, "timeout": 5})
            == []
        )
        assert run_checks() == []

    def test_the_app_is_not_installed(self, settings, monkeypatch):
        from django.apps import apps

        monkeypatch.setattr(apps, "is_installed", lambda name: False)
        assert [each[0] for each in check(settings)] == ["django_jobs.E030"]

    @pytest.mark.parametrize("name", ["a,b", "", 5, "x" * 101])
    def test_a_queue_that_can_not_be(self, settings, name):
        assert [each[0] for each in check(settings, QUEUES=[name])] == ["django_jobs.E031"]

    @pytest.mark.parametrize(
        ("options", "message", "hint"),
        [
            ({"max_attemps": 2}, "unknown key 'max_attemps'", "Did you mean 'max_attempts'?"),
            ({"DATABASE": "default"}, "unknown key 'DATABASE'", "Did you mean 'database'?"),
            ({"zzz": 2}, "unknown key 'zzz'", "There are database"),
            ({"database": "other"}, "no database 'other'", "Name a key of DATABASES"),
            ({"max_attempts": 0}, "is 0", "whole number"),
            ({"timeout": "x"}, "timeout of default is 'x'", "Give seconds"),
        ],
    )
    def test_an_option_that_can_not_be(self, settings, options, message, hint):
        ((code, said, advice),) = check(settings, OPTIONS=options)

        assert code == "django_jobs.E032"
        assert message in said
        assert hint in advice

    def test_a_subclass_is_served_as_well(self, db, settings):
        settings.TASKS = {"default": {"BACKEND": f"{__name__}.Mine", "QUEUES": []}}

        assert tasks.noop.enqueue().backend == "default"


class Mine(JobsBackend):
    """A site's own."""
