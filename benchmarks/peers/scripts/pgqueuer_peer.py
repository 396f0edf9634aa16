"""pgqueuer with asyncpg, claiming a thousand at once."""

import asyncio
import sys
from pathlib import Path

import asyncpg
import shared
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries


class PgQueuerPeer(shared.Peer):
    """enqueue() of lists, by thousands."""

    def setup(self):
        import subprocess

        subprocess.run([shared.beside("pgq"), "--pg-dsn", shared.URL, "install"], check=True)

    def open(self):
        self.runner = asyncio.Runner()
        connection = self.runner.run(asyncpg.connect(shared.URL))
        self.queries = Queries(AsyncpgDriver(connection))

    def one(self, n):
        self.runner.run(self.queries.enqueue("noop", b"%d" % n))

    def many(self, numbers):
        for chunk in shared.chunks(numbers):
            count = len(chunk)
            self.runner.run(self.queries.enqueue(["noop"] * count, [b"%d" % n for n in chunk], [0] * count))

    def tell(self, address):
        self.runner.run(self.queries.enqueue("tell", address.encode()))

    def worker(self):
        return [sys.executable, str(Path(__file__).with_name("pgqueuer_worker.py"))]


if __name__ == "__main__":
    PgQueuerPeer().run()
