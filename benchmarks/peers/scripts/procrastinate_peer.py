"""procrastinate: async tasks, ten at once."""

import asyncio

import shared
from procrastinate_app import app, noop, tell


class Procrastinate(shared.Peer):
    """batch_defer by thousands."""

    def setup(self):
        async def apply():
            async with app.open_async():
                await app.schema_manager.apply_schema_async()

        asyncio.run(apply())

    def open(self):
        self.runner = asyncio.Runner()

        async def connect():
            await app.open_async()

        self.runner.run(connect())

    def one(self, n):
        self.runner.run(noop.defer_async(n=n))

    def many(self, numbers):
        for chunk in shared.chunks(numbers):
            self.runner.run(noop.batch_defer_async(*[{"n": n} for n in chunk]))

    def tell(self, address):
        self.runner.run(tell.defer_async(address=address))

    def worker(self):
        return [
            shared.beside("procrastinate"), "--app", "procrastinate_app.app", "--log-level", "warning",
            "worker", "--concurrency", "10",
        ]  # fmt: skip


if __name__ == "__main__":
    Procrastinate().run()
