"""celery with Redis; no results are asked for, so none are kept."""

import os

import celery
import shared

app = celery.Celery("celery_peer", broker=os.environ["REDIS_URL"])
app.conf.task_ignore_result = True
app.conf.broker_connection_retry_on_startup = True


@app.task(name="noop")
def noop(n):
    """Do nothing."""


@app.task(name="tell")
def tell(address):
    """Tell when it starts."""
    shared.tell(address)


class CeleryPeer(shared.Peer):
    """delay() one by one: there is nothing faster for many."""

    def one(self, n):
        noop.delay(n)

    def many(self, numbers):
        for n in numbers:
            noop.delay(n)

    def tell(self, address):
        tell.delay(address)

    def worker(self):
        return [shared.beside("celery"), "--app", "celery_peer", "worker", "--loglevel", "WARNING"]


if __name__ == "__main__":
    CeleryPeer().run()
