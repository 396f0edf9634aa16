"""Middleware around an attempt."""

import json
import threading

import pytest
from django.utils.decorators import async_only_middleware

from django_jobs import Cancel, Snooze, current_job, registry
from django_jobs.worker.attempt import Runner
from tests.worker.attempt.helping import kind, last_error, raising
from tests.worker.fakes import row


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("takes_context", [False, True])
def test_middleware_is_around_every_kind_of_job(run, is_async, takes_context):
    seen = []

    def noting(step):
        def around(context):
            seen.append((context.job.id, context.name))
            assert current_job().job is context.job
            return step(context) + 1

        return around

    @async_only_middleware
    def async_noting(step):
        async def around(context):
            seen.append((context.job.id, context.name))
            return await step(context) + 1

        return around

    def job(number):
        return number

    def context_job(context, number):
        assert context.job.id == 1
        return number

    async def ajob(number):
        return number

    async def context_ajob(context, number):
        return context_job(context, number)

    function = {
        (False, False): job,
        (False, True): context_job,
        (True, False): ajob,
        (True, True): context_ajob,
    }
    ended = run(
        function[is_async, takes_context],
        5,
        takes_context=takes_context,
        factories=[noting, async_noting],
        name="tests.m",
    )

    assert ended.outcome.result == "7"
    assert seen == [(1, "tests.m")] * 2


@pytest.mark.parametrize("is_async", [False, True])
def test_a_middleware_sees_the_job_s_error_and_its_own_error_is_the_job_s_failure(run, is_async):
    seen = []

    def noting(step):
        def around(context):
            try:
                return step(context)
            except BaseException as error:
                seen.append(type(error))
                raise

        return around

    def failing(step):
        def around(context):
            raise LookupError("in the middleware")

        return around

    async def ajob():
        raise ValueError("no")

    job = ajob if is_async else raising(ValueError("no"))
    assert last_error(run(job, factories=[noting]))["class"] == "ValueError"
    assert seen == [ValueError]
    assert last_error(run(job, factories=[noting, failing]))["class"] == "LookupError"
    assert seen == [ValueError, LookupError]


def test_a_middleware_can_swallow_an_error_and_change_a_word(run):
    def swallowing(step):
        def around(context):
            try:
                return step(context)
            except ValueError:
                return "swallowed"
            except Snooze:
                raise Cancel("no time") from None

        return around

    assert run(raising(ValueError("no")), factories=[swallowing]).outcome.result == '"swallowed"'
    assert kind(run(raising(Snooze(5)), factories=[swallowing])) == "cancelled"


def test_jobs_of_several_threads_do_not_mix_in_one_middleware(define, signs):
    def adding(step):
        def around(context):
            barrier.wait(30)
            return [context.job.id, step(context)]

        return around

    barrier = threading.Barrier(4)
    definition = define(lambda number: number)
    runner = Runner(registry, signs, [adding])
    results = []

    def run_one(number):
        ended = runner.run(row(number, name=definition.name, args=f"[{number}]"))
        results.append(json.loads(ended.outcome.result))

    threads = [threading.Thread(target=run_one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(results) == [[number, number] for number in range(4)]
