"""What a worker works on, and how: read from the command line and the settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django_jobs import conf, limits

EVERY_QUEUE = "*"


@dataclass(frozen=True)
class Pool:
    """Executors of their own for some queues, so that a slow class of jobs never starves a fast one.

    :param queues: the queues' names; ``("*",)`` for all that no other pool of the worker names.
    :param size: how many jobs run at once.
    :param ahead: whether jobs may be claimed before an executor is free for them. Without it none waits behind another
        in this worker, and none is charged an attempt for having been beside a job that killed the process; but an
        executor waits for the database before each.
    """

    queues: tuple[str, ...]
    size: int
    ahead: bool = True

    @property
    def name(self) -> str:
        """The pool in words."""
        return ",".join(self.queues)


def _setting(name: str) -> float:
    return float(conf.get(name))


@dataclass
class WorkerOptions:
    """The options of a worker; times are in seconds."""

    using: str = "default"
    pools: Sequence[Pool] = ()
    drain: bool = False
    max_jobs: int | None = None  # after claiming so many, the worker runs them and stops
    max_memory: int | None = None  # in MB, of the process: holding more, the worker ends its jobs and stops
    shutdown_timeout: float = field(default_factory=lambda: _setting("SHUTDOWN_TIMEOUT"))
    poll_interval: float = field(default_factory=lambda: _setting("POLL_INTERVAL"))
    notify: bool = field(default_factory=lambda: bool(conf.get("NOTIFY")))
    lease: float = field(default_factory=lambda: _setting("LEASE"))
    heartbeat_interval: float = field(default_factory=lambda: _setting("HEARTBEAT_INTERVAL"))
    statement_timeout: float = field(default_factory=lambda: _setting("STATEMENT_TIMEOUT"))

    def __post_init__(self) -> None:
        if not self.pools:
            self.pools = pools_from_settings()


def pools_from_settings(concurrency: int | None = None) -> list[Pool]:
    """The pools of ``DJANGO_JOBS["QUEUES"]``, or one for all queues."""
    if pools := conf.pools():
        return [Pool((name,), pool.size, pool.ahead) for name, pool in pools.items()]
    return [Pool((EVERY_QUEUE,), concurrency or conf.get("CONCURRENCY"))]


def parse_pools(text: str, concurrency: int | None = None) -> list[Pool]:
    """Pools from ``--queues``: ``default:10,mail:2``; ``*`` for all other queues. Whether they claim ahead, the
    settings say.

    :raises ValueError: saying which part can't be read and how it should look.
    """
    size = concurrency or conf.get("CONCURRENCY")
    known = conf.pools()
    pools: list[Pool] = []
    for part in text.split(","):
        name, colon, number = part.strip().rpartition(":") if ":" in part else (part.strip(), "", "")
        if not name or len(name) > limits.QUEUE_LENGTH:
            raise ValueError(
                f"{part!r} names no queue; write --queues default:10,mail:2, or '*' for all others"
            )
        if colon and not (
            number.isascii() and number.isdigit() and len(number) <= 5 and 1 <= int(number) <= 10_000
        ):
            raise ValueError(
                f"{part!r}: the size of a pool is a whole number from 1 to 10000, as in {name}:10"
            )
        if any(name in pool.queues for pool in pools):
            raise ValueError(f"the queue {name!r} is named twice")
        ahead = known[name].ahead if name in known else True
        pools.append(Pool((name,), int(number) if colon else size, ahead))
    return pools
