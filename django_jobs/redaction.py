"""What must not be shown of a job: passwords, tokens and the like, by the names of keys and of parameters.

What a job carries is stored as it is, since its function needs it; the admin and ``manage.py jobs`` show it as
:class:`Shown`. A value is hidden that stands under a key, or is given to a parameter, whose name is one of
:data:`USUAL_NAMES`, of ``DJANGO_JOBS["REDACT"]`` or of the function's own ``@job(redact=[...])``; and so is every place
where such a value comes again in the job's errors, tags or unique key.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django_jobs import conf
from django_jobs.exceptions import InvalidJob
from django_jobs.job_registry import registry
from django_jobs.limits import JSON_DEPTH
from django_jobs.serialization import Undecodable, shown
from django_jobs.store.rows import JobRow

#: What stands in the place of a hidden value.
HIDDEN = "[hidden]"

#: What is hidden without being asked to. ``"-pin"`` in ``DJANGO_JOBS["REDACT"]`` takes one out.
USUAL_NAMES = (
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "secret",
    "secrets",
    "token",
    "api_key",
    "access_key",
    "private_key",
    "encryption_key",
    "authorization",
    "auth",
    "credential",
    "credentials",
    "cookie",
    "cookies",
    "session_id",
    "session_key",
    "signature",
    "otp",
    "pin",
    "card_number",
    "cvv",
    "cvc",
    "iban",
    "ssn",
)
# Where a hidden value comes again in a text it is hidden too; one shorter than this stands everywhere by chance.
SHORTEST_TEXT = 4
SHORTEST_NUMBER = 6
# With more hidden values than this they are not looked for: the texts are hidden whole.
MOST_SECRETS = 200
#: The columns of a job that are shown as :class:`Shown` has them.
REDACTED = ("args", "kwargs", "result", "metadata", "errors", "tags", "unique_key")
TOO_DEEP = "[nested too deeply to be shown]"

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NO_WORD = re.compile(r"[\W_]+")
# Names that are long and telling may have other words before them without a mark between: dbpassword, accesstoken.
_TELLING = 5


def check(redact: Any, name: str) -> tuple[str, ...] | bool:
    """The option ``redact`` of a job function, as names, or whether all is hidden. Raises InvalidJob."""
    if isinstance(redact, bool):
        return redact
    if isinstance(redact, str) or not isinstance(redact, Iterable):
        raise InvalidJob(
            f"redact of {name} is {shown(redact)}; it must be a list of names of parameters and keys, or True for all "
            f"of a job's arguments and its result."
        )
    own = tuple(redact)
    for each in own:
        if not isinstance(each, str) or not _words(each):
            raise InvalidJob(
                f"redact of {name} has {shown(each)}; it must be a name of a parameter or a key."
            )
    return own


def _words(name: str) -> str:
    """A name as its words: ``apiKey``, ``API-Key`` and ``api_key`` are all ``api_key``."""
    return _NO_WORD.sub("_", _CAMEL.sub("_", name)).strip("_").casefold()


def names() -> tuple[str, ...]:
    """The names that are hidden for every job."""
    setting = conf.get("REDACT")
    if setting is None:
        return ()
    left_out = {_words(each[1:]) for each in setting if each.startswith("-")}
    usual = [each for each in USUAL_NAMES if _words(each) not in left_out]
    return (*usual, *(each for each in setting if not each.startswith("-")))


@functools.lru_cache(maxsize=200)
def _pattern(hidden: tuple[str, ...]) -> re.Pattern[str] | None:
    """What finds one of the names in the words of another: whole words, in a row."""
    parts = []
    for name in hidden:
        words = _words(name)
        if words:
            # No matter whether the words are told apart: apikey is api_key.
            spelled = "_?".join(re.escape(word) for word in words.split("_"))
            before = "" if len(words.replace("_", "")) >= _TELLING else r"(?:^|_)"
            parts.append(f"{before}{spelled}")
    return re.compile(rf"(?:{'|'.join(parts)})(?=_|\d|$)") if parts else None


class Redactor:
    """Shows what one job carries, without what must not be seen.

    :param hidden: names of keys and parameters whose values are hidden.
    :param parameters: the names of the function's positional parameters, as far as they are known.
    :param rest: the name of its ``*args``.
    :param everything: whether all arguments and the result are hidden.
    """

    def __init__(
        self, hidden: Sequence[str], parameters: Sequence[str] = (), rest: str = "", everything: bool = False
    ) -> None:
        self._pattern = _pattern(tuple(hidden))
        self._parameters = parameters
        self._rest = rest
        self.everything = everything

    @classmethod
    def of(cls, name: str) -> Redactor:
        """For the jobs of a function. If it is not known here, names of positional parameters are not, either."""
        definition = registry.get(name)
        if definition is None:
            return cls(names())
        own = definition.redact
        more = () if isinstance(own, bool) else own
        arguments = definition.arguments
        return cls((*names(), *more), arguments.names, arguments.rest, own is True)

    def hides(self, name: str) -> bool:
        """Whether the value of a key, or of a parameter, with this name is hidden."""
        return self._pattern is not None and self._pattern.search(_words(name)) is not None

    # -- values ----------------------------------------------------------------------------------------------------

    def args(self, args: Any) -> Any:
        """Positional arguments to show."""
        if not isinstance(args, list):
            return self._whole(args)
        return [
            HIDDEN if self._hides_position(place) else self.value(each) for place, each in enumerate(args)
        ]

    def kwargs(self, kwargs: Any) -> Any:
        """Keyword arguments to show."""
        if self.everything and isinstance(kwargs, dict):
            return dict.fromkeys(kwargs, HIDDEN)
        return self._whole(kwargs)

    def result(self, result: Any) -> Any:
        """A result to show."""
        return HIDDEN if self.everything and result is not None else self.value(result)

    def value(self, value: Any, depth: int = 0) -> Any:
        """Any other value to show: metadata, or a part of one."""
        if isinstance(value, dict | list) and depth > JSON_DEPTH:  # as somebody's SQL may have written it
            return TOO_DEEP
        if isinstance(value, dict):
            return {
                key: HIDDEN if self.hides(key) and _tells(each) else self.value(each, depth + 1)
                for key, each in value.items()
            }
        if isinstance(value, list):
            return [self.value(each, depth + 1) for each in value]
        if isinstance(value, Undecodable):
            # No value can be told from another in it: it is shown only if it names nothing that is hidden.
            return HIDDEN if self.everything or self.hides(value) else value
        return value

    def _whole(self, value: Any) -> Any:
        return HIDDEN if self.everything else self.value(value)

    def name_of(self, place: int) -> str:
        """The name of the parameter that takes a positional argument; empty if it is not known."""
        return self._parameters[place] if place < len(self._parameters) else self._rest

    def _hides_position(self, place: int) -> bool:
        return self.everything or self.hides(self.name_of(place))

    # -- texts in which a hidden value may come again --------------------------------------------------------------

    def secrets(self, job: JobRow) -> tuple[str, ...] | None:
        """The hidden values of a job, as texts, the longest first; None when there are too many to look for."""
        return _bounded(
            itertools.chain(
                self._secrets_of_call(job.args, job.kwargs),
                self._secrets(job.result, hidden=self.everything),
                self._secrets(job.metadata),
            )
        )

    def text(self, text: str, args: Any, kwargs: Any) -> str:
        """A text about a call, as the error of a schedule is, without what is hidden of its arguments."""
        return _without(text, _bounded(self._secrets_of_call(args, kwargs)))

    def _secrets_of_call(self, args: Any, kwargs: Any) -> Iterator[str]:
        if isinstance(args, list):
            for place, each in enumerate(args):
                yield from self._secrets(each, hidden=self._hides_position(place))
        else:
            yield from self._secrets(args, hidden=self.everything)
        yield from self._secrets(kwargs, hidden=self.everything)

    def _secrets(self, value: Any, hidden: bool = False, depth: int = 0) -> Iterator[str]:
        if depth > JSON_DEPTH:
            return
        if isinstance(value, dict):
            for key, each in value.items():
                yield from self._secrets(each, hidden or self.hides(key), depth + 1)
        elif isinstance(value, list):
            for each in value:
                yield from self._secrets(each, hidden, depth + 1)
        elif hidden:
            yield from _texts(value)


class Shown:
    """A job as people may see it; each part is worked out when it is asked for.

    :param job: the row.
    :param redactor: by default that of the job's function.
    """

    def __init__(self, job: JobRow, redactor: Redactor | None = None) -> None:
        self.job = job
        self.redactor = redactor or Redactor.of(job.name)

    @functools.cached_property
    def args(self) -> Any:
        """Its positional arguments."""
        return self.redactor.args(self.job.args)

    @functools.cached_property
    def kwargs(self) -> Any:
        """Its keyword arguments."""
        return self.redactor.kwargs(self.job.kwargs)

    @functools.cached_property
    def result(self) -> Any:
        """Its result."""
        return self.redactor.result(self.job.result)

    @functools.cached_property
    def metadata(self) -> Any:
        """Its metadata."""
        return self.redactor.value(self.job.metadata)

    @functools.cached_property
    def errors(self) -> Any:
        """Its errors: hidden values don't come again in their messages and tracebacks."""
        return self._without(self.redactor.value(self.job.errors))

    @functools.cached_property
    def tags(self) -> Any:
        """Its tags."""
        return self._without(self.redactor.value(self.job.tags))

    @functools.cached_property
    def unique_key(self) -> str | None:
        """Its unique key, which may be made of its arguments."""
        key = self.job.unique_key
        return None if key is None else self.text(key)

    @functools.cached_property
    def _secrets(self) -> tuple[str, ...] | None:
        return self.redactor.secrets(self.job)

    def text(self, text: str) -> str:
        """A text of the job's, without its hidden values."""
        return _without(text, self._secrets)

    def _without(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._without(each) for each in value]
        if isinstance(value, Mapping):
            return {key: self._without(each) for key, each in value.items()}
        return value


def _bounded(texts: Iterable[str]) -> tuple[str, ...] | None:
    """Hidden values, each once, the longest first; None when there are too many to look for."""
    found: set[str] = set()
    for text in texts:
        found.add(text)
        if len(found) > MOST_SECRETS:
            return None
    return tuple(sorted(found, key=lambda text: (-len(text), text)))


def _without(text: str, secrets: tuple[str, ...] | None) -> str:
    if secrets is None:
        return HIDDEN
    for secret in secrets:
        if secret in text:
            text = text.replace(secret, HIDDEN)
    return text


def _tells(value: Any) -> bool:
    """Whether there is anything to hide: that a password is missing is worth knowing."""
    return value is not None and value not in ("", [], {})


def _texts(value: Any) -> Iterator[str]:
    """A hidden value as the texts that may come again."""
    if isinstance(value, str):
        if len(value) >= SHORTEST_TEXT:
            yield value
            # As it stands in a message that shows its repr.
            if (quoted := repr(value)[1:-1]) != value:
                yield quoted
    elif (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and len(text := str(value)) >= SHORTEST_NUMBER
    ):
        yield text
