"""Wrappers around every attempt, by ``DJANGO_JOBS["MIDDLEWARE"]``: for Sentry scopes, request ids, tenants.

A middleware is written as Django's are: a callable that takes the next step and returns a wrapper of it. The step
takes the :class:`~django_jobs.context.JobContext` and returns what the job returns::

    def tenant(run):
        def around(context):
            with tenant_of(context.job.metadata):
                return run(context)
        return around

``django.utils.decorators.async_only_middleware`` and ``sync_and_async_middleware`` say what a middleware can do; one
that says nothing is synchronous, and for an ``async def`` job runs in a thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from asgiref.sync import async_to_sync, iscoroutinefunction, sync_to_async
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from django_jobs.context import JobContext

SyncStep = Callable[[JobContext], Any]
AsyncStep = Callable[[JobContext], Awaitable[Any]]


#: Middleware that goes around that of the site; for tracing.
built_in: list[Callable[..., Any]] = []


def load(paths: Sequence[str]) -> list[Callable[..., Any]]:
    """Import the middleware. Raises ImproperlyConfigured, naming the one that can't be."""
    factories = [*built_in]
    for path in paths:
        try:
            factories.append(import_string(path))
        except ImportError as error:
            raise ImproperlyConfigured(f"DJANGO_JOBS['MIDDLEWARE'] names {path!r}: {error}") from error
    return factories


def wrap(factories: Sequence[Callable[..., Any]], step: SyncStep | AsyncStep, is_async: bool) -> Any:
    """``step`` with all middleware around it, the first outermost; a coroutine function if ``is_async``."""
    wrapped: Any = step
    for factory in reversed(factories):
        sync_capable = getattr(factory, "sync_capable", True)
        async_capable = getattr(factory, "async_capable", False)
        if not sync_capable and not async_capable:
            raise ImproperlyConfigured(f"Middleware {factory!r} must be sync_capable or async_capable.")
        wants_async = async_capable if is_async else not sync_capable
        wrapped = factory(_adapt(wrapped, wants_async))
        if wrapped is None:
            raise ImproperlyConfigured(f"Middleware {factory!r} returned None instead of a wrapper.")
    return _adapt(wrapped, is_async)


def _adapt(step: Any, to_async: bool) -> Any:
    is_async = iscoroutinefunction(step) or iscoroutinefunction(getattr(step, "__call__", None))  # noqa: B004
    if is_async == to_async:
        return step
    return sync_to_async(step, thread_sensitive=True) if to_async else async_to_sync(step)
