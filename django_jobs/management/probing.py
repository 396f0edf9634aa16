"""The options of ``runjobs`` for probes and metrics, and what they make."""

from __future__ import annotations

import contextlib
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError

from django_jobs.worker.measures import Snapshot
from django_jobs.worker.notifying import Notifier
from django_jobs.worker.ports import Address, Port, parse_address
from django_jobs.worker.probes import Probes, check_health_file


def add_arguments(parser: ArgumentParser) -> None:
    """The options."""
    parser.add_argument(
        "--health-file",
        metavar="PATH",
        help="touch this file every few seconds while the process lives; it is removed at the end",
    )
    parser.add_argument(
        "--health-port",
        type=address,
        metavar="[HOST:]PORT",
        help="answer at /live while the process lives: 200, or 503 when something stands still",
    )
    parser.add_argument(
        "--metrics-port",
        type=address,
        metavar="[HOST:]PORT",
        help="answer at /metrics for Prometheus; may be the same port (needs django-runjobs[prometheus])",
    )


def address(text: str) -> Address:
    """For argparse: an address."""
    try:
        return parse_address(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


class Outlets(contextlib.ExitStack):
    """What this process shows of itself: probes and ports, open from :meth:`open` until it is closed.

    :param options: of the command line.
    :param interval: seconds between two looks of the probes.
    """

    def __init__(self, options: dict[str, Any], interval: float) -> None:
        super().__init__()
        self._ports: dict[Address, Port] = {}
        self._options = options
        self._page: Callable[[Callable[[], Snapshot]], Any] | None = None
        if options["metrics_port"] is not None:
            try:
                from django_jobs.prometheus.workers import page
            except ImproperlyConfigured as error:
                raise CommandError(f"--metrics-port: {error}") from None
            self._page = page
        try:
            self.probes = self._make_probes(interval)
            self._metrics = self._port("metrics_port")
        except BaseException:
            self.close()
            raise

    @property
    def has_metrics(self) -> bool:
        """Whether anybody wants to know what is measured."""
        return self._metrics is not None

    def _make_probes(self, interval: float) -> Probes | None:
        path = self._options["health_file"]
        file: Path | None = None
        if path is not None:
            try:
                file = check_health_file(path)
            except OSError as error:
                raise CommandError(f"--health-file {path}: {error}") from None
        port = self._port("health_port")
        notifier = Notifier.from_environment()
        if file is None and port is None and notifier is None:
            return None
        return Probes(interval, file, port, notifier)

    def _port(self, option: str) -> Port | None:
        wanted: Address | None = self._options[option]
        if wanted is None:
            return None
        if wanted not in self._ports:
            try:
                port = self._ports[wanted] = Port(wanted)
            except OSError as error:
                raise CommandError(f"--{option.replace('_', '-')} {wanted}: {error}") from None
            self.callback(port.close)
        return self._ports[wanted]

    def open(self, snapshot: Callable[[], Snapshot] | None, say: Callable[[str], None]) -> None:
        """Answer from now on.

        :param snapshot: what is measured.
        :param say: told where.
        """
        if self._metrics is not None and self._page is not None and snapshot is not None:
            self._metrics.pages["/metrics"] = self._page(snapshot)
            say(f"Metrics at http://{self._metrics.address}/metrics")
        if self._options["health_port"] is not None:
            say(f"Health at http://{self._ports[self._options['health_port']].address}/live")
        for port in self._ports.values():
            port.start()
