"""``python -m tests.guards``: see ``--help``."""

import argparse
import contextlib
import queue
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.chaos.output import say
from tests.guards.catalogue import GUARDS
from tests.guards.guard import Guard
from tests.guards.trying import copied_tree, try_without


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.guards",
        description=sys.modules["tests.guards"].__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="only guards with it in their name, file or test"
    )
    parser.add_argument("--database", choices=["sqlite", "postgresql"], action="append", help="default: both")
    parser.add_argument("--seconds", type=float, default=180, help="for the tests of one guard; default: 180")
    parser.add_argument("--jobs", type=int, default=1, help="that many at once; default: 1")
    parser.add_argument("--verbose", action="store_true", help="show what pytest printed")
    parser.add_argument("--list", action="store_true", help="name them, and try none")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    chosen = [guard for guard in GUARDS if not options.words or any(map(guard.matches, options.words))]
    if options.list or not chosen:
        say("\n".join(guard.name for guard in chosen) or "No guard has that word.")
        return 0 if chosen else 2
    trials = [
        (guard, database)
        for database in options.database or ["sqlite", "postgresql"]
        for guard in chosen
        if database in guard.databases
    ]
    with contextlib.ExitStack() as copies, ThreadPoolExecutor(options.jobs) as pool:
        roots: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for _ in range(options.jobs):
            roots.put(copies.enter_context(copied_tree()))
        bad = sum(not good for good in pool.map(lambda trial: seen_failing(*trial, roots, options), trials))
    say(f"{len(trials)} guards taken out, {bad} not seen failing")
    return 1 if bad else 0


def seen_failing(
    guard: Guard, database: str, roots: "queue.SimpleQueue[Path]", options: argparse.Namespace
) -> bool:
    """Take it out in a tree that nobody else uses, and say how it went."""
    started = time.monotonic()
    root = roots.get()
    try:
        trial = try_without(guard, database, root, options.seconds)
    finally:
        roots.put(root)
    word = "fails" if trial.is_good else "NOT SEEN FAILING"
    lines = [f"{word:16} {database:10} {time.monotonic() - started:5.1f} s  {guard.name}"]
    lines += [f"{'':16} passes without it: {test}" for test in trial.passed]
    if options.verbose or not trial.is_good:
        lines.append(trial.output if options.verbose else trial.output[-3000:])
    say("\n".join(lines))
    return trial.is_good


if __name__ == "__main__":
    sys.exit(main())
