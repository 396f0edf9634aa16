"""A process that inserts jobs for so many seconds: ``python -m benchmarks.core.inserter SECONDS``."""

from __future__ import annotations

import sys
import time

AT_ONCE = 1000


def main(seconds: float) -> None:
    """Say so, insert, and end."""
    import django

    django.setup()
    from benchmarks.jobs import noop

    calls = [(n,) for n in range(AT_ONCE)]
    print("begins", flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        noop.enqueue_many(calls)


if __name__ == "__main__":
    main(float(sys.argv[1]))
