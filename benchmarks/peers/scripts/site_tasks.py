"""The tasks of the backends of Django's Tasks framework."""

import shared
from django.tasks import task


@task
def noop(n):
    """Do nothing."""


@task
def tell(address):
    """Tell when it starts."""
    shared.tell(address)
