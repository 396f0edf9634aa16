"""``python -m benchmarks NAME``: run one of the benchmarks."""

from __future__ import annotations

import importlib
import signal
import sys
from pathlib import Path

COMMANDS = {
    "limit": "what the database itself can do: claim and finish in batches, and run nothing",
    "drain": "jobs per second, what each costs, and the ratio to the limit",
    "parts": "where a job's microseconds go: each part of the worker by itself",
    "operations": "each operation beside the same by the ORM: microseconds and statements",
    "latency": "milliseconds from commit to start, and what an idle worker uses",
    "enqueue": "jobs inserted per second, beside bare INSERT, unnest and COPY",
    "steps": "what one enqueue() takes, step by step",
    "pages": "each page of the admin, of ten million jobs",
    "scale": "claim, finish, the admin and stats with ever more history",
    "peers": "other queues, on the same PostgreSQL in the same run",
    "soak": "mixed load for a chosen time: whether anything is lost, and whether anything grows",
    "all": "all of them, and the page of their results",
    "report": "the page, docs/benchmarks.md, from the results that there are",
    "check": "whether the figures that were recorded are still reached",
}


def main(arguments: list[str]) -> int:
    """The command line."""
    if not arguments or arguments[0] not in COMMANDS:
        print("usage: python -m benchmarks NAME [--help]\n")
        for name, about in COMMANDS.items():
            print(f"  {name:<11} {about}")
        return 0 if arguments and arguments[0] in ("-h", "--help") else 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # in order: with it ends all that it started
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    command = importlib.import_module(f"benchmarks.{arguments[0].replace('-', '_')}")
    return int(command.BENCHMARK.run(arguments[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
