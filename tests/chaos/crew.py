"""The processes of a run: started, ill-treated, replaced, and ended in order."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Post:
    """A place where a process works, one after the other.

    :param name: for its logs.
    :param command: what runs there, after ``python``.
    :param environment: what it gets besides.
    :param log: where its output goes.
    :param ready: what its output says once it answers to SIGTERM; before that the signal just ends it.
    """

    name: str
    command: list[str]
    environment: dict[str, str]
    log: Path
    ready: str
    process: subprocess.Popen[bytes] | None = None
    signalled: set[int] = field(default_factory=set)  # what the present process was sent
    began: int = 0  # where its output begins in the log
    wanted: bool = True

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.began = log.tell()
            self.process = subprocess.Popen(
                [sys.executable, *self.command],
                cwd=ROOT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.signalled = set()

    def send(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            if number in (signal.SIGKILL, signal.SIGTERM):
                self.signalled.add(number)
            self.process.send_signal(number)

    @property
    def is_ready(self) -> bool:
        with self.log.open("rb") as log:
            log.seek(self.began)
            return re.search(self.ready.encode(), log.read()) is not None

    def members(self) -> list[psutil.Process]:
        """The process and its children, such as those of a supervisor."""
        process = self.process  # which another thread replaces when it has ended
        if process is None or process.poll() is not None:
            return []
        with contextlib.suppress(psutil.Error):
            parent = psutil.Process(process.pid)
            return [parent, *parent.children()]
        return []


class Crew:
    """All posts. A process that has ended is replaced after a while; one that ended by itself is a finding.

    :param patience: seconds that a process may take to stop in order.
    """

    def __init__(self, posts: list[Post], patience: float) -> None:
        self.posts = posts
        self.patience = patience
        self.findings: list[str] = []
        self.deaths = 0
        self.slowest_stop = 0.0
        self._lock = threading.Lock()
        self._sessions: set[int] = set()
        self._stopping_since: dict[int, float] = {}  # by process id
        self._start_at: dict[str, float] = {}

    def start(self) -> None:
        for post in self.posts:
            self._start(post)

    def _start(self, post: Post) -> None:
        post.start()
        assert post.process is not None
        self._sessions.add(post.process.pid)

    def of(self, prefix: str) -> list[Post]:
        return [post for post in self.posts if post.name.startswith(prefix)]

    def members(self, prefix: str) -> list[tuple[Post, psutil.Process]]:
        """Every process that works at such a post."""
        return [(post, member) for post in self.of(prefix) for member in post.members()]

    # -- faults ----------------------------------------------------------------------------------------------------

    def hit(self, post: Post, member: psutil.Process, number: signal.Signals) -> None:
        """Send a signal to a process, which may be a child of the post's."""
        with self._lock:
            if post.process is not None and member.pid == post.process.pid:
                post.send(number)
                if number == signal.SIGTERM:
                    self._stopping_since.setdefault(member.pid, time.monotonic())
            else:
                with contextlib.suppress(psutil.Error):
                    member.send_signal(number)

    def look(self, replace_after: float = 0.0) -> None:
        """Replace those that have ended, and take note of how."""
        now = time.monotonic()
        with self._lock:
            for post in self.posts:
                if post.process is None:
                    if post.wanted and now >= self._start_at.get(post.name, 0.0):
                        self._start(post)
                elif post.process.poll() is not None:
                    self._ended(post)
                    self._start_at[post.name] = now + replace_after

    def _ended(self, post: Post) -> None:
        assert post.process is not None
        code, pid = post.process.returncode, post.process.pid
        since = self._stopping_since.pop(pid, None)
        # A job may kill its process, and a signal that comes before it is handled ends it too.
        explained = (
            code == -signal.SIGKILL
            or (code == 0 and signal.SIGTERM in post.signalled)
            or (code == -signal.SIGTERM and signal.SIGTERM in post.signalled and not post.is_ready)
        )
        if not explained:
            self.findings.append(f"{post.name} (process {pid}) ended by itself, with exit code {code}")
        elif code == 0 and since is not None:
            self.slowest_stop = max(self.slowest_stop, time.monotonic() - since)
        self.deaths += 1
        post.process = None

    # -- the end ---------------------------------------------------------------------------------------------------

    def retire(self, prefix: str) -> None:
        """Stop such processes in order, and start none in their place."""
        with self._lock:
            for post in self.of(prefix):
                post.wanted = False
                if post.process is not None:
                    post.send(signal.SIGCONT)
                    post.send(signal.SIGTERM)
                    self._stopping_since.setdefault(post.process.pid, time.monotonic())
        end = time.monotonic() + self.patience
        pause = threading.Event()
        while any(post.process is not None for post in self.of(prefix)):
            self.look()
            if time.monotonic() > end:
                for post in self.of(prefix):
                    if post.process is not None:
                        self.findings.append(f"{post.name} did not stop within {self.patience:.0f} s")
                        self.where_are_they(prefix)
                        pause.wait(1)
                        self.kill(post)
            pause.wait(0.02)

    def where_are_they(self, prefix: str) -> None:
        """Have processes write down, in their logs, what their threads do."""
        for _, member in self.members(prefix):
            with contextlib.suppress(psutil.Error):
                member.send_signal(signal.SIGUSR1)

    def left_behind(self) -> list[int]:
        """Processes that live on though all that started them have ended."""
        left = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                if os.getsid(process.pid) in self._sessions and process.status() != psutil.STATUS_ZOMBIE:
                    left.append(process.pid)
        return left

    def kill(self, post: Post) -> None:
        if post.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(post.process.pid, signal.SIGKILL)
            post.process.wait()
            post.process = None

    def close(self) -> None:
        for post in self.posts:
            self.kill(post)
        for pid in self.left_behind():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
