"""``python -m tests.guards``: see ``--help``."""

import argparse
import sys
import time

from tests.chaos.output import say
from tests.guards.catalogue import GUARDS
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
    parser.add_argument("--verbose", action="store_true", help="show what pytest printed")
    parser.add_argument("--list", action="store_true", help="name them, and try none")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    chosen = [guard for guard in GUARDS if not options.words or any(map(guard.matches, options.words))]
    if options.list or not chosen:
        say("\n".join(guard.name for guard in chosen) or "No guard has that word.")
        return 0 if chosen else 2
    tried = bad = 0
    with copied_tree() as root:
        for database in options.database or ["sqlite", "postgresql"]:
            for guard in chosen:
                if database not in guard.databases:
                    continue
                started = time.monotonic()
                trial = try_without(guard, database, root, options.seconds)
                tried += 1
                bad += not trial.is_good
                word = "fails" if trial.is_good else "NOT SEEN FAILING"
                say(f"{word:16} {database:10} {time.monotonic() - started:5.1f} s  {guard.name}")
                for test in trial.passed:
                    say(f"{'':16} passes without it: {test}")
                if options.verbose or not trial.is_good:
                    say(trial.output[-3000:] if not options.verbose else trial.output)
    say(f"{tried} guards taken out, {bad} not seen failing")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
