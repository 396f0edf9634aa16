"""The registry of job functions.

A row names its function; only what is registered here is ever called because a row says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django_jobs import declared_tasks
from django_jobs.definitions import JobDefinition
from django_jobs.exceptions import InvalidJob


class Registry:
    """Job functions by name, old names (aliases) included."""

    def __init__(self) -> None:
        self._definitions: dict[str, JobDefinition[Any, Any]] = {}
        self._names: dict[str, JobDefinition[Any, Any]] = {}
        #: Those of the definitions, by name and alias, that are told of stored outcomes.
        self.listening: dict[str, JobDefinition[Any, Any]] = {}

    def add(self, definition: JobDefinition[Any, Any]) -> None:
        """Register a definition under its name and aliases.

        :raises InvalidJob: when another function has one of these names.
        """
        for name in (definition.name, *definition.aliases):
            known = self._names.get(name)
            if known is not None and not known.place.is_again(definition.place):
                raise InvalidJob(
                    f"Two functions want the job name {name!r}: {known.place} and {definition.place}. Give one of "
                    f"them another name=."
                )
        self._definitions[definition.name] = definition
        for name in (definition.name, *definition.aliases):
            self._names[name] = definition
            if definition.on_stored is not None:
                self.listening[name] = definition
            else:
                self.listening.pop(name, None)

    def get(self, name: str) -> JobDefinition[Any, Any] | None:
        """The definition with this name or alias, or None."""
        known = self._names.get(name)
        return known if known is not None else declared_tasks.find(name)

    def known(self, name: str) -> JobDefinition[Any, Any] | None:
        """What is registered under this name or alias by now, or None."""
        return self._names.get(name)

    def remove(self, definition: JobDefinition[Any, Any]) -> None:
        """Forget a definition; for tests that define one."""
        for name in (definition.name, *definition.aliases):
            self._names.pop(name, None)
            self.listening.pop(name, None)
        self._definitions.pop(definition.name, None)

    def __iter__(self) -> Iterator[JobDefinition[Any, Any]]:
        return iter(list(self._definitions.values()))

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def queue_names(self) -> set[str]:
        """The queues that registered functions go to."""
        return {definition.queue_name for definition in self}


registry = Registry()
