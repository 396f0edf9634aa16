"""The next attempt starts clean."""

import contextvars
import datetime as dt
import decimal
import gc
import json
import weakref

import pytest
from django.utils import timezone, translation

from django_jobs import current_job, registry
from django_jobs.worker.attempt import Runner
from tests.worker.attempt.helping import kind
from tests.worker.fakes import row

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="nothing")


@pytest.mark.parametrize("ends", ["well", "badly", "async"])
def test_what_a_job_sets_ends_with_it(run, ends):
    def set_all():
        translation.activate("de")
        timezone.activate(dt.timezone(dt.timedelta(hours=5)))
        variable.set("something")
        decimal.getcontext().prec = 3
        assert look() == ["de", "UTC+05:00", "something", 3]
        if ends == "badly":
            raise ValueError("no")

    async def aset_all():
        set_all()

    def look():
        return [
            translation.get_language(),
            str(timezone.get_current_timezone()),
            variable.get(),
            decimal.getcontext().prec,
        ]

    clean = run(look).outcome.result
    assert kind(run(aset_all if ends == "async" else set_all)) == (
        "retry" if ends == "badly" else "completed"
    )

    assert run(look).outcome.result == clean
    assert json.loads(clean) == ["en", "UTC", "nothing", 28]
    assert variable.get() == "nothing"


def test_a_job_does_not_see_what_is_set_around_the_worker(run):
    def look():
        return variable.get()

    token = variable.set("around")
    try:
        assert run(look).outcome.result == '"nothing"'
    finally:
        variable.reset(token)


def test_a_job_run_inside_of_a_job_knows_which_one_it_is(run, define, signs):
    inner = define(lambda: current_job().job.id)

    def outer():
        runner = Runner(registry, signs)
        return [int(runner.run(row(2, name=inner.name)).outcome.result), current_job().job.id]

    assert run(outer).outcome.result == "[2,1]"


def test_nothing_of_a_failed_job_is_kept(run):
    """Not its frames, with all that they hold, in the outcomes that wait to be stored."""

    class Large:
        pass

    held = []

    def job():
        large = Large()
        held.append(weakref.ref(large))
        raise ValueError(large)

    ended = run(job)
    gc.collect()

    assert kind(ended) == "retry"
    assert held[0]() is None
