"""What operators can do to jobs: each with its permission, the states that it is for, and its words."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, NamedTuple

from django.contrib.admin.models import CHANGE, DELETION
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _, gettext_noop, ngettext_lazy

from django_jobs import operations
from django_jobs.operations import Filter, Result
from django_jobs.states import FINISHED, WAITING, State
from django_jobs.texts import number_text

RETRY, CANCEL = "django_jobs.retry_job", "django_jobs.cancel_job"
PURGE, EDIT = "django_jobs.purge_job", "django_jobs.edit_job"


class Action(NamedTuple):
    """One of them.

    :param name: in forms.
    :param label: on its button.
    :param permission: that it needs.
    :param states: of the jobs that it can be done to.
    :param all_states: of those that it is done to where no state is asked for.
    :param do: does it: ``do(filter, values, **options)``, ``values`` being what the form has for it.
    :param done: what was done, with the number of jobs.
    :param question: asked before it is done to many, or to one if it is ``destroys``.
    :param consequence: said with the question.
    :param destroys: whether it can't be undone, so that it is asked for even where it is done to one.
    :param entry: in the admin's log.
    :param fields: that it changes, as the model calls them in English.
    """

    name: str
    label: str | Promise
    permission: str
    states: tuple[str, ...]
    all_states: tuple[str, ...]
    do: Callable[..., Result]
    done: Any
    question: str | Promise
    consequence: str | Promise = ""
    destroys: bool = False
    entry: str = ""
    fields: tuple[str, ...] = ()
    flag: int = CHANGE

    def done_text(self, count: int) -> str:
        """What was done to so many jobs."""
        text: str = self.done % {"number": count, "count": number_text(count)}
        return text


def _delete(wanted: Filter, _values: dict[str, Any], **options: Any) -> Result:
    """Those that were chosen one by one, whatever they wait for; of all that match what has ended and holds no key."""
    if wanted.names_ids_alone:
        return operations.delete(wanted, **options)
    if wanted.states and not set(wanted.states) & set(FINISHED):
        return operations.delete(wanted, **options)
    return operations.purge(wanted, dt.timedelta(), **options)


ACTIONS = {
    action.name: action
    for action in (
        Action(
            "retry",
            _("Retry"),
            RETRY,
            FINISHED,
            (State.FAILED.value,),
            lambda wanted, _values, **options: operations.retry(wanted, **options),
            ngettext_lazy("%(count)s job will run again.", "%(count)s jobs will run again.", "number"),
            _("Run these jobs again?"),
            _("Each starts again with its first attempt; its errors stay on its page."),
            entry=gettext_noop("Retried."),
            fields=("state",),
        ),
        Action(
            "run_now",
            _("Run now"),
            EDIT,
            (State.SCHEDULED.value,),
            (State.SCHEDULED.value,),
            lambda wanted, _values, **options: operations.run_now(wanted, **options),
            ngettext_lazy(
                "%(count)s job runs as soon as a worker is free.",
                "%(count)s jobs run as soon as workers are.",
                "number",
            ),
            _("Run these jobs now, without waiting for their time?"),
            entry=gettext_noop("Made to run at once."),
            fields=("run after",),
        ),
        Action(
            "release",
            _("Release"),
            EDIT,
            (State.PENDING.value,),
            (State.PENDING.value,),
            lambda wanted, _values, **options: operations.release(wanted, **options),
            ngettext_lazy("%(count)s job released.", "%(count)s jobs released.", "number"),
            _("Release these jobs?"),
            _("Each runs as soon as its time has come."),
            entry=gettext_noop("Released."),
            fields=("state",),
        ),
        Action(
            "update",
            _("Change"),
            EDIT,
            WAITING,
            WAITING,
            lambda wanted, values, **options: operations.update(wanted, **values, **options),
            ngettext_lazy("%(count)s job changed.", "%(count)s jobs changed.", "number"),
            _("Change these jobs?"),
            entry=gettext_noop("Changed."),
        ),
        Action(
            "cancel",
            _("Cancel"),
            CANCEL,
            (*WAITING, State.RUNNING.value),
            (*WAITING, State.RUNNING.value),
            lambda wanted, _values, **options: operations.cancel(wanted, **options),
            ngettext_lazy(
                "%(count)s job cancelled, or asked to stop.",
                "%(count)s jobs cancelled, or asked to stop.",
                "number",
            ),
            _("Cancel these jobs?"),
            _("Jobs that wait are cancelled at once; those that run are asked to stop, and end when they heed it."),
            destroys=True,
            entry=gettext_noop("Cancelled."),
            fields=("state",),
        ),
        Action(
            "delete",
            _("Delete"),
            PURGE,
            (*WAITING, *FINISHED),
            FINISHED,
            _delete,
            ngettext_lazy("%(count)s job deleted.", "%(count)s jobs deleted.", "number"),
            _("Delete these jobs for good?"),
            _("Their arguments, errors and results are gone then; the counts in charts stay."),
            destroys=True,
            entry=gettext_noop("Deleted."),
            flag=DELETION,
        ),
    )
}  # fmt: skip
