"""What workers record of attempts in words of their own, as pages translate it.

A row has it in English, as it has the messages of exceptions: whoever reads the row reads it. So a page finds out which
of these it is. A test has each recorded by what records it.
"""

from __future__ import annotations

from django.utils.translation import gettext_noop

from django_jobs.texts import recognised, translated

# Longer ones are nobody's but a site's own SQL's.
_LONGEST = 20_000
# By the class that is recorded; of two that fit the first one counts.
RECORDED = {
    "django_jobs.WorkerLost": (
        gettext_noop("The worker's lease ran out."),
        gettext_noop("The worker stopped before the job had ended."),
        gettext_noop("Process %(pid)s ended with exit code %(code)s."),
        gettext_noop("Process %(pid)s was killed by signal %(signal)s."),
    ),
    "django_jobs.TimedOut": (
        gettext_noop(
            "It took longer than its timeout of %(seconds)s s, and did not end when it was told to."
        ),
        gettext_noop("It took longer than its timeout of %(seconds)s s. It ended with %(error)s"),
        gettext_noop("It took longer than its timeout of %(seconds)s s."),
    ),
    "django_jobs.NotRegistered": (
        gettext_noop(
            "No job function is registered as %(name)s. Workers know those in the modules jobs and tasks of the apps "
            "in INSTALLED_APPS: add its app, or import its module in AppConfig.ready(). If it was renamed, list the "
            "old name in aliases= of the new one."
        ),
    ),
    "django_jobs.WorkerError": (
        gettext_noop("The worker failed at this job: %(error)s"),
        gettext_noop("The worker failed at this job."),
    ),
    "django_jobs.exceptions.Cancel": (
        gettext_noop("Cancelled by request."),
        gettext_noop("Cancelled by request, before it started."),
    ),
}


def message_text(error_class: str, message: str) -> str:
    """The message of a recorded error: in the active language where it is a worker's own, else as it was recorded."""
    if len(message) > _LONGEST:
        return message
    return translated(recognised(message, RECORDED.get(error_class, ())))
