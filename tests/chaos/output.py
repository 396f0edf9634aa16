"""What the commands print: at once, so that it stands in a log whatever happens next."""

import sys


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
