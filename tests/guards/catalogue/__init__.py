"""All guards, by what they guard. A module here is added to ``GUARDS`` below."""

from tests.guards.catalogue import (
    cancelling,
    claiming,
    finishing,
    giving_back,
    operating,
    rescuing,
    rows_and_keys,
    schedules_and_clocks,
)
from tests.guards.guard import Guard

GUARDS: tuple[Guard, ...] = (
    *cancelling.GUARDS,
    *claiming.GUARDS,
    *finishing.GUARDS,
    *giving_back.GUARDS,
    *operating.GUARDS,
    *rescuing.GUARDS,
    *rows_and_keys.GUARDS,
    *schedules_and_clocks.GUARDS,
)

# Tests of the page of faults that no edit is named for, each with the reason.
EXEMPT: dict[str, str] = {}
