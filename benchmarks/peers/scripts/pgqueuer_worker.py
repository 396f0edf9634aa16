"""The worker of pgqueuer: what `pgq run` does, which some versions of its command line fail to begin."""

import asyncio

import asyncpg
import shared
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver


async def main():
    """Claim a thousand at once."""
    pgq = PgQueuer(AsyncpgDriver(await asyncpg.connect(shared.URL)))

    @pgq.entrypoint("noop")
    async def noop(job):
        pass

    @pgq.entrypoint("tell")
    async def tell(job):
        shared.tell(job.payload.decode())

    await pgq.run(batch_size=1000)


if __name__ == "__main__":
    asyncio.run(main())
