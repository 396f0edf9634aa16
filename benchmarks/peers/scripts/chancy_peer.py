"""chancy with its async executor."""

import asyncio
import logging

import shared
from chancy import Chancy, Queue, job

# Its own logger writes a line for each job.
chancy = Chancy(shared.URL, log=logging.getLogger("chancy"))


@job()
async def noop(*, n):
    """Do nothing."""


@job()
async def tell(*, address):
    """Tell when it starts."""
    shared.tell(address)


class ChancyPeer(shared.Peer):
    """push_many by thousands."""

    def setup(self):
        async def migrate():
            async with chancy:
                await chancy.migrate()
                await chancy.declare(
                    Queue(
                        name="default", executor="chancy.executors.asyncex.AsyncExecutor", eager_polling=True
                    )
                )

        asyncio.run(migrate())

    def open(self):
        self.runner = asyncio.Runner()
        self.runner.run(chancy.__aenter__())

    def one(self, n):
        self.runner.run(chancy.push(noop.job.with_kwargs(n=n)))

    def many(self, numbers):
        async def push():
            async for _ in chancy.push_many(
                [noop.job.with_kwargs(n=n) for n in numbers], batch_size=shared.CHUNK
            ):
                pass

        self.runner.run(push())

    def tell(self, address):
        self.runner.run(chancy.push(tell.job.with_kwargs(address=address)))

    def worker(self):
        return [shared.beside("chancy"), "--app", "chancy_peer.chancy", "worker", "start"]


if __name__ == "__main__":
    import chancy_peer

    chancy, noop, tell = chancy_peer.chancy, chancy_peer.noop, chancy_peer.tell
    ChancyPeer().run()
