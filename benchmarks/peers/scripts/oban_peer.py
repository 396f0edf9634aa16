"""oban, its open part."""

import asyncio

import shared
from oban import Oban, worker


@worker(queue="default")
class Noop:
    """Does nothing."""

    async def process(self, job):
        """Nothing."""


@worker(queue="default")
class Tell:
    """Tells when it starts."""

    async def process(self, job):
        """Tell."""
        shared.tell(job.args["address"])


class ObanPeer(shared.Peer):
    """enqueue_many by thousands."""

    def setup(self):
        import subprocess

        subprocess.run([shared.beside("oban"), "install", "--dsn", shared.URL], check=True)

    def open(self):
        self.runner = asyncio.Runner()

        async def start():
            pool = await Oban.create_pool(dsn=shared.URL)
            return Oban(pool=pool)

        self.oban = self.runner.run(start())

    def one(self, n):
        self.runner.run(Noop.enqueue({"n": n}))

    def many(self, numbers):
        for chunk in shared.chunks(numbers):
            self.runner.run(self.oban.enqueue_many([Noop.new({"n": n}) for n in chunk]))

    def tell(self, address):
        self.runner.run(Tell.enqueue({"address": address}))

    def worker(self):
        return [
            shared.beside("oban"), "start", "--dsn", shared.URL, "--queues", "default:10", "--log-level", "warning",
        ]  # fmt: skip


if __name__ == "__main__":
    from oban_peer import Noop, Tell  # the worker finds them by their module

    ObanPeer().run()
