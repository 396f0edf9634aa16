"""The completer on a real database."""

import pytest

from django_jobs.store.rows import NewJob
from django_jobs.worker import completer as module
from django_jobs.worker.completer import Completer
from tests.waiting import eventually
from tests.worker.fakes import Gate, attempted


@pytest.fixture
def claimed(open_store):
    """Claim new jobs of the database: how many."""
    real = open_store()
    worker = real.register_worker("host", 1, "[]", 4, "1", 30.0)

    def claim(count):
        real.insert_many([NewJob("tests.job")] * count)
        return real.claim(worker.id, "default", count)

    return claim


def test_a_poisoned_outcome_on_the_database(open_store, told, started, claimed, monkeypatch):
    """Really refused: by the driver, by the server, by a constraint; and all the others are stored."""
    monkeypatch.setattr(module, "LINGER_SECONDS", 0.0)
    jobs = claimed(40)
    store = open_store()
    gate = Gate()
    real_finish, first = store.finish, []

    def finish(outcomes):
        if not first:
            first.append(1)
            gate()
        return real_finish(outcomes)

    store.finish = finish
    completer = started(Completer(lambda: store, told))
    completer.put(attempted(jobs[0]))
    gate.wait()
    bad = {
        3: attempted(jobs[3], result='"\ud800"'),
        17: attempted(jobs[17], "failed", error_class="\ud800", errors="[]"),
        39: attempted(jobs[39], "retry", float("nan"), error_class="x" * 5, errors="[]"),
    }
    for number in range(1, 40):
        completer.put(bad.get(number) or attempted(jobs[number], result=f"{number}"))
    gate.open()
    eventually(lambda: completer.idle)

    after = open_store().get([job.id for job in jobs])
    assert [job.state for job in after] == [
        "failed" if number in (3, 17, 39) else "completed" for number in range(40)
    ]
    assert {after[number].error_class for number in (3, 17, 39)} == {"django_jobs.OutcomeNotStorable"}
    assert [job.result for job in after][4:9] == [4, 5, 6, 7, 8]


def test_the_number_of_writers_is_the_store_s_own(open_store, told, started, database_name):
    completer = started(Completer(open_store, told))
    expected = 2 if database_name == "postgresql" else 1

    eventually(lambda: completer.most_writers == expected)


def test_outcomes_on_the_database_are_few_statements(open_store, told, started, claimed):
    jobs = claimed(2000)
    opened = []

    def open_counted():
        opened.append(open_store())
        return opened[-1]

    completer = started(Completer(open_counted, told))
    for job in jobs:
        completer.put(attempted(job))
    eventually(lambda: completer.idle)

    assert len(told) == 2000
    assert all(item[1:] == ("completed", True) for item in told)
    assert sum(store.session.statements for store in opened) <= 10
