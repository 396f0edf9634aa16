"""``python -m tests.chaos``: see ``--help``."""

import argparse
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from tests.chaos.database import folder_of_run, open_database
from tests.chaos.output import say


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description=sys.modules["tests.chaos"].__doc__
    )
    parser.add_argument("--seconds", type=float, default=60, help="how long faults come; default: 60")
    parser.add_argument(
        "--seed", type=int, help="the plan and the work follow from it; default: a new one, printed"
    )
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="postgresql")
    parser.add_argument("--lease", type=float, default=3.0, help="of the workers, in seconds; default: 3")
    parser.add_argument(
        "--rate", type=float, default=40, help="transactions enqueued per second; default: 40"
    )
    parser.add_argument(
        "--patience", type=float, default=90, help="seconds for all to end after that; default: 90"
    )
    parser.add_argument("--pace", type=float, default=0.6, help="leases between two faults; default: 0.6")
    parser.add_argument("--folder", type=Path, help="keep journals and logs in this new folder")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # in order: with it ends all that it started
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    say(f"seed {seed}, {options.database}, {options.seconds:g} s of faults, lease {options.lease:g} s")
    from tests.chaos.report import report
    from tests.chaos.run import WORKERS, Options, prepare, run

    database = open_database(options.database, len(WORKERS) + 1)
    folder = folder_of_run(options.folder)
    began = time.monotonic()
    try:
        prepare(database)
        outcome = run(
            database,
            folder,
            Options(options.seconds, seed, options.lease, options.rate, options.pace, options.patience),
            lambda line: say(f"{time.monotonic() - began:7.1f}  {line}"),
        )
        for line in report(outcome):
            say(line)
    except BaseException:
        say(f"seed {seed}; the journals and logs are in {folder}")
        raise
    finally:
        database.close()
    if outcome.findings:
        say(f"seed {seed}; the journals and logs are in {folder}")
        return 1
    if options.folder is None:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
