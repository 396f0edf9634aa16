"""One run: the crew at work, the plan at them, and then the reckoning."""

import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.crew import Crew, Post
from tests.chaos.database import Database
from tests.chaos.faults import Faults, Happened
from tests.chaos.journal import FOLDER, read
from tests.chaos.plan import plan
from tests.chaos.reckoning import LIVE, Row, Story, reckon

ENQUEUERS = 2
WORKERS = (
    ["--concurrency", "4"],
    ["--concurrency", "4", "--no-notify"],
    ["--concurrency", "3", "--processes", "2", "--max-jobs", "300"],
)


@dataclass
class Outcome:
    """What a run came to."""

    happened: list[Happened]
    rows: list[Row]
    findings: list[str]
    story: Story
    drained_in: float
    slowest_stop: float
    deaths: int
    killed: dict[int, float]
    errors_logged: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Options:
    seconds: float
    seed: int
    lease: float
    per_second: float  # transactions of all enqueuers together
    pace: float  # leases from one fault to the next, on the average
    patience: float  # seconds in which everything must be drained, and a worker stopped


def run(database: Database, folder: Path, options: Options, say: Callable[[str], None]) -> Outcome:
    """Let the crew work while the plan is carried out, let them finish, and reckon."""
    crew = make_crew(database, folder, options)
    faults = Faults(crew, database, folder, say)
    try:
        crew.start()
        began = time.monotonic()
        _wait_for_work(folder, crew)
        _carry_out(options, crew, faults, database.has_server)
        faults.end()
        say(f"no more faults, after {time.monotonic() - began:.1f} s")
        crew.retire("enqueuer")
        drained_in = _drain(crew, options.patience, say)
        if drained_in is None:
            crew.findings.append(f"not all jobs had ended {options.patience:.0f} s after the last fault")
            crew.where_are_they("worker")
            threading.Event().wait(2)
        crew.retire("worker")
        left = crew.left_behind()
        if left:
            crew.findings.append(f"processes live on though those that started them have ended: {left}")
    finally:
        crew.close()
    story = Story.told(read(folder))
    story.completions = completions(folder)
    rows, effects = tables()
    findings = [*crew.findings, *faults.errors, *reckon(story, rows, effects, database.has_server)]
    findings += [f"the server met a deadlock: {line}" for line in database.errors()]
    return Outcome(
        faults.happened,
        rows,
        findings,
        story,
        drained_in or 0.0,
        crew.slowest_stop,
        crew.deaths,
        faults.killed,
        logged(folder),
    )


def make_crew(database: Database, folder: Path, options: Options) -> Crew:
    """An enqueuer on the database itself, another one and the workers each on a line of its own."""
    lease = options.lease
    settings = {
        "LEASE": lease,
        "HEARTBEAT_INTERVAL": lease / 5,
        "POLL_INTERVAL": 0.2,
        "STATEMENT_TIMEOUT": lease,
        "SHUTDOWN_TIMEOUT": 2,
        "TIMEOUT_GRACE": 0.5,
        "RETENTION": {"completed": None, "failed": None, "cancelled": None},
    }
    if not database.has_server:
        settings["STATEMENT_TIMEOUT"] = 30  # who is stopped in the middle of a commit has all others wait
    common = {"DJANGO_SETTINGS_MODULE": "tests.chaos.settings", FOLDER: str(folder)}
    common["DJANGO_JOBS"] = json.dumps(settings)
    posts = [
        Post(
            f"worker{number}",
            ["manage.py", "runjobs", *arguments],
            {**common, "DATABASE_URL": database.url_through(number)},
            folder / f"worker{number}.log",
            "Working on",
        )
        for number, arguments in enumerate(WORKERS)
    ]
    posts += [
        Post(
            f"enqueuer{number}",
            [
                "-m",
                "tests.chaos.enqueuer",
                str(options.seed * 1000 + number),
                str(options.per_second / ENQUEUERS),
            ],
            {**common, "DATABASE_URL": database.url_through(len(WORKERS)) if number else database.url},
            folder / f"enqueuer{number}.log",
            "(?!)",  # it says nothing; a signal before it can handle one ends it
        )
        for number in range(ENQUEUERS)
    ]
    return Crew(posts, options.patience)


def _wait_for_work(folder: Path, crew: Crew) -> None:
    """Until every worker works."""
    end = time.monotonic() + 60
    pause = threading.Event()
    while not all(post.is_ready for post in crew.of("worker")) or not any(folder.glob("*.journal")):
        crew.look()
        if time.monotonic() > end:
            raise RuntimeError(f"the workers do not start; see {folder}")
        pause.wait(0.05)


def _carry_out(options: Options, crew: Crew, faults: Faults, has_server: bool) -> None:
    began = time.monotonic()
    todo = plan(options.seed, options.seconds, options.lease, has_server, options.pace)
    pause = threading.Event()
    while time.monotonic() - began < options.seconds:
        while todo and todo[0].at <= time.monotonic() - began:
            faults.begin(todo.pop(0))
        crew.look(replace_after=0.2 * options.lease)
        pause.wait(0.02)


def _drain(crew: Crew, patience: float, say: Callable[[str], None]) -> float | None:
    """Wait until every job has ended; the seconds that it took, None if it took too long."""
    from django.db import connection

    from django_jobs.models import Job

    began = time.monotonic()
    pause = threading.Event()
    while time.monotonic() - began < patience:
        crew.look()
        try:
            left = Job.objects.filter(state__in=LIVE).count()
        except Exception as error:
            say(f"the harness can't look: {error}")
            connection.close()
            left = -1
        if not left:
            return time.monotonic() - began
        pause.wait(0.1)
    return None


def tables() -> tuple[list[Row], list[tuple[int, int]]]:
    """All jobs and effects."""
    from django_jobs.models import Job
    from tests.workload.models import Effect

    rows = [
        Row(
            job.pk,
            job.name.rpartition(".")[2],
            _token(job),
            job.state,
            job.attempt,
            job.max_attempts,
            job.claims,
            None if job.finalized_at is None else job.finalized_at.timestamp(),
            job.error_class,
            job.holds_key,
        )
        for job in Job.objects.order_by("id")
    ]
    return rows, list(Effect.objects.values_list("job_id", "claims"))


def _token(job: Any) -> str:
    token: str = job.kwargs.get("token") or job.args[0]
    return token


def completions(folder: Path) -> Counter[int]:
    """How often workers have logged of each job that it is completed: what is said once it is stored."""
    said = re.compile(r" django_jobs\.attempts: job (\d+) \S+ \(queue \w+\) attempt \d+ of \d+ completed")
    found: Counter[int] = Counter()
    for path in folder.glob("worker*.log"):
        found.update(int(id_) for id_ in said.findall(path.read_text(errors="replace")))
    return found


def logged(folder: Path) -> Counter[str]:
    """What the processes' logs have of errors, numbers left out, and how often."""
    found: Counter[str] = Counter()
    for path in folder.glob("*.log"):
        for line in path.read_text(errors="replace").splitlines():
            _, level, message = line.partition(" ERROR ")
            if level:
                found["".join("#" if c.isdigit() else c for c in message.partition("] ")[2])[:150]] += 1
            elif line.startswith("Traceback"):
                found["Traceback"] += 1
    return found


def prepare(database: Database) -> None:
    """Set up Django in this process, on the database itself, and make the tables."""
    os.environ["DATABASE_URL"] = database.url
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.chaos.settings"
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", run_syncdb=True, verbosity=0)
