"""What the completer's tests share."""

from django_jobs.worker.completer import Completer
from tests.waiting import eventually
from tests.worker.fakes import FakeStore, attempted, row


class Told(list):
    """What the completer says is stored: (id, state, stored), in order."""

    def __call__(self, batch, ended):
        for item in batch:
            there = ended.get(item.outcome.id)
            self.append((item.outcome.id, there and there.state, there and there.stored))


class TwoAtOnce(FakeStore):
    """A store that can take two writes at once, and says so. Each writer gets a store of its own, of the same rows."""

    completion_concurrency = 2

    def __init__(self):
        super().__init__()
        self.at_once = 0
        self.most_at_once = 0
        self.ids_at_once = set()
        self.gates = {}

    def finish(self, outcomes):
        ids = [outcome.id for outcome in outcomes]
        with self.lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            assert self.ids_at_once.isdisjoint(ids), "two statements hold outcomes of the same job"
            self.ids_at_once.update(ids)
        try:
            gate = self.gates.get(ids[0])
            if gate is not None:
                gate()
            return super().finish(outcomes)
        finally:
            with self.lock:
                self.at_once -= 1
                self.ids_at_once.difference_update(ids)


def started_double(double, told, started):
    completer = started(Completer(double.open, told))
    eventually(lambda: completer.most_writers == 2)
    return completer


def batches(store):
    """The ids of each statement so far."""
    return [[outcome.id for outcome in outcomes] for (outcomes,) in store.called("finish")]


def put_all(completer, ids):
    for id_ in ids:
        completer.put(attempted(id_))


def stored(store):
    return sorted(outcome.id for outcome in store.finished)


def claim_of(id_, claims, kind="completed", **more):
    return attempted(row(id_, claims=claims), kind, **more)
