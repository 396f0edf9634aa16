"""``runjobs --reload``, as a developer has it: real processes, a file that changes."""

import os
import re
import signal
from collections.abc import Callable

from django_jobs.models import Job
from tests.conftest import ManageProcess
from tests.waiting import eventually
from tests.workload import jobs

RunManage = Callable[..., ManageProcess]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def worker_pids(process: ManageProcess) -> list[int]:
    return [int(pid) for pid in re.findall(r"Working on .*, process (\d+)\.", process.output)]


def test_a_change_replaces_the_worker_and_no_job_is_lost(run_manage: RunManage) -> None:
    process = run_manage("runjobs", "--reload", "--shutdown-timeout", "1")
    eventually(lambda: len(worker_pids(process)) == 1)
    running = jobs.wait_until_told.enqueue(heed=False)
    eventually(lambda: Job.objects.get(pk=running.id).state == "running")

    os.utime(jobs.__file__)
    eventually(lambda: len(worker_pids(process)) == 2)
    first, second = worker_pids(process)
    assert not alive(first)
    # The old worker handed it back when its time was up, and the new one has it.
    eventually(lambda: Job.objects.get(pk=running.id).attempt == 2)

    # However the reloader ends, its worker does too.
    (reloader,) = children(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    os.kill(reloader, signal.SIGKILL)
    eventually(lambda: not alive(second) or state_of(second) == "Z")
    assert Job.objects.get(pk=running.id).state != "running"


def children(pid: int) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append(int(entry))
    return found


def state_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"
