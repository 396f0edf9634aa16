"""systemd's notify protocol: the service is ready, stops, and lives (``Type=notify``, ``WatchdogSec=``)."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import MutableMapping

from django_jobs.worker.parts import one_line

logger = logging.getLogger("django_jobs.worker")


class Notifier:
    """Tells systemd of this process.

    :param address: its socket: a path, or a name beginning with ``@``.
    :param watchdog: seconds within which it wants to hear again and again that the process lives; None: it does not.
    """

    def __init__(self, address: str, watchdog: float | None = None) -> None:
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self.watchdog = watchdog
        self._failed = False

    @classmethod
    def from_environment(cls, environment: MutableMapping[str, str] | None = None) -> Notifier | None:
        """What systemd has told this process, or None where it has not. Children don't inherit it: they would speak for
        their parent."""
        if environment is None:
            environment = os.environ
        address = environment.pop("NOTIFY_SOCKET", "")
        microseconds = environment.pop("WATCHDOG_USEC", "")
        pid = environment.pop("WATCHDOG_PID", "")
        if not address.startswith(("/", "@")):
            return None
        meant = microseconds.isdigit() and int(microseconds) > 0 and pid in ("", str(os.getpid()))
        return cls(address, int(microseconds) / 1e6 if meant else None)

    def ready(self, status: str) -> None:
        """The service has started."""
        self._send("READY=1", f"STATUS={status}")

    def status(self, status: str) -> None:
        """What it does, in a line for ``systemctl status``."""
        self._send(f"STATUS={status}")

    def stopping(self) -> None:
        """The service stops."""
        self._send("STOPPING=1")

    def alive(self) -> None:
        """The service lives."""
        self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> None:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
                one.setblocking(False)
                one.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            if not self._failed:
                self._failed = True
                logger.warning("systemd can't be told: %s", one_line(error))
