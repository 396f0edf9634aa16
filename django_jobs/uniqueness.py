"""Unique keys: what ``unique`` makes of a job's arguments."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from string import Formatter
from typing import Any

from django_jobs import limits
from django_jobs.exceptions import InvalidJob
from django_jobs.options import Described
from django_jobs.serialization import find_problem, shown
from django_jobs.texts import text as _

KeyFunction = Callable[[Sequence[Any], Mapping[str, Any]], str | None]

_canonical = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True
).encode


def key_function(definition: Described) -> KeyFunction | None:
    """What makes the unique key of a job's arguments, which have been checked; None where no job has one."""
    options = definition.options
    unique: Any = options.unique
    if options.unique_key is not None:
        return lambda _args, _kwargs: options.unique_key
    if unique is True or (unique is None and options.unique_for is not None):
        return lambda args, kwargs: _bounded(
            f"{definition.name}:{_canonical(_named(definition, args, kwargs))}"
        )
    if unique is None or unique is False:
        return None
    make = unique if callable(unique) else _template(definition, unique)
    return lambda args, kwargs: _made(definition, make, args, kwargs)


def check(definition: Described) -> None:
    """Raise InvalidJob if ``unique`` is a string that names what the function does not take."""
    unique: Any = definition.options.unique
    if not isinstance(unique, str):
        return
    parameters = definition.arguments.signature.parameters
    try:
        fields = [field for _, field, _, _ in Formatter().parse(unique) if field is not None]
    except ValueError as error:
        raise InvalidJob(
            _(
                "unique=%(value)s of %(name)s: %(error)s.",
                value=repr(unique),
                name=definition.name,
                error=error,
            )
        ) from None
    for field in fields:
        if field.partition(".")[0].partition("[")[0] not in parameters:
            raise InvalidJob(
                _(
                    "unique=%(value)s of %(name)s names %(field)s, which is no parameter; they are %(signature)s. (A "
                    "brace itself is written twice.)",
                    value=repr(unique),
                    name=definition.name,
                    field=shown(field),
                    signature=str(definition.arguments.signature),
                )
            )


def _named(definition: Described, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by the names of their parameters: positional or not, the same call has the same key."""
    return definition.arguments.signature.bind(*args, **kwargs).arguments


def _template(definition: Described, text: str) -> Callable[..., str]:
    def fill(*args: Any, **kwargs: Any) -> str:
        bound = definition.arguments.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return text.format_map(bound.arguments)

    return fill


def _made(
    definition: Described,
    make: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> str | None:
    """What a template or a callable makes of the arguments, if it can be a key."""
    try:
        key = make(*args, **kwargs)
    except Exception as error:
        raise InvalidJob(
            _(
                "unique of %(name)s raised %(type)s: %(error)s",
                name=definition.name,
                type=type(error).__name__,
                error=error,
            )
        ) from error
    if key is None:
        return None
    if not isinstance(key, str) or not key:
        raise InvalidJob(
            _(
                "unique of %(name)s made the key %(key)s; it must be a string that is not empty, or None.",
                name=definition.name,
                key=shown(key),
            )
        )
    if find_problem(key, "") is not None:
        raise InvalidJob(find_problem(key, _("the key of unique of %(name)s", name=definition.name)))
    return _bounded(str.__str__(key))


def _bounded(key: str) -> str:
    """The key, if the column holds it with a period behind; else its beginning and a digest of it all."""
    if len(key) <= limits.PERIOD_KEY_LENGTH:
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()
    return f"{key[: limits.PERIOD_KEY_LENGTH - len(digest) - 1]}#{digest}"
