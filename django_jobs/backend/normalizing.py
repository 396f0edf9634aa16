"""JSON as the Tasks framework takes it: tuples, bytes and keys that are no strings are turned into what JSON has."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django_jobs.backend.framework import normalize_json
from django_jobs.exceptions import InvalidArguments
from django_jobs.serialization import encode_plain

if TYPE_CHECKING:
    from django_jobs.definitions import JobDefinition


def normalize(value: Any) -> Any:
    """The value as it comes back from the database.

    :raises TypeError: for a type that JSON has nothing for.
    :raises ValueError: for bytes that are no text, and for what is nested too deeply, or contains itself.
    """
    if encode_plain(value) is not None:
        return value
    try:
        return _with_text_keys(normalize_json(value))
    except RecursionError:
        raise ValueError("it is nested too deeply, or contains itself") from None


def normalize_arguments(
    definition: JobDefinition[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call. Raises InvalidArguments, which is a TypeError and a ValueError, naming the argument."""
    positional = list(args)
    try:
        return normalize(positional), normalize(dict(kwargs))
    except (TypeError, ValueError) as error:
        for where, value in definition.arguments.described(positional, kwargs):
            try:
                normalize(value)
            except (TypeError, ValueError) as problem:
                raise InvalidArguments(
                    f"{definition.name}: {where} can't be written as JSON: {problem}."
                ) from None
        raise InvalidArguments(f"{definition.name}: {error}.") from None


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {_text_key(key): _with_text_keys(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_text_keys(item) for item in value]
    return value


def _text_key(key: Any) -> str:
    if isinstance(key, str):
        return key
    text: str = next(iter(json.loads(json.dumps({key: None}))))
    return text
