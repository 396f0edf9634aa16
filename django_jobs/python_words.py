"""What Python itself says of a call that does not fit and of JSON that can't be read, as texts that pages translate.

In English they are word for word what Python says; what is not known here, as of a later Python, stays as it is.
"""

from __future__ import annotations

import sys
from json import JSONDecodeError

from django.utils.translation import gettext_noop

from django_jobs.texts import Text, recognised, text as _, words_of

# Of inspect.Signature.bind.
CALLS = (
    gettext_noop("missing a required argument: %(name)s"),
    gettext_noop("missing a required positional-only argument: %(name)s"),
    gettext_noop("missing a required keyword-only argument: %(name)s"),
    gettext_noop("too many positional arguments"),
    gettext_noop("multiple values for argument %(name)s"),
    gettext_noop("got an unexpected keyword argument %(name)s"),
    gettext_noop("%(name)s parameter is positional only, but was passed as a keyword"),
    gettext_noop("got some positional-only arguments passed as keyword arguments: %(name)s"),
)
# Of json, before it says where.
JSON = (
    gettext_noop("Expecting value"),
    gettext_noop("Expecting ',' delimiter"),
    gettext_noop("Expecting ':' delimiter"),
    gettext_noop("Expecting property name enclosed in double quotes"),
    gettext_noop("Extra data"),
    gettext_noop("Unterminated string starting at"),
    gettext_noop("Invalid control character at"),
    gettext_noop("Invalid \\escape"),
    gettext_noop("Invalid \\uXXXX escape"),
    gettext_noop("Illegal trailing comma before end of object"),
    gettext_noop("Illegal trailing comma before end of array"),
)


def of_call(error: TypeError) -> str:
    """What is wrong with the arguments of a call."""
    return recognised(str(error), CALLS)


def of_json(error: ValueError) -> str:
    """What is wrong with a JSON text, and where."""
    if isinstance(error, JSONDecodeError):
        return _(
            "%(problem)s: line %(line)d column %(column)d (char %(place)d)",
            problem=recognised(error.msg, JSON),
            line=error.lineno,
            column=error.colno,
            place=error.pos,
        )
    words: str = words_of(error)
    if isinstance(words, Text):
        return words
    # Python's own bound, against texts that would take it very long.
    return _("a number has more than %(most)d digits", most=sys.get_int_max_str_digits())
