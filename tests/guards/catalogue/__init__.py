"""All guards, by what they guard. A module here is added to ``GUARDS`` below."""

from tests.guards.catalogue import (
    cancelling,
    claiming,
    finishing,
    giving_back,
    keys,
    operating,
    raising,
    rescuing,
    schedules_and_clocks,
    storing,
)
from tests.guards.guard import Guard

GUARDS: tuple[Guard, ...] = (
    *cancelling.GUARDS,
    *claiming.GUARDS,
    *finishing.GUARDS,
    *giving_back.GUARDS,
    *keys.GUARDS,
    *operating.GUARDS,
    *raising.GUARDS,
    *rescuing.GUARDS,
    *schedules_and_clocks.GUARDS,
    *storing.GUARDS,
)

# Tests of the page of faults that no edit is named for, each with the reason.
EXEMPT: dict[str, str] = {}
