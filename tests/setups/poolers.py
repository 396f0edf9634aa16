"""PgBouncer, the real program, in front of the tests' PostgreSQL: found, started, stopped."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.servers import ServerError, free_port, guard, unprivileged_user

#: The program, or None where it is not installed. Debian puts it where only root looks.
PGBOUNCER = shutil.which("pgbouncer", path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"]))

START_SECONDS = 20


class PgBouncer:
    """One pooler in transaction mode, in front of the server of a database's settings.

    :param database: an entry of ``DATABASES``.
    :param pool_size: how many server connections it opens at most.
    """

    def __init__(self, database: dict[str, Any], pool_size: int = 3) -> None:
        self.user = unprivileged_user()
        self.home = Path(tempfile.mkdtemp(prefix="pgb-"))
        self.log = self.home / "log"
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        target = {
            "host": database["HOST"],
            "port": database["PORT"],
            "user": database["USER"],
            "password": database["PASSWORD"],
        }
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "any",
            "pool_mode": "transaction",
            "default_pool_size": pool_size,
            "max_client_conn": 200,
        }
        lines = [
            "[databases]",
            "* = " + " ".join(f"{name}={value}" for name, value in target.items() if value),
        ]
        lines += ["[pgbouncer]", *(f"{name} = {value}" for name, value in settings.items())]
        self.config = self.home / "pgbouncer.ini"
        self.config.write_text("\n".join(lines) + "\n")
        if self.user:
            for path in (self.home, self.config):
                os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def changes(self) -> dict[str, Any]:
        """What leads an entry of ``DATABASES`` through the pooler."""
        return {"HOST": "127.0.0.1", "PORT": self.port}

    def start(self, database: dict[str, Any]) -> None:
        import psycopg

        assert PGBOUNCER is not None
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*guard(self.user), PGBOUNCER, str(self.config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.home,
                start_new_session=True,
            )
        pause = threading.Event()
        deadline = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                self.connect(database).close()
                return
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise ServerError(f"PgBouncer did not start:\n{self.log.read_text()[-3000:]}")
            pause.wait(0.02)

    def connect(self, database: dict[str, Any]) -> Any:
        """A connection through it."""
        import psycopg

        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            dbname=database["NAME"],
            user=database["USER"],
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=5,
        )

    def remove(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)
