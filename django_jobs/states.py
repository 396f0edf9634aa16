"""The states of a job, and the groups of them that statements and pages speak of."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _, gettext_noop

from django_jobs.texts import Text


class State(models.TextChoices):
    """Where a job stands. The values are what the column holds, readable in psql."""

    PENDING = "pending", _("Pending")
    SCHEDULED = "scheduled", _("Scheduled")
    AVAILABLE = "available", _("Available")
    RUNNING = "running", _("Running")
    COMPLETED = "completed", _("Completed")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Cancelled")


class Counted(models.TextChoices):
    """What became of an attempt, as the statistics count it."""

    COMPLETED = "completed", _("Completed")
    FAILED = "failed", _("Failed for good")
    RETRIED = "retried", _("Failed, to be retried")
    SNOOZED = "snoozed", _("Snoozed")
    CANCELLED = "cancelled", _("Cancelled")


WAITING = (State.PENDING.value, State.SCHEDULED.value, State.AVAILABLE.value)
FINISHED = (State.COMPLETED.value, State.FAILED.value, State.CANCELLED.value)

# Each as a word within a sentence.
_WORDS = (
    gettext_noop("pending"),
    gettext_noop("scheduled"),
    gettext_noop("available"),
    gettext_noop("running"),
    gettext_noop("completed"),
    gettext_noop("failed"),
    gettext_noop("cancelled"),
)


def state_text(state: str) -> Text:
    """A state as a word within a sentence, which pages show in their language."""
    return Text(str(state))
