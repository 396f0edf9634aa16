"""``runjobs --processes N``: the parent of N workers, each a process of its own.

It has no queue, no connection and no thread that runs jobs. Children are fresh interpreters: nothing is forked that
holds threads, locks or connections. A dead child is replaced, and what it held is handed back at once; a child that
has had enough (--max-jobs, --max-memory) says so in its notes and is replaced while it ends its last jobs.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django_jobs.worker.handback import Estate, HandBack
from django_jobs.worker.lifeline import Lifeline
from django_jobs.worker.logs import guard_logs
from django_jobs.worker.parts import StopRequest, until
from django_jobs.worker.probes import Probes, Pulse
from django_jobs.worker.shared_notes import Notes

logger = logging.getLogger("django_jobs.supervisor")

# A child that dies is replaced at once, the second time after a second, then after twice as long each time, unless it
# had lived for a minute.
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
LIVED_SECONDS = 60.0
# How much longer than the shutdown timeout a child may take to stop: it flushes outcomes and hands back the rest.
GRACE_SECONDS = 20.0
# How long the hand-back of what killed children held may take at the end.
HAND_BACK_SECONDS = 10.0
# How often the children's notes are looked at. Signals, and the end of a child, are noticed at once.
LOOK_SECONDS = 0.2


class Child:
    """A process, its lifeline and its notes.

    :param command: what to run.
    :param executors: how many jobs the child may run at once.
    :param environment: what it gets in its environment, beside what this process has.
    :param probed: whether it is to note that it lives.
    :raises OSError: when it can't be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        executors: int,
        environment: Mapping[str, str] | None = None,
        probed: bool = False,
    ) -> None:
        self.notes = Notes.create(executors)
        if probed:
            self.notes.probe()
        self.lifeline = Lifeline()
        self.started_at = time.monotonic()
        self.kill_at: float | None = None
        try:
            self.process = subprocess.Popen(  # noqa: S603 - this program again, by its own arguments
                command,
                stdin=subprocess.DEVNULL,
                env={
                    **os.environ,
                    **(environment or {}),
                    **self.lifeline.environment(),
                    **self.notes.environment(),
                },
                pass_fds=[self.lifeline.child_end, self.notes.descriptor],
            )
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid

    @property
    def heard_at(self) -> float:
        """When it has noted last that it lives, by the monotonic clock; 0: never."""
        return self.notes.beat_at

    @property
    def ended_in_order(self) -> bool:
        """Whether it stopped in order, and holds nothing: a signal that came after its last write changes nothing."""
        return self.notes.ended

    @property
    def in_words(self) -> str:
        """How it ended."""
        code = self.process.returncode
        if code >= 0:
            return f"Process {self.pid} ended with exit code {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = str(-code)
        return f"Process {self.pid} was killed by signal {name}"

    def stop(self, seconds: float) -> None:
        """Ask it to stop, and kill it if it has not within ``seconds``."""
        self.kill_within(seconds)
        self.process.send_signal(signal.SIGTERM)

    def kill_within(self, seconds: float) -> None:
        """Kill it if it has not ended within ``seconds``, or what was said before."""
        moment = time.monotonic() + seconds
        self.kill_at = moment if self.kill_at is None else min(self.kill_at, moment)

    def close(self) -> None:
        """Give up the descriptors."""
        self.lifeline.close()
        self.notes.close()


class Place:
    """One of the N places: the child that works there, or when the next one starts."""

    def __init__(self) -> None:
        self.child: Child | None = None
        self.start_at: float | None = 0.0  # None: nobody starts here any more
        self.deaths = 0  # in a row, each soon after its start
        self.waits_for: Estate | None = None

    def died(self, lived: float) -> float:
        """The child has died; seconds until the next one starts."""
        self.deaths = 1 if lived >= LIVED_SECONDS else self.deaths + 1
        pause = 0.0 if self.deaths == 1 else min(FIRST_PAUSE * 2.0 ** min(self.deaths - 2, 20), LONGEST_PAUSE)
        self.start_at = time.monotonic() + pause
        return pause


class Supervisor:
    """Keeps N children at work until it is stopped, or, draining, until they have ended.

    Like the worker it installs no handlers for SIGTERM and SIGINT: ``runjobs`` does, and calls :meth:`stop` and
    :meth:`stop_now`.

    :param command: starts a child, which finds its lifeline and its notes in its environment.
    :param processes: how many.
    :param executors: how many jobs each child may run at once.
    :param hand_back: takes what dead children held.
    :param drain: children end by themselves, and are not replaced then.
    :param shutdown_timeout: seconds that a stopping child waits for its jobs.
    :param grace: seconds that it may take beyond that before it is killed.
    :param probes: show that the supervisor and its children live.
    :param silence: seconds that a child may not be heard of before they say that something is wrong.
    :param environment: what children get in theirs, beside what the parent has.
    :param on_ended: called with the process id of each child that has ended, before another child can have it.
    """

    def __init__(
        self,
        command: Sequence[str],
        processes: int,
        executors: int,
        hand_back: HandBack,
        *,
        drain: bool = False,
        shutdown_timeout: float = 30.0,
        grace: float = GRACE_SECONDS,
        probes: Probes | None = None,
        silence: float = 120.0,
        environment: Mapping[str, str] | None = None,
        on_ended: Callable[[int], None] | None = None,
    ) -> None:
        self.command = list(command)
        self.executors = executors
        self.hand_back = hand_back
        self.drain = drain
        self.shutdown_timeout = shutdown_timeout
        self.grace = grace
        self.probes = probes
        self.silence = silence
        self.environment = dict(environment or {})
        self.on_ended = on_ended
        self.pulse = Pulse("supervisor", 60.0)
        self.places = [Place() for _ in range(processes)]
        self.leaving: list[Child] = []  # retiring ones that have a successor
        self.exit_code = 0
        self.completed = self.failed = self.dead = 0  # of the children that have stopped in order
        self._stop = StopRequest()
        self._stopping = self._hurried = False

    def stop(self) -> None:
        """Ask all children to stop in order, and end when they have. May be called in a signal handler, and twice."""
        self._stop.make()

    def stop_now(self) -> None:
        """Ask all children to stop without waiting for the jobs that run."""
        self._stop.make(hurry=True)

    @property
    def children(self) -> list[Child]:
        """All that have not ended."""
        return [place.child for place in self.places if place.child is not None] + self.leaving

    @property
    def pids(self) -> list[int]:
        """The process ids of all that have not ended."""
        return [child.pid for child in self.children]

    def run(self) -> int:
        """Supervise until stopped or drained. Blocks. Returns the exit code: the greatest of the children's that ended
        in order, 1 if draining was impossible."""
        guard_logs()
        self.hand_back.start()
        if self.probes is not None:
            self.probes.watch(self.problem, f"Keeps {len(self.places)} workers at work")
        with self._noticing_deaths():
            try:
                while True:
                    self.pulse.beat()
                    self._reap()
                    self._obey()
                    self._replace_the_retiring()
                    self._start_those_due()
                    self._kill_the_late()
                    if not self.children and (self._stopping or all(p.start_at is None for p in self.places)):
                        break
                    self._stop.pause(self._patience())
            finally:
                self._end()
        return self.exit_code

    def problem(self) -> str | None:
        """What is wrong with the supervisor or a child of its; None: nothing."""
        for child in self.children if self.probes is not None else ():
            try:
                silent = time.monotonic() - max(child.heard_at, child.started_at)
            except ValueError:  # it has just ended, and its notes are closed: asked from another thread
                continue
            if child.kill_at is None and silent > self.silence:
                return f"process {child.pid} has not been heard of for {silent:.0f} s"
        return self.pulse.problem()

    @contextmanager
    def _noticing_deaths(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: Any = signal.signal(signal.SIGCHLD, lambda *_: self._stop.poke())
        try:
            yield
        finally:
            signal.signal(signal.SIGCHLD, before or signal.SIG_DFL)

    def _patience(self) -> float:
        moments = [child.kill_at for child in self.children if child.kill_at is not None]
        moments += [
            place.start_at for place in self.places if place.child is None and place.start_at is not None
        ]
        return min([LOOK_SECONDS, *(max(0.01, until(moment)) for moment in moments)])

    # -- starting --------------------------------------------------------------------------------------------------

    def _start_those_due(self) -> None:
        for place in self.places:
            if self._stopping or place.child is not None or place.start_at is None or until(place.start_at):
                continue
            if self.drain and place.waits_for is not None and not place.waits_for.settled.is_set():
                continue  # else the new child could find nothing due before the hand-back, and take that for the end
            place.waits_for = None
            try:
                place.child = Child(
                    self.command, self.executors, self.environment, probed=self.probes is not None
                )
            except OSError as error:
                pause = place.died(0.0)
                logger.error("A worker can't be started: %s. The next try is in %.0f s.", error, pause)
            else:
                logger.info("Started a worker, process %d", place.child.pid)

    def _replace_the_retiring(self) -> None:
        for place in self.places:
            child = place.child
            if child is None or not child.notes.retiring or self._stopping:
                continue
            # It ends its last jobs beside its successor.
            self.leaving.append(child)
            place.child, place.start_at, place.deaths = None, 0.0, 0
        # Jobs that never end must not have ever more processes: beyond as many again, the oldest is stopped.
        for child in self.leaving[: -len(self.places)]:
            if child.kill_at is None:
                logger.warning("Process %d retires, but its jobs do not end: it is stopped", child.pid)
                child.stop(self.shutdown_timeout + self.grace)

    # -- ending ----------------------------------------------------------------------------------------------------

    def _reap(self) -> None:
        for child in self.children:
            if child.process.poll() is None:
                continue
            if self.on_ended is not None:
                self.on_ended(child.pid)
            place = next((place for place in self.places if place.child is child), None)
            estate = self._take_over(child)
            if place is None:
                self.leaving.remove(child)
                if self.drain and estate is not None:
                    self._work_on(estate)
            else:
                place.child = None
                place.waits_for = estate
                self._decide(place, child)
            child.close()

    def _take_over(self, child: Child) -> Estate | None:
        """Count what the child has done, if it ended in order; else see to what it held."""
        if child.ended_in_order:
            completed, failed, dead = child.notes.totals
            self.completed += completed
            self.failed += failed
            self.dead += dead
            self.exit_code = max(self.exit_code, child.process.returncode)
            return None
        if not child.notes.worker_ids:  # it never came to claim
            return None
        estate = Estate(child.in_words, child.notes)
        self.hand_back.add(estate)
        return estate

    def _decide(self, place: Place, child: Child) -> None:
        """Whether, and when, another child starts at the place of one that has ended."""
        if self._stopping:
            return
        if child.notes.retiring:
            place.start_at, place.deaths = 0.0, 0
        elif child.ended_in_order and (self.drain or child.notes.asked):
            place.start_at = None
        elif self.drain and child.process.returncode > 0 and not child.notes.worker_ids:
            # It can't even begin, as one process would have said. Another one could not either.
            self.exit_code = max(self.exit_code, 1)
            self.stop()
        else:
            pause = place.died(time.monotonic() - child.started_at)
            logger.warning(
                "%s. Another one starts %s.", child.in_words, f"in {pause:.0f} s" if pause else "now"
            )

    def _work_on(self, estate: Estate) -> None:
        """Draining: what one that was leaving held is due again, and perhaps nobody is left to work on it."""
        if all(place.start_at is None for place in self.places):
            self.places[0].start_at, self.places[0].waits_for = 0.0, estate

    def _obey(self) -> None:
        """Pass on a request to stop that was made, once each."""
        if self._stop.made and not self._stopping:
            self._stopping = True
            logger.info("Stopping %d workers", len(self.children))
            if self.probes is not None:
                self.probes.stopping()
            for child in self.children:
                child.stop(self.shutdown_timeout + self.grace)
        if self._stop.hurried and not self._hurried:
            self._hurried = True
            for child in self.children:
                child.lifeline.hurry()
                child.stop(self.grace)

    def _kill_the_late(self) -> None:
        for child in self.children:
            if child.kill_at is not None and not until(child.kill_at):
                logger.error("Process %d did not stop in time: it is killed", child.pid)
                child.process.kill()
                child.kill_at = None

    def _end(self) -> None:
        for child in self.children:  # after an error of our own: without their lifelines they stop in order
            child.lifeline.close()
        if not self.hand_back.wait(HAND_BACK_SECONDS):
            logger.error("What dead workers held could not be handed back; it runs again after their lease")
        self.hand_back.stop()
        self.hand_back.join(1.0)
        if self.probes is not None:
            self.probes.stop()
            self.probes.join(1.0)
