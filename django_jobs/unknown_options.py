"""The error of an option that there is not: which one was meant, and where that is given."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from django_jobs.exceptions import InvalidJob
from django_jobs.options import OF_ONE_JOB
from django_jobs.texts import text as _

# What an option is called elsewhere, or by half its name.
_ELSEWHERE = {
    "bind": "takes_context",
    "countdown": "run_after",
    "database": "using",
    "delay": "run_after",
    "eta": "run_after",
    "lock": "unique",
    "max_retries": "max_attempts",
    "pass_context": "takes_context",
    "queue": "queue_name",
    "queueing_lock": "unique_key",
    "retries": "max_attempts",
    "schedule_at": "run_after",
    "schedule_in": "run_after",
    "soft_time_limit": "timeout",
    "time_limit": "timeout",
}


def unknown_option(name: str, of_function: Iterable[str], *, for_one: bool) -> InvalidJob:
    """The error of an option that there is not.

    :param of_function: the options of ``@job``.
    :param for_one: whether it was given to ``using()``, else to ``@job``.
    """
    known, others = (OF_ONE_JOB, of_function) if for_one else (of_function, OF_ONE_JOB)
    known = list(known)
    near = difflib.get_close_matches(name, [*known, *others, *_ELSEWHERE], n=1, cutoff=0.5)
    if not near:
        return InvalidJob(
            _("There is no option %(name)s; there are %(known)s.", name=repr(name), known=", ".join(known))
        )
    meant = _ELSEWHERE.get(near[0], near[0])
    if meant in known:
        return InvalidJob(
            _("There is no option %(name)s; did you mean %(meant)s?", name=repr(name), meant=repr(meant))
        )
    if for_one:
        return InvalidJob(
            _(
                "There is no option %(name)s here; %(meant)s is the function's: @job(%(meant)s=...).",
                name=repr(name),
                meant=meant,
            )
        )
    return InvalidJob(f"There is no option {name!r} here; {meant} is each job's own: .using({meant}=...).")
