"""JSON for people: foldable, escaped, with every digit of its numbers, and bounded however much there is of it."""

from __future__ import annotations

import json
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext

from django_jobs.redaction import TOO_DEEP
from django_jobs.serialization import Undecodable
from django_jobs.texts import number_text

SHORT = 90  # characters: what is no longer stands in one line
LONG = 400  # characters: a text that is longer is folded
MOST = 1_000  # values of one document; what comes after them is told by number
DEEPEST = 20  # levels
OPEN = 2  # levels that are not folded at first, while they have not too many entries
MANY = 30


def render(value: Any) -> SafeString:
    """A decoded JSON value as HTML."""
    if isinstance(value, Undecodable):
        return format_html(
            '<p class="dj-note dj-bad">{}</p><pre class="dj-pre dj-wrap">{}</pre>',
            gettext("This is no JSON; it is shown as it is stored."),
            printable(str(value)),
        )
    return format_html('<div class="dj-json">{}</div>', _Renderer().value(value, 0))


def one_line(value: Any) -> str:
    """A value as JSON text. What can't be shown by any terminal or page (a lone surrogate) is escaped."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (RecursionError, ValueError, TypeError):
        text = "…"
    return printable(text)


def printable(text: str) -> str:
    """A text that can be encoded, without control characters but for line breaks and tabs."""
    text = text.encode("utf-8", "backslashreplace").decode()
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in "\n\t " else letter.encode("unicode_escape").decode()
        for letter in text
    )


class _Renderer:
    def __init__(self) -> None:
        self.left = MOST

    def value(self, value: Any, level: int) -> SafeString:
        self.left -= 1
        if isinstance(value, dict | list) and value:
            return self.container(value, level)
        if isinstance(value, str):
            return self.text(value)
        kind = "null" if value is None else "number" if _is_number(value) else "word"
        return format_html('<code class="dj-json-{}">{}</code>', kind, one_line(value))

    def text(self, value: str) -> SafeString:
        if value == TOO_DEEP:
            value = gettext("[nested too deeply to be shown]")
        shown = one_line(value)
        if len(value) <= LONG and "\n" not in value:
            return format_html('<code class="dj-json-text">{}</code>', shown)
        length = ngettext("%(count)s character", "%(count)s characters", len(value)) % {
            "count": number_text(len(value))
        }
        return format_html(
            '<details class="dj-fold"><summary><code class="dj-json-text">{}…</code> <span class="dj-quiet">{}</span>'
            '</summary><pre class="dj-pre dj-wrap">{}</pre></details>',
            shown[:60],
            length,
            printable(value),
        )

    def container(self, value: dict[str, Any] | list[Any], level: int) -> SafeString:
        text = one_line(value) if len(value) <= MANY else ""
        if text and len(text) <= SHORT and (level > 0 or not isinstance(value, dict)):
            return format_html('<code class="dj-json-text">{}</code>', text)
        if level >= DEEPEST:
            return format_html('<pre class="dj-pre dj-wrap">{}</pre>', one_line(value))
        entries = self.entries(value, level)
        if level == 0:
            return entries
        is_open = level < OPEN and len(value) <= MANY
        return format_html(
            '<details class="dj-fold"{}><summary>{}</summary>{}</details>',
            mark_safe(" open") if is_open else "",
            _summary(value),
            entries,
        )

    def entries(self, value: dict[str, Any] | list[Any], level: int) -> SafeString:
        pairs = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
        shown: list[tuple[Any, SafeString]] = []
        for key, each in pairs:
            if self.left <= 0:
                break
            shown.append((printable(str(key)), self.value(each, level + 1)))
        html = format_html_join("", "<dt>{}</dt><dd>{}</dd>", shown)
        left_out = len(pairs) - len(shown)
        rest: SafeString | str = ""
        if left_out:
            more = ngettext("%(count)s more entry", "%(count)s more entries", left_out) % {
                "count": number_text(left_out)
            }
            rest = format_html('<p class="dj-note">{}</p>', more)
        return format_html('<dl class="dj-json-entries">{}</dl>{}', html, rest)


def _summary(value: dict[str, Any] | list[Any]) -> str:
    count = {"count": number_text(len(value))}
    if isinstance(value, dict):
        return ngettext("%(count)s key", "%(count)s keys", len(value)) % count
    return ngettext("%(count)s item", "%(count)s items", len(value)) % count


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
