"""The arguments of a job: whether they fit the function, and whether they can be stored and come back equal."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from django_jobs import python_words
from django_jobs.exceptions import InvalidArguments
from django_jobs.serialization import NotStorable, encode, encode_plain, encode_storable, shown
from django_jobs.texts import Grouped, text as _, words_of


class Arguments:
    """Checks and encodes the arguments of one function; what can be prepared is prepared once.

    :param function: the job's function.
    :param skip: how many leading arguments the worker supplies (1 for the context).
    :raises TypeError: when the function's signature can't be read, or does not take the leading arguments.
    """

    def __init__(self, function: Callable[..., Any], skip: int = 0) -> None:
        try:
            self._whole = inspect.signature(function)
        except ValueError as error:
            raise TypeError(str(error)) from None
        self._leading = (None,) * skip
        self._whole.bind_partial(*self._leading)
        parameters = list(self._whole.parameters.values())
        # *args takes the leading arguments and any others.
        parameters = [
            parameter
            for index, parameter in enumerate(parameters)
            if index >= skip or parameter.kind is parameter.VAR_POSITIONAL
        ]
        #: What a caller of ``enqueue`` gives.
        self.signature = self._whole.replace(parameters=parameters)
        positional = [
            parameter
            for parameter in parameters
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
        #: The names of the parameters that take positional arguments, and of the one that takes the rest of them.
        self.names = [parameter.name for parameter in positional]
        self.rest = next((each.name for each in parameters if each.kind is each.VAR_POSITIONAL), "args")
        self._least = sum(parameter.default is parameter.empty for parameter in positional)
        # Binding costs more than all the rest of an enqueue's Python; for plain parameters counting is enough.
        self._plain = len(positional) == len(parameters)

    def fit(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raise InvalidArguments unless the function can be called with these."""
        if self._plain and not kwargs and self._least <= len(args) <= len(self.names):
            return
        try:
            self._whole.bind(*self._leading, *args, **kwargs)
        except TypeError as error:
            raise InvalidArguments(
                _(
                    "%(problem)s; the parameters are %(signature)s%(hint)s",
                    problem=python_words.of_call(error),
                    signature=str(self.signature),
                    hint=self._hint(kwargs),
                )
            ) from None

    def _hint(self, kwargs: Mapping[str, Any]) -> str:
        """What to do, where an option was given among the arguments."""
        from django_jobs.options import OF_ONE_JOB

        option = next((name for name in kwargs if name in OF_ONE_JOB and name not in self.names), None)
        return "" if option is None else _(". Options come before: .using(%(option)s=...)", option=option)

    def encode(self, args: Sequence[Any], kwargs: Mapping[str, Any], most_bytes: int) -> tuple[str, str]:
        """The arguments as JSON texts. Raises InvalidArguments, naming the argument, for what can't be stored."""
        encoded_args = encode_plain(list(args)) if args else "[]"
        encoded_kwargs = encode_plain(kwargs) if kwargs else "{}"
        try:
            if encoded_args is None or encoded_kwargs is None:
                encoded_args, encoded_kwargs = self._encode_each(args, kwargs)
            if len(encoded_args) + len(encoded_kwargs) > most_bytes // 4:
                self._check_size(args, kwargs, encoded_args, encoded_kwargs, most_bytes)
        except NotStorable as error:
            raise InvalidArguments(words_of(error)) from None
        return encoded_args, encoded_kwargs

    def _encode_each(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[str, str]:
        """Look closely at each argument: to name the one that is wrong, or to find that all are right."""
        try:
            for value in (*args, *kwargs.values()):
                encode_storable(value, "")
        except NotStorable:  # only now what it is called matters
            for what, value in self.described(args, kwargs):
                encode_storable(value, what)
        for name in kwargs:  # a function with **kwargs takes any name
            if encode_plain(name) is None:
                encode_storable(name, _("the name %(name)s of an argument", name=shown(name)))
        return encode(list(args)), encode(dict(kwargs))

    def _check_size(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        encoded_args: str,
        encoded_kwargs: str,
        most_bytes: int,
    ) -> None:
        size = len(encoded_args.encode()) + len(encoded_kwargs.encode())
        if size > most_bytes:
            largest = max(self.described(args, kwargs), key=lambda described: len(encode(described[1])))[0]
            raise NotStorable(
                _(
                    "the arguments are %(size)s bytes as JSON, over the limit of %(most)s (the largest is %(largest)s)."
                    " Store the data and pass its key, or raise DJANGO_JOBS['MAX_ARGUMENT_BYTES'].",
                    size=Grouped(size),
                    most=Grouped(most_bytes),
                    largest=largest,
                )
            )

    def described(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Each argument with what it is called in a message."""
        for index, value in enumerate(args):
            if index < len(self.names):
                yield _("argument %(name)s", name=repr(self.names[index])), value
            else:
                place = index - len(self.names)
                yield _("argument %(place)d of *%(rest)s", place=place, rest=self.rest), value
        for key, value in kwargs.items():
            yield _("argument %(name)s", name=shown(key)), value
