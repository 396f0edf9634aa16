"""Faults as they happen: begun, and ended when their time is over."""

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.chaos.crew import Crew
from tests.chaos.database import Database, ServerDatabase
from tests.chaos.journal import at_work
from tests.chaos.plan import Fault
from tests.chaos.proxy import How

End = Callable[[], None]

HOW_SERVERS_STOP = {
    "server restarted, fast": signal.SIGINT,
    "server restarted, immediate": signal.SIGQUIT,
    "server killed": signal.SIGKILL,
    "server away for long": signal.SIGINT,
}


# How long a worker that is to be killed is let live until it is at a job.
LIVES_SECONDS = 1.0


def nothing() -> None:
    pass


@dataclass(frozen=True)
class Happened:
    """A fault that has come and gone; times are those of the clock."""

    kind: str
    began: float
    ended: float


class Faults:
    """Does what the plan says, each fault in a thread of its own: they may overlap.

    :param folder: where the journals are.
    """

    def __init__(self, crew: Crew, database: Database, folder: Path, say: Callable[[str], None]) -> None:
        self.crew = crew
        self.folder = folder
        self.database = database
        self.say = say
        self.happened: list[Happened] = []
        self.killed: dict[int, float] = {}  # when, by process id
        self.errors: list[str] = []
        self._threads: list[threading.Thread] = []
        self._over = threading.Event()

    def begin(self, fault: Fault) -> None:
        thread = threading.Thread(target=self._happen, args=(fault,), name=fault.kind)
        self._threads.append(thread)
        thread.start()

    def end(self) -> None:
        """All that still is wrong is right again from now on."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        for proxy in self.database.proxies:
            proxy.heal()

    def _happen(self, fault: Fault) -> None:
        began = time.time()
        try:
            end = self._start(fault)
            if end is None:
                self.say(f"{fault.kind}: nobody to do it to")
                return
            self.say(f"{fault.kind}, for {fault.seconds:.1f} s")
            self._over.wait(fault.seconds)
            end()
            self.happened.append(Happened(fault.kind, began, time.time()))
        except Exception as error:
            self.errors.append(f"the harness failed at {fault.kind!r}: {error!r}")

    def _start(self, fault: Fault) -> End | None:
        kind = fault.kind
        if kind.startswith(("worker", "enqueuer")):
            return self._process(fault)
        assert isinstance(self.database, ServerDatabase)
        if kind.startswith("line"):
            return self._line(fault, self.database)
        return self._server(fault, self.database)

    def _process(self, fault: Fault) -> End | None:
        who, what = fault.kind.split()[:2]
        members = self.crew.members(who)
        if not members:
            return None
        post, member = members[int(fault.whom * len(members))]
        if what == "stopped":
            self.crew.hit(post, member, signal.SIGSTOP)
            return partial(self.crew.hit, post, member, signal.SIGCONT)
        if what == "killed":
            if who == "worker":
                self._wait_for_work(member.pid)
            self.killed[member.pid] = time.time()
            self.crew.hit(post, member, signal.SIGKILL)
            return nothing
        self.crew.hit(post, member, signal.SIGTERM)
        if fault.kind.endswith("twice"):
            return partial(self.crew.hit, post, member, signal.SIGTERM)
        return nothing

    def _wait_for_work(self, pid: int) -> None:
        """Until it is at a job, one that is no matter of a moment: who holds nothing leaves nothing to be rescued."""
        before: set[tuple[int, int]] = set()
        end = time.monotonic() + LIVES_SECONDS
        while time.monotonic() < end and not self._over.wait(0.02):
            now = at_work(self.folder, pid)
            if now & before:
                return
            before = now

    def _line(self, fault: Fault, database: ServerDatabase) -> End | None:
        word = fault.kind.removeprefix("line ").partition(",")[0].split()[0]
        how: How = next(each for each in ("slow", "cut", "deaf", "held", "silent") if each == word)
        # Now and then all of them.
        chosen = (
            database.proxies
            if fault.whom > 0.8
            else (database.proxies[int(fault.whom / 0.8 * len(database.proxies))],)
        )
        free = [proxy for proxy in chosen if proxy.how == "well"]
        for proxy in free:
            proxy.turn(how, 0.02 + 0.3 * (fault.whom * 7 % 1))
        if not free:
            return None

        def end() -> None:
            for proxy in free:
                # The enqueuers' connections are Django's: who waits there has no deadline, and would wait for ever.
                proxy.heal(forget="for ever" in fault.kind and proxy is not database.proxies[-1])

        return end

    def _server(self, fault: Fault, database: ServerDatabase) -> End | None:
        if not database.guard.acquire(blocking=False):
            return None
        end: End = nothing
        if fault.kind == "server: a session killed":
            database.kill_session(fault.whom)
        elif fault.kind == "server: sessions terminated":
            database.terminate_sessions()
        elif fault.kind == "server stands still":
            end = database.freeze()
        else:
            database.stop(HOW_SERVERS_STOP[fault.kind])
            end = database.start

        def over() -> None:
            try:
                end()
            finally:
                database.guard.release()

        return over
