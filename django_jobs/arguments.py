"""The arguments of a job: whether they fit the function, and whether they can be stored and come back equal."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django_jobs.exceptions import InvalidArguments
from django_jobs.serialization import NotStorable, encode, encode_storable

_EASY = frozenset({int, bool, type(None)})


class Arguments:
    """Checks and encodes the arguments of one function; what can be prepared is prepared once.

    :param function: the job's function.
    :param skip: how many leading parameters the worker supplies (1 for the context).
    """

    def __init__(self, function: Callable[..., Any], skip: int = 0) -> None:
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())[skip:]
        self.signature = signature.replace(parameters=parameters)
        kinds = {parameter.kind for parameter in parameters}
        positional = [
            parameter
            for parameter in parameters
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
        self._names = [parameter.name for parameter in positional]
        self._least = sum(parameter.default is parameter.empty for parameter in positional)
        # Binding costs more than all the rest of an enqueue's Python; for plain parameters counting is enough.
        self._plain = kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD}

    def fit(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raise InvalidArguments unless the function can be called with these."""
        if self._plain and not kwargs and self._least <= len(args) <= len(self._names):
            return
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidArguments(f"{error}; the parameters are {self.signature}") from None

    def encode(self, args: Sequence[Any], kwargs: Mapping[str, Any], most_bytes: int) -> tuple[str, str]:
        """The arguments as JSON texts. Raises InvalidArguments, naming the argument, for what can't be stored."""
        try:
            return self._encode(args, kwargs, most_bytes)
        except NotStorable as error:
            raise InvalidArguments(str(error)) from None

    def _encode(self, args: Sequence[Any], kwargs: Mapping[str, Any], most_bytes: int) -> tuple[str, str]:
        if kwargs:
            for name, value in kwargs.items():
                self._check(value, name)
            encoded_kwargs = encode_storable(dict(kwargs), "the arguments")
        else:
            encoded_kwargs = "{}"
        if args:
            for value in args:
                kind = type(value)
                if not (kind in _EASY or (kind is str and value.isascii() and "\0" not in value)):
                    for index, item in enumerate(args):
                        self._check(item, self._name(index))
                    break
            try:
                encoded_args = encode(list(args))
            except ValueError as error:  # an integer of over 4,300 digits, which Python does not write
                raise NotStorable(f"an argument can't be written as JSON: {error}") from None
        else:
            encoded_args = "[]"
        if len(encoded_args) + len(encoded_kwargs) > most_bytes // 4:
            size = len(encoded_args.encode()) + len(encoded_kwargs.encode())
            if size > most_bytes:
                raise NotStorable(
                    f"the arguments are {size:,} bytes as JSON, over the limit of {most_bytes:,}"
                    f"{self._largest(args, kwargs)}. Store the data and pass its key, or raise "
                    f"DJANGO_JOBS['MAX_ARGUMENT_BYTES']."
                )
        return encoded_args, encoded_kwargs

    def _check(self, value: Any, name: str) -> None:
        encode_storable(value, f"argument {name!r}")

    def _name(self, index: int) -> str:
        return self._names[index] if index < len(self._names) else str(index)

    def _largest(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        named = {**{self._name(index): value for index, value in enumerate(args)}, **kwargs}
        name = max(named, key=lambda key: len(encode(named[key])))
        return f" (the largest is {name!r})"
