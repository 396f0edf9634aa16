"""All guards, by what they guard. A module here is added to ``GUARDS`` below."""

from tests.guards.catalogue import (
    cancelling,
    finishing,
    giving_back,
    rescuing,
)
from tests.guards.guard import Guard

GUARDS: tuple[Guard, ...] = (
    *cancelling.GUARDS,
    *finishing.GUARDS,
    *giving_back.GUARDS,
    *rescuing.GUARDS,
)

# Tests of the page of faults that no edit is named for, each with the reason.
EXEMPT: dict[str, str] = {}
