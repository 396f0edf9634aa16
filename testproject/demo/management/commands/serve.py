"""``manage.py serve``: the demo as a site. Brings up site, worker and a login, and says where."""

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse
from django.utils import timezone

from django_jobs.models import Stat
from testproject.demo.data import fill_history
from testproject.demo.jobs import import_catalogue, visitors_come

MANAGE = Path(__file__).resolve().parents[4] / "manage.py"
LOGIN = PASSWORD = "demo"  # noqa: S105 - for a site that only this machine can see
HOST = "127.0.0.1"
STOP_SECONDS = 15


class Command(BaseCommand):
    help = (
        "Bring up the site with a week of an invented shop's jobs, a worker, and a login. It listens on this machine "
        "alone. Ctrl-C ends it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="Default: 8000. 0: any that is free.")

    def handle(self, *args: Any, port: int, **options: Any) -> None:
        port = free(port)
        call_command("migrate", verbosity=0)
        if not User.objects.filter(username=LOGIN).exists():
            User.objects.create_superuser(LOGIN, password=PASSWORD)
        if not Stat.objects.exists():
            self.stdout.write("Writing a week of jobs ...")
            fill_history(timezone.now())
            visitors_come.enqueue()
            import_catalogue.enqueue("Fern & Sons")
        with worker():
            address = f"http://{HOST}:{port}{reverse('admin:django_jobs_job_overview')}"
            self.stdout.write(
                f"\n  {self.style.SUCCESS(address)}\n  login {LOGIN}, password {PASSWORD}\n\n"
                "A worker runs beside the site. Ctrl-C ends both.\n"
            )
            self.stdout.flush()
            call_command("runserver", f"{HOST}:{port}", use_reloader=False, verbosity=0)


def free(port: int) -> int:
    """The port, or a free one for 0. Raises CommandError when somebody listens there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as exc:
            if exc.errno != errno.EADDRINUSE:
                raise CommandError(f"Port {port} can't be used: {exc}.") from exc
            raise CommandError(
                f"Port {port} is in use here; choose another: make serve ARGS='--port {port + 1}'"
            ) from exc
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def worker() -> Iterator[None]:
    """A worker in a process of its own, which ends with this one."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # whoever ends this ends the worker too
    process = subprocess.Popen(  # noqa: S603 - this program again
        [sys.executable, str(MANAGE), "runjobs"],
        # What jobs fail of is to be seen in the admin.
        env={**os.environ, "LOG_LEVEL": os.environ.get("LOG_LEVEL", "CRITICAL")},
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for this process, which then stops the worker
    )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
