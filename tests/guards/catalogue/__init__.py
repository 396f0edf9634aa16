"""All guards, by what they guard. A module here is added to ``GUARDS`` below."""

from tests.guards.catalogue import at_length, at_once, finishing, found_here, outages, pages, scale, stopping
from tests.guards.guard import Guard

GUARDS: tuple[Guard, ...] = (
    *finishing.GUARDS,
    *outages.GUARDS,
    *at_once.GUARDS,
    *stopping.GUARDS,
    *scale.GUARDS,
    *pages.GUARDS,
    *found_here.GUARDS,
    *at_length.GUARDS,
)

# Tests of the page of faults that no edit is named for, each with the reason.
EXEMPT: dict[str, str] = {}
