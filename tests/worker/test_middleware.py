"""Middleware: how wrappers are loaded, ordered and adapted between sync and async."""

import asyncio
import threading

import pytest
from asgiref.sync import async_to_sync, iscoroutinefunction, markcoroutinefunction
from django.core.exceptions import ImproperlyConfigured
from django.utils.decorators import async_only_middleware, sync_and_async_middleware, sync_only_middleware

from django_jobs.context import JobContext
from django_jobs.worker import middleware
from tests.worker.fakes import row


def recording(name, seen):
    def factory(run):
        def around(context):
            seen.append(f"{name} before")
            try:
                return run(context)
            finally:
                seen.append(f"{name} after")

        return around

    return factory


def async_recording(name, seen):
    @async_only_middleware
    def factory(run):
        async def around(context):
            seen.append(f"{name} before")
            await asyncio.sleep(0)
            try:
                return await run(context)
            finally:
                seen.append(f"{name} after")

        return around

    return factory


CONTEXT = JobContext(row(), "tests.job")


def call(factories, step, is_async=False):
    wrapped = middleware.wrap(factories, step, is_async)
    return async_to_sync(wrapped)(CONTEXT) if is_async else wrapped(CONTEXT)


def step(context):
    assert context is CONTEXT
    return "result"


async def async_step(context):
    assert context is CONTEXT
    await asyncio.sleep(0)
    return "result"


@pytest.mark.parametrize(("function", "is_async"), [(step, False), (async_step, True)])
def test_the_first_is_the_outermost_whatever_is_sync_and_async(function, is_async):
    seen = []
    factories = [
        recording("a", seen),
        async_recording("b", seen),
        recording("c", seen),
        async_recording("d", seen),
    ]

    assert call(factories, function, is_async) == "result"
    assert seen == [f"{name} before" for name in "abcd"] + [f"{name} after" for name in "dcba"]


@pytest.mark.parametrize(("function", "is_async"), [(step, False), (async_step, True)])
def test_a_result_can_be_changed_and_a_job_not_called(function, is_async):
    def changing(run):
        return lambda context: run(context).upper()

    def stopping(run):
        return lambda context: "stopped"

    assert call([changing], function, is_async) == "RESULT"
    assert call([changing, stopping], function, is_async) == "STOPPED"


@pytest.mark.parametrize("is_async", [False, True])
def test_exceptions_pass_through_and_can_be_replaced(is_async):
    seen = []

    def failing(context):
        raise KeyError("inner")

    async def async_failing(context):
        raise KeyError("inner")

    def replacing(run):
        def around(context):
            try:
                return run(context)
            except KeyError as error:
                raise ValueError("replaced") from error

        return around

    function = async_failing if is_async else failing
    with pytest.raises(KeyError, match="inner"):
        call([recording("a", seen), async_recording("b", seen)], function, is_async)
    assert seen == ["a before", "b before", "b after", "a after"]
    with pytest.raises(ValueError, match="replaced"):
        call([async_recording("b", seen), replacing], function, is_async)


def test_a_middleware_that_can_do_both_is_not_adapted():
    kinds = []

    @sync_and_async_middleware
    def both(run):
        if iscoroutinefunction(run):

            async def around(context):
                kinds.append("async")
                return await run(context)

        else:

            def around(context):
                kinds.append("sync")
                return run(context)

        return around

    call([both], step)
    call([both], async_step, is_async=True)

    assert kinds == ["sync", "async"]


def test_a_class_that_marks_its_instances_as_coroutines_is_one():
    """As Django's own MiddlewareMixin does."""

    @async_only_middleware
    class Marked:
        def __init__(self, run):
            self.run = run
            markcoroutinefunction(self)

        def __call__(self, context):
            return self.around(context)

        async def around(self, context):
            return (await self.run(context)).upper()

    assert call([Marked], step) == "RESULT"
    assert call([Marked], async_step, is_async=True) == "RESULT"


def test_sync_middleware_of_an_async_job_runs_in_the_executor_thread():
    """Where the connections of the thread are."""
    threads = []

    @sync_only_middleware
    def noting(run):
        def around(context):
            threads.append(threading.current_thread())
            return run(context)

        return around

    call([noting], async_step, is_async=True)

    assert threads == [threading.current_thread()]


def test_a_middleware_that_can_do_neither_is_told():
    def neither(run):
        return run

    neither.sync_capable = neither.async_capable = False

    with pytest.raises(ImproperlyConfigured, match="sync_capable or async_capable"):
        call([neither], step)


def test_a_middleware_that_returns_nothing_is_told():
    with pytest.raises(ImproperlyConfigured, match="returned None"):
        call([lambda run: None], step)


def test_middleware_is_loaded_by_its_path():
    assert middleware.load([f"{__name__}.recording"]) == [recording]
    assert middleware.load([]) == []


@pytest.mark.parametrize("path", ["tests.worker.nothing.here", "tests.worker.fakes.nothing", "nodots"])
def test_a_path_that_can_not_be_imported_is_told(path):
    with pytest.raises(ImproperlyConfigured, match=path):
        middleware.load([path])
