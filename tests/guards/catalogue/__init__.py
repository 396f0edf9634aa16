"""All guards, by what they guard. A module here is added to ``GUARDS`` below."""

from tests.guards.catalogue import finishing, languages
from tests.guards.guard import Guard

GUARDS: tuple[Guard, ...] = (*finishing.GUARDS, *languages.GUARDS)

# Tests of the page of faults that no edit is named for, each with the reason.
EXEMPT: dict[str, str] = {}
