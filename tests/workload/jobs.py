import asyncio
import os
import signal
import threading
from pathlib import Path

from django.db import transaction

from django_jobs import JobContext, job
from tests.workload.models import Effect


@job
def nothing(number: int = 0) -> None:
    pass


@job(takes_context=True, backoff=0)
def leave_effect(context: JobContext) -> None:
    """Real work on the database, in a statement of its own."""
    assert context.job is not None
    Effect.objects.create(job_id=context.job.id, claims=context.job.claims, pid=os.getpid())


@job(takes_context=True)
def wait_until_told(context: JobContext, seconds: float = 60.0, heed: bool = True, begun: str = "") -> str:
    """Run for long; with ``heed``, end when the worker says so. ``begun`` is a file that tells that it has begun."""
    if begun:
        Path(begun).touch()
    end = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if heed and context.should_stop():
            return "told to stop"
        end.wait(0.02)
    return "not told"


@job(max_attempts=2, backoff=0)
def fail(message: str) -> None:
    raise ValueError(message)


@job(backoff=0)
def kill_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@job
def signal_this_thread() -> None:
    """Have SIGTERM handled in the executor's thread, as the system may choose any."""
    threading.Event().wait(0.5)  # by then the main thread waits
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)


class _SignalsAtTheEnd:
    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


@job
def signal_as_the_interpreter_ends() -> None:
    """Have a signal come when the process has done all, and Python takes its modules apart."""
    globals()["_planted"] = _SignalsAtTheEnd()


@job(takes_context=True, backoff=0, max_attempts=2)
def kill_process_among(context: JobContext, claimed: int) -> None:
    """Kill the process at the first attempt once so many jobs are claimed, this one among them; then at once."""
    from django_jobs.models import Job

    pause = threading.Event()
    while context.attempt == 1 and Job.objects.filter(state="running").count() < claimed:
        pause.wait(0.005)
    os.kill(os.getpid(), signal.SIGKILL)


@job(backoff=0)
def nap(seconds: float = 0.001) -> None:
    threading.Event().wait(seconds)


@job
def wait_for_file(path: str) -> None:
    """Run until the file exists, whatever the worker says; others beside it tell that it has begun, and ended."""
    Path(f"{path}.begun").touch()
    end = threading.Event()
    while not os.path.exists(path):  # noqa: PTH110 - a job's arguments are texts
        end.wait(0.02)
    Path(f"{path}.ended").touch()


_hoard: list[bytes] = []


@job
def hoard(megabytes: int) -> None:
    """Leak memory."""
    _hoard.append(b"x" * (megabytes * 1024 * 1024))


@job(atomic=True, takes_context=True, backoff=0, max_attempts=1000)
def effect_in_its_transaction(context: JobContext) -> None:
    """Leave an effect, which is committed with the job's completion or not at all."""
    assert context.job is not None
    Effect.objects.create(job_id=context.job.id, claims=context.job.claims, pid=os.getpid())


@job(takes_context=True, backoff=0, max_attempts=1000)
def effect_with_its_completion(context: JobContext) -> None:
    """The same by hand; what comes after the transaction fails every other time, and changes nothing."""
    assert context.job is not None
    with transaction.atomic():
        Effect.objects.create(job_id=context.job.id, claims=context.job.claims, pid=os.getpid())
        context.complete("done")
    if context.job.id % 2:
        raise ValueError("after the completion")


@job(takes_context=True)
async def wait_until_cancelled(context: JobContext) -> None:
    """Run until the worker cancels it."""
    await asyncio.sleep(3600)
