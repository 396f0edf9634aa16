"""``python -m tests.chaos.storm``: processes of threads call the store's operations at random, and the tally is exact.

No fault is made here but the worst timing: claims are taken from workers that live, outcomes come late and twice,
operators change what just runs. No deadlock and no lock's error may reach a caller.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.chaos.database import folder_of_run, open_database
from tests.chaos.journal import FOLDER, read
from tests.chaos.output import say


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.storm", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, help="default: a new one, printed")
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="postgresql")
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--threads", type=int, default=4, help="of each process")
    parser.add_argument("--member", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def member(options: argparse.Namespace) -> int:
    """One of the processes."""
    import django

    django.setup()
    from tests.chaos.storming import Shared, Thread

    shared, stopping = Shared(), threading.Event()
    members = [Thread(f"{options.seed} {options.member} {n}", shared) for n in range(options.threads)]
    threads = [threading.Thread(target=each.run, args=(stopping,)) for each in members]
    for thread in threads:
        thread.start()
    stopping.wait(options.seconds)
    stopping.set()
    for thread in threads:
        thread.join()
    return 0


def tally(
    lines: Iterable[Mapping[str, Any]],
    rows: Mapping[int, tuple[str, int, int, int]],
    effects: Iterable[tuple[int, int]],
) -> Iterator[str]:
    """All that does not come out exact, in words.

    :param rows: of each job its state, attempt, greatest number of attempts, and claims.
    """
    lines = list(lines)
    inserted = Counter(id_ for line in lines if line["what"] == "inserted" for id_ in line["ids"])
    deleted = Counter(id_ for line in lines if line["what"] == "deleted" for id_ in line["ids"])
    claimed = Counter(tuple(c) for line in lines if line["what"] == "claimed" for c in line["claims"])
    ended = Counter(tuple(c) for line in lines if line["what"] == "ended" for c in line["claims"])
    left = Counter(tuple(line["claim"]) for line in lines if line["what"] == "left an effect")
    for line in lines:
        if line["what"] == "failed":
            yield f"{line['act']} met {line['error']}"
    for what, counter in [
        ("inserted", inserted),
        ("deleted", deleted),
        ("claimed", claimed),
        ("ended", ended),
    ]:
        for each, count in counter.items():
            if count > 1:
                yield f"{each} was {what} {count} times"
    for id_ in inserted.keys() - rows.keys() - deleted.keys():
        yield f"job {id_} is lost"
    for id_ in rows.keys() & deleted.keys():
        yield f"job {id_} is there, and was deleted"
    for id_ in rows.keys() - inserted.keys():
        yield f"job {id_} is there, and was never committed"
    if left != Counter(effects):
        yield f"the effects are not exact: {sorted((left - Counter(effects)) + (Counter(effects) - left))}"
    for claim in claimed.keys() ^ ended.keys():
        yield f"claim {claim} was {'claimed' if claim in claimed else 'ended'}, and that is all of it"
    numbers: dict[int, list[int]] = {}
    for id_, number in claimed:
        numbers.setdefault(id_, []).append(number)
    for id_, (state, attempt, most, claims) in rows.items():
        if sorted(numbers.get(id_, [])) != list(range(1, claims + 1)):
            yield f"job {id_} has had {claims} claims, and they are {sorted(numbers.get(id_, []))}"
        if state not in ("completed", "failed", "cancelled"):
            yield f"job {id_} has not ended: {state}"
        if state == "completed" and not claims:
            yield f"job {id_} is completed, and was never claimed"
        if not 0 <= attempt <= min(most, claims):
            yield f"job {id_} has attempt {attempt} of {most}, after {claims} claims"


def storm(options: argparse.Namespace, url: str, folder: Path) -> list[str]:
    """Let all processes go at it, settle what is left, and tally."""
    os.environ[FOLDER] = str(folder)
    command = [sys.executable, "-m", "tests.chaos.storm", "--seed", str(options.seed)]
    command += ["--seconds", str(options.seconds), "--threads", str(options.threads)]
    processes = [subprocess.Popen([*command, "--member", str(n)]) for n in range(options.processes)]
    try:
        codes = [process.wait(options.seconds + 120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    from django_jobs.models import Job, Worker
    from django_jobs.store import own_store
    from tests.chaos.storming import settle
    from tests.workload.models import Effect

    store = own_store("default")
    settle(store, list(Worker.objects.values_list("pk", flat=True)))
    store.close()
    lines = list(read(folder))
    rows = {
        row[0]: row[1:] for row in Job.objects.values_list("pk", "state", "attempt", "max_attempts", "claims")
    }
    found = [f"process {number} ended with exit code {code}" for number, code in enumerate(codes) if code]
    found += tally(lines, rows, Effect.objects.values_list("job_id", "claims"))
    acts: Counter[str] = Counter()
    for line in lines:
        if line["what"] == "did":
            acts.update(line["counts"])
    count = Counter(row[0] for row in rows.values())
    say(
        f"{sum(acts.values())} operations: {', '.join(f'{name} {count}' for name, count in acts.most_common())}"
    )
    say(
        f"{sum(len(line['claims']) for line in lines if line['what'] == 'claimed')} claims; {dict(count)} at the end"
    )
    return found


def main() -> int:
    options = arguments()
    if options.member is not None:
        return member(options)
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(10**6)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    say(
        f"seed {options.seed}, {options.database}, {options.processes} processes of {options.threads} threads"
    )
    from tests.chaos.run import prepare

    database = open_database(options.database, 0)
    folder = folder_of_run(None)
    began = time.monotonic()
    try:
        prepare(database)
        found = storm(options, database.url, folder)
        if database.errors():
            say(f"{len(database.errors())} deadlocks in the server's log, of which no caller heard")
    finally:
        database.close()
    for finding in found[:30]:
        say(f"FOUND: {finding}")
    if found:
        say(f"{len(found)} findings, seed {options.seed}; the journals are in {folder}")
        return 1
    say(f"the tally is exact, and no error reached a caller, after {time.monotonic() - began:.0f} s")
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
