"""Waiting in tests: for something to become true, with a deadline."""

import threading
import time
from collections.abc import Callable


def eventually(predicate: Callable[[], object], timeout: float = 30.0, interval: float = 0.02) -> None:
    """Wait until ``predicate()`` is true; fail after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    pause = threading.Event()
    while not predicate():
        assert time.monotonic() < deadline, f"it did not become true within {timeout:g} s"
        pause.wait(interval)
