"""All guards, by what they guard. A module here is added to ``GUARDS`` below."""

from tests.guards.catalogue import (
    cancelling,
    finishing,
    giving_back,
    rescuing,
    rows_and_keys,
    schedules_and_clocks,
)
from tests.guards.guard import Guard

GUARDS: tuple[Guard, ...] = (
    *cancelling.GUARDS,
    *finishing.GUARDS,
    *giving_back.GUARDS,
    *rescuing.GUARDS,
    *rows_and_keys.GUARDS,
    *schedules_and_clocks.GUARDS,
)

# Tests of the page of faults that no edit is named for, each with the reason.
EXEMPT: dict[str, str] = {}
