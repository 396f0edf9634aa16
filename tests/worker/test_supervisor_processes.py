"""``runjobs --processes``: real children, real signals, real deaths."""

import os
import re
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from django.utils import timezone

from django_jobs.models import Job, Worker
from tests.conftest import ManageProcess
from tests.waiting import eventually
from tests.workload import jobs
from tests.workload.models import Effect

RunManage = Callable[..., ManageProcess]

SHORT = {"DJANGO_JOBS": '{"LEASE": 3, "HEARTBEAT_INTERVAL": 0.3, "POLL_INTERVAL": 0.2}'}
RELEASED = re.compile(r"(\d+) had not started and are released, (\d+) had completed, (\d+) were running")


def finished() -> int:
    return Job.objects.filter(finalized_at__isnull=False).count()


def started(process: ManageProcess) -> list[int]:
    """The pids of the children, in the order of their starts."""
    return [int(pid) for pid in re.findall(r"Started a worker, process (\d+)", process.output)]


def at_work(count: int) -> list[int]:
    """The pids of the workers, once so many are registered and not gone."""
    workers = Worker.objects.filter(stopped_at__isnull=True, lost_at__isnull=True)
    eventually(lambda: workers.count() == count)
    return sorted(workers.values_list("pid", flat=True))


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_of_500_claimed_ahead_only_the_job_that_kills_its_process_spends_an_attempt(
    run_manage: RunManage,
) -> None:
    before = jobs.nothing.enqueue_many([(number,) for number in range(400)])
    poison = jobs.kill_process_among.enqueue(501)
    after = jobs.nothing.enqueue_many([(number,) for number in range(1500)])
    process = run_manage("runjobs", "--processes", "1", "--concurrency", "1", env=SHORT)

    eventually(lambda: finished() == 1901, 60)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0

    stored = Job.objects.get(pk=poison.id)
    assert (stored.state, stored.attempt, stored.claims) == ("failed", 2, 2)
    assert [error["class"] for error in stored.errors] == ["django_jobs.WorkerLost"] * 2
    assert "was killed by signal SIGKILL" in stored.errors[0]["message"]
    others = Job.objects.filter(pk__in=[job.id for job in [*before, *after]])
    assert set(others.values_list("state", "attempt", "errors")) == {("completed", 1, None)}
    deaths = RELEASED.findall(process.output)
    assert len(deaths) == 2
    assert int(deaths[0][0]) >= 500
    assert [death[2] for death in deaths] == ["1", "1"]
    # It was at once, and not by the lease: nobody was taken for lost but by the supervisor.
    assert "its lease ended" not in process.output


def test_a_child_killed_from_outside_is_replaced_and_no_more_is_charged_than_what_ran(
    run_manage: RunManage,
) -> None:
    jobs.nap.enqueue_many([()] * 4000)
    process = run_manage("runjobs", "--processes", "1", "--concurrency", "4", env=SHORT)
    eventually(lambda: Job.objects.filter(state="running").count() >= 501)
    (first,) = at_work(1)
    os.kill(first, signal.SIGKILL)

    eventually(lambda: finished() == 4000, 60)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0

    assert set(Job.objects.values_list("state", flat=True)) == {"completed"}
    charged = Job.objects.filter(attempt=2)
    assert charged.count() <= 4
    assert all([error["class"] for error in job.errors] == ["django_jobs.WorkerLost"] for job in charged)
    assert Job.objects.filter(attempt=1, errors__isnull=True).count() == 4000 - charged.count()
    assert Job.objects.filter(claims=2).count() >= 400, "nothing was claimed ahead, and nothing was tested"
    assert len(started(process)) == 2
    lost, stopped = Worker.objects.order_by("pk")
    assert (lost.pid, lost.lost_at is None, lost.stopped_at is None) == (first, False, True)
    assert (stopped.lost_at is None, stopped.stopped_at is None) == (True, False)


def test_a_child_is_replaced_after_so_many_jobs_and_none_is_lost(run_manage: RunManage) -> None:
    jobs.leave_effect.enqueue_many([()] * 450)
    process = run_manage("runjobs", "--processes", "2", "--max-jobs", "100", env=SHORT)
    eventually(lambda: finished() == 450, 60)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0

    assert set(Job.objects.values_list("state", "attempt")) == {("completed", 1)}
    by_process: Counter[int] = Counter(Effect.objects.values_list("pid", flat=True))
    assert max(by_process.values()) == 100
    assert len(by_process) >= 5
    assert "retires: it has claimed its 100 jobs" in process.output
    assert not Worker.objects.filter(stopped_at__isnull=True).exists()
    assert "Stopped. 450 completed, 0 failed attempts (0 for good)." in process.output


def test_without_a_supervisor_the_process_ends_after_so_many_jobs(run_manage: RunManage) -> None:
    jobs.leave_effect.enqueue_many([()] * 30)
    assert run_manage("runjobs", "--max-jobs", "12", "--queues", "default,other").wait() == 0
    assert Counter(Job.objects.values_list("state", "attempt")) == {
        ("completed", 1): 12,
        ("available", 0): 18,
    }


def test_a_child_that_holds_too_much_memory_is_replaced_when_its_jobs_have_ended(
    run_manage: RunManage, tmp_path: Path
) -> None:
    long = jobs.wait_for_file.enqueue(str(tmp_path / "go"))
    process = run_manage(
        "runjobs", "--processes", "1", "--max-memory", "300", "--shutdown-timeout", "0.2", env=SHORT
    )
    (first,) = at_work(1)
    eventually((tmp_path / "go.begun").exists)
    jobs.hoard.enqueue(300)

    process.wait_for_output(r"retires: it holds \d+ MB of memory, more than 300")
    at_work(2)
    job = jobs.nothing.enqueue()
    eventually(lambda: Job.objects.get(pk=job.id).state == "completed")
    assert Worker.objects.get(pk=Job.objects.get(pk=job.id).worker_id).pid != first
    assert Job.objects.get(pk=long.id).state == "running"

    (tmp_path / "go").touch()
    eventually(lambda: not alive(first))
    assert set(Job.objects.values_list("state", "attempt")) == {("completed", 1)}
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0


def test_without_a_supervisor_the_process_ends_at_so_much_memory(run_manage: RunManage) -> None:
    jobs.hoard.enqueue(300)
    process = run_manage("runjobs", "--max-memory", "300", env=SHORT)
    assert process.wait() == 0
    assert Job.objects.get().state == "completed"


def test_sigterm_among_jobs_leaves_nothing_running_and_charges_nothing(run_manage: RunManage) -> None:
    process = run_manage("runjobs", "--processes", "2")
    at_work(2)
    jobs.leave_effect.enqueue_many([()] * 3000)
    eventually(lambda: finished() >= 200)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0
    counts = Counter(Job.objects.values_list("state", "attempt"))
    assert set(counts) <= {("completed", 1), ("available", 0)}
    assert Effect.objects.count() == counts["completed", 1]
    assert Worker.objects.filter(stopped_at__isnull=False).count() == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_whole_group_is_one_request_to_stop(
    run_manage: RunManage, tmp_path: Path, number: signal.Signals
) -> None:
    # Ctrl-C, or a process manager that signals every process: each child gets it from there and from its supervisor.
    job = jobs.wait_for_file.enqueue(str(tmp_path / "go"))
    process = run_manage("runjobs", "--processes", "2", "--shutdown-timeout", "60")
    eventually((tmp_path / "go.begun").exists)
    at_work(2)
    os.killpg(process.pid, number)
    process.wait_for_output("Stopping 2 workers")
    process.wait_for_output("Waiting for 1 running jobs")
    at_work(1)
    (tmp_path / "go").touch()
    assert process.wait() == 0
    stored = Job.objects.get(pk=job.id)
    assert (stored.state, stored.attempt) == ("completed", 1)
    assert "Traceback" not in process.output


def test_a_second_signal_does_not_wait_for_the_jobs(run_manage: RunManage, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    job = jobs.wait_until_told.enqueue(heed=False, begun=str(begun))
    process = run_manage("runjobs", "--processes", "2", "--shutdown-timeout", "600")
    eventually(begun.exists)
    process.send_signal(signal.SIGTERM)
    process.wait_for_output("Waiting for 1 running jobs")
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    stored = Job.objects.get(pk=job.id)
    assert (stored.state, stored.attempt) == ("available", 1)


def test_sigterm_right_after_the_start(run_manage: RunManage) -> None:
    jobs.nothing.enqueue_many([(number,) for number in range(500)])
    process = run_manage("runjobs", "--processes", "2")
    process.wait_for_output("Started a worker")
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert not Job.objects.filter(state="running").exists()


def test_without_their_supervisor_children_stop_in_order(run_manage: RunManage, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    job = jobs.wait_until_told.enqueue(begun=str(begun))
    process = run_manage("runjobs", "--processes", "2")
    eventually(begun.exists)
    pids = at_work(2)
    process.process.kill()
    eventually(lambda: not any(alive(pid) for pid in pids))
    stored = Job.objects.get(pk=job.id)
    assert (stored.state, stored.result) == ("completed", "told to stop")
    assert Worker.objects.filter(stopped_at__isnull=False).count() == 2


def test_children_that_die_at_once_are_not_started_in_a_circle_and_sigterm_ends_it(
    run_manage: RunManage,
) -> None:
    process = run_manage("runjobs", "--processes", "2", env={"TESTS_BREAK_CHILDREN": "1"})
    process.wait_for_output("Another one starts now")
    process.wait_for_output("Another one starts in 1 s")
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0


def test_children_that_their_rows_tell_to_stop_are_not_replaced(run_manage: RunManage) -> None:
    process = run_manage("runjobs", "--processes", "2", env=SHORT)
    first, second = at_work(2)
    Worker.objects.filter(pid=first).update(stop_requested_at=timezone.now())
    assert at_work(1) == [second]
    eventually(lambda: not alive(first))
    Worker.objects.update(stop_requested_at=timezone.now())
    assert process.wait() == 0
    assert len(started(process)) == 2


class TestDrain:
    def test_it_ends_when_all_have(self, run_manage: RunManage) -> None:
        jobs.leave_effect.enqueue_many([()] * 300)
        process = run_manage("runjobs", "--processes", "2", "--drain", "--fail")
        assert process.wait() == 0
        assert finished() == 300
        assert "Stopped. 300 completed, 0 failed attempts (0 for good)." in process.output

    def test_fail_gives_exit_code_1_when_a_job_failed(self, run_manage: RunManage) -> None:
        jobs.fail.enqueue("no")
        assert run_manage("runjobs", "--processes", "2", "--drain", "--fail").wait() == 1

    def test_what_a_dead_child_held_is_worked_too(self, run_manage: RunManage) -> None:
        jobs.nothing.enqueue_many([(number,) for number in range(300)])
        poison = jobs.kill_process_among.using(max_attempts=1).enqueue(501)
        jobs.nothing.enqueue_many([(number,) for number in range(1500)])
        process = run_manage("runjobs", "--processes", "1", "--concurrency", "1", "--drain")
        assert process.wait() == 0
        assert Job.objects.get(pk=poison.id).state == "failed"
        assert set(Job.objects.exclude(pk=poison.id).values_list("state", "attempt")) == {("completed", 1)}

    def test_with_no_tables_it_ends(self, run_manage: RunManage, tmp_path: Path) -> None:
        nothing = {"DATABASE_URL": f"sqlite:///{tmp_path}/empty.sqlite3"}
        process = run_manage("runjobs", "--processes", "2", "--drain", env=nothing)
        assert process.wait() == 1
        assert "run manage.py migrate" in process.output


class TestCommandLine:
    def test_what_it_works_on_is_said_once(self, run_manage: RunManage) -> None:
        process = run_manage("runjobs", "--processes", "2", "--drain", "--queues", "default:3")
        assert process.wait() == 0
        assert process.output.count("Working on") == process.output.count("a job is claimed by") == 1
        assert f"2 processes under process {process.pid}." in process.output
        for pid in started(process):
            assert f"Process {pid} stopped. 0 completed" in process.output

    @pytest.mark.parametrize("option", ["--processes", "--max-jobs", "--max-memory"])
    @pytest.mark.parametrize("value", ["0", "-1", "x", "1.5", "9999999999999"])
    def test_bad_options_are_refused_with_a_reason(
        self, refused: Callable[..., str], option: str, value: str
    ) -> None:
        assert f"'{value}' is not a whole number from 1 to" in refused("runjobs", f"{option}={value}")

    def test_a_bad_queue_is_refused_before_a_child_starts(self, run_manage: RunManage) -> None:
        process = run_manage("runjobs", "--processes", "2", "--queues", "a,a")
        assert process.wait() != 0
        assert "the queue 'a' is named twice" in process.output
        assert started(process) == []
