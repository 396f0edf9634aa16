"""``runjobs --reload``: Django's autoreloader watches, and the worker is its child.

The reloader needs the main thread of its process and ends it abruptly; the worker needs the main thread, for signals,
and an end in order. So each has a process.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import time

from django_jobs.worker.lifeline import Lifeline

# How long the old worker may take to stop before the new one starts. Its jobs are handed back when it is stopped.
PATIENCE_SECONDS = 10.0


def supervise(arguments: list[str]) -> None:
    """Run the worker as a child until it ends; stop it when this process is reloaded or ends.

    :param arguments: this process's ``sys.argv``, with ``--reload`` in it.
    """
    lifeline = Lifeline()
    environment = {key: value for key, value in os.environ.items() if key != "RUN_MAIN"}
    command = [sys.executable, *[argument for argument in arguments if argument != "--reload"]]
    child = subprocess.Popen(  # noqa: S603 - this very command line again
        command, env={**environment, **lifeline.environment()}, pass_fds=[lifeline.child_end]
    )
    atexit.register(stop, child)
    code = child.wait()
    if code:
        # Broken code: wait for the change that mends it, rather than fail in a circle.
        print(f"The worker ended with exit code {code}; it starts again when the code changes.", flush=True)  # noqa: T201
        while True:
            time.sleep(3600)
    # It was told to stop, by a signal or in the admin: then so is the reloader.
    os.kill(os.getpid(), signal.SIGTERM)


def stop(child: subprocess.Popen[bytes]) -> None:
    """End the child in order, or, where it takes too long, at once."""
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        if child.poll() is not None:
            return
        child.send_signal(number)
        try:
            child.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            continue
