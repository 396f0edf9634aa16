"""``runjobs --reload``, as a developer has it: real processes, a file that changes."""

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

from django_jobs.models import Job
from tests.conftest import ManageProcess
from tests.waiting import eventually
from tests.workload import jobs

RunManage = Callable[..., ManageProcess]


def worker_pids(process: ManageProcess) -> list[int]:
    return [int(pid) for pid in re.findall(r"Working on .*, process (\d+)\.", process.output)]


def test_a_change_replaces_the_worker_and_no_job_is_lost(run_manage: RunManage) -> None:
    process = run_manage("runjobs", "--reload", "--shutdown-timeout", "0.2")
    eventually(lambda: len(worker_pids(process)) == 1)
    running = jobs.wait_until_told.enqueue(heed=False)
    eventually(lambda: Job.objects.get(pk=running.id).state == "running")

    os.utime(jobs.__file__)
    eventually(lambda: len(worker_pids(process)) == 2)
    first, second = worker_pids(process)
    assert ended(first)
    # The old worker handed it back when its time was up, and the new one has it.
    eventually(lambda: Job.objects.get(pk=running.id).attempt == 2)

    # However the reloader ends, its worker does too.
    (reloader,) = children(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    os.kill(reloader, signal.SIGKILL)
    eventually(lambda: ended(second))
    assert Job.objects.get(pk=running.id).state != "running"


def fields(pid: int | str) -> list[str]:
    """What the kernel says of a process after its name: state, parent ... Nothing if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return []


def children(pid: int) -> list[int]:
    numbers = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [int(number) for number in numbers if (known := fields(number)) and int(known[1]) == pid]


def ended(pid: int) -> bool:
    known = fields(pid)
    return not known or known[0] == "Z"
