"""What a worker works on, and how: read from the command line and the settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django_jobs import conf, limits

EVERY_QUEUE = "*"


@dataclass(frozen=True)
class Pool:
    """Executors of their own for some queues, so that a slow class of jobs never starves a fast one.

    :param queues: the queues' names; ``("*",)`` for all that no other pool of the worker names.
    :param size: how many jobs run at once.
    """

    queues: tuple[str, ...]
    size: int

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
    queues: Mapping[str, int] = conf.get("QUEUES")
    if queues:
        return [Pool((name,), size) for name, size in queues.items()]
    return [Pool((EVERY_QUEUE,), concurrency or conf.get("CONCURRENCY"))]


def parse_pools(text: str, concurrency: int | None = None) -> list[Pool]:
    """Pools from ``--queues``: ``default:10,mail:2``; ``*`` for all other queues.

    :raises ValueError: saying which part can't be read and how it should look.
    """
    size = concurrency or conf.get("CONCURRENCY")
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
        pools.append(Pool((name,), int(number) if colon else size))
    return pools
