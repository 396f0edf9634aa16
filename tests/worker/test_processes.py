"""Real worker processes and real signals: nothing is lost, nothing is stranded, no attempt is charged in vain."""

import datetime as dt
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from django_jobs.models import Job, Worker
from tests.conftest import ManageProcess
from tests.waiting import eventually
from tests.workload import jobs
from tests.workload.models import Effect

RunManage = Callable[..., ManageProcess]

# A short lease, so that a dead worker is missed soon.
SHORT = {"DJANGO_JOBS": '{"LEASE": 2, "HEARTBEAT_INTERVAL": 0.5, "POLL_INTERVAL": 0.2}'}


def finished() -> int:
    return Job.objects.filter(finalized_at__isnull=False).count()


def completions(output: str) -> Counter[str]:
    return Counter(re.findall(r"job (\d+) \S+ \(queue \w+\) attempt \d+ of \d+ completed", output))


def test_a_worker_killed_among_2000_jobs_loses_none_and_completes_none_twice(run_manage: RunManage) -> None:
    ids = [job.id for job in jobs.leave_effect.enqueue_many([()] * 2000)]
    first = run_manage("runjobs", env=SHORT)
    eventually(lambda: finished() >= 300)
    first.process.kill()
    first.wait()
    left = Job.objects.filter(finalized_at__isnull=True).count()
    held = set(Job.objects.filter(state="running").values_list("id", flat=True))
    assert 0 < left < 2000
    assert held, "the worker was killed between two jobs, and nothing was tested"

    second = run_manage("runjobs", env=SHORT)
    eventually(lambda: finished() == 2000, 60)
    second.send_signal(signal.SIGTERM)
    assert second.wait() == 0

    done = list(Job.objects.order_by("id"))
    assert [job.id for job in done] == ids
    assert {job.state for job in done} == {"completed"}
    told = completions(first.output) + completions(second.output)
    assert max(told.values()) == 1
    # Attempts are honest: one for each claim, two for what the dead worker held, with the reason in its errors.
    for job in done:
        assert job.attempt == job.claims == (2 if job.id in held else 1)
        assert [error["class"] for error in job.errors or []] == ["django_jobs.WorkerLost"] * (job.id in held)
    # What ran to its end ran once, but for jobs that were under way when the worker died.
    effects: Counter[int] = Counter(Effect.objects.values_list("job_id", flat=True))
    assert set(effects) == set(ids)
    assert {job_id for job_id, count in effects.items() if count > 1} <= held


def test_sigterm_among_jobs_leaves_nothing_running_and_charges_nothing(run_manage: RunManage) -> None:
    jobs.leave_effect.enqueue_many([()] * 3000)
    worker = run_manage("runjobs")
    eventually(lambda: finished() >= 200)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait() == 0

    counts = Counter(Job.objects.values_list("state", flat=True))
    assert set(counts) == {"completed", "available"}
    # Claimed ahead and handed back: as if never claimed. Every completed job took one attempt.
    assert set(Job.objects.filter(state="available").values_list("attempt", "attempted_at")) == {(0, None)}
    assert set(Job.objects.filter(state="completed").values_list("attempt", flat=True)) == {1}
    assert Effect.objects.count() == counts["completed"]
    assert Worker.objects.get().stopped_at is not None


def test_a_running_job_is_waited_for_and_told(run_manage: RunManage, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    job = jobs.wait_until_told.enqueue(begun=str(begun))
    worker = run_manage("runjobs")
    eventually(begun.exists)
    worker.send_signal(signal.SIGINT)
    assert worker.wait() == 0
    stored = Job.objects.get(pk=job.id)
    assert (stored.state, stored.result) == ("completed", "told to stop")


@pytest.mark.parametrize(
    ("options", "signals"), [(["--shutdown-timeout", "0.3"], 1), (["--shutdown-timeout", "60"], 2)]
)
def test_a_job_that_does_not_end_is_handed_back_with_its_attempt_spent(
    run_manage: RunManage, tmp_path: Path, options: list[str], signals: int
) -> None:
    begun = tmp_path / "first", tmp_path / "last"
    job = jobs.wait_until_told.enqueue(heed=False, begun=str(begun[0]))
    last = jobs.wait_until_told.using(max_attempts=1).enqueue(heed=False, begun=str(begun[1]))
    worker = run_manage("runjobs", *options)
    eventually(lambda: all(path.exists() for path in begun))
    for _ in range(signals):
        worker.send_signal(signal.SIGTERM)
        eventually(lambda: "Waiting for 2 running jobs" in worker.output or worker.process.poll() is not None)
    assert worker.wait(20) == 0
    stored = Job.objects.get(pk=job.id)
    assert (stored.state, stored.attempt) == ("available", 1)
    assert stored.errors[-1]["class"] == "django_jobs.WorkerLost"
    assert Job.objects.get(pk=last.id).state == "failed"


def test_sigterm_right_after_the_start(run_manage: RunManage) -> None:
    jobs.nothing.enqueue_many([(number,) for number in range(500)])
    worker = run_manage("runjobs")
    worker.wait_for_output("Working on")
    worker.send_signal(signal.SIGTERM)
    worker.send_signal(signal.SIGINT)
    assert worker.wait(20) == 0
    assert not Job.objects.filter(state="running").exists()


def test_a_second_signal_at_the_very_end_changes_nothing(run_manage: RunManage) -> None:
    """A service manager that is impatient must not be told that an ordered stop failed."""
    jobs.signal_as_the_interpreter_ends.enqueue()
    worker = run_manage("runjobs")
    eventually(lambda: finished() == 1)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert "Stopped. 1 completed" in worker.output


def test_nobody_reads_what_it_says(run_manage: RunManage) -> None:
    """As where the process that collected it has ended, before the worker started and after."""
    reading, writing = os.pipe()
    os.close(reading)
    worker = run_manage("runjobs", stdout=writing, stderr=subprocess.DEVNULL)
    os.close(writing)
    jobs.nothing.enqueue().wait(30)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert Worker.objects.get().stopped_at is not None


def test_a_signal_that_another_thread_gets_is_heard(run_manage: RunManage) -> None:
    jobs.signal_this_thread.enqueue()
    assert run_manage("runjobs").wait(20) == 0


def test_a_job_that_kills_its_process_becomes_a_dead_letter_and_the_others_are_done(
    run_manage: RunManage,
) -> None:
    poison = jobs.kill_process.using(max_attempts=2).enqueue()
    jobs.nothing.using(max_attempts=20).enqueue_many([(number,) for number in range(50)])
    deaths = 0
    for _ in range(8):
        worker = run_manage("runjobs", env=SHORT)
        eventually(lambda: worker.process.poll() is not None or finished() == 51, 40)  # noqa: B023
        if finished() == 51:
            break
        deaths += 1
    stored = Job.objects.get(pk=poison.id)
    assert (stored.state, stored.attempt, deaths) == ("failed", 2, 2)
    assert set(Job.objects.exclude(pk=poison.id).values_list("state", flat=True)) == {"completed"}


def test_four_workers_share_the_work(run_manage: RunManage) -> None:
    ids = {job.id for job in jobs.leave_effect.enqueue_many([()] * 1500)}
    workers = [run_manage("runjobs", "--concurrency", "3") for _ in range(4)]
    for worker in workers:
        worker.wait_for_output("Working on")
    for _ in range(100):
        ids.add(jobs.leave_effect.enqueue().id)  # a web server that writes beside them
    eventually(lambda: finished() == len(ids), 60)
    for worker in workers:
        worker.send_signal(signal.SIGTERM)
    assert [worker.wait() for worker in workers] == [0, 0, 0, 0]
    assert set(Effect.objects.values_list("job_id", flat=True)) == ids
    assert Effect.objects.count() == len(ids)
    assert not any("locked" in worker.output or "error" in worker.output.lower() for worker in workers)


def test_an_idle_worker_is_woken_by_a_commit_of_another_process(run_manage: RunManage) -> None:
    # The poll interval is longer than the test may take: only a wake-up can start the job in time.
    worker = run_manage("runjobs", "--poll-interval", "600")
    eventually(Worker.objects.exists)
    for number in range(3):
        job = jobs.nothing.enqueue(number)
        eventually(lambda: Job.objects.get(pk=job.id).state == "completed", 15)  # noqa: B023
    worker.send_signal(signal.SIGTERM)
    assert worker.wait() == 0


def run_to_end(run_manage: RunManage, *args: str) -> tuple[int, str]:
    """The exit code of runjobs, and what it printed."""
    process = run_manage("runjobs", *args)
    return process.wait(), process.output


class TestDrain:
    def test_it_ends_when_nothing_is_due(self, run_manage: RunManage) -> None:
        jobs.nothing.enqueue_many([(number,) for number in range(100)])
        later = jobs.nothing.using(run_after=dt.timedelta(hours=1)).enqueue()
        code, output = run_to_end(run_manage, "--drain")
        assert code == 0, output
        assert Job.objects.filter(state="completed").count() == 100
        assert Job.objects.get(pk=later.id).state == "scheduled"
        assert "Stopped. 100 completed, 0 failed attempts (0 for good)." in output

    def test_retries_that_are_due_at_once_are_worked_too(self, run_manage: RunManage) -> None:
        job = jobs.fail.enqueue("no")
        code, output = run_to_end(run_manage, "--drain")
        assert code == 0, output
        stored = Job.objects.get(pk=job.id)
        assert (stored.state, stored.attempt, stored.error_class) == ("failed", 2, "ValueError")

    def test_fail_gives_exit_code_1_when_a_job_failed(self, run_manage: RunManage) -> None:
        jobs.fail.enqueue("no")
        assert run_to_end(run_manage, "--drain", "--fail")[0] == 1
        assert run_to_end(run_manage, "--drain", "--fail")[0] == 0


class TestCommandLine:
    def test_what_it_works_on_and_what_the_database_guarantees(
        self, run_manage: RunManage, database_name: str
    ) -> None:
        _, output = run_to_end(run_manage, "--drain", "--queues", "default:3,mail:1")
        assert "Working on default (3), mail (1) in database 'default'" in output
        name = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}[database_name]
        assert f"{name}: a job is claimed by one worker at a time" in output

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--queues", "a:x"], "the size of a pool is a whole number from 1 to 10000, as in a:10"),
            (["--queues", "a,a"], "the queue 'a' is named twice"),
            (["--concurrency", "0"], "'0' is not a whole number from 1 to 10000"),
            (["--database", "other"], "There is no database 'other' in DATABASES; there are: default."),
            (["--poll-interval", "0"], "it must be more than 0 seconds"),
            (["--shutdown-timeout", "nan"], "'nan' is not a number of seconds, 0 or more"),
        ],
    )
    def test_bad_options_are_refused_with_a_reason(
        self, refused: Callable[..., str], arguments: list[str], message: str
    ) -> None:
        assert message in refused("runjobs", *arguments)

    def test_so_it_is_in_a_process_of_its_own(self, run_manage: RunManage) -> None:
        code, output = run_to_end(run_manage, "--fail")
        assert code != 0
        assert "--fail goes with --drain" in output
        assert "Traceback" not in output
