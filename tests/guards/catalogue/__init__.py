"""All guards, by what they guard: a module here has some in ``GUARDS``."""

import importlib
import pkgutil

from tests.guards.guard import Guard

GUARDS: tuple[Guard, ...] = tuple(
    guard
    for module in pkgutil.iter_modules(__path__)
    for guard in importlib.import_module(f"{__name__}.{module.name}").GUARDS
)

# Tests of the page of faults that no edit is named for, each with the reason.
EXEMPT: dict[str, str] = {}
