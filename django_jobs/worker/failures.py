"""What is recorded of a failed attempt: bounded, and always storable."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import sys
import traceback
from types import FrameType, TracebackType
from typing import Any

from django_jobs import conf, limits
from django_jobs.serialization import encode, printable
from django_jobs.store.rows import JobRow

MESSAGE_LENGTH = 2000
LARGEST_NUMBER = 10**9  # of an error; above it somebody else has counted


def class_name(error: BaseException | type[BaseException]) -> str:
    """The dotted name of an exception's class; of the built-in ones the bare name."""
    kind = error if issubclass(type(error), type) else type(error)
    try:
        module = getattr(kind, "__module__", None)
        name = getattr(kind, "__qualname__", None) or str(kind)
        full = name if module in (None, "builtins") else f"{module}.{name}"
    except BaseException:  # of a metaclass that answers for it
        full = "(an exception whose class can't be named)"
    return printable(full)[: limits.ERROR_CLASS_LENGTH]


def message_of(error: BaseException) -> str:
    """The exception's text, bounded; its ``__str__`` may fail as any code may."""
    try:
        text = str(error)
    except BaseException as second:  # a __str__ may raise SystemExit, too; the worker must not end with it
        text = f"(its message can't be read: {type(second).__name__})"
    return cut_middle(printable(text), MESSAGE_LENGTH)


def traceback_of(error: BaseException, ours: bool = True) -> str:
    """The traceback as text, cut in the middle to the setting's length.

    :param ours: whether the outermost frames, which are the worker's own, are told too.
    """
    try:
        start: TracebackType | None = error.__traceback__
        while not ours and start is not None and start.tb_next is not None and _is_ours(start.tb_frame):
            start = start.tb_next
        text = "".join(traceback.TracebackException(type(error), error, start).format())
    except BaseException as second:
        text = f"(the traceback can't be read: {type(second).__name__})"
    return cut_middle(printable(text), conf.get("MAX_TRACEBACK_BYTES"))


def stack_of(thread_id: int, heading: str = "Where it was when it was given up") -> str:
    """Where a thread is now, without the worker's own frames: the place where its job hangs."""
    frame = sys._current_frames().get(thread_id)
    if frame is None:
        return ""
    try:
        walk = (each for each, _ in traceback.walk_stack(frame))  # from the innermost outwards
        inner = list(itertools.takewhile(lambda each: not _is_ours(each), walk))
        summary = traceback.StackSummary.extract((each, each.f_lineno) for each in reversed(inner))
        text = f"{heading} (most recent call last):\n" + "".join(summary.format())
    except Exception as error:
        text = f"(where it was can't be read: {type(error).__name__})"
    return cut_middle(printable(text), conf.get("MAX_TRACEBACK_BYTES"))


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("django_jobs.worker.")


def cut_middle(text: str, most: int) -> str:
    """At most ``most`` bytes of a text: its beginning and its end, with a mark between that says what is missing."""
    size = len(text) if text.isascii() else len(text.encode())
    if size <= most:
        return text
    mark = f"\n... {size - most:,} bytes cut ...\n"
    half = max(0, (most - len(mark)) // 2)
    if text.isascii():
        return text[:half] + mark + text[-half:]
    encoded = text.encode()
    return encoded[:half].decode(errors="ignore") + mark + encoded[-half:].decode(errors="ignore")


def with_error(job: JobRow, name: str, message: str, trace: str = "", now: dt.datetime | None = None) -> str:
    """The job's errors with one more, as JSON: the first and the newest are kept."""
    try:
        known: list[Any] = job.errors
        errors = [error for error in known if isinstance(error, dict)]
    except TypeError:  # somebody's SQL has put something else there
        errors = []
    last: Any = errors[-1].get("number") if errors else 0
    counted = isinstance(last, int) and not isinstance(last, bool) and 0 <= last < LARGEST_NUMBER
    entry: dict[str, Any] = {
        "number": last + 1 if counted else len(errors) + 1,
        "attempt": job.attempt,
        "at": (now or dt.datetime.now(dt.UTC)).isoformat(timespec="microseconds"),
        "attempted_at": _attempted_at(job),
        "worker": job.worker_id,
        "class": name,
        "message": message,
        "traceback": trace,
    }
    most = conf.get("MAX_ERRORS")
    if len(errors) >= most:
        errors = [errors[0], *errors[len(errors) - (most - 2) :]] if most > 2 else [errors[0]]
    text = _encoded(errors, entry)
    # Bounded in bytes as well, whatever the settings multiply to, and whatever somebody's SQL has put there.
    while len(text.encode()) > limits.ERRORS_BYTES and errors:
        if any(error.get("traceback") for error in errors):
            errors = [{**error, "traceback": ""} for error in errors]
        else:
            errors = errors[: len(errors) // 2]
        text = _encoded(errors, entry)
    return text


def _encoded(errors: list[dict[str, Any]], entry: dict[str, Any]) -> str:
    try:
        text = encode([*errors, entry])
        text.encode()
        return text
    except UnicodeEncodeError:
        # An escape that is no text, in what somebody's SQL has put there: kept as an escape.
        return json.dumps([*errors, entry], allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError):
        return encode([entry])


def _attempted_at(job: JobRow) -> str | None:
    moment = job.attempted_at
    return None if moment is None else moment.isoformat()
