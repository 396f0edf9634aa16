"""Texts that are English as strings, and in the language of the page where a page shows them.

Messages of errors and reasons of operations are read in logs and terminals, by scripts and by tests, where they are
English whatever language is active; and on pages, where they are to be in the language of the page. So such a text
keeps what it was made of, and is translated when it is shown::

    from django_jobs.texts import text as _

    raise InvalidJob(_("%(option)s of %(name)s is empty.", option=option, name=name))

The alias is what gettext looks for. What no page can show may stay a plain string: it is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

from django.utils import formats
from django.utils.translation import gettext, ngettext

_VALUE = re.compile(r"%\((\w+)\)s")
# What a template may have in it, where it comes back from outside: a width would be a way to ask for any memory.
_TEMPLATE = re.compile(r"(?:[^%]|%%|%\(\w+\)[sd])*")
_PLACE = re.compile(r"%\((\w+)\)")
# And so would texts within texts be, each of which fills in the next one many times. Ours are far from these bounds.
LONGEST = 10_000  # characters
DEEPEST = 10  # texts within each other


class Text(str):
    """The English text, as which it is a string, and what it was made of.

    :param template: a string that is marked for translation; of several forms, the singular.
    :param values: what is filled in: strings, numbers, other texts, and errors, which stand for their messages. A ``%``
        in them does no harm.
    :param plural: the plural of the template.
    :param number: that decides between the two.
    """

    __slots__ = ("number", "plural", "template", "values")

    template: str
    values: dict[str, Any]
    plural: str | None
    number: int

    def __new__(
        cls,
        template: str,
        values: Mapping[str, Any] | None = None,
        plural: str | None = None,
        number: int = 0,
    ) -> Self:
        filled = {name: words_of(value) for name, value in (values or {}).items()}
        english = template if plural is None or number == 1 else plural
        made = super().__new__(cls, english % filled if filled else english)
        made.template, made.values, made.plural, made.number = template, filled, plural, number
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.template, self.values, self.plural, self.number)

    def translated(self) -> str:
        """The text in the active language."""
        template = (
            gettext(self.template)
            if self.plural is None
            else ngettext(self.template, self.plural, self.number)
        )
        if not self.values:
            return template
        try:
            return template % {name: _shown(value) for name, value in self.values.items()}
        except (KeyError, TypeError, ValueError):  # a site's own catalogue fills in something else
            return str(self)

    @property
    def recipe(self) -> dict[str, Any]:
        """What it was made of, as JSON has it; :func:`of_recipe` makes it again."""
        recipe: dict[str, Any] = {"text": self.template}
        if self.values:
            recipe["values"] = {name: _recipe(value) for name, value in self.values.items()}
        if self.plural is not None:
            recipe.update(plural=self.plural, number=self.number)
        return recipe


class Grouped(int):
    """A number that is written with its thousands told apart: in English as a string, else as the language does it."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{int(self):,}"


def text(template: str, /, **values: Any) -> Text:
    """A text of a marked template and what is filled in: see :class:`Text`."""
    return Text(template, values)


def ntext(singular: str, plural: str, number: int, /, **values: Any) -> Text:
    """A text with a number, which is filled in as ``count``, in the form that the number takes.

    As ``ngettext`` is how gettext looks for it.
    """
    return Text(singular, {"count": number, **values}, plural, int(number))


def joined(*parts: str, by: str = " ") -> Text:
    """Several texts as one; empty ones are left out."""
    values = {f"part{place}": part for place, part in enumerate(parts) if part}
    return Text(by.replace("%", "%%").join(f"%({name})s" for name in values), values)


def words_of(value: Any) -> Any:
    """An error's message, as the text that it is; anything else as it is."""
    if not isinstance(value, BaseException):
        return value
    return value.args[0] if value.args and isinstance(value.args[0], Text) else str(value)


def translated(value: object) -> str:
    """A text, or an error's message, in the active language; anything else as a string."""
    words = words_of(value)
    return words.translated() if isinstance(words, Text) else str(words)


def of_recipe(recipe: Any, depth: int = 1) -> Text | None:
    """The text that a recipe makes; None for what is none, or makes too much, for it may come from anybody.

    :param depth: how many texts it is within, itself included.
    """
    if not isinstance(recipe, dict) or depth > DEEPEST:
        return None
    template: Any = recipe.get("text")
    plural, number = recipe.get("plural"), recipe.get("number", 0)
    given = recipe.get("values", {})
    if not isinstance(given, dict) or not isinstance(number, int):
        return None
    templates = (template,) if plural is None else (template, plural)
    for each in templates:
        if not isinstance(each, str) or (given and not _TEMPLATE.fullmatch(each)):
            return None
    try:
        values = {name: _of_recipe(value, depth + 1) for name, value in given.items()}
        if any(_length(each, values) > LONGEST for each in templates):
            return None
        return Text(template, values, plural, number)
    except (KeyError, TypeError, ValueError):
        return None


def recognised(said: str, templates: Iterable[str]) -> str:
    """The text that one of the templates made of something; as it is, where none did.

    :param templates: marked, with strings alone to fill in; the first one that fits counts.
    """
    for template in templates:
        # At odd places there are names of values.
        parts = _VALUE.split(template)
        pattern = "".join(
            f"(?P<{part}>.+)" if place % 2 else re.escape(part) for place, part in enumerate(parts)
        )
        match = re.fullmatch(pattern, said, re.DOTALL)
        if match:
            return Text(template, match.groupdict())
    return said


class Explained(ValueError):
    """An error that says what is wrong with what was given, and what to do.

    ``str()`` is English, whatever language is active; :attr:`translated` is for pages. It can be raised with a plain
    string as well, which is then both.
    """

    @property
    def translated(self) -> str:
        """The message in the active language."""
        return translated(self)


def number_text(value: float) -> str:
    """A whole number with its thousands told apart, as the active language does that; with a half, that too."""
    whole = int(value)  # a plain one: a Count writes itself in a way of its own
    number, places = (whole, 0) if value == whole else (value, 1)
    return str(formats.number_format(number, decimal_pos=places, use_l10n=True, force_grouping=True))


def _shown(value: Any) -> Any:
    if isinstance(value, Text):
        return value.translated()
    return number_text(int(value)) if isinstance(value, Grouped) else value


def _recipe(value: Any) -> Any:
    if isinstance(value, Text):
        return value.recipe
    if isinstance(value, Grouped):
        return {"grouped": int(value)}
    return int(value) if isinstance(value, int) else str(value)


def _length(template: str, values: Mapping[str, Any]) -> int:
    """How many characters it becomes at most."""
    lengths = {name: len(str(value)) for name, value in values.items()}
    return len(template) + sum(lengths.get(name, 0) for name in _PLACE.findall(template))


def _of_recipe(value: Any, depth: int) -> Any:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, dict) and isinstance(value.get("grouped"), int):
        return Grouped(value["grouped"])
    made = of_recipe(value, depth)
    if made is None:
        raise ValueError(value)
    return made
