"""Its jobs."""

import shared

from django_jobs import job


@job
def noop(n):
    """Do nothing."""


@job
def tell(address):
    """Tell when it starts."""
    shared.tell(address)
